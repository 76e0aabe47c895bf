"""What a PyTorch user has today at each number of rows: cuBLAS, NCCL, both one after the other, PyTorch's overlapped operators.

usage: tensor_parallel_peers.py GPUS      answers requests until its input ends

A request is a line of JSON, {"operator": "ag_gemm" | "gemm_rs" | "gemm_ar", "columns": N, "depth": K, "rows": [M, ...]}; "RESULT" and a list
of what each number of rows takes is the answer. "RESULT null" says at the start that all is ready: processes and communicators are made once.

Microseconds of a call: the better of up to twenty enqueued in a row and as many replays of a captured graph, the median of five, on the slowest
rank. Where the rows do not divide by the ranks, NCCL's part is padded to rows that do.
"""
import json
import queue
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing

from torch_calls import measured, random, start


def measure(operator, rows, columns, depth, weights, world, group):
    """`weights` is this rank's part: [columns / world, depth] or [columns, depth / world]."""
    row, share = {'rows': rows}, -(-rows // world)
    if operator == 'ag_gemm':
        a, full = random(share, depth), random(share * world, depth)
        out = torch.empty(rows, weights.shape[0], device='cuda', dtype=torch.bfloat16)
        multiply = lambda: torch.mm(full[:rows], weights.t(), out=out)
        exchange = lambda: dist.all_gather_into_tensor(full, a)
        both = lambda: (exchange(), multiply())
        overlapped = (lambda: torch.ops.symm_mem.fused_all_gather_matmul(a, [weights.t()], 0, group)) if rows % world == 0 else None
    else:
        a, full = random(rows, weights.shape[1]), random(share * world, columns)
        out = torch.empty(share, columns, device='cuda', dtype=torch.bfloat16)
        multiply = lambda: torch.mm(a, weights.t(), out=full[:rows])
        exchange = (lambda: dist.reduce_scatter_tensor(out, full)) if operator == 'gemm_rs' else (lambda: dist.all_reduce(full[:rows]))
        both = lambda: (multiply(), exchange())
        overlapped = (lambda: torch.ops.symm_mem.fused_matmul_reduce_scatter(a, weights.t(), 'sum', 0, group)) \
            if operator == 'gemm_rs' and rows % world == 0 else None
    row['cublas'], row['nccl'], row['cublas_nccl'] = measured(multiply), measured(exchange), measured(both)
    # async-TP begins with barriers of streams of its own, which captures do not take.
    row['async_tp'] = measured(overlapped, captures=False) if overlapped and world > 1 else None
    return row


def work(rank, world, requests, answers):
    import torch.distributed._symmetric_memory as symmetric
    group = dist.group.WORLD.group_name
    try:
        symmetric.enable_symm_mem_for_group(group)
    except Exception as error:
        print('peer:', error, flush=True)
    dist.barrier()
    answer = None
    while True:
        if rank == 0:
            answers.put(answer)
        request = requests[rank].get()
        if request is None:
            break
        operator, columns, depth = request['operator'], request['columns'], request['depth']
        weights = random(columns // world, depth) if operator == 'ag_gemm' else random(columns, depth // world)
        answer = [measure(operator, rows, columns, depth, weights, world, group) for rows in request['rows']]
        del weights
        torch.cuda.empty_cache()


def main():
    world = int(sys.argv[1])
    context = multiprocessing.get_context('spawn')
    answers = context.Queue()
    requests = [context.Queue() for _ in range(world)]
    ranks = start(work, world, 29519, requests, answers, join=False)

    def answer():
        while True:
            try:
                return answers.get(timeout=1)
            except queue.Empty:
                ranks.join(timeout=0)  # raises what a rank has raised

    print('RESULT', json.dumps(answer()), flush=True)
    for line in sys.stdin:
        for each in requests:
            each.put(json.loads(line))
        print('RESULT', json.dumps(answer()), flush=True)
    for each in requests:
        each.put(None)
    ranks.join(timeout=20)


if __name__ == '__main__':
    main()
