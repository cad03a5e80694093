"""Random models give the same with and without passes and compiled kernels, run after run, whatever memory they get.

Each runs several times with its shapes, with other shapes, and with the first ones again. Floats differ by rounding: by
as much as the readable path's own results move when its feeds do in their last places.
"""

import numpy as np
import pytest
from passes.random_models import drawn

import onnxeval

#: How far floats may be apart, of their own size and that of the others around them.
TOLERANCES = {2: 4e-3, 4: 2e-5, 8: 1e-12}


def relaid(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """The same values, somewhere else in memory."""
    y = np.array(x)
    match int(rng.integers(6)) if x.size and x.ndim else 0:
        case 1:
            return np.ascontiguousarray(x.T).T
        case 2:
            return np.ascontiguousarray(x[..., ::-1])[..., ::-1]
        case 3:  # not aligned
            y = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
            y[...] = x
        case 4:
            y.flags.writeable = False
        case 5:
            return np.broadcast_to(x, (3, *x.shape))[1]
    return y


def outcome(model: onnxeval.Model, feeds: dict, **options):
    try:
        return model.run(feeds, **options)
    except onnxeval.OnnxEvalError as error:
        return error


def difference(one, other, loose: float = 1, doubles: float = TOLERANCES[8]) -> str:
    """What is not the same; of errors, the class alone: of two wrong nodes either may be first.

    ``doubles`` is how far numbers of 64 bits may be apart. Infinities are those of either sign: a sum of nothing may
    be a zero of either.
    """
    if isinstance(one, Exception) or isinstance(other, Exception):
        return "" if type(one) is type(other) else f"{one!r} is not {other!r}"
    for name, y in other.items():
        x = one[name]
        if (x.dtype, x.shape) != (y.dtype, y.shape):
            return f"{name}: {x.dtype}{x.shape} is not {y.dtype}{y.shape}"
        if x.dtype.kind != "f":
            if not np.array_equal(x, y):
                return f"{name}: {x} is not {y}"
            continue
        tolerance = (doubles if x.dtype.itemsize == 8 else TOLERANCES[x.dtype.itemsize]) * loose
        finite = np.isfinite(y)
        sizes = np.abs(y[finite].astype(np.float64))
        room = tolerance * (sizes + (np.median(sizes) if sizes.size else 0) + 0.01)
        near = np.isfinite(x[finite]) & (np.abs(x[finite].astype(np.float64) - y[finite]) <= room)
        if not near.all() or not np.array_equal(abs(x[~finite]), abs(y[~finite]), equal_nan=True):
            return f"{name}: {x} is not {y}"
    return ""


def moves_itself(model: onnxeval.Model, feeds: dict, wanted, rng: np.random.Generator) -> bool:
    """Whether the readable path's results differ as much when the feeds do in their last places."""
    for _ in range(4):
        moved = {
            name: (x * (1 + rng.choice((-2, 2), x.shape) * np.finfo(x.dtype).eps)).astype(x.dtype)
            if x.dtype.kind == "f"
            else x
            for name, x in feeds.items()
        }
        if difference(outcome(model, moved, reference=True), wanted, 0.3):
            return True
    return False


def other_shapes(rng: np.random.Generator, feeds: dict) -> dict:
    """Feeds of which one axis of each is twice as long, or shorter by one."""
    made = {}
    for name, x in feeds.items():
        axis = int(rng.integers(max(x.ndim, 1)))
        if x.ndim:
            made[name] = np.repeat(x, 2, axis) if rng.random() < 0.5 else np.delete(x, slice(1), axis)
        else:
            made[name] = x
    return made


def check(seed: int) -> None:
    model_and_feeds = drawn(seed)
    if model_and_feeds is None:
        return
    proto, feeds = model_and_feeds
    model, rng = onnxeval.load(proto), np.random.default_rng(seed)
    # Normalisations compute in the type of their stash_type, 32 bits
    doubles = TOLERANCES[4 if any("Normalization" in node.op_type for node in proto.graph.node) else 8]
    other = other_shapes(rng, feeds)
    held: list[tuple[np.ndarray, bytes]] = []
    for turn, shaped in enumerate((feeds,) * 5 + (other,) * 3 + (feeds,)):
        values = {name: rng.permutation(x.ravel()).reshape(x.shape) if x.ndim else x for name, x in shaped.items()}
        given = {name: relaid(rng, x) for name, x in values.items()}
        wanted, results = outcome(model, values, reference=True), outcome(model, given)
        told = difference(results, wanted, doubles=doubles)
        with np.errstate(all="ignore"):
            assert not told or moves_itself(model, values, wanted, rng), f"seed {seed}, run {turn}: {told}"
        assert all(x.tobytes() == values[name].tobytes() for name, x in given.items()), f"seed {seed}: feeds changed"
        if not isinstance(results, Exception):
            held += [(x, x.tobytes()) for x in results.values()]
        assert all(x.tobytes() == before for x, before in held), f"seed {seed}, run {turn}: earlier results changed"


@pytest.mark.parametrize("start", range(0, 300, 50))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_models(start: int) -> None:
    for seed in range(start, start + 50):
        check(seed)


#: A quotient there is the largest float or an infinity, as the sum before is rounded.
AT_THE_BORDER = {2093}


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 6000, 250))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_more_random_models(start: int) -> None:
    for seed in set(range(start, start + 250)) - AT_THE_BORDER:
        check(seed)
