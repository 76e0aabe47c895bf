# Every rank has a row for each rank, and sends it there: a block for each peer writes the row, signals, and waits for the peer's.
# Element (p, i) of x is 1000 * rank + 100 * p + i, so that the result shows where each row came from.
#
#   build/bin/ditron run examples/all_to_all.py:all_to_all --ranks 4 --grid RANKS --arg 'x_ptr=arange({rank}000):i32[4,100]' \
#       --arg 'inbox_ptr=symm:zeros:i32[4,100]' --arg 'arrived_ptr=symm:zeros:i64[4]' --arg 'out_ptr=zeros:i32[4,100]' \
#       --arg n=100 --constexpr BLOCK=128 --print 'out_ptr[:,:3]@2'
#
# > out_ptr[:,:3] on rank 2: i32 4x3
# > [[ 200  201  202]
# >  [1200 1201 1202]
# >  [2200 2201 2202]
# >  [3200 3201 3202]]
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def all_to_all(x_ptr, inbox_ptr, arrived_ptr, out_ptr, n, BLOCK: tl.constexpr):
    rank = dl.rank()
    peer = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    row = tl.load(x_ptr + peer * n + offsets, mask=mask)
    tl.store(dl.symm_at(inbox_ptr, peer) + rank * n + offsets, row, mask=mask)
    dl.notify(arrived_ptr + rank, peer, signal=1, sig_op="set", comm_scope="intra_node")
    token = dl.wait(arrived_ptr + peer, 1, "sys", "acquire", waitValue=1)
    inbox_ptr = dl.consume_token(inbox_ptr, token)
    received = tl.load(inbox_ptr + peer * n + offsets, mask=mask)
    tl.store(out_ptr + peer * n + offsets, received, mask=mask)
