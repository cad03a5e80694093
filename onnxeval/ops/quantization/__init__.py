"""The kernels of the standard's section `quantization`, a family a file."""
