#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Put the last run's figures into docs/benchmarks.

    publish.py build/bench/cpu.json cpu
    publish.py build/bench/gpu.json h200

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


def main():
    source, name = sys.argv[1:3]
    target = os.path.join(DOCS, f"{name}.json")
    shutil.copyfile(source, target)
    subprocess.run([sys.executable, os.path.join(HERE, "plot.py"), target,
                    DOCS], check=True)
    with open(target, encoding="utf-8") as f:
        data = json.load(f)
    readme = os.path.join(DOCS, "README.md")
    with open(readme, encoding="utf-8") as f:
        text = f.read()
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, rest = text.split(begin)
    _, after = rest.split(end)
    pictures = [p for p in sorted(os.listdir(DOCS))
                if p.startswith(f"{name}-") and p.endswith(".svg")]
    lines = section(data) + [f"![{p}]({p})" for p in pictures]
    with open(readme, "w", encoding="utf-8") as f:
        f.write(before + begin + "\n\n" + "\n".join(lines) + "\n\n" + end +
                after)
    print(f"written: {os.path.relpath(readme)}")


if __name__ == "__main__":
    main()
