"""The kernels of the standard's section `logical`, a family a file."""
