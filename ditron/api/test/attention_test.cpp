//===- attention_test.cpp - Attention, forward, backward, of a decoder, and layers, through the interface -------===//
#include "ditron/api/test/ApiTest.h"
#include "ditron/api/test/CppRanks.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

namespace ditron::api::test {
namespace {

using testing::HasSubstr;
/// What fp16 is on the host.
using Half = _Float16;

std::vector<Half> drawn(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Half> values(count);
  for (Half &value : values)
    value = static_cast<Half>(std::uniform_real_distribution<float>(-1, 1)(random));
  return values;
}

/// Rows of a head: the element `column` of row `row`.
using Rows = std::function<double(int64_t row, int64_t column)>;

struct Row {
  std::vector<double> out;
  double lse = 0;
};
/// Attention of a query to the first `keys` keys, scores by 1 / sqrt(dim).
Row attend(const Rows &q, const Rows &k, const Rows &v, int64_t query, int64_t keys, int64_t dim) {
  std::vector<double> powers;
  double sum = 0;
  for (int64_t key = 0; key < keys; ++key) {
    double score = 0;
    for (int64_t d = 0; d < dim; ++d)
      score += q(query, d) * k(key, d);
    powers.push_back(std::exp(score / std::sqrt(static_cast<double>(dim))));
    sum += powers.back();
  }
  Row row{std::vector<double>(dim, 0.0), std::log(sum)};
  for (int64_t key = 0; key < keys; ++key)
    for (int64_t d = 0; d < dim; ++d)
      row.out[d] += powers[key] / sum * v(key, d);
  return row;
}

class CppAttention : public CppRanks {};

/// Packed sequences with pages of keys, on each rank other ones, prepared and replayed from a graph.
TEST_F(CppAttention, PackedQueriesOverPagesOfKeys) {
  constexpr int64_t heads = 4, kvHeads = 2, dim = 16, page = 16, pages = 5, rows = 12;
  Attention::Options options;
  options.dtype = DITRON_F16;
  options.heads = heads, options.kvHeads = kvHeads, options.headDim = dim;
  options.causal = options.rowsFirst = true;
  options.pageSize = page;
  Attention attention = context->createAttention(options).value();
  Attention::Shape shape;
  shape.batch = 2, shape.queries = 8, shape.keys = 2 * page, shape.packedQueries = rows, shape.pages = pages;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    std::vector<Half> q = drawn(rows * heads * dim, rank), k = drawn(pages * page * kvHeads * dim, 10 + rank),
                      v = drawn(k.size(), 20 + rank), out(q.size(), Half(-9));
    std::vector<float> lse(heads * rows, -9);
    // Rank 1 has fewer rows than there is memory for.
    std::vector<int32_t> offsets = rank == 0 ? std::vector<int32_t>{0, 5, 12} : std::vector<int32_t>{0, 8, 9},
                         lengths = rank == 0 ? std::vector<int32_t>{21, 7} : std::vector<int32_t>{8, 32},
                         table = {3, 1, 4, 2};
    const Attention::Operands operands{
        lend(rank, q), lend(rank, k),       lend(rank, v), lend(rank, out),     lend(rank, lse),  nullptr,
        nullptr,       lend(rank, offsets), nullptr,       lend(rank, lengths), lend(rank, table)};
    ASSERT_TRUE(attention.prepare(shape, operands).ok());
    ASSERT_TRUE(streams[rank].beginCapture().ok());
    const Status status = attention.enqueue(streams[rank], shape, operands);
    ASSERT_TRUE(status.ok()) << status.message();
    Graph graph = Graph::endCapture(streams[rank]).value();
    ASSERT_TRUE(graph.launch(streams[rank]).ok());
    ASSERT_TRUE(streams[rank].synchronize().ok());
    for (int64_t s = 0; s < 2; ++s)
      for (int64_t i = 0; i < offsets[s + 1] - offsets[s]; ++i)
        for (int64_t h = 0; h < heads; ++h) {
          const auto query = [&](int64_t row, int64_t d) -> double {
            return q[((offsets[s] + row) * heads + h) * dim + d];
          };
          const auto keyOf = [&](const std::vector<Half> &values) {
            return [&](int64_t row, int64_t d) -> double {
              return values[((table[s * 2 + row / page] * page + row % page) * kvHeads + h / 2) * dim + d];
            };
          };
          const int64_t seen = i + lengths[s] - (offsets[s + 1] - offsets[s]) + 1;
          const Row wanted = attend(query, keyOf(k), keyOf(v), i, seen, dim);
          EXPECT_NEAR(lse[h * offsets[2] + offsets[s] + i], wanted.lse, 1e-3);
          for (int64_t d = 0; d < dim; ++d)
            ASSERT_NEAR(out[((offsets[s] + i) * heads + h) * dim + d], wanted.out[d], 3e-3);
        }
    for (size_t i = offsets[2] * heads * dim; i < out.size(); ++i)
      ASSERT_EQ(out[i], Half(-9)) << i;
    lent.clear();
  }
}

/// The gradients are the slopes of sum(out * gradient).
TEST_F(CppAttention, BackwardGivesSlopes) {
  constexpr int64_t heads = 2, dim = 16, queries = 9, keys = 11;
  Attention::Options options;
  options.dtype = DITRON_F16;
  options.heads = heads, options.kvHeads = 1, options.headDim = dim;
  options.causal = true;
  Attention attention = context->createAttention(options).value();
  Attention::Shape shape;
  shape.queries = queries, shape.keys = keys;
  std::vector<Half> q = drawn(heads * queries * dim, 1), k = drawn(keys * dim, 2), v = drawn(k.size(), 3),
                    out(q.size()), gradient = drawn(q.size(), 4), dq(q.size()), dk(k.size()), dv(k.size());
  std::vector<float> lse(heads * queries);
  for (std::vector<Half> *each : {&q, &k, &v, &out, &gradient, &dq, &dk, &dv})
    lend(1, *each);
  lend(1, lse);
  Attention::Operands operands;
  operands.q = q.data(), operands.k = k.data(), operands.v = v.data(), operands.out = out.data();
  operands.lse = lse.data();
  Attention::Gradients gradients;
  gradients.q = q.data(), gradients.k = k.data(), gradients.v = v.data(), gradients.out = out.data();
  gradients.lse = lse.data(), gradients.gradient = gradient.data();
  gradients.dq = dq.data(), gradients.dk = dk.data(), gradients.dv = dv.data();
  for (const Status &status :
       {attention.prepareBackward(shape, gradients), attention.enqueue(streams[1], shape, operands),
        attention.backward(streams[1], shape, gradients), streams[1].synchronize()})
    ASSERT_TRUE(status.ok()) << status.message();
  const auto value = [&](const std::vector<double> &x) { // of all of q, k and v
    const auto part = [&](size_t first) {
      return [&x, first](int64_t row, int64_t d) { return x[first + row * dim + d]; };
    };
    double sum = 0;
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < queries; ++i) {
        const Row row =
            attend(part(h * queries * dim), part(q.size()), part(q.size() + k.size()), i, i + keys - queries + 1, dim);
        for (int64_t d = 0; d < dim; ++d)
          sum += row.out[d] * static_cast<double>(gradient[(h * queries + i) * dim + d]);
      }
    return sum;
  };
  std::vector<double> all;
  std::vector<Half> found;
  for (const std::vector<Half> *each : {&q, &k, &v})
    all.insert(all.end(), each->begin(), each->end());
  for (const std::vector<Half> *each : {&dq, &dk, &dv})
    found.insert(found.end(), each->begin(), each->end());
  for (size_t i = 0; i < all.size(); i += 37) {
    constexpr double step = 1e-4;
    std::vector<double> more = all, less = all;
    more[i] += step, less[i] -= step;
    ASSERT_NEAR(found[i], (value(more) - value(less)) / (2 * step), 5e-3) << i;
  }
}

/// On each rank by itself, and over the ranks with the keys of both.
TEST_F(CppAttention, DecodeOnARankAndOverRanks) {
  constexpr int64_t batch = 3, heads = 4, kvHeads = 2, dim = 32, keys = 40;
  AttentionDecode::Options options;
  options.dtype = DITRON_F16;
  options.maxBatch = batch, options.heads = heads, options.kvHeads = kvHeads, options.headDim = dim;
  options.keys = AttentionDecode::Keys::keysFirst(kvHeads, keys, dim);
  std::vector<Half> q[ranks], k[ranks], v[ranks], out[ranks];
  std::vector<float> lse[ranks];
  std::vector<int32_t> lengths[ranks] = {{40, 7, 0}, {3, 0, 1}};
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    q[rank] = drawn(batch * heads * dim, 1), k[rank] = drawn(batch * keys * kvHeads * dim, 2 + rank);
    v[rank] = drawn(k[rank].size(), 4 + rank), out[rank].assign(q[rank].size(), Half(-9));
    lse[rank].assign(batch * heads, -9);
    for (std::vector<Half> *each : {&q[rank], &k[rank], &v[rank], &out[rank]})
      lend(rank, *each);
    lend(rank, lse[rank]), lend(rank, lengths[rank]);
  }
  for (bool overRanks : {false, true}) {
    options.overRanks = overRanks;
    AttentionDecode decode = context->createAttentionDecode(options).value();
    ASSERT_TRUE(decode.prepare(batch, true).ok());
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const Status status = decode.enqueue(
          streams[rank],
          {q[rank].data(), k[rank].data(), v[rank].data(), out[rank].data(), lse[rank].data(), lengths[rank].data()},
          batch);
      ASSERT_TRUE(status.ok()) << status.message();
    }
    ASSERT_TRUE(context->synchronize().ok());
    for (uint32_t rank = 0; rank < ranks; ++rank)
      for (int64_t s = 0; s < batch; ++s)
        for (int64_t h = 0; h < heads; ++h) {
          // Keys of rank 0 first, where both have some.
          const int64_t first = overRanks ? lengths[0][s] : 0,
                        count = overRanks ? first + lengths[1][s] : lengths[rank][s];
          const auto keyOf = [&](const std::vector<Half>(&values)[ranks]) {
            return [&, first](int64_t row, int64_t d) -> double {
              const uint32_t owner = !overRanks ? rank : row < first ? 0 : 1;
              const int64_t own = owner == 1 && overRanks ? row - first : row;
              return values[owner][((s * keys + own) * kvHeads + h / 2) * dim + d];
            };
          };
          const int64_t at = s * heads + h;
          const auto query = [&](int64_t, int64_t d) -> double { return q[rank][at * dim + d]; };
          if (count == 0) {
            EXPECT_EQ(lse[rank][at], -INFINITY);
            EXPECT_EQ(out[rank][at * dim], Half(0));
            continue;
          }
          const Row wanted = attend(query, keyOf(k), keyOf(v), 0, count, dim);
          EXPECT_NEAR(lse[rank][at], wanted.lse, 1e-3);
          for (int64_t d = 0; d < dim; ++d)
            ASSERT_NEAR(out[rank][at * dim + d], wanted.out[d], 3e-3) << overRanks << " " << rank << " " << s;
        }
  }
}

/// Tokens dealt out to two ranks, forward and backward, beside attention on one rank.
TEST_F(CppAttention, RingAttentionOfDealtTokens) {
  constexpr int64_t heads = 4, kvHeads = 2, dim = 16, tokens = 23;
  Attention::Options plain;
  plain.dtype = DITRON_F16;
  plain.heads = heads, plain.kvHeads = kvHeads, plain.headDim = dim, plain.causal = true;
  Attention whole = context->createAttention(plain).value();
  Attention::Shape shape;
  shape.queries = shape.keys = tokens;
  std::vector<Half> q = drawn(heads * tokens * dim, 1), k = drawn(kvHeads * tokens * dim, 2), v = drawn(k.size(), 3),
                    gradient = drawn(q.size(), 4), out(q.size()), dq(q.size()), dk(k.size()), dv(k.size());
  std::vector<float> lse(heads * tokens);
  for (std::vector<Half> *each : {&q, &k, &v, &gradient, &out, &dq, &dk, &dv})
    lend(0, *each);
  lend(0, lse);
  Attention::Operands operands;
  operands.q = q.data(), operands.k = k.data(), operands.v = v.data(), operands.out = out.data();
  operands.lse = lse.data();
  Attention::Gradients gradients;
  gradients.q = q.data(), gradients.k = k.data(), gradients.v = v.data(), gradients.out = out.data();
  gradients.lse = lse.data(), gradients.gradient = gradient.data();
  gradients.dq = dq.data(), gradients.dk = dk.data(), gradients.dv = dv.data();
  for (const Status &status : {whole.enqueue(streams[0], shape, operands), whole.backward(streams[0], shape, gradients),
                               context->synchronize()})
    ASSERT_TRUE(status.ok()) << status.message();

  RingAttention::Options options;
  options.dtype = DITRON_F16;
  options.heads = heads, options.kvHeads = kvHeads, options.headDim = dim, options.causal = true;
  options.maxTokens = tokens, options.backward = true;
  for (const bool goesRound : {false, true}) {
    options.goesRound = goesRound;
    RingAttention ring = context->createRingAttention(options).value();
    ASSERT_TRUE(ring.prepare(tokens, true).ok());
    ASSERT_TRUE(ring.prepareBackward(tokens).ok());
    std::vector<int64_t> taken[ranks];
    for (uint32_t rank = 0; rank < ranks; ++rank)
      for (uint32_t part : {0, 1}) {
        const RingAttention::Section section = ring.section(rank, part, tokens).value();
        for (int64_t i = 0; i < section.count; ++i)
          taken[rank].push_back(section.first + i);
      }
    ASSERT_EQ(taken[0].size() + taken[1].size(), size_t(tokens));
    const auto dealt = [&](const auto &all, uint32_t rank, int64_t width) {
      std::decay_t<decltype(all)> own;
      const auto allHeads = static_cast<int64_t>(all.size()) / tokens / width;
      for (int64_t head = 0; head < allHeads; ++head)
        for (const int64_t token : taken[rank])
          for (int64_t d = 0; d < width; ++d)
            own.push_back(all[(head * tokens + token) * width + d]);
      return own;
    };
    struct Own {
      std::vector<Half> q, k, v, gradient, out, dq, dk, dv;
      std::vector<float> lse;
    };
    std::vector<Own> owns(ranks);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      Own &own = owns[rank];
      own.q = dealt(q, rank, dim), own.k = dealt(k, rank, dim), own.v = dealt(v, rank, dim);
      own.gradient = dealt(gradient, rank, dim);
      own.out.assign(own.q.size(), Half(-9)), own.dq = own.out;
      own.dk.assign(own.k.size(), Half(-9)), own.dv = own.dk;
      own.lse.assign(own.q.size() / dim, -9);
      for (std::vector<Half> *each : {&own.q, &own.k, &own.v, &own.gradient, &own.out, &own.dq, &own.dk, &own.dv})
        lend(rank, *each);
      lend(rank, own.lse);
      Status status = ring.enqueue(streams[rank],
                                   {own.q.data(), own.k.data(), own.v.data(), own.out.data(), own.lse.data()}, tokens);
      ASSERT_TRUE(status.ok()) << status.message();
      status = ring.backward(streams[rank],
                             {own.q.data(), own.k.data(), own.v.data(), own.out.data(), own.lse.data(),
                              own.gradient.data(), own.dq.data(), own.dk.data(), own.dv.data()},
                             tokens);
      ASSERT_TRUE(status.ok()) << status.message();
    }
    ASSERT_TRUE(context->synchronize().ok());
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const Own &own = owns[rank];
      for (const auto &[found, wanted] : {std::pair(&own.out, &out), {&own.dq, &dq}, {&own.dk, &dk}, {&own.dv, &dv}}) {
        const std::vector<Half> expected = dealt(*wanted, rank, dim);
        for (size_t i = 0; i < expected.size(); ++i)
          ASSERT_NEAR((*found)[i], expected[i], 5e-3) << "goes round " << goesRound << ", rank " << rank << ", " << i;
      }
      const std::vector<float> sums = dealt(lse, rank, 1);
      for (size_t i = 0; i < sums.size(); ++i)
        ASSERT_NEAR(own.lse[i], sums[i], 1e-3) << goesRound << " " << rank << " " << i;
    }
    lent.clear();
  }
}

TEST_F(CppAttention, WhatIsWrongOfRingAttentionIsNamed) {
  RingAttention::Options options;
  options.heads = 2, options.headDim = 32;
  EXPECT_THAT(context->createRingAttention(options).status().message(), HasSubstr("tokens is 0; 1 to"));
  options.maxTokens = 10, options.headDim = 48;
  EXPECT_THAT(context->createRingAttention(options).status().message(), HasSubstr("heads of 48 elements; 16, 32"));
  options.headDim = 256, options.backward = true;
  EXPECT_THAT(context->createRingAttention(options).status().message(), HasSubstr("up to 128 are accepted"));
  options.headDim = 32, options.backward = false;
  RingAttention ring = context->createRingAttention(options).value();
  EXPECT_THAT(ring.prepareBackward(3).message(), HasSubstr("`backward` of its options"));
  EXPECT_THAT(ring.backward(streams[0], {}, 3).message(), HasSubstr("`backward` of its options"));
  EXPECT_THAT(ring.prepare(11).message(), HasSubstr("11 tokens; 1 to 10 (maxTokens) are accepted"));
  EXPECT_THAT(ring.enqueue(streams[0], {}, 3).message(), HasSubstr("operand q is a null pointer"));
  EXPECT_THAT(ring.section(2, 0, 3).status().message(), HasSubstr("rank 2; 0 to 1 are accepted"));
  EXPECT_THAT(ring.section(0, 1, 3).status().message(),
              HasSubstr("part 1 of a rank's tokens; without `causal` 0 is accepted"));
  EXPECT_THAT(ring.section(0, 0, 11).status().message(), HasSubstr("11 tokens; 0 to 10 (max_tokens)"));
  EXPECT_EQ(ring.section(1, 0, 1).value().count, 0);
  EXPECT_EQ(ditron_ring_attention_prepare(nullptr, 1, 0), DITRON_INVALID_ARGUMENT);
  ditron_ring_attention_destroy(nullptr);
}

/// Tokens dealt out and replicated are one layer, and a prefill and a step of decoding a longer prefill.
TEST_F(CppAttention, TensorParallelAttentionForms) {
  constexpr int64_t hidden = 32, heads = 4, dim = 16, page = 16, tokens = 7, rows = 3 * heads / ranks * dim;
  std::vector<Half> qkv[ranks], back[ranks], bias[ranks], norm[ranks], keys[ranks], values[ranks], x[ranks], y[ranks];
  std::vector<float> rotary[ranks];
  std::vector<int32_t> table[ranks], words[ranks];
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    qkv[rank] = drawn(rows * hidden, rank), back[rank] = drawn(hidden * heads / ranks * dim, 5 + rank);
    bias[rank] = drawn(rows, 9 + rank), norm[rank] = drawn(dim, 3);
    for (int i = 0; i < 2 * page * dim; ++i)
      rotary[rank].push_back(std::cos(0.1f * static_cast<float>(i)));
    keys[rank].assign(3 * page * heads / ranks * dim, Half(0)), values[rank] = keys[rank];
    x[rank].resize(tokens * hidden), y[rank].resize(x[rank].size());
    table[rank] = {2, 1}, words[rank] = {tokens, 0, tokens};
    for (auto *each :
         {&qkv[rank], &back[rank], &bias[rank], &norm[rank], &keys[rank], &values[rank], &x[rank], &y[rank]})
      lend(rank, *each);
    lend(rank, rotary[rank]), lend(rank, table[rank]), lend(rank, words[rank]);
  }
  TensorParallelAttention::Options options;
  options.dtype = DITRON_F16;
  options.hidden = hidden, options.heads = heads, options.headDim = dim;
  options.rotaryDim = dim, options.normEpsilon = 1e-5, options.qkvBias = true;
  options.maxTokens = tokens, options.maxKeys = 2 * page, options.pageSize = page, options.pages = 3;
  std::vector<TensorParallelAttention::Weights> weights;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    weights.push_back({qkv[rank].data(), back[rank].data(), bias[rank].data(), norm[rank].data(), norm[rank].data(),
                       rotary[rank].data()});
  const std::vector<Half> whole = drawn(tokens * hidden, 30);
  /// y of the tokens from `first` on, of a call that has them.
  const auto call = [&](TensorParallelAttention &layer, int64_t first, int64_t count, bool decodes, bool dealt) {
    std::vector<Half> result;
    const int64_t most = dealt ? (count + ranks - 1) / ranks : count;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const int64_t begin = dealt ? rank * most : 0, own = std::clamp<int64_t>(count - begin, 0, most);
      std::copy_n(whole.begin() + (first + begin) * hidden, own * hidden, x[rank].begin());
      words[rank] = {static_cast<int32_t>(first + count), 0, static_cast<int32_t>(count)};
      TensorParallelAttention::Operands operands{x[rank].data(),      y[rank].data(),     keys[rank].data(),
                                                 values[rank].data(), words[rank].data(), words[rank].data() + 1,
                                                 table[rank].data()};
      const Status status =
          decodes ? layer.decode(streams[rank], operands, 1) : layer.prefill(streams[rank], operands, count, 1, count);
      EXPECT_TRUE(status.ok()) << status.message();
    }
    EXPECT_TRUE(context->synchronize().ok());
    for (uint32_t rank = 0; rank < ranks; ++rank)
      if (dealt || rank == 0)
        result.insert(result.end(), y[rank].begin(),
                      y[rank].begin() + std::clamp<int64_t>(count - (dealt ? rank * most : 0), 0, most) * hidden);
    return result;
  };
  std::vector<Half> wanted;
  for (bool dealt : {false, true}) {
    options.dealt = dealt;
    TensorParallelAttention layer = context->createTensorParallelAttention(options, weights).value();
    EXPECT_EQ(layer.cacheElements(), 3 * page * heads / ranks * dim);
    for (const Status &status : {layer.preparePrefill(tokens, 1, tokens), layer.prepareDecode(1)})
      ASSERT_TRUE(status.ok()) << status.message();
    const std::vector<Half> all = call(layer, 0, tokens, false, dealt);
    std::vector<Half> parts = call(layer, 0, tokens - 1, false, dealt);
    const std::vector<Half> last = call(layer, tokens - 1, 1, true, dealt);
    parts.insert(parts.end(), last.begin(), last.end());
    wanted = dealt ? wanted : all;
    double size = 0;
    ASSERT_EQ(all.size(), wanted.size());
    ASSERT_EQ(parts.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      size += std::fabs(static_cast<float>(wanted[i]));
      ASSERT_NEAR(all[i], wanted[i], 2e-2) << i;
      ASSERT_NEAR(parts[i], wanted[i], 2e-2) << i;
    }
    EXPECT_GT(size, 10);
    EXPECT_THAT(layer.prepareDecode(2).message(), HasSubstr("2 sequences; 1 to 1 (maxBatch)"));
    EXPECT_THAT(layer.decode(streams[0], {}, 1).message(), HasSubstr("operand x is a null pointer"));
  }
  options.kvHeads = 3;
  EXPECT_THAT(context->createTensorParallelAttention(options, weights).status().message(), HasSubstr("4 heads on 3"));
  weights.pop_back();
  EXPECT_THAT(context->createTensorParallelAttention(options, weights).status().message(),
              HasSubstr("weights of 1 ranks are given; there are 2"));
}

/// What TensorParallelAttention makes of its slices of the weights; then a step with keys of both ranks.
TEST_F(CppAttention, SequenceParallelAttentionIsTheSameLayer) {
  constexpr int64_t hidden = 32, heads = 4, dim = 16, tokens = 7, rows = 3 * heads / ranks * dim,
                    part = heads / ranks * dim;
  std::vector<Half> qkv[ranks], back[ranks], whole[ranks][2], norm[ranks], keys[ranks][2], x[ranks], y[ranks];
  std::vector<int32_t> words[ranks];
  for (uint32_t rank = 0; rank < ranks; ++rank)
    qkv[rank] = drawn(rows * hidden, rank), back[rank] = drawn(hidden * part, 5 + rank), norm[rank] = drawn(dim, 3);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    for (const std::vector<Half> &each : qkv)
      whole[rank][0].insert(whole[rank][0].end(), each.begin(), each.end());
    for (int64_t row = 0; row < hidden; ++row)
      for (const std::vector<Half> &each : back)
        whole[rank][1].insert(whole[rank][1].end(), each.begin() + row * part, each.begin() + (row + 1) * part);
    for (std::vector<Half> &each : keys[rank])
      each.assign(8 * heads * dim, Half(0)), lend(rank, each);
    x[rank].resize(tokens * hidden), y[rank].resize(x[rank].size()), words[rank].assign(8, 0);
    for (auto *each : {&qkv[rank], &back[rank], &whole[rank][0], &whole[rank][1], &norm[rank], &x[rank], &y[rank]})
      lend(rank, *each);
    lend(rank, words[rank]);
  }
  const std::vector<Half> given = drawn(tokens * hidden, 30);
  TensorParallelAttention::Options sliced;
  sliced.dtype = DITRON_F16;
  sliced.hidden = hidden, sliced.heads = heads, sliced.headDim = dim, sliced.normEpsilon = 1e-5;
  sliced.maxTokens = tokens, sliced.maxKeys = 8;
  SequenceParallelAttention::Options options;
  options.dtype = DITRON_F16;
  options.hidden = hidden, options.heads = heads, options.headDim = dim, options.normEpsilon = 1e-5;
  options.maxTokens = tokens - 1, options.cacheBatch = 1, options.cacheKeys = 8;
  std::vector<AttentionWeights> ofSlices(ranks), ofWhole(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    ofSlices[rank] = {qkv[rank].data(), back[rank].data(), nullptr, norm[rank].data(), norm[rank].data(), nullptr};
    ofWhole[rank] = {whole[rank][0].data(), whole[rank][1].data(), nullptr,
                     norm[rank].data(),     norm[rank].data(),     nullptr};
  }
  TensorParallelAttention reference = context->createTensorParallelAttention(sliced, ofSlices).value();
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    x[rank] = given;
    words[rank] = {tokens, 0, tokens};
    const Status status = reference.prefill(streams[rank],
                                            {x[rank].data(), y[rank].data(), keys[rank][0].data(), keys[rank][1].data(),
                                             words[rank].data(), words[rank].data() + 1},
                                            tokens, 1, tokens);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  ASSERT_TRUE(context->synchronize().ok());
  const std::vector<Half> wanted = y[0];
  SequenceParallelAttention layer = context->createSequenceParallelAttention(options, ofWhole).value();
  EXPECT_EQ(layer.cacheElements(), 8 * heads * dim);
  for (const Status &status : {layer.preparePrefill(tokens - 1), layer.prepareDecode(1)})
    ASSERT_TRUE(status.ok()) << status.message();
  const auto operandsOf = [&](uint32_t rank) {
    SequenceParallelAttention::Operands operands{x[rank].data(), y[rank].data(), keys[rank][0].data(),
                                                 keys[rank][1].data()};
    operands.lengths = words[rank].data();
    operands.places = words[rank].data() + 1;
    operands.positions = words[rank].data() + 2;
    return operands;
  };
  constexpr int64_t own = (tokens - 1) / ranks;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    std::copy_n(given.begin() + rank * own * hidden, own * hidden, x[rank].begin());
    ASSERT_TRUE(layer.prefill(streams[rank], operandsOf(rank), tokens - 1).ok());
  }
  ASSERT_TRUE(context->synchronize().ok());
  double size = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    for (int64_t i = 0; i < own * hidden; ++i) {
      ASSERT_NEAR(y[rank][i], wanted[rank * own * hidden + i], 2e-2) << rank << " " << i;
      size += std::fabs(static_cast<float>(y[rank][i]));
    }
  EXPECT_GT(size, 10);
  for (uint32_t rank = 0; rank < ranks; ++rank) { // the last token's key is rank 1's
    std::copy_n(given.begin() + (tokens - 1) * hidden, hidden, x[rank].begin());
    words[rank] = {static_cast<int32_t>(own + rank), rank == 1 ? static_cast<int32_t>(own) : -1, tokens - 1};
    ASSERT_TRUE(layer.decode(streams[rank], operandsOf(rank), 1).ok());
  }
  ASSERT_TRUE(context->synchronize().ok());
  for (uint32_t rank = 0; rank < ranks; ++rank)
    for (int64_t i = 0; i < hidden; ++i)
      ASSERT_NEAR(y[rank][i], wanted[(tokens - 1) * hidden + i], 2e-2) << rank << " " << i;
  EXPECT_THAT(layer.prefill(streams[0], operandsOf(0), tokens).message(), HasSubstr("7 tokens; 1 to 6 (maxTokens)"));
  options.cacheBatch = 0;
  SequenceParallelAttention without = context->createSequenceParallelAttention(options, ofWhole).value();
  EXPECT_EQ(without.cacheElements(), 0);
  EXPECT_THAT(without.prepareDecode(1).message(), HasSubstr("made without a cache"));
  ofWhole[0].qkvBias = qkv[0].data();
  EXPECT_THAT(context->createSequenceParallelAttention(options, ofWhole).status().message(), HasSubstr("qkv_bias"));
}

TEST_F(CppAttention, WhatIsWrongIsNamed) {
  Attention::Options options;
  options.headDim = 48;
  EXPECT_THAT(context->createAttention(options).status().message(), HasSubstr("heads of 48 elements; 16, 32"));
  options.headDim = 64, options.heads = 4, options.kvHeads = 3;
  EXPECT_THAT(context->createAttention(options).status().message(), HasSubstr("4 heads on 3 heads of K and V"));
  options.kvHeads = 4;
  Attention attention = context->createAttention(options).value();
  Attention::Shape shape;
  shape.queries = 4;
  EXPECT_THAT(attention.prepare(shape, {}).message(), HasSubstr("keys is 0; 1 to 2147483647 are accepted"));
  shape.keys = 4;
  EXPECT_THAT(attention.enqueue(streams[0], shape, {}).message(), HasSubstr("operand q is a null pointer"));
  shape.pages = 2;
  EXPECT_THAT(attention.prepare(shape, {}).message(), HasSubstr("page_size was 0"));
  shape.pages = 0, shape.packedQueries = 8;
  EXPECT_THAT(attention.prepare(shape, {}).message(), HasSubstr("RowsFirst is accepted"));
  EXPECT_THAT(attention.prepareBackward({}, {}).message(), HasSubstr("queries is 0; 1 to 2147483647 are accepted"));
  AttentionDecode::Options few;
  EXPECT_THAT(context->createAttentionDecode(few).status().message(), HasSubstr("KeyLayout says where they lie"));
  few.keys = AttentionDecode::Keys::headsFirst(1, 8, 128);
  few.heads = 0;
  EXPECT_THAT(context->createAttentionDecode(few).status().message(),
              HasSubstr("heads is 0; 1 to 2147483647 are accepted"));
  few.heads = 1, few.scale = std::numeric_limits<double>::infinity();
  EXPECT_THAT(context->createAttentionDecode(few).status().message(), HasSubstr("the scale inf"));
  few.scale.reset();
  AttentionDecode decode = context->createAttentionDecode(few).value();
  EXPECT_THAT(decode.prepare(2).message(), HasSubstr("2 sequences; 1 to 1"));
  EXPECT_THAT(decode.enqueue(streams[0], {}, 1).message(), HasSubstr("operand q is a null pointer"));
  EXPECT_EQ(ditron_attention_enqueue(nullptr, streams[0].get(), nullptr, nullptr), DITRON_INVALID_ARGUMENT);
  EXPECT_EQ(ditron_attention_decode_prepare(nullptr, 1, 0), DITRON_INVALID_ARGUMENT);
  EXPECT_EQ(ditron_tensor_parallel_attention_prepare_decode(nullptr, 1), DITRON_INVALID_ARGUMENT);
  EXPECT_EQ(ditron_tensor_parallel_attention_cache_elements(nullptr), 0);
  ditron_attention_destroy(nullptr);
  ditron_tensor_parallel_attention_destroy(nullptr);
  ditron_sequence_parallel_attention_destroy(nullptr);
  ditron_attention_decode_destroy(nullptr);
}

} // namespace
} // namespace ditron::api::test
