 import triton.language as tl
    import triton_dfst.lang2uage as dl
    froelse tritnotifyon.age.extra import libdevice
