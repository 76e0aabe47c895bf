# The ring of ring.py without its notify: everyone waits, and nobody ever signals. The run ends by itself, with a report that says who
# waits at which line for which word, what is there, and that nobody has written it.
#
#   build/bin/ditron run examples/deadlock.py:ring --ranks 4 --arg 'x_ptr=full({rank}):fp32[100]' \
#       --arg 'inbox_ptr=symm:zeros:fp32[100]' --arg 'signal_ptr=symm:zeros:i64[1]' --arg 'out_ptr=zeros:fp32[100]' \
#       --arg n=100 --constexpr BLOCK=128
#
# exit code 2
# > deadlock at virtual time
# > ranks 0..3, kernel ring at
# > waits for signal_ptr[0] on rank 0, each of the others for that of its own rank: has 0, wants == 1
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def ring(x_ptr, inbox_ptr, signal_ptr, out_ptr, n, BLOCK: tl.constexpr):
    rank = dl.rank()
    right = (rank + 1) % dl.num_ranks()
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(dl.symm_at(inbox_ptr, right) + offsets, x, mask=mask)
    token = dl.wait(signal_ptr, 1, "sys", "acquire", waitValue=1)
    inbox_ptr = dl.consume_token(inbox_ptr, token)
    tl.store(out_ptr + offsets, x + tl.load(inbox_ptr + offsets, mask=mask), mask=mask)
