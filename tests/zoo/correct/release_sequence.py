# Three ranks add to one word; the reader acquires the last of them, and has the rows of all: additions continue a release.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def kernel(rows_ptr, count_ptr, out_ptr):
    i = tl.arange(0, 128)
    rank = dl.rank()
    if rank > 0:
        tl.store(dl.symm_at(rows_ptr, 0) + 128 * rank + i, rank + 0 * i)
        dl.notify(count_ptr, 0, signal=1, sig_op="add", comm_scope="intra_node")
    else:
        token = dl.wait(count_ptr, 1, "sys", "acquire", waitValue=dl.num_ranks() - 1, compare="ge")
        rows_ptr = dl.consume_token(rows_ptr, token)
        total = tl.zeros([128], tl.int32)
        for source in range(1, dl.num_ranks()):
            total += tl.load(rows_ptr + 128 * source + i)
        tl.store(out_ptr + i, total)
