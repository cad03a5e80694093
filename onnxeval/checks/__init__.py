"""The rules of `onnxeval check`: every defect of a model at once, with its place, its reason and a way out.

A rule is a plain function in a table (`rules`), a family a file; `views` and `whole` show a model to them, `checker`
brings them together.
"""

from onnxeval.checks.checker import check
from onnxeval.checks.rules import RULES, Finding, Rule, Severity

__all__ = ["RULES", "Finding", "Rule", "Severity", "check"]
