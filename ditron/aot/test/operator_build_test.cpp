//===- operator_build_test.cpp - Operators from packages ------------------------------------------------------------------===//
//
// The package that is built for a shape serves the operator with that shape, and the results are those of the compiler to the bit.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/aot/OperatorBuild.h"

#include "ditron/ops/Gemm.h"
#include "ditron/ops/Reference.h"
#include "ditron/ops/RowWise.h"
#include "ditron/ops/attention/Attention.h"
#include "ditron/ops/collectives/AllToAllV.h"
#include "ditron/ops/collectives/Barrier.h"
#include "ditron/ops/collectives/Collective.h"
#include "ditron/ops/collectives/SendReceive.h"
#include "ditron/ops/tensor_parallel/AllGatherGemm.h"
#include "ditron/ops/tensor_parallel/GemmAllReduce.h"
#include "ditron/ops/tensor_parallel/GemmReduceScatter.h"
#include "ditron/package/PackageFile.h"
#include "ditron/package/PackageProvider.h"

#include <fmt/format.h>
#include <functional>
#include <gmock/gmock.h>

using namespace ditron;
using namespace ditron::aot;
using runtime::Buffer;
using runtime::KernelProvider;
using runtime::Pointer;
using runtime::Rank;
using runtime::World;
using runtime::WorldOptions;
using testing::HasSubstr;

namespace {

std::string messageOf(const Status &status) { return status.isOk() ? "ok" : status.message(); }

Expected<package::Package> buildFor(const std::string &op, const std::string &shape,
                                    const std::string &target = "sim:sm_80") {
  PackageBuilder builder(Knobs(), "ditron for a test");
  DITRON_RETURN_IF_ERROR(addOperator(builder, {op, shape, target}));
  return package::readPackage(package::writePackage(builder.package()));
}

std::string errorOf(const std::string &op, const std::string &shape) { return messageOf(buildFor(op, shape).status()); }

/// Operands and results of a test, one for each rank.
struct Bench {
  std::unique_ptr<World> world;
  std::vector<Buffer> buffers;
  uint64_t seed = 1;

  Pointer random(uint32_t rank, DataType type, int64_t count) {
    buffers.push_back(*world->rank(rank).allocate(type, count, fmt::format("operand {}", buffers.size())));
    EXPECT_EQ(messageOf(buffers.back().uploadFloats(ops::randomValues(type, count, seed++))), "ok");
    return buffers.back().pointer();
  }
  /// All operands after the run, the results among them.
  std::vector<std::vector<float>> contents() const {
    std::vector<std::vector<float>> all;
    for (const Buffer &buffer : buffers)
      all.push_back(*buffer.downloadFloats());
    return all;
  }
};

using Run = std::function<Status(Bench &, KernelProvider &)>;

std::vector<std::vector<float>> runWith(KernelProvider &kernels, uint32_t ranks, const Run &run, uint32_t nodes) {
  Bench bench;
  runtime::WorldOptions options;
  options.ranksPerNode = ranks / nodes;
  bench.world = *World::local(ranks, kernels.target(), options);
  EXPECT_EQ(messageOf(run(bench, kernels)), "ok");
  EXPECT_EQ(messageOf(bench.world->synchronize()), "ok");
  return bench.contents();
}

/// Builds the package, runs with it alone and with the compiler, and compares everything.
void expectSame(const std::string &op, const std::string &shape, uint32_t ranks, const Run &run,
                const char *target = "sim:sm_80", uint32_t nodes = 1) {
  SCOPED_TRACE(op + " " + shape);
  Expected<package::Package> built = buildFor(op, shape, target);
  ASSERT_EQ(messageOf(built.status()), "ok");
  auto packaged = package::PackageProvider::create({{"app.ditron", std::move(*built)}}, {.target = target});
  ASSERT_EQ(messageOf(packaged.status()), "ok");
  std::unique_ptr<jit::Jit> jit = *jit::Jit::create(target);
  const std::vector<std::vector<float>> expected = runWith(*jit, ranks, run, nodes),
                                        actual = runWith(**packaged, ranks, run, nodes);
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(actual, expected);
}

} // namespace

TEST(OperatorBuild, allGatherGemm) {
  for (const char *target : {"sim:sm_80", "sim:sm_90a"})
    expectSame(
        "ag_gemm", "m=100 n=48 k=64 ranks=3 tile=32x32x32 chunks=2", 3,
        [](Bench &bench, KernelProvider &kernels) -> Status {
          ops::AllGatherGemmOptions options = {.maxRows = 100, .depth = 64, .chunksPerRank = 2};
          options.tile = {.blockM = 32, .blockN = 32, .blockK = 32};
          DITRON_ASSIGN_OR_RETURN(ops::AllGatherGemm op, ops::AllGatherGemm::create(*bench.world, kernels, options));
          for (uint32_t r = 0; r < 3; ++r) {
            Rank &rank = bench.world->rank(r);
            const Pointer a = bench.random(r, DataType::BF16, 34 * 64), b = bench.random(r, DataType::BF16, 64 * 48),
                          c = bench.random(r, DataType::BF16, 100 * 48);
            DITRON_RETURN_IF_ERROR(op.enqueue(rank, rank.stream(), a, b, c, 100, 48));
          }
          return bench.world->synchronize();
        },
        target);
}

/// What a program asks for with everything that the options have is what was built.
TEST(OperatorBuild, narrowOperandsWithAnEpilogue) {
  const std::string epilogue =
      "dtype=fp8e4nv result_type=fp16 scales_a=vector scales_b=tensor bias=1 bias_type=fp32 tile=32x32x32";
  auto extras = [](Bench &bench, uint32_t rank) {
    return ops::EpilogueOperands{bench.random(rank, DataType::F32, 100), bench.random(rank, DataType::F32, 1),
                                 bench.random(rank, DataType::F32, 48)};
  };
  auto fill = [](auto &options) {
    options.dtype = DataType::F8E4NV;
    options.resultType = DataType::F16;
    options.epilogue = {ops::Scaling::Vector, ops::Scaling::Tensor, DataType::F32, ops::Activation::None};
    options.maxRows = 100;
    options.tile = {.blockM = 32, .blockN = 32, .blockK = 32};
  };
  auto enqueueAll = [&](Bench &bench, ops::PlannedProduct &op, int64_t size, const ops::RowStrides &strides) -> Status {
    for (uint32_t r = 0; r < 3; ++r) {
      Rank &rank = bench.world->rank(r);
      const Pointer a = bench.random(r, DataType::F8E4NV, 100 * 80), b = bench.random(r, DataType::F8E4NV, 64 * 80),
                    out = bench.random(r, DataType::F16, 100 * 48);
      DITRON_RETURN_IF_ERROR(op.enqueue(rank, rank.stream(), a, b, out, 100, size, extras(bench, r), strides));
    }
    return bench.world->synchronize();
  };
  for (const char *target : {"sim:sm_80", "sim:sm_90a"}) {
    expectSame(
        "ag_gemm",
        "m=100 n=48 k=64 ranks=3 weights=transposed activation=swiglu stride_a=80 stride_b=80 stride_c=40 " + epilogue,
        3,
        [&](Bench &bench, KernelProvider &kernels) -> Status {
          ops::AllGatherGemmOptions options;
          fill(options);
          options.depth = 64;
          options.weightOrder = ops::MatrixOrder::Transposed;
          options.epilogue.activation = ops::Activation::SwiGlu;
          DITRON_ASSIGN_OR_RETURN(ops::AllGatherGemm op, ops::AllGatherGemm::create(*bench.world, kernels, options));
          return enqueueAll(bench, op, 48, {80, 80, 40});
        },
        target);
    expectSame(
        "gemm_rs", "m=100 n=48 k=64 ranks=3 stride_a=80 " + epilogue, 3,
        [&](Bench &bench, KernelProvider &kernels) -> Status {
          ops::GemmReduceScatterOptions options;
          fill(options);
          options.columns = 48;
          DITRON_ASSIGN_OR_RETURN(ops::GemmReduceScatter op,
                                  ops::GemmReduceScatter::create(*bench.world, kernels, options));
          return enqueueAll(bench, op, 64, {80, 0, 0});
        },
        target);
  }
}

TEST(OperatorBuild, gemmReduceScatter) {
  expectSame("gemm_rs", "m=96 n=64 k=32 ranks=2 tile=32x32x32 dtype=fp16", 2,
             [](Bench &bench, KernelProvider &kernels) -> Status {
               ops::GemmReduceScatterOptions options = {.dtype = DataType::F16, .maxRows = 96, .columns = 64};
               options.tile = {.blockM = 32, .blockN = 32, .blockK = 32};
               DITRON_ASSIGN_OR_RETURN(ops::GemmReduceScatter op,
                                       ops::GemmReduceScatter::create(*bench.world, kernels, options));
               for (uint32_t r = 0; r < 2; ++r) {
                 Rank &rank = bench.world->rank(r);
                 const Pointer a = bench.random(r, DataType::F16, 96 * 32), b = bench.random(r, DataType::F16, 32 * 64),
                               out = bench.random(r, DataType::F16, 48 * 64);
                 DITRON_RETURN_IF_ERROR(op.enqueue(rank, rank.stream(), a, b, out, 96, 32));
               }
               return bench.world->synchronize();
             });
}

/// Kernels of a world of several nodes.
TEST(OperatorBuild, operatorsBetweenNodes) {
  for (const char *target : {"sim:sm_80", "sim:sm_90a"}) {
    expectSame(
        "ag_gemm", "m=101 n=40 k=48 ranks=4 nodes=2 tile=32x32x32 chunks=2", 4,
        [](Bench &bench, KernelProvider &kernels) -> Status {
          ops::AllGatherGemmOptions options = {.maxRows = 101, .depth = 48, .chunksPerRank = 2};
          options.tile = {.blockM = 32, .blockN = 32, .blockK = 32};
          DITRON_ASSIGN_OR_RETURN(ops::AllGatherGemm op, ops::AllGatherGemm::create(*bench.world, kernels, options));
          for (uint32_t r = 0; r < 4; ++r) {
            Rank &rank = bench.world->rank(r);
            const Pointer a = bench.random(r, DataType::BF16, 26 * 48), b = bench.random(r, DataType::BF16, 48 * 40),
                          c = bench.random(r, DataType::BF16, 101 * 40);
            DITRON_RETURN_IF_ERROR(op.enqueue(rank, rank.stream(), a, b, c, 101, 40));
          }
          return bench.world->synchronize();
        },
        target, 2);
    expectSame(
        "gemm_rs", "m=101 n=40 k=48 ranks=4 nodes=2 tile=32x32x32", 4,
        [](Bench &bench, KernelProvider &kernels) -> Status {
          ops::GemmReduceScatterOptions options = {.maxRows = 101, .columns = 40};
          options.tile = {.blockM = 32, .blockN = 32, .blockK = 32};
          DITRON_ASSIGN_OR_RETURN(ops::GemmReduceScatter op,
                                  ops::GemmReduceScatter::create(*bench.world, kernels, options));
          for (uint32_t r = 0; r < 4; ++r) {
            Rank &rank = bench.world->rank(r);
            const Pointer a = bench.random(r, DataType::BF16, 101 * 48), b = bench.random(r, DataType::BF16, 48 * 40),
                          out = bench.random(r, DataType::BF16, 26 * 40);
            DITRON_RETURN_IF_ERROR(op.enqueue(rank, rank.stream(), a, b, out, 101, 48));
          }
          return bench.world->synchronize();
        },
        target, 2);
  }
}

TEST(OperatorBuild, gemmAllReduce) {
  for (const char *target : {"sim:sm_80", "sim:sm_90a"})
    for (int64_t m : {7, 200})
      expectSame(
          "gemm_ar", "m=" + std::to_string(m) + " n=64 k=32 ranks=2 tile=32x32x32 dtype=fp16", 2,
          [m](Bench &bench, KernelProvider &kernels) -> Status {
            ops::GemmAllReduceOptions options = {.dtype = DataType::F16, .maxRows = m, .columns = 64};
            options.tile = {.blockM = 32, .blockN = 32, .blockK = 32};
            DITRON_ASSIGN_OR_RETURN(ops::GemmAllReduce op, ops::GemmAllReduce::create(*bench.world, kernels, options));
            for (uint32_t r = 0; r < 2; ++r) {
              Rank &rank = bench.world->rank(r);
              const Pointer a = bench.random(r, DataType::F16, m * 32), b = bench.random(r, DataType::F16, 32 * 64),
                            out = bench.random(r, DataType::F16, m * 64);
              DITRON_RETURN_IF_ERROR(op.enqueue(rank, rank.stream(), a, b, out, m, 32));
            }
            return bench.world->synchronize();
          },
          target);
}

TEST(OperatorBuild, collectives) {
  constexpr uint32_t ranks = 3;
  for (ops::CollectiveKind kind : ops::allCollectiveKinds())
    for (int64_t elements : {100, 40000}) { // by packets, by chunks
      ops::CollectiveOptions options;
      options.kind = kind;
      options.dtype = DataType::F16;
      options.maxElements = elements;
      std::string more;
      if (kind == ops::CollectiveKind::ReduceScatter) {
        options.reduction = ops::Reduction::Average;
        options.scale = 0.5f;
        more = " reduction=average scaled=1";
      } else if (kind == ops::CollectiveKind::Broadcast) {
        options.root = 1;
        more = " root=1";
      }
      expectSame(std::string(ops::toString(kind)),
                 fmt::format("elements={} ranks={} dtype=fp16{}", elements, ranks, more), ranks,
                 [&](Bench &bench, KernelProvider &kernels) -> Status {
                   DITRON_ASSIGN_OR_RETURN(ops::Collective op, ops::Collective::create(*bench.world, kernels, options));
                   for (uint32_t r = 0; r < ranks; ++r) {
                     const Pointer in = bench.random(r, DataType::F16, ranks * elements),
                                   out = bench.random(r, DataType::F16, ranks * elements);
                     Rank &rank = bench.world->rank(r);
                     DITRON_RETURN_IF_ERROR(op.enqueue(rank, rank.stream(), in, out, elements));
                   }
                   return bench.world->synchronize();
                 });
    }
}

TEST(OperatorBuild, transfersOfUnevenSizes) {
  constexpr uint32_t ranks = 3;
  expectSame(
      "all_to_all_v", "max_rows=3000 row_elements=2 ranks=3 dtype=fp16 packed=1", ranks,
      [](Bench &bench, KernelProvider &kernels) -> Status {
        DITRON_ASSIGN_OR_RETURN(
            ops::AllToAllV op,
            ops::AllToAllV::create(*bench.world, kernels,
                                   {.dtype = DataType::F16, .rowElements = 2, .maxRows = 3000, .packed = true}));
        std::vector<Buffer> words;
        for (uint32_t r = 0; r < ranks; ++r) {
          Rank &rank = bench.world->rank(r);
          // Nothing, a part that goes by packets, one that goes through rings.
          const std::vector<int64_t> sizes[] = {{0, 100, 3000}, {0, 0, 100}, {-1, -1, -1}, {-1, -1, -1}};
          std::array<Pointer, 4> addresses;
          for (size_t i = 0; i < addresses.size(); ++i) {
            words.push_back(*rank.allocate(DataType::I64, ranks, "sizes"));
            DITRON_RETURN_IF_ERROR(words.back().upload(sizes[i].data(), words.back().bytes()));
            addresses[i] = words.back().pointer();
          }
          const Pointer in = bench.random(r, DataType::F16, 2 * 3100), out = bench.random(r, DataType::F16, 2 * 9000);
          DITRON_RETURN_IF_ERROR(op.enqueue(
              rank, rank.stream(), {in, 3100, addresses[0], addresses[1], out, 9000, addresses[2], addresses[3]}));
        }
        DITRON_RETURN_IF_ERROR(bench.world->synchronize());
        std::vector<int64_t> received(ranks);
        DITRON_RETURN_IF_ERROR(words.back().download(received.data(), words.back().bytes()));
        EXPECT_EQ(received, (std::vector<int64_t>{0, 3000, 6000}));
        return op.check(bench.world->rank(0));
      });
  expectSame("send_receive", "ranks=3 dtype=fp16", ranks, [](Bench &bench, KernelProvider &kernels) -> Status {
    DITRON_ASSIGN_OR_RETURN(ops::SendReceive op,
                            ops::SendReceive::create(*bench.world, kernels, {.dtype = DataType::F16}));
    for (uint32_t r = 0; r < ranks; ++r) {
      const ops::SendReceive::Message send{(r + 1) % ranks, bench.random(r, DataType::F16, 5000), 4999},
          receive{(r + 2) % ranks, bench.random(r, DataType::F16, 5000), 4999};
      DITRON_RETURN_IF_ERROR(
          op.enqueue(bench.world->rank(r), bench.world->rank(r).stream(), {&send, 1}, {&receive, 1}));
    }
    DITRON_RETURN_IF_ERROR(bench.world->synchronize());
    return op.check(bench.world->rank(0));
  });
  expectSame("barrier", "ranks=3", ranks, [](Bench &bench, KernelProvider &kernels) -> Status {
    DITRON_ASSIGN_OR_RETURN(ops::Barrier op, ops::Barrier::create(*bench.world, kernels));
    for (uint32_t r = 0; r < ranks; ++r) {
      bench.random(r, DataType::F16, 16);
      DITRON_RETURN_IF_ERROR(op.enqueue(bench.world->rank(r), bench.world->rank(r).stream()));
    }
    return bench.world->synchronize();
  });
}

TEST(OperatorBuild, collectivesOfRealGpusHaveTheirPlans) {
  Expected<package::Package> built = buildFor("all_reduce", "elements=4096 ranks=2", "cuda:sm_90a");
  ASSERT_EQ(messageOf(built.status()), "ok");
  EXPECT_EQ(built->plans.at(0).plan, "lamport 64 4 -"); // not those of simulated GPUs, on which it is planned
  EXPECT_THAT(built->kernels.at(0).variants.at(0).codes.at(0).bytes, HasSubstr(".target sm_90a"));
}

TEST(OperatorBuild, operatorsOnOneGpu) {
  for (const char *target : {"sim:sm_80", "sim:sm_90a"})
    expectSame(
        "gemm", "m=128 n=96 k=64", 1,
        [](Bench &bench, KernelProvider &kernels) -> Status {
          const Pointer a = bench.random(0, DataType::BF16, 128 * 64), b = bench.random(0, DataType::BF16, 96 * 64),
                        c = bench.random(0, DataType::BF16, 128 * 96);
          DITRON_ASSIGN_OR_RETURN(
              const ops::PreparedCall call,
              ops::prepareGemm(kernels, bench.world->rank(0), {.m = 128, .n = 96, .k = 64}, a, b, c));
          return call.enqueue(bench.world->rank(0).stream());
        },
        target);
  expectSame(
      "attention", "heads=2 queries=64 head_dim=32 causal=1", 1, [](Bench &bench, KernelProvider &kernels) -> Status {
        Pointer p[4];
        for (Pointer &each : p)
          each = bench.random(0, DataType::BF16, 2 * 64 * 32);
        const ops::AttentionProblem problem = {
            .heads = 2, .kvHeads = 2, .queries = 64, .keys = 64, .headDim = 32, .causal = true};
        DITRON_ASSIGN_OR_RETURN(const ops::PreparedCall call, ops::prepareAttention(kernels, bench.world->rank(0),
                                                                                    problem, {p[0], p[1], p[2], p[3]}));
        return call.enqueue(bench.world->rank(0).stream());
      });
  for (const char *op : {"softmax", "rms_norm", "layer_norm"})
    expectSame(op, "rows=5 columns=100 dtype=fp32", 1, [op](Bench &bench, KernelProvider &kernels) -> Status {
      Pointer p[4];
      for (Pointer &each : p)
        each = bench.random(0, DataType::F32, 500);
      const ops::RowProblem problem = {.rows = 5, .columns = 100, .dtype = DataType::F32};
      Rank &rank = bench.world->rank(0);
      DITRON_ASSIGN_OR_RETURN(const ops::PreparedCall call,
                              op[0] == 's'   ? ops::prepareSoftmax(kernels, rank, problem, p[0], p[1])
                              : op[0] == 'r' ? ops::prepareRmsNorm(kernels, rank, problem, p[0], p[1], p[2])
                                             : ops::prepareLayerNorm(kernels, rank, problem, p[0], p[1], p[2], p[3]));
      return call.enqueue(rank.stream());
    });
}

TEST(OperatorBuild, realGpusNeedNone) {
  Expected<package::Package> built =
      buildFor("ag_gemm", "m=1024 n=1024 k=1024 ranks=4 tile=128x128x64 warps=8", "cuda:sm_90a");
  ASSERT_EQ(messageOf(built.status()), "ok");
  ASSERT_EQ(built->kernels.size(), 2u); // enter and the product
  for (const package::Kernel &kernel : built->kernels) {
    EXPECT_EQ(kernel.source.name, "ditron:tensor_parallel_gemm");
    for (const package::Variant &variant : kernel.variants)
      EXPECT_THAT(variant.codes.at(0).bytes, HasSubstr(".target sm_90a"));
  }
  ASSERT_EQ(built->plans.size(), 1u);
  EXPECT_EQ(built->plans[0].plan, "overlapped 128x128x64 warps 8 stages 3 group 8 chunks 1");
  // The AllGather of up to 768 rows, which are unfused, of two calls at once.
  WorldOptions options;
  options.sms = 132;
  const std::unique_ptr<World> world = *World::forPlanning(4, "cuda:sm_90a", options);
  const std::unique_ptr<jit::Jit> jit = *jit::Jit::create("cuda:sm_90a");
  const ops::Collective gather = *ops::Collective::create(
      *world, *jit,
      {.kind = ops::CollectiveKind::AllGather, .maxElements = 768 / 4 * 1024, .concurrentCalls = 2, .gpu = "H100"});
  // The gathered rows; and twice, for even and odd calls, those of calls of up to 128 rows, which are one launch.
  EXPECT_EQ(built->plans[0].workspaceBytes, (1024u + 2 * 128) * 1024 * 2 + gather.workspaceBytes());
}

/// A package has the collective that the GPU asks for, not that of the simulated GPUs it is built with.
TEST(OperatorBuild, collectivesInsideOperatorsAreThoseOfTheGpu) {
  for (const auto &[op, unfused] :
       {std::pair("ag_gemm", "unfused=1"), std::pair("gemm_rs", "unfused=1"), std::pair("gemm_ar", "form=unfused")}) {
    Expected<package::Package> built =
        buildFor(op, fmt::format("m=512 n=64 k=64 ranks=4 dtype=fp32 gpu=H200 {}", unfused), "cuda:sm_90a");
    ASSERT_EQ(messageOf(built.status()), "ok") << op;
    // Of up to half of its multiprocessors; simulated GPUs have blocks of 4 warps.
    EXPECT_THAT(built->plans.at(0).plan, testing::ContainsRegex("lamport 6[46] 16")) << op;
  }
}

TEST(OperatorBuild, aShapeThatWasNotBuiltIsAnErrorWithACommand) {
  auto packaged =
      package::PackageProvider::create({{"app.ditron", *buildFor("softmax", "rows=5 columns=100 dtype=fp32")}}, {});
  ASSERT_TRUE(packaged.isOk());
  std::unique_ptr<World> world = *World::local(1, "sim");
  Buffer x = *world->rank(0).allocate(DataType::F32, 5000, "x");
  const ops::RowProblem problem = {.rows = 5, .columns = 1000, .dtype = DataType::F32};
  EXPECT_THAT(messageOf(ops::prepareSoftmax(**packaged, world->rank(0), problem, x.pointer(), x.pointer()).status()),
              testing::AllOf(HasSubstr("num_warps is 1, wanted 2"),
                             HasSubstr("ditron build 'ditron:row_wise:softmax' --signature")));
}

TEST(OperatorBuild, wrongShapesNameWhatIsAccepted) {
  EXPECT_THAT(errorOf("ag_gem", "m=1"), HasSubstr("unknown operator 'ag_gem'; did you mean 'ag_gemm'"));
  EXPECT_THAT(errorOf("gemm", "m=64 n=64"), HasSubstr("gemm m=64 n=64: 'k' is missing"));
  EXPECT_THAT(errorOf("gemm", "m=64 n=64 k=64 rank=2"), HasSubstr("'rank' is no name of this operator's shape"));
  EXPECT_THAT(errorOf("gemm", "m=64 n=64 k=-1"), HasSubstr("k=-1: accepted are integers from 1"));
  EXPECT_THAT(errorOf("gemm", "m=64 m=64"), HasSubstr("'m' is given twice"));
  EXPECT_THAT(errorOf("gemm", "64x64"), HasSubstr("'64x64' is no NAME=VALUE"));
  EXPECT_THAT(errorOf("softmax", "rows=4 columns=70000"), HasSubstr("65536"));
  EXPECT_THAT(errorOf("ag_gemm", "m=64 n=64 k=64 ranks=2 weights=upside"),
              HasSubstr("accepted are plain and transposed"));
  EXPECT_THAT(errorOf("ag_gemm", "m=64 n=64 k=64 ranks=2 tile=33x32x32"), HasSubstr("33"));
  EXPECT_THAT(errorOf("gemm_ar", "m=64 n=64 k=64 ranks=2 form=three"),
              HasSubstr("auto, one_shot, fused_two_shot, two_shot, pushed and unfused"));
  EXPECT_THAT(errorOf("all_reduce", "elements=64 ranks=2 reduction=product"),
              HasSubstr("reduction 'product'; sum, max, min and average are accepted"));
  EXPECT_THAT(errorOf("all_gather", "elements=64 ranks=2 reduction=sum"), HasSubstr("'reduction' is no name"));
  EXPECT_THAT(errorOf("broadcast", "elements=64 ranks=2 root=2"), HasSubstr("root 2 of 2 ranks; 0 to 1 is accepted"));
  EXPECT_THAT(errorOf("all_to_all_v", "ranks=2"), HasSubstr("'max_rows' is missing"));
  EXPECT_THAT(errorOf("barrier", "ranks=2 elements=4"), HasSubstr("'elements' is no name"));
}
