"""The kernels of the standard's section `controlflow`, a family a file."""
