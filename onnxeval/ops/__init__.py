"""The kernels: one folder a section of the standard, plain NumPy functions inside."""
