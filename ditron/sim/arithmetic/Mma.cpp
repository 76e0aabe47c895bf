//===- Mma.cpp - Matrix multiply of a warp ------------------------------------------------------------------------===//
//
// Three steps per call: words of A and B to dense panels (fp32, or int32 for 8-bit), C to a dense panel; the product; C
// back. The product and the widening of operands are compiled for several instruction sets and picked at load time.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/arithmetic/Mma.h"

#include "ditron/abi/Simulator.h"

#include <cmath>
#include <cstring>
#include <vector>

// One version per instruction set; the loader picks the best that the processor has.
#if defined(__x86_64__)
#define DITRON_SIM_VECTORISED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DITRON_SIM_VECTORISED
#endif

namespace ditron::sim {

namespace {

/// Sixteen lanes of arithmetic: one AVX-512 register, two of AVX2.
using Float16 = float __attribute__((vector_size(64)));
using Int16 = int32_t __attribute__((vector_size(64)));

/// Elements per 32-bit register word.
uint32_t packing(uint32_t type) {
  switch (type) {
  case DITRON_SIM_F16:
  case DITRON_SIM_BF16: return 2;
  case DITRON_SIM_I8:
  case DITRON_SIM_E4M3:
  case DITRON_SIM_E5M2: return 4;
  case DITRON_SIM_TF32: return 1;
  default: return 0;
  }
}

/// Columns of the panels are padded to whole vectors.
constexpr uint32_t vectorLanes = 16;
uint32_t paddedColumns(uint32_t nTiles) { return (nTiles * 8 + vectorLanes - 1) / vectorLanes * vectorLanes; }

struct Panels {
  Panel aWords, bWords, a, b, c;
};
thread_local Panels panels;

//===- Words to panels --------------------------------------------------------------------------------------------===//

/// Words of A into rows: row i of the result holds the words of matrix row i in ascending k.
void gatherA(const MmaCall &call, const MmaLane *lanes, uint32_t *words) {
  const uint32_t rowWords = call.kTiles * 8;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const auto *source = static_cast<const uint32_t *>(lanes[lane].a);
    uint32_t *row = words + (lane / 4) * rowWords + lane % 4;
    for (uint32_t mi = 0; mi < call.mTiles; ++mi, row += 16 * rowWords)
      for (uint32_t ki = 0; ki < call.kTiles; ++ki, source += 4) {
        uint32_t *target = row + ki * 8;
        target[0] = source[0];
        target[8 * rowWords] = source[1];
        target[4] = source[2];
        target[8 * rowWords + 4] = source[3];
      }
  }
}

/// Words of B into rows: row q of the result holds, for every column, the word of k = P * q .. P * q + P - 1.
void gatherB(const MmaCall &call, const MmaLane *lanes, uint32_t *words, uint32_t columns) {
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const auto *source = static_cast<const uint32_t *>(lanes[lane].b);
    uint32_t *column = words + (lane % 4) * columns + lane / 4;
    for (uint32_t ki = 0; ki < call.kTiles; ++ki, column += 8 * columns)
      for (uint32_t ni = 0; ni < call.nTiles; ++ni, source += 2) {
        column[ni * 8] = source[0];
        column[4 * columns + ni * 8] = source[1];
      }
  }
}

void gatherC(const MmaCall &call, const MmaLane *lanes, uint32_t *panel, uint32_t columns) {
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const auto *source = static_cast<const uint32_t *>(lanes[lane].c);
    uint32_t *corner = panel + (lane / 4) * columns + (lane % 4) * 2;
    for (uint32_t mi = 0; mi < call.mTiles; ++mi, corner += 16 * columns)
      for (uint32_t ni = 0; ni < call.nTiles; ++ni, source += 4) {
        std::memcpy(corner + ni * 8, source, 8);
        std::memcpy(corner + 8 * columns + ni * 8, source + 2, 8);
      }
  }
}

void scatterC(const MmaCall &call, const MmaLane *lanes, const uint32_t *panel, uint32_t columns) {
  for (uint32_t lane = 0; lane < 32; ++lane) {
    auto *target = static_cast<uint32_t *>(lanes[lane].c);
    const uint32_t *corner = panel + (lane / 4) * columns + (lane % 4) * 2;
    for (uint32_t mi = 0; mi < call.mTiles; ++mi, corner += 16 * columns)
      for (uint32_t ni = 0; ni < call.nTiles; ++ni, target += 4) {
        std::memcpy(target, corner + ni * 8, 8);
        std::memcpy(target + 2, corner + 8 * columns + ni * 8, 8);
      }
  }
}

//===- fp64 -------------------------------------------------------------------------------------------------------===//

/// m8n8k4: lane l holds A at (l / 4, l % 4), B at (l % 4, l / 4) and C at (l / 4, 2 * (l % 4)) and the column behind it.
void multiplyDoubleFragments(const MmaCall &call, const MmaLane *lanes) {
  for (uint32_t lane = 0; lane < 32; ++lane) {
    auto *c = static_cast<double *>(lanes[lane].c);
    for (uint32_t mi = 0; mi < call.mTiles; ++mi)
      for (uint32_t ni = 0; ni < call.nTiles; ++ni)
        for (uint32_t r = 0; r < 2; ++r) {
          double &sum = c[(mi * call.nTiles + ni) * 2 + r];
          for (uint32_t ki = 0; ki < call.kTiles; ++ki)
            for (uint32_t k = 0; k < 4; ++k) {
              const auto *a = static_cast<const double *>(lanes[lane / 4 * 4 + k].a);
              const auto *b = static_cast<const double *>(lanes[(2 * (lane % 4) + r) * 4 + k].b);
              sum = std::fma(a[mi * call.kTiles + ki], b[ki * call.nTiles + ni], sum);
            }
        }
  }
}

//===- fp8 --------------------------------------------------------------------------------------------------------===//

/// The number that a pattern of `exponentBits` and 7 - exponentBits fraction bits stands for.
float fp8ToFloat(uint32_t pattern, int exponentBits) {
  const int fractionBits = 7 - exponentBits, bias = (1 << (exponentBits - 1)) - 1;
  const int exponent = static_cast<int>(pattern >> fractionBits & ((1u << exponentBits) - 1));
  const int fraction = static_cast<int>(pattern & ((1u << fractionBits) - 1));
  const bool top = exponent == (1 << exponentBits) - 1;
  float value;
  if (exponentBits == 4 && (pattern & 0x7f) == 0x7f)
    value = __builtin_nanf("");
  else if (exponentBits == 5 && top)
    value = fraction ? __builtin_nanf("") : __builtin_inff();
  else if (exponent == 0)
    value = std::ldexp(static_cast<float>(fraction), 1 - bias - fractionBits);
  else
    value = std::ldexp(static_cast<float>(fraction + (1 << fractionBits)), exponent - bias - fractionBits);
  return pattern & 0x80 ? -value : value;
}

struct Fp8Tables {
  float e4m3[256], e5m2[256];
};

// Marked used: clang 22 forgets to emit what only the clones of a target_clones function reach.
__attribute__((used)) Fp8Tables makeFp8Tables() {
  Fp8Tables tables;
  for (uint32_t i = 0; i < 256; ++i) {
    tables.e4m3[i] = fp8ToFloat(i, 4);
    tables.e5m2[i] = fp8ToFloat(i, 5);
  }
  return tables;
}

const float *fp8Table(uint32_t type) {
  static const Fp8Tables tables = makeFp8Tables();
  return type == DITRON_SIM_E4M3 ? tables.e4m3 : tables.e5m2;
}

//===- Widening ---------------------------------------------------------------------------------------------------===//

/// tf32 keeps 10 fraction bits: to nearest, ties away from zero. Infinities and NaNs stay what they are.
inline uint32_t roundTf32(uint32_t bits) {
  bool special = (bits & 0x7f800000u) == 0x7f800000u;
  return special ? bits : (bits + 0x1000u) & ~0x1fffu;
}

/// A's words to one 32-bit value per element.
DITRON_SIM_VECTORISED void widenA(uint32_t type, const uint32_t *words, uint64_t count, void *panel) {
  switch (type) {
  case DITRON_SIM_BF16: {
    const auto *source = reinterpret_cast<const uint16_t *>(words);
    auto *target = static_cast<uint32_t *>(panel);
    for (uint64_t i = 0; i < count * 2; ++i)
      target[i] = static_cast<uint32_t>(source[i]) << 16;
    break;
  }
  case DITRON_SIM_F16: {
    const auto *source = reinterpret_cast<const _Float16 *>(words);
    auto *target = static_cast<float *>(panel);
    for (uint64_t i = 0; i < count * 2; ++i)
      target[i] = static_cast<float>(source[i]);
    break;
  }
  case DITRON_SIM_I8: {
    const auto *source = reinterpret_cast<const int8_t *>(words);
    auto *target = static_cast<int32_t *>(panel);
    for (uint64_t i = 0; i < count * 4; ++i)
      target[i] = source[i];
    break;
  }
  case DITRON_SIM_E4M3:
  case DITRON_SIM_E5M2: {
    const auto *source = reinterpret_cast<const uint8_t *>(words);
    const float *table = fp8Table(type);
    auto *target = static_cast<float *>(panel);
    for (uint64_t i = 0; i < count * 4; ++i)
      target[i] = table[source[i]];
    break;
  }
  default: {
    auto *target = static_cast<uint32_t *>(panel);
    for (uint64_t i = 0; i < count; ++i)
      target[i] = roundTf32(words[i]);
    break;
  }
  }
}

/// B's rows of words to P rows of elements each.
DITRON_SIM_VECTORISED void widenB(uint32_t type, const uint32_t *words, uint32_t rows, uint32_t columns, void *panel) {
  for (uint32_t q = 0; q < rows; ++q) {
    const uint32_t *source = words + static_cast<uint64_t>(q) * columns;
    switch (type) {
    case DITRON_SIM_BF16: {
      auto *low = static_cast<uint32_t *>(panel) + static_cast<uint64_t>(2 * q) * columns, *high = low + columns;
      for (uint32_t j = 0; j < columns; ++j) {
        low[j] = source[j] << 16;
        high[j] = source[j] & 0xffff0000u;
      }
      break;
    }
    case DITRON_SIM_F16: {
      auto *low = static_cast<float *>(panel) + static_cast<uint64_t>(2 * q) * columns, *high = low + columns;
      for (uint32_t j = 0; j < columns; ++j) {
        low[j] = static_cast<float>(__builtin_bit_cast(_Float16, static_cast<uint16_t>(source[j])));
        high[j] = static_cast<float>(__builtin_bit_cast(_Float16, static_cast<uint16_t>(source[j] >> 16)));
      }
      break;
    }
    case DITRON_SIM_I8: {
      auto *row = static_cast<int32_t *>(panel) + static_cast<uint64_t>(4 * q) * columns;
      for (uint32_t byte = 0; byte < 4; ++byte, row += columns)
        for (uint32_t j = 0; j < columns; ++j)
          row[j] = static_cast<int8_t>(source[j] >> (8 * byte));
      break;
    }
    case DITRON_SIM_E4M3:
    case DITRON_SIM_E5M2: {
      const float *table = fp8Table(type);
      auto *row = static_cast<float *>(panel) + static_cast<uint64_t>(4 * q) * columns;
      for (uint32_t byte = 0; byte < 4; ++byte, row += columns)
        for (uint32_t j = 0; j < columns; ++j)
          row[j] = table[source[j] >> (8 * byte) & 0xff];
      break;
    }
    default: {
      auto *row = static_cast<uint32_t *>(panel) + static_cast<uint64_t>(q) * columns;
      for (uint32_t j = 0; j < columns; ++j)
        row[j] = roundTf32(source[j]);
      break;
    }
    }
  }
}

//===- The product ------------------------------------------------------------------------------------------------===//

/// C[rows][columns] += A[rows][depth] * B[depth][columns], blocks of four rows by up to four vectors in registers. rows
/// is a multiple of 4, columns of 16.
#define DITRON_SIM_PRODUCT(NAME, SCALAR, VECTOR, MULTIPLY_ADD)                                                         \
  DITRON_SIM_VECTORISED void NAME(const SCALAR *a, const SCALAR *b, SCALAR *c, uint32_t rows, uint32_t columns,        \
                                  uint32_t depth) {                                                                    \
    for (uint32_t j = 0; j < columns;) {                                                                               \
      const uint32_t left = columns - j;                                                                               \
      if (left >= 64) {                                                                                                \
        for (uint32_t i = 0; i < rows; i += 4)                                                                         \
          DITRON_SIM_BLOCK(SCALAR, VECTOR, MULTIPLY_ADD, 4)                                                            \
        j += 64;                                                                                                       \
      } else if (left >= 32) {                                                                                         \
        for (uint32_t i = 0; i < rows; i += 4)                                                                         \
          DITRON_SIM_BLOCK(SCALAR, VECTOR, MULTIPLY_ADD, 2)                                                            \
        j += 32;                                                                                                       \
      } else {                                                                                                         \
        for (uint32_t i = 0; i < rows; i += 4)                                                                         \
          DITRON_SIM_BLOCK(SCALAR, VECTOR, MULTIPLY_ADD, 1)                                                            \
        j += 16;                                                                                                       \
      }                                                                                                                \
    }                                                                                                                  \
  }
/// Four rows from i, WIDTH vectors from column j.
#define DITRON_SIM_BLOCK(SCALAR, VECTOR, MULTIPLY_ADD, WIDTH)                                                          \
  {                                                                                                                    \
    VECTOR sum[4][WIDTH];                                                                                              \
    for (uint32_t r = 0; r < 4; ++r)                                                                                   \
      for (uint32_t v = 0; v < WIDTH; ++v)                                                                             \
        sum[r][v] = *reinterpret_cast<const VECTOR *>(c + static_cast<uint64_t>(i + r) * columns + j + 16 * v);        \
    for (uint32_t k = 0; k < depth; ++k) {                                                                             \
      VECTOR row[WIDTH];                                                                                               \
      for (uint32_t v = 0; v < WIDTH; ++v)                                                                             \
        row[v] = *reinterpret_cast<const VECTOR *>(b + static_cast<uint64_t>(k) * columns + j + 16 * v);               \
      for (uint32_t r = 0; r < 4; ++r) {                                                                               \
        SCALAR factor = a[static_cast<uint64_t>(i + r) * depth + k];                                                   \
        VECTOR wide = factor - VECTOR{};                                                                               \
        for (uint32_t v = 0; v < WIDTH; ++v)                                                                           \
          sum[r][v] = MULTIPLY_ADD(wide, row[v], sum[r][v]);                                                           \
      }                                                                                                                \
    }                                                                                                                  \
    for (uint32_t r = 0; r < 4; ++r)                                                                                   \
      for (uint32_t v = 0; v < WIDTH; ++v)                                                                             \
        *reinterpret_cast<VECTOR *>(c + static_cast<uint64_t>(i + r) * columns + j + 16 * v) = sum[r][v];              \
  }
#define DITRON_SIM_FLOAT_FMA(x, y, z) __builtin_elementwise_fma(x, y, z)
#define DITRON_SIM_INT_FMA(x, y, z) ((x) * (y) + (z))

DITRON_SIM_PRODUCT(multiplyFloat, float, Float16, DITRON_SIM_FLOAT_FMA)
DITRON_SIM_PRODUCT(multiplyInt, int32_t, Int16, DITRON_SIM_INT_FMA)

DITRON_SIM_VECTORISED void multiplyPrivateFloat(uint32_t m, uint32_t n, uint32_t k, const float *a, const float *b,
                                                float *c) {
  for (uint32_t i = 0; i < m; ++i)
    for (uint32_t l = 0; l < k; ++l) {
      const float factor = a[i * k + l];
      for (uint32_t j = 0; j < n; ++j)
        c[i * n + j] = __builtin_elementwise_fma(factor, b[l * n + j], c[i * n + j]);
    }
}
DITRON_SIM_VECTORISED void multiplyPrivateDouble(uint32_t m, uint32_t n, uint32_t k, const double *a, const double *b,
                                                 double *c) {
  for (uint32_t i = 0; i < m; ++i)
    for (uint32_t l = 0; l < k; ++l) {
      const double factor = a[i * k + l];
      for (uint32_t j = 0; j < n; ++j)
        c[i * n + j] = __builtin_elementwise_fma(factor, b[l * n + j], c[i * n + j]);
    }
}
DITRON_SIM_VECTORISED void multiplyPrivateInt(uint32_t m, uint32_t n, uint32_t k, const uint32_t *a, const uint32_t *b,
                                              uint32_t *c) {
  for (uint32_t i = 0; i < m; ++i)
    for (uint32_t l = 0; l < k; ++l)
      for (uint32_t j = 0; j < n; ++j)
        c[i * n + j] += a[i * k + l] * b[l * n + j];
}

} // namespace

uint32_t elementsPerWord(uint32_t type) { return packing(type); }

void widenElements(uint32_t type, const uint32_t *words, uint64_t count, void *panel) {
  widenA(type, words, count, panel);
}

void widenWordRows(uint32_t type, const uint32_t *words, uint32_t rows, uint32_t columns, void *panel) {
  widenB(type, words, rows, columns, panel);
}

void multiplyPanels(uint32_t type, const void *a, const void *b, void *c, uint32_t rows, uint32_t columns,
                    uint32_t depth) {
  if (type == DITRON_SIM_I8)
    multiplyInt(static_cast<const int32_t *>(a), static_cast<const int32_t *>(b), static_cast<int32_t *>(c), rows,
                columns, depth);
  else
    multiplyFloat(static_cast<const float *>(a), static_cast<const float *>(b), static_cast<float *>(c), rows, columns,
                  depth);
}

DITRON_SIM_VECTORISED void multiplyPanelsShort(const float *a, const float *b, float *c, uint32_t rows,
                                               uint32_t columns, uint32_t depth) {
  constexpr uint32_t group = 32;
  constexpr int keptBits = 13, exponentBias = 127, fractionBits = 23;
  const Int16 exponentMask = (0xff << fractionBits) - Int16{}, absoluteMask = 0x7fffffff - Int16{};
  // Below this nothing is cut: the units would not be numbers any more.
  const Int16 leastExponent = ((keptBits + 2) << fractionBits) - Int16{};
  for (uint32_t i = 0; i < rows; ++i)
    for (uint32_t j = 0; j < columns; j += vectorLanes) {
      Float16 sum = *reinterpret_cast<const Float16 *>(c + static_cast<uint64_t>(i) * columns + j);
      for (uint32_t k = 0; k < depth; k += group) {
        Float16 products[group], plain = sum;
        Int16 largest = (Int16)sum & absoluteMask;
        for (uint32_t l = 0; l < group; ++l) {
          const Float16 factor = a[static_cast<uint64_t>(i) * depth + k + l] - Float16{};
          products[l] = factor * *reinterpret_cast<const Float16 *>(b + static_cast<uint64_t>(k + l) * columns + j);
          plain += products[l];
          const Int16 bits = (Int16)products[l] & absoluteMask;
          largest = largest > bits ? largest : bits;
        }
        // The unit is the largest one's first bit, shifted; its reciprocal is exact.
        Int16 exponent = largest & exponentMask;
        const Int16 isSpecial = exponent == exponentMask;
        exponent = exponent > leastExponent ? exponent : leastExponent;
        const Float16 unit = (Float16)(exponent - (keptBits << fractionBits));
        const Float16 perUnit = (Float16)(((2 * exponentBias + keptBits) << fractionBits) - exponent);
        Int16 units = __builtin_convertvector(sum * perUnit, Int16);
        for (uint32_t l = 0; l < group; ++l)
          units += __builtin_convertvector(products[l] * perUnit, Int16);
        const Float16 cut = __builtin_convertvector(units, Float16) * unit;
        sum = isSpecial ? plain : cut;
      }
      *reinterpret_cast<Float16 *>(c + static_cast<uint64_t>(i) * columns + j) = sum;
    }
}

uint64_t mmaFlops(const MmaCall &call) {
  const uint64_t perTile = call.type == DITRON_SIM_F64 ? 8 * 8 * 4 : 16 * 8 * 8 * packing(call.type);
  return 2 * perTile * call.mTiles * call.nTiles * call.kTiles;
}

void multiplyFragments(const MmaCall &call, const MmaLane *lanes) {
  if (call.type == DITRON_SIM_F64)
    return multiplyDoubleFragments(call, lanes);
  const uint32_t rows = call.mTiles * 16, columns = paddedColumns(call.nTiles);
  const uint32_t depthWords = call.kTiles * 8, depth = depthWords * packing(call.type);
  const uint64_t aCount = static_cast<uint64_t>(rows) * depthWords;
  auto *aWords = panels.aWords.get<uint32_t>(aCount);
  auto *bWords = panels.bWords.get<uint32_t>(static_cast<uint64_t>(depthWords) * columns);
  auto *a = panels.a.get<uint32_t>(static_cast<uint64_t>(rows) * depth);
  auto *b = panels.b.get<uint32_t>(static_cast<uint64_t>(depth) * columns);
  auto *c = panels.c.get<uint32_t>(static_cast<uint64_t>(rows) * columns);
  gatherA(call, lanes, aWords);
  gatherB(call, lanes, bWords, columns);
  gatherC(call, lanes, c, columns);
  widenA(call.type, aWords, aCount, a);
  widenB(call.type, bWords, depthWords, columns, b);
  multiplyPanels(call.type, a, b, c, rows, columns, depth);
  scatterC(call, lanes, c, columns);
}

bool multiplyPrivate(uint32_t type, uint32_t m, uint32_t n, uint32_t k, const void *a, const void *b, void *c) {
  switch (type) {
  case DITRON_SIM_F32:
    multiplyPrivateFloat(m, n, k, static_cast<const float *>(a), static_cast<const float *>(b),
                         static_cast<float *>(c));
    return true;
  case DITRON_SIM_F64:
    multiplyPrivateDouble(m, n, k, static_cast<const double *>(a), static_cast<const double *>(b),
                          static_cast<double *>(c));
    return true;
  case DITRON_SIM_I32:
    multiplyPrivateInt(m, n, k, static_cast<const uint32_t *>(a), static_cast<const uint32_t *>(b),
                       static_cast<uint32_t *>(c));
    return true;
  default: return false;
  }
}

} // namespace ditron::sim
