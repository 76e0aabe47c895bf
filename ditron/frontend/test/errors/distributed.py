# RUN: not ditron-import %s:kernel --signature "*i64, i32, *fp32" 2>&1 | FileCheck %s
# Distributed functions and the thread level.
import triton_dist
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import __shfl_sync_i32, atomic_add, ld, st, tid


@triton_dist.jit
def kernel(sig, n, p):
    many = sig + tl.arange(0, 4)
    dl.wait(p, 1, "gpu", "acquire")
    # CHECK: distributed.py:[[#@LINE-1]]:13: error: argument 'barrierPtrs' of dl.wait must be a pointer to 32 or 64 bit integers, but got run-time pointer<fp32>
    # CHECK-NEXT:     dl.wait(p, 1, "gpu", "acquire")
    # CHECK-NEXT:             ^
    dl.wait(many, 1, "gpu", "acquire")
    # CHECK: distributed.py:[[#@LINE-1]]:13: error: argument 'barrierPtrs' of dl.wait must be a scalar pointer, but got block pointer<int64>[4]
    # CHECK-NEXT:     dl.wait(many, 1, "gpu", "acquire")
    # CHECK-NEXT:             ^~~~
    dl.wait(sig, 1, "node", "acquire")
    # CHECK: distributed.py:[[#@LINE-1]]:21: error: argument 'scope' of dl.wait cannot be 'node'; it is one of 'gpu', 'cta', 'sys'
    # CHECK-NEXT:     dl.wait(sig, 1, "node", "acquire")
    # CHECK-NEXT:                     ^~~~~~
    dl.wait(sig, 1, "gpu", "release")
    # CHECK: distributed.py:[[#@LINE-1]]:28: error: dl.wait is 'acquire' or 'relaxed', not 'release'
    # CHECK-NEXT:     dl.wait(sig, 1, "gpu", "release")
    # CHECK-NEXT:                            ^~~~~~~~~
    dl.wait(sig, 1, "gpu", "acquire", compare="=>")
    # CHECK: distributed.py:[[#@LINE-1]]:47: error: argument 'compare' of dl.wait cannot be '=>'; it is one of 'eq', 'ne', 'gt', 'ge', 'lt', 'le'
    # CHECK-NEXT:     dl.wait(sig, 1, "gpu", "acquire", compare="=>")
    # CHECK-NEXT:                                               ^~~~
    dl.wait(sig, 1.5, "gpu", "acquire")
    # CHECK: distributed.py:[[#@LINE-1]]:18: error: argument 'numBarriers' of dl.wait must be a scalar integer that fits into int32, but got compile-time float 1.5
    # CHECK-NEXT:     dl.wait(sig, 1.5, "gpu", "acquire")
    # CHECK-NEXT:                  ^~~
    dl.consume_token(p, dl.wait(sig, 1, "gpu", "acquire") + sig)
    # CHECK: distributed.py:[[#@LINE-1]]:25: error: argument 'token' of dl.consume_token must be the token of a dl.wait, but got run-time pointer<int64>
    # CHECK-NEXT:     dl.consume_token(p, dl.wait(sig, 1, "gpu", "acquire") + sig)
    # CHECK-NEXT:                         ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    dl.consume_token(p, tl.arange(0, 4))
    # CHECK: distributed.py:[[#@LINE-1]]:25: error: argument 'token' of dl.consume_token must be the token of a dl.wait, but got block int32[4]
    # CHECK-NEXT:     dl.consume_token(p, tl.arange(0, 4))
    # CHECK-NEXT:                         ^~~~~~~~~~~~~~~
    dl.symm_at(many, 0)
    # CHECK: distributed.py:[[#@LINE-1]]:16: error: argument 'ptr' of dl.symm_at must be a scalar pointer, but got block pointer<int64>[4]
    # CHECK-NEXT:     dl.symm_at(many, 0)
    # CHECK-NEXT:                ^~~~
    dl.notify(sig, 0, sig_op="sub")
    # CHECK: distributed.py:[[#@LINE-1]]:30: error: argument 'sig_op' of dl.notify cannot be 'sub'; it is one of 'set', 'add'
    # CHECK-NEXT:     dl.notify(sig, 0, sig_op="sub")
    # CHECK-NEXT:                              ^~~~~
    dl.notify(sig, 0, comm_scope="world")
    # CHECK: distributed.py:[[#@LINE-1]]:34: error: argument 'comm_scope' of dl.notify cannot be 'world'; it is one of 'gpu', 'intra_node', 'inter_node'
    # CHECK-NEXT:     dl.notify(sig, 0, comm_scope="world")
    # CHECK-NEXT:                                  ^~~~~~~
    tid(3)
    # CHECK: distributed.py:[[#@LINE-1]]:9: error: a block of threads has the axes 0, 1 and 2, not 3
    # CHECK-NEXT:     tid(3)
    # CHECK-NEXT:         ^
    ld(many)
    # CHECK: distributed.py:[[#@LINE-1]]:8: error: argument 'ptr' of ld must be a scalar pointer, but got block pointer<int64>[4]
    # CHECK-NEXT:     ld(many)
    # CHECK-NEXT:        ^~~~
    ld(sig, semantic="release")
    # CHECK: distributed.py:[[#@LINE-1]]:22: error: a load is 'acquire' or 'relaxed', not 'release'
    # CHECK-NEXT:     ld(sig, semantic="release")
    # CHECK-NEXT:                      ^~~~~~~~~
    st(sig, 1, semantic="acquire")
    # CHECK: distributed.py:[[#@LINE-1]]:25: error: a store is 'release' or 'relaxed', not 'acquire'
    # CHECK-NEXT:     st(sig, 1, semantic="acquire")
    # CHECK-NEXT:                         ^~~~~~~~~
    st(sig, many)
    # CHECK: distributed.py:[[#@LINE-1]]:13: error: argument 'val' of st must be a scalar, but got block pointer<int64>[4]
    # CHECK-NEXT:     st(sig, many)
    # CHECK-NEXT:             ^~~~
    atomic_add(p.to(tl.pointer_type(tl.float16)), 1)
    # CHECK: distributed.py:[[#@LINE-1]]:16: error: argument 'ptr' of atomic_add must be a pointer to 32 or 64 bit numbers, but got run-time pointer<fp16>
    # CHECK-NEXT:     atomic_add(p.to(tl.pointer_type(tl.float16)), 1)
    # CHECK-NEXT:                ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    __shfl_sync_i32(1 << 40, n, 0)
    # CHECK: distributed.py:[[#@LINE-1]]:21: error: argument 'mask' of __shfl_sync_i32 must be a scalar integer that fits into uint32, but got compile-time int 1099511627776
    # CHECK-NEXT:     __shfl_sync_i32(1 << 40, n, 0)
    # CHECK-NEXT:                     ^~~~~~~
