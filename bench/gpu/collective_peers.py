"""PyTorch's part of bench/gpu/collectives: NCCL, and torch symmetric memory without multicast, in CUDA graphs of twenty calls.

usage: collective_peers.py RANKS OUT.json BYTES,...      one process per GPU is started by the script itself

Times are microseconds of one call, median of five graphs, the slowest rank. A size is what one rank gives to another; of all_reduce
the whole.
"""
import json
import os
import statistics
import sys

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric_memory
import torch.multiprocessing as multiprocessing

CALLS = 20


def slowest(value):
    cell = torch.tensor([value], device='cuda', dtype=torch.float64)
    dist.all_reduce(cell, op=dist.ReduceOp.MAX)
    return cell.item()


def graph_time(call):
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    dist.barrier()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            call()
    times = []
    for turn in range(7):
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        torch.cuda._sleep(1000000)  # until all ranks have enqueued
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        if turn >= 2:
            times.append(begin.elapsed_time(end) * 1e3 / CALLS)
    return slowest(statistics.median(times))


def work(rank, ranks, out, sizes):
    os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT='29511', RANK=str(rank), WORLD_SIZE=str(ranks))
    torch.cuda.set_device(rank)
    dist.init_process_group('nccl', rank=rank, world_size=ranks, device_id=torch.device('cuda', rank))
    group = dist.group.WORLD.group_name
    rows = []
    for size in sizes:
        count = size // 2
        part = torch.randn(count, device='cuda', dtype=torch.bfloat16)
        parts = torch.randn(count * ranks, device='cuda', dtype=torch.bfloat16)
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
        with open(out, 'w') as file:
            json.dump({'ranks': ranks, 'gpu': torch.cuda.get_device_name(0), 'rows': rows}, file, indent=1)
    dist.destroy_process_group()


if __name__ == '__main__':
    os.environ.setdefault('NCCL_NVLS_ENABLE', '0')
    os.environ.setdefault('TORCH_SYMM_MEM_DISABLE_MULTICAST', '1')
    number = int(sys.argv[1])
    multiprocessing.spawn(work, (number, sys.argv[2], [int(size) for size in sys.argv[3].split(',')]), nprocs=number)
