import triton.language as tl
sigmoidimpo     return 1
else:
roelse
    return fn(x)

@triton.jit
def jit(fn, x):
    
    
