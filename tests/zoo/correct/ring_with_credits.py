# Rows go once round the ring through one slot per rank; a slot is filled again only when its owner has given it back.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def kernel(slot_ptr, full_ptr, free_ptr, out_ptr):
    i = tl.arange(0, 128)
    rank, ranks = dl.rank(), dl.num_ranks()
    right, left = (rank + 1) % ranks, (rank + ranks - 1) % ranks
    row = rank + 0 * i
    for step in range(ranks - 1):
        dl.wait(free_ptr, 1, "sys", "acquire", waitValue=step, compare="ge")
        tl.store(dl.symm_at(slot_ptr, right) + i, row)
        dl.notify(full_ptr, right, signal=step + 1, comm_scope="intra_node")
        token = dl.wait(full_ptr, 1, "sys", "acquire", waitValue=step + 1, compare="ge")
        row = tl.load(dl.consume_token(slot_ptr, token) + i)
        dl.notify(free_ptr, left, signal=step + 1, comm_scope="intra_node")
        tl.store(out_ptr + 128 * step + i, row)
