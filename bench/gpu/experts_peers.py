"""PyTorch's part of bench/gpu/experts: torch._grouped_mm with gathers and sums, NCCL, and NCCL's all-to-all.

usage: experts_peers.py GPUS CASES.json OUT.json

CASES.json is {"seconds": S, "grouped": [...], "tensor_parallel": [...], "expert_parallel": [...]} with the cases of `experts`. OUT.json is written as it
goes: rows with the part, the case's name, the operator and the microseconds of each peer. Which rows go where is known before the clock starts,
on the host too: what the peers' users have to do for it is not counted.
"""
import functools
import json
import sys
import time

import torch
import torch.distributed as dist

from comparison import save
from torch_calls import measured, random, start

measured_alone = functools.partial(measured, alone=True)


class Routing:
    """Experts chosen at random, those of a token different from each other."""

    def __init__(self, case, seed=7):
        tokens, experts, top_k = case['tokens'], case['experts'], case['top_k']
        generator = torch.Generator(device='cuda')
        generator.manual_seed(seed)
        self.chosen = torch.rand(tokens, experts, device='cuda', generator=generator).topk(top_k, dim=1).indices
        order = self.chosen.flatten().argsort(stable=True)
        counts = torch.bincount(self.chosen.flatten(), minlength=experts)
        self.source = order // top_k  # token of each row
        self.row_of_slot = order.argsort()
        self.ends = counts.cumsum(0).to(torch.int32)
        self.counts = counts.tolist()
        self.weights = torch.rand(tokens, top_k, device='cuda').to(torch.bfloat16)

    def sum(self, rows):
        """Of the rows of each token, times their weights."""
        tokens, top_k = self.weights.shape
        return (rows[self.row_of_slot].view(tokens, top_k, -1) * self.weights[:, :, None]).sum(1)


def experts_weights(experts, depth, columns, rows, routing, measured):
    """[experts, depth, columns], in the order in memory that torch._grouped_mm multiplies faster by."""
    plain = random(experts, depth, columns)
    turned = plain.transpose(1, 2).contiguous().transpose(1, 2)
    times = [measured(lambda: torch._grouped_mm(rows, weights, offs=routing.ends), captures=False, repeats=3) for weights in (plain, turned)]
    return turned if times[1] and (not times[0] or times[1] < times[0]) else plain


def grouped(case, add):
    routing = Routing(case)
    tokens = random(case['tokens'], case['k'])
    rows = tokens[routing.source]
    weights = experts_weights(case['experts'], case['k'], case['n'], rows, routing, measured_alone)
    product = lambda: torch._grouped_mm(rows, weights, offs=routing.ends)
    add('grouped_gemm', {'torch._grouped_mm': measured_alone(product)})
    add('grouped_gemm_gathered', {'gather + _grouped_mm + sum': measured_alone(
        lambda: routing.sum(torch._grouped_mm(tokens[routing.source], weights, offs=routing.ends)))})


def in_a_loop(routing, rows, weights):
    """An own product for each expert; the counts are known to the host."""
    parts = rows.split(routing.counts)
    return torch.cat([part @ weights[expert] for expert, part in enumerate(parts) if part.shape[0]])


def tensor_parallel(case, add):
    ranks = dist.get_world_size()
    tokens, hidden, experts = case['tokens'], case['hidden'], case['experts']
    inner = -(-(-(-case['inner'] // ranks)) // 8) * 8
    routing = Routing(case)
    own, full = random(tokens // ranks, hidden), random(tokens, hidden)
    up = experts_weights(experts, hidden, inner, full[routing.source], routing, measured)
    product = lambda: torch._grouped_mm(full[routing.source], up, offs=routing.ends)
    gather = lambda: dist.all_gather_into_tensor(full, own)
    add('ag_moe', {'NCCL + gather + _grouped_mm': measured(lambda: (gather(), product()))},
        {'product': measured(product), 'NCCL': measured(gather),
         'loop over experts': measured(lambda: (gather(), in_a_loop(routing, full[routing.source], up)), captures=False, repeats=3)})
    del up, own
    rows = random(tokens * case['top_k'], inner)
    down = experts_weights(experts, inner, hidden, rows, routing, measured)
    result = torch.empty(tokens // ranks, hidden, device='cuda', dtype=torch.bfloat16)
    product = lambda: routing.sum(torch._grouped_mm(rows, down, offs=routing.ends))
    looped = lambda: routing.sum(in_a_loop(routing, rows, down))
    alone = measured(product)
    add('moe_rs', {'_grouped_mm + sum + NCCL': measured(lambda: dist.reduce_scatter_tensor(result, product()))},
        {'product': alone, 'NCCL': measured(lambda: dist.reduce_scatter_tensor(result, full)),
         'loop over experts': measured(lambda: dist.reduce_scatter_tensor(result, looped()), captures=False, repeats=3)})
    add('moe_ar', {'_grouped_mm + sum + NCCL': measured(lambda: dist.all_reduce(product()))},
        {'product': alone, 'NCCL': measured(lambda: dist.all_reduce(full)),
         'loop over experts': measured(lambda: dist.all_reduce(looped()), captures=False, repeats=3)})


def as_fp8(x):
    """Each 128 elements divided by their largest magnitude / 448, as Ditron's rows travel."""
    blocks = x.view(x.shape[0], -1, 128).float()
    scales = blocks.abs().amax(2).clamp(min=1e-4) / 448
    return (blocks / scales[:, :, None]).to(torch.float8_e4m3fn).view(x.shape[0], -1).view(torch.uint8), scales


def expert_parallel(case, add):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    tokens, hidden = case['tokens'], case['hidden']
    x = random(tokens, hidden)
    to = Routing(case, seed=7 + rank).chosen // (case['experts'] // ranks)
    goes = torch.zeros(tokens, ranks, device='cuda', dtype=torch.bool).scatter_(1, to, True)  # a rank gets a token once
    index = torch.cat([goes[:, peer].nonzero().flatten() for peer in range(ranks)])
    send = goes.sum(0)
    receive = torch.empty_like(send)
    dist.all_to_all_single(receive, send)
    send, receive = send.tolist(), receive.tolist()
    there, back = random(sum(receive), hidden), random(sum(send), hidden)
    dispatch = {'NCCL all-to-all': measured(lambda: dist.all_to_all_single(there, x[index], receive, send))}
    if case['fp8']:
        rows = torch.empty(sum(receive), hidden, device='cuda', dtype=torch.uint8)
        scales = torch.empty(sum(receive), hidden // 128, device='cuda', dtype=torch.float32)

        def narrow():
            values, factors = as_fp8(x)
            dist.all_to_all_single(rows, values[index], receive, send)
            dist.all_to_all_single(scales, factors[index], receive, send)
        dispatch['NCCL all-to-all of fp8'] = measured(narrow)
        add('ep_dispatch', dispatch)
        return  # results travel as they are
    add('ep_dispatch', dispatch)

    def combine():
        dist.all_to_all_single(back, there, send, receive)
        return torch.zeros(tokens, hidden, device='cuda', dtype=torch.float32).index_add_(0, index, back.float())
    add('ep_combine', {'NCCL all-to-all + add': measured(combine)})


def work(rank, ranks, cases, out):
    deadline = time.time() + cases['seconds']
    found = {'gpu': torch.cuda.get_device_name(0), 'torch': torch.__version__, 'rows': [], 'problems': []}

    def write():
        if rank == 0:
            save(out, found)

    for part, function in (('expert_parallel', expert_parallel), ('tensor_parallel', tensor_parallel), ('grouped', grouped)):
        for case in cases[part]:
            left = torch.tensor([deadline - time.time()], device='cuda')
            dist.broadcast(left, 0)
            if left.item() <= 0:
                found['problems'].append(f'peers of {case["name"]}: no time left')
                continue

            def add(operator, peers, parts={}):
                found['rows'].append({'part': part, 'case': case['name'], 'operator': operator, 'peers': peers, 'parts': parts})
            if part != 'grouped' or rank == 0:  # which is of one GPU
                try:
                    function(case, add)
                except Exception as error:  # memory that is not there, most likely on all ranks
                    found['problems'].append(f'peers of {case["name"]}: {str(error)[:300]}')
            write()
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
    write()
    dist.barrier()


if __name__ == '__main__':
    with open(sys.argv[2]) as file:
        start(work, int(sys.argv[1]), 29523, json.load(file), sys.argv[3])
