//===- Mma_test.cpp - Matrix multiply against a plain loop --------------------------------------------------------===//

#include "ditron/sim/memory/Atomics.h"
#include "ditron/sim/test/Harness.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

namespace ditron::sim {
namespace {

using testing::HasSubstr;

uint32_t elementsPerWord(uint32_t type) { return type == DITRON_SIM_I8 ? 4 : type == DITRON_SIM_TF32 ? 1 : 2; }

float roundToTf32(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  bits = (bits + 0x1000) & ~0x1fffu;
  std::memcpy(&value, &bits, 4);
  return value;
}

/// Matrices of operands as the numbers they stand for, plus the words of the fragments, by the closed formulas of the
/// PTX manual written out per element (not by the engine's gather).
struct MmaProblem {
  uint32_t type, mTiles, nTiles, kTiles;
  std::vector<double> a, b; // m x k, k x n
  std::vector<uint32_t> aWords[32], bWords[32];
  std::vector<float> cFloat;
  std::vector<int32_t> cInt;

  uint32_t m() const { return mTiles * 16; }
  uint32_t n() const { return nTiles * 8; }
  uint32_t k() const { return kTiles * 8 * elementsPerWord(type); }

  /// The element's bit pattern; `value` becomes what the multiplier sees.
  uint32_t encode(double &value) const {
    switch (type) {
    case DITRON_SIM_F16: {
      uint16_t bits = floatToHalf(static_cast<float>(value));
      value = halfToFloat(bits);
      return bits;
    }
    case DITRON_SIM_BF16: {
      uint16_t bits = floatToBfloat(static_cast<float>(value));
      value = bfloatToFloat(bits);
      return bits;
    }
    case DITRON_SIM_I8: {
      auto byte = static_cast<int8_t>(value * 100);
      value = byte;
      return static_cast<uint8_t>(byte);
    }
    default: {
      auto number = static_cast<float>(value);
      uint32_t bits;
      std::memcpy(&bits, &number, 4);
      value = roundToTf32(number);
      return bits;
    }
    }
  }

  MmaProblem(uint32_t type, uint32_t mTiles, uint32_t nTiles, uint32_t kTiles, unsigned seed)
      : type(type), mTiles(mTiles), nTiles(nTiles), kTiles(kTiles) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(-1, 1);
    const uint32_t p = elementsPerWord(type), width = 32 / p, kTile = 8 * p;
    a.resize(m() * k());
    b.resize(k() * n());
    for (auto *words : {aWords, bWords})
      for (uint32_t lane = 0; lane < 32; ++lane)
        words[lane].assign(words == aWords ? mTiles * kTiles * 4 : kTiles * nTiles * 2, 0);
    for (uint32_t i = 0; i < m(); ++i)
      for (uint32_t l = 0; l < k(); ++l) {
        double value = uniform(random);
        uint32_t bits = encode(value);
        a[i * k() + l] = value;
        uint32_t row = i % 16, col = l % kTile;
        uint32_t lane = (row % 8) * 4 + (col % (4 * p)) / p;
        uint32_t reg = (col % p) + p * (row / 8) + 2 * p * (col / (4 * p));
        aWords[lane][((i / 16) * kTiles + l / kTile) * 4 + reg / p] |= bits << (reg % p * width % 32);
      }
    for (uint32_t l = 0; l < k(); ++l)
      for (uint32_t j = 0; j < n(); ++j) {
        double value = uniform(random);
        uint32_t bits = encode(value);
        b[l * n() + j] = value;
        uint32_t row = l % kTile, col = j % 8;
        uint32_t lane = col * 4 + (row % (4 * p)) / p;
        uint32_t reg = (row % p) + p * (row / (4 * p));
        bWords[lane][((l / kTile) * nTiles + j / 8) * 2 + reg / p] |= bits << (reg % p * width % 32);
      }
    for (uint32_t i = 0; i < m() * n(); ++i) {
      cFloat.push_back(static_cast<float>(uniform(random)));
      cInt.push_back(static_cast<int32_t>(uniform(random) * 1000));
    }
  }
};

/// Where C's element lives: lane and index into the lane's registers.
std::pair<uint32_t, uint32_t> ownerOfC(const MmaProblem &problem, uint32_t i, uint32_t j) {
  uint32_t row = i % 16, col = j % 8;
  return {(row % 8) * 4 + col / 2, ((i / 16) * problem.nTiles + j / 8) * 4 + row / 8 * 2 + col % 2};
}

MmaProblem *current = nullptr;

void mmaKernel(void **) {
  DitronSimThread *self = ditron_sim_self();
  MmaProblem &p = *current;
  uint32_t registers[4 * 64];
  for (uint32_t i = 0; i < p.m(); ++i)
    for (uint32_t j = 0; j < p.n(); ++j)
      if (auto [lane, reg] = ownerOfC(p, i, j); lane == self->laneId)
        std::memcpy(&registers[reg],
                    p.type == DITRON_SIM_I8 ? static_cast<void *>(&p.cInt[i * p.n() + j]) : &p.cFloat[i * p.n() + j],
                    4);
  ditron_sim_mma(self, p.type, p.mTiles, p.nTiles, p.kTiles, p.aWords[self->laneId].data(),
                 p.bWords[self->laneId].data(), registers, AT(40));
  for (uint32_t i = 0; i < p.m(); ++i)
    for (uint32_t j = 0; j < p.n(); ++j)
      if (auto [lane, reg] = ownerOfC(p, i, j); lane == self->laneId)
        std::memcpy(p.type == DITRON_SIM_I8 ? static_cast<void *>(&p.cInt[i * p.n() + j]) : &p.cFloat[i * p.n() + j],
                    &registers[reg], 4);
}

TEST(Mma, EqualsAPlainLoopForEveryTypeAndTileCount) {
  const uint32_t shapes[][3] = {{1, 1, 1}, {1, 2, 1}, {2, 1, 3}, {3, 5, 2}, {4, 8, 4}, {1, 16, 1}, {2, 7, 1}};
  for (uint32_t type : {DITRON_SIM_F16, DITRON_SIM_BF16, DITRON_SIM_TF32, DITRON_SIM_I8})
    for (const auto &[m, n, k] : shapes) {
      MmaProblem problem(type, m, n, k, 17 * m + n + k);
      MmaProblem expected = problem;
      // Ascending k, one fused multiply-add each: the result is exact, not approximate.
      for (uint32_t i = 0; i < problem.m(); ++i)
        for (uint32_t j = 0; j < problem.n(); ++j)
          for (uint32_t l = 0; l < problem.k(); ++l) {
            float &c = expected.cFloat[i * problem.n() + j];
            double x = problem.a[i * problem.k() + l], y = problem.b[l * problem.n() + j];
            if (type == DITRON_SIM_I8)
              expected.cInt[i * problem.n() + j] += static_cast<int32_t>(x * y);
            else
              c = std::fma(static_cast<float>(x), static_cast<float>(y), c);
          }
      auto machine = makeMachine();
      current = &problem;
      ASSERT_OK(runOnce(*machine, kernel("mma", mmaKernel, {1, 1, 1}, 32, 0)));
      ASSERT_EQ(problem.cInt, expected.cInt) << "type " << type << " tiles " << m << "," << n << "," << k;
      ASSERT_EQ(problem.cFloat, expected.cFloat) << "type " << type << " tiles " << m << "," << n << "," << k;
      EXPECT_EQ(machine->counters().mmaFlops, 2ull * problem.m() * problem.n() * problem.k());
    }
}

TEST(Mma, NeedsAFullWarp) {
  auto machine = makeMachine();
  MmaProblem problem(DITRON_SIM_F16, 1, 1, 1, 1);
  current = &problem;
  Status status = runOnce(*machine, kernel("mma", mmaKernel, {1, 1, 1}, 16, 0));
  EXPECT_THAT(status.message(), HasSubstr("needs a full warp of 32 threads"));
}

TEST(FmaDot, EqualsAPlainLoop) {
  auto machine = makeMachine();
  auto *out = makeBuffer<double>(*machine, 0, 3, "out");
  auto entry = [](void **arguments) {
    DitronSimThread *self = ditron_sim_self();
    auto *out = argument<double *>(arguments, 0);
    float af[6] = {1, 2, 3, 4, 5, 6}, bf[12], cf[8] = {};
    double ad[6] = {1, 2, 3, 4, 5, 6}, bd[12], cd[8] = {};
    int32_t ai[6] = {1, 2, 3, 4, 5, 6}, bi[12], ci[8] = {};
    for (int i = 0; i < 12; ++i)
      bf[i] = bd[i] = bi[i] = i - 5;
    ditron_sim_fma_dot(self, DITRON_SIM_F32, 2, 4, 3, af, bf, cf, AT(41));
    ditron_sim_fma_dot(self, DITRON_SIM_F64, 2, 4, 3, ad, bd, cd, AT(41));
    ditron_sim_fma_dot(self, DITRON_SIM_I32, 2, 4, 3, ai, bi, ci, AT(41));
    // Row 1, column 2: 4 * (2-5) + 5 * (6-5) + 6 * (10-5) = 23.
    out[0] = cf[6];
    out[1] = cd[6];
    out[2] = ci[6];
  };
  ASSERT_OK(runOnce(*machine, kernel("dot", entry, {1, 1, 1}, 1, 0, out)));
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(out[i], 23);
}

} // namespace
} // namespace ditron::sim
