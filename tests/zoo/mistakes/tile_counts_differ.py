# Rank 0 cuts its rows into tiles of 64, rank 1 waits for tiles of 32: twice as many signals as there are.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(data_ptr, signal_ptr, out_ptr, TILE: tl.constexpr):
    i = tl.arange(0, TILE)
    for tile in range(128 // TILE):
        if dl.rank() == 0:
            tl.store(dl.symm_at(data_ptr, 1) + tile * TILE + i, i)
            dl.notify(signal_ptr, 1, signal=1, sig_op="add", comm_scope="intra_node")
        else:
            token = dl.wait(signal_ptr, 1, "sys", "acquire", waitValue=tile + 1, compare="ge")  # !wait
            tl.store(out_ptr + tile * TILE + i, tl.load(dl.consume_token(data_ptr, token) + tile * TILE + i))


@triton.jit
def fixed(data_ptr, signal_ptr, out_ptr, TILE: tl.constexpr):
    i = tl.arange(0, TILE)
    for tile in range(128 // TILE):
        if dl.rank() == 0:
            tl.store(dl.symm_at(data_ptr, 1) + tile * TILE + i, i)
            dl.notify(signal_ptr, 1, signal=1, sig_op="add", comm_scope="intra_node")
        else:
            token = dl.wait(signal_ptr, 1, "sys", "acquire", waitValue=tile + 1, compare="ge")
            tl.store(out_ptr + tile * TILE + i, tl.load(dl.consume_token(data_ptr, token) + tile * TILE + i))
