"""The kernels of the standard's section `image`, a family a file."""
