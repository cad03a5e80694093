from typing import Any

from onnxeval.dtypes import Tensor

INTERFACE: str

class Matrix:
    def __new__(cls, matrix: Tensor, /) -> Matrix: ...

def tiers() -> list[str]: ...
def select(tier: str, /) -> None: ...
def active() -> str: ...
def set_threads(count: int, /) -> None: ...
def threads() -> int: ...
def close() -> None: ...
def multiply(
    a: Tensor,
    b: Tensor | Matrix,
    out: Tensor,
    row_bias: Tensor | None,
    column_bias: Tensor | None,
    residual: Tensor | None,
    activation: int,
    alpha: float,
    beta: float,
    /,
) -> None: ...
def activate(x: Tensor, out: Tensor, activation: int, alpha: float, beta: float, /) -> None: ...
def softmax(x: Tensor, out: Tensor, n: int, logarithm: Any, /) -> None: ...
def layer_norm(
    x: Tensor,
    scale: Tensor | None,
    shift: Tensor | None,
    out: Tensor,
    mean: Tensor | None,
    deviation: Tensor | None,
    n: int,
    epsilon: float,
    centred: Any,
    /,
) -> None: ...
def normalise_channels(
    x: Tensor,
    out: Tensor,
    channels: int,
    pixels: int,
    below: int,
    above: int,
    factor: float,
    bias: float,
    quarters: int,
    /,
) -> None: ...

class Filters:
    def __new__(cls, weights: Tensor, groups: int, fast_math: bool = False, chain: int = 0, /) -> Filters: ...

def convolve(
    x: Tensor,
    filters: Filters,
    out: Tensor,
    bias: Tensor | None,
    residual: Tensor | None,
    activation: int,
    alpha: float,
    beta: float,
    stride_y: int,
    stride_x: int,
    dilation_y: int,
    dilation_x: int,
    top: int,
    left: int,
    /,
) -> None: ...

class Integers:
    def __new__(cls, matrix: Tensor, zero_points: Tensor, /) -> Integers: ...

def multiply_integers(
    a: Tensor,
    a_scale: Tensor | None,
    a_zero: Tensor | None,
    b: Integers,
    out: Tensor,
    column_scale: Tensor | None,
    bias: Tensor | None,
    /,
) -> None: ...
def multiply_quantized(
    x: Tensor,
    added: Tensor | None,
    tanh: Any,
    b: Integers,
    out: Tensor,
    column_scale: Tensor,
    bias: Tensor | None,
    /,
) -> None: ...
def quantize(x: Tensor, codes: Tensor, scale: Tensor, zero: Tensor, /) -> None: ...

class IntegerFilters:
    def __new__(
        cls,
        weights: Tensor,
        groups: int,
        steps: tuple[int, ...],
        zero_points: Tensor,
        bias: Tensor,
        multiplier: Tensor | None,
        divisor: float,
        /,
    ) -> IntegerFilters: ...

def convolve_integers(
    x: Tensor,
    x_zero: Tensor | None,
    filters: IntegerFilters,
    out: Tensor,
    y_zero: int,
    lowest: int,
    highest: int,
    stride_y: int,
    stride_x: int,
    dilation_y: int,
    dilation_x: int,
    top: int,
    left: int,
    /,
) -> None: ...
def quantize_rows(
    x: Tensor, out: Tensor, scale: Tensor, zero: Tensor | None, rows: int, length: int, along: Any, /
) -> None: ...
def dequantize_rows(
    x: Tensor, out: Tensor, scale: Tensor, zero: Tensor | None, rows: int, length: int, along: Any, /
) -> None: ...
def multiply_bits(
    a: Tensor,
    codes: Tensor,
    scales: Tensor,
    zeros: Tensor | None,
    out: Tensor,
    bias: Tensor | None,
    bits: int,
    block: int,
    /,
) -> None: ...
def requantize(
    sums: Tensor,
    out: Tensor,
    bias: Tensor | None,
    multiplier: Tensor,
    factor: Tensor,
    divisor: float,
    zero: int,
    /,
) -> None: ...
def join_bytes(
    what: int,
    out: Tensor,
    rows: int,
    length: int,
    scale: float,
    zero: int,
    a: Tensor,
    a_layout: int,
    a_count: int,
    a_scale: float,
    a_zero: int,
    b: Tensor,
    b_layout: int,
    b_count: int,
    b_scale: float,
    b_zero: int,
    /,
) -> None: ...
def look_up_bytes(x: Tensor, table: Tensor, out: Tensor, /) -> None: ...
def pool_bytes(
    x: Tensor,
    out: Tensor,
    taps_y: int,
    taps_x: int,
    stride_y: int,
    stride_x: int,
    dilation_y: int,
    dilation_x: int,
    top: int,
    left: int,
    /,
) -> None: ...
def mean_of_bytes(x: Tensor, out: Tensor, x_scale: float, x_zero: int, y_scale: float, y_zero: int, /) -> None: ...
def quantized_lstm(
    x: Tensor,
    into: tuple[Integers, ...],
    across: tuple[Integers, ...],
    into_scales: Tensor,
    across_scales: Tensor,
    bias: Tensor | None,
    initial_state: Tensor | None,
    initial_memory: Tensor | None,
    outputs: Tensor,
    last_state: Tensor,
    last_memory: Tensor,
    backwards: bytes,
    /,
) -> None: ...
def run_layer(
    kind: int,
    x: Tensor,
    into: tuple[Matrix, ...],
    across: tuple[Matrix, ...],
    candidates: tuple[Matrix, ...] | None,
    bias: Tensor | None,
    initial_state: Tensor | None,
    initial_memory: Tensor | None,
    outputs: Tensor,
    last_state: Tensor,
    last_memory: Tensor | None,
    backwards: bytes,
    activation: int,
    alpha: float,
    beta: float,
    lengths: Tensor | None,
    /,
) -> None: ...
def pool(
    x: Tensor,
    out: Tensor,
    row_counts: Tensor | None,
    column_counts: Tensor | None,
    taps_y: int,
    taps_x: int,
    stride_y: int,
    stride_x: int,
    dilation_y: int,
    dilation_x: int,
    top: int,
    left: int,
    /,
) -> None: ...
def search_maxima(
    x: Tensor,
    out: Tensor,
    places: Tensor,
    of_first: tuple[int, int, int, int],
    of_second: tuple[int, int, int, int],
    of_third: tuple[int, int, int, int],
    by_columns: bool,
    /,
) -> None: ...
def run_chain(
    out: Tensor, operands: tuple[Tensor, ...], instructions: bytes, layouts: Tensor, rows: int, length: int, /
) -> None: ...

class Forest:
    def __new__(
        cls,
        thresholds: Tensor,
        features: Tensor,
        next: Tensor,
        roots: Tensor,
        first: Tensor,
        targets: Tensor,
        weights: Tensor,
        /,
    ) -> Forest: ...

def run_trees(
    x: Tensor,
    forest: Forest,
    aggregate: int,
    base: Tensor | None,
    complement: int,
    choice: int,
    transform: int,
    labels: Tensor | None,
    chosen: Tensor | None,
    out: Tensor,
    /,
) -> None: ...
def run_linear(
    x: Tensor,
    weights: Tensor,
    base: Tensor | None,
    complement: int,
    choice: int,
    transform: int,
    labels: Tensor | None,
    chosen: Tensor | None,
    out: Tensor,
    /,
) -> None: ...
def run_svm(
    x: Tensor,
    similarity: int,
    gamma: float,
    coef0: float,
    degree: float,
    classes: int,
    support: Tensor | None,
    weights: Tensor,
    rho: Tensor,
    slope: Tensor | None,
    shift: Tensor | None,
    base: Tensor | None,
    complement: int,
    choice: int,
    transform: int,
    labels: Tensor | None,
    chosen: Tensor | None,
    out: Tensor,
    /,
) -> None: ...
def run_scaler(x: Tensor, offset: Tensor, scale: Tensor, out: Tensor, /) -> None: ...
def run_normalizer(x: Tensor, norm: int, out: Tensor, /) -> None: ...
def interrupt() -> None: ...

class Recording:
    @property
    def is_whole(self) -> bool: ...
    def __enter__(self) -> Recording: ...
    def __exit__(self, *reason: object) -> None: ...
    def run(self) -> None: ...
    def take(self, other: Recording, /) -> None: ...
    def spans(self) -> tuple[tuple[tuple[int, int, int], ...], ...]: ...

def resample(x: Tensor, out: Tensor, places: Tensor, weights: Tensor, axis: int, /) -> None: ...
def rotate(
    x: Tensor, cosines: Tensor, sines: Tensor, positions: Tensor | None, out: Tensor, interleaved: bool, /
) -> None: ...
def attend_cached(
    query: Tensor,
    key: Tensor | None,
    value: Tensor | None,
    past_key: Tensor | None,
    past_value: Tensor | None,
    last: Tensor,
    cosines: Tensor | None,
    sines: Tensor | None,
    positions: Tensor | None,
    bias: Tensor | None,
    out: Tensor,
    present_key: Tensor,
    present_value: Tensor,
    scale: float,
    softcap: float,
    tokens: int,
    window: int,
    causal: bool,
    interleaved: bool,
    /,
) -> None: ...
def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    lengths: Tensor | None,
    out: Tensor,
    scale: float,
    softcap: float,
    offset: int,
    left: int,
    right: int,
    unseen: int,
    /,
) -> None: ...
def copy(x: Tensor, out: Tensor, /) -> None: ...
def concat(xs: tuple[Tensor, ...], out: Tensor, axis: int, /) -> None: ...
def move_slices(data: Tensor, indices: Tensor, slices: Tensor, batch: int, shared: Any, puts: Any, /) -> None: ...
def move_elements(data: Tensor, indices: Tensor, elements: Tensor, axis: int, puts: Any, /) -> None: ...
def apply(what: int, type: int, to: int, out: Tensor, operands: tuple[Tensor, ...], /) -> None: ...
def reduce(what: int, type: int, x: Tensor, out: Tensor, axes: int, /) -> None: ...
def search(type: int, x: Tensor, out: Tensor, axis: int, least: Any, last: Any, /) -> None: ...
def add_up(type: int, x: Tensor, out: Tensor, axis: int, exclusive: Any, reverse: Any, /) -> None: ...
