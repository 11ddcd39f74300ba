#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Add PyTorch as a peer to the rows of a GPU JSON file.

    gpu_torch.py build/bench/gpu.json

Run right after the program that wrote the file, on the same machine. Eager
mode, outputs allocated beforehand (out=), times by the host's clock.
"""

import json
import statistics
import sys
import time

try:
    import torch
except ImportError:
    torch = None


def median_us(fn, per_call=1, rounds=15, repeats=20):
    """The median of the rounds, of one operation; fn ends synchronized."""
    for _ in range(3):
        fn()
    times = []
    for _ in range(rounds):
        t = time.perf_counter_ns()
        for _ in range(repeats):
            fn()
        times.append((time.perf_counter_ns() - t) / 1e3 / repeats / per_call)
    return statistics.median(times)


def add_of(n, outputs=1):
    a = torch.arange(n, device="cuda", dtype=torch.float32) % 1000
    b = torch.ones(n, device="cuda")
    y = [torch.empty(n, device="cuda") for _ in range(outputs)]
    return a, b, y


def rtt_add(n, repeats=20):
    a, b, (y,) = add_of(n)

    def once():
        torch.add(a, b, out=y)
        torch.cuda.synchronize()

    value = median_us(once, repeats=repeats)
    assert torch.equal(y, a + b)
    return value


def independent_add(n):
    a, b, y = add_of(n, 64 if n <= 1 << 16 else 8)

    def many():
        for out in y:
            torch.add(a, b, out=out)
        torch.cuda.synchronize()

    value = median_us(many, per_call=len(y))
    assert all(torch.equal(out, a + b) for out in y)
    return value


def chain_add():
    b = torch.ones(1024, device="cuda")
    y = torch.zeros(1024, device="cuda")

    def chain():
        y.zero_()
        for _ in range(128):
            y.add_(b)
        torch.cuda.synchronize()

    value = median_us(chain, per_call=128)
    assert bool((y == 128).all())
    return value


def softmax(rows, length, repeats=20):
    x = torch.randn(rows, length, device="cuda")
    y = torch.empty_like(x)

    def once():
        torch.softmax(x, -1, out=y)
        torch.cuda.synchronize()

    value = median_us(once, repeats=repeats)
    assert torch.allclose(y.sum(-1), torch.ones(rows, device="cuda"))
    return value


def matmul(n, repeats=20):
    a = torch.rand(n, n, device="cuda").bfloat16() - 0.5
    b = torch.rand(n, n, device="cuda").bfloat16() - 0.5
    y = torch.empty(n, n, device="cuda", dtype=torch.bfloat16)

    def once():
        torch.matmul(a, b, out=y)
        torch.cuda.synchronize()

    value = median_us(once, repeats=repeats)
    assert torch.isfinite(y).all()
    return value


def submit_ns():
    a, b, (y,) = add_of(1024)

    times = []
    for _ in range(20):
        torch.cuda.synchronize()
        t = time.perf_counter_ns()
        for _ in range(256):
            torch.add(a, b, out=y)
        times.append((time.perf_counter_ns() - t) / 256)
    torch.cuda.synchronize()
    return statistics.median(times)


def value_of(name):
    """What the row of that name is about, done by PyTorch; None: nothing."""
    special = {
        "submit_ns": submit_ns,
        "rtt_vector_add_1024_us": lambda: rtt_add(1024),
        "rtt_softmax_64x1024_us": lambda: softmax(64, 1024),
        "rtt_softmax_8192x4096_us": lambda: softmax(8192, 4096),
        "rtt_matmul_bf16_256_us": lambda: matmul(256),
        "matmul_bf16_8192_us": lambda: matmul(8192, repeats=5),
        "large_vector_add_2p26_us": lambda: rtt_add(1 << 26, repeats=5),
        "independent_vector_add_1024_us_per_op":
            lambda: independent_add(1024),
        "chain128_vector_add_1024_us_per_op": chain_add,
    }
    if name in special:
        return special[name]()
    for prefix, fn in (("size_vector_add_2p", rtt_add),
                       ("size_independent_vector_add_2p",
                        independent_add)):
        if name.startswith(prefix):
            return fn(1 << int(name[len(prefix):].split("_")[0]))
    return None


def main():
    path = sys.argv[1]
    with open(path, encoding="utf-8") as f:
        data = json.load(f)
    if torch is None or not torch.cuda.is_available():
        data["absent"]["torch"] = "no PyTorch with CUDA for this python3"
    else:
        data["machine"]["torch"] = torch.__version__
        known = {}
        for group in data.get("executors", {}).values():
            for name, row in group["rows"].items():
                if name not in known:
                    known[name] = value_of(name)
                if known[name]:
                    row["torch"] = known[name]
                    row["ratio_torch"] = row["ring"] / known[name]
        for name, value in known.items():
            if value:
                print(f"  {name:44s} torch {value:10.4g}", flush=True)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(data, f, indent=2)
        f.write("\n")


if __name__ == "__main__":
    main()
