import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def ring(data, signal, out, BLOCK: tl.constexpr):
    rank = dl.rank()
    peer = (rank + 1) % dl.num_ranks()
    offsets = tl.arange(0, BLOCK)
    tl.store(dl.symm_at(data, peer) + offsets, offsets + rank * 1000)
    dl.notify(signal, peer, signal=1, sig_op="add", comm_scope="intra_node")
    token = dl.wait(signal, 1, "sys", "acquire", waitValue=1)
    mine = dl.consume_token(data, token)
    tl.store(out + offsets, tl.load(mine + offsets))


@triton.jit
def stuck(signal):
    rank = dl.rank()
    if rank == 1:
        token = dl.wait(signal + 3, 1, "sys", "acquire", waitValue=2)
        pointer = dl.consume_token(signal, token)
        tl.store(pointer, 1)


@triton.jit
def past_the_end(x, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x + offsets, offsets)


@triton.jit
def misspelt(x):
    tl.store(x, tl.laod(x))


@triton.jit
def ask_rank(x, peer):
    tl.store(dl.symm_at(x, peer), 1)


@triton.jit
def endless(x, n):
    while n > 0:
        n = tl.maximum(n, 1)
    tl.store(x, 1)
