# RUN: not ditron-import %s:kernel --signature "*i64, i32, *fp32" 2>&1 | FileCheck %s
# RUN: ditron-import %s:good --signature "*i64, i32, *fp32"
# What may stand for the token of a wait.
import triton_dist
import triton.language as tl
import triton_dist.language as dl


@triton_dist.jit
def kernel(sig, n, p):
    dl.consume_token(p, n)
    # CHECK: tokens.py:[[#@LINE-1]]:25: error: argument 'token' of dl.consume_token must be the token of a dl.wait, but got run-time int32
    # CHECK-NEXT:     dl.consume_token(p, n)
    # CHECK-NEXT:                         ^
    dl.consume_token(p, 1)
    # CHECK: tokens.py:[[#@LINE-1]]:25: error: argument 'token' of dl.consume_token must be a run-time scalar or block, but got compile-time int 1
    # CHECK-NEXT:     dl.consume_token(p, 1)
    # CHECK-NEXT:                         ^
    token = dl.wait(sig, 1, "gpu", "acquire")
    dl.consume_token(p, token + 1)
    # CHECK: tokens.py:[[#@LINE-1]]:25: error: argument 'token' of dl.consume_token must be the token of a dl.wait, but got run-time int32
    # CHECK-NEXT:     dl.consume_token(p, token + 1)
    # CHECK-NEXT:                         ^~~~~~~~~


@triton_dist.jit
def await_one(sig):
    return dl.wait(sig, 1, "gpu", "acquire")


@triton_dist.jit
def good(sig, n, p):
    token = await_one(sig)
    for i in range(n):
        x = dl.consume_token(p, token)
        tl.store(x, 1.0)
        token = dl.wait(sig, 1, "gpu", "acquire")
    if n > 3:
        token = await_one(sig)
    tl.store(dl.consume_token(p, token), 2.0)
