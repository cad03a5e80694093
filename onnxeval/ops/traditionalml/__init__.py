"""The kernels of the standard's section `traditionalml`, a family a file."""
