//===- Mma.h - Matrix multiply of a warp ----------------------------------------------------------------*- C++ -*-===//
//
// The arithmetic of ditron_sim_mma: the fragments of all 32 lanes are gathered into dense panels, multiplied with a
// vectorised kernel, and scattered back. Which matrix element a register of a lane holds (PTX ISA, mma.sync), with
// g = lane / 4 and t = lane % 4, for operands of 16 bits (8 and 32 bits likewise,
// with P = 4 or 1 elements per 32-bit word in place of 2):
//
//   A, word w of 4:  row g + 8 * (w & 1),  columns P * (t + 4 * (w >> 1)) + 0 .. P-1
//   B, word w of 2:  column g,             rows    P * (t + 4 * w) + 0 .. P-1
//   C, register r:   row g + 8 * (r >> 1), column  2 * t + (r & 1)
//
// fp64 operands are multiplied with m8n8k4: A (g, t), B (t, g), C (g, 2 * t + r).
//
// So one instruction covers 4 * 2 * P of k: 16, 32 for 8-bit, 8 for tf32. Accumulation is one fused multiply-add per k,
// in ascending order, whatever the vector width: the result does not depend on the processor.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_ARITHMETIC_MMA_H
#define DITRON_SIM_ARITHMETIC_MMA_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ditron::sim {

struct MmaCall {
  uint32_t type; ///< DitronSimType: F16, BF16, TF32, F64, I8, E4M3 or E5M2.
  uint32_t mTiles, nTiles, kTiles;
};

/// The registers of one lane.
struct MmaLane {
  const void *a;
  const void *b;
  void *c;
};

/// Multiplies and adds of a call, counted as two each; 0 when the type has no such instruction.
uint64_t mmaFlops(const MmaCall &call);
/// C += A * B over the fragments of 32 lanes.
void multiplyFragments(const MmaCall &call, const MmaLane *lanes);
/// c += a * b on row-major arrays of one thread; false for a type without arithmetic.
bool multiplyPrivate(uint32_t type, uint32_t m, uint32_t n, uint32_t k, const void *a, const void *b, void *c);

//===- The steps of a multiply, for warpgroups --------------------------------------------------------------------===//

/// Elements in a 32-bit word of an operand; 0 when the type is no operand.
uint32_t elementsPerWord(uint32_t type);
/// `words` 32-bit words of operand elements to one fp32 (int32 for 8-bit integers) each, in order.
void widenElements(uint32_t type, const uint32_t *words, uint64_t count, void *panel);
/// rows x columns words, each of elements that follow each other in k, to elementsPerWord(type) * rows rows of elements.
void widenWordRows(uint32_t type, const uint32_t *words, uint32_t rows, uint32_t columns, void *panel);
/// c[rows][columns] += a[rows][depth] * b[depth][columns] of widened elements. rows is a multiple of 4, columns of 16; b and c
/// are 64-byte aligned.
void multiplyPanels(uint32_t type, const void *a, const void *b, void *c, uint32_t rows, uint32_t columns,
                    uint32_t depth);

/// The same as the tensor cores of Hopper do it for fp8: in each group of 32 products and c, all are aligned to the largest of them and
/// cut off 13 bits below its first (DeepSeek-V3, arXiv 2412.19437, section 3.5.2), and then added. depth is a multiple of 32.
void multiplyPanelsShort(const float *a, const float *b, float *c, uint32_t rows, uint32_t columns, uint32_t depth);

/// Scratch memory, kept between uses, 64-byte aligned.
class Panel {
public:
  template <typename T> T *get(size_t count) {
    size_t bytes = count * sizeof(T) + 64;
    if (storage.size() < bytes)
      storage.resize(bytes);
    auto start = reinterpret_cast<uintptr_t>(storage.data());
    return reinterpret_cast<T *>((start + 63) & ~uintptr_t(63));
  }

private:
  std::vector<char> storage;
};

} // namespace ditron::sim

#endif // DITRON_SIM_ARITHMETIC_MMA_H
