//===- tile_link_test.cpp - Kernels written with the tile-centric primitives ----------------------------------------===//
//
// The three kernels of kernels/tile_link on 4 ranks against plain C++, with shapes that no tile divides, several calls in a row
// with new data, a slow rank, and replayed from a graph. Tiles of producer and consumer differ everywhere.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"

#include "ditron/ops/TileChannel.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace ditron::e2e {
namespace {

using ops::KernelCall;
using ops::PreparedCall;
using ops::TileChannel;
using runtime::Event;
using runtime::Stream;

constexpr uint32_t ranks = 4;

/// (seed, slow rank or -1)
using Setting = std::tuple<uint64_t, int>;

class TileLink : public KernelTest, public testing::WithParamInterface<Setting> {
protected:
  void SetUp() override {
    REQUIRE_RANKS(ranks);
    auto [seed, slow] = GetParam();
    start(ranks, seeded(seed, slow < 0 ? std::nullopt : std::optional<uint32_t>(slow)));
  }
  TileChannel makeChannel(uint64_t channels, uint64_t peerTiles = 0) {
    auto channel = TileChannel::create(world(), "tiles", channels, peerTiles);
    EXPECT_OK(channel);
    return std::move(*channel);
  }
  Status enqueue(Rank &rank, Stream &stream, const KernelCall &call) {
    DITRON_ASSIGN_OR_RETURN(PreparedCall prepared, PreparedCall::create(sharedJit(), rank, call));
    return prepared.enqueue(stream);
  }
  uint64_t seed() const { return std::get<0>(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Worlds, TileLink, testing::Values(Setting(1, -1), Setting(2, 3)),
                         [](const testing::TestParamInfo<Setting> &info) {
                           return fmt::format("seed{}{}", std::get<0>(info.param), std::get<1>(info.param) < 0 ? "" : "_slow");
                         });

/// rows x depth times depth x columns.
std::vector<double> product(const std::vector<float> &a, const std::vector<float> &b, int64_t rows, int64_t columns, int64_t depth) {
  std::vector<double> result(rows * columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t j = 0; j < columns; ++j)
        result[i * columns + j] += double(a[i * depth + k]) * b[k * columns + j];
  return result;
}

TEST_P(TileLink, GemmRingReduceScatter) {
  // Shards of 50 rows (the last has 47), two channels each; GEMM tiles of 32 x 32 straddle shards, ring tiles of 16 x 64 do not.
  const int64_t rows = 197, columns = 90, depth = 40, perRank = 50;
  const uint32_t channels = 2;
  TileChannel channel = makeChannel(ranks * channels, ranks * 4 * 2);
  SymmetricBuffer inbox = symmetric(DataType::F32, rows * columns, "inbox");
  std::vector<Buffer> a, b, partial, out;
  for (uint32_t r = 0; r < ranks; ++r) {
    a.push_back(zeros(DataType::F16, rows * depth, "a", r));
    b.push_back(zeros(DataType::F16, depth * columns, "b", r));
    partial.push_back(zeros(DataType::F32, rows * columns, "product", r));
    out.push_back(zeros(DataType::F32, perRank * columns, "out", r));
  }
  for (int call = 0; call < 3; ++call) {
    std::vector<double> expected(rows * columns);
    for (uint32_t r = 0; r < ranks; ++r) {
      std::vector<float> aValues = randomFloats(rows * depth, seed() + 100 * call + r, -1, 1, DataType::F16);
      std::vector<float> bValues = randomFloats(depth * columns, seed() + 100 * call + r + 50, -1, 1, DataType::F16);
      a[r] = putAs(DataType::F16, aValues, "a", r);
      b[r] = putAs(DataType::F16, bValues, "b", r);
      std::vector<double> part = product(aValues, bValues, rows, columns, depth);
      std::transform(part.begin(), part.end(), expected.begin(), expected.begin(), std::plus<>());
    }
    for (uint32_t r = 0; r < ranks; ++r) {
      KernelCall kernel;
      kernel.source = "tile_link";
      kernel.kernel = "gemm_ring_reduce_scatter";
      kernel.arguments = {{"a_ptr", a[r]}, {"b_ptr", b[r]}, {"product_ptr", partial[r]}, {"inbox_ptr", inbox.on(r)},
                          {"out_ptr", out[r]}, {"barriers_ptr", channel.barriers(r)}, {"peers_ptr", channel.peers(r)},
                          {"generation_ptr", channel.generation(r)}, {"M", rows}, {"N", columns}, {"K", depth},
                          {"rows_per_rank", perRank}, {"channels", channels}, {"RING_BLOCKS", 2}, {"BLOCK_M", 32},
                          {"BLOCK_N", 32}, {"BLOCK_K", 32}, {"RING_M", 16}, {"RING_N", 64}};
      kernel.grid = {6, 1, 1};
      ASSERT_OK(enqueue(rank(r), rank(r).stream(), channel.begin(rank(r))));
      ASSERT_OK(enqueue(rank(r), rank(r).stream(), kernel));
    }
    ASSERT_OK(world().synchronize());
    for (uint32_t r = 0; r < ranks; ++r) {
      int64_t first = r * perRank, last = std::min(rows, first + perRank);
      std::vector<float> actual = get<float>(out[r]);
      actual.resize((last - first) * columns);
      expectClose(actual, {expected.begin() + first * columns, expected.begin() + last * columns}, 1e-3, 1e-3,
                  fmt::format("call {}, rank {}", call, r));
    }
  }
}

/// The tables of dl.table_axis for pairs sorted by expert: tiles of `tileRows` pairs of one expert, with the channels that hold their
/// tokens, visited in the order in which those arrive at a rank.
struct RoutingTables {
  std::vector<int32_t> sortedIds, expert, low, high, rank, channelLow, channelHigh, order;
};
RoutingTables route(const std::vector<int32_t> &experts, int32_t numExperts, int32_t topk, int32_t tileRows,
                    int32_t perRank, int32_t ownRank) {
  RoutingTables tables;
  for (int32_t expert = 0; expert < numExperts; ++expert) {
    size_t begin = tables.sortedIds.size();
    for (size_t id = 0; id < experts.size(); ++id)
      if (experts[id] == expert)
        tables.sortedIds.push_back(id);
    for (size_t low = begin; low < tables.sortedIds.size(); low += tileRows) {
      size_t high = std::min(low + tileRows, tables.sortedIds.size());
      // Pairs of an expert are in the order of their tokens.
      tables.expert.push_back(expert);
      tables.low.push_back(low);
      tables.high.push_back(high);
      tables.channelLow.push_back(tables.sortedIds[low] / topk / perRank);
      tables.channelHigh.push_back(tables.sortedIds[high - 1] / topk / perRank + 1);
      tables.rank.push_back(tables.channelLow.back());
    }
  }
  // A tile can begin when the last of its shards has arrived; shards come from the own rank on, cyclically.
  auto lastArrival = [&](int32_t tile) {
    int32_t latest = 0;
    for (int32_t shard = tables.channelLow[tile]; shard < tables.channelHigh[tile]; ++shard)
      latest = std::max(latest, (shard - ownRank + int32_t(ranks)) % int32_t(ranks));
    return latest;
  };
  tables.order.resize(tables.low.size());
  std::iota(tables.order.begin(), tables.order.end(), 0);
  std::stable_sort(tables.order.begin(), tables.order.end(),
                   [&](int32_t x, int32_t y) { return lastArrival(x) < lastArrival(y); });
  return tables;
}

TEST_P(TileLink, AllGatherMoe) {
  const int64_t tokens = 101, hidden = 72, columns = 40, perRank = 26;
  const int32_t experts = 5, topk = 2, tileRows = 16;
  TileChannel channel = makeChannel(ranks);
  SymmetricBuffer shards = symmetric(DataType::F16, perRank * hidden, "shards");
  for (int call = 0; call < 2; ++call) {
    std::vector<float> tokenValues = randomFloats(tokens * hidden, seed() + call, -1, 1, DataType::F16);
    std::vector<float> weightValues = randomFloats(experts * hidden * columns, seed() + call + 9, -1, 1, DataType::F16);
    std::vector<int32_t> chosen;
    for (int64_t expert : randomIntegers(tokens * topk, seed() + call + 5, 0, experts - 1))
      chosen.push_back(int32_t(expert));
    std::vector<double> expected(tokens * topk * columns);
    for (int64_t id = 0; id < tokens * topk; ++id)
      for (int64_t k = 0; k < hidden; ++k)
        for (int64_t j = 0; j < columns; ++j)
          expected[id * columns + j] += double(tokenValues[id / topk * hidden + k]) *
                                        weightValues[(chosen[id] * hidden + k) * columns + j];
    std::vector<Buffer> out, kept;
    auto keep = [&](Buffer buffer) { return kept.emplace_back(std::move(buffer)).pointer(); };
    for (uint32_t r = 0; r < ranks; ++r) {
      std::vector<float> shard(tokenValues.begin() + r * perRank * hidden,
                               tokenValues.begin() + std::min<int64_t>((r + 1) * perRank, tokens) * hidden);
      shard.resize(perRank * hidden);
      Buffer values = putAs(DataType::F16, shard, "shard", r);
      std::vector<uint16_t> bits = get<uint16_t>(values);
      ASSERT_OK(shards.upload(r, bits.data(), bits.size() * 2));
      RoutingTables tables = route(chosen, experts, topk, tileRows, perRank, r);
      out.push_back(zeros(DataType::F32, tokens * topk * columns, "out", r));
      KernelCall kernel;
      kernel.source = "tile_link";
      kernel.kernel = "all_gather_moe";
      kernel.arguments = {{"shard_ptr", shards.on(r)},
                          {"tokens_ptr", keep(zeros(DataType::F16, tokens * hidden, "tokens", r))},
                          {"weights_ptr", keep(putAs(DataType::F16, weightValues, "weights", r))},
                          {"sorted_ids_ptr", keep(put(tables.sortedIds, "sorted_ids", r))},
                          {"expert_ptr", keep(put(tables.expert, "expert", r))},
                          {"low_ptr", keep(put(tables.low, "low", r))},
                          {"high_ptr", keep(put(tables.high, "high", r))},
                          {"rank_ptr", keep(put(tables.rank, "rank", r))},
                          {"channel_low_ptr", keep(put(tables.channelLow, "channel_low", r))},
                          {"channel_high_ptr", keep(put(tables.channelHigh, "channel_high", r))},
                          {"order_ptr", keep(put(tables.order, "order", r))},
                          {"out_ptr", out[r]},
                          {"barriers_ptr", channel.barriers(r)},
                          {"generation_ptr", channel.generation(r)},
                          {"M", tokens},
                          {"H", hidden},
                          {"N", columns},
                          {"tiles", int64_t(tables.low.size())},
                          {"rows_per_rank", perRank},
                          {"channels", 1},
                          {"TOPK", topk},
                          {"GATHER_BLOCKS", 2},
                          {"GATHER_M", 8},
                          {"GATHER_N", 32},
                          {"BLOCK_M", tileRows},
                          {"BLOCK_N", 32},
                          {"BLOCK_K", 32}};
      kernel.grid = {6, 1, 1};
      ASSERT_OK(enqueue(rank(r), rank(r).stream(), channel.begin(rank(r))));
      ASSERT_OK(enqueue(rank(r), rank(r).stream(), kernel));
    }
    ASSERT_OK(world().synchronize());
    for (uint32_t r = 0; r < ranks; ++r)
      expectClose(get<float>(out[r]), expected, 1e-3, 1e-3, fmt::format("call {}, rank {}", call, r));
  }
}

/// softmax(q k^T * scale) v of one head.
void attend(const float *q, const float *k, const float *v, double *out, int64_t queries, int64_t keys, int64_t depth, double scale) {
  for (int64_t i = 0; i < queries; ++i) {
    std::vector<double> powers(keys);
    double largest = -INFINITY, total = 0;
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t d = 0; d < depth; ++d)
        powers[j] += double(q[i * depth + d]) * k[j * depth + d] * scale;
      largest = std::max(largest, powers[j]);
    }
    for (double &power : powers)
      total += power = std::exp(power - largest);
    for (int64_t j = 0; j < keys; ++j)
      for (int64_t d = 0; d < depth; ++d)
        out[i * depth + d] += powers[j] / total * v[j * depth + d];
  }
}

TEST_P(TileLink, AllGatherAttention) {
  const int64_t heads = 2, queries = 37, keysPerRank = 24, keys = 90, depth = 32;
  const double scale = 0.25;
  TileChannel channel = makeChannel(ranks);
  SymmetricBuffer k = symmetric(DataType::F16, heads * keys * depth, "k");
  SymmetricBuffer v = symmetric(DataType::F16, heads * keys * depth, "v");
  auto keysOf = [&](uint32_t r) { return std::min<int64_t>(keysPerRank, keys - r * keysPerRank); };
  std::vector<Stream> copies;
  std::vector<Event> begun, copied;
  std::vector<Buffer> q, out;
  for (uint32_t r = 0; r < ranks; ++r) {
    copies.push_back(*rank(r).createStream("copies"));
    begun.push_back(*rank(r).createEvent());
    copied.push_back(*rank(r).createEvent());
    q.push_back(zeros(DataType::F16, heads * queries * depth, "q", r));
    out.push_back(zeros(DataType::F32, heads * queries * depth, "out", r));
  }
  // One call on a rank: the kernel on the default stream, beside it the copies of the other ranks' keys and values.
  auto call = [&](uint32_t r) -> Status {
    Stream &stream = rank(r).stream();
    DITRON_RETURN_IF_ERROR(enqueue(rank(r), stream, channel.begin(rank(r))));
    DITRON_RETURN_IF_ERROR(stream.record(begun[r]));
    DITRON_RETURN_IF_ERROR(copies[r].wait(begun[r]));
    for (uint32_t step = 0; step < ranks; ++step) {
      uint32_t source = (r + step) % ranks;
      for (const SymmetricBuffer *tensor : {&k, &v}) {
        for (int64_t head = 0; step > 0 && head < heads; ++head) {
          int64_t at = (head * keys + source * keysPerRank) * depth;
          DITRON_RETURN_IF_ERROR(
              ops::rankCopyData(copies[r], tensor->on(r) + at, tensor->on(source) + at, keysOf(source) * depth));
        }
        DITRON_RETURN_IF_ERROR(channel.rankNotify(copies[r], source, r));
      }
    }
    DITRON_RETURN_IF_ERROR(copies[r].record(copied[r]));
    KernelCall kernel;
    kernel.source = "tile_link";
    kernel.kernel = "all_gather_attention";
    kernel.arguments = {{"q_ptr", q[r]}, {"k_ptr", k.on(r)}, {"v_ptr", v.on(r)}, {"out_ptr", out[r]},
                        {"barriers_ptr", channel.barriers(r)}, {"generation_ptr", channel.generation(r)}, {"queries", queries},
                        {"keys", keys}, {"keys_per_rank", keysPerRank}, {"scale", scale}, {"HEAD_DIM", depth}, {"BLOCK_M", 16},
                        {"BLOCK_N", 32}};
    kernel.grid = {uint32_t((queries + 15) / 16), uint32_t(heads), 1};
    DITRON_RETURN_IF_ERROR(enqueue(rank(r), stream, kernel));
    return stream.wait(copied[r]);
  };
  std::vector<runtime::Graph> graphs;
  for (int round = 0; round < 4; ++round) {
    std::vector<float> kValues = randomFloats(heads * keys * depth, seed() + round, -1, 1, DataType::F16);
    std::vector<float> vValues = randomFloats(heads * keys * depth, seed() + round + 20, -1, 1, DataType::F16);
    std::vector<uint16_t> kBits = get<uint16_t>(putAs(DataType::F16, kValues)), vBits = get<uint16_t>(putAs(DataType::F16, vValues));
    std::vector<std::vector<double>> expected;
    for (uint32_t r = 0; r < ranks; ++r) {
      std::vector<float> qValues = randomFloats(heads * queries * depth, seed() + round + 40 + r, -2, 2, DataType::F16);
      std::vector<uint16_t> qBits = get<uint16_t>(putAs(DataType::F16, qValues, "q_values", r));
      ASSERT_OK(q[r].upload(qBits.data(), qBits.size() * 2));
      // A rank starts with its own part only.
      for (auto [tensor, bits] : {std::pair(&k, &kBits), std::pair(&v, &vBits)}) {
        std::vector<uint16_t> own(bits->size(), 0x7e00); // NaN where nothing has arrived
        for (int64_t head = 0; head < heads; ++head) {
          int64_t at = (head * keys + r * keysPerRank) * depth;
          std::copy_n(bits->begin() + at, keysOf(r) * depth, own.begin() + at);
        }
        ASSERT_OK(tensor->upload(r, own.data(), own.size() * 2));
      }
      expected.emplace_back(heads * queries * depth);
      for (int64_t head = 0; head < heads; ++head)
        attend(&qValues[head * queries * depth], &kValues[head * keys * depth], &vValues[head * keys * depth],
               &expected.back()[head * queries * depth], queries, keys, depth, scale);
    }
    // Two eager calls, then the same captured and replayed.
    for (uint32_t r = 0; r < ranks; ++r) {
      if (round < 2) {
        ASSERT_OK(call(r));
        continue;
      }
      if (round == 2) {
        ASSERT_OK(rank(r).stream().beginCapture());
        ASSERT_OK(call(r));
        auto graph = rank(r).stream().endCapture();
        ASSERT_OK(graph);
        graphs.push_back(*graph);
      }
      ASSERT_OK(rank(r).stream().launch(graphs[r]));
    }
    ASSERT_OK(world().synchronize());
    for (uint32_t r = 0; r < ranks; ++r)
      expectClose(get<float>(out[r]), expected[r], 5e-3, 5e-3, fmt::format("round {}, rank {}", round, r));
  }
}

/// A tile is pushed to all ranks, or to its owner, by tiles that the consumer's do not match; every element ends where the maps say.
const char *const pushText = R"(
@triton.jit
def gather(x_ptr, gathered_ptr, out_ptr, barriers_ptr, generation_ptr, M, N, rows_per_rank, TILE: tl.constexpr, TAKE: tl.constexpr,
           WIDTH: tl.constexpr):
    rows = dl.tile_axis(M, TILE, per_rank=rows_per_rank, channels=3, SHARDED=True)
    columns = dl.tile_axis(N, WIDTH)
    takes = dl.tile_axis(M, TAKE, per_rank=rows_per_rank, channels=3)
    channel = dl.block_channel(barriers_ptr, generation_ptr, rows, columns, takes, columns)
    gathered = dl.tile_tensor(gathered_ptr, N)
    own = channel.rank * rows.tiles_per_rank()
    for index in range(tl.program_id(0), rows.tiles_per_rank() * columns.num_tiles(), tl.num_programs(0)):
        row = own + index // columns.num_tiles()
        column = index % columns.num_tiles()
        low, high = rows.range(row)
        r = low + tl.arange(0, TILE)
        c = column * WIDTH + tl.arange(0, WIDTH)
        mask = (r < high)[:, None] & (c < N)[None, :]
        data = tl.load(x_ptr + (r - channel.rank * rows_per_rank)[:, None] * N + c[None, :], mask=mask)
        dl.tile_push_data(channel, gathered, (row, column), data, mode="broadcast")
        dl.producer_tile_notify(channel, (row, column), "broadcast")
    for index in range(tl.program_id(0), takes.num_tiles(), tl.num_programs(0)):
        row = channel.consumer_row(index)
        dl.consumer_tile_wait(channel, row)
        low, high = takes.range(row)
        r = low + tl.arange(0, TAKE)
        for left in range(0, N, WIDTH):
            c = left + tl.arange(0, WIDTH)
            mask = (r < high)[:, None] & (c < N)[None, :]
            tl.store(out_ptr + r[:, None] * N + c[None, :], tl.load(gathered_ptr + r[:, None] * N + c[None, :], mask=mask) * 2, mask=mask)

@triton.jit
def scatter(x_ptr, inbox_ptr, out_ptr, barriers_ptr, generation_ptr, M, N, rows_per_rank, SENDER, TILE: tl.constexpr,
            WIDTH: tl.constexpr):
    rows = dl.tile_axis(M, TILE, per_rank=rows_per_rank, SHARDED=True)
    columns = dl.tile_axis(N, WIDTH)
    channel = dl.block_channel(barriers_ptr, generation_ptr, rows, columns, rows, columns, PUSH=True, FIRST=1)
    inbox = dl.tile_tensor(inbox_ptr, N, SHARDED=True)
    if channel.rank == SENDER:
        for index in range(0, rows.num_tiles() * columns.num_tiles()):
            row = channel.producer_row(index // columns.num_tiles())
            column = index % columns.num_tiles()
            low, high = rows.range(row)
            r = low + tl.arange(0, TILE)
            c = column * WIDTH + tl.arange(0, WIDTH)
            data = tl.load(x_ptr + r[:, None] * N + c[None, :], mask=(r < high)[:, None] & (c < N)[None, :])
            dl.tile_push_data(channel, inbox, (row, column), data)
            dl.producer_tile_notify(channel, (row, column))
    own = channel.rank * rows.tiles_per_rank()
    for row in range(own, own + rows.tiles_per_rank()):
        dl.consumer_tile_wait(channel, row)
        low, high = rows.range(row)
        r = low - channel.rank * rows_per_rank + tl.arange(0, TILE)
        for left in range(0, N, WIDTH):
            c = left + tl.arange(0, WIDTH)
            mask = (low + tl.arange(0, TILE) < high)[:, None] & (c < N)[None, :]
            tl.store(out_ptr + r[:, None] * N + c[None, :], tl.load(inbox_ptr + r[:, None] * N + c[None, :], mask=mask), mask=mask)
)";

TEST_P(TileLink, TilesPushedToAllRanks) {
  const int32_t rows = 61, columns = 21, perRank = 17; // The last shard has 10 rows.
  TileChannel channel = makeChannel(ranks * 3);
  SymmetricBuffer gathered = symmetric(DataType::I32, rows * columns, "gathered");
  for (int call = 0; call < 2; ++call) {
    std::vector<int32_t> all = convertAll<int32_t>(randomIntegers(rows * columns, seed() + call, -1000, 1000));
    std::vector<Buffer> x, out;
    for (uint32_t r = 0; r < ranks; ++r) {
      int32_t first = r * perRank, last = std::min(rows, first + perRank);
      x.push_back(put(std::vector<int32_t>(all.begin() + first * columns, all.begin() + last * columns), "x", r));
      out.push_back(zeros(DataType::I32, rows * columns, "out", r));
      ASSERT_OK(enqueue(rank(r), rank(r).stream(), channel.begin(rank(r))));
      ASSERT_OK(launch(pushText, "gather", {.grid = {3, 1, 1}},
                       {{x[r], gathered.on(r), out[r], channel.barriers(r), channel.generation(r), rows, columns, perRank},
                        {{"TILE", 4}, {"TAKE", 16}, {"WIDTH", 8}}}, r));
    }
    ASSERT_OK(world().synchronize());
    for (int32_t &value : all)
      value *= 2;
    for (uint32_t r = 0; r < ranks; ++r)
      expectSame(get<int32_t>(out[r]), all, fmt::format("call {}, rank {}", call, r));
  }
}

TEST_P(TileLink, TilesPushedToTheirOwners) {
  const int32_t rows = 30, columns = 11, perRank = 8; // The last shard has 6 rows.
  TileChannel channel = makeChannel(ranks);
  SymmetricBuffer inbox = symmetric(DataType::I32, perRank * columns, "inbox");
  for (int32_t sender = 0; sender < 2; ++sender) {
    std::vector<int32_t> all = convertAll<int32_t>(randomIntegers(rows * columns, seed() + sender, -1000, 1000));
    std::vector<Buffer> x, out;
    for (uint32_t r = 0; r < ranks; ++r) {
      x.push_back(put(all, "x", r));
      out.push_back(zeros(DataType::I32, perRank * columns, "out", r));
      ASSERT_OK(enqueue(rank(r), rank(r).stream(), channel.begin(rank(r))));
      ASSERT_OK(launch(pushText, "scatter", {.grid = {1, 1, 1}},
                       {{x[r], inbox.on(r), out[r], channel.barriers(r), channel.generation(r), rows, columns, perRank, sender},
                        {{"TILE", 4}, {"WIDTH", 8}}}, r));
    }
    ASSERT_OK(world().synchronize());
    for (uint32_t r = 0; r < ranks; ++r) {
      std::vector<int32_t> expected(perRank * columns);
      for (int32_t i = 0; i < perRank && int32_t(r) * perRank + i < rows; ++i)
        std::copy_n(all.begin() + (r * perRank + i) * columns, columns, expected.begin() + i * columns);
      expectSame(get<int32_t>(out[r]), expected, fmt::format("sender {}, rank {}", sender, r));
    }
  }
}

TEST_P(TileLink, RankWaitHoldsAStreamUntilNotified) {
  TileChannel channel = makeChannel(1);
  std::vector<int> order;
  for (uint32_t r = 0; r < ranks; ++r)
    ASSERT_OK(enqueue(rank(r), rank(r).stream(), channel.begin(rank(r))));
  // Rank 0 goes on only after rank 1 has told it twice.
  ASSERT_OK(channel.rankWait(rank(0).stream(), 1, 2));
  ASSERT_OK(rank(0).stream().hostCallback([&] { order.push_back(0); }));
  ASSERT_OK(channel.rankNotify(rank(1).stream(), 0, 0));
  ASSERT_OK(rank(1).stream().hostCallback([&] { order.push_back(1); }));
  ASSERT_OK(channel.rankNotify(rank(1).stream(), 0, 0));
  ASSERT_OK(world().synchronize());
  EXPECT_EQ(order, (std::vector<int>{1, 0}));
  EXPECT_THAT(channel.rankNotify(rank(0).stream(), 1, 0).message(), testing::HasSubstr("channel 1 does not exist; there are 1"));
  EXPECT_THAT(channel.rankWait(rank(0).stream(), 9).message(), testing::HasSubstr("rank 9 does not exist; there are 4"));
}

} // namespace
} // namespace ditron::e2e
