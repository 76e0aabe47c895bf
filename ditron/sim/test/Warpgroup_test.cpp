//===- Warpgroup_test.cpp - Warpgroup matrix multiply, alone and in GEMM pipelines --------------------------------===//

#include "ditron/sim/hopper/MatrixDescriptor.h"
#include "ditron/sim/memory/Atomics.h"
#include "ditron/sim/test/Harness.h"

#include <cmath>
#include <cstring>
#include <random>

namespace ditron::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

//===- One multiply against a plain loop --------------------------------------------------------------------------===//

struct Case {
  uint32_t type, n, kSteps, swizzle;
  bool aMn, bMn, aRegisters, scaleD;
};

/// Bytes of an operand and how its descriptor sees them. Places are computed here by the formulas of the PTX manual per
/// element, independently of the engine's gather.
struct Operand {
  std::vector<double> value; ///< rows x k
  std::vector<uint8_t> bytes;
  uint64_t descriptor = 0;
  uint32_t step = 0;
};

uint32_t bytesOf(uint32_t type) {
  return type == DITRON_SIM_TF32 ? 4 : type == DITRON_SIM_F16 || type == DITRON_SIM_BF16 ? 2 : 1;
}

/// A random pattern of the type and the number that it stands for.
uint32_t randomElement(uint32_t type, std::mt19937 &random, double &value) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  switch (type) {
  case DITRON_SIM_F16: {
    uint16_t bits = floatToHalf(uniform(random));
    value = halfToFloat(bits);
    return bits;
  }
  case DITRON_SIM_BF16: {
    uint16_t bits = floatToBfloat(uniform(random));
    value = bfloatToFloat(bits);
    return bits;
  }
  case DITRON_SIM_I8: {
    auto byte = static_cast<int8_t>(random());
    value = byte;
    return static_cast<uint8_t>(byte);
  }
  case DITRON_SIM_E4M3:
  case DITRON_SIM_E5M2: {
    const uint32_t fraction = type == DITRON_SIM_E4M3 ? 3 : 2, bias = type == DITRON_SIM_E4M3 ? 7 : 15;
    uint32_t bits = random() & 0xff;
    if ((bits & 0x7f) >= (type == DITRON_SIM_E4M3 ? 0x7fu : 0x7cu))
      bits &= 0x83; // no NaN, no infinity
    const int exponent = static_cast<int>((bits & 0x7f) >> fraction);
    const double mantissa = (bits & ((1u << fraction) - 1)) / static_cast<double>(1u << fraction);
    value = exponent ? std::ldexp(1 + mantissa, exponent - static_cast<int>(bias))
                     : std::ldexp(mantissa, 1 - static_cast<int>(bias));
    if (bits & 0x80)
      value = -value;
    return bits;
  }
  default: {
    float number = uniform(random);
    uint32_t bits;
    std::memcpy(&bits, &number, 4);
    bits &= ~0x1fffu; // a tf32 number
    std::memcpy(&number, &bits, 4);
    value = number;
    return bits;
  }
  }
}

Operand makeOperand(const Case &c, uint32_t rows, bool mn, uint32_t start, std::mt19937 &random) {
  const uint32_t width = bytesOf(c.type), perStep = 32 / width, k = perStep * c.kSteps;
  Operand operand;
  operand.value.resize(static_cast<size_t>(rows) * k);
  operand.bytes.assign(static_cast<size_t>(rows + 64) * k * width + 8192, 0xff);
  uint32_t leading = 0, stride = 0;
  // K-major: step after step inside the swizzle row. MN-major: 16 columns of k per step.
  if (!mn && c.swizzle) {
    stride = 8 * c.swizzle;
    operand.step = 32;
  } else if (!mn) {
    leading = rows * 16; // chunk columns one after the other, groups of 8 rows within
    stride = 128;
    operand.step = 2 * leading;
  } else if (c.swizzle) {
    stride = 8 * c.swizzle;  // from 8 k to the next 8
    leading = k * c.swizzle; // from a panel of swizzle bytes of rows to the next
    operand.step = 2 * stride;
  } else {
    leading = rows / 8 * 128; // from 8 k to the next 8
    stride = 128;             // from 8 rows to the next 8
    operand.step = 2 * leading;
  }
  operand.descriptor = encodeDescriptor(start, leading, stride, c.swizzle);
  for (uint32_t i = 0; i < rows; ++i)
    for (uint32_t l = 0; l < k; ++l) {
      const uint32_t bits = randomElement(c.type, random, operand.value[i * k + l]);
      uint32_t at;
      if (!mn && c.swizzle) {
        at = i * c.swizzle + l * width;
      } else if (!mn) {
        const uint32_t byte = l * width;
        at = byte / 16 * rows * 16 + i * 16 + byte % 16;
      } else if (c.swizzle) {
        const uint32_t panelRows = c.swizzle / 2;
        at = i / panelRows * k * c.swizzle + l * c.swizzle + i % panelRows * 2;
      } else {
        at = l / 8 * rows * 16 + i / 8 * 128 + l % 8 * 16 + i % 8 * 2;
      }
      at += start; // the XOR is on addresses
      const uint32_t mask = c.swizzle == 128 ? 7 : c.swizzle == 64 ? 3 : c.swizzle == 32 ? 1 : 0;
      at = (at ^ ((at >> 7 & mask) << 4)) - start;
      std::memcpy(operand.bytes.data() + at, &bits, width);
    }
  return operand;
}

struct Problem {
  Case c;
  Operand a, b;
  std::vector<float> cFloat;
  std::vector<int32_t> cInt;
};
Problem *current = nullptr;
constexpr uint32_t bStart = 96 * 1024;

void multiplyKernel(void **) {
  DitronSimThread *self = ditron_sim_self();
  const Problem &p = *current;
  const Case &c = p.c;
  const uint32_t width = bytesOf(c.type), perWord = 4 / width;
  // All threads write the operands by ordinary stores.
  for (uint32_t i = self->threadId * 16; i < std::max(p.a.bytes.size(), p.b.bytes.size()); i += 16 * self->numThreads)
    for (uint32_t which = 0; which < 2; ++which) {
      const std::vector<uint8_t> &bytes = which ? p.b.bytes : p.a.bytes;
      char *target = self->sharedMemory + (which ? bStart : 0) + i;
      if (i + 16 > bytes.size())
        continue;
      ditron_sim_access(self, target, 16, 1, DITRON_SIM_STORE, DITRON_SIM_SHARED, AT(1));
      std::memcpy(target, bytes.data() + i, 16);
    }
  ditron_sim_fence_async(self, AT(2));
  ditron_sim_barrier(self, AT(3));
  // A's registers: word w of step s holds row g + 8 * (w & 1), columns P * (t + 4 * (w >> 1)).
  const uint32_t row0 = self->warpId % 4 * 16 + self->laneId / 4, t = self->laneId % 4;
  std::vector<uint32_t> aWords(4 * c.kSteps);
  if (c.aRegisters)
    for (uint32_t s = 0; s < c.kSteps; ++s)
      for (uint32_t w = 0; w < 4; ++w)
        for (uint32_t e = 0; e < perWord; ++e) {
          const uint32_t row = row0 + 8 * (w & 1), column = s * 8 * perWord + perWord * (t + 4 * (w >> 1)) + e;
          // Registers are taken from a K-major image without swizzle.
          uint32_t bits = 0;
          const uint32_t byte = column * width;
          std::memcpy(&bits, p.a.bytes.data() + byte / 16 * 64 * 16 + row * 16 + byte % 16, width);
          aWords[4 * s + w] |= bits << (8 * width * e % 32);
        }
  std::vector<uint32_t> registers(c.n / 2);
  auto place = [&](uint32_t r) { return (row0 + 8 * (r >> 1 & 1)) * c.n + r / 4 * 8 + 2 * t + (r & 1); };
  Problem &out = *current;
  for (uint32_t r = 0; r < c.n / 2; ++r)
    std::memcpy(&registers[r],
                c.type == DITRON_SIM_I8 ? static_cast<void *>(&out.cInt[place(r)]) : &out.cFloat[place(r)], 4);
  uint32_t flags = (c.scaleD ? DITRON_SIM_WGMMA_SCALE_D : 0) | (c.aMn ? DITRON_SIM_WGMMA_A_MN_MAJOR : 0) |
                   (c.bMn ? DITRON_SIM_WGMMA_B_MN_MAJOR : 0);
  ditron_sim_wgmma_fence(self, AT(4));
  ditron_sim_wgmma(self, c.type, c.n, c.kSteps, flags, c.aRegisters ? aWords.data() : nullptr, p.a.descriptor, p.a.step,
                   p.b.descriptor, p.b.step, registers.data(), AT(5));
  ditron_sim_wgmma_commit(self, AT(6));
  ditron_sim_wgmma_wait(self, 0, AT(7));
  for (uint32_t r = 0; r < c.n / 2; ++r)
    std::memcpy(c.type == DITRON_SIM_I8 ? static_cast<void *>(&out.cInt[place(r)]) : &out.cFloat[place(r)],
                &registers[r], 4);
}

/// A sum of fp8 products as Hopper's tensor cores add it: 32 products and the sum before, each cut 13 bits below the largest's first.
float addShort(float sum, const std::vector<double> &products) {
  for (size_t begin = 0; begin < products.size(); begin += 32) {
    std::vector<double> addends(products.begin() + begin, products.begin() + begin + 32);
    addends.push_back(sum);
    double largest = 0, total = 0;
    for (double addend : addends)
      largest = std::max(largest, std::abs(addend));
    const double unit = largest == 0 ? 1 : std::ldexp(1, std::ilogb(largest) - 13);
    for (double addend : addends)
      total += std::trunc(addend / unit) * unit;
    sum = static_cast<float>(total);
  }
  return sum;
}

void expectProduct(const Case &c) {
  std::mt19937 random(c.n + c.kSteps + c.swizzle);
  Problem problem{c, makeOperand(c, 64, c.aMn, 0, random), makeOperand(c, c.n, c.bMn, bStart, random), {}, {}};
  for (uint32_t i = 0; i < 64 * c.n; ++i) {
    problem.cFloat.push_back(static_cast<float>(i % 17) - 8);
    problem.cInt.push_back(static_cast<int32_t>(i % 1000));
  }
  const uint32_t k = 32 / bytesOf(c.type) * c.kSteps;
  Problem expected = problem;
  for (uint32_t i = 0; i < 64; ++i)
    for (uint32_t j = 0; j < c.n; ++j) {
      float sum = c.scaleD ? problem.cFloat[i * c.n + j] : 0;
      int32_t sumInt = c.scaleD ? problem.cInt[i * c.n + j] : 0;
      std::vector<double> products;
      for (uint32_t l = 0; l < k; ++l) {
        const double x = problem.a.value[i * k + l], y = problem.b.value[j * k + l];
        sum = std::fma(static_cast<float>(x), static_cast<float>(y), sum);
        sumInt += static_cast<int32_t>(x * y);
        products.push_back(x * y);
      }
      if (c.type == DITRON_SIM_E4M3 || c.type == DITRON_SIM_E5M2)
        sum = addShort(c.scaleD ? problem.cFloat[i * c.n + j] : 0, products);
      (c.type == DITRON_SIM_I8 ? void(expected.cInt[i * c.n + j] = sumInt) : void(expected.cFloat[i * c.n + j] = sum));
    }
  auto machine = makeMachine(MachineOptions::sm90());
  current = &problem;
  ASSERT_OK(runOnce(*machine, kernel("wgmma", multiplyKernel, {1, 1, 1}, 128, 227 * 1024)));
  EXPECT_EQ(machine->counters().wgmmaFlops, 2ull * 64 * c.n * k);
  if (c.type == DITRON_SIM_I8)
    ASSERT_EQ(problem.cInt, expected.cInt);
  else
    ASSERT_EQ(problem.cFloat, expected.cFloat);
}

TEST(Warpgroup, EqualsAPlainLoopForEveryTypeLayoutAndSize) {
  for (uint32_t type :
       {DITRON_SIM_F16, DITRON_SIM_BF16, DITRON_SIM_TF32, DITRON_SIM_I8, DITRON_SIM_E4M3, DITRON_SIM_E5M2})
    for (uint32_t swizzle : {0u, 32u, 64u, 128u})
      for (uint32_t n : {8u, 16u, 128u, 256u})
        for (uint32_t variant = 0; variant < 4; ++variant) {
          const bool aMn = variant & 1, bMn = variant & 2;
          if (variant && bytesOf(type) != 2)
            continue;
          // An MN-major panel has swizzle / 2 rows: B must fill it.
          if (bMn && swizzle && n % (swizzle / 2))
            continue;
          const uint32_t steps = swizzle ? swizzle / 32 : 3;
          SCOPED_TRACE(testing::Message()
                       << "type " << type << " swizzle " << swizzle << " n " << n << " variant " << variant);
          expectProduct({type, n, steps, swizzle, aMn, bMn, false, n != 16});
          if (testing::Test::HasFatalFailure())
            return;
        }
}

TEST(Warpgroup, TakesAFromRegisters) {
  for (uint32_t type : {DITRON_SIM_F16, DITRON_SIM_BF16, DITRON_SIM_TF32, DITRON_SIM_I8, DITRON_SIM_E4M3})
    for (uint32_t n : {24u, 64u})
      expectProduct({type, n, 2, 0, false, false, true, true});
}

//===- Results in flight ------------------------------------------------------------------------------------------===//

// B is the 16 x 8 matrix of ones, A all ones: every element grows by 16 per multiply.
void onesKernel(DitronSimThread *self) {
  for (uint32_t i = self->threadId * 16; i < 4096; i += 16 * self->numThreads) {
    ditron_sim_access(self, self->sharedMemory + i, 16, 1, DITRON_SIM_STORE, DITRON_SIM_SHARED, AT(1));
    for (uint32_t e = 0; e < 8; ++e)
      reinterpret_cast<uint16_t *>(self->sharedMemory + i)[e] = 0x3c00;
  }
  ditron_sim_fence_async(self, AT(2));
  ditron_sim_barrier(self, AT(3));
  ditron_sim_wgmma_fence(self, AT(4));
}

void multiplyOnes(DitronSimThread *self, float *c, uint32_t flags = DITRON_SIM_WGMMA_SCALE_D) {
  ditron_sim_wgmma(self, DITRON_SIM_F16, 8, 1, flags, nullptr, encodeDescriptor(0, 1024, 128, 0), 0,
                   encodeDescriptor(0, 1024, 128, 0), 0, c, AT(5));
  ditron_sim_wgmma_commit(self, AT(6));
}

TEST(Warpgroup, CutsFp32OfSharedMemoryToTf32) {
  auto machine = makeMachine(MachineOptions::sm90());
  auto *out = makeBuffer<float>(*machine, 0, 128, "out");
  auto entry = [](void **arguments) {
    DitronSimThread *self = ditron_sim_self();
    for (uint32_t i = self->threadId * 16; i < 4096; i += 16 * self->numThreads) {
      ditron_sim_access(self, self->sharedMemory + i, 16, 1, DITRON_SIM_STORE, DITRON_SIM_SHARED, AT(1));
      for (uint32_t e = 0; e < 4; ++e)
        reinterpret_cast<uint32_t *>(self->sharedMemory + i)[e] = 0x3f801fff; // almost 1 + 2^-10
    }
    ditron_sim_fence_async(self, AT(2));
    ditron_sim_barrier(self, AT(3));
    ditron_sim_wgmma_fence(self, AT(4));
    float c[4] = {};
    ditron_sim_wgmma(self, DITRON_SIM_TF32, 8, 1, DITRON_SIM_WGMMA_SCALE_D, nullptr, encodeDescriptor(0, 1024, 128, 0),
                     0, encodeDescriptor(0, 1024, 128, 0), 0, c, AT(5));
    ditron_sim_wgmma_commit(self, AT(6));
    ditron_sim_wgmma_wait(self, 0, AT(7));
    argument<float *>(arguments, 0)[self->threadId] = c[3];
  };
  ASSERT_OK(runOnce(*machine, kernel("cut", entry, {1, 1, 1}, 128, 8192, out)));
  for (uint32_t t = 0; t < 128; ++t)
    EXPECT_EQ(out[t], 8);
}

TEST(Warpgroup, ResultsAppearWithTheWaitAndTravelAsValues) {
  auto machine = makeMachine(MachineOptions::sm90());
  auto *out = makeBuffer<float>(*machine, 0, 5 * 128, "out");
  auto entry = [](void **arguments) {
    DitronSimThread *self = ditron_sim_self();
    float *out = argument<float *>(arguments, 0) + self->threadId;
    onesKernel(self);
    float first[4] = {1, 1, 1, 1}, other[4] = {5, 5, 5, 5}, copy[4];
    multiplyOnes(self, first);
    out[0] = first[2] + 1; // too early: a NaN
    std::memcpy(copy, first, 16);
    multiplyOnes(self, copy); // continues the same accumulation
    multiplyOnes(self, other, 0);
    ditron_sim_wgmma_wait(self, 1, AT(7));
    out[128] = copy[3];
    out[256] = other[1];
    float late[8] = {first[0], first[1], first[2], first[3], other[0], other[1], other[2], other[3]};
    ditron_sim_wgmma_wait(self, 0, AT(8));
    ditron_sim_wgmma_result(self, late, 8, AT(9));
    out[384] = late[1];
    out[512] = late[7] + other[2];
  };
  ASSERT_OK(runOnce(*machine, kernel("ones", entry, {1, 1, 1}, 128, 8192, out)));
  for (uint32_t t = 0; t < 128; ++t) {
    EXPECT_TRUE(std::isnan(out[t]));
    EXPECT_EQ(out[128 + t], 33);
    EXPECT_TRUE(std::isnan(out[256 + t]));
    EXPECT_EQ(out[384 + t], 33);
    EXPECT_EQ(out[512 + t], 32);
  }
}

Status runOnes(KernelEntry entry, uint32_t threads = 128) {
  auto machine = makeMachine(MachineOptions::sm90());
  return runOnce(*machine, kernel("ones", entry, {1, 1, 1}, threads, 8192));
}

TEST(Warpgroup, RefusesMisuse) {
  EXPECT_THAT(runOnes([](void **) {
                DitronSimThread *self = ditron_sim_self();
                float c[4] = {};
                onesKernel(self);
                multiplyOnes(self, c);
                ditron_sim_wgmma_wait(self, 0, AT(7));
                multiplyOnes(self, c);
              }).message(),
              HasSubstr("new registers without wgmma_fence since the start or the last wait"));
  EXPECT_THAT(runOnes([](void **) {
                DitronSimThread *self = ditron_sim_self();
                float c[4] = {};
                onesKernel(self);
                if (self->threadId != 77)
                  multiplyOnes(self, c);
              }).message(),
              HasSubstr("thread 77"));
  EXPECT_THAT(runOnes(
                  [](void **) {
                    DitronSimThread *self = ditron_sim_self();
                    float c[4] = {};
                    onesKernel(self);
                    multiplyOnes(self, c);
                  },
                  96)
                  .message(),
              HasSubstr("needs four full warps"));
  EXPECT_THAT(runOnes([](void **) {
                DitronSimThread *self = ditron_sim_self();
                float c[4] = {};
                onesKernel(self);
                multiplyOnes(self, c, self->warpId == 2 ? 0 : DITRON_SIM_WGMMA_SCALE_D);
              }).message(),
              HasSubstr("threads of warpgroup 0 meet at different multiplies"));
  EXPECT_THAT(
      runOnes([](void **) {
        DitronSimThread *self = ditron_sim_self();
        float c[4] = {};
        onesKernel(self);
        ditron_sim_wgmma(self, DITRON_SIM_F16, 8, 1, 0, nullptr, encodeDescriptor(128, 0, 1024, 128), 0,
                         encodeDescriptor(0, 0, 1024, 128), 0, c, AT(5));
      }).message(),
      HasSubstr("descriptor of A: start address 128 does not begin at a row 0 of its 128-byte swizzle pattern"));
  EXPECT_THAT(runOnes([](void **) {
                DitronSimThread *self = ditron_sim_self();
                float c[4] = {};
                onesKernel(self);
                ditron_sim_wgmma(self, DITRON_SIM_F16, 8, 1, 0, nullptr, encodeDescriptor(7168, 0, 1024, 128), 0,
                                 encodeDescriptor(0, 0, 1024, 128), 0, c, AT(5));
              }).message(),
              HasSubstr("operand A reaches to shared offset"));
  EXPECT_THAT(runOnes([](void **) {
                DitronSimThread *self = ditron_sim_self();
                float c[6] = {};
                onesKernel(self);
                ditron_sim_wgmma(self, DITRON_SIM_F16, 12, 1, 0, nullptr, 0, 0, 0, 0, c, AT(5));
              }).message(),
              HasSubstr("n is 12; accepted is a multiple of 8"));
  Status status = runOnes([](void **) {
    DitronSimThread *self = ditron_sim_self();
    float c[4] = {};
    onesKernel(self);
    if (self->threadId == 0)
      ditron_sim_barrier(self, AT(50));
    else
      multiplyOnes(self, c);
  });
  EXPECT_EQ(status.code(), StatusCode::Deadlock);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("thread 0 waits at the block barrier kernel.py:50:5"),
                    HasSubstr("threads 1..127 wait at the warpgroup matrix multiply kernel.py:5:5 (127 "
                              "of 128 threads have arrived)")));
}

//===- GEMM pipelines ---------------------------------------------------------------------------------------------===//

// C[M][N] = A[M][K] * B[N][K]^T, bf16 with fp32 results, tiles of 128 x 128 x 64, a ring of slots.
constexpr uint32_t tileM = 128, tileN = 128, tileK = 64, stages = 3;
constexpr uint32_t aBytes = tileM * tileK * 2, bBytes = tileN * tileK * 2, stageBytes = aBytes + bBytes;
constexpr uint32_t barOffset = stages * stageBytes;

struct GemmSize {
  uint32_t m, n, k;
};

void issueLoads(DitronSimThread *self, void **arguments, uint32_t step, bool predicate) {
  const uint32_t slot = step % stages;
  char *stage = self->sharedMemory + slot * stageBytes, *full = self->sharedMemory + barOffset + 8 * slot;
  const int32_t aAt[2] = {static_cast<int32_t>(step * tileK), static_cast<int32_t>(self->blockId[0] * tileM)};
  const int32_t bAt[2] = {static_cast<int32_t>(step * tileK), static_cast<int32_t>(self->blockId[1] * tileN)};
  ditron_sim_mbarrier_expect_tx(self, full, stageBytes, predicate, AT(60));
  ditron_sim_tma_load(self, static_cast<DitronSimTensorMap *>(arguments[0]), 2, aAt, stage, full, predicate, AT(61));
  ditron_sim_tma_load(self, static_cast<DitronSimTensorMap *>(arguments[1]), 2, bAt, stage + aBytes, full, predicate,
                      AT(62));
}

void multiplyStage(DitronSimThread *self, uint32_t slot, uint32_t row64, float *c) {
  const uint32_t stage = slot * stageBytes;
  ditron_sim_wgmma(self, DITRON_SIM_BF16, tileN, tileK / 16, DITRON_SIM_WGMMA_SCALE_D, nullptr,
                   encodeDescriptor(stage + row64 * 64 * 128, 0, 1024, 128), 32,
                   encodeDescriptor(stage + aBytes, 0, 1024, 128), 32, c, AT(63));
  ditron_sim_wgmma_commit(self, AT(64));
}

void storeTile(DitronSimThread *self, float *out, GemmSize size, uint32_t row64, const float *c) {
  for (uint32_t r = 0; r < tileN / 2; ++r) {
    const uint32_t row =
        self->blockId[0] * tileM + row64 * 64 + self->warpId % 4 * 16 + self->laneId / 4 + 8 * (r >> 1 & 1);
    const uint32_t column = self->blockId[1] * tileN + r / 4 * 8 + self->laneId % 4 * 2 + (r & 1);
    if (row < size.m && column < size.n)
      out[row * size.n + column] = c[r];
  }
}

// Every thread consumes, thread 0 also issues: two warpgroups, one multiply in flight.
void pipelineKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  const auto size = argument<GemmSize>(arguments, 3);
  const uint32_t steps = (size.k + tileK - 1) / tileK, group = self->threadId / 128;
  if (self->threadId == 0)
    for (uint32_t s = 0; s < stages; ++s)
      ditron_sim_mbarrier_init(self, self->sharedMemory + barOffset + 8 * s, 1, AT(59));
  ditron_sim_fence_async(self, AT(59));
  ditron_sim_barrier(self, AT(59));
  for (uint32_t s = 0; s + 1 < stages && s < steps; ++s)
    issueLoads(self, arguments, s, self->threadId == 0);
  float c[tileN / 2] = {};
  ditron_sim_wgmma_fence(self, AT(65));
  for (uint32_t s = 0; s < steps; ++s) {
    ditron_sim_mbarrier_wait(self, self->sharedMemory + barOffset + 8 * (s % stages), s / stages & 1, AT(66));
    multiplyStage(self, s % stages, group, c);
    ditron_sim_wgmma_wait(self, 1, AT(67)); // the multiply before this one is done: its slot is free
    ditron_sim_barrier(self, AT(68));
    issueLoads(self, arguments, s + stages - 1, self->threadId == 0 && s + stages - 1 < steps);
  }
  ditron_sim_wgmma_wait(self, 0, AT(69));
  storeTile(self, argument<float *>(arguments, 2), size, group, c);
}

// Warpgroup 2 produces with one thread; warpgroups 0 and 1 consume and give slots back through a second mbarrier.
void specialisedKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  const auto size = argument<GemmSize>(arguments, 3);
  const uint32_t steps = (size.k + tileK - 1) / tileK, group = self->threadId / 128;
  char *empty = self->sharedMemory + barOffset + 64;
  if (self->threadId == 0)
    for (uint32_t s = 0; s < stages; ++s) {
      ditron_sim_mbarrier_init(self, self->sharedMemory + barOffset + 8 * s, 1, AT(59));
      ditron_sim_mbarrier_init(self, empty + 8 * s, 256, AT(59));
    }
  ditron_sim_fence_async(self, AT(59));
  ditron_sim_barrier(self, AT(59));
  if (group == 2) {
    ditron_sim_setmaxnreg(self, 40, 0, AT(70));
    if (self->threadId == 256)
      for (uint32_t s = 0; s < steps; ++s) {
        ditron_sim_mbarrier_wait(self, empty + 8 * (s % stages), (s / stages & 1) ^ 1, AT(71));
        issueLoads(self, arguments, s, true);
      }
    return;
  }
  ditron_sim_setmaxnreg(self, 232, 1, AT(72));
  float c[tileN / 2] = {};
  ditron_sim_wgmma_fence(self, AT(65));
  for (uint32_t s = 0; s < steps; ++s) {
    ditron_sim_mbarrier_wait(self, self->sharedMemory + barOffset + 8 * (s % stages), s / stages & 1, AT(73));
    multiplyStage(self, s % stages, group, c);
    ditron_sim_wgmma_wait(self, 1, AT(74));
    if (s > 0)
      ditron_sim_mbarrier_arrive(self, empty + 8 * ((s - 1) % stages), 1, 1, AT(75));
  }
  ditron_sim_wgmma_wait(self, 0, AT(76));
  ditron_sim_named_barrier(self, 1, 256, DITRON_SIM_BARRIER_SYNC, AT(77));
  storeTile(self, argument<float *>(arguments, 2), size, group, c);
}

// The refill comes before the multiply that reads the slot has been waited for.
void hastyKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  if (self->threadId == 0)
    ditron_sim_mbarrier_init(self, self->sharedMemory + barOffset, 1, AT(59));
  ditron_sim_barrier(self, AT(59));
  issueLoads(self, arguments, 0, self->threadId == 0);
  ditron_sim_mbarrier_wait(self, self->sharedMemory + barOffset, 0, AT(66));
  float c[tileN / 2] = {};
  ditron_sim_wgmma_fence(self, AT(65));
  multiplyStage(self, 0, self->threadId / 128, c);
  ditron_sim_barrier(self, AT(68));
  issueLoads(self, arguments, stages, self->threadId == 0);
}

struct Gemm {
  std::unique_ptr<Machine> machine;
  uint16_t *a, *b;
  float *c;
  GemmSize size;
  DitronSimTensorMap aMap, bMap;

  Gemm(GemmSize size, MachineOptions options) : machine(makeMachine(options)), size(size) {
    a = makeBuffer<uint16_t>(*machine, 0, size.m * size.k, "a");
    b = makeBuffer<uint16_t>(*machine, 0, size.n * size.k, "b");
    c = makeBuffer<float>(*machine, 0, size.m * size.n, "c");
    std::mt19937 random(5);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (uint32_t i = 0; i < size.m * size.k; ++i)
      a[i] = floatToBfloat(uniform(random));
    for (uint32_t i = 0; i < size.n * size.k; ++i)
      b[i] = floatToBfloat(uniform(random));
    auto map = [&](void *base, uint32_t rows, uint32_t boxRows) {
      const uint32_t dims[] = {size.k, rows}, box[] = {tileK, boxRows};
      const uint64_t strides[] = {size.k * 2};
      return *makeTensorMap(base, 2, dims, strides, box, 128);
    };
    aMap = map(a, size.m, tileM);
    bMap = map(b, size.n, tileN);
  }

  Status run(const char *name, KernelEntry entry, uint32_t threads) {
    return runOnce(*machine, kernel(name, entry, {(size.m + tileM - 1) / tileM, (size.n + tileN - 1) / tileN, 1},
                                    threads, barOffset + 128, aMap, bMap, c, size));
  }

  void expectResult() {
    for (uint32_t i = 0; i < size.m; ++i)
      for (uint32_t j = 0; j < size.n; ++j) {
        float sum = 0;
        for (uint32_t l = 0; l < size.k; ++l)
          sum = std::fma(bfloatToFloat(a[i * size.k + l]), bfloatToFloat(b[j * size.k + l]), sum);
        ASSERT_EQ(c[i * size.n + j], sum) << i << "," << j;
      }
  }
};

TEST(Gemm, PipelineEqualsAPlainLoop) {
  for (GemmSize size : {GemmSize{256, 256, 512}, GemmSize{200, 136, 328}, GemmSize{128, 128, 64}})
    for (bool checked : {true, false}) {
      MachineOptions options = MachineOptions::sm90();
      options.checkBounds = checked;
      Gemm gemm(size, options);
      ASSERT_OK(gemm.run("pipeline", pipelineKernel, 256));
      gemm.expectResult();
    }
}

TEST(Gemm, SpecialisedWarpsEqualAPlainLoop) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    MachineOptions options = MachineOptions::sm90();
    options.seed = seed;
    options.recordTrace = true;
    Gemm gemm({256, 200, 520}, options);
    ASSERT_OK(gemm.run("specialised", specialisedKernel, 384));
    gemm.expectResult();
    EXPECT_THAT(gemm.machine->chromeTrace(), AllOf(HasSubstr("wgmma"), HasSubstr("tensor cores")));
  }
}

TEST(Gemm, ARefillTooEarlyIsReportedWithBothLines) {
  Gemm gemm({128, 128, 256}, MachineOptions::sm90());
  Status status = gemm.run("hasty", hastyKernel, 256);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("kernel.py:61:5"), HasSubstr("tensor load: it overwrites shared offset 0"),
                    HasSubstr("the wgmma of kernel.py:63:5 may still be reading")));
}

TEST(Gemm, MultipliesAndCopiesOverlapInVirtualTime) {
  MachineOptions options = MachineOptions::sm90();
  options.jitter = 0;
  options.recordTrace = true;
  Gemm gemm({128, 128, 8192}, options);
  ASSERT_OK(gemm.run("pipeline", pipelineKernel, 256));
  const BlockRecord &record = gemm.machine->launches()[0].blocks[0];
  const double picoseconds = static_cast<double>(record.end - record.start);
  // 128 stages of 32 KiB: the transfers bound the time; latency of 600 ns is hidden except at the start.
  const double transfer = 128 * stageBytes / 36.4 * 1000;
  EXPECT_GT(picoseconds, transfer);
  EXPECT_LT(picoseconds, 1.3 * transfer);
}

} // namespace
} // namespace ditron::sim
