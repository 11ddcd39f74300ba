# SPDX-License-Identifier: MIT
"""Devices and channels."""

import contextlib
import ctypes as C

from ._abi import (CHANNEL_SINGLE_CALLER, FOREVER, BackendCaps,
                   ChannelOptions, Completion, DeviceOptions, Executor, Memory,
                   Status, Transport, lib)
from .errors import AirError, check
from .memory import Buffer, Tensor, describe, foreign


def _timeout_ns(timeout):
    """Seconds, or None for ever."""
    return FOREVER if timeout is None else int(timeout * 1e9)


class Device:
    """A way to reach a worker: "inproc:", "unix:PATH", "/dev/airunner".

    None is what the environment variable AIRUNNER says, else /dev/airunner if
    it can be opened, else "inproc:". park_ns, large_bytes and large_alone say
    when the resident kernel leaves the GPU: see include/airunner.h.
    """

    def __init__(self, where=None, *, threads=0, spin_ns=0, executors=None,
                 park_ns=0, large_bytes=0, large_alone=False):
        options = DeviceOptions(
            C.sizeof(DeviceOptions), threads, spin_ns,
            executors.encode() if executors else None, park_ns, large_bytes,
            large_alone, 0)
        handle = C.c_void_p()
        check(lib.air_open(where.encode() if where else None, options,
                           handle))
        self.handle = handle

    @property
    def transport(self):
        return Transport(lib.air_device_transport(self.handle))

    def caps(self, executor):
        """What an executor can do."""
        caps = BackendCaps(size=C.sizeof(BackendCaps))
        check(lib.air_backend_caps(self.handle, Executor(executor), caps))
        return caps

    @contextlib.contextmanager
    def quiet(self):
        """Keep the resident kernel off the GPU. Of an "inproc:" device only:

            with device.quiet():
                torch.matmul(a, b, out=c)    # has all the GPU
                torch.cuda.synchronize()
        """
        check(lib.air_quiet_begin(self.handle))
        try:
            yield
        finally:
            check(lib.air_quiet_end(self.handle))

    def channel(self, *, order=0, arena=0, priority=0, weight=0,
                executor=Executor.ANY, single_caller=False):
        """A channel. @single_caller: one thread at a time uses it, and what
        belongs to it: also when the last reference to a tensor goes."""
        return Channel(self, order, arena, priority, weight, executor,
                       single_caller)

    def close(self):
        if self.handle:
            check(lib.air_close(self.handle))
            self.handle = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


class Channel:
    """A pair of rings to a worker; operators run in the order submitted."""

    def __init__(self, device, order, arena, priority, weight, executor,
                 single_caller):
        options = ChannelOptions(C.sizeof(ChannelOptions), order, arena,
                                 priority, weight, Executor(executor),
                                 CHANNEL_SINGLE_CALLER if single_caller else 0)
        handle = C.c_void_p()
        check(lib.air_channel_create(device.handle, options, handle))
        self.device = device
        self.handle = handle
        self.descriptors = {}

    # ---------------------------------------------------------- memory

    def empty(self, shape, dtype, memory=Memory.HOST):
        """A contiguous tensor in a new buffer."""
        desc = describe(dtype, shape)
        above, below = C.c_uint64(), C.c_uint64()
        lib.air_tensor_desc_extent(desc, below, above)
        handle = C.c_void_p()
        check(lib.air_buffer_alloc(self.handle, max(above.value, 1),
                                   Memory(memory), handle))
        return Tensor(Buffer(self, handle), 0, desc)

    def tensor(self, array):
        """A NumPy array or torch tensor, by pointer: both see what either
        writes. Of an "inproc:" device only."""
        address, dtype, shape, strides, memory = foreign(array)
        desc = describe(dtype, shape, strides)
        above, below = C.c_uint64(), C.c_uint64()
        lib.air_tensor_desc_extent(desc, below, above)
        handle = C.c_void_p()
        check(lib.air_buffer_import(
            self.handle, address - below.value,
            max(below.value + above.value, 1), memory, handle))
        return Tensor(Buffer(self, handle, array), below.value, desc)

    # ----------------------------------------------------- completions

    def wait(self, token, timeout=None):
        """The completion of @token; raises how it failed."""
        completion = Completion()
        check(lib.air_wait(self.handle, token, _timeout_ns(timeout),
                           completion))
        return completion

    def poll(self, token):
        """The completion of @token, or None; raises how it failed."""
        completion = Completion()
        status = lib.air_poll(self.handle, token, completion)
        if status == Status.PENDING:
            return None
        check(status)
        return completion

    def next(self):
        """The oldest completion nobody has collected, or None. Its .status
        says how it ended."""
        completion = Completion()
        status = lib.air_next(self.handle, completion)
        if status == Status.PENDING:
            return None
        check(status)
        return completion

    def drain(self, timeout=None):
        """Wait for all that was submitted; raise the first failure of those
        submitted without a token."""
        check(lib.air_drain(self.handle, _timeout_ns(timeout)))
        check(lib.air_channel_error(self.handle, None))

    def cancel(self, token):
        check(lib.air_cancel(self.handle, token))

    def stream_wait(self, token, stream=None):
        """Have a CUDA stream wait for @token; the CPU does not, unless too
        many streams wait already (airunner/cuda.h has the rules). Of an
        "inproc:" device only. @stream is the number of a stream, None the
        legacy default stream:

            token = airunner.ops.rms_norm(y, x, w, wait=False)
            stream = torch.cuda.current_stream()
            channel.stream_wait(token, stream.cuda_stream)
            z = torch.nn.functional.silu(y_torch)    # sees what is in y
        """
        check(lib.air_stream_wait(self.handle, token, stream))

    def fileno(self):
        """For select and asyncio; call arm() before each sleep."""
        fd = C.c_int()
        check(lib.air_channel_fd(self.handle, fd))
        return fd.value

    def arm(self):
        """True when it is safe to sleep on fileno(), False when a completion
        is there already."""
        status = lib.air_channel_arm(self.handle)
        if status == Status.BUSY:
            return False
        check(status)
        return True

    # --------------------------------------------------------- its end

    def close(self):
        if not self.handle:
            return
        for descriptor in self.descriptors.values():
            descriptor.destroy()
        self.descriptors.clear()
        check(lib.air_channel_destroy(self.handle))
        self.handle = None

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        try:
            self.close()
        except AirError:
            # Not in place of what went wrong in the first place.
            if kind is None:
                raise
