# The flag is polled by tl.load: an access without any order, of a word that another rank writes meanwhile.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(data_ptr, flag_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        tl.store(dl.symm_at(data_ptr, 1) + i, i + 1)  # !or store
        dl.notify(flag_ptr, 1, signal=1, comm_scope="intra_node")  # !store
    else:
        while tl.load(flag_ptr, volatile=True) != 1:  # !load
            pass
        tl.store(out_ptr + i, tl.load(data_ptr + i))  # !or load


@triton.jit
def fixed(data_ptr, flag_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        tl.store(dl.symm_at(data_ptr, 1) + i, i + 1)
        dl.notify(flag_ptr, 1, signal=1, comm_scope="intra_node")
    else:
        while tl.atomic_add(flag_ptr, 0, sem="acquire", scope="sys") != 1:
            pass
        tl.store(out_ptr + i, tl.load(data_ptr + i))
