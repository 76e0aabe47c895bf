# AllGather of ranks on several nodes: inside a node by stores, between nodes one put with signal from each rank to each other node.
#
# The shard of a rank goes to the rank with its place on every other node, and from there to the others of that node. So the
# network carries each shard once to each node, however many ranks that has.
#
#   build/bin/ditron run examples/two_level_all_gather.py:all_gather --ranks 8 --ranks-per-node 4 --grid 2 \
#       --arg 'x_ptr=full({rank}):fp32[3]' --arg 'out_ptr=symm:zeros:fp32[24]' --arg 'arrived_ptr=symm:zeros:i64[8]' \
#       --arg n=3 --arg generation=1 --constexpr BLOCK=128 --print 'out_ptr@5'
#
# > out_ptr on rank 5: fp32 24
# > [0 0 0 1 1 1 2 2 2 3 3 3 4 4 4 5 5 5 6 6 6 7 7 7]
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device


@triton.jit
def send_to_other_nodes(x_ptr, out_ptr, arrived_ptr, n, generation, node_size):
    rank = dl.rank()
    ranks = dl.num_ranks()
    for i in range(node_size, ranks, node_size):
        libshmem_device.putmem_signal_block(out_ptr + rank * n, x_ptr, n * 4, arrived_ptr + rank, generation,
                                            libshmem_device.NVSHMEM_SIGNAL_SET, (rank + i) % ranks)


@triton.jit
def store_on_node(shard_ptr, out_ptr, arrived_ptr, source, n, generation, node_size, BLOCK: tl.constexpr):
    rank = dl.rank()
    place = rank % node_size
    for i in range(node_size):
        peer = rank - place + (place + i) % node_size
        theirs_ptr = dl.symm_at(out_ptr, peer) + source * n
        for start in range(0, n, BLOCK):
            at = start + tl.arange(0, BLOCK)
            tl.store(theirs_ptr + at, tl.load(shard_ptr + at, mask=at < n), mask=at < n)
        dl.notify(arrived_ptr + source, peer, signal=generation, sig_op="set", comm_scope="intra_node")


# out: [ranks * n] on every rank, its words arrived: [ranks], by the rank whose shard they tell of. One block for each node. The generation
# grows from call to call; before the next call everybody must have read its out.
@triton.jit
def all_gather(x_ptr, out_ptr, arrived_ptr, n, generation, BLOCK: tl.constexpr):
    ranks = dl.num_ranks()
    node_size = libshmem_device.team_n_pes(libshmem_device.NVSHMEMX_TEAM_NODE)
    # The rank with this one's place on the node that the block is for.
    source = (dl.rank() + tl.program_id(0) * node_size) % ranks
    if source == dl.rank():
        send_to_other_nodes(x_ptr, out_ptr, arrived_ptr, n, generation, node_size)
        store_on_node(x_ptr, out_ptr, arrived_ptr, source, n, generation, node_size, BLOCK)
    else:
        dl.wait(arrived_ptr + source, 1, "sys", "acquire", waitValue=generation)
        store_on_node(out_ptr + source * n, out_ptr, arrived_ptr, source, n, generation, node_size, BLOCK)
    dl.wait(arrived_ptr + source // node_size * node_size, node_size, "sys", "acquire", waitValue=generation)
