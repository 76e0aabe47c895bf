# Every rank sends two rows to the right before it takes one from the left. With one slot per rank the second never finds a free one.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(slot_ptr, full_ptr, free_ptr, out_ptr):
    i = tl.arange(0, 128)
    rank, ranks = dl.rank(), dl.num_ranks()
    right, left = (rank + 1) % ranks, (rank + ranks - 1) % ranks
    for step in range(2):
        dl.wait(free_ptr, 1, "sys", "acquire", waitValue=step, compare="ge")  # !wait
        tl.store(dl.symm_at(slot_ptr, right) + i, 100 * step + i)
        dl.notify(full_ptr, right, signal=step + 1, comm_scope="intra_node")
    for step in range(2):
        token = dl.wait(full_ptr, 1, "sys", "acquire", waitValue=step + 1, compare="ge")
        tl.store(out_ptr + 128 * step + i, tl.load(dl.consume_token(slot_ptr, token) + i))
        dl.notify(free_ptr, left, signal=step + 1, comm_scope="intra_node")


@triton.jit
def fixed(slot_ptr, full_ptr, free_ptr, out_ptr):
    i = tl.arange(0, 128)
    rank, ranks = dl.rank(), dl.num_ranks()
    right, left = (rank + 1) % ranks, (rank + ranks - 1) % ranks
    for step in range(2):
        dl.wait(free_ptr, 1, "sys", "acquire", waitValue=step, compare="ge")
        tl.store(dl.symm_at(slot_ptr, right) + i, 100 * step + i)
        dl.notify(full_ptr, right, signal=step + 1, comm_scope="intra_node")
        token = dl.wait(full_ptr, 1, "sys", "acquire", waitValue=step + 1, compare="ge")
        tl.store(out_ptr + 128 * step + i, tl.load(dl.consume_token(slot_ptr, token) + i))
        dl.notify(free_ptr, left, signal=step + 1, comm_scope="intra_node")
