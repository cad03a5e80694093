"""The command line: one command a file, installed as the package onnxeval_cli."""
