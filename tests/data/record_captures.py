#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python tests/data/record_captures.py > tests/data/captures.json

Asks torch.export what small functions become under example inputs, for tests/unit/quantizers/patterns/test_capture.c:
the function as one operation a line, the example, and the exported graph as code. Needs torch 2.15."""
import ast
import json
import operator  # noqa: F401
import warnings

import torch
import torch.nn.functional as F  # noqa: F401
from torch.export import Dim

warnings.filterwarnings("ignore")
torch.set_num_threads(1)

# Name, parameters, expression, examples. A shape stands for a float tensor, -1 for a symbolic size; ("i", shape) and
# ("b", shape) for integers and booleans; anything else is a constant.
# fmt: off
CALLS = [
("conv1d","x,w,b","F.conv1d(x, w, b)",[dict(x=[1,2,8],w=[2,2,3],b=[2])]),
("conv2d","x,w,b","F.conv2d(x, w, b)",[dict(x=[1,2,8,8],w=[2,2,3,3],b=[2]),dict(x=[1,2,8,8],w=[2,2,3,3],b=None),dict(x=[-1,2,8,8],w=[2,2,3,3],b=[2])]),
("conv2d_args","x,w,b","F.conv2d(x, w, b, stride=2, padding=1, groups=1)",[dict(x=[1,2,8,8],w=[2,2,3,3],b=[2])]),
("conv2d_same","x,w,b","F.conv2d(x, w, b, padding='same')",[dict(x=[1,2,8,8],w=[2,2,3,3],b=[2])]),
("conv3d","x,w","F.conv3d(x, w)",[dict(x=[1,2,4,4,4],w=[2,2,3,3,3])]),
("convt1","x,w,b","F.conv_transpose1d(x, w, b)",[dict(x=[1,2,8],w=[2,2,3],b=[2])]),
("convt2","x,w,b","F.conv_transpose2d(x, w, b, stride=2)",[dict(x=[1,2,8,8],w=[2,2,3,3],b=[2])]),
("convt2d","x,w,b","F.conv_transpose2d(x, w, b, [2, 2], dilation=2, output_padding=1)",[dict(x=[1,2,8,8],w=[2,2,3,3],b=[2])]),
("linear","x,w,b","F.linear(x, w, b)",[dict(x=[2,8],w=[4,8],b=[4]),dict(x=[2,3,8],w=[4,8],b=[4]),dict(x=[2,3,3,8],w=[4,8],b=None)]),
("bn","x,m,v,g,b,training","F.batch_norm(x, m, v, g, b, training)",[dict(x=[2,3,4,4],m=[3],v=[3],g=[3],b=[3],training=False),dict(x=[2,3,4,4],m=[3],v=[3],g=[3],b=[3],training=True),dict(x=[2,3],m=[3],v=[3],g=[3],b=[3],training=True)]),
("bn_eps","x,m,v","F.batch_norm(x, m, v, eps=0.001, momentum=0.2)",[dict(x=[2,3,4,4],m=[3],v=[3])]),
("ln","x,g,b","F.layer_norm(x, (8,), g, b)",[dict(x=[2,4,8],g=[8],b=[8])]),
("ln_sym","x,g,b","F.layer_norm(x, [8], weight=g, bias=b, eps=1e-06)",[dict(x=[-1,8],g=[8],b=[8])]),
("gn","x,g,b","F.group_norm(x, 2, g, b)",[dict(x=[2,4,8],g=[4],b=[4])]),
("inorm","x","F.instance_norm(x)",[dict(x=[2,4,8])]),
("rms","x,g","F.rms_norm(x, [8], g)",[dict(x=[2,8],g=[8])]),
("dropout","x,training","F.dropout(x, 0.3, training)",[dict(x=[2,8],training=True),dict(x=[2,8],training=False)]),
("softmax","x","F.softmax(x, dim=-1)",[dict(x=[2,8])]),
("softmax_m","x","x.softmax(-1)",[dict(x=[2,8])]),
("softmax_t","x","torch.softmax(x, -1)",[dict(x=[2,8])]),
("log_softmax","x","F.log_softmax(x, dim=1)",[dict(x=[2,8])]),
("relu_in","x","F.relu(x + 1, inplace=True)",[dict(x=[2,8])]),
("relu_m","x","x.relu()",[dict(x=[2,8])]),
("gelu_tanh","x","F.gelu(x, approximate='tanh')",[dict(x=[2,8])]),
("prelu","x,w","F.prelu(x, w)",[dict(x=[2,8],w=[1])]),
("interp","x","F.interpolate(x, scale_factor=2.0)",[dict(x=[1,2,4]),dict(x=[1,2,4,4]),dict(x=[1,2,4,4,4])]),
("interp_size","x","F.interpolate(x, size=[8, 8], mode='bilinear')",[dict(x=[1,2,4,4])]),
("maxpool1","x","F.max_pool1d(x, 2)",[dict(x=[1,2,4])]),
("maxpool2","x","F.max_pool2d(x, 2, stride=1)",[dict(x=[1,2,4,4]),dict(x=[2,4,4])]),
("maxpool3","x","F.max_pool3d(x, 2)",[dict(x=[1,2,4,4,4])]),
("avgpool1","x","F.avg_pool1d(x, 2)",[dict(x=[1,2,4])]),
("avgpool2","x","F.avg_pool2d(x, 2, padding=1)",[dict(x=[1,2,4,4])]),
("avgpool3","x","F.avg_pool3d(x, 2)",[dict(x=[1,2,4,4,4])]),
("aap1","x","F.adaptive_avg_pool1d(x, 1)",[dict(x=[1,2,4])]),
("aap2","x","F.adaptive_avg_pool2d(x, 1)",[dict(x=[1,2,4,4]),dict(x=[-1,2,4,4])]),
("aap2l","x","F.adaptive_avg_pool2d(x, [1, 1])",[dict(x=[1,2,4,4])]),
("flatten","x","torch.flatten(x, 1)",[dict(x=[1,2,4,4])]),
("flatten_m","x","x.flatten(1)",[dict(x=[1,2,4,4])]),
("mean","x","torch.mean(x)",[dict(x=[1,2,4,4])]),
("mean_dim","x","x.mean([2, 3])",[dict(x=[1,2,4,4])]),
("mean_dimk","x","torch.mean(x, dim=(2, 3), keepdim=True)",[dict(x=[1,2,4,4])]),
("mean_one","x","x.mean(1)",[dict(x=[1,2,4,4])]),
("sum","x","x.sum()",[dict(x=[1,2])]),
("sum_dim","x","torch.sum(x, 1)",[dict(x=[1,2])]),
("amax","x","torch.amax(x, 1)",[dict(x=[1,2])]),
("max_dim","x","torch.max(x, 1)[0]",[dict(x=[1,2])]),
("argmax","x","x.argmax(1)",[dict(x=[1,2])]),
("pow","x","x.pow(2)",[dict(x=[1,2])]),
("powop","x","x ** 2",[dict(x=[1,2])]),
("sqrt","x","torch.sqrt(x)",[dict(x=[1,2])]),
("rsqrt","x","torch.rsqrt(x)",[dict(x=[1,2])]),
("exp","x","torch.exp(x)",[dict(x=[1,2])]),
("log","x","torch.log(x)",[dict(x=[1,2])]),
("neg","x","-x",[dict(x=[1,2])]),
("abs","x","torch.abs(x)",[dict(x=[1,2])]),
("erf","x","torch.erf(x)",[dict(x=[1,2])]),
("clamp","x","torch.clamp(x, 0, 6)",[dict(x=[1,2])]),
("clampm","x","x.clamp(min=0)",[dict(x=[1,2])]),
("minimum","x,y","torch.minimum(x, y)",[dict(x=[1,2],y=[1,2])]),
("add","x,y","x + y",[dict(x=[1,2],y=[1,2]),dict(x=[1,2],y=2)]),
("addm","x,y","x.add(y)",[dict(x=[1,2],y=[1,2])]),
("addalpha","x,y","torch.add(x, y, alpha=2)",[dict(x=[1,2],y=[1,2])]),
("radd","x","1 + x",[dict(x=[1,2])]),
("sub","x,y","x - y",[dict(x=[1,2],y=[1,2])]),
("rsub","x","1 - x",[dict(x=[1,2])]),
("mul","x,y","x * y",[dict(x=[1,2],y=[1,2]),dict(x=[1,2],y=2.5)]),
("div","x,y","x / y",[dict(x=[1,2],y=[1,2]),dict(x=[1,2],y=2)]),
("rdiv","x","1 / x",[dict(x=[1,2])]),
("floordiv","x","x // 2",[dict(x=[1,2])]),
("matmul","x,y","torch.matmul(x, y)",[dict(x=[2,3],y=[3,2]),dict(x=[2,2,3],y=[2,3,2]),dict(x=[1,2,2,3],y=[1,2,3,2])]),
("matmulop","x,y","x @ y",[dict(x=[2,3],y=[3,2])]),
("bmm","x,y","torch.bmm(x, y)",[dict(x=[2,2,3],y=[2,3,2])]),
("mm","x,y","torch.mm(x, y)",[dict(x=[2,3],y=[3,2])]),
("addmm","x,y,z","torch.addmm(x, y, z)",[dict(x=[2,2],y=[2,3],z=[3,2])]),
("einsum","x,y","torch.einsum('bij,bjk->bik', x, y)",[dict(x=[2,2,3],y=[2,3,2])]),
("cat","x,y","torch.cat([x, y], 1)",[dict(x=[1,2],y=[1,2])]),
("catd","x,y","torch.cat((x, y), dim=1)",[dict(x=[1,2],y=[1,2])]),
("cat0","x,y","torch.cat([x, y])",[dict(x=[1,2],y=[1,2])]),
("stack","x,y","torch.stack([x, y], 1)",[dict(x=[1,2],y=[1,2])]),
("chunk","x","torch.chunk(x, 2, 1)[0]",[dict(x=[1,4])]),
("chunkm","x","x.chunk(2, dim=-1)[1]",[dict(x=[1,4])]),
("split","x","torch.split(x, 2, 1)[0]",[dict(x=[1,4])]),
("unbind","x","torch.unbind(x, 1)[0]",[dict(x=[1,2])]),
("view","x","x.view(2, -1)",[dict(x=[2,2,2])]),
("viewl","x","x.view([2, -1])",[dict(x=[2,2,2])]),
("view_sz","x","x.view(x.size(0), -1)",[dict(x=[2,2,2]),dict(x=[-1,2,2])]),
("view_shape","x","x.view(x.shape[0], -1)",[dict(x=[2,2,2]),dict(x=[-1,2,2])]),
("heads","x","x.view(x.shape[0], x.shape[1], 2, 4).transpose(1, 2)",[dict(x=[2,3,8]),dict(x=[-1,3,8])]),
("reshape","x","x.reshape(4, -1)",[dict(x=[2,2,2])]),
("reshapet","x","torch.reshape(x, (4, -1))",[dict(x=[2,2,2])]),
("permute","x","x.permute(0, 2, 1)",[dict(x=[2,2,2])]),
("permutet","x","torch.permute(x, (0, 2, 1))",[dict(x=[2,2,2])]),
("transpose","x","x.transpose(-2, -1)",[dict(x=[2,2,2])]),
("transposet","x","torch.transpose(x, 0, 1)",[dict(x=[2,2,2])]),
("t","x","x.t()",[dict(x=[2,2])]),
("T","x","x.T",[dict(x=[2,2])]),
("contig","x","x.transpose(0, 1).contiguous()",[dict(x=[2,2])]),
("squeeze","x","x.squeeze(1)",[dict(x=[2,1])]),
("squeeze0","x","x.squeeze()",[dict(x=[2,1])]),
("unsqueeze","x","x.unsqueeze(1)",[dict(x=[2,1])]),
("expand","x","x.expand(2, 3)",[dict(x=[2,1])]),
("repeat","x","x.repeat(2, 3)",[dict(x=[2,1])]),
("slice","x","x[:, 1:]",[dict(x=[2,4])]),
("sliceidx","x","x[:, 0]",[dict(x=[2,4])]),
("select","x","x.select(1, 0)",[dict(x=[2,4])]),
("pad","x","F.pad(x, [1, 1])",[dict(x=[2,4])]),
("padr","x","F.pad(x, [1, 1], mode='reflect')",[dict(x=[2,4])]),
("embedding","x,w","F.embedding(x, w)",[dict(x=('i',[2,4]),w=[10,3])]),
("embpad","x,w","F.embedding(x, w, padding_idx=0)",[dict(x=('i',[2,4]),w=[10,3])]),
("sdpa","q,k,v","F.scaled_dot_product_attention(q, k, v)",[dict(q=[1,2,3,4],k=[1,2,3,4],v=[1,2,3,4])]),
("sdpac","q,k,v","F.scaled_dot_product_attention(q, k, v, is_causal=True)",[dict(q=[1,2,3,4],k=[1,2,3,4],v=[1,2,3,4])]),
("masked","x,m","x.masked_fill(m, -1000.0)",[dict(x=[2,2],m=('b',[2,2]))]),
("where","m,x,y","torch.where(m, x, y)",[dict(x=[2,2],y=[2,2],m=('b',[2,2]))]),
("typefloat","x","x.float()",[dict(x=('i',[2,2]))]),
("to","x","x.to(torch.float32)",[dict(x=('i',[2,2]))]),
("typeas","x,y","x.type_as(y)",[dict(x=('i',[2,2]),y=[2])]),
("glu","x","F.glu(x, 1)",[dict(x=[2,4])]),
("pixel","x","F.pixel_shuffle(x, 2)",[dict(x=[1,4,2,2])]),
("iadd","x,y","operator.iadd(x * 1, y)",[dict(x=[1,2],y=[1,2])]),
("imul","x,y","operator.imul(x * 1, y)",[dict(x=[1,2],y=[1,2])]),
("relu_","x","F.relu_(x * 1)",[dict(x=[1,2])]),
("add_","x,y","(x * 1).add_(y)",[dict(x=[1,2],y=[1,2])]),
("var","x","x.var(-1, keepdim=True, unbiased=False)",[dict(x=[2,4])]),
("ln_hand","x,g,b","(x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-05) * g + b",[dict(x=[2,4],g=[4],b=[4])]),
("geluhand","x","0.5 * x * (1.0 + torch.erf(x / 1.4142135623730951))",[dict(x=[2,4])]),
("swish","x","x * torch.sigmoid(x)",[dict(x=[2,4])]),
("hswish","x","x * F.relu6(x + 3) / 6",[dict(x=[2,4])]),
("lstm","x,h,c,w,u,bi,bh","torch.lstm(x, [h, c], [w, u, bi, bh], True, 1, 0.0, False, False, False)[0]",[dict(x=[4,2,8],h=[1,2,8],c=[1,2,8],w=[32,8],u=[32,8],bi=[32],bh=[32])]),
]
for a in "relu relu6 hardtanh hardswish hardsigmoid silu mish leaky_relu elu selu celu gelu softplus logsigmoid hardshrink softshrink threshold".split():
    CALLS.append((a,"x",f"F.{a}(x{', 0.1, 0.0' if a=='threshold' else ''})",[dict(x=[2,8])]))
    if a in "relu relu6 hardtanh hardswish hardsigmoid silu leaky_relu elu".split(): CALLS.append((a+"_ip","x",f"F.{a}(x * 1, inplace=True)",[dict(x=[2,8])]))
for a in "sigmoid tanh".split():
    CALLS.append((a,"x",f"torch.{a}(x)",[dict(x=[2,8])])); CALLS.append((a+"_m","x",f"x.{a}()",[dict(x=[2,8])]))
# fmt: on

SYMBOLS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.MatMult: "@", ast.FloorDiv: "//"}


class Flatten:
    """An expression, one operation a line, as generated code is written."""

    def __init__(self):
        self.lines = []

    def line(self, text):
        self.lines.append(f"v{len(self.lines)} = {text}")
        return self.lines[-1].split(" ")[0]

    def flat(self, e):
        if isinstance(e, ast.Call) and ast.unparse(e.func) in ("operator.iadd", "operator.imul"):
            target, other = self.flat(e.args[0]), self.flat(e.args[1])
            symbol = "+=" if e.func.attr == "iadd" else "*="
            self.lines.append(f"{target} {symbol} {other};  v{len(self.lines)} = {target}")
            return f"v{len(self.lines) - 1}"
        if isinstance(e, ast.Call):
            args = [self.flat(a) for a in e.args] + [f"{k.arg} = {self.flat(k.value)}" for k in e.keywords]
            name = ast.unparse(e.func)
            if isinstance(e.func, ast.Attribute) and not name.startswith(("F.", "torch.", "operator.")):
                return self.line(f"{self.flat(e.func.value)}.{e.func.attr}({', '.join(args)})")
            return self.line(f"{name.replace('F.', 'torch.nn.functional.', 1) if name.startswith('F.') else name}"
                             f"({', '.join(args)})")
        if isinstance(e, ast.BinOp):
            left, right = self.flat(e.left), self.flat(e.right)
            return self.line(f"{left} {SYMBOLS[type(e.op)]} {right}")
        if isinstance(e, ast.UnaryOp) and not isinstance(e.operand, ast.Constant):
            return self.line(f"-{self.flat(e.operand)}")
        if isinstance(e, ast.Attribute) and ast.unparse(e.value) != "torch":
            return self.line(f"{self.flat(e.value)}.{e.attr}")
        if isinstance(e, ast.Subscript):
            base = self.flat(e.value)
            return self.line(f"{base}[{self.index(e.slice)}]")
        if isinstance(e, (ast.List, ast.Tuple)):
            items = ", ".join(self.flat(i) for i in e.elts)
            return f"[{items}]" if isinstance(e, ast.List) else f"({items}{',' if len(e.elts) == 1 else ''})"
        return ast.unparse(e)

    def index(self, e):
        if isinstance(e, ast.Tuple):
            return "(" + ", ".join(self.index(i) for i in e.elts) + ")"
        if isinstance(e, ast.Slice):
            return f"slice({', '.join(ast.unparse(p) if p else 'None' for p in (e.lower, e.upper, e.step))})"
        return ast.unparse(e)


def pattern_code(params, expression):
    f = Flatten()
    result = f.flat(ast.parse(expression, mode="eval").body)
    return "\n    ".join([f"def forward(self, {', '.join(params)}):", *f.lines, f"return {result}"]) + "\n"


def spell(v):
    if isinstance(v, torch.fx.Node):
        return v.name
    if isinstance(v, (list, tuple)):
        return "[" + ", ".join(spell(i) for i in v) + "]"
    return repr(v)


def exported_code(module):
    lines, params = [], []
    for n in module.graph.nodes:
        if n.op == "placeholder":
            params.append(n.name)
        elif n.op == "output":
            lines.append(f"return {spell(n.args[0][0])}")
        elif n.op == "call_function" and "_assert_tensor_metadata" not in str(n.target):
            if n.target is operator.getitem:
                lines.append(f"{n.name} = {spell(n.args[0])}[{n.args[1]}]")
                continue
            args = [spell(a) for a in n.args] + [f"{k} = {spell(v)}" for k, v in n.kwargs.items()]
            lines.append(f"{n.name} = torch.ops.{n.target}({', '.join(args)})")
    return "\n    ".join([f"def forward(self, {', '.join(params)}):", *lines]) + "\n"


def make_input(given):
    kind, shape = given if isinstance(given, tuple) else ("f", given)
    if not isinstance(shape, list):
        return shape, None, {"constant": repr(shape)}
    sizes = [s if s >= 0 else 3 for s in shape]
    value = {"f": torch.rand(sizes) + 0.5, "i": torch.randint(0, 2, sizes), "b": torch.rand(sizes) > 0.5}[kind]
    dtype = {"f": "torch.float32", "i": "torch.int64", "b": "torch.bool"}[kind]
    return value, {i: Dim.AUTO for i, s in enumerate(shape) if s < 0} or None, {"shape": shape, "dtype": dtype}


def record(name, params, expression, example):
    names = params.split(",")
    space = {}
    exec(f"import torch, operator\nimport torch.nn.functional as F\nclass M(torch.nn.Module):\n"
         f"    def forward(self, {params}):\n        return {expression}\n", space)
    inputs = [make_input(example[p]) for p in names]
    exported = torch.export.export(space["M"](), tuple(i[0] for i in inputs),
                                   dynamic_shapes={p: i[1] for p, i in zip(names, inputs)}, strict=True)
    module = exported.module(check_guards=False)
    module.graph.eliminate_dead_code()
    return {"name": name, "pattern": pattern_code(names, expression), "example": [i[2] for i in inputs],
            "exported": exported_code(module)}


if __name__ == "__main__":
    cases = [record(name, params, expression, e) for name, params, expression, examples in CALLS for e in examples]
    print(json.dumps(cases, indent=0))
