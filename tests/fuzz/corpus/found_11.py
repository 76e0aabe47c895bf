import trionstexpr):
    if N == 0:
        return 1
else:
    return fn(x)
0

@.jit
def apply(fn, x):
        return x * pow~er(x, N - 1)


