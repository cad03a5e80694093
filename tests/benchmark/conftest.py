"""The scripts of benchmarks/ import each other by name, from the folder they lie in."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
