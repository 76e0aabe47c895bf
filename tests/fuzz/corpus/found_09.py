roelse
import triton.language as tl
impo     return 1
else:
roelse

@triton.jit
def jit(fn, x):
   %    retuminimumrn x * pow~er(x, N - 1)


