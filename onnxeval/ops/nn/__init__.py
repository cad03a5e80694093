"""The kernels of the standard's section `nn`, a family a file."""
