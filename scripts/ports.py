#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the inner loops of the product kernels cost by the port models of llvm-mca (Debian: llvm-19).

    python3 scripts/ports.py [OBJECT:FUNCTION ..] [--build build/release] [--mca llvm-mca]

For each function the innermost loop with the most products (vpdpbusd) is taken from the compiled object, and simulated for an
Intel core with two VNNI ports (sapphirerapids) and for Zen 4. LLVM 19 gives vpdpbusd of 512 bits half the rate that both have
by measurement (tare_machine_measure: two a cycle and one a cycle), so an instruction stands in for it that the models have on
the same ports at that rate. A loop is at the peak where cycles = products / rate.
"""
import argparse
import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = "CMakeFiles/tare_objects.dir/src/runtime/kernels/qu8_product"
LOOPS = [f"{FOLDER}/avx512vnni_{v}.c.o:{f}" for v, f in ((4, "tile_6"), (4, "run_pipeline_f"), (3, "tile_8"), (2, "tile_12"),
                                                         (2, "run_pipeline_f"), (1, "tile_12"), (1, "run_pipeline_f"))]
# And products of 512 bits a cycle, and what stands in for them.
CPUS = (("sapphirerapids", 2, "vpaddd"), ("znver4", 1, "vfmadd231ps"))
ROUNDS = 200


def instructions(obj, function):
    """[(address, text)] of a function."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", obj], capture_output=True, text=True, check=True).stdout
    inside, found = False, []
    for line in text.splitlines():
        if head := re.match(r"^[0-9a-f]+ <(.+)>:", line):
            inside = head.group(1) == function
        elif inside and (code := re.match(r"^\s*([0-9a-f]+):\t(.*)$", line)):
            found.append((int(code.group(1), 16), code.group(2)))
    return found


def is_product(text):
    return text.startswith("vpdpbusd")


def loops(code):
    """Bodies of innermost loops: from the target of a jump back to the jump, with jumps forward only between."""
    at = {address: i for i, (address, _) in enumerate(code)}
    for i, (address, text) in enumerate(code):
        jump = re.match(r"j\w+\s+([0-9a-f]+)", text)
        if jump and int(jump.group(1), 16) in at and int(jump.group(1), 16) <= address:
            body = code[at[int(jump.group(1), 16)]:i]
            inner = [re.match(r"j\w+\s+([0-9a-f]+)", t) for _, t in body]
            if all(not j or int(j.group(1), 16) > a for j, (a, _) in zip(inner, body)):
                yield [t for _, t in body]


def simulate(mca, body, cpu, product):
    lines = [re.sub(r"\s*(<.*>|#.*)", "", t).replace("vpdpbusd", product) for t in body if not t.startswith("j")]
    done = subprocess.run([mca, "-mcpu=" + cpu, f"-iterations={ROUNDS}"], input="\n".join(lines), capture_output=True, text=True, check=True)
    return int(re.search(r"Total Cycles:\s+(\d+)", done.stdout).group(1)) / ROUNDS


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loops", nargs="*", default=LOOPS)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--mca", default="llvm-mca")
    options = parser.parse_args()
    print("| loop | products | other vector arithmetic | loads | " + " | ".join(f"{cpu}: cycles, of the peak" for cpu, _, _ in CPUS) + " |")
    print("| --- | ---: | ---: | ---: |" + " ---: |" * len(CPUS))
    for loop in options.loops:
        obj, function = loop.rsplit(":", 1)
        bodies = list(loops(instructions(os.path.join(options.build, obj), function)))
        body = max(bodies, key=lambda b: sum(map(is_product, b)), default=[])
        products = sum(map(is_product, body))
        if products == 0:
            print(f"| {loop} | no loop of products |")
            continue
        loads = sum("(" in t and not t.startswith(("prefetch", "lea", "nop")) for t in body)
        others = sum(t.startswith("v") and not is_product(t) and "(" not in t for t in body)
        cells = []
        for cpu, rate, product in CPUS:
            cycles = simulate(options.mca, body, cpu, product)
            cells.append(f"{cycles:.1f}, {100 * products / rate / cycles:.0f} %")
        name = f"{os.path.basename(obj).removesuffix('.c.o')} {function}"
        print(f"| {name} | {products} | {others} | {loads} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
