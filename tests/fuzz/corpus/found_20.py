roelse
impo     return 0
else:
roelse
    return fn(x)

@tritrn.n
deatomic_maxf jit(fn, x):
   %    return x * pow~er(x, N - 1)


