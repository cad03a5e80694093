"""DynamicQuantizeLSTM against its steps written out, one sequence and one direction after the other."""

import numpy as np
import pytest
from ops.contrib.nodes import ours, theirs

import onnxeval

F32 = np.float32


def node(steps=5, batch=1, features=4, hidden=3, directions=1, dtype=np.uint8, per_column=False, lengths=None, seed=0):
    """The inputs of a node with initial states, without peepholes."""
    draw = np.random.default_rng(seed)
    low, high = (0, 256) if dtype == np.uint8 else (-128, 128)
    columns = 4 * hidden

    def parameters():
        shape = (directions, columns) if per_column else (directions,)
        zero = draw.integers(90, 160) if dtype == np.uint8 else 0
        return (draw.random(shape) * 0.01 + 0.002).astype(F32), np.full(shape, zero, dtype)

    return [
        draw.standard_normal((steps, batch, features)).astype(F32),
        draw.integers(low, high, (directions, features, columns)).astype(dtype),
        draw.integers(low, high, (directions, hidden, columns)).astype(dtype),
        draw.standard_normal((directions, 2 * columns)).astype(F32),
        None if lengths is None else np.array(lengths, np.int32),
        draw.standard_normal((directions, batch, hidden)).astype(F32) / 2,
        draw.standard_normal((directions, batch, hidden)).astype(F32),
        None,
        *parameters(),
        *parameters(),
    ]


def steps_of(x):
    """Each element as a multiple of the scale, and the scale."""
    low, high = min(x.min(), F32(0)), max(x.max(), F32(0))
    if high == low:
        return np.zeros(x.shape), 0.0
    scale = (high - low) / F32(255)
    zero_point = np.rint(np.clip(-low / scale, 0, 255))
    return np.clip(np.rint(x / scale) + zero_point, 0, 255) - zero_point, float(scale)


def product(x, matrix, scale, zero_point):
    counted, own = steps_of(x)
    return (counted @ (matrix.astype(float) - zero_point)) * (own * scale.astype(float))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def expected(inputs, backwards=(False,), clip=np.inf, input_forget=False):
    """(Y, Y_h, Y_c), sigmoid and tanh."""
    x, w, r, b, lengths, h0, c0, p, ws, wz, rs, rz = inputs
    steps, batch = x.shape[:2]
    size = r.shape[1]
    lengths = [steps] * batch if lengths is None else lengths
    y = np.zeros((steps, len(backwards), batch, size))
    last_h, last_c = np.array(h0, float), np.array(c0, float)
    for d, backward in enumerate(backwards):
        places = [[n - 1 - t if backward and t < n else t for t in range(steps)] for n in lengths]
        turned = np.stack([x[places[s], s] for s in range(batch)], axis=1)[: max(lengths)]
        gates = product(turned.reshape(-1, x.shape[2]), w[d], ws[d], wz[d]).reshape(-1, batch, 4 * size)
        h = h0[d].astype(F32)
        for t in range(max(lengths)):
            recurrent = product(h, r[d], rs[d], rz[d])
            h = np.zeros_like(h)
            for s in range(batch):
                if t >= lengths[s]:
                    continue
                i, o, f, c = (gates[t, s] + recurrent[s] + b[d, : 4 * size] + b[d, 4 * size :]).reshape(4, size)
                peeks = np.zeros((3, size)) if p is None else p[d].reshape(3, size)
                write = sigmoid(np.clip(i + peeks[0] * last_c[d, s], -clip, clip))
                keep = 1 - write if input_forget else sigmoid(np.clip(f + peeks[2] * last_c[d, s], -clip, clip))
                last_c[d, s] = keep * last_c[d, s] + write * np.tanh(np.clip(c, -clip, clip))
                show = sigmoid(np.clip(o + peeks[1] * last_c[d, s], -clip, clip))
                h[s] = last_h[d, s] = show * np.tanh(np.clip(last_c[d, s], -clip, clip))
                y[places[s][t], d, s] = last_h[d, s]
    return y, last_h, last_c


def run(inputs, **attributes):
    return ours("DynamicQuantizeLSTM", inputs, outputs=3, hidden_size=inputs[2].shape[1], **attributes)


CASES = {
    "one sequence": ({}, {}),
    "int8, a scale for each column": ({"dtype": np.int8, "per_column": True}, {}),
    "reverse": ({"batch": 2}, {"direction": "reverse"}),
    "bidirectional": ({"directions": 2, "batch": 2, "per_column": True}, {"direction": "bidirectional"}),
    "lengths": ({"batch": 3, "lengths": [5, 2, 3]}, {}),
    "lengths, shorter than the tensor": ({"batch": 3, "lengths": [4, 2, 3]}, {"direction": "reverse"}),
    "lengths, bidirectional": ({"batch": 3, "lengths": [1, 4, 3], "directions": 2}, {"direction": "bidirectional"}),
    "coupled gates": ({"batch": 2}, {"input_forget": 1}),
}
BACKWARDS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@pytest.mark.parametrize("name", CASES)
def test_formula(name: str) -> None:
    how, attributes = CASES[name]
    inputs = node(**how)
    wanted = expected(
        inputs, BACKWARDS[attributes.get("direction", "forward")], input_forget=attributes.get("input_forget", 0)
    )
    for given, want in zip(run(inputs, **attributes), wanted, strict=True):
        assert given.dtype == F32
        np.testing.assert_allclose(given, want, rtol=0, atol=1e-5)


def test_peepholes_and_clip() -> None:
    inputs = node(batch=2)
    inputs[7] = np.linspace(-1, 1, 9, dtype=F32)[None]
    for given, want in zip(run(inputs, clip=0.4), expected(inputs, clip=0.4), strict=True):
        np.testing.assert_allclose(given, want, rtol=0, atol=1e-5)


def test_a_sequence_of_no_steps_keeps_its_states() -> None:
    inputs = node(batch=2, lengths=[0, 4])
    y, h, c = run(inputs)
    assert not y[:, :, 0].any()
    np.testing.assert_array_equal(h[:, 0], inputs[5][:, 0])
    np.testing.assert_array_equal(c[:, 0], inputs[6][:, 0])


def test_no_steps_at_all_and_no_states() -> None:
    inputs = node(steps=0)
    inputs[3] = inputs[5] = inputs[6] = None
    y, h, c = run(inputs)
    assert y.shape == (0, 1, 1, 3)
    assert not h.any()
    assert not c.any()


@pytest.mark.parametrize("name", CASES)
def test_onnxruntime(name: str) -> None:
    how, attributes = CASES[name]
    inputs = node(seed=5, hidden=6, features=7, **how)
    wanted = theirs("DynamicQuantizeLSTM", inputs, outputs=3, hidden_size=6, **attributes)
    for given, want in zip(run(inputs, **attributes), wanted, strict=True):
        np.testing.assert_array_equal(given, want)


def test_peepholes_as_in_onnxruntime() -> None:
    inputs = node(seed=6, hidden=6, features=7, batch=2)
    inputs[7] = np.linspace(-1, 1, 18, dtype=F32)[None]
    wanted = theirs("DynamicQuantizeLSTM", inputs, outputs=3, hidden_size=6)
    for given, want in zip(run(inputs), wanted, strict=True):
        np.testing.assert_array_equal(given, want)


@pytest.mark.parametrize(
    ("activations", "alpha", "beta"),
    [
        (["Sigmoid", "Softsign", "Relu"], None, None),
        (["HardSigmoid", "Tanh", "Elu"], None, None),
        (["HardSigmoid", "LeakyRelu", "ScaledTanh"], [0.3, 0.02, 0.7], [0.4, 0.9]),
        (["Sigmoid", "ThresholdedRelu", "Affine"], [0.3, 0.7], [0.1]),
    ],
)
def test_activations_as_in_onnxruntime(activations, alpha, beta) -> None:
    inputs = node(batch=2, seed=3)
    attributes = {"activations": activations, "activation_alpha": alpha, "activation_beta": beta}
    wanted = theirs("DynamicQuantizeLSTM", inputs, outputs=3, hidden_size=3, **attributes)
    for given, want in zip(run(inputs, **attributes), wanted, strict=True):
        np.testing.assert_allclose(given, want, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (1, np.zeros((1, 3, 12), np.uint8), "W has shape"),
        (2, np.zeros((1, 3, 8), np.uint8), "R has shape"),
        (4, np.array([6], np.int32), "sequence_lens"),
        (5, np.zeros((1, 2, 3), F32), "initial_h has shape"),
        (8, np.zeros((2,), F32), r"W_scale has shape \[2\], expected \[1\] or \[1, 12\]"),
        (11, np.zeros((1, 3), np.uint8), "R_zero_point has shape"),
        (9, np.zeros((1,), np.int8), 'input 9 "w_zero_point" is int8'),
    ],
)
def test_refusals(place, value, message) -> None:
    inputs = node()
    inputs[place] = value
    with pytest.raises(onnxeval.NodeError, match=message):
        run(inputs)
