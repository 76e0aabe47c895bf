# A barrier over more blocks than the GPU holds: the ones that run wait for others that cannot start before they end.
import triton
import triton.language as tl


@triton.jit
def buggy(count_ptr, out_ptr):
    blocks = tl.num_programs(0)
    tl.atomic_add(count_ptr, 1, sem="acq_rel", scope="gpu")
    while tl.atomic_add(count_ptr, 0, sem="acquire", scope="gpu") < blocks:  # !wait
        pass
    tl.store(out_ptr + tl.program_id(0), 1)


@triton.jit
def fixed(count_ptr, out_ptr):
    blocks = tl.num_programs(0)
    tl.atomic_add(count_ptr, 1, sem="acq_rel", scope="gpu")
    while tl.atomic_add(count_ptr, 0, sem="acquire", scope="gpu") < blocks:
        pass
    for item in range(tl.program_id(0), 64, blocks):
        tl.store(out_ptr + item, 1)
