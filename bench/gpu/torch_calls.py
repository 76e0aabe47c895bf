"""How calls of PyTorch are timed beside Ditron's operators on several GPUs: a process for each GPU, all together, the slowest rank counts."""
import os
import statistics

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing


def start(work, ranks, port, *arguments, join=True):
    """work(rank, ranks, *arguments) in a process for each GPU, in a group of NCCL. NVLink multicast stays off. Returns when all have ended, or, not
    `join`, what can be asked about them."""
    os.environ.update(NCCL_NVLS_ENABLE='0', TORCH_SYMM_MEM_DISABLE_MULTICAST='1', MASTER_ADDR='127.0.0.1', MASTER_PORT=str(port), WORLD_SIZE=str(ranks))
    return multiprocessing.spawn(begin, (ranks, work, arguments), nprocs=ranks, join=join)


def begin(rank, ranks, work, arguments):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
    torch.cuda.set_device(rank)
    dist.init_process_group('nccl', rank=rank, world_size=ranks, device_id=torch.device('cuda', rank))
    work(rank, ranks, *arguments)
    dist.destroy_process_group()


def random(*shape):
    return torch.randn(*shape, device='cuda', dtype=torch.bfloat16)


def slowest(value):
    cell = torch.tensor([value], device='cuda', dtype=torch.float64)
    dist.all_reduce(cell, op=dist.ReduceOp.MAX)
    return cell.item()


def timed(call, count, repeats, alone=False):
    """Microseconds of one of `count` calls that `call` makes, the median of so many times. alone: this rank measures, and no other."""
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        if not alone:
            dist.barrier()
            torch.cuda.synchronize()
        torch.cuda._sleep(1000000)  # until all ranks have enqueued
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1000 / count)
    return statistics.median(times) if alone else slowest(statistics.median(times))


def repeated(call, count):
    def calls():
        for _ in range(count):
            call()
    return calls


def captured(call, count):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        repeated(call, count)()
    return graph.replay


def graph_time(call, count=20, repeats=5):
    """Of a call among `count` that are captured in one graph."""
    repeated(call, 3)()
    torch.cuda.synchronize()
    dist.barrier()
    replay = captured(call, count)
    repeated(replay, 2)()
    return timed(replay, count, repeats)


def measured(call, captures=True, repeats=5, alone=False):
    """The better of calls in a row and of those in a captured graph; None for what this version of PyTorch does not have."""
    try:
        repeated(call, 3)()
        # Twenty calls, but no longer than about 20 ms; all ranks have the same time, and so the same number.
        count = min(20, max(3, round(20000 / timed(repeated(call, 2), 2, 1, alone))))
        times = [timed(repeated(call, count), count, repeats, alone)]
        if captures:
            times.append(timed(captured(call, count), count, repeats, alone))
        return min(times)
    except Exception as error:
        if dist.get_rank() == 0:
            print('peer:', str(error)[:300], flush=True)
        return None
