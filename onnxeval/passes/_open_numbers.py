"""What small tensors hold that models compute shapes in: of the first output, None where nothing is known."""

from __future__ import annotations

from collections.abc import Callable

from onnxeval.dtypes import DType
from onnxeval.passes._open_shapes import reshaped, squeezed, unsqueezed
from onnxeval.passes._sizes import BOOL, INT64, MOST_NUMBERS, Numbers, Size, Symbol, View, size_of


def _shape_of(view: View) -> Numbers | None:
    shape = view.shape(0)
    if shape is None:
        return None
    return Numbers(INT64, 1, shape[slice(view.attributes.get("start", 0), view.attributes.get("end"))])


def _count_of(view: View) -> Numbers | None:
    shape = view.shape(0)
    size = None if shape is None else size_of(shape)
    return Numbers(INT64, 0, (size if isinstance(size, int) else None,))


def _kept(view: View) -> Numbers | None:
    return view.numbers(0)


def _gathered_numbers(view: View) -> Numbers | None:
    numbers, indices = view.numbers(0), view.numbers(1)
    if numbers is None or numbers.rank != 1 or indices is None:
        return None
    count = len(numbers.items)
    if not all(isinstance(index, int) and -count <= index < count for index in indices.items):
        return None
    return Numbers(numbers.dtype, indices.rank, tuple([numbers.items[i] for i in indices.items if isinstance(i, int)]))


def _sliced_numbers(view: View) -> Numbers | None:
    numbers = view.numbers(0)
    bounds = [view.constants(place, name) for place, name in ((1, "starts"), (2, "ends"))]
    step = view.constants(4) if view.has(4) else (1,)
    if numbers is None or numbers.rank != 1 or step is None or len(step) != 1 or not step[0]:
        return None
    if any(bound is None or len(bound) != 1 for bound in bounds):
        return None
    start, end = (bound[0] for bound in bounds if bound)
    return numbers._replace(items=numbers.items[start : end : step[0]])


def _joined_numbers(view: View) -> Numbers | None:
    parts = [view.numbers(place) for place in range(len(view.inputs))]
    dtype = next((part.dtype for part in parts if part is not None), None)
    items: list[Size | None] = []
    for place, part in enumerate(parts):
        match view.shape(place):
            case (int(count),) if count <= MOST_NUMBERS:
                items += part.items if part is not None else (None,) * count
            case _:
                return None
    return None if dtype is None else Numbers(dtype, 1, tuple(items))


def _unsqueezed_numbers(view: View) -> Numbers | None:
    numbers = view.numbers(0)
    return numbers._replace(rank=1) if numbers is not None and numbers.rank == 0 and unsqueezed(view) else None


def _squeezed_numbers(view: View) -> Numbers | None:
    numbers = view.numbers(0)
    if numbers is None or numbers.rank != 1 or len(numbers.items) != 1 or squeezed(view) != [()]:
        return None
    return numbers._replace(rank=0)


def _reshaped_numbers(view: View) -> Numbers | None:
    numbers, shapes = view.numbers(0), reshaped(view)
    if numbers is None or not shapes or shapes[0] is None or len(shapes[0]) > 1:
        return None
    return numbers._replace(rank=len(shapes[0]))


def _computed(
    compute: Callable[[int, int], int | None], neutral: int, *, commutes: bool = False
) -> Callable[[View], Numbers | None]:
    """Of two tensors of int64; ``neutral`` on the right, or on either side, leaves a size as it is."""

    def of(a: Size | None, b: Size | None) -> Size | None:
        if isinstance(a, int) and isinstance(b, int):
            result = compute(a, b)
            return result if result is not None and -(2**63) <= result < 2**63 else None
        return a if b == neutral else b if commutes and a == neutral else None

    return _elementwise(of, INT64)


def _elementwise(
    of: Callable[[Size | None, Size | None], Size | None], result: DType
) -> Callable[[View], Numbers | None]:
    def computed(view: View) -> Numbers | None:
        a, b = view.numbers(0), view.numbers(1)
        if a is None or b is None or a.dtype != INT64 or b.dtype != INT64 or len(view.inputs) != 2:
            return None
        pairs = _pairs(a, b)
        return None if pairs is None else Numbers(result, max(a.rank, b.rank), tuple([of(*pair) for pair in pairs]))

    return computed


def _pairs(a: Numbers, b: Numbers) -> list[tuple[Size | None, Size | None]] | None:
    count = len(b.items) if len(a.items) == 1 else len(a.items)
    if len(b.items) not in (1, count):
        return None
    one, other = (x.items if len(x.items) == count else x.items * count for x in (a, b))
    return list(zip(one, other, strict=True))


def _equal(a: Size | None, b: Size | None) -> Size | None:
    """Whether numbers are equal. Sizes are not negative."""
    if isinstance(a, int) and isinstance(b, int):
        return int(a == b)
    number, other = (a, b) if isinstance(a, int) else (b, a)
    if isinstance(number, int) and number < 0 and isinstance(other, Symbol):
        return 0
    return 1 if a is b and isinstance(a, Symbol) else None


def _chosen_numbers(view: View) -> Numbers | None:
    condition, one, other = (view.numbers(place) for place in range(3))
    if condition is None or one is None or other is None or one.dtype != other.dtype:
        return None
    pairs = _pairs(one, other)
    if pairs is None or len(condition.items) not in (1, len(pairs)):
        return None
    flags = condition.items if len(condition.items) == len(pairs) else condition.items * len(pairs)
    items = [
        (b if flag == 0 else a) if isinstance(flag, int) or a is b else None
        for flag, (a, b) in zip(flags, pairs, strict=True)
    ]
    return Numbers(one.dtype, max(condition.rank, one.rank, other.rank), tuple(items))


def _quotient(a: int, b: int) -> int | None:
    """Rounded to zero."""
    return None if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _filled_numbers(view: View) -> Numbers | None:
    count, value = view.constants(0), view.attributes["value"]
    if count is None or len(count) > 1 or value is None or value.dtype != INT64:
        return None
    copies = count[0] if count else 1
    return Numbers(INT64, len(count), tuple(value.reshape(-1).tolist()) * copies) if copies <= MOST_NUMBERS else None


NUMBERS: dict[str, Callable[[View], Numbers | None]] = {
    "Add": _computed(lambda a, b: a + b, 0, commutes=True),
    "Concat": _joined_numbers,
    "ConstantOfShape": _filled_numbers,
    "Div": _computed(_quotient, 1),
    "Equal": _elementwise(_equal, BOOL),
    "Gather": _gathered_numbers,
    "Identity": _kept,
    "Mul": _computed(lambda a, b: a * b, 1, commutes=True),
    "Reshape": _reshaped_numbers,
    "Shape": _shape_of,
    "Size": _count_of,
    "Slice": _sliced_numbers,
    "Squeeze": _squeezed_numbers,
    "Sub": _computed(lambda a, b: a - b, 0),
    "Unsqueeze": _unsqueezed_numbers,
    "Where": _chosen_numbers,
}
