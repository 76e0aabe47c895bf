"""`triton_dist.language` (dl), `ditron.language`: ranks, symmetric memory, threads within tiles."""
from . import extra
from . import dl as distributed_ops, dl as simt_ops, dl as smem_ops, dl as tma, dl as pipeline, dl as tensormap
from .language_extra import (ld_vector, st_vector)

# The numbers of a tensor map (triton_dist.language.tma), as the PTX ISA has them, and of an address space (smem_ops).
ELEM_BF16: int = 10
ELEM_F32: int = 7
SWIZZLE_NONE: int = 0
SWIZZLE_128B: int = 3
INTERLEAVE_NONE: int = 0
FILL_NONE: int = 0
TMAP_RANK_2D: int = 1
SMEM_GENERIC_POINTER_ADDR_SPACE: int = 0


# Distributed.

def rank(axis: int = -1) -> tensor:
    """this rank"""

def num_ranks(axis: int = -1) -> tensor:
    """number of ranks"""

def symm_at(ptr: ptr, rank: num) -> tensor:
    """address of the same symmetric object on another rank"""

def wait(barrierPtrs: ptr, numBarriers: num, scope: str, semantic: str, waitValue: num = 1, compare: str = "eq") -> tensor:
    """the block waits until consecutive signal words satisfy a comparison (compare is ours: eq, ne, gt, ge, lt, le); gives
    a token"""

def consume_token(value, token: tensor) -> any:
    """the same tensor or tensor descriptor, usable only after the wait that gave the token"""

def notify(ptr: ptr, rank: num, signal: num = 1, sig_op: str = "set", comm_scope: str = "inter_node") -> None:
    """after all earlier stores of the block, sets or adds to a signal word on a rank; comm_scope gpu, intra_node,
    inter_node"""


# Regions of single threads, and vectors.

@handler("simtRegion")
def simt_exec_region() -> any:
    """with dl.simt_exec_region() as (thread, threads): inside, x[i, j] is an element of a tile, and x[i, j] = v changes it"""

def make_vector(values) -> vector:
    """a vector of scalars of one type, each thread's own; takes + - *, indices, slices, len and iteration"""

def zeros_vector(vec_size: int, dtype: dtype) -> vector:
    """a vector of zeros"""


# Shared memory that a kernel manages itself.

@handler("allocateShared")
def allocate_smem(element_ty: dtype, shape: shape, vec: int = 1, per_phase: int = 1, max_phase: int = 1) -> smem:
    """shared memory of the block for the whole kernel, stored row by row with a swizzle; has dtype, shape, numel, rank,
    nbytes"""

@handler("sharedIndex")
def smem_index(smem, index: num) -> smem:
    """the part at an index of the first dimension; keeps the swizzle"""

@handler("sharedLoad")
def smem_load(smem, indices) -> tensor:
    """an element, loaded by every thread that gets here"""

@handler("sharedStore")
def smem_store(smem, value: num, indices) -> None:
    """stores an element, by every thread that gets here"""

@handler("sharedPointer")
def smem_get_ptr(smem, indices=None) -> tensor:
    """the pointer to an element, or to the beginning"""

@handler("sharedAddress")
def get_smem_shared_address_u32(smem, indices=None) -> tensor:
    """the address within shared memory, for tma_language"""

@handler("sharedDealloc")
def smem_dealloc(smem) -> None:
    """no effect: the memory stays the block's until the kernel ends"""


# mbarriers, tensor copies, tensor maps (compute capability 9.0).

@library("tma_pipeline")
class PipelineState:
    """place in a ring of stages, with the parity of its mbarriers; state = state.advance()"""

    def __init__(self, index, phase, num_stages: const) -> None: ...

@library("tma_pipeline")
class TmaPipeline:
    """a ring of buffers in shared memory that tensor copies fill"""

    def __init__(self, ready_bars, empty_bars, bufs, num_stages: const) -> None: ...

@library("tma_pipeline")
def store_and_wait(tmap_gen, buf_smem, coord0, coord1, pending: const):
    """a tensor store, and the wait for it, by one thread"""

@library("tma_pipeline")
def create_tmap_2d(smem_tmap, tmap_global_ptr, data_ptr, N, M, stride_bytes, BN, BM, elemtype: const, swizzle: const):
    """makes a tensor map of M rows of N elements in 128 bytes of shared memory and publishes it in global memory; gives its
    address"""

@library("tma_pipeline")
def tmap_update_address(smem_tmap, tmap_global_ptr, new_data_ptr):
    """gives a tensor map another tensor of the same form"""


# Tile-centric primitives (docs/tile-link.md).

@library("tilelink")
def tile_axis(size, TILE: const, per_rank=None, channels=1, SHARDED: const = False):
    """affine maps of a dimension: tiles to ranges, ranks and channels"""

@library("tilelink")
def table_axis(tiles, low, high, ranks, channel_low, channel_high, order):
    """the same maps read from tables of int32, an entry per tile"""

@library("tilelink")
def block_channel(barriers, generation, rows, columns, consumer_rows, consumer_columns, peers=None, PUSH: const = False,
                  FIRST: const = 0):
    """a BlockChannel: what a kernel needs to synchronise tiles of a producer and a consumer"""

@library("tilelink")
class BlockChannel:
    """class of block_channel's result"""

@library("tilelink")
class TileAxis:
    """class of tile_axis's result"""

@library("tilelink")
class TableAxis:
    """class of table_axis's result"""

@library("tilelink")
class TileTensor:
    """class of tile_tensor's result"""

@library("tilelink")
def producer_tile_notify(channel, tile_id, mode: const = "p2p"):
    """marks a tile of the producer as done for its consumer, on one rank or with 'broadcast' on all"""

@library("tilelink")
def consumer_tile_wait(channel, tile_id):
    """blocks until all tiles of the producer that a tile of the consumer needs are done"""

@library("tilelink")
def peer_tile_notify(channel, tile_id, rank):
    """marks a tile as done towards the same operator on another rank"""

@library("tilelink")
def peer_tile_wait(channel, tile_id, rank, notifications=1):
    """blocks until peers have notified a tile's word on a rank so often"""

@library("tilelink")
def tile_tensor(data, row_stride, SHARDED: const = False):
    """a row-major matrix in the symmetric heap, for tile_push_data and tile_pull_data"""

@library("tilelink")
def tile_push_data(channel, tensor, tile_id, data, rank=None, mode: const = "p2p"):
    """stores a tile on its owner, on a rank, or with 'broadcast' on all"""

@library("tilelink")
def tile_pull_data(channel, tensor, tile_id, rank=None):
    """loads a tile from its owner or from a rank"""

@library("tilelink")
def block_channel_begin(generation_ptr, entered_ptr, words_ptr, gates_ptr, num_words):
    """begins a call: next generation, all words behind it, a barrier over all ranks"""


# Part of the language, but not of this version.

def extern_elementwise(symbol: str, args, is_pure: bool = True) -> any:
    """a function of libdevice by its symbol (__nv_...) on a tuple of operands"""

@refused("foreign bitcode is not linked; use tl.extra.libdevice")
def extern_call(*args): ...

class vector:
    """class of vectors, for isinstance and annotations"""

    @handler("vectorTo")
    def to(self, dtype: dtype) -> vector:
        """each element converted"""

    @handler("vectorRecast")
    def recast(self, dtype: dtype) -> vector:
        """the same bits as a vector of another type"""

class SharedMemoryDesc:
    """class of shared memory, for annotations"""
