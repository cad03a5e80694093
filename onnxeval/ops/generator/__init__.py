"""The kernels of the standard's section `generator`, a family a file."""
