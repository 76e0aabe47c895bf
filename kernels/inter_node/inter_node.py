"""Device code of AllGather+GEMM and GEMM+ReduceScatter between nodes (host side: ditron/ops/).

The products are those of kernels/tensor_parallel_gemm. Between nodes there are puts and signals of OpenSHMEM only, and only ranks with
the same place on their nodes exchange any: what is for other ranks of a node goes on from there by copies, which stay on a node.
So the network carries each byte to a node once (Triton-distributed, section 2.3 and algorithm 5).
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import __syncthreads, num_threads, st, tid

from ..tensor_parallel_gemm.tensor_parallel_gemm import copy_shard, next_generation


@triton.jit
def meet_nodes(generation_ptr, entered_ptr, counter_ptr, gate_ptr, arrival_ptr, raised_ptr, num_segments, num_arrivals,
               num_raised, rank, world_size, node_size):
    """begin_call of kernels/tensor_parallel_gemm where there are several nodes: meets the ranks of the own node and those with the own
    place on other nodes, which are all that write here or are written to."""
    thread = tid(0)
    for arrival in range(thread, num_arrivals, num_threads()):
        st(arrival_ptr + arrival, 0, scope="sys", semantic="relaxed")
    generation = next_generation(generation_ptr, counter_ptr, gate_ptr, raised_ptr, num_segments, num_raised)
    node = rank // node_size
    if thread < node_size:
        st(dl.symm_at(entered_ptr, node * node_size + thread) + rank, generation, scope="sys", semantic="release")
    num_nodes = world_size // node_size
    if thread < num_nodes:
        if thread != node:
            libshmem_device.fence()
            libshmem_device.signal_op(entered_ptr + rank, generation, libshmem_device.NVSHMEM_SIGNAL_SET,
                                      thread * node_size + rank % node_size)
    __syncthreads()
    dl.wait(entered_ptr + node * node_size, node_size, "sys", "acquire", waitValue=generation, compare="ge")
    for other in range(num_nodes):
        if other != node:
            dl.wait(entered_ptr + other * node_size + rank % node_size, 1, "sys", "acquire", waitValue=generation, compare="ge")


@triton.jit(do_not_specialize=["rank", "own_rows", "num_scales", "num_sent"])
def enter_nodes(generation_ptr, entered_ptr, counter_ptr, gate_ptr, arrival_ptr, raised_ptr, finished_ptr, own_ptr, shard_ptr,
                num_segments, num_arrivals, num_raised, own_rows, own_columns, stride_own, stride_shard, num_sent, elements_per_chunk,
                rank, world_size, node_size, BLOCK: tl.constexpr, own_scale_ptr=None, shard_scale_ptr=None, num_scales=0,
                stride_own_scale=1, SHARD_SCALES: tl.constexpr = False):
    """Begins a call, and an AllGather's sending to other nodes. Program 0 is that of `enter` of kernels/tensor_parallel_gemm, and closes
    arrival_ptr[0, num_arrivals) too: gates that other ranks open.

    The other programs copy as those of `enter`, when what the previous call has put from own_ptr is delivered. The last program
    to end puts own_ptr[0, num_sent), in chunks, to its place on the ranks of the other nodes that have this one's place: first on the node
    below, which needs it next. Behind a chunk it raises the chunk's signal there, raised_ptr + chunk, and then opens the gate
    arrival_ptr[node * num_raised + chunk]. finished_ptr counts the programs that have ended, and is zero between calls.
    """
    if tl.program_id(0) == 0:
        meet_nodes(generation_ptr, entered_ptr, counter_ptr, gate_ptr, arrival_ptr, raised_ptr, num_segments, num_arrivals,
                   num_raised, rank, world_size, node_size)
    else:
        if tid(0) == 0:
            libshmem_device.quiet()
        __syncthreads()
        copy_shard(own_ptr, shard_ptr, own_rows, own_columns, stride_own, stride_shard, own_scale_ptr, shard_scale_ptr, num_scales,
                   stride_own_scale, BLOCK, SHARD_SCALES)
    if num_raised > 0:
        is_last = tl.atomic_add(finished_ptr, 1, sem="acq_rel", scope="gpu") == tl.num_programs(0) - 1
        if is_last:
            tl.store(finished_ptr, 0)
            send_shard(generation_ptr, arrival_ptr, raised_ptr, own_ptr, num_raised, num_sent, elements_per_chunk, rank, world_size,
                       node_size)


@triton.jit
def send_shard(generation_ptr, arrival_ptr, raised_ptr, own_ptr, chunks, num_sent, elements_per_chunk, rank, world_size, node_size):
    generation = tl.load(generation_ptr)
    node = rank // node_size
    for distance in range(1, world_size // node_size):
        peer = (rank + world_size - distance * node_size) % world_size
        for chunk in range(chunks):
            first = min(chunk * elements_per_chunk, num_sent)
            elements = min(elements_per_chunk, num_sent - first)
            libshmem_device.putmem_signal_nbi_block(own_ptr + first, own_ptr + first,
                                                    elements * (own_ptr.dtype.element_ty.primitive_bitwidth // 8),
                                                    raised_ptr + chunk, generation, libshmem_device.NVSHMEM_SIGNAL_SET, peer)
            if (tid(0) == 0) & (node_size > 1):
                libshmem_device.fence()
                libshmem_device.signal_op(arrival_ptr + node * chunks + chunk, 1, libshmem_device.NVSHMEM_SIGNAL_SET, peer)


@triton.jit
def sum_of_node(partial_ptr, scatter_ptr, start, offsets, mask, slot_elements, place, NODE_SIZE: tl.constexpr,
                BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """The partial results of the node's ranks for a tile of one segment, in fp32 and in ascending order; the own one is at partial_ptr."""
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for source in range(NODE_SIZE):
        slot = scatter_ptr + source * slot_elements
        if source == place:
            slot = partial_ptr
        total += tl.load(slot + start + offsets, mask=mask, other=0.0).to(tl.float32)
    return total


@triton.jit(do_not_specialize=["rank"])
def reduce_and_send(partial_ptr, scatter_ptr, sum_ptr, inbox_ptr, arrived_ptr, generation_ptr, rows, rows_per_part, N, rank, peer,
                    NODE_SIZE: tl.constexpr, MOST_PARTS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Adds the node's partial results for the segment of `peer`, the rank with this one's place on another node, and puts the sum there.

    partial_ptr, sum_ptr: [rows, N], the latter in the symmetric heap; scatter_ptr: [NODE_SIZE, rows, N], filled by the node's other
    ranks. Program p makes the parts p, p + num_programs, ... of the rows. Each goes by itself into slot `own node` of inbox_ptr,
    [nodes, rows, N], and raises its word of arrived_ptr, [nodes, MOST_PARTS], there, while the next one is made.
    """
    node = rank // NODE_SIZE
    slot_elements = tl.cast(rows, tl.int64) * N
    generation = tl.load(generation_ptr)
    for part in range(tl.program_id(0), tl.cdiv(rows, rows_per_part), tl.num_programs(0)):
        first_row = part * rows_per_part
        part_rows = min(rows_per_part, rows - first_row)
        for row in range(0, part_rows, BLOCK_M):
            for column in range(0, N, BLOCK_N):
                tile_rows = tl.arange(0, BLOCK_M)
                columns = tl.arange(0, BLOCK_N)
                mask = (tile_rows[:, None] < part_rows - row) & (columns[None, :] < N - column)
                start = tl.cast(first_row + row, tl.int64) * N + column
                offsets = tile_rows[:, None] * N + columns[None, :]
                total = sum_of_node(partial_ptr, scatter_ptr, start, offsets, mask, slot_elements, rank % NODE_SIZE, NODE_SIZE,
                                    BLOCK_M, BLOCK_N)
                tl.store(sum_ptr + start + offsets, total.to(sum_ptr.dtype.element_ty), mask=mask)
        __syncthreads()
        first = tl.cast(first_row, tl.int64) * N
        size = sum_ptr.dtype.element_ty.primitive_bitwidth // 8
        libshmem_device.putmem_signal_nbi_block(inbox_ptr + node * slot_elements + first, sum_ptr + first,
                                                tl.cast(part_rows, tl.int64) * N * size, arrived_ptr + node * MOST_PARTS + part,
                                                generation, libshmem_device.NVSHMEM_SIGNAL_SET, peer)


@triton.jit(do_not_specialize=["rank"])
def reduce_nodes(partial_ptr, scatter_ptr, inbox_ptr, out_ptr, arrived_ptr, generation_ptr, rows, parts, N, stride_out, rank,
                 NUM_NODES: tl.constexpr, NODE_SIZE: tl.constexpr, MOST_PARTS: tl.constexpr, BLOCK_M: tl.constexpr,
                 BLOCK_N: tl.constexpr):
    """out = sum over nodes, in fp32 and in ascending order, of their sums; that of the own node is made here and not rounded.

    partial_ptr: [rows, N], the own rows; out_ptr: likewise, stride_out elements from row to row; the other arguments: reduce_and_send,
    for the own segment. Programs are fewer than there is room for, as of reduce_segments (kernels/tensor_parallel_gemm).
    """
    tile_rows = tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_N)
    offsets = tile_rows[:, None] * N + columns[None, :]
    slot_elements = tl.cast(rows, tl.int64) * N
    tiles_n = tl.cdiv(N, BLOCK_N)
    generation = tl.load(generation_ptr)
    for tile in range(tl.program_id(0), tl.cdiv(rows, BLOCK_M) * tiles_n, tl.num_programs(0)):
        first_row = tile // tiles_n * BLOCK_M
        first_column = tile % tiles_n * BLOCK_N
        mask = (tile_rows[:, None] < rows - first_row) & (columns[None, :] < N - first_column)
        start = tl.cast(first_row, tl.int64) * N + first_column
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for node in range(NUM_NODES):
            if node == rank // NODE_SIZE:
                total += sum_of_node(partial_ptr, scatter_ptr, start, offsets, mask, slot_elements, rank % NODE_SIZE, NODE_SIZE, BLOCK_M,
                                     BLOCK_N)
            else:
                slot = inbox_ptr + node * slot_elements
                if tile == tl.program_id(0):
                    token = dl.wait(arrived_ptr + node * MOST_PARTS, parts, "sys", "acquire", waitValue=generation, compare="ge")
                    slot = dl.consume_token(slot, token)
                total += tl.load(slot + start + offsets, mask=mask, other=0.0).to(tl.float32)
        out = out_ptr + tl.cast(first_row, tl.int64) * stride_out + first_column
        tl.store(out + tile_rows[:, None] * stride_out + columns[None, :], total.to(out_ptr.dtype.element_ty), mask=mask)
