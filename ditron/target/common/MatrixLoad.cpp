//===- MatrixLoad.cpp - Tiles in shared memory read by matrix loads ---------------------------------------------------===//
//
// See MatrixLoad.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/MatrixLoad.h"

#include "ditron/layout/Builders.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <tuple>
#include <utility>

using ditron::layout::OffsetPlan;

namespace ditron::target {

namespace {

/// The element offset of each register bit; empty if the registers are not a power of two.
std::vector<int64_t> registerBases(const OffsetPlan &plan) {
  std::vector<int64_t> offsets;
  for (const layout::SharedAccess &access : plan.accesses)
    for (size_t i = 0; i < access.regs.size(); ++i) {
      size_t reg = static_cast<size_t>(access.regs[i]);
      offsets.resize(std::max(offsets.size(), reg + 1));
      offsets[reg] = access.offset + static_cast<int64_t>(i);
    }
  std::vector<int64_t> bases;
  if (std::has_single_bit(offsets.size()))
    for (size_t reg = 1; reg < offsets.size(); reg *= 2)
      bases.push_back(offsets[reg]);
  return bases;
}

bool areMultiples(const std::vector<int64_t> &bases, int64_t of) {
  return std::ranges::all_of(bases, [of](int64_t basis) { return basis % of == 0; });
}

/// A register bit and the offset that it contributes.
struct RegisterBit {
  int position;
  int64_t basis;
  size_t rank; ///< Of its place in the fragment's operand list; high for bits outside of it.
};

/// The register bits of the tensor core operand that the layout holds, in the order of the instruction's list.
std::vector<int> fragmentBits(const layout::DistributedLayout &registers, int elementBytes) {
  std::vector<int> bits;
  std::optional<layout::MmaKind> kind = layout::mmaKindFor(elementBytes * 8);
  if (!kind || registers.rank() != 2 || elementBytes > 4) // matrix loads move words of 32 bits
    return bits;
  for (layout::DotOperand operand : {layout::DotOperand::A, layout::DotOperand::B}) {
    const layout::Fragment &fragment = layout::mmaFragment(*kind, operand);
    if (!layout::containsFragment(registers, fragment))
      continue;
    for (layout::FragmentBasis basis : fragment.regs) {
      const int64_t coordinates[] = {basis.row, basis.col};
      bits.push_back(registers.owner(std::countr_zero(static_cast<uint64_t>(registers.pack(coordinates)))).position);
    }
    break;
  }
  return bits;
}

} // namespace

std::optional<MatrixLoadPlan> makeMatrixLoadPlan(const layout::DistributedLayout &registers, const OffsetPlan &plan,
                                                 int elementBytes) {
  const std::vector<int64_t> &lanes = plan.laneBases;
  if (elementBytes > 4 || lanes.size() != 5)
    return std::nullopt;
  MatrixLoadPlan result;
  result.elemsPerWord = 4 / elementBytes;
  const int64_t word = result.elemsPerWord, row = 4 * word;

  std::vector<int> preferred = fragmentBits(registers, elementBytes);
  std::vector<RegisterBit> bits;
  for (int64_t basis : registerBases(plan)) {
    int position = static_cast<int>(bits.size());
    size_t rank = static_cast<size_t>(std::ranges::find(preferred, position) - preferred.begin());
    bits.push_back({position, basis, rank});
  }
  std::ranges::sort(bits, std::less(), &RegisterBit::rank);
  if (std::ranges::any_of(bits, [](RegisterBit bit) { return bit.basis == 0; }) || !areMultiples(plan.warpBases, row))
    return std::nullopt; // registers that hold copies are rare
  std::vector<RegisterBit> inWord; // of the elements of one word, from the lowest
  std::vector<int64_t> rowBases;   // of the three bits of the row number
  auto take = [&](auto condition) {
    auto it = std::ranges::find_if(bits, condition);
    if (it == bits.end())
      return false;
    inWord.push_back(*it);
    bits.erase(it);
    return true;
  };

  if (lanes[0] == word && lanes[1] == 2 * word) {
    for (int64_t basis = 1; basis < word; basis *= 2)
      if (!take([basis](RegisterBit bit) { return bit.basis == basis; }))
        return std::nullopt;
    rowBases = {lanes[2], lanes[3], lanes[4]};
  } else if (elementBytes == 2 && lanes[2] == 1 && lanes[3] == 2 && lanes[4] == 4) {
    if (!take([row](RegisterBit bit) { return bit.basis % row == 0; }))
      return std::nullopt;
    result.transpose = true;
    rowBases = {inWord.front().basis, lanes[0], lanes[1]};
  } else {
    return std::nullopt;
  }
  if (!areMultiples(rowBases, row) || std::ranges::any_of(bits, [row](RegisterBit bit) { return bit.basis % row != 0; }))
    return std::nullopt;

  // Two of the other register bits choose among the matrices of an instruction: the fragment's, then those whose offsets
  // collide with the rows' (swizzled tiles), since in a lane's own address that costs nothing, as a constant an XOR.
  int64_t rowMask = 0;
  for (int64_t basis : rowBases)
    rowMask |= basis;
  for (int64_t basis : plan.warpBases)
    rowMask |= basis;
  std::ranges::sort(bits, std::less(), [rowMask](RegisterBit bit) {
    return std::tuple(bit.rank, (bit.basis & rowMask) == 0, bit.position);
  });
  size_t choosing = std::min<size_t>(bits.size(), 2);
  result.count = 1 << choosing;
  result.rows.vecElems = static_cast<int>(row);
  result.rows.laneBases = rowBases;
  for (size_t i = 0; i < 2; ++i)
    result.rows.laneBases.push_back(i < choosing ? bits[i].basis : 0);
  result.rows.warpBases = plan.warpBases;

  auto spread = [](const std::vector<RegisterBit> &over, size_t first, uint32_t number) {
    std::pair<int, int64_t> sum{0, 0}; // register, offset
    for (size_t i = first; i < over.size() && (number >> (i - first)) != 0; ++i)
      if (number >> (i - first) & 1) {
        sum.first |= 1 << over[i].position;
        sum.second ^= over[i].basis;
      }
    return sum;
  };
  const uint32_t instructions = 1u << (bits.size() - choosing);
  for (uint32_t instruction = 0; instruction < instructions; ++instruction) {
    auto [baseReg, offset] = spread(bits, choosing, instruction);
    layout::SharedAccess access{offset, {}};
    for (int matrix = 0; matrix < result.count; ++matrix)
      for (uint32_t element = 0; element < static_cast<uint32_t>(word); ++element)
        access.regs.push_back(baseReg | spread(bits, 0, static_cast<uint32_t>(matrix)).first |
                              spread(inWord, 0, element).first);
    result.rows.accesses.push_back(std::move(access));
  }
  return result;
}

} // namespace ditron::target
