//===- gpu_trace_test.cpp - Events of GPUs become traces ------------------------------------------------------------===//
#include "ditron/abi/Compare.h"
#include "ditron/runtime/cuda/GpuTrace.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ditron::cuda {
namespace {

using nlohmann::json;

constexpr uint64_t start = 1'700'000'000'000'000'000; ///< A GPU's clock counts from 1970.
const EventNames names{[](uint32_t hash) { return hash == 7 ? "gemm" : "other"; },
                       [](uint32_t, uint32_t line) { return fmt::format("gemm.py:{}", line); },
                       [](uint64_t address) { return fmt::format("ready[{}]", address / 8); }};

DitronEvent makeEvent(DitronEventKind kind, uint32_t operation, uint32_t block, uint64_t begin, uint64_t end) {
  DitronEvent event{};
  event.kindOperation = kind | operation << 8;
  event.kernel = 7;
  event.line = 12;
  event.blockX = block;
  event.threadSm = block % 2 << 16; // two SMs
  event.launch = 3;
  event.begin = start + begin;
  event.end = start + end;
  return event;
}
DitronEvent block(uint32_t block, uint64_t begin, uint64_t end) {
  return makeEvent(DITRON_EVENT_BLOCK, 0, block, begin, end);
}
DitronEvent wait(uint32_t block, uint64_t begin, uint64_t end, uint64_t word, uint64_t wanted) {
  DitronEvent event = makeEvent(DITRON_EVENT_WAIT, DITRON_COMPARE_GE, block, begin, end);
  event.address = word * 8;
  event.value = wanted;
  return event;
}
DitronEvent signal(uint32_t block, uint64_t when, uint64_t word, uint64_t value) {
  DitronEvent event = makeEvent(DITRON_EVENT_SIGNAL, DITRON_SIGNAL_ADD, block, when, when);
  event.address = word * 8;
  event.value = value;
  return event;
}

json render(const std::vector<RankEvents> &ranks, const Status &ended = Status::ok()) {
  return json::parse(renderGpuTrace(ranks, names, ended))["traceEvents"];
}
std::vector<json> select(const json &events, const char *phase, const std::string &name) {
  std::vector<json> found;
  for (const json &event : events)
    if (event["ph"] == phase && event["name"] == name)
      found.push_back(event);
  return found;
}

TEST(GpuTrace, AWaitLiesInItsBlockAndAnArrowComesFromItsSignal) {
  const json events = render({{0, {{block(0, 0, 10'000), wait(0, 1'000, 9'000, 4, 2)}, 0}, {}},
                              {1, {{block(1, 500, 9'500), signal(1, 2'000, 5, 1), signal(1, 8'000, 4, 1)}, 0}, {}}});
  const std::vector<json> blocks = select(events, "X", "gemm"), waits = select(events, "X", "wait ready[4]"),
                          starts = select(events, "s", "ready[4] += 1"), ends = select(events, "f", "ready[4] += 1");
  ASSERT_EQ(blocks.size(), 4u) << "two blocks and two launches";
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0]["ts"], 1.0);
  EXPECT_EQ(waits[0]["dur"], 8.0);
  EXPECT_EQ(waits[0]["tid"], 0) << "on the row of its block";
  EXPECT_EQ(waits[0]["args"]["wants"], ">= 2");
  EXPECT_EQ(waits[0]["args"]["at"], "gemm.py:12");
  ASSERT_EQ(starts.size(), 1u);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(starts[0]["pid"], 1);
  EXPECT_EQ(starts[0]["ts"], 8.0);
  EXPECT_EQ(ends[0]["pid"], 0);
  EXPECT_TRUE(select(events, "s", "ready[5] += 1").empty()) << "nobody waited for it";
  EXPECT_EQ(select(events, "i", "signal ready[5]").size(), 1u);
}

TEST(GpuTrace, SpansOfARowNestAndBlocksOfAnSmHaveRowsOfTheirOwn) {
  // Two blocks on SM 0 at once; of one, two threads wait, one longer than the other and beginning later.
  const json events = render({{0,
                               {{block(0, 0, 10'000), block(2, 100, 9'000), wait(0, 1'000, 4'000, 1, 1),
                                 wait(0, 2'000, 6'000, 2, 1), wait(0, 2'500, 3'500, 3, 1)},
                                0},
                               {}}});
  std::map<int, std::vector<double>> open;
  for (const json &event : events) {
    if (event["ph"] != "X")
      continue;
    std::vector<double> &ends = open[event["tid"].get<int>()];
    const double begin = event["ts"], end = begin + event["dur"].get<double>();
    while (!ends.empty() && ends.back() <= begin)
      ends.pop_back();
    EXPECT_TRUE(ends.empty() || end <= ends.back()) << event;
    ends.push_back(end);
  }
  EXPECT_NE(select(events, "X", "wait ready[1]")[0]["tid"], select(events, "X", "wait ready[2]")[0]["tid"]);
}

TEST(GpuTrace, WhatHangsReachesToTheEnd) {
  explain::PublishedWait open;
  open.kernelHash = 7;
  open.block = {5, 0, 0};
  open.sm = 1;
  open.launch = 3;
  open.compare = DITRON_COMPARE_GE;
  open.wanted = 3;
  open.address = 16;
  open.sinceNanoseconds = start + 2'000;
  open.seconds = 4;
  const json events = render({{0, {{block(0, 0, 10'000)}, 0}, {open}}}, Status(StatusCode::TimeOut, "4 seconds"));
  const std::vector<json> waits = select(events, "X", "wait ready[2]");
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0]["args"]["unfinished"], true);
  EXPECT_EQ(waits[0]["dur"], 4e6);
  ASSERT_EQ(select(events, "i", "the run has failed").size(), 1u);
  EXPECT_EQ(select(events, "i", "the run has failed")[0]["args"]["message"], "4 seconds");
}

TEST(GpuTrace, WithoutEventsItIsEmptyAndValid) { EXPECT_TRUE(render({{0, {}, {}}}).empty()); }

TEST(EventRing, KeepsTheNewestAndLeavesOutWhatIsNotWrittenYet) {
  std::vector<DitronEvent> places(DITRON_RING_EVENTS);
  const uint64_t claimed = DITRON_RING_EVENTS + 3;
  for (uint64_t number = 0; number < claimed; ++number)
    places[number % DITRON_RING_EVENTS].sequence = static_cast<uint32_t>(number + 1);
  places[2].sequence = 3; // of the lap before: its number was taken again and nothing written yet
  const NotedEvents noted = sortEvents(places, claimed);
  EXPECT_EQ(noted.overwritten, 3u);
  ASSERT_EQ(noted.events.size(), DITRON_RING_EVENTS - 1u);
  EXPECT_EQ(noted.events.front().sequence, 4u);
  EXPECT_EQ(noted.events.back().sequence, claimed - 1);
}

} // namespace
} // namespace ditron::cuda
