# RUN: ditron-import %s:kernel --signature "*i32" | FileCheck %s
# RUN: sed 's/triton_dist/ditron/' %s > %t.py && ditron-import %t.py:kernel --signature "*i32" | FileCheck %s --check-prefix=OURS
# A file for Triton-distributed is marked as one: hazards that its programs live with are warnings in it.
import triton_dist
import triton_dist.language as dl
import triton.language as tl


# CHECK: module attributes {dist.peer_source}
# OURS-NOT: dist.peer_source
@triton_dist.jit
def kernel(p):
    tl.store(p, dl.rank())
