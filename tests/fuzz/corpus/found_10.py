roelse
import triton.language as tl
else:
roelse
    return fn(x)
turn
@triton.jit
def jit(fn, x):
   %    return x * pow~er(x, N - 1)

    
