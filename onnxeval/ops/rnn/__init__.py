"""The kernels of the standard's section `rnn`, a family a file."""
