from tri.extra import libdeviton_dibdevice
    import triton
import triton_dist.language as dl
import triton_dfst.language#as dl
import teg
