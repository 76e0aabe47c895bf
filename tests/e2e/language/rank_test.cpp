//===- rank_test.cpp - Blocks of many dimensions -----------------------------------------------------------------------------===//
//
// The language has no limit of dimensions. Each rank gets one kernel with everything that treats dimensions.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>

namespace ditron::e2e {
namespace {

constexpr int64_t count = 1024;

/// A block, row-major.
struct Nd {
  std::vector<int64_t> shape;
  std::vector<int32_t> values;

  /// The index of an element whose dimension `dim` is at `at`.
  int64_t with(int64_t index, size_t dim, int64_t at) const {
    const int64_t below = std::accumulate(shape.begin() + dim + 1, shape.end(), int64_t(1), std::multiplies());
    return index + (at - index / below % shape[dim]) * below;
  }
  int64_t position(int64_t index, size_t dim) const {
    const int64_t below = std::accumulate(shape.begin() + dim + 1, shape.end(), int64_t(1), std::multiplies());
    return index / below % shape[dim];
  }
};

Nd permuted(const Nd &block, const std::vector<int64_t> &order) {
  Nd result = {{}, std::vector<int32_t>(block.values.size())};
  for (int64_t dim : order)
    result.shape.push_back(block.shape[dim]);
  for (int64_t index = 0; index < int64_t(result.values.size()); ++index) {
    int64_t from = 0;
    for (size_t dim = 0; dim < order.size(); ++dim)
      from = block.with(from, order[dim], result.position(index, dim));
    result.values[index] = block.values[from];
  }
  return result;
}

/// Each element replaced by the sum of those along `dim`, up to itself or of all.
std::vector<int32_t> summed(const Nd &block, size_t dim, bool upToItself) {
  std::vector<int32_t> result(block.values.size());
  for (int64_t index = 0; index < int64_t(result.size()); ++index)
    for (int64_t at = 0; at < (upToItself ? block.position(index, dim) + 1 : block.shape[dim]); ++at)
      result[index] += block.values[block.with(index, dim, at)];
  return result;
}

class Ranks : public KernelTest, public testing::WithParamInterface<int> {};

TEST_P(Ranks, haveNoLimit) {
  const size_t rank = GetParam();
  Nd x = {std::vector<int64_t>(rank, 1), convertAll<int32_t>(randomIntegers(count, 31, 0, 1000))};
  // Twos, some of them apart from each other, and what is left in the last dimension.
  int64_t rest = count;
  for (size_t dim = 0; dim + 1 < rank && rest > 4; ++dim)
    if (dim % 4 != 2) {
      x.shape[dim] = 2;
      rest /= 2;
    }
  x.shape.back() = rest;
  std::vector<int64_t> order(rank);
  for (size_t dim = 0; dim < rank; ++dim)
    order[dim] = static_cast<int64_t>((dim + rank / 2) % rank);
  std::reverse(order.begin(), order.begin() + rank / 2);
  std::vector<int64_t> inverse(rank);
  for (size_t dim = 0; dim < rank; ++dim)
    inverse[order[dim]] = static_cast<int64_t>(dim);
  const size_t middle = rank / 2, last = rank - 1;
  const std::string text =
      fmt::format(R"(
@triton.jit
def kernel(x_ptr, trans_ptr, sum_ptr, scan_ptr, wide_ptr, flip_ptr, join_ptr, any_ptr):
    i = tl.reshape(tl.arange(0, {0}), [{1}])
    x = tl.load(x_ptr + i)
    k = tl.arange(0, {0})
    tl.store(trans_ptr + k, tl.reshape(tl.permute(x, [{2}]), [{0}]))
    tl.store(sum_ptr + i, tl.broadcast_to(tl.sum(x, {3}, keep_dims=True), [{1}]))
    tl.store(scan_ptr + i, tl.cumsum(x, {4}))
    wide = tl.expand_dims(tl.max(x, {3}), {3}) + tl.zeros_like(x)
    tl.store(wide_ptr + i, tl.where(x < wide, wide, 0))
    tl.store(flip_ptr + i, tl.flip(x, {4}))
    low, high = tl.split(tl.join(x, x * 2))
    tl.store(join_ptr + i, tl.trans(tl.trans(low + high, [{2}]), [{5}]))
    tl.store(any_ptr + i[None], x[None] + tl.argmax(tl.ravel(x), 0))
)",
                  count, fmt::join(x.shape, ", "), fmt::join(order, ", "), middle, last, fmt::join(inverse, ", "));
  SCOPED_TRACE(text);
  Buffer in = put(x.values, "x");
  std::vector<Buffer> out;
  for (int i = 0; i < 7; ++i)
    out.push_back(zeros(DataType::I32, count, fmt::format("out{}", i)));
  ASSERT_OK(run(text, "kernel", {.numWarps = rank % 2 ? 4u : 1u},
                {{in, out[0], out[1], out[2], out[3], out[4], out[5], out[6]}, {}}));
  expectSame(get<int32_t>(out[0]), permuted(x, order).values, "permute");
  expectSame(get<int32_t>(out[1]), summed(x, middle, false), "sum");
  expectSame(get<int32_t>(out[2]), summed(x, last, true), "cumsum");
  std::vector<int32_t> largest(count), flipped(count), joined(count), any(count);
  const auto first = std::max_element(x.values.begin(), x.values.end()) - x.values.begin();
  for (int64_t index = 0; index < count; ++index) {
    int32_t most = 0;
    for (int64_t at = 0; at < x.shape[middle]; ++at)
      most = std::max(most, x.values[x.with(index, middle, at)]);
    largest[index] = x.values[index] < most ? most : 0;
    flipped[index] = x.values[x.with(index, last, x.shape[last] - 1 - x.position(index, last))];
    joined[index] = 3 * x.values[index];
    any[index] = x.values[index] + static_cast<int32_t>(first);
  }
  expectSame(get<int32_t>(out[3]), largest, "max");
  expectSame(get<int32_t>(out[4]), flipped, "flip");
  expectSame(get<int32_t>(out[5]), joined, "join");
  expectSame(get<int32_t>(out[6]), any, "argmax");
}

INSTANTIATE_TEST_SUITE_P(All, Ranks, testing::Values(1, 2, 3, 5, 7, 8, 9, 10, 11, 12, 13, 16, 24));

} // namespace
} // namespace ditron::e2e
