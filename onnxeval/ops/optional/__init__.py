"""The kernels of the standard's section `optional`, a family a file."""
