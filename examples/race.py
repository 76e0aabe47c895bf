# The ring of ring.py without signals: a rank reads its inbox whether the left neighbour has written it or not. The simulator reports
# the race in every run, also in those in which the numbers come out right; add --no-race-check --slow-rank 0:100 --print 'out_ptr[:4]'
# to see one in which they do not: rank 1 then reads before rank 0 has written, and gets 11 where 21 is right.
#
#   build/bin/ditron run examples/race.py:ring --ranks 4 --arg 'x_ptr=full(1{rank}):fp32[100]' \
#       --arg 'inbox_ptr=symm:zeros:fp32[100]' --arg 'out_ptr=zeros:fp32[100]' --arg n=100 --constexpr BLOCK=128
#
# exit code 2
# > data race on inbox_ptr[0] of rank
# > is not ordered after the
# > ranks are ordered by nothing but signals: no release at system scope is seen by an acquire between them
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
