"""A small convolutional network in plain NumPy, trained on scikit-learn's handwritten digits.

Two convolutions of 3 x 3 with padding, each followed by Relu and a max pool of 2 x 2, then one dense layer. Everything
runs in float64 with fixed seeds, so that training anew gives the same network.
"""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

CHANNELS = (16, 32)
CLASSES = 10
LARGEST_PIXEL = 16.0


class Network:
    """The weights, and how to get from pictures [N, 1, 8, 8] of pixels 0 to 16 to probabilities [N, 10]."""

    def __init__(self, chance: np.random.Generator) -> None:
        first, second = CHANNELS
        self.weights = {
            "conv1_w": chance.normal(0, np.sqrt(2 / 9), (first, 1, 3, 3)),
            "conv1_b": np.zeros(first),
            "conv2_w": chance.normal(0, np.sqrt(2 / (9 * first)), (second, first, 3, 3)),
            "conv2_b": np.zeros(second),
            "dense_w": chance.normal(0, np.sqrt(1 / (4 * second)), (4 * second, CLASSES)),
            "dense_b": np.zeros(CLASSES),
        }

    def probabilities(self, pictures: Array) -> Array:
        return self._forward(pictures)[0]

    def gradients(self, pictures: Array, labels: Labels) -> dict[str, Array]:
        """The gradient of the mean cross entropy, for each weight."""
        probabilities, (patches1, relu1, pooled1, patches2, relu2, pooled2) = self._forward(pictures)
        count = len(pictures)
        w = self.weights
        d_scores = probabilities.copy()
        d_scores[np.arange(count), labels] -= 1
        d_scores /= count
        flat = pooled2.reshape(count, -1)
        d_relu2 = unpool(relu2, pooled2, (d_scores @ w["dense_w"].T).reshape(pooled2.shape)) * (relu2 > 0)
        d_pooled1 = fold(np.einsum("nohw,oikl->niklhw", d_relu2, w["conv2_w"]))
        d_relu1 = unpool(relu1, pooled1, d_pooled1) * (relu1 > 0)
        return {
            "conv1_w": np.einsum("nohw,niklhw->oikl", d_relu1, patches1, optimize=True),
            "conv1_b": d_relu1.sum(axis=(0, 2, 3)),
            "conv2_w": np.einsum("nohw,niklhw->oikl", d_relu2, patches2, optimize=True),
            "conv2_b": d_relu2.sum(axis=(0, 2, 3)),
            "dense_w": flat.T @ d_scores,
            "dense_b": d_scores.sum(axis=0),
        }

    def _forward(self, pictures: Array) -> tuple[Array, tuple[Array, ...]]:
        """The probabilities, and what each layer made on the way."""
        w = self.weights
        patches1 = patches_of(pictures / LARGEST_PIXEL)
        relu1 = np.maximum(convolve(patches1, w["conv1_w"], w["conv1_b"]), 0)
        pooled1 = pool(relu1)
        patches2 = patches_of(pooled1)
        relu2 = np.maximum(convolve(patches2, w["conv2_w"], w["conv2_b"]), 0)
        pooled2 = pool(relu2)
        scores = pooled2.reshape(len(pictures), -1) @ w["dense_w"] + w["dense_b"]
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True), (patches1, relu1, pooled1, patches2, relu2, pooled2)


def patches_of(x: Array) -> Array:
    """[N, C, H, W] -> [N, C, 3, 3, H, W]: what each place of a 3 x 3 kernel sees, zeros around the picture."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    height, width = x.shape[2:]
    rows = [[padded[:, :, i : i + height, j : j + width] for j in range(3)] for i in range(3)]
    return np.stack([np.stack(row, axis=2) for row in rows], axis=2)


def fold(patches: Array) -> Array:
    """The transpose of `patches_of`: every place of every kernel added to the pixel it saw."""
    height, width = patches.shape[4:]
    padded = np.zeros((*patches.shape[:2], height + 2, width + 2))
    for i in range(3):
        for j in range(3):
            padded[:, :, i : i + height, j : j + width] += patches[:, :, i, j]
    return padded[:, :, 1:-1, 1:-1]


def convolve(patches: Array, weights: Array, bias: Array) -> Array:
    return np.einsum("niklhw,oikl->nohw", patches, weights, optimize=True) + bias[:, None, None]


def blocks_of(x: Array) -> Array:
    """[N, C, H, W] -> [N, C, H / 2, 2, W / 2, 2]."""
    batch, channels, height, width = x.shape
    return x.reshape(batch, channels, height // 2, 2, width // 2, 2)


def pool(x: Array) -> Array:
    return blocks_of(x).max(axis=(3, 5))


def unpool(x: Array, pooled: Array, gradient: Array) -> Array:
    """The gradient of `pool`: to the largest of each block, in equal parts where several are."""
    blocks = blocks_of(x)
    largest = blocks == pooled[:, :, :, None, :, None]
    share = largest / largest.sum(axis=(3, 5), keepdims=True)
    return (share * gradient[:, :, :, None, :, None]).reshape(x.shape)


def shifted(pictures: Array, chance: np.random.Generator) -> Array:
    """Each picture moved by up to one pixel each way."""
    moved = np.zeros_like(pictures)
    padded = np.pad(pictures, ((0, 0), (0, 0), (1, 1), (1, 1)))
    for picture, (down, right) in enumerate(chance.integers(0, 3, (len(pictures), 2))):
        moved[picture] = padded[picture, :, down : down + 8, right : right + 8]
    return moved


def train(pictures: Array, labels: Labels, *, epochs: int = 40, batch: int = 32, seed: int = 7) -> Network:
    """Adam with a falling step, on pictures that are moved about."""
    chance = np.random.default_rng(seed)
    network = Network(chance)
    mean = {name: np.zeros_like(value) for name, value in network.weights.items()}
    square = {name: np.zeros_like(value) for name, value in network.weights.items()}
    steps = 0
    for epoch in range(epochs):
        rate = 3e-3 * (1 + np.cos(np.pi * epoch / epochs)) / 2
        order = chance.permutation(len(pictures))
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            steps += 1
            for name, slope in network.gradients(shifted(pictures[chosen], chance), labels[chosen]).items():
                mean[name] = 0.9 * mean[name] + 0.1 * slope
                square[name] = 0.999 * square[name] + 0.001 * slope**2
                step = mean[name] / (1 - 0.9**steps) / (np.sqrt(square[name] / (1 - 0.999**steps)) + 1e-8)
                network.weights[name] -= rate * step
    return network
