# SPDX-License-Identifier: Apache-2.0
"""A step of training of the digits network, sharded over the processes of torchrun; the first one converts it.

usage: torchrun --nproc-per-node=2 fsdp_worker.py OUT.safetensors
"""
import sys

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

import tare
from support import digits


def main():
    dist.init_process_group("gloo")
    model, images = digits(16)
    prepared = tare.prepare_qat_fx(model.train(), "x86", backend_config="x86")
    module = prepared.to_torch()
    mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
    fully_shard(module, mesh=mesh)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
    mine = torch.from_numpy(images)[dist.get_rank()::dist.get_world_size()]
    for _ in range(2):
        optimizer.zero_grad()
        module(mine).square().mean().backward()
        optimizer.step()
    trained = tare.from_torch(module.eval())  # gathers the shards: all processes take part
    if dist.get_rank() == 0:
        converted = tare.convert_fx(trained, backend_config="x86")
        assert str(converted(images).shape) == "(16, 10)"
        converted.save(sys.argv[1])
    dist.destroy_process_group()


main()
