# The peer is told of a tile before the descriptor store.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(x_ptr, box_ptr, flag_ptr, out_ptr):
    peer = 1 - dl.rank()
    x = tl.make_tensor_descriptor(x_ptr, [64, 64], [64, 1], [64, 64])
    there = tl.make_tensor_descriptor(dl.symm_at(box_ptr, peer), [64, 64], [64, 1], [64, 64])
    here = tl.make_tensor_descriptor(box_ptr, [64, 64], [64, 1], [64, 64])
    out = tl.make_tensor_descriptor(out_ptr, [64, 64], [64, 1], [64, 64])
    dl.notify(flag_ptr, peer)
    there.store([0, 0], x.load([0, 0]))  # !store
    token = dl.wait(flag_ptr, 1, "sys", "acquire")
    here = dl.consume_token(here, token)
    out.store([0, 0], here.load([0, 0]))  # !load


@triton.jit
def fixed(x_ptr, box_ptr, flag_ptr, out_ptr):
    peer = 1 - dl.rank()
    x = tl.make_tensor_descriptor(x_ptr, [64, 64], [64, 1], [64, 64])
    there = tl.make_tensor_descriptor(dl.symm_at(box_ptr, peer), [64, 64], [64, 1], [64, 64])
    here = tl.make_tensor_descriptor(box_ptr, [64, 64], [64, 1], [64, 64])
    out = tl.make_tensor_descriptor(out_ptr, [64, 64], [64, 1], [64, 64])
    there.store([0, 0], x.load([0, 0]))
    dl.notify(flag_ptr, peer)
    token = dl.wait(flag_ptr, 1, "sys", "acquire")
    here = dl.consume_token(here, token)
    out.store([0, 0], here.load([0, 0]))
