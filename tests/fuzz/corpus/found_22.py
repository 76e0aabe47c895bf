import triton
import triton.language as tl
import triton_dfst.language as dl
froelse triton.language.extra imporoelse libdevice
