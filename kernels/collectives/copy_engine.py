"""Device code of the collectives' form `copy_engine` (host side: ditron/ops/collectives/CopyEngineProtocol.cpp).

A call begins with `enter` (kernels/tensor_parallel_gemm), which meets the other ranks and stages the operand in symmetric memory.
Copy engines then push parts to the peers' staging memory, each followed by a copy of the generation word to the peer's word of this
rank. copy_arrived takes parts out as they come.
"""
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit(do_not_specialize=["rank", "root"])
def copy_arrived(own_ptr, staged_ptr, out_ptr, arrived_ptr, generation_ptr, n, rank, root, WORLD: tl.constexpr,
                 ROOTED: tl.constexpr, BLOCK: tl.constexpr):
    """staged_ptr [WORLD, n] to out_ptr [WORLD, n], but this rank's part, which is own_ptr [n]; with ROOTED staged_ptr or, on the root,
    own_ptr [n] to out_ptr [n]. arrived_ptr: symmetric, [WORLD], the number of the call when a rank's part is there.
    """
    generation = tl.load(generation_ptr)
    lanes = tl.arange(0, BLOCK)
    step = tl.cast(tl.num_programs(0), tl.int64) * BLOCK
    # In the order in which peers push to this rank.
    for distance in range(1 if ROOTED else WORLD):
        source = root if ROOTED else (rank + WORLD - distance) % WORLD
        place = 0 if ROOTED else tl.cast(source, tl.int64) * n
        part_ptr = own_ptr
        if source != rank:
            token = dl.wait(arrived_ptr + source, 1, "sys", "acquire", waitValue=generation, compare="ge")
            part_ptr = dl.consume_token(staged_ptr + place, token)
        for start in range(tl.cast(tl.program_id(0), tl.int64) * BLOCK, n, step):
            mask = lanes < n - start
            tl.store(out_ptr + place + start + lanes, tl.load(part_ptr + start + lanes, mask=mask), mask=mask)
