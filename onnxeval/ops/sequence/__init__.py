"""The kernels of the standard's section `sequence`, a family a file."""
