"""The kernels of the standard's section `training`, a family a file."""
