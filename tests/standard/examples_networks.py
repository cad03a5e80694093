"""Steps of layers, pools, normalisations, transforms and samplers: examples of the meaning before and after.

What is wanted is worked out from the texts, number by number.
"""

import cmath
import math

import numpy as np
from standard.one_node import Example, Outputs, f32, gives, i64, refuses

_BATCH = f32([[[1, 3]], [[5, 7]]])  # mean 4, variance 5
_PARAMETERS = [f32([2]), f32([1]), f32([0]), f32([1])]  # scale, B, mean, var
_BY_BATCH = f32([[[2 * (x - 4) / math.sqrt(5 + 1e-5) + 1 for x in row[0]]] for row in _BATCH])
_BY_INPUT = f32([[[2 * x / math.sqrt(1 + 1e-5) + 1 for x in row[0]]] for row in _BATCH])
_RUNNING = [f32([0.9 * 0 + 0.1 * 4]), f32([0.9 * 1 + 0.1 * 5])]

_ONES = np.ones(1000, np.float32)


def _dropped(outputs: Outputs) -> None:
    y, mask = outputs
    assert 400 < np.count_nonzero(y) < 600
    assert set(y) == {0, 2}
    assert y.tolist() == (2 * _ONES * mask.astype(np.float32)).tolist()


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


# A layer of one feature and one hidden element over two steps: W, R, Wb and Rb of each gate, in the standard's order.
_STEPS = (0.5, -1.0)
_GATES = {
    "W": (0.3, -0.4, 0.7, 0.2),
    "R": (0.6, 0.1, -0.5, 0.9),
    "Wb": (0.2, -0.1, 0.3, 0.1),
    "Rb": (0.1, 0.4, -0.6, 0),
}


def _layer(gates: int) -> list[np.ndarray]:
    biases = _GATES["Wb"][:gates] + _GATES["Rb"][:gates]
    return [f32(_STEPS).reshape(2, 1, 1), *(f32(_GATES[n][:gates]).reshape(1, gates, 1) for n in "WR"), f32([biases])]


def _outputs(hidden: list[float], *memory: float) -> tuple[np.ndarray, ...]:
    return f32(hidden).reshape(2, 1, 1, 1), *(f32(last).reshape(1, 1, 1) for last in (hidden[-1], *memory))


def _gru(linear_before_reset: bool) -> tuple[np.ndarray, ...]:
    (wz, wr, wh), (rz, rr, rh), (wbz, wbr, wbh), (rbz, rbr, rbh) = (v[:3] for v in _GATES.values())
    h, hidden = 0.0, []
    for x in _STEPS:
        z = _sigmoid(x * wz + h * rz + wbz + rbz)
        r = _sigmoid(x * wr + h * rr + wbr + rbr)
        back = r * (h * rh + rbh) if linear_before_reset else r * h * rh + rbh
        h = (1 - z) * math.tanh(x * wh + back + wbh) + z * h
        hidden.append(h)
    return _outputs(hidden)


def _lstm() -> tuple[np.ndarray, ...]:
    (wi, wo, wf, wc), (ri, ro, rf, rc), (wbi, wbo, wbf, wbc), (rbi, rbo, rbf, rbc) = _GATES.values()
    h, c, hidden = 0.0, 0.0, []
    for x in _STEPS:
        i, o, f = (
            _sigmoid(x * w + h * r + wb + rb)
            for w, r, wb, rb in ((wi, ri, wbi, rbi), (wo, ro, wbo, rbo), (wf, rf, wbf, rbf))
        )
        c = f * c + i * math.tanh(x * wc + h * rc + wbc + rbc)
        h = o * math.tanh(c)
        hidden.append(h)
    return _outputs(hidden, c)


def _rnn() -> tuple[np.ndarray, ...]:
    w, r, wb, rb = (v[0] for v in _GATES.values())
    h, hidden = 0.0, []
    for x in _STEPS:
        h = math.tanh(x * w + h * r + wb + rb)
        hidden.append(h)
    return _outputs(hidden)


def _transformed(x: np.ndarray, axis: int) -> np.ndarray:
    """The sum of the text, along an axis of real numbers (..., 1)."""
    n, wanted = x.shape[axis], np.zeros((*x.shape[:-1], 2), np.float32)
    for place in np.ndindex(x.shape[:-1]):
        at = list(place)
        total = 0j
        for step in range(n):
            at[axis] = step
            total += x[(*at, 0)].item() * cmath.exp(-2j * math.pi * place[axis] * step / n)
        wanted[place] = total.real, total.imag
    return wanted


_SIGNAL = f32([[1, 5, 2], [4, -3, 7]]).reshape(1, 2, 3, 1)
_LOGS = np.log(f32([[[1, 2], [3, 4]]]))
_ROWS, _LINES = f32([[[0.1, 0.2], [0.3, 0.4]]]), f32([[[1 / 3, 2 / 3], [3 / 7, 4 / 7]]])
_PAIR = f32([[[3, 4]]])
_QUERY, _KEYS, _VALUES = f32([[[[0, 0]]]]), f32([[[[1, 2], [3, 4]]]]), f32([[[[1, 2], [3, 6]]]])


EXAMPLES: dict[str, list[Example]] = {
    "Attention-23 -> 24": [
        gives(23, [_QUERY, _KEYS, _VALUES], f32([[[[2, 4]]]])),
        refuses(23, [_QUERY, _KEYS, _VALUES, *[None] * 3, i64([1])], "takes 3 to 6 inputs"),
        gives(24, [_QUERY, _KEYS, _VALUES, *[None] * 3, i64([1])], f32([[[[1, 2]]]])),
    ],
    "BatchNormalization-6 -> 7": [
        gives(6, [_BATCH, *_PARAMETERS], _BY_BATCH),
        gives(6, [_BATCH, *_PARAMETERS], _BY_INPUT, is_test=1),
        gives(7, [_BATCH, *_PARAMETERS], _BY_INPUT),
        gives(7, [_BATCH, *_PARAMETERS], _BY_BATCH, *_RUNNING, f32([4]), f32([5])),
    ],
    "BatchNormalization-7 -> 9": [
        gives(
            7,
            [f32([[[1, 3]]]), f32([[2, 4]]), f32([[1, 0]]), f32([[0, 1]]), f32([[1, 3]])],
            f32([[[2 / math.sqrt(1 + 1e-5) + 1, 4 * (3 - 1) / math.sqrt(3 + 1e-5)]]]),
            spatial=0,
        ),
        gives(9, [_BATCH, *_PARAMETERS], _BY_INPUT),
        refuses(9, [_BATCH, *_PARAMETERS], 'no attribute "spatial"', spatial=0),
    ],
    "BatchNormalization-9 -> 14": [
        gives(9, [_BATCH, *_PARAMETERS], _BY_BATCH, *_RUNNING, f32([4]), f32([5])),
        gives(14, [_BATCH, *_PARAMETERS], _BY_BATCH, *_RUNNING, training_mode=1),
        gives(14, [_BATCH, *_PARAMETERS], _BY_INPUT),
    ],
    "DFT-17 -> 20": [
        gives(17, [_SIGNAL], _transformed(_SIGNAL, 1)),
        gives(17, [_SIGNAL], _transformed(_SIGNAL, 2), axis=2),
        gives(20, [_SIGNAL], _transformed(_SIGNAL, 2)),
        gives(20, [_SIGNAL, None, i64(1)], _transformed(_SIGNAL, 1)),
    ],
    "Dropout-6 -> 7": [
        gives(6, [_ONES], _dropped),
        gives(6, [_ONES], _ONES, is_test=1),
        gives(7, [_ONES], _ONES, _ONES, ratio=0.9),
    ],
    "Dropout-10 -> 12": [
        gives(10, [_ONES], _ONES, np.ones(1000, np.bool_), ratio=0.9),
        gives(12, [_ONES, f32(0.5), np.array(True)], _dropped),
        gives(12, [_ONES, None, np.array(True)], _dropped),
        gives(12, [_ONES, f32(0.5)], _ONES, np.ones(1000, np.bool_)),
    ],
    "GRU-1 -> 3": [
        gives(1, _layer(3), *_gru(linear_before_reset=False), hidden_size=1),
        gives(3, _layer(3), *_gru(linear_before_reset=False)),
        gives(3, _layer(3), *_gru(linear_before_reset=True), linear_before_reset=1),
    ],
    "GRU-3 -> 7": [
        gives(3, _layer(3), *_gru(linear_before_reset=True), linear_before_reset=1, output_sequence=1),
        gives(7, _layer(3), *_gru(linear_before_reset=True), linear_before_reset=1),
    ],
    "GlobalLpPool-1 -> 2": [
        gives(1, [_PAIR], f32([[[(3**1.5 + 4**1.5) ** (1 / 1.5)]]]), p=1.5),
        gives(1, [_PAIR], f32([[[5]]])),
        gives(2, [_PAIR], f32([[[5]]])),
        refuses(2, [_PAIR], "of type FLOAT", p=1.5),
    ],
    "GridSample-16 -> 20": [
        gives(16, [f32([[[[0, 10]]]]), f32([[[[0, 0]]]])], f32([[[[5]]]])),
        gives(16, [f32([[[[0, 10]]]]), f32([[[[0, 0]]]])], f32([[[[5]]]]), mode="bilinear"),
        refuses(16, [f32([[[[0, 10]]]]), f32([[[[0, 0]]]])], "'linear' is none of", mode="linear"),
        gives(20, [f32([[[0, 10]]]), f32([[[0]]])], f32([[[5]]])),
        refuses(20, [f32([[[0, 10]]]), f32([[[0]]])], "'bilinear' is none of", mode="bilinear"),
    ],
    "Hardmax-11 -> 13": [
        gives(11, [_LOGS], f32([[[0, 0], [0, 1]]])),
        gives(11, [_LOGS], f32([[[0, 1], [0, 1]]]), axis=2),
        gives(13, [_LOGS], f32([[[0, 1], [0, 1]]])),
        gives(13, [_LOGS], f32([[[0, 0], [1, 1]]]), axis=1),
    ],
    "LSTM-1 -> 7": [
        gives(1, _layer(4), *_lstm(), output_sequence=1),
        gives(7, _layer(4), *_lstm()),
    ],
    "LogSoftmax-11 -> 13": [
        gives(11, [_LOGS], np.log(_ROWS)),
        gives(13, [_LOGS], np.log(_LINES)),
    ],
    "LpPool-1 -> 2": [
        gives(1, [_PAIR], f32([[[(3**2.5 + 4**2.5) ** (1 / 2.5)]]]), kernel_shape=[2], p=2.5),
        refuses(1, [_PAIR], "kernel_shape is missing"),
        gives(2, [_PAIR], f32([[[(3**3 + 4**3) ** (1 / 3)]]]), kernel_shape=[2], p=3),
        refuses(2, [_PAIR], "needs the attribute kernel_shape"),
    ],
    "MaxPool-1 -> 8": [
        gives(1, [f32([[[1, 5, 3]]])], f32([[[5, 5]]]), kernel_shape=[2]),
        gives(8, [f32([[[1, 5, 3]]])], f32([[[5, 5]]]), i64([[[1, 1]]]), kernel_shape=[2]),
    ],
    "RNN-1 -> 7": [
        gives(1, _layer(1), *_rnn(), output_sequence=1),
        gives(7, _layer(1), *_rnn()),
    ],
    "Softmax-11 -> 13": [
        gives(11, [_LOGS], _ROWS),
        gives(11, [_LOGS], _LINES, axis=-1),
        gives(13, [_LOGS], _LINES),
        gives(13, [_LOGS], f32([[[1 / 4, 2 / 6], [3 / 4, 4 / 6]]]), axis=1),
    ],
}
