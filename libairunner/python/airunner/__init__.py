# SPDX-License-Identifier: MIT
"""airunner: submit operators to an accelerator through a ring.

    import airunner, numpy

    with airunner.Device("inproc:") as dev, dev.channel() as ch:
        x = ch.tensor(numpy.linspace(-1, 1, 1000, dtype="float32"))
        y = ch.empty(x.shape, "f32")
        airunner.ops.relu(y, x)
        print(y.numpy().sum())

No build step: it calls libairunner.so through ctypes. NumPy and torch are not
needed, and meet airunner by pointer where they are there. AIRUNNER_LIBRARY
names the library; else it is this tree's, else the one that the linker finds.
"""

from . import ops
from ._abi import DType, Executor, Memory, Status, Transport, lib
from .device import Channel, Device
from .errors import AirError
from .memory import Buffer, Tensor

__version__ = lib.air_version().decode()
__all__ = ["AirError", "Buffer", "Channel", "DType", "Device", "Executor",
           "Memory", "Status", "Tensor", "Transport", "ops"]
