# SPDX-License-Identifier: MIT
"""Buffers, and tensors that view them."""

import ctypes as C
import weakref

from ._abi import MAX_DIMS, DType, Memory, TensorDesc, lib
from .errors import check

_FORMATS = {  # of the buffer protocol and NumPy; bf16 has none
    DType.f32: "<f4",
    DType.f16: "<f2",
    DType.i32: "<i4",
    DType.i8: "|i1",
    DType.i64: "<i8",
}


def _free(handle, channel):
    # What its channel took along must not be freed once more.
    if channel.handle:
        lib.air_buffer_free(handle)


class Buffer:
    """Memory that a channel's operators may address.

    Given back when the last tensor that views it is gone, or by free().
    """

    def __init__(self, channel, handle, keep=None):
        self.handle = handle
        self.channel = channel
        # Imported memory lives as long as the buffer.
        self._keep = keep
        self._finalizer = weakref.finalize(self, _free, handle, channel)

    @property
    def address(self):
        """In this process; None for device memory."""
        return lib.air_buffer_data(self.handle)

    @property
    def size(self):
        return lib.air_buffer_size(self.handle)

    def free(self):
        self._finalizer()
        self._keep = None


def _dims(values):
    values = tuple(int(v) for v in values)
    return (C.c_int64 * max(len(values), 1))(*values), len(values)


def as_dtype(dtype):
    """DType.f32, its number, or "f32"."""
    return DType[dtype] if isinstance(dtype, str) else DType(dtype)


def describe(dtype, shape, strides=None):
    """A TensorDesc; @strides in elements, None for contiguous."""
    desc = TensorDesc()
    shape, ndim = _dims(shape)
    if strides is not None:
        strides, n = _dims(strides)
        if n != ndim:
            raise ValueError(f"{n} strides for {ndim} dimensions")
    check(lib.air_tensor_desc_init(desc, as_dtype(dtype), ndim, shape,
                                   strides))
    return desc


class Tensor:
    """A view of a buffer: dtype, shape, strides and where it begins."""

    def __init__(self, buffer, offset, desc):
        self.buffer = buffer
        self.offset = offset
        self.desc = desc

    @property
    def dtype(self):
        return DType(self.desc.dtype)

    @property
    def shape(self):
        return tuple(self.desc.shape[:self.desc.ndim])

    @property
    def strides(self):
        """In elements."""
        return tuple(self.desc.stride[:self.desc.ndim])

    @property
    def ref(self):
        return lib.air_buffer_ref(self.buffer.handle, self.offset)

    @property
    def __array_interface__(self):
        """NumPy's: numpy.asarray(tensor) shares the memory."""
        if self.buffer.address is None:
            raise TypeError("device memory cannot be seen from here")
        if self.dtype not in _FORMATS:
            raise TypeError(f"NumPy has no {self.dtype.name}; see bits()")
        size = self.dtype.size
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": _FORMATS[self.dtype],
            "data": (self.buffer.address + self.offset, False),
            "strides": tuple(s * size for s in self.strides),
        }

    def numpy(self):
        """The same memory as a NumPy array."""
        import numpy

        return numpy.asarray(self)

    def bits(self):
        """A bf16 tensor's memory as a NumPy array of uint16."""
        import numpy

        interface = dict(self._as(DType.f16).__array_interface__,
                         typestr="<u2")
        holder = type("Bits", (), {"__array_interface__": interface,
                                   "tensor": self})()
        return numpy.asarray(holder)

    def _as(self, dtype):
        desc = TensorDesc.from_buffer_copy(self.desc)
        desc.dtype = dtype
        return Tensor(self.buffer, self.offset, desc)

    def view(self, shape, strides=None, offset=0, dtype=None):
        """Another view of the same buffer, @offset elements further on."""
        dtype = self.dtype if dtype is None else as_dtype(dtype)
        return Tensor(self.buffer, self.offset + offset * self.dtype.size,
                      describe(dtype, shape, strides))

    def permute(self, *order):
        """Dimensions in another order."""
        if sorted(order) != list(range(self.desc.ndim)):
            raise ValueError(f"{order} is no permutation of "
                             f"{self.desc.ndim} dimensions")
        return self.view([self.shape[i] for i in order],
                         [self.strides[i] for i in order])

    def __repr__(self):
        return (f"airunner.Tensor({self.dtype.name}, shape={self.shape}, "
                f"strides={self.strides})")


def foreign(array):
    """(address, dtype, shape, strides in elements, memory) of NumPy or torch.

    Whatever has data_ptr() is taken for a torch tensor.
    """
    if hasattr(array, "data_ptr"):
        name = str(array.dtype).rpartition(".")[2]
        dtype = {"float32": DType.f32, "float16": DType.f16,
                 "bfloat16": DType.bf16, "int32": DType.i32,
                 "int8": DType.i8, "int64": DType.i64}.get(name)
        memory = Memory.DEVICE if array.is_cuda else Memory.HOST
        if dtype is not None:
            return (array.data_ptr(), dtype, tuple(array.shape),
                    tuple(array.stride()), memory)
        raise TypeError(f"no airunner dtype for {array.dtype}")
    interface = array.__array_interface__
    for dtype, typestr in _FORMATS.items():
        if interface["typestr"] == typestr:
            break
    else:
        raise TypeError(f"no airunner dtype for {interface['typestr']}")
    shape = interface["shape"]
    strides = interface.get("strides")
    address, read_only = interface["data"]
    if read_only:
        raise TypeError("the array is read-only")
    if strides is not None:
        if any(s % dtype.size for s in strides):
            raise TypeError("strides are no multiples of the element")
        strides = tuple(s // dtype.size for s in strides)
    if len(shape) > MAX_DIMS:
        raise TypeError(f"more than {MAX_DIMS} dimensions")
    return address, dtype, shape, strides, Memory.HOST
