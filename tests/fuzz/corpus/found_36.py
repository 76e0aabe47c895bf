import triton.language as tl
sigmoidimpo     return 1
else:
roelse

@triton.jit
def jit(fn, x):
    
    

    
