# SPDX-License-Identifier: Apache-2.0
"""What bench/compare.py makes of its record: a table for each CPU model in docs/performance.md, and docs/performance.svg."""
import os
import statistics
from xml.sax.saxutils import escape

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE, CHART = (os.path.join(ROOT, "docs", "performance" + end) for end in (".md", ".svg"))
BEGIN, END = "<!-- bench/compare.py writes from here .. -->", "<!-- .. to here -->"
ROWS = ["resnet50:1x1", "resnet50:16x1", "resnet50:1x2", "resnet50:16x2", "resnet18:1x1", "resnet18:1x2",
        "mobilenet_v2:1x1", "mobilenet_v2:1x2", "mobilenet_v2:16x1", "mobilenet_v3_large:1x2", "encoder:1x1",
        "encoder:1x2", "linear:1x1", "linear:128x1"]
REALS = ("float", "bfloat16")  # all other recipes have integers


# --- which engines stand in the table ---


def is_integer(name):
    return name.split("/")[1] not in REALS


def fastest(engines, ours, kind=None):
    """(name, figures) of the fastest engine of this kind, None: of integers, ours or a peer's; None: there is none."""
    found = [(name, f) for name, f in engines.items() if name.startswith("tare/") == ours and
             (is_integer(name) if kind is None else name.split("/")[1] == kind)]
    return min(found, key=lambda e: e[1]["median"], default=None)


def ours_beside(engines, peer):
    """Our fastest integers among those that are as exact as the peer's; else the most exact ones."""
    own = {n: f for n, f in engines.items() if n.startswith("tare/") and is_integer(n)}
    exact = {n: f for n, f in own.items() if peer is None or f["sqnr"] >= peer[1]["sqnr"] - 0.05}
    if exact:
        return min(exact.items(), key=lambda e: e[1]["median"])
    return max(own.items(), key=lambda e: e[1]["sqnr"], default=None)


def ratio_of(engines):
    """How often faster than the best peer our integers are; None: somebody is absent."""
    peer = fastest(engines, False)
    ours = ours_beside(engines, peer)
    return peer[1]["median"] / ours[1]["median"] if peer and ours else None


def limit_of(row, record):
    """The milliseconds that the machine needs for the products of a row, or to read its weights from the third-level cache."""
    work, peaks = row["work"], record["peaks"].get(str(row["threads"])) or record["peaks"].get("1")
    if not work or not peaks:
        return None
    share = 1 if str(row["threads"]) in record["peaks"] else row["threads"]
    products = 2e-6 * work["macs"] * row["batch"] / (peaks["int8_gops"] * share)
    return max(products, 1e-6 * work["weight_bytes"] / (peaks["l3_gbs"] * share))


# --- the table ---


def cell(engine):
    return f"{engine[1]['median']:.3g} ({engine[0]})" if engine else ""


def over(a, b):
    return f"{a[1]['median'] / b[1]['median']:.2f}" if a and b else ""


def table_line(name, row, record):
    engines = row["engines"]
    peer = fastest(engines, False)
    ours, real = ours_beside(engines, peer), fastest(engines, True, "float")
    peer_real = fastest(engines, False, "float")
    brains = [fastest(engines, is_ours, "bfloat16") for is_ours in (True, False)]
    if ours is None or real is None:
        return None
    limit = limit_of(row, record)
    decibels = " / ".join(f"{e[1]['sqnr']:.1f}" for e in (ours, peer) if e)
    return [name.replace(":", " "), f"{ours[1]['median']:.3g}",
            f"{limit:.3g} ({100 * limit / ours[1]['median']:.0f} %)" if limit else "", cell(peer), f"**{over(peer, ours)}**",
            decibels, " / ".join(f"{b[1]['median']:.3g}" if b else "-" for b in brains), f"{real[1]['median']:.3g}",
            cell(peer_real), over(peer_real, real), over(real, ours)]


def render_family(cpu, record):
    header = ["workload, batch x threads", "ours, int8", "machine's limit (share)", "best int8 peer", "peer / ours", "SQNR, dB",
              "bfloat16, ours / OpenVINO", "ours, float", "best float peer", "peer / ours", "our int8 over our float"]
    rows = {r: record["rows"][r] for r in ROWS if r in record["rows"]}
    lines = [line for name, row in rows.items() if (line := table_line(name, row, record))]
    ratios = [r for row in rows.values() if (r := ratio_of(row["engines"]))]
    behind = [name.replace(":", " ") for name, row in rows.items() if (r := ratio_of(row["engines"])) and r < 1]
    dates = sorted({row["date"] for row in rows.values()})
    commits = sorted({row["commit"] for row in rows.values()})
    peaks = record["peaks"].get("1", {})
    text = [f"### {cpu}, {record['machine'].get('cores', '')} cores, {' to '.join(dict.fromkeys((dates[0], dates[-1])))}", ""]
    if peaks:
        text += ["One thread's peaks: {int8_gops:.0f} GOPS of int8, {float_gflops:.0f} GFLOPS of float32, {l2_gbs:.0f} GB/s from the "
                 "second-level cache, {l3_gbs:.0f} from the third, {memory_gbs:.0f} from memory.".format(**peaks), ""]
    text += ["| " + " | ".join(header) + " |", "| --- |" + " ---: |" * (len(header) - 1)]
    text += ["| " + " | ".join(line) + " |" for line in lines]
    versions = ", ".join(f"{k} {v}" for k, v in sorted(record["versions"].items()))
    mean = statistics.geometric_mean(ratios) if ratios else 0
    text += ["", f"Geometric mean of peer / ours, int8: {mean:.2f}. Behind in: {', '.join(behind) or 'no row'}. "
             f"Commit{'s' if len(commits) > 1 else ''} {', '.join(commits)}; {versions}."]
    return "\n".join(text)


def render(record):
    return "\n\n".join(render_family(cpu, family) for cpu, family in record["cpus"].items())


def write_page(text):
    with open(PAGE) as file:
        page = file.read()
    head, rest = page.split(BEGIN)
    with open(PAGE, "w") as file:
        file.write(head + BEGIN + "\n\n" + text + "\n\n" + END + rest.split(END)[1])


# --- the chart ---

LEFT, TOP, BAR, GAP, WIDTH, MOST = 170, 50, 11, 9, 460, 2.0
COLOURS = ("#1b6ca8", "#d1772a", "#3d8f5a", "#8452a1")


def write_chart(record):
    """A bar for each row and CPU: how often faster than the best int8 peer; a line at 1, where both are as fast."""
    cpus = list(record["cpus"])
    rows = [r for r in ROWS if any(r in record["cpus"][c]["rows"] for c in cpus)]
    step = BAR * len(cpus) + GAP
    height = TOP + step * len(rows) + 30
    x = lambda ratio: LEFT + WIDTH * min(ratio, MOST) / MOST
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 60}" height="{height}" '
           'font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{LEFT}" y="16" font-size="13">Time of the best int8 peer over tare\'s (above 1: tare is faster)</text>']
    for i, cpu in enumerate(cpus):
        dates = max(row["date"] for row in record["cpus"][cpu]["rows"].values())
        out.append(f'<rect x="{LEFT + i * 260}" y="24" width="10" height="10" fill="{COLOURS[i % len(COLOURS)]}"/>'
                   f'<text x="{LEFT + i * 260 + 14}" y="33">{escape(cpu)}, {dates}</text>')
    for k, row in enumerate(rows):
        y = TOP + k * step
        out.append(f'<text x="{LEFT - 8}" y="{y + BAR * len(cpus) / 2 + 4}" text-anchor="end">{row.replace(":", " ")}</text>')
        for i, cpu in enumerate(cpus):
            ratio = ratio_of(record["cpus"][cpu]["rows"].get(row, {}).get("engines", {}))
            if ratio is None:
                continue
            top = y + i * BAR
            out.append(f'<rect x="{LEFT}" y="{top}" width="{x(ratio) - LEFT:.1f}" height="{BAR - 1}" '
                       f'fill="{COLOURS[i % len(COLOURS)]}"/><text x="{x(ratio) + 4:.1f}" y="{top + 9}">{ratio:.2f}</text>')
    out += [f'<line x1="{x(1)}" y1="{TOP - 8}" x2="{x(1)}" y2="{height - 24}" stroke="black" stroke-dasharray="3 2"/>',
            f'<text x="{x(1)}" y="{height - 10}" text-anchor="middle">1.0</text>', "</svg>"]
    with open(CHART, "w") as file:
        file.write("\n".join(out) + "\n")
