# Everyone adds one, waits for all, and takes its one off again: who is fast counts for the next round, or takes off what a slow one
# has not yet seen.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(count_ptr, out_ptr):
    there = dl.symm_at(count_ptr, 0)
    for step in range(3):
        tl.atomic_add(there, 1, sem="acq_rel", scope="sys")
        while tl.atomic_add(there, 0, sem="acquire", scope="sys") < dl.num_ranks():  # !wait
            pass
        tl.atomic_add(there, -1, sem="acq_rel", scope="sys")
    tl.store(out_ptr, 1)


@triton.jit
def fixed(count_ptr, out_ptr):
    there = dl.symm_at(count_ptr, 0)
    for step in range(3):
        tl.atomic_add(there, 1, sem="acq_rel", scope="sys")
        while tl.atomic_add(there, 0, sem="acquire", scope="sys") < (step + 1) * dl.num_ranks():
            pass
    tl.store(out_ptr, 1)
