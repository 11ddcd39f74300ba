#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The CPU executor against NumPy, in the same minutes on the same cores.

    tests/bench/numpy_peer.py PROGRAM [--out JSON] [--quick] [--only SUBSTRING]

PROGRAM is build/release/bench-numpy. For one thread and for all cores: rounds
of NumPy and of the executor alternate, and the best of them counts, which is
what a machine that does other things besides changes least. NumPy writes into
arrays that are there already (out=), and computes but matmul on one thread
whatever the number of cores; matmul is OpenBLAS on both sides. Microseconds an
operation, f32; reduce_rows and softmax along rows of 1024.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import timeit

ROUND_S = 0.01
ROUNDS = 15
OPERATORS = ("add", "relu", "reduce_sum", "reduce_rows", "softmax")
STATEMENT = {
    "add": "np.add(a, b, y)",
    "relu": "np.maximum(a, 0, y)",
    "reduce_sum": "a.sum(out=y)",
    "reduce_rows": "a.sum(1, out=y)",
    "softmax": "np.subtract(a, a.max(1, keepdims=True), y); np.exp(y, y); "
               "np.divide(y, y.sum(1, keepdims=True), y)",
    "matmul": "np.matmul(a, b, y)",
}


def numbers(np, n, operand):
    i = np.arange(operand, n + operand, dtype=np.uint32)
    i *= np.uint32(2654435761)
    return (i >> np.uint32(8)).astype(np.float32) / np.float32(16777216) - \
        np.float32(0.5)


def operands(np, op, n):
    if op == "matmul":
        return [np.full((n, n), -1, np.float32)] + \
            [numbers(np, n * n, k).reshape(n, n) for k in (1, 2)]
    if op in ("add", "relu"):
        return [np.full(n, -1, np.float32), numbers(np, n, 1),
                numbers(np, n, 2)]
    a = numbers(np, n, 1).reshape(-1, 1024)
    shape = {"reduce_sum": (), "reduce_rows": a.shape[:1]}.get(op, a.shape)
    return [np.full(shape, -1, np.float32), a, None]


class Executor:
    """The other side: the program, asked for a round at a time."""

    def __init__(self, program, threads):
        self.p = subprocess.Popen([program, str(threads)], text=True,
                                  stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        self.name = self.p.stdout.readline().strip()

    def round(self, op, n, repeats):
        self.p.stdin.write(f"{op} {n} {repeats}\n")
        self.p.stdin.flush()
        line = self.p.stdout.readline()
        if not line:
            sys.exit(f"{op} of {n}: the executor's side has ended")
        return [float(x) for x in line.split()]


def compare(np, op, n, y, seen):
    flat = y.reshape(-1)
    for have, i in zip(seen, (0, flat.size // 2, flat.size - 1)):
        want = float(flat[i])
        # sums of n numbers that cancel: NumPy's own error is that of f32
        near = 1e-3 * (n ** 0.5 if op in ("reduce_sum", "matmul") else 1)
        if not abs(have - want) <= near * 1e-2 + 1e-4 * abs(want):
            sys.exit(f"{op} of {n}: element {i} is {have}, NumPy has {want}")


def measure(np, executor, op, n, rounds):
    y, a, b = operands(np, op, n)
    timer = timeit.Timer(STATEMENT[op], globals={"np": np, "y": y, "a": a,
                                                 "b": b})
    timer.timeit(2)
    once = min(timer.repeat(3, 1))
    repeats = max(1, min(20000, int(ROUND_S / once)))
    best = [float("inf")] * 4
    executor.round(op, n, max(1, repeats // 10))
    for _ in range(rounds):
        took = executor.round(op, n, repeats)
        theirs = timer.timeit(repeats) / repeats * 1e6
        compare(np, op, n, y, took[3:])
        best = [min(x) for x in zip(best, [theirs] + took[:3])]
    return dict(zip(("numpy_us", "direct_us", "ring_us", "round_trip_us"),
                    (round(x, 3) for x in best)))


def side(args):
    """One number of threads: OpenBLAS reads it when it is loaded."""
    import numpy as np

    executor = Executor(args.program, args.threads)
    rows = []
    sizes = [(op, 1 << k) for op in OPERATORS for k in range(10, 25, 2)]
    sizes += [("matmul", n) for n in (64, 128, 256, 512, 1024, 2048)]
    for op, n in sizes:
        if args.only not in op:
            continue
        row = {"operator": op, "n": n, "threads": args.threads}
        row.update(measure(np, executor, op, n, 3 if args.quick else ROUNDS))
        rows.append(row)
        print("{operator:12} {n:9} {threads:3} {numpy_us:12.2f} "
              "{direct_us:12.2f} {ring_us:12.2f} {round_trip_us:12.2f} "
              "{0:8.2f}".format(row["numpy_us"] / row["ring_us"], **row),
              file=sys.stderr)
    json.dump({"numpy": np.__version__, "executor": executor.name,
               "rows": rows}, sys.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--out")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int)
    args = parser.parse_args()
    if args.threads:
        return side(args)
    cores = len(os.sched_getaffinity(0))
    whole = {"machine": platform.machine(), "cores": cores,
             "load": os.getloadavg()[0],
             "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
             "commit": os.environ.get("BENCH_COMMIT", "unknown"), "rows": []}
    print("{:12} {:>9} {:>3} {:>12} {:>12} {:>12} {:>12} {:>8}".format(
        "operator", "n", "thr", "numpy us", "direct us", "ring us",
        "round trip", "ratio"), file=sys.stderr)
    for threads in sorted({1, cores}):
        env = dict(os.environ, OPENBLAS_NUM_THREADS=str(threads))
        p = subprocess.run([sys.executable, *sys.argv, "--threads",
                            str(threads)], env=env, stdout=subprocess.PIPE,
                           check=False, timeout=600)
        if p.returncode:
            sys.exit(p.returncode)
        part = json.loads(p.stdout)
        whole["rows"] += part.pop("rows")
        whole.update(part)
    slower = [r for r in whole["rows"] if r["ring_us"] > r["numpy_us"]]
    print(f"{len(whole['rows'])} rows, NumPy is faster in {len(slower)}",
          file=sys.stderr)
    if args.out:
        with open(args.out, "w", encoding="utf-8") as f:
            json.dump(whole, f, indent=1)
            f.write("\n")
    return 0


sys.exit(main())
