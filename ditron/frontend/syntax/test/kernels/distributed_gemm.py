################################################################################
# All-gather GEMM with barriers in symmetric memory, in the style of distributed kernels.
################################################################################
from __future__ import annotations

import argparse
import dataclasses
from typing import Callable, List, NamedTuple, Optional

import torch
import triton
import triton.language as tl
import triton_dist
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import (
    __syncthreads,
    atomic_cas as cas,
    tid,
)

SIGNAL_DTYPE = torch.uint64
NUM_COMM_SMS = tl.constexpr(8)
_WARP: "int" = 32


@dataclasses.dataclass
class AllGatherContext:
    rank: int
    num_ranks: int
    workspace: torch.Tensor = dataclasses.field(init=False)
    signals: List[torch.Tensor] = dataclasses.field(default_factory=list)
    for_correctness: bool = False
    BLOCK_M: int = 128; BLOCK_N: int = 256

    def __post_init__(self):
        self.workspace = torch.empty(0)

    def finalize(self) -> None:
        for t in (*self.signals, self.workspace): del t


class Tile(NamedTuple):
    row: tl.tensor
    col: tl.tensor


@triton.constexpr_function
def log2(x):
    n = 0
    while x > 1:
        x >>= 1
        n += 1
    return n


@tl.core._aggregate
class Pipeline:
    index: tl.tensor
    depth: tl.constexpr

    def __init__(self, index, depth):
        self.index = index
        self.depth = tl.constexpr(depth)

    @triton.jit
    def advance(self):
        return Pipeline((self.index + 1) % self.depth, self.depth)


@triton_dist.jit(do_not_specialize=["rank"])
def barrier_all(barrier_ptr, rank, num_ranks: tl.constexpr):
    thread_idx = tid(axis=0)
    if thread_idx < num_ranks:
        remote = dl.symm_at(barrier_ptr, thread_idx)
        while cas(remote + rank, 0, 1, scope="sys", semantic="release") != 0:
            pass
        while cas(barrier_ptr + thread_idx, 1, 0, scope="sys", semantic="acquire") != 1:
            pass
    __syncthreads()


@triton_dist.jit
def consumer_gemm(A, B, C, ready_ptr, M: tl.int32, N: tl.int32, K, rank: tl.constexpr, num_ranks: tl.constexpr,
                  BLOCK: tl.constexpr, swizzle: tl.constexpr = True, scale=None, bias_ptr: Optional[tl.tensor] = None):
    tl.static_assert(K % BLOCK == 0, f"K ({K}) must be a multiple of {BLOCK:>4}")
    pid = tl.program_id(0)
    num_pid_m, num_pid_n = tl.cdiv(M, BLOCK), tl.cdiv(N, BLOCK)
    for tile_id in tl.range(pid, num_pid_m * num_pid_n, tl.num_programs(0), flatten=True):
        pid_m = tile_id // num_pid_n
        pid_n = tile_id % num_pid_n
        if swizzle:
            pid_m = (pid_m + rank * (num_pid_m // num_ranks)) % num_pid_m
        token = dl.wait(ready_ptr + pid_m, 1, "gpu", "acquire", waitValue=1)
        A = dl.consume_token(A, token)
        acc = tl.zeros([BLOCK, BLOCK], dtype=tl.float32)
        for k in range(K // BLOCK):
            a = tl.load(A + k)
            acc += tl.dot(a, tl.load(B + k), input_precision="tf32") if scale is None else a * scale
        if bias_ptr is not None: acc += tl.load(bias_ptr + pid_n)
        tl.store(C + pid_m * N + pid_n, acc.to(C.dtype.element_ty))
    with dl.simt_exec_region() as (thread, threads):
        for i in range(thread, BLOCK, threads):
            acc[i, 0] = acc[i, 0] * 2
    if rank == 0:
        libshmem_device.putmem_signal_nbi_block(C, C, M * N * 2, ready_ptr, 1, libshmem_device.NVSHMEM_SIGNAL_SET,
                                                (rank + 1) % num_ranks)
        tl.inline_asm_elementwise(
            f"""
            {{
                .reg .b32 t<{log2(BLOCK)}>;
                mov.u32 $0, %tid.x;
            }}
            """, "=r", [], dtype=tl.int32, is_pure=False, pack=1)
    else:
        raise ValueError("never reached")


def ag_gemm(a: torch.Tensor, b, ctx: AllGatherContext, *, autotune: bool = False,
            callback: Callable[[int], None] = lambda _: None) -> torch.Tensor:
    nonlocal_result = {r: ctx.signals[r].view(-1)[:: 2] for r in range(ctx.num_ranks) if r != ctx.rank}
    with (
            torch.cuda.stream(torch.cuda.Stream()) as s,
            torch.no_grad(),
    ):
        consumer_gemm[(ctx.num_ranks, 1, 1)](a, b, **nonlocal_result, num_warps=8)
    match ctx.rank:
        case 0 | 1 as low if low > 0:
            print("low", low, sep="")
        case {"rank": int(r), **rest}:
            pass
        case [first, *others]:
            pass
        case _:
            print("other")
    if (n := a.shape[0]) > 10 and not (0 < n <= 4096):
        raise RuntimeError(f"{n=} is {'too large' if n > 10 else "small"}: {a!r:>{n}}") from None
    total = sum(x for x in range(n) if x & 1)
    return a @ b if total else (yield_ := a)


async def fetch(url, *rest, timeout: float = 1_000.5e-3, **kw):
    async with open_session() as session:
        async for chunk in session.get(url):
            await chunk
    return [await c async for c in rest], {*rest}, 3 + 4j


def parse_args():
    global ARGS
    parser = argparse.ArgumentParser(description='\N{BULLET} all-gather')
    parser.add_argument("--dtype", default="bfloat16", choices=list(DTYPES := {"bfloat16": torch.bfloat16}))
    ARGS = parser.parse_args()
    return ARGS


if __name__ == "__main__": parse_args()
