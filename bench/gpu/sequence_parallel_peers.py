"""PyTorch's part of bench/gpu/sequence_parallel: cuBLAS products with NCCL's all-to-all and the transposition between them, and cuDNN's attention behind NCCL's AllGather.

usage: sequence_parallel_peers.py GPUS CASES.json OUT.json

CASES.json is a list of {"part", "case", "shape"} of `sequence_parallel`. OUT.json is written as it goes: rows with the part, the case, the microseconds of the whole and
of its parts by themselves. Attention is that of a rank's share of the heads to all tokens, which without causality takes as long as its share of the
queries; no AllGather in front of the ring's backward is timed, for that needs the sums of its gradients, too.
"""
import functools
import json
import sys

import torch
import torch.distributed as dist
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from comparison import save
from torch_calls import measured, random, start


def gemm_a2a(ranks, tokens, hidden, columns):
    own, part = tokens // ranks, columns // ranks
    a, weight, got, sent = random(own, hidden), random(columns, hidden), random(ranks, own, part), random(ranks, own, part)
    product = lambda: a @ weight.T
    exchange = lambda: dist.all_to_all_single(got, sent)

    def whole():
        dist.all_to_all_single(got, product().view(own, ranks, part).transpose(0, 1).contiguous())
    return whole, {'product': product, 'all-to-all': exchange}


def a2a_gemm(ranks, tokens, hidden, depth):
    own, part = tokens // ranks, depth // ranks
    sent, got, weight, a = random(ranks, own, part), random(ranks, own, part), random(hidden, depth), random(own, depth)
    exchange = lambda: dist.all_to_all_single(got, sent)

    def whole():
        exchange()
        return got.transpose(0, 1).reshape(own, depth) @ weight.T
    return whole, {'product': lambda: a @ weight.T, 'all-to-all': exchange}


def attention(causal, ranks, batch, heads, kv_heads, tokens, head_dim):
    q = random(batch, heads // ranks, tokens, head_dim)
    k, v = (random(batch, kv_heads // ranks, tokens, head_dim) for _ in range(2))
    shard, gathered = random(2, batch, kv_heads, tokens // ranks, head_dim), random(2 * ranks, batch, kv_heads, tokens // ranks, head_dim)

    def alone():
        with torch.no_grad(), sdpa_kernel([SDPBackend.CUDNN_ATTENTION]):
            return scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
    gather = lambda: dist.all_gather_into_tensor(gathered, shard)

    def whole():
        gather()
        alone()
    return whole, {'attention': alone, 'AllGather': gather}


MAKERS = {'gemm_a2a': gemm_a2a, 'a2a_gemm': a2a_gemm, 'ag_causal': functools.partial(attention, True), 'ag_whole': functools.partial(attention, False),
          'ring_causal': functools.partial(attention, True)}


def work(rank, ranks, cases_file, out):
    with open(cases_file) as file:
        cases = json.load(file)
    rows = []
    for case in cases:
        if case['part'] not in MAKERS:
            continue
        whole, parts = MAKERS[case['part']](ranks, *case['shape'])
        rows.append({'part': case['part'], 'case': case['case'], 'peer': measured(whole), 'parts': {name: measured(call) for name, call in parts.items()}})
        if rank == 0:
            save(out, {'torch': torch.__version__, 'rows': rows})


if __name__ == '__main__':
    start(work, int(sys.argv[1]), 29515, sys.argv[2], sys.argv[3])
