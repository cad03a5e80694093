"""``python -m onnxeval``: the command line."""

from onnxeval_cli.process import process

if __name__ == "__main__":
    process()
