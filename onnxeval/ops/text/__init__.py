"""The kernels of the standard's section `text`, a family a file."""
