import tritonmportҚanguage as dl
from tri.extra t libdevitzon_dist.lang
from triton. lias
import triton.language as tl
