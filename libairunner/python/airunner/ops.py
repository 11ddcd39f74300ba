# SPDX-License-Identifier: MIT
"""Operators: one function each, results first, as in include/airunner/ops.

Descriptors are made when they are first needed and kept with the channel. A
function waits for its operator unless wait=False, which returns the token.
"""

import ctypes as C
import math

from ._abi import REF_NONE, Executor, Memory, Ref, TensorDesc, lib
from .errors import check
from .memory import Tensor

_P = C.c_void_p
_AXES = C.POINTER(C.c_int32)
_DESC = C.POINTER(TensorDesc)

# Operands (a "?" may be None), and the types of the attributes after them.
_OPS = {
    "copy": ("y x", []),
    "vector_add": ("c a b", []),
    "add": ("y a b", []),
    "mul": ("y a b", []),
    "relu": ("y x", []),
    "silu": ("y x", []),
    "gelu": ("y x", [C.c_int]),
    "scale": ("y x", [C.c_double]),
    "softmax": ("y x", [C.c_int32]),
    "reduce_sum": ("y x", [_AXES, C.c_uint32, C.c_bool]),
    "reduce_max": ("y x", [_AXES, C.c_uint32, C.c_bool]),
    "rms_norm": ("y x weight?", [C.c_double]),
    "layer_norm": ("y x weight? bias?", [C.c_double]),
    "rope": ("y x cos sin positions?", [C.c_int]),
    "matmul": ("y a b c? bias?",
               [C.c_bool, C.c_bool, C.c_double, C.c_double, C.c_int]),
    "conv2d": ("y x weight bias?",
               [_AXES, _AXES, _AXES, C.c_int32, C.c_int]),
    "embedding": ("y table indices", []),
}


class _Functions:
    """An operator's C functions."""

    def __init__(self, name):
        self.name = name
        operands, attributes = _OPS[name]
        self.optional = [o.endswith("?") for o in operands.split()]
        n = len(self.optional)
        self.create = getattr(lib, f"air_create_{name}_descriptor")
        self.workspace = getattr(lib, f"air_get_{name}_workspace_size")
        self.execute = getattr(lib, f"air_execute_{name}")
        self.destroy = getattr(lib, f"air_destroy_{name}_descriptor")
        self.create.argtypes = [_P, C.POINTER(_P)] + [_DESC] * n + attributes
        self.workspace.argtypes = [_P, C.POINTER(C.c_size_t)]
        self.execute.argtypes = ([_P, Ref] + [Ref] * n +
                                 [C.POINTER(C.c_uint64)])
        self.destroy.argtypes = [_P]


_functions = {name: _Functions(name) for name in _OPS}


class Descriptor:
    """An operator, checked for tensors of given shapes, strides and dtypes."""

    def __init__(self, channel, name, descs, attributes):
        self.functions = _functions[name]
        self.channel = channel
        self.handle = _P()
        check(self.functions.create(channel.handle, self.handle, *descs,
                                    *attributes))
        size = C.c_size_t()
        check(self.functions.workspace(self.handle, size))
        self.workspace_size = size.value
        self._workspace = None

    @property
    def executor(self):
        """Which runs it, and a sentence why."""
        why = C.c_char_p()
        executor = lib.air_descriptor_executor(self.handle, why)
        return Executor(executor), why.value.decode()

    def _workspace_ref(self):
        if not self.workspace_size:
            return Ref(REF_NONE)
        # One for all executions: those of one channel run one by one.
        if self._workspace is None:
            memory = (Memory.HOST if self.executor[0] == Executor.CPU
                      else Memory.DEVICE)
            self._workspace = self.channel.empty([self.workspace_size],
                                                 "i8", memory)
        return self._workspace.ref

    def submit(self, tensors):
        token = C.c_uint64()
        refs = [Ref(REF_NONE) if t is None else t.ref for t in tensors]
        check(self.functions.execute(self.handle, self._workspace_ref(),
                                     *refs, token))
        return token.value

    def destroy(self):
        if self._workspace is not None:
            self._workspace.buffer.free()
        check(self.functions.destroy(self.handle))


def _key(desc):
    return None if desc is None else bytes(desc)


def _run(name, tensors, attributes, key, wait):
    functions = _functions[name]
    for tensor, optional in zip(tensors, functions.optional):
        if not (isinstance(tensor, Tensor) or (tensor is None and optional)):
            raise TypeError(f"{name}: {tensor!r} is no airunner.Tensor")
    channel = tensors[0].buffer.channel
    descs = [None if t is None else t.desc for t in tensors]
    key = (name, key, tuple(_key(d) for d in descs))
    descriptor = channel.descriptors.get(key)
    if descriptor is None:
        descriptor = Descriptor(channel, name, descs, attributes)
        channel.descriptors[key] = descriptor
    token = descriptor.submit(tensors)
    return channel.wait(token) if wait else token


def _simple(name):
    def run(*tensors, wait=True):
        n = len(_functions[name].optional)
        if len(tensors) != n:
            raise TypeError(f"{name} takes {n} tensors, not {len(tensors)}")
        return _run(name, tensors, [], None, wait)

    run.__name__ = name
    run.__doc__ = f"{name}({', '.join(_OPS[name][0].split())})"
    return run


copy = _simple("copy")
vector_add = _simple("vector_add")
add = _simple("add")
mul = _simple("mul")
relu = _simple("relu")
silu = _simple("silu")
embedding = _simple("embedding")


def gelu(y, x, tanh=False, wait=True):
    return _run("gelu", (y, x), [int(tanh)], tanh, wait)


def scale(y, x, alpha, wait=True):
    return _run("scale", (y, x), [alpha], alpha, wait)


def softmax(y, x, axis=-1, wait=True):
    return _run("softmax", (y, x), [axis], axis, wait)


def _reduce(name, y, x, axes, keepdim, wait):
    axes = () if axes is None else (axes,) if isinstance(axes, int) else axes
    array = (C.c_int32 * max(len(axes), 1))(*axes)
    return _run(name, (y, x), [array, len(axes), keepdim],
                (tuple(axes), keepdim), wait)


def reduce_sum(y, x, axes=None, keepdim=False, wait=True):
    """@axes: an int, several, or None for all."""
    return _reduce("reduce_sum", y, x, axes, keepdim, wait)


def reduce_max(y, x, axes=None, keepdim=False, wait=True):
    return _reduce("reduce_max", y, x, axes, keepdim, wait)


def rms_norm(y, x, weight=None, epsilon=1e-6, wait=True):
    return _run("rms_norm", (y, x, weight), [epsilon], epsilon, wait)


def layer_norm(y, x, weight=None, bias=None, epsilon=1e-5, wait=True):
    return _run("layer_norm", (y, x, weight, bias), [epsilon], epsilon, wait)


def rope(y, x, cos, sin, positions=None, pairs=False, wait=True):
    return _run("rope", (y, x, cos, sin, positions), [int(pairs)], pairs,
                wait)


def matmul(y, a, b, c=None, bias=None, trans_a=False, trans_b=False, alpha=1.0,
           beta=0.0, activation=0, wait=True):
    attributes = [trans_a, trans_b, alpha, beta, activation]
    if math.isnan(alpha) or math.isnan(beta):
        raise ValueError("matmul: alpha or beta is NaN")
    return _run("matmul", (y, a, b, c, bias), attributes, tuple(attributes),
                wait)


def conv2d(y, x, weight, bias=None, stride=(1, 1), padding=(0, 0),
           dilation=(1, 1), groups=1, activation=0, wait=True):
    pair = C.c_int32 * 2
    return _run("conv2d", (y, x, weight, bias),
                [pair(*stride), pair(*padding), pair(*dilation), groups,
                 activation],
                (tuple(stride), tuple(padding), tuple(dilation), groups,
                 activation), wait)
