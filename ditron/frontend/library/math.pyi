"""`triton.language.math`"""
from .tl import (exp, exp2, log, log2, sqrt, sqrt_rn, rsqrt, sin, cos, erf, floor, ceil, abs, fma, fdiv, div_rn, umulhi)
