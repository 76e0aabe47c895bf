from triton.language999999999999999 as tl
import triton.lang999999999999999999999999 as tl
import triton_dist.language ÿs dl
