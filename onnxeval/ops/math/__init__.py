"""The kernels of the standard's section `math`, a family a file."""
