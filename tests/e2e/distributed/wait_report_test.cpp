//===- wait_report_test.cpp - What is told about a wait that never ends -----------------------------------------------===//
//
// The simulator sees that nothing can go on; on a GPU the kernel, compiled with bounded waits, gives up after a time. Both say in
// the same words which rank, kernel, line and block waits for which signal, what it has and what it wants.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class WaitReports : public KernelTest {
protected:
  static WorldOptions quick() {
    WorldOptions options;
    options.waitLimitSeconds = 0.3;
    return options;
  }
  static std::string at(uint32_t line) { return fmt::format("kernel.py:{}:", prologueLines() + line); }
};

const char *const text = R"(
@triton.jit
def hold(signal_ptr, out_ptr, wanted):
    right = (dl.rank() + 1) % dl.num_ranks()
    dl.notify(signal_ptr + 3, right, signal=2, sig_op="set", comm_scope="intra_node")
    token = dl.wait(signal_ptr + 3, 1, "sys", "acquire", waitValue=wanted, compare="ge")
    tl.store(out_ptr, tl.load(dl.consume_token(signal_ptr, token) + 3))
)";

TEST_F(WaitReports, NameTheSignalAndWhatItLacks) {
  const uint32_t ranks = ranksOnTarget(2);
  start(ranks, quick());
  SymmetricBuffer signal = symmetric(DataType::I64, 4, "ring_signal");
  std::vector<Buffer> out;
  for (uint32_t r = 0; r < ranks; ++r) {
    out.push_back(zeros(DataType::I64, 1, "out", r));
    ASSERT_OK(launch(text, "hold", {.grid = {1, 1, 1}, .numWarps = 2}, {{signal.on(r), out[r], int64_t(5)}, {}}, r));
  }
  const Status status = world().synchronize();
  EXPECT_EQ(status.code(), endlessWaitCode());
  for (uint32_t r = 0; r < ranks; ++r)
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("deadlock"), HasSubstr(fmt::format("rank {}, kernel hold at {}", r, at(6))),
                      HasSubstr("block (0,0,0)"),
                      HasSubstr(fmt::format("waits for ring_signal[3] on rank {}: has 2, wants >= 5", r))));
  EXPECT_EQ(world().status().message(), status.message()) << "the run stays ended";
}

TEST_F(WaitReports, LeaveTheGpuUsable) {
  for (int64_t wanted : {7, 2, 9, 2}) {
    start(1, quick());
    SymmetricBuffer signal = symmetric(DataType::I64, 4, "ring_signal");
    Buffer out = zeros(DataType::I64, 1, "out");
    const Status status = run(text, "hold", {.numWarps = 1}, {{signal.on(0), out, wanted}, {}});
    EXPECT_EQ(status.code(), wanted == 2 ? StatusCode::Ok : endlessWaitCode()) << status.message();
    if (wanted == 2)
      expectSame(get<int64_t>(out), {2});
  }
}

/// Of many blocks one reports, and all end soon.
TEST_F(WaitReports, ComeFromOneOfManyBlocks) {
  const char *many = R"(
@triton.jit
def crowd(signal_ptr):
    dl.wait(signal_ptr + tl.program_id(0) % 4, 1, "gpu", "acquire", waitValue=1)
)";
  start(1, quick());
  SymmetricBuffer signal = symmetric(DataType::I32, 4, "doors");
  const Status status = run(many, "crowd", {.grid = {40, 5, 1}, .numWarps = 1}, {{signal.on(0)}, {}});
  EXPECT_EQ(status.code(), endlessWaitCode());
  EXPECT_THAT(status.message(), AllOf(HasSubstr("kernel crowd at " + at(4)), HasSubstr("block"),
                                      HasSubstr("waits for doors["), HasSubstr("has 0, wants == 1")));
}

} // namespace
} // namespace ditron::e2e
