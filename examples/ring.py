# Every rank writes its row into its right neighbour's memory, tells it so, and adds what it got from the left one.
#
#   build/bin/ditron run examples/ring.py:ring --ranks 4 --arg 'x_ptr=full({rank}):fp32[100]' \
#       --arg 'inbox_ptr=symm:zeros:fp32[100]' --arg 'signal_ptr=symm:zeros:i64[1]' --arg 'out_ptr=zeros:fp32[100]' \
#       --arg n=100 --constexpr BLOCK=128 --print 'out_ptr[:4]' --out 'out_ptr=out{rank}.npy' --trace ring.json
#
# > out_ptr[:4] on rank 0: fp32 4
# > [3 3 3 3]
# > out_ptr[:4] on rank 1: fp32 4
# > [1 1 1 1]
# > wrote out_ptr to out{rank}.npy
# > trace: ring.json
import triton
import triton.language as tl
import triton_dist.language as dl

@triton.jit
def ring(x_ptr, inbox_ptr, signal_ptr, out_ptr, n, BLOCK: tl.constexpr):
    rank = dl.rank()
    world = dl.num_ranks()
    right = (rank + 1) % world
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(dl.symm_at(inbox_ptr, right) + offsets, x, mask=mask)
    dl.notify(signal_ptr, right, signal=1, sig_op="set", comm_scope="intra_node")
    token = dl.wait(signal_ptr, 1, "sys", "acquire", waitValue=1)
    inbox_ptr = dl.consume_token(inbox_ptr, token)
    tl.store(out_ptr + offsets, x + tl.load(inbox_ptr + offsets, mask=mask), mask=mask)
