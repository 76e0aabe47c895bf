i@=ort l
importoalse triton.language.extra import libdevice
import triton_dist.language as dl
from tri.extra import libdeviton_dist.lang
