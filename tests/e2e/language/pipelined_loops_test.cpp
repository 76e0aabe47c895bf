//===- pipelined_loops_test.cpp - Loops without dots whose loads run ahead ----------------------------------------------------===//
//
// tl.range(..., num_stages=N): dgpu-pipeline-loops copies what the loop loads into rings in shared memory. Every result must have the bits of the same loop
// with one stage, over element types, sizes that masks cut, numbers of turns (also none) and of stages.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"

#include <bit>
#include <fmt/format.h>

namespace ditron::e2e {
namespace {

constexpr const char *text = R"(
@triton.jit
def softmax(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        x = tl.load(x_ptr + row * columns + i, mask=i < columns, other=-float("inf")).to(tl.float32)
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * columns + i, e / tl.sum(e, axis=0), mask=i < columns)

@triton.jit
def weighted(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    r, i = tl.arange(0, 4), tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in tl.range(0, rows, 4, num_stages=STAGES):
        mask = (first + r < rows)[:, None] & (i < columns)[None, :]
        x = tl.load(x_ptr + (first + r)[:, None] * columns + i[None, :], mask=mask, other=2.0)
        w = tl.load(x_ptr + (first + r) * columns, mask=first + r < rows)
        total += tl.max(x.to(tl.float32) - w.to(tl.float32)[:, None], axis=0)  # no product that the compiler may fuse here and not there
    tl.store(out_ptr + i, total, mask=i < columns)

@triton.jit
def gathered(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for row in tl.range(0, rows, num_stages=STAGES):
        source = (tl.abs(tl.load(x_ptr + row).to(tl.float32)) * 16).to(tl.int32) % rows
        x = tl.load(x_ptr + source * columns + i, mask=i < columns, other=0.0)
        if source != row:
            tl.store(out_ptr + row * columns + i, x, mask=i < columns)

@triton.jit
def recurrence(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for row in tl.range(1, rows, num_stages=STAGES):
        x = tl.load(out_ptr + (row - 1) * columns + i, mask=i < columns)
        own = tl.load(x_ptr + row * columns + i, mask=i < columns)
        tl.store(out_ptr + row * columns + i, x + own, mask=i < columns)

@triton.jit
def carried(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    i = tl.arange(0, BLOCK)
    pointers = x_ptr + i
    last = tl.zeros((BLOCK,), tl.float32)
    for row in tl.range(0, rows, num_stages=STAGES):
        x = tl.load(pointers, mask=i < columns, other=1.0).to(tl.float32)
        pointers += columns
        tl.store(out_ptr + row * columns + i, x - last, mask=i < columns)
        last = x

@triton.jit
def shifted(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for row in tl.range(0, rows - 1, num_stages=STAGES):
        tl.store(out_ptr + (row + 1) * columns + i, tl.load(x_ptr + row * columns + i) + 1)
)";

struct Case {
  std::string kernel;
  DataType dtype;
  int rows, columns, stages;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char *kernel : {"softmax", "weighted", "gathered", "recurrence", "carried"})
    for (DataType dtype : {DataType::F32, DataType::BF16, DataType::F8E4NV})
      for (const auto &[rows, columns, stages] :
           {std::array{9, 256, 4}, {1, 64, 3}, {13, 100, 2}, {30, 37, 7}, {5, 1024, 3}, {0, 128, 4}})
        all.push_back({kernel, dtype, rows, columns, stages});
  return all;
}

class PipelinedLoops : public KernelTest, public testing::WithParamInterface<Case> {
protected:
  /// What the kernel makes of the same numbers with so many stages; memory that it does not write keeps its zeros.
  std::vector<float> results(int stages) {
    const Case &c = GetParam();
    const size_t count = std::max<size_t>(size_t(c.rows) * c.columns, c.columns);
    start(1);
    Buffer x = putAs(c.dtype, randomFloats(count, 7, -2, 2, c.dtype)), out = zeros(c.dtype, count);
    const LaunchShape shape = {.grid = {c.kernel == "softmax" ? 3u : 1u, 1, 1}};
    EXPECT_OK(run(
        text, c.kernel, shape,
        {{x, out, c.rows, c.columns}, {{"BLOCK", int64_t(std::bit_ceil(unsigned(c.columns)))}, {"STAGES", stages}}}));
    return getFloats(out);
  }
};

TEST_P(PipelinedLoops, HaveTheBitsOfLoopsThatAreNot) { expectSame(results(GetParam().stages), results(1)); }

/// One memory under two arguments: what a turn stores the next one reads, and has read already.
TEST_F(KernelTest, LoopsThatReadAheadOfTheirStoresRace) {
  if (!isSimulated())
    GTEST_SKIP() << "races are found by the simulator";
  const auto status = [&](int stages, bool isOneMemory) {
    start(1);
    const Buffer x = zeros(DataType::F32, 8 * 256, "x"), out = zeros(DataType::F32, 8 * 256, "out");
    return run(text, "shifted", {}, {{x, isOneMemory ? x : out, 8, 256}, {{"BLOCK", 256}, {"STAGES", stages}}});
  };
  EXPECT_OK(status(3, false));
  EXPECT_OK(status(1, true));
  const Status race = status(3, true);
  EXPECT_EQ(race.code(), StatusCode::DataRace);
  EXPECT_THAT(race.message(), testing::HasSubstr("must not read what the loop stores"));
}

INSTANTIATE_TEST_SUITE_P(All, PipelinedLoops, testing::ValuesIn(cases()), [](const auto &info) {
  const Case &c = info.param;
  return fmt::format("{}_{}_{}x{}_{}_stages", c.kernel, toString(c.dtype), c.rows, c.columns, c.stages);
});

} // namespace
} // namespace ditron::e2e
