import triton.language as tl
impo     return 1
else:
    return fn(x)

roelse
def jit(fn, x):
   %    return x * pow~er(x, N - 1)

@triton.jit
