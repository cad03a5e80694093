"""The kernels of the standard's section `reduction`, a family a file."""
