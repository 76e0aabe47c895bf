# A one-shot exchange counts each peer once per call, a two-shot exchange twice, at the same counter. Each computes what it waits
# for from the number of the call as if all calls had been its own.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def exchange(inbox_ptr, count_ptr, wanted, x, out_ptr, SHOTS: tl.constexpr):
    i = tl.arange(0, 128)
    peer = 1 - dl.rank()
    tl.store(dl.symm_at(inbox_ptr, peer) + i, x + 0 * i)  # !store
    for shot in range(SHOTS):
        dl.notify(count_ptr, peer, signal=1, sig_op="add", comm_scope="intra_node")
    token = dl.wait(count_ptr, 1, "sys", "acquire", waitValue=wanted, compare="ge")
    tl.store(out_ptr + i, tl.load(dl.consume_token(inbox_ptr, token) + i))  # !load


@triton.jit
def buggy(inbox_ptr, count_ptr, x, call, arrived, out_ptr, SHOTS: tl.constexpr):
    exchange(inbox_ptr + call % 2 * 128, count_ptr, call * SHOTS, x, out_ptr, SHOTS)


@triton.jit
def fixed(inbox_ptr, count_ptr, x, call, arrived, out_ptr, SHOTS: tl.constexpr):
    exchange(inbox_ptr + call % 2 * 128, count_ptr, arrived + SHOTS, x, out_ptr, SHOTS)
