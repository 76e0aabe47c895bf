# Data and flags share one workspace: the flag lies behind the data, and the data's size differs between graphs. What one graph wrote
# as data is a raised flag for the other.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def next_call(call_ptr):
    call = tl.load(call_ptr) + 1
    tl.debug_barrier()
    tl.store(call_ptr, call)
    return call


@triton.jit
def buggy(workspace_ptr, call_ptr, x, n, out_ptr):
    i = tl.arange(0, 128)
    peer = 1 - dl.rank()
    call = next_call(call_ptr)
    flag = workspace_ptr + n
    tl.store(dl.symm_at(workspace_ptr, peer) + i, x + 0 * i, mask=i < n)  # !store
    dl.notify(flag, peer, signal=call, comm_scope="intra_node")  # !or store
    token = dl.wait(flag, 1, "sys", "acquire", waitValue=call, compare="ge")  # !or load
    tl.store(out_ptr + i, tl.load(dl.consume_token(workspace_ptr, token) + i, mask=i < n, other=0))  # !load


@triton.jit
def fixed(workspace_ptr, call_ptr, x, n, out_ptr):
    i = tl.arange(0, 128)
    peer = 1 - dl.rank()
    call = next_call(call_ptr)
    flag = workspace_ptr + 256
    data = workspace_ptr + call % 2 * 128
    tl.store(dl.symm_at(data, peer) + i, x + 0 * i, mask=i < n)
    dl.notify(flag, peer, signal=call, comm_scope="intra_node")
    token = dl.wait(flag, 1, "sys", "acquire", waitValue=call, compare="ge")
    tl.store(out_ptr + i, tl.load(dl.consume_token(data, token) + i, mask=i < n, other=0))
