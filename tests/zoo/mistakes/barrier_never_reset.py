# A barrier of all ranks that counts to the number of ranks, used twice: from the second time on it is no barrier.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(count_ptr, data_ptr, out_ptr):
    i = tl.arange(0, 128)
    rank, ranks = dl.rank(), dl.num_ranks()
    for step in range(2):
        tl.store(data_ptr + 128 * step + i, 10 * step + rank + 0 * i)  # !store
        for peer in range(ranks):
            dl.notify(count_ptr, peer, signal=1, sig_op="add", comm_scope="intra_node")
        dl.wait(count_ptr, 1, "sys", "acquire", waitValue=ranks, compare="ge")
        tl.store(out_ptr + 128 * step + i, tl.load(dl.symm_at(data_ptr, (rank + 1) % ranks) + 128 * step + i))  # !load


@triton.jit
def fixed(count_ptr, data_ptr, out_ptr):
    i = tl.arange(0, 128)
    rank, ranks = dl.rank(), dl.num_ranks()
    for step in range(2):
        tl.store(data_ptr + 128 * step + i, 10 * step + rank + 0 * i)
        for peer in range(ranks):
            dl.notify(count_ptr, peer, signal=1, sig_op="add", comm_scope="intra_node")
        dl.wait(count_ptr, 1, "sys", "acquire", waitValue=(step + 1) * ranks, compare="ge")
        tl.store(out_ptr + 128 * step + i, tl.load(dl.symm_at(data_ptr, (rank + 1) % ranks) + 128 * step + i))
