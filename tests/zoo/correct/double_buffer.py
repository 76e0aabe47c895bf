# Two buffers on the receiver in turns. The sender fills one while the receiver reads the other; what has been read is acknowledged.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def kernel(buffers_ptr, full_ptr, read_ptr, out_ptr):
    i = tl.arange(0, 128)
    for step in range(6):
        buffer = buffers_ptr + step % 2 * 128
        if dl.rank() == 0:
            dl.wait(read_ptr, 1, "sys", "acquire", waitValue=step - 1, compare="ge")
            tl.store(dl.symm_at(buffer, 1) + i, 100 * step + i)
            dl.notify(full_ptr, 1, signal=step + 1, comm_scope="intra_node")
        else:
            token = dl.wait(full_ptr, 1, "sys", "acquire", waitValue=step + 1, compare="ge")
            tl.store(out_ptr + 128 * step + i, tl.load(dl.consume_token(buffer, token) + i))
            dl.notify(read_ptr, 0, signal=step + 1, comm_scope="intra_node")
