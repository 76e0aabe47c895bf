# The ring of ring.py without signals: a rank reads its inbox whether the left neighbour has written it or not. The simulator does not
# report the race itself; what it does is play it: rank 0 is slow, so that rank 1 reads before rank 0 has written, and --expect finds
# the wrong sums. (Rank r must get r plus the left one's number.)
#
#   build/bin/ditron run examples/race.py:ring --ranks 4 --slow-rank 0:100 --arg 'x_ptr=full(1{rank}):fp32[100]' \
#       --arg 'inbox_ptr=symm:zeros:fp32[100]' --arg 'out_ptr=zeros:fp32[100]' --arg n=100 --constexpr BLOCK=128 \
#       --expect 'out_ptr=per-rank:full(23):fp32[100],full(21):fp32[100],full(23):fp32[100],full(25):fp32[100]'
#
# exit code 5
# > out_ptr on rank 1 is not as expected: 100 of 100 elements differ from full(21):fp32[100]
# > the worst is [0]: 11, expected 21, off by 10
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def ring(x_ptr, inbox_ptr, out_ptr, n, BLOCK: tl.constexpr):
    rank = dl.rank()
    right = (rank + 1) % dl.num_ranks()
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(dl.symm_at(inbox_ptr, right) + offsets, x, mask=mask)
    tl.store(out_ptr + offsets, x + tl.load(inbox_ptr + offsets, mask=mask), mask=mask)
