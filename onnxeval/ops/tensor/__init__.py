"""The kernels of the standard's section `tensor`, a family a file."""
