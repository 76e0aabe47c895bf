"""What a PyTorch user has today, on the papers' shapes: cuBLAS and NCCL one after the other, and PyTorch's overlapped operators.

usage: peers.py GPUS OUT.json [MODEL...]

All times are milliseconds of one call among 20 in a row, the median of five rows, on the slowest rank; random bf16 data.
"""
import json, os, statistics, sys, torch, torch.distributed as dist, torch.multiprocessing as mp

GATHER = [("LLaMA-7B", 8192, 11008, 4096), ("LLaMA3.1-8B", 8192, 14336, 4096), ("LLaMA3.1-70B", 8192, 28672, 8192),
          ("LLaMA3.1-405B", 8192, 53248, 16384), ("Qwen2-72B", 8192, 29568, 8192)]


def in_a_row(call, count=20, rows=5):
    for _ in range(3):
        call()
    times = []
    for _ in range(rows):
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        torch.cuda._sleep(1000000)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(count):
            call()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / count)
    slowest = torch.tensor([statistics.median(times)], device="cuda")
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.item()


def attempt(call):
    try:
        return in_a_row(call)
    except Exception as error:  # a form that this version does not have
        if dist.get_rank() == 0:
            print("peer:", str(error)[:300], flush=True)
        return None


def random(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def work(rank, world, path, models):
    shapes = [shape for shape in GATHER if not models or shape[0] in models]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517", RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(rank))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    group = dist.group.WORLD.group_name
    import torch.distributed._symmetric_memory as symmetric
    try:
        symmetric.enable_symm_mem_for_group(group)
    except Exception as error:
        print("peer:", error, flush=True)
    rows = []
    for model, m, n, k in shapes:
        a, b, full = random(m // world, k), random(n // world, k), random(m, k)
        row = {"op": "ag_gemm", "model": model}
        row["gemm"] = in_a_row(lambda: torch.mm(full, b.t()))
        row["comm"] = in_a_row(lambda: dist.all_gather_into_tensor(full, a))
        def after():
            dist.all_gather_into_tensor(full, a)
            return torch.mm(full, b.t())
        row["cublas_nccl"] = in_a_row(after)
        row["async_tp"] = attempt(lambda: torch.ops.symm_mem.fused_all_gather_matmul(a, [b.t()], 0, group)) if world > 1 else None
        rows.append(row)
        del a, b, full
    for model, m, k, n in shapes:  # N and K change places
        a, b = random(m, k // world), random(n, k // world)
        out, full = torch.empty(m // world, n, device="cuda", dtype=torch.bfloat16), random(m, n)
        row = {"op": "gemm_rs", "model": model}
        row["gemm"] = in_a_row(lambda: torch.mm(a, b.t(), out=full))
        row["comm"] = in_a_row(lambda: dist.reduce_scatter_tensor(out, full))
        def after():
            torch.mm(a, b.t(), out=full)
            dist.reduce_scatter_tensor(out, full)
        row["cublas_nccl"] = in_a_row(after)
        row["async_tp"] = attempt(lambda: torch.ops.symm_mem.fused_matmul_reduce_scatter(a, b.t(), "sum", 0, group)) if world > 1 else None
        rows.append(row)
        del a, b, out, full
    if rank == 0:
        with open(path, "w") as file:
            json.dump(rows, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, args=(int(sys.argv[1]), sys.argv[2], sys.argv[3:]), nprocs=int(sys.argv[1]))
