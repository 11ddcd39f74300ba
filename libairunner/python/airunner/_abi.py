# SPDX-License-Identifier: MIT
"""include/airunner.h in ctypes: structures, constants, prototypes."""

import ctypes as C
import ctypes.util
import enum
import os
import pathlib

MAX_DIMS = 8
FOREVER = -1
REF_NONE = 0xFFFF << 40
CHANNEL_SINGLE_CALLER = 1


class Status(enum.IntEnum):
    OK = 0
    PENDING = 1
    FULL = 2
    TIMEOUT = 3
    CANCELED = 4
    BUSY = 5
    BAD_OPCODE = 16
    BAD_FLAGS = 17
    BAD_ID = 18
    BAD_HANDLE = 19
    BAD_RANGE = 20
    BAD_ALIGN = 21
    BAD_RESERVED = 22
    BAD_TOKEN = 23
    BAD_ARGUMENT = 24
    BAD_OPERATOR = 32
    BAD_DTYPE = 33
    BAD_SHAPE = 34
    BAD_STRIDES = 35
    BAD_ATTRIBUTE = 36
    ALIASING = 37
    WORKSPACE = 38
    UNSUPPORTED = 39
    NO_MEMORY = 48
    NO_DEVICE = 49
    DEVICE_FAULT = 50
    DEVICE_LOST = 51
    NO_WORKER = 52
    WORKER_DIED = 53
    CHANNEL_DEAD = 54
    RESET = 55
    PERMISSION = 56
    MEMLOCK = 57
    QUOTA = 58
    SYSTEM = 59
    FORKED = 60
    ABI = 61


class Transport(enum.IntEnum):
    INPROC = 1
    UNIX = 2
    KERNEL = 3


class Executor(enum.IntEnum):
    ANY = 0
    CPU = 1
    CUDA_LAUNCH = 2
    CUDA_RESIDENT = 3


class Memory(enum.IntEnum):
    HOST = 1
    DEVICE = 2


class DType(enum.IntEnum):
    f32 = 1
    f16 = 2
    bf16 = 3
    i32 = 4
    i8 = 5
    i64 = 6

    @property
    def size(self):
        return lib.air_dtype_size(self)


class Ref(C.Structure):
    _fields_ = [("bits", C.c_uint64)]


class TensorDesc(C.Structure):
    _fields_ = [
        ("dtype", C.c_uint32),
        ("ndim", C.c_uint32),
        ("shape", C.c_int64 * MAX_DIMS),
        ("stride", C.c_int64 * MAX_DIMS),
    ]


class Completion(C.Structure):
    _fields_ = [
        ("token", C.c_uint64),
        ("user_data", C.c_uint64),
        ("status", C.c_int),
        ("detail", C.c_uint32),
        ("start", C.c_uint64),
        ("duration", C.c_uint64),
    ]


class Call(C.Structure):
    _fields_ = [
        ("word", C.c_uint64 * 8),
        ("user_data", C.c_uint64),
        ("flags", C.c_uint32),
        ("timeout_ms", C.c_uint16),
        ("reserved", C.c_uint16),
    ]


class DeviceOptions(C.Structure):
    _fields_ = [
        ("size", C.c_uint32),
        ("threads", C.c_uint32),
        ("spin_ns", C.c_uint64),
        ("executors", C.c_char_p),
        ("park_ns", C.c_uint64),
        ("large_bytes", C.c_uint64),
        ("large_alone", C.c_uint32),
        ("reserved", C.c_uint32),
    ]


class ChannelOptions(C.Structure):
    _fields_ = [
        ("size", C.c_uint32),
        ("order", C.c_uint32),
        ("arena", C.c_uint64),
        ("priority", C.c_uint32),
        ("weight", C.c_uint32),
        ("executor", C.c_int),
        ("flags", C.c_uint32),
    ]


class BackendCaps(C.Structure):
    _fields_ = [
        ("size", C.c_uint32),
        ("executor", C.c_uint32),
        ("present", C.c_uint32),
        ("threads", C.c_uint32),
        ("host_buffers", C.c_uint32),
        ("device_buffers", C.c_uint32),
        ("user_kernels", C.c_uint32),
        ("reserved", C.c_uint32),
        ("memory", C.c_uint64),
        ("ops", C.c_uint64),
        ("name", C.c_char * 96),
        ("park_ns", C.c_uint64),
        ("large_bytes", C.c_uint64),
        ("large_alone", C.c_uint32),
        ("reserved2", C.c_uint32),
    ]


def _load():
    """AIRUNNER_LIBRARY, else the build of this tree, else what the linker finds."""
    named = os.environ.get("AIRUNNER_LIBRARY")
    if named:
        return C.CDLL(named)
    tree = pathlib.Path(__file__).resolve().parents[3]
    for path in (tree / "build/release/libairunner.so",
                 ctypes.util.find_library("airunner"), "libairunner.so.0"):
        if path is None or (isinstance(path, pathlib.Path)
                            and not path.exists()):
            continue
        return C.CDLL(str(path))


lib = _load()

_P = C.c_void_p
_OUT = C.POINTER(C.c_void_p)
_DIMS = C.POINTER(C.c_int64)

# Name, result, arguments. A result of Status is checked by the caller.
_PROTOTYPES = [
    ("air_status_string", C.c_char_p, C.c_int),
    ("air_last_error", C.c_char_p),
    ("air_version", C.c_char_p),
    ("air_open", C.c_int, C.c_char_p, C.POINTER(DeviceOptions), _OUT),
    ("air_close", C.c_int, _P),
    ("air_device_transport", C.c_int, _P),
    ("air_backend_caps", C.c_int, _P, C.c_int, C.POINTER(BackendCaps)),
    ("air_channel_create", C.c_int, _P, C.POINTER(ChannelOptions), _OUT),
    ("air_channel_destroy", C.c_int, _P),
    ("air_channel_entries", C.c_uint32, _P),
    ("air_submit", C.c_int, _P, C.POINTER(Call), C.c_uint32,
     C.POINTER(C.c_uint64)),
    ("air_poll", C.c_int, _P, C.c_uint64, C.POINTER(Completion)),
    ("air_wait", C.c_int, _P, C.c_uint64, C.c_int64, C.POINTER(Completion)),
    ("air_next", C.c_int, _P, C.POINTER(Completion)),
    ("air_drain", C.c_int, _P, C.c_int64),
    ("air_cancel", C.c_int, _P, C.c_uint64),
    ("air_channel_error", C.c_int, _P, C.POINTER(Completion)),
    ("air_channel_fd", C.c_int, _P, C.POINTER(C.c_int)),
    ("air_channel_arm", C.c_int, _P),
    ("air_buffer_alloc", C.c_int, _P, C.c_size_t, C.c_int, _OUT),
    ("air_buffer_import", C.c_int, _P, _P, C.c_size_t, C.c_int, _OUT),
    ("air_buffer_free", C.c_int, _P),
    ("air_buffer_data", C.c_void_p, _P),
    ("air_buffer_size", C.c_size_t, _P),
    ("air_buffer_ref", Ref, _P, C.c_uint64),
    ("air_dtype_size", C.c_size_t, C.c_int),
    ("air_tensor_desc_init", C.c_int, C.POINTER(TensorDesc), C.c_int,
     C.c_uint32, _DIMS, _DIMS),
    ("air_tensor_desc_elements", C.c_int64, C.POINTER(TensorDesc)),
    ("air_tensor_desc_extent", None, C.POINTER(TensorDesc),
     C.POINTER(C.c_uint64), C.POINTER(C.c_uint64)),
    ("air_descriptor_executor", C.c_int, _P, C.POINTER(C.c_char_p)),
    ("air_descriptor_name", C.c_char_p, _P),
    ("air_prefer_executor", None, C.c_int),
    ("air_quiet_begin", C.c_int, _P),
    ("air_quiet_end", C.c_int, _P),
    ("air_stream_wait", C.c_int, _P, C.c_uint64, _P),
]

for _name, _result, *_arguments in _PROTOTYPES:
    _function = getattr(lib, _name)
    _function.restype = _result
    _function.argtypes = _arguments
