# Two kernels of one stream on each rank: the second reads what the first stored and what came with its signal.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def kernel(row_ptr, inbox_ptr, signal_ptr):
    i = tl.arange(0, 128)
    tl.store(row_ptr + 128 * tl.program_id(0) + i, 10 * tl.program_id(0) + i)
    if tl.program_id(0) == 0:
        peer = 1 - dl.rank()
        tl.store(dl.symm_at(inbox_ptr, peer) + i, i + 1)
        dl.notify(signal_ptr, peer, signal=1, comm_scope="intra_node")
        dl.wait(signal_ptr, 1, "sys", "acquire")


@triton.jit
def kernel_second(row_ptr, inbox_ptr, out_ptr):
    i = tl.arange(0, 128)
    tl.store(out_ptr + 128 * tl.program_id(0) + i, tl.load(row_ptr + 128 * tl.program_id(0) + 127 - i) + tl.load(inbox_ptr + i))
