def apply(fn, x):
    if N == 0:
        return 1
e trionstexpr):
        return x * pow~er(x, N - 1)
@triton.jit

