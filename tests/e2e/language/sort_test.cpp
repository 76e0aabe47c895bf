//===- sort_test.cpp - Sorting networks of all sizes ------------------------------------------------------------------===//
//
// A sort is compared bit by bit with the network that it is defined by, run on the host: what it does with NaNs, with zeros of
// both signs and with equal keys is then tested too. Whether elements lie in registers, lanes, warps or an array on the stack
// depends on size, type and number of warps, so all of these vary.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>

namespace ditron::e2e {
namespace {

/// One stage of the network on a row: blocks of 2^stage elements; `descending` for all of them, or nothing for turns.
template <typename T> void merge(T *row, size_t size, unsigned stage, std::optional<bool> descending) {
  for (size_t distance = size_t(1) << stage >> 1; distance > 0; distance /= 2)
    for (size_t low = 0; low < size; ++low) {
      if (low & distance)
        continue;
      T &first = row[low], &second = row[low | distance];
      bool down = descending.value_or((low >> stage & 1) != 0);
      if (down ? first < second : first > second)
        std::swap(first, second);
    }
}

template <typename T> std::vector<T> sorted(std::vector<T> values, size_t rowSize, bool descending) {
  for (size_t row = 0; row < values.size(); row += rowSize)
    for (unsigned stage = 1; size_t(1) << stage <= rowSize; ++stage)
      merge(values.data() + row, rowSize, stage, size_t(1) << stage == rowSize ? std::optional(descending) : std::nullopt);
  return values;
}

template <typename T> std::vector<T> randomKeys(size_t count, uint64_t seed) {
  std::vector<T> values(count);
  std::vector<int64_t> numbers =
      randomIntegers(count, seed, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
  for (size_t i = 0; i < count; ++i) {
    if constexpr (std::is_floating_point_v<T>)
      values[i] = i % 61 == 7 ? T(NAN) : i % 53 == 3 ? (i % 2 ? T(0.0) : T(-0.0)) : T(numbers[i]) / 1000;
    else // many equal keys of the narrow types; the high half of the wide ones decides as well
      values[i] = sizeof(T) == 8 ? T(uint64_t(numbers[i]) * 0x9e3779b97f4a7c15u) : T(numbers[i]);
  }
  return values;
}

struct SortCase {
  int rows, size;
  uint32_t warps;
};

class Sort : public KernelTest, public testing::WithParamInterface<SortCase> {
protected:
  template <typename T> void check(bool descending) {
    const char *text = R"(
@triton.jit
def rows(x_ptr, out_ptr, R: tl.constexpr, N: tl.constexpr, DOWN: tl.constexpr):
    at = tl.arange(0, R)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + at, tl.sort(tl.load(x_ptr + at), descending=DOWN))
)";
    const auto [count, size, warps] = GetParam();
    std::vector<T> x = randomKeys<T>(size_t(count) * size, size + warps);
    Buffer in = put(x), out = zeros(dataTypeOf<T>(), x.size());
    ASSERT_OK(run(text, "rows", {.numWarps = warps}, {{in, out}, {{"R", count}, {"N", size}, {"DOWN", descending}}}));
    std::vector<T> actual = get<T>(out), expected = sorted(x, size, descending);
    size_t wrong = 0;
    for (size_t i = 0; i < x.size(); ++i)
      wrong += std::memcmp(&actual[i], &expected[i], sizeof(T)) != 0;
    EXPECT_EQ(wrong, 0u) << toString(dataTypeOf<T>()) << " of " << x.size();
  }
};

TEST_P(Sort, IsTheNetworkBitForBit) {
  check<float>(false);
  check<int64_t>(true);
  if (GetParam().size > 1024) // each costs a compilation
    return;
  check<uint8_t>(true);
  check<int16_t>(false);
  check<uint32_t>(false);
  check<double>(true);
}

std::string caseName(const testing::TestParamInfo<SortCase> &info) {
  return fmt::format("{}x{}on{}", info.param.rows, info.param.size, info.param.warps);
}
INSTANTIATE_TEST_SUITE_P(Sizes, Sort,
                         testing::Values(SortCase{1, 1, 1}, SortCase{1, 2, 4}, SortCase{8, 16, 4}, SortCase{1, 32, 2},
                                         SortCase{64, 2, 1}, SortCase{128, 8, 2}, SortCase{2, 64, 8},
                                         SortCase{32, 32, 4}, SortCase{1, 256, 1}, SortCase{4, 512, 4},
                                         SortCase{1, 1024, 16}, SortCase{1, 4096, 4}, SortCase{2, 4096, 1},
                                         SortCase{1, 8192, 2}, SortCase{1, 16384, 4}, SortCase{1, 4096, 16},
                                         SortCase{1, 32768, 1}, SortCase{1, 32768, 8}),
                         caseName);

/// The k largest, and the k smallest, of rows; blocks of k that rise and fall are merged across registers, lanes and warps.
class TopK : public KernelTest, public testing::WithParamInterface<SortCase> {};

TEST_P(TopK, IsTheEndOfASort) {
  const char *text = R"(
@triton.jit
def best(x_ptr, high_ptr, low_ptr, N: tl.constexpr, K: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    at = tl.arange(0, K)
    tl.store(high_ptr + at, tl.topk(x, K))
    tl.store(low_ptr + at, tl.topk(x, K, descending=False))
)";
  const auto [k, size, warps] = GetParam();
  std::vector<int32_t> x = convertAll<int32_t>(randomIntegers(size, 9, -1000000, 1000000)), up = x;
  std::sort(up.begin(), up.end());
  Buffer in = put(x), high = zeros(DataType::I32, k), low = zeros(DataType::I32, k);
  ASSERT_OK(run(text, "best", {.numWarps = warps}, {{in, high, low}, {{"N", size}, {"K", k}}}));
  expectSame(get<int32_t>(high), std::vector<int32_t>(up.rbegin(), up.rbegin() + k), "largest");
  expectSame(get<int32_t>(low), std::vector<int32_t>(up.begin(), up.begin() + k), "smallest");
}

INSTANTIATE_TEST_SUITE_P(Sizes, TopK,
                         testing::Values(SortCase{1, 64, 1}, SortCase{8, 8, 1}, SortCase{16, 1024, 4}, SortCase{512, 1024, 4},
                                         SortCase{2, 4096, 2}, SortCase{4, 16384, 4}, SortCase{2048, 16384, 4}),
                         caseName);

} // namespace
} // namespace ditron::e2e
