//===- copies_order_test.cpp - Stores behind loads of what several warps hold copies of --------------------------------===//
//
// Where a tile has fewer elements than a block has threads, and of scalars, each warp loads a copy, and one thread stores. What a program
// has loaded must be what was there before its later store, in every warp and every schedule (dgpu-order-copies).
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>

#include <numeric>

namespace ditron::e2e {
namespace {

constexpr const char *text = R"(
@triton.jit
def rows_in_place(x_ptr, out_ptr, N: tl.constexpr):
    rows = tl.arange(0, N)
    x = tl.load(x_ptr + rows)
    tl.store(x_ptr + rows, x + 1.0)
    tl.store(out_ptr + rows[:, None] * N + rows[None, :], x[:, None] + tl.zeros((N, N), tl.float32))

@triton.jit
def scalar_in_place(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr)
    tl.store(x_ptr, x + 1.0)
    tl.store(out_ptr + i, x + tl.zeros((N,), tl.float32))

@triton.jit
def scalars_of_turns(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    for turn in range(4):
        count = tl.load(x_ptr + turn).to(tl.int32)
        if turn % 2 == 0:
            tl.store(x_ptr + turn, -1.0)
        else:
            tl.atomic_add(x_ptr + turn, -1.0, sem="relaxed")
        if count > turn:
            tl.store(out_ptr + turn * N + i, count * tl.full((N,), 1.0, tl.float32))

@triton.jit
def first_thread_in_place(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr)
    if tid(0) == 0:
        tl.store(x_ptr, x + 1.0)
    tl.store(out_ptr + i, x + tl.zeros((N,), tl.float32))
)";

constexpr int schedules = 12;

class CopiesOrder : public KernelTest {
protected:
  using Floats = std::vector<float>;

  void check(const std::string &kernel, int n, const Floats &x, const Floats &after, const Floats &out) {
    for (uint64_t schedule = 0; schedule < (isSimulated() ? schedules : 1); ++schedule) {
      start(1, seeded(schedule));
      Buffer own = put(x), result = zeros(DataType::F32, out.size());
      ASSERT_OK(run(text, kernel, {.numWarps = 4}, {{own, result}, {{"N", n}}}));
      expectSame(get<float>(own), after, fmt::format("{}: x, schedule {}", kernel, schedule));
      expectSame(get<float>(result), out, fmt::format("{}: result, schedule {}", kernel, schedule));
    }
  }
};

TEST_F(CopiesOrder, OfTiles) {
  constexpr int n = 32;
  Floats x(n), after, out;
  std::iota(x.begin(), x.end(), 1.0f);
  for (float each : x) {
    after.push_back(each + 1);
    out.insert(out.end(), n, each);
  }
  check("rows_in_place", n, x, after, out);
}

TEST_F(CopiesOrder, OfScalars) { check("scalar_in_place", 128, {7}, {8}, Floats(128, 7)); }

TEST_F(CopiesOrder, OfScalarsInLoopsAndBranches) {
  constexpr int n = 128;
  Floats out(4 * n, 0.0f);
  std::fill(out.begin(), out.begin() + n, 5.0f);
  std::fill(out.begin() + 3 * n, out.end(), 9.0f);
  check("scalars_of_turns", n, {5, 1, 2, 9}, {-1, 0, -1, 8}, out);
}

TEST_F(CopiesOrder, BeforeABranchOfOneThread) { check("first_thread_in_place", 128, {7}, {8}, Floats(128, 7)); }

} // namespace
} // namespace ditron::e2e
