# SPDX-License-Identifier: Apache-2.0
"""Who bench/compare.py times beside us: what each peer needs, and an environment of Python that has it."""
import os
import subprocess
import sys

# Family -> modules without which it cannot take part.
FAMILIES = {"tare": ["numpy"], "openvino": ["openvino", "nncf"], "onnxruntime": ["onnxruntime", "onnx"],
            "executorch": ["executorch.runtime", "torchvision"], "torch": ["torch", "torchvision"],
            "inductor": ["torch", "torchvision", "torchao"]}
SLOW_TO_OPEN = {"inductor"}  # compiles for a minute and more: only where it is asked for
NETWORKS = ["torch", "torchvision", "onnx", "onnxscript", "numpy"]  # what bench/workloads.py exports with


def can_import(python, modules):
    code = "import " + ", ".join(modules)
    return subprocess.run([python, "-c", code], capture_output=True).returncode == 0


def make_environment(folder, families):
    """The interpreter of an environment in `folder` that has what these families need, made if it is not there yet.

    What cannot be installed on this machine is said, and its family stays absent.
    """
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python):
        print(f"making {folder} (several GB; --python names interpreters that have the peers)", flush=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    wanted = {f: FAMILIES[f] for f in families}
    if set(families) != {"tare"}:
        wanted["the networks"] = NETWORKS
    for family, modules in wanted.items():
        if can_import(python, modules):
            continue
        packages = [m.split(".")[0] for m in modules]
        print(f"  installing {', '.join(packages)} for {family}", flush=True)
        done = subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], capture_output=True, text=True)
        if done.returncode != 0:
            print(f"  {family}: pip: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
    return python


def find_families(wanted, pythons):
    """{family: interpreter} of those that can take part."""
    found = {}
    for family in wanted:
        if family not in FAMILIES:
            raise SystemExit(f"compare: no family '{family}' (there are {', '.join(FAMILIES)})")
        able = [p for p in pythons if can_import(p, FAMILIES[family])]
        if able:
            found[family] = able[0]
        else:
            print(f"{family}: absent (no interpreter imports {', '.join(FAMILIES[family])})")
    return found
