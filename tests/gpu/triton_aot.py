#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Kernels that Triton compiled ahead of time, through the ring.

    triton_aot.py compile DIRECTORY [ARCH]   needs Triton, no GPU
    triton_aot.py run DIRECTORY              needs a GPU, no Triton

Triton leaves a cubin and a JSON file of metadata beside it; these two are all
that running takes. docs/user-kernels.md says what is in them.
"""

import ctypes as C
import json
import math
import pathlib
import random
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROWS, COLUMNS, BLOCK = 77, 1000, 1024

# Triton reads a kernel's source from its file, and its names from the module's
# globals; it is needed for compiling only.
if sys.argv[1:2] == ["compile"]:
    import triton
    import triton.language as tl

    @triton.jit
    def softmax(y, x, stride, columns, BLOCK: tl.constexpr):
        row = tl.program_id(0) * stride
        at = tl.arange(0, BLOCK)
        mine = at < columns
        v = tl.load(x + row + at, mask=mine, other=-float("inf"))
        e = tl.exp(v - tl.max(v, axis=0))
        tl.store(y + row + at, e / tl.sum(e, axis=0), mask=mine)


def compile_to(directory, arch):
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    source = ASTSource(
        fn=softmax,
        signature={"y": "*fp32", "x": "*fp32", "stride": "i32",
                   "columns": "i32", "BLOCK": "constexpr"},
        constexprs={"BLOCK": BLOCK})
    kernel = triton.compile(source, target=GPUTarget("cuda", arch, 32),
                            options={"num_warps": 4})
    # As it does in its cache: the binary, and what a launch has to know.
    name = kernel.metadata.name
    metadata = kernel.metadata._asdict()
    metadata["target"] = vars(metadata["target"])
    (directory / f"{name}.cubin").write_bytes(kernel.asm["cubin"])
    (directory / f"{name}.json").write_text(json.dumps(metadata, default=str))
    print(f"{name}: Triton {triton.__version__}, sm_{arch}")


class Info(C.Structure):
    class Param(C.Structure):
        _fields_ = [("offset", C.c_uint32), ("size", C.c_uint32)]

    _fields_ = [("size", C.c_uint32), ("n_params", C.c_uint32),
                ("param_bytes", C.c_uint32), ("max_threads", C.c_uint32),
                ("static_shared", C.c_uint32), ("param", Param * 64)]


class Config(C.Structure):
    _fields_ = [("size", C.c_uint32), ("grid", C.c_uint32 * 3),
                ("block", C.c_uint32 * 3), ("shared_bytes", C.c_uint32),
                ("flags", C.c_uint32), ("timeout_ms", C.c_uint32),
                ("user_data", C.c_uint64)]


class Pointer(C.Structure):
    _fields_ = [("ref", C.c_uint64), ("bytes", C.c_uint64),
                ("offset", C.c_uint32)]


class Kernel:
    """A kernel from Triton's two files, on a channel."""

    def __init__(self, channel, cubin):
        from airunner._abi import lib
        from airunner.errors import check

        self.lib, self.check, self.channel = lib, check, channel
        self.meta = json.loads(cubin.with_suffix(".json").read_text())
        if self.meta.get("num_ctas", 1) != 1:
            raise ValueError(f"{cubin}: clusters of blocks")
        self.module, self.function = C.c_void_p(), C.c_void_p()
        check(lib.air_module_load_file(channel.handle, str(cubin).encode(),
                                       C.byref(self.module)))
        check(lib.air_function_get(self.module, self.meta["name"].encode(),
                                   C.byref(self.function)))
        self.info = Info(size=C.sizeof(Info))
        check(lib.air_function_info(self.function, C.byref(self.info)))

    def launch(self, grid, *args):
        """Tensors for pointers, integers for i32; returns a token."""
        grid = tuple(grid) + (1,) * (3 - len(grid))
        data = bytearray(self.info.param_bytes)
        pointers = []
        args = list(args) + self.scratch(math.prod(grid), len(args))
        for param, arg in zip(self.info.param, args):
            if isinstance(arg, int):
                struct.pack_into("<i", data, param.offset, arg)
            elif arg is not None:
                size = arg.buffer.size - arg.offset
                pointers.append(Pointer(arg.ref.bits, size, param.offset))
        warps = self.meta["num_warps"] * self.meta["target"]["warp_size"]
        config = Config(C.sizeof(Config), grid, (warps, 1, 1),
                        self.meta["shared"])
        token = C.c_uint64()
        self.check(self.lib.air_launch(
            self.function, C.byref(config), bytes(data), len(data),
            (Pointer * len(pointers))(*pointers), len(pointers),
            C.byref(token)))
        return token.value

    def scratch(self, blocks, given):
        """Newer ones end in pointers to memory of each block's: often none,
        and a null pointer then."""
        names = ["global_scratch_size", "profile_scratch_size"]
        extra = []
        for name in names[:self.info.n_params - given]:
            size = self.meta.get(name, 0) * blocks
            extra.append(self.channel.empty((size,), "i8") if size else None)
        return extra

    def unload(self):
        self.check(self.lib.air_module_unload(self.module))


def run(directory):
    sys.path.insert(0, str(ROOT / "libairunner/python"))
    import airunner

    n = ROWS * COLUMNS
    with airunner.Device("inproc:") as device, device.channel() as channel:
        kernel = Kernel(channel, directory / "softmax.cubin")
        x = channel.empty((ROWS, COLUMNS), "f32")
        y = channel.empty((ROWS, COLUMNS), "f32")
        floats = [(C.c_float * n).from_address(t.buffer.address)
                  for t in (y, x)]
        for i in range(n):
            floats[1][i] = random.uniform(-5, 5)
        channel.wait(kernel.launch((ROWS,), y, x, COLUMNS, COLUMNS), 60)
        for r in range(ROWS):
            row = [math.exp(v) for v in
                   floats[1][r * COLUMNS:(r + 1) * COLUMNS]]
            total = sum(row)
            for k, e in enumerate(row):
                got = floats[0][r * COLUMNS + k]
                if not math.isclose(got, e / total, rel_tol=1e-5):
                    sys.exit(f"not ok: row {r}, column {k} is {got}, "
                             f"not {e / total}")
        kernel.unload()
    print(f"ok: softmax by Triton, {kernel.info.n_params} parameters, "
          f"{kernel.meta['shared']} bytes shared")


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("compile", "run"):
        sys.exit(__doc__)
    directory = pathlib.Path(sys.argv[2])
    directory.mkdir(parents=True, exist_ok=True)
    if sys.argv[1] == "compile":
        compile_to(directory, int(sys.argv[3]) if sys.argv[3:] else 90)
    else:
        run(directory)


if __name__ == "__main__":
    main()
