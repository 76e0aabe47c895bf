# A consumer with a block for every SM waits for a producer that another stream has yet to start: there is no place for it.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def produce(data_ptr, ready_ptr):
    i = tl.arange(0, 64)
    for item in range(8):
        tl.store(data_ptr + item * 64 + i, item + 0 * i)
        dl.notify(ready_ptr, dl.rank(), signal=item + 1, comm_scope="gpu")


@triton.jit
def consume(data_ptr, ready_ptr, out_ptr):
    i = tl.arange(0, 64)
    for item in range(tl.program_id(0), 8, tl.num_programs(0)):
        token = dl.wait(ready_ptr, 1, "gpu", "acquire", waitValue=item + 1, compare="ge")  # !wait
        tl.store(out_ptr + item * 64 + i, 1 + tl.load(dl.consume_token(data_ptr, token) + item * 64 + i))
