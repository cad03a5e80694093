"""The kernels of the standard's section `preview`, a family a file."""
