"""Tile-centric primitives: tiles of a producer and of a consumer synchronise by their numbers (TileLink, sections 3.2 and 4.1).

The two sides of an overlapped kernel choose their tile sizes and orders freely. A BlockChannel says how tile numbers map to
  - ranges of the tensor (f_S in the paper),
  - the rank that owns them (f_R),
  - channels, which are pieces of the tensor with one signal word each (f_C),
and from that follow the addresses of the signals, how many notifications make a channel complete, and the order in which
tiles are best visited. The maps are affine (`tile_axis`) or read from tables that are filled at run time (`table_axis`). All of it
is ordinary arithmetic after inlining: what is known at compile time costs nothing at run time.

Signals carry generations: when a call begins, every word is set to `generation << 32` (by `block_channel_begin`), a notification
adds 1, and waits compare `>=`. Words never fall, so a call can be replayed and shapes may differ from call to call.

A tile's number is one integer (a whole row of tiles) or a pair (row, column).
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, num_threads, st, tid


@triton.aggregate
class TileAxis:
    """Affine maps of one dimension.

    A dimension of `size` elements is sharded over ranks in runs of `per_rank`; each shard is divided into `channels` runs of
    `per_channel`. TILE elements make a tile. SHARDED tiles are counted shard by shard, so that none reaches into two shards; others
    are counted from the beginning of the dimension.
    """
    size: tl.tensor
    per_rank: tl.tensor
    per_channel: tl.tensor
    channels: tl.tensor
    TILE: tl.constexpr
    SHARDED: tl.constexpr

    @triton.jit
    def tiles_per_rank(self):
        return tl.cdiv(self.per_rank, self.TILE)

    @triton.jit
    def num_tiles(self):
        """Of the whole dimension; some of the last may be empty when they are SHARDED."""
        if self.SHARDED:
            result = tl.cdiv(self.size, self.per_rank) * self.tiles_per_rank()
        else:
            result = tl.cdiv(self.size, self.TILE)
        return result

    @triton.jit
    def range(self, tile):
        """f_S: the elements [low, high) of a tile."""
        if self.SHARDED:
            shard = tile // self.tiles_per_rank()
            low = shard * self.per_rank + tile % self.tiles_per_rank() * self.TILE
            high = min(min(low + self.TILE, (shard + 1) * self.per_rank), self.size)
        else:
            low = tile * self.TILE
            high = min(low + self.TILE, self.size)
        return low, high

    @triton.jit
    def rank(self, tile):
        """f_R: the rank whose shard the tile begins in."""
        low, high = self.range(tile)
        return low // self.per_rank

    @triton.jit
    def channel_of(self, element):
        shard = element // self.per_rank
        return shard * self.channels + (element - shard * self.per_rank) // self.per_channel

    @triton.jit
    def channel_range(self, tile):
        """f_C: the channels [first, last) that a tile lies in; none for an empty tile."""
        low, high = self.range(tile)
        first = self.channel_of(low)
        last = tl.where(high > low, self.channel_of(max(high, 1) - 1) + 1, first)
        return first, last

    @triton.jit
    def tiles_of_channel(self, channel):
        """How many tiles lie in a channel, wholly or in part."""
        shard = channel // self.channels
        begin = channel % self.channels * self.per_channel
        end = min(begin + self.per_channel, self.per_rank)
        if self.SHARDED:
            end = min(end, self.size - shard * self.per_rank)
        else:
            begin += shard * self.per_rank
            end = min(end + shard * self.per_rank, self.size)
        return tl.where(end > begin, (max(end, 1) - 1) // self.TILE - begin // self.TILE + 1, 0)

    @triton.jit
    def ordered(self, index, first_rank):
        """The index-th tile to visit when the shard of first_rank comes first and the others follow cyclically."""
        if self.SHARDED:
            first = first_rank * self.tiles_per_rank()
        else:
            first = tl.cdiv(first_rank * self.per_rank, self.TILE)
        return (first + index) % self.num_tiles()


@triton.aggregate
class TableAxis:
    """Maps of one dimension as tables, an entry per tile; filled at run time, for example by routing.

    low, high: the range of a tile. rank: whose data it is. channel_low, channel_high: the channels it needs or feeds. order: the
    tiles in the order in which they are best visited. All int32.
    """
    tiles: tl.tensor
    low: tl.tensor
    high: tl.tensor
    ranks: tl.tensor
    channel_low: tl.tensor
    channel_high: tl.tensor
    order: tl.tensor

    @triton.jit
    def num_tiles(self):
        return self.tiles

    @triton.jit
    def range(self, tile):
        return tl.load(self.low + tile), tl.load(self.high + tile)

    @triton.jit
    def rank(self, tile):
        return tl.load(self.ranks + tile)

    @triton.jit
    def channel_range(self, tile):
        return tl.load(self.channel_low + tile), tl.load(self.channel_high + tile)

    @triton.jit
    def ordered(self, index, first_rank):
        return tl.load(self.order + index)


@triton.jit
def tile_axis(size, TILE: tl.constexpr, per_rank=None, channels=1, SHARDED: tl.constexpr = False):
    """Affine maps of a dimension. per_rank: elements of a rank's shard, all of them when there is one shard. channels: per shard."""
    if per_rank is None:
        shard = tl.to_tensor(size)
    else:
        shard = tl.to_tensor(per_rank)
    return TileAxis(tl.to_tensor(size), shard, tl.cdiv(shard, channels), tl.to_tensor(channels), TILE, SHARDED)


@triton.jit
def table_axis(tiles, low, high, ranks, channel_low, channel_high, order):
    """Maps of a dimension from tables of int32 with an entry per tile."""
    return TableAxis(tl.to_tensor(tiles), low, high, ranks, channel_low, channel_high, order)


@triton.aggregate
class BlockChannel:
    """What a kernel needs to know to synchronise tiles; made by block_channel().

    rank, world_size: this rank and their number. barriers: the words of this rank's channels, peers: a word per tile for tiles of
    other ranks' same operator, both int64 in the symmetric heap. base: `generation << 32` of this call. rows, columns: axes of
    the producer; consumer_rows, consumer_columns: of the consumer. PUSH: producers write to the rank that owns the tile, and its consumer
    is there; otherwise producer and consumer are on one rank. FIRST: the shard that is produced and consumed first, counted
    from the own one: 0 for gathers, 1 for scatters.
    """
    rank: tl.tensor
    world_size: tl.tensor
    barriers: tl.tensor
    peers: tl.tensor
    base: tl.tensor
    rows: object
    columns: object
    consumer_rows: object
    consumer_columns: object
    PUSH: tl.constexpr
    FIRST: tl.constexpr

    @triton.jit
    def num_column_channels(self):
        return tl.cdiv(self.columns.size, self.columns.per_channel)

    @triton.jit
    def first_rank(self):
        return (self.rank + self.FIRST) % self.world_size

    @triton.jit
    def producer_row(self, index):
        """The index-th row of tiles that the producer should make."""
        return self.rows.ordered(index, self.first_rank())

    @triton.jit
    def consumer_row(self, index):
        """The index-th row of tiles that the consumer should take."""
        return self.consumer_rows.ordered(index, self.first_rank())


@triton.jit
def block_channel(barriers, generation, rows, columns, consumer_rows, consumer_columns, peers=None,
                  PUSH: tl.constexpr = False, FIRST: tl.constexpr = 0):
    """A BlockChannel. barriers: int64 words in the symmetric heap, one per channel. generation: where this call's number is
    (int64). peers: int64 words in the symmetric heap, one per tile of the producer's grid, for peer_tile_notify and _wait."""
    if peers is None:
        peer_words = barriers
    else:
        peer_words = peers
    return BlockChannel(dl.rank(), dl.num_ranks(), barriers, peer_words, tl.load(generation) << 32, rows, columns,
                        consumer_rows, consumer_columns, PUSH, FIRST)


@triton.jit
def row_and_column(tile_id):
    """A tile's number as a pair; the column is None for a whole row."""
    if isinstance(tile_id, tuple):
        return tile_id[0], tile_id[1]
    else:
        return tile_id, None


@triton.jit
def column_channels(axis, column):
    """The channels along the columns that a tile lies in: all of them for a whole row."""
    if column is None:
        first, last = 0, tl.cdiv(axis.size, axis.per_channel)
    else:
        first, last = axis.channel_range(column)
    return first, last


@triton.jit
def notify_ranks(word, first_rank, last_rank):
    """Adds 1 to a word of each of the ranks [first_rank, last_rank), after everything that the block has stored."""
    for target in range(first_rank, last_rank):
        dl.notify(word, target, signal=1, sig_op="add", comm_scope="inter_node")


@triton.jit
def producer_tile_notify(channel, tile_id, mode: tl.constexpr = "p2p"):
    """Marks a tile of the producer as done. mode "p2p": to the consumer on one rank, which is this rank, or with PUSH the
    tile's owner; "broadcast": to the consumers on all ranks. A release: everything that the block has stored comes first."""
    tl.static_assert(mode == "p2p" or mode == "broadcast", "mode of producer_tile_notify is \"p2p\" or \"broadcast\"")
    row, column = row_and_column(tile_id)
    row_first, row_last = channel.rows.channel_range(row)
    column_first, column_last = column_channels(channel.columns, column)
    if mode == "broadcast":
        first_rank = 0
        last_rank = channel.world_size
    else:
        if channel.PUSH:
            first_rank = channel.rows.rank(row)
        else:
            first_rank = channel.rank
        last_rank = first_rank + 1
    for r in range(row_first, row_last):
        for c in range(column_first, column_last):
            notify_ranks(channel.barriers + (r * channel.num_column_channels() + c), first_rank, last_rank)


@triton.jit
def consumer_tile_wait(channel, tile_id):
    """Blocks until every tile of the producer that a tile of the consumer depends on is done. An acquire."""
    row, column = row_and_column(tile_id)
    row_first, row_last = channel.consumer_rows.channel_range(row)
    column_first, column_last = column_channels(channel.consumer_columns, column)
    for r in range(row_first, row_last):
        for c in range(column_first, column_last):
            expected = channel.rows.tiles_of_channel(r) * channel.columns.tiles_of_channel(c)
            wait_for_word(channel.barriers + (r * channel.num_column_channels() + c), channel.base + expected)


@triton.jit
def wait_for_word(word, value):
    dl.wait(word, 1, "sys", "acquire", waitValue=value, compare="ge")


@triton.jit
def peer_word(channel, tile_id):
    row, column = row_and_column(tile_id)
    if column is None:
        return channel.peers + row
    else:
        return channel.peers + (row * channel.columns.num_tiles() + column)


@triton.jit
def peer_tile_notify(channel, tile_id, rank):
    """Marks this rank's part of a tile as done towards the same operator on another rank. A release."""
    dl.notify(peer_word(channel, tile_id), rank, signal=1, sig_op="add", comm_scope="inter_node")


@triton.jit
def peer_tile_wait(channel, tile_id, rank, notifications=1):
    """Blocks until so many peers have notified the tile's word of a rank, which is this rank as a rule. An acquire."""
    wait_for_word(dl.symm_at(peer_word(channel, tile_id), rank), channel.base + notifications)


@triton.aggregate
class TileTensor:
    """A row-major matrix in the symmetric heap, seen in the tiles of a channel's producer. SHARDED: a rank holds only its own
    shard of the rows."""
    data: tl.tensor
    row_stride: tl.tensor
    SHARDED: tl.constexpr


@triton.jit
def tile_tensor(data, row_stride, SHARDED: tl.constexpr = False):
    return TileTensor(data, tl.to_tensor(row_stride), SHARDED)


@triton.jit
def tile_place(channel, tensor, row, column):
    """Offsets of a tile's elements in a rank's tensor, and which of them exist."""
    low, high = channel.rows.range(row)
    left, right = channel.columns.range(column)
    rows = low + tl.arange(0, channel.rows.TILE)
    columns = left + tl.arange(0, channel.columns.TILE)
    mask = (rows < high)[:, None] & (columns < right)[None, :]
    if tensor.SHARDED:
        rows -= channel.rows.rank(row) * channel.rows.per_rank
    return tl.cast(rows, tl.int64)[:, None] * tensor.row_stride + columns[None, :], mask


@triton.jit
def tile_push_data(channel, tensor, tile_id, data, rank=None, mode: tl.constexpr = "p2p"):
    """Stores a tile into the tensor of one rank ("p2p": `rank`, or the tile's owner) or of all ("broadcast")."""
    tl.static_assert(mode == "p2p" or mode == "broadcast", "mode of tile_push_data is \"p2p\" or \"broadcast\"")
    row, column = row_and_column(tile_id)
    offsets, mask = tile_place(channel, tensor, row, column)
    if mode == "broadcast":
        for target in range(0, channel.world_size):
            tl.store(dl.symm_at(tensor.data, target) + offsets, data, mask=mask)
    else:
        if rank is None:
            target = channel.rows.rank(row)
        else:
            target = rank
        tl.store(dl.symm_at(tensor.data, target) + offsets, data, mask=mask)


@triton.jit
def tile_pull_data(channel, tensor, tile_id, rank=None):
    """Loads a tile from the tensor of a rank, the tile's owner when none is given; zero outside of the tensor."""
    row, column = row_and_column(tile_id)
    offsets, mask = tile_place(channel, tensor, row, column)
    if rank is None:
        source = channel.rows.rank(row)
    else:
        source = rank
    return tl.load(dl.symm_at(tensor.data, source) + offsets, mask=mask, other=0.0)


@triton.jit
def block_channel_begin(generation_ptr, entered_ptr, words_ptr, gates_ptr, num_words):
    """Begins a call: the next generation, all words of this rank to `generation << 32`, all gates closed, then a barrier over all ranks.

    Whoever has passed knows that every rank has finished its previous call on this stream and that no word is stale. One block.
    """
    thread = tid(0)
    world_size = dl.num_ranks()
    generation = tl.load(generation_ptr) + 1
    __syncthreads()
    if thread == 0:
        st(generation_ptr, generation, scope="gpu", semantic="relaxed")
    for first in range(0, num_words, num_threads()):
        if first + thread < num_words:
            st(words_ptr + first + thread, generation << 32, scope="sys", semantic="relaxed")
    for first in range(0, world_size, num_threads()):
        if first + thread < world_size:
            st(gates_ptr + first + thread, 0, scope="sys", semantic="relaxed")
    __syncthreads()
    for first in range(0, world_size, num_threads()):
        if first + thread < world_size:
            st(dl.symm_at(entered_ptr, first + thread) + dl.rank(), generation, scope="sys", semantic="release")
    __syncthreads()
    dl.wait(entered_ptr, world_size, "sys", "acquire", waitValue=generation, compare="ge")
