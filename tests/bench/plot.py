#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draw the pictures of a benchmark's JSON file as SVG.

    plot.py FILE.json FOLDER

cpu.json: cpu-size.svg, cpu-peers.svg. gpu.json (or h200.json): NAME-latency.svg
and NAME-throughput.svg, NAME being the file's. Crossing points are where the
ring's line meets a peer's, interpolated on logarithmic axes.
"""

import json
import math
import os
import re
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

# The same file gives the same picture.
plt.rcParams["svg.hashsalt"] = "airunner"
plt.rcParams["font.size"] = 9
STYLE = {"ring": {"color": "#c0392b", "linewidth": 2.2, "marker": "o"}}
DEFAULT = {"linewidth": 1.2, "marker": ".", "alpha": 0.9}


def series(rows, pattern):
    """{contender: [(size, value)]} of the rows whose name matches."""
    out = {}
    for name, row in rows.items():
        m = re.fullmatch(pattern, name)
        if not m:
            continue
        size = 2 ** int(m[1]) if "2p" in pattern else int(m[1])
        for who, value in row.items():
            if isinstance(value, (int, float)) and not who.endswith("_p99") \
                    and not who.startswith("ratio_"):
                out.setdefault(who, []).append((size, value))
    return {who: sorted(points) for who, points in out.items()}


def crossings(ring, peer):
    """Where the lines meet: [(size, value)]."""
    peer = dict(peer)
    both = [(x, y, peer[x]) for x, y in ring if x in peer and x > 0]
    found = []
    for (x0, r0, p0), (x1, r1, p1) in zip(both, both[1:]):
        d0, d1 = math.log(r0 / p0), math.log(r1 / p1)
        if d0 == 0 or d0 * d1 >= 0:
            continue
        t = d0 / (d0 - d1)
        found.append((math.exp(math.log(x0) * (1 - t) + math.log(x1) * t),
                      math.exp(math.log(r0) * (1 - t) + math.log(r1) * t)))
    return found


def draw_sizes(ax, lines, title, unit):
    for who, points in sorted(lines.items(), key=lambda kv: kv[0] != "ring"):
        points = [(x, y) for x, y in points if x > 0]
        if points:
            ax.plot(*zip(*points), label=who, **{**DEFAULT,
                                                 **STYLE.get(who, {})})
    for who, points in lines.items():
        if who.startswith("ring"):
            continue
        for x, y in crossings(lines.get("ring", []), points):
            ax.plot([x], [y], marker="x", color="black", markersize=8)
            ax.annotate(f"{who}: {x:,.0f}", (x, y), fontsize=7,
                        textcoords="offset points", xytext=(6, -10))
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("elements of vector_add (f32)")
    ax.set_ylabel(f"{unit} an operator")
    ax.set_title(title)
    ax.grid(True, which="both", alpha=0.2)
    ax.legend(fontsize=7)


def save(fig, folder, name):
    path = os.path.join(folder, name)
    fig.tight_layout()
    fig.savefig(path, metadata={"Date": None})
    plt.close(fig)
    print(f"drawn: {path}")


def subtitle(data, fig):
    machine = data["machine"]
    what = machine.get("gpu") or machine.get("cpu", "?")
    fig.text(0.99, 0.005, f"{what}; {data['commit'][:12]}; "
             f"{machine.get('date', '')}", ha="right", fontsize=6)


def draw_cpu(data, folder):
    lines = series(data["rows"], r"operator_vector_add_(\d+)_us")
    if lines:
        fig, ax = plt.subplots(figsize=(6.4, 4.2))
        draw_sizes(ax, lines, "One operator on the CPU: through the ring, "
                   "and called directly", "µs")
        subtitle(data, fig)
        save(fig, folder, "cpu-size.svg")
    names = [n for n in ("submit_ns", "rtt_ns", "throughput_ns_per_op",
                         "wake_us", "idle_channels_1000_rtt_ns")
             if n in data["rows"]]
    if not names:
        return
    fig, axes = plt.subplots(1, len(names), figsize=(2.6 * len(names), 3.2))
    for ax, name in zip([axes] if len(names) == 1 else axes, names):
        row = data["rows"][name]
        bars = [(k, v) for k, v in row.items()
                if isinstance(v, (int, float)) and not k.endswith("_p99")
                and not k.startswith("ratio_")]
        colors = ["#c0392b" if k.startswith("ring") else "#7f8c8d"
                  for k, _ in bars]
        ax.barh([k for k, _ in bars], [v for _, v in bars], color=colors)
        ax.invert_yaxis()
        ax.set_title(name, fontsize=8)
        ax.tick_params(labelsize=7)
        ax.bar_label(ax.containers[0], fmt="%.3g", fontsize=7)
        ax.margins(x=0.2)
    subtitle(data, fig)
    save(fig, folder, "cpu-peers.svg")


def draw_gpu(data, folder, base):
    groups = data.get("executors", {})
    for what, pattern, title in (
            ("latency", r"size_vector_add_2p(\d+)_us",
             "submit to completion"),
            ("throughput", r"size_independent_vector_add_2p(\d+)_us_per_op",
             "independent, back to back")):
        ready = {g: series(v["rows"], pattern) for g, v in groups.items()}
        ready = {g: lines for g, lines in ready.items() if lines}
        if not ready:
            continue
        fig, axes = plt.subplots(1, len(ready),
                                 figsize=(5.6 * len(ready), 4.2),
                                 squeeze=False)
        for ax, (group, lines) in zip(axes[0], ready.items()):
            draw_sizes(ax, lines, f"{group}: {title}", "µs")
        subtitle(data, fig)
        save(fig, folder, f"{base}-{what}.svg")


def main():
    path, folder = sys.argv[1:3]
    with open(path, encoding="utf-8") as f:
        data = json.load(f)
    if "executors" in data:
        base = os.path.splitext(os.path.basename(path))[0]
        draw_gpu(data, folder, base)
    else:
        draw_cpu(data, folder)


if __name__ == "__main__":
    main()
