//===- TokenAttentionOperands.cpp -----------------------------------------------------------------------------------------===//
#include "bench/TokenAttentionOperands.h"

#include "bench/KernelBench.h"

#include <algorithm>
#include <future>

namespace ditron::tool {

namespace {

/// Rows of results that are compared; one of a key's gradients takes as long as a whole head of others.
constexpr int64_t samples = 13, keySamples = 5;

/// Salts of a rank's data.
enum : uint64_t { Q = 1, K, V, Gradient, Salts };

/// What `make` gives for 0 to count - 1, by a thread each: a row of many keys takes seconds.
template <typename Make> auto ofSamples(int64_t count, const Make &make) {
  using Result = decltype(make(int64_t()));
  std::vector<std::future<Result>> running;
  for (int64_t i = 0; i < count; ++i)
    running.push_back(std::async(std::launch::async, [&make, i] { return make(i); }));
  std::vector<Result> results;
  for (std::future<Result> &each : running)
    results.push_back(each.get());
  return results;
}

} // namespace

Expected<TokenAttentionOperands> TokenAttentionOperands::create(runtime::World &world, const NormalData &data,
                                                                const ops::RingAttentionOptions &attention,
                                                                bool backward) {
  TokenAttentionOperands made(world, data, attention, backward);
  DITRON_RETURN_IF_ERROR(made.allocate());
  return made;
}

Status TokenAttentionOperands::allocate() {
  for (int64_t i = 0, count = attention.packedSequences.value_or(0); count > 0 && i <= count; ++i)
    offsets.push_back(attention.maxTokens * i * (i + 1) / (count * (count + 1)));
  for (uint32_t id = 0; id < world->numRanks(); ++id) {
    runtime::Rank &rank = world->rank(id);
    const int64_t rows = std::max<int64_t>(sections().tokensOf(id), 1) * attention.batch;
    Memory each;
    const auto make = [&](runtime::Buffer &buffer, int64_t heads, std::string_view name,
                          std::optional<uint64_t> salt = std::nullopt) -> Status {
      DITRON_ASSIGN_OR_RETURN(buffer, rank.allocate(attention.dtype, rows * heads * attention.headDim, name));
      return salt ? data->fill(buffer, *salt + Salts * id) : Status::ok();
    };
    DITRON_RETURN_IF_ERROR(make(each.q, attention.heads, "q", Q));
    DITRON_RETURN_IF_ERROR(make(each.k, attention.kvHeads, "k", K));
    DITRON_RETURN_IF_ERROR(make(each.v, attention.kvHeads, "v", V));
    DITRON_RETURN_IF_ERROR(make(each.out, attention.heads, "out"));
    if (backward) {
      DITRON_ASSIGN_OR_RETURN(each.lse, rank.allocate(DataType::F32, rows * attention.heads, "lse"));
      DITRON_RETURN_IF_ERROR(make(each.gradient, attention.heads, "gradient", Gradient));
      DITRON_RETURN_IF_ERROR(make(each.dq, attention.heads, "dq"));
      DITRON_RETURN_IF_ERROR(make(each.dk, attention.kvHeads, "dk"));
      DITRON_RETURN_IF_ERROR(make(each.dv, attention.kvHeads, "dv"));
    }
    if (!offsets.empty()) {
      const std::vector<int32_t> values(offsets.begin(), offsets.end());
      DITRON_ASSIGN_OR_RETURN(each.offsets, rank.allocate(DataType::I32, values.size(), "offsets"));
      DITRON_RETURN_IF_ERROR(each.offsets.upload(values.data(), values.size() * sizeof(int32_t)));
    }
    memory.push_back(std::move(each));
  }
  return world->synchronize();
}

double TokenAttentionOperands::flops() const {
  const auto squared = [](int64_t tokens) { return static_cast<double>(tokens) * static_cast<double>(tokens); };
  double pairs = offsets.empty() ? squared(attention.maxTokens) : 0;
  for (size_t i = 0; i + 1 < offsets.size(); ++i)
    pairs += squared(offsets[i + 1] - offsets[i]);
  pairs /= (attention.causal ? 2 : 1) * world->numRanks();
  // Two products a pair of tokens; of the backward five are necessary.
  const double products = backward ? 5 : 2;
  return 2.0 * products * static_cast<double>(attention.batch * attention.heads * attention.headDim) * pairs;
}

std::pair<uint32_t, int64_t> TokenAttentionOperands::placeOf(int64_t head, int64_t token) const {
  const ops::TokenSections dealt = sections();
  const int64_t number = token / dealt.sectionTokens();
  const auto ranks = static_cast<int64_t>(dealt.ranks);
  const auto rank = static_cast<uint32_t>(number < ranks ? number : 2 * ranks - 1 - number);
  const int64_t before = number < ranks ? 0 : dealt.tokensOf(rank, 0);
  return {rank, head * dealt.tokensOf(rank) + before + token - dealt.firstToken(rank, number < ranks ? 0 : 1)};
}

std::pair<int64_t, int64_t> TokenAttentionOperands::rowOf(int64_t head, int64_t headsOfBatch, int64_t token) const {
  if (offsets.empty())
    return {head / headsOfBatch, token};
  const int64_t sequence = std::ranges::upper_bound(offsets, token) - offsets.begin() - 1;
  return {sequence, token - offsets[sequence]};
}

std::pair<int64_t, int64_t> TokenAttentionOperands::headAndToken(int64_t batch, int64_t head, int64_t headsOfBatch,
                                                                 int64_t row) const {
  if (!offsets.empty())
    return {head, offsets[batch] + row};
  return {batch * headsOfBatch + head, row};
}

ops::AttentionElement TokenAttentionOperands::element(uint64_t salt, int64_t headsOfBatch) const {
  return [this, salt, headsOfBatch](int64_t batch, int64_t head, int64_t token, int64_t column) -> double {
    const auto [allHead, place] = headAndToken(batch, head, headsOfBatch, token);
    const auto [rank, row] = placeOf(allHead, place);
    return data->at(salt + Salts * rank, row * attention.headDim + column);
  };
}

ops::AttentionReference TokenAttentionOperands::reference() const {
  ops::AttentionReference plain({.batch = attention.batch,
                                 .heads = attention.heads,
                                 .kvHeads = attention.kvHeads,
                                 .queries = attention.maxTokens,
                                 .keys = attention.maxTokens,
                                 .headDim = attention.headDim,
                                 .causal = attention.causal},
                                element(Q, attention.heads), element(K, attention.kvHeads),
                                element(V, attention.kvHeads));
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    plain.queries.push_back(offsets[i + 1] - offsets[i]);
    plain.keys.push_back(plain.queries.back());
  }
  return plain;
}

Status TokenAttentionOperands::poison(std::initializer_list<runtime::Buffer Memory::*> results) {
  for (uint32_t id = 0; id < world->numRanks(); ++id)
    for (runtime::Buffer Memory::*result : results) {
      runtime::Buffer &buffer = memory[id].*result;
      if (buffer.isValid())
        DITRON_RETURN_IF_ERROR(world->rank(id).stream().fill(buffer, 0xff, buffer.count()));
    }
  return Status::ok();
}

Expected<TokenAttentionOperands::Downloads> TokenAttentionOperands::download(runtime::Buffer Memory::*which) const {
  Downloads all;
  for (const Memory &each : memory) {
    DITRON_ASSIGN_OR_RETURN(std::vector<float> values, (each.*which).downloadFloats());
    all.push_back(std::move(values));
  }
  return all;
}

Expected<double> TokenAttentionOperands::forwardError() const {
  const int64_t heads = attention.batch * attention.heads;
  DITRON_ASSIGN_OR_RETURN(const Downloads out, download(&Memory::out));
  const ops::AttentionReference plain = reference();
  const auto expected = ofSamples(samples, [&](int64_t i) {
    const auto [head, query] = sample(i, samples, heads);
    const auto [batch, own] = rowOf(head, attention.heads, query);
    return plain.row(batch, head % attention.heads, own).out;
  });
  RelativeError error(attention.dtype);
  for (int64_t i = 0; i < samples; ++i) {
    const auto [head, query] = sample(i, samples, heads);
    const auto [rank, row] = placeOf(head, query);
    for (int64_t d = 0; d < attention.headDim; ++d)
      error.add(out[rank][row * attention.headDim + d], expected[i][d]);
  }
  return error.value();
}

Expected<double> TokenAttentionOperands::backwardError() const {
  const int64_t depth = attention.headDim;
  const ops::AttentionReference plain = reference();
  const ops::AttentionElement gradient = element(Gradient, attention.heads);
  DITRON_ASSIGN_OR_RETURN(const Downloads out, download(&Memory::out));
  DITRON_ASSIGN_OR_RETURN(const Downloads lse, download(&Memory::lse));
  DITRON_ASSIGN_OR_RETURN(const Downloads dq, download(&Memory::dq));
  DITRON_ASSIGN_OR_RETURN(const Downloads dk, download(&Memory::dk));
  DITRON_ASSIGN_OR_RETURN(const Downloads dv, download(&Memory::dv));
  RelativeError ofQueries(attention.dtype), ofKeys(attention.dtype), ofValues(attention.dtype);
  const int64_t heads = attention.batch * attention.heads, keyHeads = attention.batch * attention.kvHeads;
  const auto ofQuery = ofSamples(samples, [&](int64_t i) {
    const auto [head, query] = sample(i, samples, heads);
    const auto [batch, own] = rowOf(head, attention.heads, query);
    return plain.queryGradient(gradient, batch, head % attention.heads, own);
  });
  for (int64_t i = 0; i < samples; ++i) {
    const auto [head, query] = sample(i, samples, heads);
    const auto [rank, row] = placeOf(head, query);
    for (int64_t d = 0; d < depth; ++d)
      ofQueries.add(dq[rank][row * depth + d], ofQuery[i][d]);
  }
  const auto ofKey = ofSamples(keySamples, [&](int64_t i) {
    const auto [head, key] = sample(i, keySamples, keyHeads);
    const auto [batch, ownKey] = rowOf(head, attention.kvHeads, key);
    // The forward call's rows, which have been compared themselves.
    const auto queryPlace = [&, inBatch = batch](int64_t queryHead, int64_t query) {
      const auto [allHead, token] = headAndToken(inBatch, queryHead, attention.heads, query);
      return placeOf(allHead, token);
    };
    const auto lseOf = [&](int64_t queryHead, int64_t query) -> double {
      const auto [rank, row] = queryPlace(queryHead, query);
      return lse[rank][row];
    };
    const auto deltaOf = [&, inBatch = batch](int64_t queryHead, int64_t query) {
      const auto [rank, row] = queryPlace(queryHead, query);
      double sum = 0;
      for (int64_t d = 0; d < depth; ++d)
        sum += out[rank][row * depth + d] * gradient(inBatch, queryHead, query, d);
      return sum;
    };
    return plain.keyGradients(gradient, batch, head % attention.kvHeads, ownKey, lseOf, deltaOf);
  });
  for (int64_t i = 0; i < keySamples; ++i) {
    const auto [head, key] = sample(i, keySamples, keyHeads);
    const auto [rank, row] = placeOf(head, key);
    for (int64_t d = 0; d < depth; ++d) {
      ofKeys.add(dk[rank][row * depth + d], ofKey[i].k[d]);
      ofValues.add(dv[rank][row * depth + d], ofKey[i].v[d]);
    }
  }
  return std::max({ofQueries.value(), ofKeys.value(), ofValues.value()});
}

} // namespace ditron::tool
