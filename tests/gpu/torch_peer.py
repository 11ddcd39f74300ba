#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What PyTorch (eager, warmed) needs for the rows of a measure's JSON.

    torch_peer.py kernels.json

Rows with a "torch": [operator, dtype, rows, length] get "torch_us" and
"of_torch", the quotient of PyTorch's time and ours: below 1 is slower. Each is
timed as measure.c times: the median of rounds that run it back to back for some
milliseconds, with the host's clock.
"""

import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F

ROUNDS = 7
# Seconds between rows, for the card's power: as measure.c.
REST = 0.1
DTYPE = {"f32": torch.float32, "bf16": torch.bfloat16}
# Two runs of one kernel differ by so much.
NOISE = 0.03


def operator(name, dtype, rows, length):
    shape = (rows, length) if rows > 1 or name in ROWS else (length,)
    x = torch.randn(shape, device="cuda", dtype=dtype)
    w = torch.randn(length, device="cuda", dtype=dtype)
    y = torch.randn(shape, device="cuda", dtype=dtype) \
        if name in ("add", "copy") else None
    return {
        "copy": lambda: y.copy_(x),
        "add": lambda: torch.add(x, y),
        "relu": lambda: torch.relu(x),
        "silu": lambda: F.silu(x),
        "reduce_sum": lambda: torch.sum(x, -1),
        "softmax": lambda: torch.softmax(x, -1),
        "rms_norm": lambda: F.rms_norm(x, (length,), w, 1e-5),
        "layer_norm": lambda: F.layer_norm(x, (length,), w, None, 1e-5),
    }[name]


ROWS = ("reduce_sum", "softmax", "rms_norm", "layer_norm")


def run(f, n):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(n):
        f()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / n


def seconds(f):
    time.sleep(REST)
    run(f, 3)
    n = int(min(500, max(4, 4e-3 / run(f, 4))))
    return statistics.median(run(f, n) for _ in range(ROUNDS))


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        rows = json.load(f)
    slower = 0
    with torch.no_grad():
        for name, row in rows.items():
            if "torch" not in row:
                continue
            op, dtype, n, length = row["torch"]
            t = seconds(operator(op, DTYPE[dtype], n, length)) * 1e6
            row["torch_us"] = round(t, 4)
            row["of_torch"] = round(t / row["us"], 4)
            if row["of_torch"] < 1 - NOISE:
                slower += 1
            print(f"{name:44} {row['us']:10.2f} us, PyTorch {t:10.2f} us "
                  f"{row['of_torch']:6.2f}"
                  + ("  SLOWER" if row["of_torch"] < 1 - NOISE else ""),
                  flush=True)
    rows["PyTorch"] = {"version": torch.__version__, "slower_rows": slower}
    with open(sys.argv[1], "w", encoding="utf-8") as f:
        json.dump(rows, f, indent="\t")
        f.write("\n")
    print(f"{slower} rows are slower than PyTorch")


main()
