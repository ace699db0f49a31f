#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/operators.md: which operators of torch and of ONNX tare knows, and which it lacks.

The operators that there are stand in tools/operator_sets.json: torch's core set, ONNX's default domain, and what
exported programs of a list of networks call. What tare knows is read from its sources: src/ops/rows/ has a signature for
every overload of the operator tables, src/ops/refused.c and src/io/onnx/families/refused.c say what is refused and why.

usage: op_coverage.py              write docs/operators.md
       op_coverage.py --check      exit with 1 if that would change it
       op_coverage.py --sets       renew torch's and ONNX's operators (needs torch and onnx)
       op_coverage.py --networks   export the networks again, and count (needs torch, torchvision, timm and transformers)
"""
import collections
import importlib
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SETS = ROOT / "tools/operator_sets.json"
PAGE = ROOT / "docs/operators.md"
RULES = ROOT / "src/io/onnx/families"

TIMM = """beit_base_patch16_224 cait_xxs24_224 coat_tiny coatnet_nano_rw_224 convit_tiny convmixer_768_32 convnextv2_atto
crossvit_tiny_240 cspresnet50 davit_tiny deit3_small_patch16_224 dla34 dpn48b edgenext_xx_small efficientformerv2_s0
efficientvit_b0 eva02_tiny_patch14_224 fastvit_t8 focalnet_tiny_srf gcvit_xxtiny ghostnetv2_100 halonet26t hardcorenas_a
hgnetv2_b0 hiera_tiny_224 hrnet_w18_small inception_next_atto levit_128s maxvit_rmlp_pico_rw_256 mixer_s16_224
mobilenetv4_conv_small mobileone_s0 mobilevit_xxs mobilevitv2_050 mvitv2_tiny nest_tiny nf_resnet50 nfnet_f0 pit_ti_224
poolformer_s12 pvt_v2_b0 regnetz_b16 repvgg_a0 repvit_m0_9 res2net50_26w_4s resnest14d rexnet_100 sebotnet33ts_256 selecsls42b
sequencer2d_s skresnet18 starnet_s1 swiftformer_xs swinv2_tiny_window8_256 tiny_vit_5m_224 tnt_s_patch16_224 tresnet_m
twins_svt_small vgg11 visformer_tiny vit_base_patch16_rope_224 volo_d1_224 xception41 xcit_nano_12_p16_224""".split()
TORCHVISION = """alexnet efficientnet_v2_s maxvit_t mc3_18 mnasnet0_5 mvit_v1_b r2plus1d_18 r3d_18 regnet_x_400mf resnext50_32x4d
swin3d_t swin_v2_t wide_resnet50_2""".split()
VIDEO = ("r3d_18", "mc3_18", "r2plus1d_18", "mvit_v1_b", "swin3d_t")

# Narrow, shallow configurations: what operators a network calls does not depend on its width.
NARROW = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 99,
          "max_position_embeddings": 64, "pad_token_id": 0}
GROUPED = {"num_key_value_heads": 2}
WAVES = {"conv_dim": [32] * 3, "conv_stride": [5, 2, 2], "conv_kernel": [10, 3, 3], "num_feat_extract_layers": 3}
TRANSFORMERS = {
    "albert": {"embedding_size": 32}, "bart": {
        "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
        "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "pad_token_id": 1},
    "bert": {}, "bloom": {"n_layer": 2, "n_head": 4}, "convbert": {"embedding_size": 64},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False},
    "deit": {}, "dinov2": {}, "distilbert": {"n_layers": 2, "dim": 64, "n_heads": 4, "hidden_dim": 128},
    "electra": {"embedding_size": 32}, "esm": {"mask_token_id": 1}, "falcon": {}, "fnet": {},
    "gemma": GROUPED | {"head_dim": 16}, "gemma2": GROUPED | {"head_dim": 16}, "gpt2": {"n_embd": 64, "n_layer": 2, "n_head": 4},
    "gpt_neox": {}, "granite": GROUPED, "hubert": WAVES, "llama": GROUPED, "mamba": {}, "mistral": GROUPED | {"sliding_window": 4},
    "mixtral": GROUPED | {"num_local_experts": 4}, "mobilebert": {"embedding_size": 32, "intra_bottleneck_size": 32},
    "modernbert": {"bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}, "mpnet": {}, "olmo2": GROUPED,
    "opt": {"ffn_dim": 128, "word_embed_proj_dim": 64}, "phi": {}, "phi3": GROUPED, "qwen2": GROUPED,
    "qwen3": GROUPED | {"head_dim": 16}, "roberta": {}, "roformer": {"embedding_size": 64}, "segformer": None, "smollm3": GROUPED,
    "squeezebert": {"embedding_size": 64}, "swin": None,
    "t5": {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4}, "vit": {}, "wav2vec2": WAVES,
}
IMAGES, SOUNDS, PAIRS = ("deit", "dinov2", "segformer", "swin", "vit"), ("hubert", "wav2vec2"), ("bart", "t5")


def need(*names):
    """The modules of these names, or a sentence that says what to install."""
    try:
        return [importlib.import_module(n) for n in names]
    except ImportError as e:
        sys.exit(f"op_coverage.py: this needs the Python packages {', '.join(names)}: {e}")


# --- what there is ---

def core_overloads():
    torch, = need("torch")
    packets = (getattr(torch.ops.aten, name) for name in dir(torch.ops.aten))
    overloads = (getattr(p, o) for p in packets if hasattr(p, "overloads") for o in p.overloads())
    return sorted(str(o).removeprefix("aten.") for o in overloads if torch.Tag.core in o.tags)


def onnx_operators():
    onnx, = need("onnx")
    since = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and not schema.deprecated:
            since[schema.name] = min(schema.since_version, since.get(schema.name, schema.since_version))
    deprecated = {s.name for s in onnx.defs.get_all_schemas() if s.deprecated}
    return {name: since[name] for name in sorted(since) if name not in deprecated}


def networks():
    """Name, a function that makes it, its inputs by position and by keyword."""
    torch, torchvision, timm, transformers = need("torch", "torchvision", "timm", "transformers")
    for name in TORCHVISION:
        shape = (1, 3, 16, 224, 224) if name in VIDEO else (1, 3, 224, 224)
        yield f"torchvision.{name}", lambda: torchvision.models.get_model(name, weights=None), (torch.randn(shape),), {}
    for name in TIMM:
        size = timm.models.get_pretrained_cfg(name).input_size
        yield f"timm.{name}", lambda: timm.create_model(name, pretrained=False), (torch.randn(1, *size),), {}
    for name, config in TRANSFORMERS.items():
        made = transformers.CONFIG_MAPPING[name](**({} if config is None else NARROW | config))
        made.use_cache = False
        words = torch.randint(2, 90, (2, 12))
        inputs = {"pixel_values": torch.randn(1, 3, 224, 224)} if name in IMAGES else \
            {"input_values": torch.randn(1, 1600)} if name in SOUNDS else \
            {"input_ids": words, "decoder_input_ids": words} if name in PAIRS else \
            {"input_ids": words} if name in ("mamba", "fnet") else {"input_ids": words, "attention_mask": torch.ones_like(words)}
        yield f"transformers.{name}", lambda: transformers.AutoModel.from_config(made), (), inputs


def called_by(program):
    import torch

    graphs = (m.graph for m in program.graph_module.modules() if isinstance(m, torch.fx.GraphModule))
    targets = {n.target for g in graphs for n in g.nodes if n.op == "call_function"}
    return {str(t) for t in targets if hasattr(t, "_schema")} | \
        {f"higher_order.{t}" for t in targets if isinstance(t, torch._ops.HigherOrderOperator)}


def count_networks():
    import torch

    torch.set_num_threads(1)
    names, counts = [], collections.Counter()
    for name, make, args, kwargs in networks():
        with torch.no_grad():
            counts.update(called_by(torch.export.export(make().eval(), args, kwargs)))
        names.append(name)
        print(name, flush=True)
    return {"names": names, "operators": dict(sorted(counts.items()))}


# --- what tare knows ---

def table(path, pattern):
    return dict(re.findall(pattern, (ROOT / path).read_text(), re.M))


def known_overloads():
    known = {name for path in ROOT.glob("src/ops/rows/*.def")
             for name in re.findall(r'^SIGNATURE\("([\w.]+)\(', path.read_text(), re.M)}
    flow = re.findall(r'^    FLOW\("(\w+)"', (ROOT / "src/ops/families/flow.c").read_text(), re.M)
    others = {name for path in ROOT.glob("src/ops/families/*.c")
              for name in re.findall(r"torch\.ops\.(transformers\.\w+\.\w+)", path.read_text())}
    return known | others | {f"higher_order.{name}" for name in flow}


def refusals():
    return table("src/ops/refused.c", r'^    \{"([\w.*]+)", "([^"]+)"\}')


def why_refused(name, reasons):
    return next((why for row, why in reasons.items() if (row[1:] in name if row[0] == "*" else name.startswith(row))), None)


def onnx_rules():
    """Name -> None if it is read, else why not."""
    rules = {}
    for path in sorted(RULES.glob("*.c")):
        source = path.read_text()
        for name, function in re.findall(r'\{"(\w+)",[^}]*?\.translate = (\w+)', source):
            rules[name] = None if path.stem != "refused" else sentence_of(source, function)
    return rules


def sentence_of(source, function):
    body = re.search(rf"tare_status {function}\(.*?\n\}}", source, re.S)[0]
    return "".join(re.findall(r'"([^"]*)"', body)).split(":")[0]


# --- the page ---

HEAD = """# Operators

Which operators tare knows: those of torch's core set, those that programs of torch.export call, and those of ONNX. Written by
`tools/op_coverage.py` from the sources; a test compares. "-": not known yet. Operators that are written as ONNX stand in
[onnx_operators.md](onnx_operators.md), and how a program is read in [pt2.md](pt2.md).

"""


def mark(name, known, reasons):
    reason = why_refused(name, reasons)
    return "yes" if name in known else f"refused: {reason}" if reason else "-"


def summary(marks):
    counts = collections.Counter(m.split(":")[0] for m in marks)
    return f"{counts['yes']} of {len(marks)} are known, {counts['refused']} refused by name, {counts['-']} missing"


def rows(cells):
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in cells)


def core_part(sets, known, reasons):
    marks = {name: mark(f"aten.{name}", known, reasons) for name in sets["core"]}
    text = f"## torch's core set\n\nOf torch {sets['torch']}: the overloads of aten with the tag `core`; {summary(marks.values())}.\n\n"
    groups = collections.defaultdict(list)
    for name, m in marks.items():
        groups[name.split(".")[0], m].append(name.split(".")[1])
    return text + "| operator | overloads | known |\n| --- | --- | --- |\n" + rows(
        (f"`{name}`", ", ".join(overloads), m) for (name, m), overloads in groups.items()) + "\n"


def networks_part(sets, known, reasons):
    counts = sets["networks"]["operators"]
    order = sorted(counts, key=lambda n: (-counts[n], n))
    marks = {name: mark(name, known, reasons) for name in order}
    libraries = collections.Counter(n.split(".")[0] for n in sets["networks"]["names"])
    text = f"## What exported programs call\n\nPrograms of {len(sets['networks']['names'])} networks (" + \
        ", ".join(f"{count} of {name}" for name, count in libraries.items()) + \
        f"), as `torch.export.export` returns them; {summary(marks.values())}.\n\n"
    return text + "| operator | programs | known |\n| --- | --- | --- |\n" + rows(
        (f"`{name}`", counts[name], marks[name]) for name in order) + "\n"


def onnx_part(sets):
    rules = onnx_rules()
    marks = {name: "-" if name not in rules else f"refused: {rules[name]}" if rules[name] else "yes" for name in sets["onnx"]}
    return f"## ONNX\n\nOf onnx {sets['onnx version']}: the default domain; {summary(marks.values())}. Opsets 11 to 21 are read " \
        "([onnx.md](onnx.md)).\n\n| operator | since opset | read |\n| --- | --- | --- |\n" + \
        rows((name, sets["onnx"][name], marks[name]) for name in marks)


def page(sets):
    known, reasons = known_overloads(), refusals()
    return HEAD + core_part(sets, known, reasons) + networks_part(sets, known, reasons) + onnx_part(sets)


def renew(sets, wanted):
    if wanted == "--sets":
        torch, onnx = need("torch", "onnx")
        sets |= {"torch": torch.__version__.split("+")[0], "core": core_overloads(),
                 "onnx version": onnx.__version__, "onnx": onnx_operators()}
    else:
        sets["networks"] = count_networks()
    SETS.write_text(json.dumps(sets, indent=1) + "\n")


def main():
    arguments = sys.argv[1:]
    if arguments not in ([], ["--check"], ["--sets"], ["--networks"]):
        sys.exit(__doc__)
    sets = json.loads(SETS.read_text()) if SETS.exists() else {}
    if arguments in (["--sets"], ["--networks"]):
        renew(sets, arguments[0])
    text = page(sets)
    if arguments == ["--check"]:
        sys.exit(None if text == PAGE.read_text() else "docs/operators.md is not what the sources say: run tools/op_coverage.py")
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
