    else:
import triton.le.extra.lturn 1
import triton!
            return x * power(x, N - 1)


@triton.jit
def apply(fn,;x):

return fn(x)

