"""PyTorch's part of bench/gpu/collectives: NCCL, and torch symmetric memory without multicast, in CUDA graphs of twenty calls.

usage: collective_peers.py RANKS OUT.json BYTES,...      one process per GPU is started by the script itself

Times are microseconds of one call, median of five graphs, the slowest rank. A size is what one rank gives to another; of all_reduce
the whole.
"""
import sys

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric_memory

from comparison import save
from torch_calls import graph_time, random, start


def work(rank, ranks, out, sizes):
    group = dist.group.WORLD.group_name
    rows = []
    for size in sizes:
        count = size // 2
        part = random(count)
        parts = random(count * ranks)
        gathered, own = torch.empty_like(parts), torch.empty_like(part)
        contenders = {
            ('all_reduce', 'NCCL'): lambda: dist.all_reduce(part),
            ('all_gather', 'NCCL'): lambda: dist.all_gather_into_tensor(gathered, part),
            ('reduce_scatter', 'NCCL'): lambda: dist.reduce_scatter_tensor(own, parts),
            ('all_to_all', 'NCCL'): lambda: dist.all_to_all_single(gathered, parts),
            ('broadcast', 'NCCL'): lambda: dist.broadcast(part, 0),
        }
        shared = symmetric_memory.empty(count, dtype=torch.bfloat16, device='cuda')
        symmetric_memory.rendezvous(shared, group)
        shared.zero_()
        if size <= 4 << 20:
            contenders['all_reduce', 'torch one-shot'] = lambda: torch.ops.symm_mem.one_shot_all_reduce(shared, 'sum', group)
        contenders['all_reduce', 'torch two-shot'] = lambda: torch.ops.symm_mem.two_shot_all_reduce_(shared, 'sum', group)
        for (kind, peer), call in contenders.items():
            rows.append({'operator': kind, 'peer': peer, 'bytes': size, 'graph_us': graph_time(call)})
    if rank == 0:
        save(out, {'ranks': ranks, 'gpu': torch.cuda.get_device_name(0), 'rows': rows})


if __name__ == '__main__':
    start(work, int(sys.argv[1]), 29511, sys.argv[2], [int(size) for size in sys.argv[3].split(',')])
