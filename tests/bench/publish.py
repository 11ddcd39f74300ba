#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Put the last run's figures into docs/benchmarks.

    publish.py build/bench/cpu.json cpu
    publish.py build/bench/gpu.json h200
    publish.py build/bench/numpy.json cpu-numpy
    publish.py build/gpu/beside.json h200-beside
    publish.py build/gpu/policy.json h200-policy

Copies the file to docs/benchmarks/NAME.json, draws its pictures there, and
writes its tables into README.md between the marks of that name. No figure gets
into the document in any other way.
"""

import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DOCS = os.path.join(HERE, "..", "..", "docs", "benchmarks")


def table(rows):
    """A line a peer: what the ring needs, what it needs, the quotient."""
    out = ["| row | ring | p99 | peer | peer's | ring / peer |",
           "| --- | ---: | ---: | --- | ---: | ---: |"]
    for name, row in rows.items():
        first = True
        for key, ratio in row.items():
            if not key.startswith("ratio_"):
                continue
            peer = key[len("ratio_"):]
            shown = f"**{ratio:.3g}**" if ratio > 1 and \
                not peer.startswith("ring_") else f"{ratio:.3g}"
            head = (f"`{name}`", f"{row['ring']:.4g}",
                    f"{row['ring_p99']:.4g}") if first else ("", "", "")
            out.append(f"| {head[0]} | {head[1]} | {head[2]} | {peer} | "
                       f"{row[peer]:.4g} | {shown} |")
            first = False
    return out


def section(data):
    machine = data["machine"]
    out = ["Machine: " + "; ".join(f"{k} {v}" for k, v in machine.items()) +
           ".", f"Commit: `{data['commit']}`."]
    if data["absent"]:
        out.append("Absent: " + "; ".join(f"{k} ({v})" for k, v in
                                          data["absent"].items()) + ".")
    out.append("")
    if data["rows"]:
        out += table(data["rows"]) + [""]
    for group, content in data.get("executors", {}).items():
        out += [f"### {group}", ""] + table(content["rows"]) + [""]
    return out


def numpy_section(data):
    """A line an operator and size: one thread, then all cores."""
    threads = sorted({r["threads"] for r in data["rows"]})
    out = [f"{data['executor']}; NumPy {data['numpy']}; load of the machine "
           f"when this began {data['load']:.1f}. Commit: "
           f"`{data['commit']}`. Microseconds an operation.", "",
           "| operator | n | " + " | ".join(
               f"NumPy, {t} thread{'s' * (t > 1)} | ring | NumPy / ring"
               for t in threads) + " |",
           "| --- | ---: |" + " ---: | ---: | ---: |" * len(threads)]
    lines = {}
    for r in data["rows"]:
        ratio = r["numpy_us"] / r["ring_us"]
        shown = f"{ratio:.2f}" if ratio >= 1 else f"**{ratio:.2f}**"
        lines.setdefault((r["operator"], r["n"]), []).append(
            f"{r['numpy_us']:.4g} | {r['ring_us']:.4g} | {shown}")
    out += [f"| {op} | {n} | " + " | ".join(cells) + " |"
            for (op, n), cells in lines.items()]
    return out + [""]


def beside_section(data):
    """A line a setting and way to make the product; the file has more."""
    kinds = {}
    for r in data["rows"]:
        if not r["product"].startswith("algorithm"):
            kinds.setdefault((r["blocks"], r["product"]), {})[
                r["executor"]] = r
    out = [f"{data['device']}; {data['product']}. Microseconds; loss against "
           "the same product by all SMs, parked, in the same seconds.", "",
           "| resident blocks | product | parked | idle | loss % | busy | "
           "loss % | trip, idle | trip, busy | p99 | most |",
           "| --- | --- |" + " ---: |" * 9]
    for (blocks, product), r in kinds.items():
        idle, busy = r.get("idle"), r.get("busy")
        if not idle or not busy:
            continue
        out.append(
            f"| {blocks} | {product} | {r['parked']['us']:.0f} | "
            f"{idle['us']:.0f} | {idle['loss_percent']:.1f} | "
            f"{busy['us']:.0f} | {busy['loss_percent']:.1f} | "
            f"{idle['trip_us']:.1f} | {busy['trip_us']:.1f} | "
            f"{busy['trip_p99_us']:.1f} | {busy['trip_max_us']:.0f} |")
    out += ["", "| resident blocks | through the ring: parked | live, makes "
            "way | loss % | trip meanwhile | launches on a new stream, idle | "
            "most | stalls |", "| --- |" + " ---: |" * 7]
    for blocks in dict.fromkeys(b for b, _ in kinds):
        ring = kinds.get((blocks, "by cuda-launch"), {})
        probe = kinds[(blocks, "all SMs")].get("idle, launches")
        stalls = sum(r["stalled"] for r in data["rows"]
                     if r["blocks"] == blocks)
        cells = [""] * 4
        if ring:
            way = ring["busy, makes way"]
            cells = [f"{ring['parked']['us']:.0f}", f"{way['us']:.0f}",
                     f"{way['loss_percent']:.1f}",
                     f"{ring['a trip meanwhile']['trip_us']:.0f}"]
        cells += [f"{probe['trip_us']:.1f}", f"{probe['trip_max_us']:.0f}",
                  str(stalls)]
        out.append(f"| {blocks} | " + " | ".join(cells) + " |")
    return out + [""]


def policy_section(data):
    out = [f"{data['device']}. Microseconds, wall clock, of one product of a "
           "batch of four; trips: vector_add(1024) on another thread "
           "meanwhile.", "",
           "| policy | product | most | loss % | trip | p99 | most | trips |",
           "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for r in data["rows"]:
        out.append(f"| {r['state']} | {r['wall_us']:.0f} | "
                   f"{r['max_wall_us']:.0f} | {r['loss_percent']:.1f} | "
                   f"{r['trip_us']:.1f} | {r['trip_p99_us']:.1f} | "
                   f"{r['trip_max_us']:.0f} | {r['trips']} |")
    return out + [""]


# Files that are not of bench-cpu or bench-gpu, and have no pictures.
SECTIONS = {"numpy": numpy_section, "beside": beside_section,
            "policy": policy_section}


def main():
    source, name = sys.argv[1:3]
    target = os.path.join(DOCS, f"{name}.json")
    shutil.copyfile(source, target)
    special = SECTIONS.get(name.split("-")[-1])
    if not special:
        subprocess.run([sys.executable, os.path.join(HERE, "plot.py"), target,
                        DOCS], check=True)
    with open(target, encoding="utf-8") as f:
        data = json.load(f)
    readme = os.path.join(DOCS, "README.md")
    with open(readme, encoding="utf-8") as f:
        text = f.read()
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    if begin not in text:
        text += f"\n## {name}\n\n{begin}\n\n{end}\n"
    before, rest = text.split(begin)
    _, after = rest.split(end)
    pictures = [p for p in sorted(os.listdir(DOCS)) if not special and
                p.startswith(f"{name}-") and p.endswith(".svg")]
    lines = (special or section)(data) + [f"![{p}]({p})" for p in pictures]
    with open(readme, "w", encoding="utf-8") as f:
        f.write(before + begin + "\n\n" + "\n".join(lines) + "\n\n" + end +
                after)
    print(f"written: {os.path.relpath(readme)}")


if __name__ == "__main__":
    main()
