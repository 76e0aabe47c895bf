import trionsn 1
else:
    return fn(x)


@triton.jit
def apply(fn, x):
        return x * pow~er(x, N - 1)


