"""Scales and zero points of quantized matrices: one number, one a row, or one a column."""

from __future__ import annotations

from onnxeval.dtypes import Tensor
from onnxeval.ops._broadcast import broadcasts_to
from onnxeval.ops._exact import right_factor
from onnxeval.values import shape_text


def by_row(parameter: Tensor, matrix: Tensor, *, name: str) -> Tensor:
    """In a shape that broadcasts to the matrix, and to its product with another.

    Raises ValueError where it is neither one number nor one a row.
    """
    if parameter.size == 1:
        return parameter.reshape(())
    shaped = parameter[:, None] if parameter.ndim == 1 else parameter
    return _checked(shaped, matrix, lone_axis=-1, name=name)


def by_column(parameter: Tensor, matrix: Tensor, *, name: str) -> Tensor:
    """In a shape that broadcasts to the matrix, and to the product of another with it.

    Raises ValueError where it is neither one number nor one a column.
    """
    if parameter.size == 1:
        return parameter.reshape(())
    shaped = parameter[None, :] if parameter.ndim == 1 else parameter
    return _checked(shaped, matrix, lone_axis=-2, name=name)


def factor_of(b: Tensor, b_zero_point: Tensor | None) -> Tensor:
    """The `right_factor` of a matrix; its zero point is one number or one a column."""
    return right_factor(b, None if b_zero_point is None else by_column(b_zero_point, b, name="b_zero_point"))


def _checked(parameter: Tensor, matrix: Tensor, *, lone_axis: int, name: str) -> Tensor:
    if parameter.ndim < 2 or parameter.shape[lone_axis] != 1 or not broadcasts_to(parameter, matrix.shape):
        side = "row" if lone_axis == -1 else "column"
        shapes = f"{shape_text(parameter.shape)} is neither one number nor one a {side} of {shape_text(matrix.shape)}"
        raise ValueError(f"{name} of shape {shapes}")
    return parameter
