//===- Prediction_test.cpp - What must hold for every prediction ----------------------------------------------------===//
#include "ditron/predict/Prediction.h"
#include "ditron/predict/VendorCollectives.h"

#include <gmock/gmock.h>

namespace ditron::predict {
namespace {

using testing::HasSubstr;

MachineDescription machineNamed(const std::string &name) {
  Expected<MachineDescription> machine = readMachine(name);
  EXPECT_TRUE(machine.isOk()) << machine.status().message();
  return *machine;
}

Time timeOf(const MachineDescription &machine, const Request &request) {
  const Expected<Time> time = predictTime(machine, request);
  EXPECT_TRUE(time.isOk()) << time.status().message();
  return time.isOk() ? *time : -1;
}

Request product(Operator op, Form form, uint32_t gpus, int64_t m, int64_t n, int64_t k) {
  return {.op = op, .form = form, .gpus = gpus, .m = m, .n = n, .k = k};
}

Request collective(Operator op, Form form, uint32_t gpus, int64_t bytes) {
  return {.op = op, .form = form, .gpus = gpus, .bytes = bytes};
}

/// Every operator in every form, small enough to be quick.
std::vector<Request> everything(uint32_t gpus) {
  std::vector<Request> requests;
  for (size_t i = 0; i < operatorNames().size(); ++i) {
    const Operator op = static_cast<Operator>(i);
    for (Form form : formsOf(op)) {
      Request request = {.op = op, .form = form, .gpus = op == Operator::Gemm ? 1 : gpus};
      if (op <= Operator::A2aGemm)
        request.m = 4096, request.n = 2048 * gpus, request.k = 512 * gpus;
      else if (op <= Operator::AllToAll)
        request.bytes = 8 << 20;
      else if (op <= Operator::MoeAr)
        request.tokens = 4096, request.hidden = 2048, request.intermediate = 128 * gpus, request.experts = 16,
        request.topk = 4;
      else if (op <= Operator::EpCombine)
        request.tokens = 512, request.hidden = 2048, request.experts = 16 * gpus, request.topk = 4;
      else
        request.heads = 32, request.kvHeads = 8, request.headDim = 128, request.context = 8192;
      requests.push_back(request);
    }
  }
  return requests;
}

std::string nameOf(const Request &request) {
  return std::string(toString(request.op)) + " " + std::string(toString(request.form));
}

TEST(Prediction, EqualRequestsGiveEqualPredictions) {
  const MachineDescription machine = machineNamed("h200x8");
  for (Request request : everything(8)) {
    request.keepsSpans = true;
    const Expected<Prediction> first = predict(machine, request), second = predict(machine, request);
    ASSERT_TRUE(first.isOk()) << nameOf(request) << ": " << first.status().message();
    EXPECT_EQ(toJson(*first), toJson(*second)) << nameOf(request);
    EXPECT_EQ(renderTrace(first->spans), renderTrace(second->spans)) << nameOf(request);
  }
}

TEST(Prediction, TogetherIsNeverFasterThanEitherAlone) {
  for (const char *name : {"h200x8", "l20x8", "mi308xx8"})
    for (const Request &request : everything(8)) {
      const Expected<Prediction> prediction = predict(machineNamed(name), request);
      ASSERT_TRUE(prediction.isOk()) << nameOf(request) << ": " << prediction.status().message();
      const double slack = 1 + 1e-9;
      EXPECT_GE(prediction->us * slack, prediction->computeUs) << name << " " << nameOf(request);
      EXPECT_GE(prediction->us * slack, prediction->communicationUs) << name << " " << nameOf(request);
      if (const auto ratio = prediction->overlapRatio())
        EXPECT_LE(*ratio, slack) << name << " " << nameOf(request);
    }
}

/// Machines that are better in one respect are never slower. Discrete schedules may lose a little when an order changes.
TEST(Prediction, MoreBandwidthNeverHurts) {
  struct Better {
    const char *what;
    void (*change)(MachineDescription &);
  };
  const Better betters[] = {
      {"links", [](MachineDescription &m) { m.node.linkGbPerS *= 2; }},
      {"memory", [](MachineDescription &m) { m.gpu.hbmGbPerS *= 2; }},
      {"clocks",
       [](MachineDescription &m) {
         m.gpu.boostClockMhz *= 2;
         m.gpu.sustainedClockMhz *= 2;
       }},
      {"launch", [](MachineDescription &m) { m.gpu.kernelLaunchUs /= 2; }},
      {"copies", [](MachineDescription &m) { m.copyEngine.fixedUs /= 2; }},
      {"signals", [](MachineDescription &m) { m.copyEngine.signalUs /= 2; }},
  };
  const MachineDescription machine = machineNamed("h200x8");
  for (const Better &better : betters) {
    MachineDescription changed = machine;
    better.change(changed);
    for (const Request &request : everything(8))
      EXPECT_LE(timeOf(changed, request), timeOf(machine, request) * 1.005) << better.what << " " << nameOf(request);
  }
}

TEST(Prediction, NeverBelowTheRoofline) {
  const MachineDescription machine = machineNamed("h200x8");
  const double flopsPerUs =
      machine.gpu.smCount * 4096 * machine.gpu.boostClockMhz; // of the data sheet, at the boost clock
  const double linkBytesPerUs = machine.node.linkGbPerS * 1e3, memoryBytesPerUs = machine.gpu.hbmGbPerS * 1e3;
  for (uint32_t gpus : {2u, 4u, 8u})
    for (int64_t m : {64, 1000, 8192})
      for (int64_t size : {4096, 14336}) {
        const double flops = 2.0 * double(m) * double(size) * 8192 / gpus, elements = 2.0;
        for (Form form : {Form::Overlapped, Form::Unfused, Form::Vendor}) {
          const double gathered = double(m) / gpus * (gpus - 1) * 8192 * elements;
          const Time ag = timeOf(machine, product(Operator::AgGemm, form, gpus, m, size, 8192));
          EXPECT_GE(ag, flops / flopsPerUs);
          EXPECT_GE(ag, gathered / linkBytesPerUs);
          EXPECT_GE(ag, 8192.0 * double(size) / gpus * elements / memoryBytesPerUs);
          const Time rs = timeOf(machine, product(Operator::GemmRs, form, gpus, m, 8192, size));
          EXPECT_GE(rs, flops / flopsPerUs);
          EXPECT_GE(rs, gathered / linkBytesPerUs);
        }
      }
}

TEST(Prediction, TwiceTheLinksHalveLargeExchanges) {
  const MachineDescription machine = machineNamed("h200x8");
  MachineDescription twice = machine;
  twice.node.linkGbPerS *= 2;
  const int64_t large = int64_t(4) << 30;
  for (Operator op : {Operator::AllGather, Operator::ReduceScatter, Operator::AllReduce, Operator::AllToAll})
    for (Form form : formsOf(op))
      EXPECT_NEAR(timeOf(machine, collective(op, form, 8, large)) / timeOf(twice, collective(op, form, 8, large)), 2,
                  0.02)
          << toString(op) << " " << toString(form);
}

TEST(Prediction, CopiesCostTheirFixedTimeAndTheirBytes) {
  const MachineDescription machine = machineNamed("h200x8");
  const double rate = machine.node.linkGbPerS * 1e3 * machine.copyEngine.linkEfficiency;
  const int64_t bytes = 16 << 20;
  const Time expected = 7 * (machine.copyEngine.fixedUs + double(bytes) / rate) + machine.node.signalUs;
  EXPECT_NEAR(timeOf(machine, collective(Operator::AllGather, Form::CopyEngine, 8, bytes)), expected, 1e-3);
}

TEST(Prediction, FewSmsMoveTheirPart) {
  const MachineDescription machine = machineNamed("h200x8");
  Request request = collective(Operator::AllGather, Form::OneShot, 8, 1 << 30);
  const Time whole = timeOf(machine, request);
  request.communicationSms = machine.node.smsForFullLink / 4;
  EXPECT_NEAR(timeOf(machine, request) / whole, 4, 0.05);
  request.communicationSms = machine.gpu.smCount;
  EXPECT_EQ(timeOf(machine, request), whole);
}

TEST(Prediction, OverlapHidesCommunication) {
  const MachineDescription machine = machineNamed("h200x8");
  const Prediction large = *predict(machine, product(Operator::AgGemm, Form::Overlapped, 8, 8192, 53248, 16384));
  EXPECT_GT(*large.overlapRatio(), 0.7);
  const Prediction unfused = *predict(machine, product(Operator::AgGemm, Form::Unfused, 8, 8192, 53248, 16384));
  EXPECT_LT(*unfused.overlapRatio(), 0.1);
  EXPECT_GT(unfused.us, large.us);
  EXPECT_GT(*large.vendorUs, large.us);
}

TEST(Prediction, ASlowRankIsTheStragglerAndWaitedFor) {
  const MachineDescription machine = machineNamed("h200x8");
  Request request = product(Operator::GemmRs, Form::Overlapped, 4, 4096, 4096, 16384);
  const Prediction even = *predict(machine, request);
  request.slowRanks = {{2, 2.0}};
  const Prediction slow = *predict(machine, request);
  EXPECT_EQ(slow.straggler, 2u);
  EXPECT_GT(slow.us, 1.5 * even.us);
  EXPECT_GT(slow.spreadUs, 0);
  // The others wait for its segments, and its own copies for its gates.
  const auto arrived = std::ranges::find(slow.topWaits, "arrived", &WaitSummary::kind);
  ASSERT_NE(arrived, slow.topWaits.end());
  EXPECT_THAT(arrived->longestSignal, HasSubstr("arrived[2] of rank"));
  const auto gate = std::ranges::find(slow.topWaits, "gate", &WaitSummary::kind);
  ASSERT_NE(gate, slow.topWaits.end());
  EXPECT_EQ(gate->longestRank, 2u);
}

TEST(Prediction, ChunksLetTilesStartEarlier) {
  const MachineDescription machine = machineNamed("h800x8");
  Request request = product(Operator::AgGemm, Form::Overlapped, 2, 32768, 4096, 8192);
  const Time whole = timeOf(machine, request);
  request.chunksPerRank = 8;
  EXPECT_LT(timeOf(machine, request), whole);
}

TEST(Prediction, RowsThatTheRanksDoNotDivide) {
  const MachineDescription machine = machineNamed("h200x8");
  for (Operator op : {Operator::AgGemm, Operator::GemmRs, Operator::GemmAr})
    for (int64_t m : {1, 7, 1000, 8191})
      EXPECT_GT(timeOf(machine, product(op, Form::Overlapped, 8, m, 4096, 4096)), 0) << toString(op) << " " << m;
}

TEST(Prediction, RepresentativesGiveWhatAllRanksGive) {
  const MachineDescription machine = machineNamed("h800-cluster");
  for (uint32_t gpus : {16u, 32u})
    for (Request request : everything(gpus)) {
      if (request.op == Operator::Gemm)
        continue;
      request.usesRepresentatives = false;
      const Time all = timeOf(machine, request);
      request.usesRepresentatives = true;
      EXPECT_NEAR(timeOf(machine, request), all, 1e-3 * all) << nameOf(request) << " " << gpus;
    }
}

/// Each chunk of each shard, the empty ones too, must reach each rank: a tile that waits in vain is an error.
TEST(Prediction, ChunksOverNodes) {
  const MachineDescription machine = machineNamed("h200-cluster");
  for (uint32_t gpus : {16u, 32u})
    for (uint32_t chunks : {2u, 5u})
      for (int64_t m : {8192, 8191, 5}) {
        Request request = product(Operator::AgGemm, Form::Overlapped, gpus, m, 28672, 8192);
        request.chunksPerRank = chunks;
        const Time time = timeOf(machine, request);
        request.form = Form::Unfused;
        EXPECT_GT(timeOf(machine, request), 0);
        request.form = Form::Overlapped;
        if (m == 8192) {
          request.usesRepresentatives = true;
          EXPECT_NEAR(timeOf(machine, request), time, 1e-3 * time) << gpus << " GPUs, " << chunks << " chunks";
        }
      }
}

TEST(Prediction, ElevenThousandGpus) {
  const MachineDescription machine = machineNamed("h20-cluster");
  const Prediction prediction = *predict(machine, collective(Operator::AllToAll, Form::OneShot, 11520, 64 << 10));
  EXPECT_EQ(prediction.simulatedRanks, 8u);
  // 11,512 peers behind a NIC that two GPUs share.
  const double nic = machine.network.nicGbPerS * 1e3 * machine.network.nicEfficiency / 2;
  EXPECT_NEAR(prediction.us, 11512.0 * (64 << 10) / nic, 0.05 * prediction.us);
}

TEST(Prediction, VendorCollectivesGrowWithBytesAndNodes) {
  const MachineDescription machine = machineNamed("h800-cluster");
  for (Operator op : {Operator::AllGather, Operator::ReduceScatter, Operator::AllReduce, Operator::AllToAll}) {
    Time before = 0;
    for (double bytes = 1024; bytes < 1e9; bytes *= 2) {
      const Time time = vendorCollectiveUs(machine, op, 8, bytes);
      EXPECT_GT(time, before);
      before = time;
      EXPECT_GT(vendorCollectiveUs(machine, op, 16, bytes), time);
    }
    EXPECT_EQ(vendorCollectiveUs(machine, op, 1, 1e6), 0);
  }
}

TEST(Prediction, RequestsThatMakeNoSense) {
  const MachineDescription machine = machineNamed("h200x8");
  auto error = [&](const Request &request) { return predictTime(machine, request).status().message(); };
  EXPECT_THAT(error(product(Operator::AgGemm, Form::Overlapped, 8, 0, 4096, 4096)), "ag_gemm needs m");
  EXPECT_THAT(error(product(Operator::AgGemm, Form::Overlapped, 8, 64, 4097, 4096)),
              HasSubstr("n is 4097; a multiple of the 8 GPUs"));
  EXPECT_THAT(error(product(Operator::GemmRs, Form::Overlapped, 8, 64, 64, 4097)),
              HasSubstr("k is 4097; a multiple of the 8 GPUs"));
  EXPECT_THAT(error(product(Operator::AgGemm, Form::TwoShot, 8, 64, 64, 64)),
              "ag_gemm has no form 'two_shot'; accepted are overlapped, unfused, vendor");
  EXPECT_THAT(error(product(Operator::AgGemm, Form::Overlapped, 1, 64, 64, 64)), "ag_gemm needs at least 2 GPUs");
  EXPECT_THAT(error(product(Operator::AgGemm, Form::Overlapped, 16, 64, 64, 64)),
              HasSubstr("8 x H200 has 8 GPUs, not 16"));
  EXPECT_THAT(error(product(Operator::Gemm, Form::Overlapped, 8, 64, 64, 64)), HasSubstr("gemm is of one GPU"));
  EXPECT_THAT(error(collective(Operator::AllReduce, Form::Vendor, 8, -1)), HasSubstr("bytes is -1; 1 to"));
  Request request = product(Operator::AgGemm, Form::Overlapped, 8, 64, 64, 64);
  request.bytes = 3;
  EXPECT_THAT(error(request), "ag_gemm takes no bytes");
  request = product(Operator::AgGemm, Form::Overlapped, 8, 64, 64, 64);
  request.communicationSms = 3;
  EXPECT_THAT(error(request), HasSubstr("'overlapped' takes no number of SMs"));
  request.communicationSms = 0;
  request.slowRanks = {{9, 2}};
  EXPECT_THAT(error(request), HasSubstr("slow rank 9"));
  request.slowRanks = {};
  request.dtype = DataType::F64;
  EXPECT_THAT(error(request), HasSubstr("has no rate for products of fp64"));
  request.dtype = DataType::BF16;
  request.usesRepresentatives = true;
  EXPECT_THAT(error(request), HasSubstr("there must be several"));
  const Expected<Time> odd =
      predictTime(machineNamed("h200-cluster"), product(Operator::AgGemm, Form::Overlapped, 12, 64, 144, 64));
  EXPECT_THAT(odd.status().message(), HasSubstr("12 GPUs are no whole nodes of 8"));
  EXPECT_THAT(parseTile("128x256").status().message(), HasSubstr("write rows x columns x depth"));
  EXPECT_THAT(predict(machineNamed("h200x8"), product(Operator::AgGemm, Form::Overlapped, 8, 1 << 30, 1 << 20, 64))
                  .status()
                  .message(),
              HasSubstr("at most 2097152 are simulated"));
  Request experts;
  experts.op = Operator::EpDispatch, experts.form = Form::OneShot, experts.gpus = 8;
  experts.tokens = 512, experts.hidden = 2048, experts.experts = 7, experts.topk = 2;
  EXPECT_THAT(predict(machineNamed("h200x8"), experts).status().message(),
              HasSubstr("experts is 7; a multiple of the 8 GPUs"));
  experts.experts = 8, experts.communicationSms = 1000;
  EXPECT_THAT(predict(machineNamed("h200x8"), experts).status().message(),
              HasSubstr("1000 SMs for communication; 8 x H200 has 132"));
}

TEST(Prediction, TraceIsJsonWithATrackForEachWho) {
  Request request = product(Operator::AgGemm, Form::Overlapped, 2, 512, 1024, 512);
  request.keepsSpans = true;
  const Prediction prediction = *predict(machineNamed("h200x8"), request);
  const nlohmann::json trace = nlohmann::json::parse(renderTrace(prediction.spans));
  double end = 0;
  std::map<std::string, int> categories;
  for (const nlohmann::json &event : trace["traceEvents"])
    if (event["ph"] == "X") {
      end = std::max(end, event["ts"].get<double>() + event["dur"].get<double>());
      ++categories[event["cat"]];
    }
  EXPECT_NEAR(end, prediction.us, 1e-3);
  for (const char *category : {"tile", "copy", "signal", "kernel", "wait"})
    EXPECT_GT(categories[category], 0) << category;
}

/// Viewers drop or misplace spans of one row that cross by as little as a rounding.
TEST(Prediction, SpansOfATrackDoNotCross) {
  Request request = product(Operator::AgGemm, Form::Overlapped, 8, 8192, 28672, 8192);
  request.keepsSpans = true;
  const Prediction prediction = *predict(machineNamed("h200x8"), request);
  std::map<std::pair<int, int>, std::vector<std::pair<int64_t, int64_t>>> rows;
  const nlohmann::json trace = nlohmann::json::parse(renderTrace(prediction.spans));
  auto nanoseconds = [](const nlohmann::json &time) { return std::llround(time.get<double>() * 1000); };
  for (const nlohmann::json &event : trace["traceEvents"])
    if (event["ph"] == "X")
      rows[{event["pid"], event["tid"]}].emplace_back(nanoseconds(event["ts"]),
                                                      nanoseconds(event["ts"]) + nanoseconds(event["dur"]));
  ASSERT_GT(rows.size(), 132u);
  for (auto &[row, spans] : rows) {
    std::ranges::sort(spans, [](const auto &a, const auto &b) {
      return std::pair(a.first, -a.second) < std::pair(b.first, -b.second);
    });
    std::vector<int64_t> open;
    for (const auto &[start, end] : spans) {
      while (!open.empty() && open.back() <= start)
        open.pop_back();
      ASSERT_TRUE(open.empty() || end <= open.back())
          << "rank " << row.first << ", row " << row.second << " at " << start;
      open.push_back(end);
    }
  }
}

} // namespace
} // namespace ditron::predict
