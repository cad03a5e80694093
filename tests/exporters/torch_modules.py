"""PyTorch modules to export: one for each kind of network."""

import torch
import torch.nn.functional as F  # noqa: N812  # everybody calls it so
from torch import Tensor, nn


class Convolutional(nn.Module):
    """Convolutions plain, depthwise and transposed, three normalisations, pools, resizing."""

    def __init__(self, resizing: str = "bilinear") -> None:
        super().__init__()
        self.resizing = resizing
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.depthwise = nn.Conv2d(8, 8, 3, stride=2, groups=8)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.groups = nn.InstanceNorm2d(4, affine=True)
        self.head = nn.Linear(4, 5)
        nn.init.normal_(self.norm.running_mean)
        nn.init.uniform_(self.norm.running_var, 0.5, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm(self.first(x)))
        x = F.hardtanh(self.depthwise(x))
        x = F.elu(self.groups(self.up(x)))
        x = F.interpolate(x, scale_factor=2.0, mode=self.resizing)
        x = F.max_pool2d(x, 3, 2, 1)
        return F.log_softmax(self.head(F.avg_pool2d(x, 2).mean((2, 3))), -1)


class Recurrent(nn.Module):
    def __init__(self, layer: type[nn.RNNBase], **options: object) -> None:
        super().__init__()
        self.layer = layer(6, 5, **options)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y, state = self.layer(x)
        return (y, *state) if isinstance(state, tuple) else (y, state)


class Encoder(nn.Module):
    """Embeddings and two transformer layers with a padding mask."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 16)
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu")
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, words: Tensor, padding: Tensor) -> Tensor:
        return self.layers(self.words(words), src_key_padding_mask=padding)


class Attention(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class Condition(nn.Module):
    """A branch that the data chooses, as torch.cond keeps it."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos() * 2, (x,))


class Loop(nn.Module):
    """A loop and branches that the data decides, kept when scripted."""

    def forward(self, x: Tensor, n: Tensor) -> Tensor:
        y = x
        for step in range(int(n)):
            y = y * 0.5 if bool(y.sum() > 10) else y + step
        return y


class Spectrum(nn.Module):
    """Complex numbers inside: real FFT, products, the way back, and a short-time FFT."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        spectrum = torch.fft.rfft(x)
        back = torch.fft.irfft(spectrum * torch.conj(spectrum), n=x.shape[-1])
        complex_fft = torch.view_as_real(torch.fft.fft(torch.complex(x, x.flip(-1))))
        frames = torch.stft(x, 16, 4, window=torch.hann_window(16), return_complex=True, center=False)
        return spectrum.abs(), back, complex_fft, torch.view_as_real(frames)


class Indexing(nn.Module):
    """Assigning to slices, gathering, scattering, sorting, windows."""

    def forward(self, x: Tensor, i: Tensor) -> tuple[Tensor, ...]:
        y = x.clone()
        y[:, 1:3] = 0
        y = y.scatter(1, i[:, None].expand(2, 4), 9.0)
        values, order = torch.sort(x, dim=1, descending=True)
        return (
            y[i],
            torch.where(x > 0)[0],
            y.cumsum(1),
            torch.topk(x, 2)[1],
            x.unfold(1, 2, 1),
            torch.einsum("ij,kj->ik", x, x),
            values,
            order,
        )


class Sampling(nn.Module):
    def forward(self, x: Tensor, grid: Tensor) -> tuple[Tensor, ...]:
        return (
            F.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=False),
            F.pad(x, (1, 2, 0, 1), mode="reflect"),
            F.pixel_shuffle(x, 2),
            F.unfold(x, 2),
        )


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4), nn.Softmax(-1))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)
