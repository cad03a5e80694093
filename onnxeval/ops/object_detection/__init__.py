"""The kernels of the standard's section `object_detection`, a family a file."""
