import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language.extra import libdevice
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import *

@triton.jit
def enter(generation_ptr, entered_ptr, counter_ptr, gate_ptr, raised_ptr, num_segments, num_raised, rank, world_size):
    """Begins a call: next generation, local counters and gates to zero, then a barrier over all ranks. raised_ptr[0, num_raised)
    are signals of this rank that no other rank's data belongs to: they get the generation at once.

    A rank that has passed knows that every rank has finished the previous call on its compute stream, so that peers'
    workspaces may be overwritten. One block; world_size, num_segments and num_raised are at most the number of threads.
    """
    thread = tid(0)
    generation = tl.load(generation_ptr) + 1
    __syncthreads()
    if thread == 0:
        st(generation_ptr, generation, scope="gpu", semantic="relaxed")
    if thread < num_segments:
        st(counter_ptr + thread, 0, scope="gpu", semantic="relaxed")
        st(gate_ptr + thread, 0, scope="sys", semantic="relaxed")
    if thread < num_raised:
        st(raised_ptr + thread, generation, scope="sys", semantic="relaxed")
    __syncthreads()
    if thread < world_size:
        st(dl.symm_at(entered_ptr, thread) + rank, generation, scope="sys", semantic="release")
    __syncthreads()
    dl.wait(entered_ptr, world_size, "sys", "acquire", waitValue=generation, compare="ge")


@triton.jit
def grouped_tile(pid, num_pid_m, num_pid_n, GROUP_SIZE_M: tl.constexpr):
    """Row-major program number -> (pid_m, pid_n), column-major inside groups of GROUP_SIZE_M rows of tiles (L2 reuse)."""
    programs_in_group = GROUP_SIZE_M * num_pid_n
    first_pid_m = (pid // programs_in_group) * GROUP_SIZE_M
    group_rows = min(num_pid_m - first_pid_m, GROUP_SIZE_M)
    pid_m = first_pid_m + (pid % programs_in_group) % group_rows
    pid_n = (pid % programs_in_group) // group_rows
    return pid_m, pid_n


@triton.jit
def swizzle_all_gather(index, M, rows_per_rank, rank, WORLD_SIZE: tl.constexpr, NUM_NODES: tl.constexpr,
                       BLOCK_M: tl.constexpr):
    """The index-th row of tiles to compute, in the order in which the shards arrive.

    Rank r's shard is the rows from r * rows_per_rank on; the last shards may be short or empty. Nodes are visited from the own one upwards, cyclically; inside a node, ranks from the own local rank upwards. A tile
    that reaches into several nodes needs all their shards, so it belongs to the one visited last. For any M, also when
    tiles straddle ranks and nodes, this is a permutation of the rows of tiles.
    """
    LOCAL_SIZE: tl.constexpr = WORLD_SIZE // NUM_NODES
    rows_per_node = rows_per_rank * LOCAL_SIZE
    num_tiles = tl.cdiv(M, BLOCK_M)
    own_node = rank // LOCAL_SIZE
    local_rank = rank % LOCAL_SIZE
    result = index
    remaining = index
    for visit in tl.static_range(NUM_NODES):
        node = (own_node + visit) % NUM_NODES
        begin = 0
        end = 0
        running = 0
        for n in tl.static_range(NUM_NODES):
            boundary = min((n + 1) * rows_per_node, M)
            node_end = boundary // BLOCK_M
            if n + 1 == own_node:
                node_end = tl.cdiv(boundary, BLOCK_M)
            if n == NUM_NODES - 1:
                node_end = num_tiles
            node_end = max(node_end, running)
            if n == node:
                begin = running
                end = node_end
            running = node_end
        size = end - begin
        if (remaining >= 0) & (remaining < size):
