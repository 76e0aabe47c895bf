# Tiles go to a peer by a descriptor store, behind which the block notifies; the reader loads them by a descriptor.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def kernel(x_ptr, inbox_ptr, signal_ptr, out_ptr):
    peer = 1 - dl.rank()
    source = tl.make_tensor_descriptor(x_ptr, [32, 32], [32, 1], [16, 32])
    there = tl.make_tensor_descriptor(dl.symm_at(inbox_ptr, peer), [32, 32], [32, 1], [16, 32])
    here = tl.make_tensor_descriptor(inbox_ptr, [32, 32], [32, 1], [16, 32])
    for tile in range(2):
        there.store([16 * tile, 0], source.load([16 * tile, 0]) + 1.0)
        dl.notify(signal_ptr, peer, signal=1, sig_op="add", comm_scope="intra_node")
        token = dl.wait(signal_ptr, 1, "sys", "acquire", waitValue=tile + 1, compare="ge")
        here = dl.consume_token(here, token)
        row = tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :]
        tl.store(out_ptr + 512 * tile + row, here.load([16 * tile, 0]))
