"""Arrays: in this process (64-byte aligned) or on a device, with one set of methods.

a = fb.nd.array(x, remote.cpu())
"""

from __future__ import annotations

import math
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Union

import numpy as np
import numpy.typing as npt

from farbench import fill as _fill
from farbench.devices import Device, place
from farbench.errors import UsageError

if TYPE_CHECKING:
    from farbench.session import Session

ALIGNMENT = 64
MAX_RANK = 32
MAX_EXTENT = 1 << 62
DTYPES = tuple(_fill.DTYPES)

Numpy = npt.NDArray[Any]
Source = Union["NDArray", Numpy, Sequence[Any], float]
Shape = int | Sequence[int]


class NDArray(ABC):
    """An array of a fixed shape and dtype, row-major and contiguous, on one device.

    `source` says what it holds: `host`, `uninitialised`, or the seed and range of its fill.
    """

    def __init__(self, shape: tuple[int, ...], dtype: str, device: Device, source: str) -> None:
        self.shape = shape
        self.dtype = dtype
        self.device = device
        self.source = source

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * np.dtype(self.dtype).itemsize

    @property
    def size(self) -> int:
        """Number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @abstractmethod
    def numpy(self) -> Numpy:
        """Copy the elements into a new numpy array."""

    @abstractmethod
    def fill(self, seed: int, kind: str, low: float, high: float) -> None:
        """Fill from a seed, where the array lives; `farbench.fill` gives the same values."""

    @abstractmethod
    def _write(self, values: Numpy) -> None:
        """Store `values`, contiguous and of this shape and dtype."""

    def asnumpy(self) -> Numpy:
        """Copy the elements into a new numpy array (the older name of `numpy`)."""
        return self.numpy()

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Numpy:
        """Copy the elements where numpy wants an array, as in `np.testing.assert_allclose`."""
        if copy is False:
            raise ValueError("the elements of an NDArray are always copied")
        values = self.numpy()
        return values if dtype is None else values.astype(dtype)

    def copyfrom(self, source: Source) -> NDArray:
        """Store another array's elements here; shape and dtype must be equal."""
        values = source.numpy() if isinstance(source, NDArray) else _values(source)
        if not isinstance(source, (NDArray, np.ndarray)):
            values = _values(source, self.dtype)
        if values.shape != self.shape or values.dtype.name != self.dtype:
            raise UsageError(
                f"cannot copy {values.dtype.name}{list(values.shape)} into "
                f"{self.dtype}{list(self.shape)}: shape and dtype must be equal"
            )
        # With its dtype: names are equal, but not the order of bytes.
        self._write(np.ascontiguousarray(values, dtype=self.dtype).reshape(self.shape))
        self.source = source.source if isinstance(source, NDArray) else "host"
        return self

    def copyto(self, target: NDArray) -> NDArray:
        """Store the elements in another array; shape and dtype must be equal."""
        return target.copyfrom(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<NDArray {self.dtype}{list(self.shape)} on {self.device!r}, {self.source}>"


class HostArray(NDArray):
    """An array in this process; `data` is its memory as a numpy array."""

    def __init__(self, data: Numpy, source: str) -> None:
        super().__init__(data.shape, data.dtype.name, Device(), source)
        self.data = data

    def numpy(self) -> Numpy:
        """Copy the elements into a new numpy array."""
        return self.data.copy()

    def fill(self, seed: int, kind: str, low: float, high: float) -> None:
        """Fill from a seed."""
        self.data[...] = _fill.reference(seed, kind, low, high, self.dtype, self.shape)
        self.source = _fill.describe(seed, kind, low, high)

    def _write(self, values: Numpy) -> None:
        self.data[...] = values


class DeviceArray(NDArray):
    """An array in a session's worker, known by `handle`; freed some time after it is dropped."""

    def __init__(self, session: Session, handle: int, shape: tuple[int, ...], dtype: str) -> None:
        super().__init__(shape, dtype, session.cpu(), "uninitialised")
        self.session = session
        self.handle = handle
        # The collector only notes the handle; the session frees it with its next request.
        weakref.finalize(self, session.dropped.append, handle).atexit = False

    def numpy(self) -> Numpy:
        """Fetch the elements into a new numpy array."""
        values: Numpy = np.empty(self.shape, dtype=self.dtype)
        self.session.get(self.handle, as_bytes(values))
        return values

    def fill(self, seed: int, kind: str, low: float, high: float) -> None:
        """Fill from a seed on the device; no elements travel."""
        self.session.fill(self.handle, seed, kind, low, high)
        self.source = _fill.describe(seed, kind, low, high)

    def _write(self, values: Numpy) -> None:
        self.session.put(self.handle, as_bytes(values))


def as_bytes(values: Numpy) -> memoryview:
    """View the memory of a contiguous array as bytes (without a copy)."""
    if values.size == 0:
        return memoryview(bytearray())  # numpy's own view of no elements cannot be cast
    return values.reshape(-1).view(np.uint8).data


def aligned(shape: tuple[int, ...], dtype: str) -> Numpy:
    """Make an uninitialised numpy array whose first element is 64-byte aligned."""
    of = np.dtype(dtype)
    nbytes = math.prod(shape) * of.itemsize
    try:
        memory = np.empty(nbytes + ALIGNMENT, dtype=np.uint8)
    except (MemoryError, ValueError, OverflowError) as cause:
        raise UsageError(
            f"no memory here for {dtype}{list(shape)}, which takes {nbytes:,} bytes"
        ) from cause
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + nbytes].view(of).reshape(shape)


def empty(
    shape: Shape,
    dtype: str = "float32",
    device: Device | None = None,
    *,
    ctx: Device | None = None,
    dev: Device | None = None,
) -> NDArray:
    """Make an array with undefined elements; `ctx` and `dev` are other names of `device`."""
    device = place(device, ctx, dev)
    extents = _shape(shape)
    name = _dtype(dtype)
    if device is None or device.session is None:
        return HostArray(aligned(extents, name), "uninitialised")
    return device.session.alloc(extents, name)


def array(
    source: Source,
    device: Device | None = None,
    *,
    ctx: Device | None = None,
    dev: Device | None = None,
) -> NDArray:
    """Make an array that holds a copy of `source` (a numpy array, an NDArray or nested lists).

    `ctx` and `dev` are other names of `device`.
    """
    device = place(device, ctx, dev)
    values = source.numpy() if isinstance(source, NDArray) else _values(source)
    if not isinstance(source, (NDArray, np.ndarray)) and values.dtype == np.float64:
        values = values.astype(np.float32)  # plain Python floats, as TVM's users expect
    made = empty(values.shape, values.dtype.name, device)
    made.copyfrom(values)
    if isinstance(source, NDArray):
        made.source = source.source
    return made


def zeros(shape: Shape, dtype: str = "float32", device: Device | None = None) -> NDArray:
    """Make an array of zeros, filled where it lives."""
    made = empty(shape, dtype, device)
    made.fill(0, "constant", 0.0, 0.0)
    return made


def random(
    shape: Shape,
    dtype: str = "float32",
    device: Device | None = None,
    seed: int = 0,
    low: float | None = None,
    high: float | None = None,
) -> NDArray:
    """Make an array of uniform values in [low, high), filled from `seed` where it lives.

    The defaults of the range depend on the dtype (`farbench.fill.default_range`). The same seed,
    range, dtype and shape give the same elements everywhere.
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise UsageError(f"a seed is a whole number, not {seed!r}")
    least, bound = _fill.default_range(_dtype(dtype))
    limits = [least if low is None else low, bound if high is None else high]
    if not all(isinstance(limit, (int, float, np.number)) for limit in limits):
        raise UsageError(f"a range goes from a number to another, not {limits}")
    made = empty(shape, dtype, device)
    # Of the seed, 64 bits count; on the wire they are signed.
    made.fill((int(seed) + (1 << 63)) % (1 << 64) - (1 << 63), "uniform", *limits)
    return made


def _values(source: object, dtype: str | None = None) -> Numpy:
    """Make a numpy array of nested lists; UsageError where they are none."""
    try:
        values: Numpy = np.asarray(source, dtype=dtype)
    except (TypeError, ValueError, OverflowError) as cause:
        raise UsageError(f"cannot make an array of it: {cause}") from cause
    return values


def _shape(shape: Shape) -> tuple[int, ...]:
    one = isinstance(shape, (int, np.integer))
    extents: tuple[object, ...] = (shape,) if one else ()
    if not one and isinstance(shape, Iterable):
        extents = tuple(shape)
    elif not one:
        raise UsageError(f"a shape is a whole number or several, not {shape!r}")
    if len(extents) > MAX_RANK:
        raise UsageError(f"an array has at most {MAX_RANK} dimensions, not {len(extents)}")
    sizes = [
        int(e) for e in extents if isinstance(e, (int, np.integer)) and not isinstance(e, bool)
    ]
    if len(sizes) < len(extents) or any(not 0 <= size < MAX_EXTENT for size in sizes):
        raise UsageError(f"a shape is whole numbers from 0 to 2**62, not {shape!r}")
    return tuple(sizes)


def _dtype(dtype: object) -> str:
    try:
        name = np.dtype(dtype).name  # type: ignore[call-overload]
    except TypeError:
        name = str(dtype)
    if name not in DTYPES:
        raise UsageError(f"no dtype {name!r}; arrays hold one of {', '.join(DTYPES)}")
    return str(name)
