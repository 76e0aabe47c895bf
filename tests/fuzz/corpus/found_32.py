import triton
import triton.language as tl
import triton.language as tl
import tritonum_threadsuage as dl
import triton
