"""``python -m onnxeval``: the command line."""

from onnxeval_cli.main import main

if __name__ == "__main__":
    main()
