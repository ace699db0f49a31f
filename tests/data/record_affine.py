#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/affine.json: what torchao's affine primitives and its observer give for small tensors.

Run it where torch and torchao are installed. usage: record_affine.py
"""
import json
import pathlib

import torch
import torchao
from torchao.quantization import PerGroup, PerRow
from torchao.quantization.pt2e._affine_quantization import AffineQuantizedMinMaxObserver
from torchao.quantization.pt2e.observer import MappingType

OPS = torch.ops.torchao


def noise(shape, dtype=torch.float32, scale=1.0, seed=0):
    torch.manual_seed(seed)
    return (torch.randn(shape) * scale).to(dtype)


def special():
    """Rows of zeros, of one sign, with an outlier, tiny, halves between codes."""
    x = noise((6, 8))
    x[0] = 0
    x[1] = x[1].abs() + 0.5
    x[2] = -x[2].abs() - 0.25
    x[3, 2] = 40
    x[4] *= 1e-9
    x[5] = torch.tensor([-7.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 7.5])
    return x


INT4, UINT4, INT8, UINT8 = ("torch.int8", -8, 7), ("torch.uint8", 0, 15), ("torch.int8", -128, 127), ("torch.uint8", 0, 255)
CASES = [(x, mapping, block, of)
         for x, block in ((noise((2, 64)), [1, 32]), (noise((3, 32), seed=1), [1, 32]), (special(), [1, 4]),
                          (special(), [1, 8]), (noise((4, 6), seed=2), [2, 3]), (noise((2, 3, 4), seed=3), [1, 3, 2]),
                          (noise((2, 32), torch.bfloat16, seed=4), [1, 16]), (noise((2, 8), torch.float16, seed=5), [2, 8]))
         for mapping, of in (("SYMMETRIC", INT4), ("SYMMETRIC_NO_CLIPPING_ERR", INT4), ("ASYMMETRIC", UINT4),
                             ("SYMMETRIC", UINT4), ("SYMMETRIC", INT8), ("ASYMMETRIC", UINT8), ("ASYMMETRIC", INT4))]


def stored(t):
    """Numbers in the fewest digits that give the same float32."""
    if not t.dtype.is_floating_point:
        return {"dtype": str(t.dtype), "shape": list(t.shape), "values": t.flatten().tolist()}
    values = [float(str(v)) for v in t.float().flatten().numpy()]
    return {"dtype": str(t.dtype), "shape": list(t.shape), "values": values}


def observe(x, mapping, block, of):
    """Of matrices in float32 whose blocks lie within a row."""
    if x.dim() != 2 or block[0] != 1 or x.dtype != torch.float32 or mapping == "SYMMETRIC_NO_CLIPPING_ERR":
        return None
    granularity = PerRow() if block[1] == x.shape[1] else PerGroup(block[1])
    o = AffineQuantizedMinMaxObserver(MappingType[mapping], eval(of[0]), granularity, quant_min=of[1], quant_max=of[2],
                                      eps=2.0**-23)
    o(x)
    scale, zero = o.calculate_qparams()
    scheme = "tare.per_group_" + ("affine" if mapping == "ASYMMETRIC" else "symmetric")
    spec = {"class": "tare.PerGroupMinMaxObserver",
            "kwargs": {"dtype": of[0].replace("torch.", "torch.q"), "qscheme": scheme, "quant_min": of[1], "quant_max": of[2],
                       "group_size": 0 if isinstance(granularity, PerRow) else block[1]}}
    return {"spec": spec, "scale": stored(scale), "zero": stored(zero)}


def case(x, mapping, block, of):
    dtype = eval(of[0])
    args = f"{of[0]}, {of[1]}, {of[2]}"
    scale, zero = OPS.choose_qparams_affine(x, mapping, block, dtype, of[1], of[2])
    codes = OPS.quantize_affine(x, block, scale, zero, dtype, of[1], of[2])
    values = OPS.dequantize_affine(codes, block, scale, zero, dtype, of[1], of[2], output_dtype=x.dtype)
    made = {"x": stored(x), "choose": f"'{mapping}', {block}, {args}", "block": str(block), "range": args,
            "output": str(x.dtype), "scale": stored(scale), "zero": stored(zero), "codes": stored(codes),
            "values": stored(values)}
    observed = observe(x, mapping, block, of)
    return made | ({"observer": observed} if observed else {})


def main():
    made = {"torch": torch.__version__.split("+")[0], "torchao": torchao.__version__, "cases": [case(*c) for c in CASES]}
    path = pathlib.Path(__file__).parent / "affine.json"
    path.write_text("{" + ",\n".join(f'"{k}": {json.dumps(v)}' for k, v in made.items() if k != "cases") + ',\n"cases": [\n' +
                    ",\n".join(json.dumps(c) for c in made["cases"]) + "\n]}\n")


if __name__ == "__main__":
    main()
