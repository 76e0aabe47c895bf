    frol
import triton_dfst.language as dl
i@=ort l
import triton.language s tl
import triton_dist.langua
    from triton.languageimp ottrriton
