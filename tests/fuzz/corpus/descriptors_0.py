import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language.extra import libdevice
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import *

@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_c):
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [stride_a, 1], [64, 32])
    b = tl.make_tensor_descriptor(b_ptr, shape=(N, K), strides=(K, 1), block_shape=(64, 32), padding_option="nan")
    c = tl.make_tensor_descriptor(c_ptr, [M, 1000], [stride_c, 1], [64, 64])
    tl.static_assert(a.dtype == tl.float16 and isinstance(a, tl.tensor_descriptor) and not isinstance(a, tl.tensor))
    tl.static_assert(a.block_shape[1] == 32 and len(a.shape) == 2 and a.strides[1] == 1)
    tl.static_assert(a.block_type == tl.block_type(tl.float16, [64, 32]))
    acc = tl.zeros((64, 64), dtype=tl.float32)
    for k in range(0, a.shape[1], 32):
        x = a.load([tl.program_id(0) * 64, k])
        y = tl.load_tensor_descriptor(b, [0, k])
        acc = tl.dot(x, y.T, acc)
    c.store([tl.program_id(0) * 64, 0], acc)
@triton.jit
def host(a, b, signal):
    a = dl.consume_token(a, dl.wait(signal, 1, "gpu", "acquire"))
    x = a.load([3, -4])
    tl.store_tensor_descriptor(b, [0], tl.sum(tl.reshape(x.to(tl.float32), [64, 8]), axis=1).to(tl.int8))


@triton.jit
def double(desc, row):
    desc.store([row, 0], desc.load([row, 0]) * 2)
    return desc
