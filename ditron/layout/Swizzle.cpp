//===- Swizzle.cpp - Choosing a conflict-free way through shared memory -------------------------------------*- C++ -*-===//
//
// The swizzle solver and the brute-force bank counter that checks it.
//
// The offset is cut into [low | bank | segment]: `low` is the vector or, for narrow elements, at least one 32-bit word; low
// and bank together are one line of all banks. In one phase of a warp's access the lanes in the phase and the vector reach
// span(S), S = low + those lanes' tensor bits. Two accesses of a phase conflict when they differ in the segment but not in
// the bank. So the segment bits must be independent of S_src and of S_dst:
//   1. tensor bits outside both sets, as they are;
//   2. then XOR pairs a ^ b with a in S_src - S_dst and b in S_dst - S_src.
// Since |S_src| and |S_dst| are at most a line, these always suffice: with n tensor bits the segment needs n - line <=
// n - max(|S_src|, |S_dst|) = outside + min(|S_src - S_dst|, |S_dst - S_src|) bits. Banks are any complement.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/layout/SharedLayout.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <map>
#include <set>

namespace ditron::layout {

int commonVectorBits(const DistributedLayout &src, const DistributedLayout &dst, int elementBits, int maxVecBits) {
  int64_t common = src.ownedMask(MachineDim::Reg) & dst.ownedMask(MachineDim::Reg);
  int limit = maxVecBits < elementBits ? 0 : std::bit_width(unsigned(maxVecBits / elementBits)) - 1;
  return std::min(std::popcount(static_cast<uint64_t>(common)), limit);
}

/// The tensor bits of the lanes that compete in one phase: the low lane bits.
static uint32_t competingLanes(const DistributedLayout &layout, int lowBits, int lineBits) {
  int laneBits = layout.numBits(MachineDim::Lane);
  int inPhase = laneBits - std::max(0, lowBits + laneBits - lineBits);
  return static_cast<uint32_t>(layout.applyDim(MachineDim::Lane, (1 << std::max(0, inPhase)) - 1));
}

SharedLayout chooseSwizzle(const DistributedLayout &src, const DistributedLayout &dst, int elementBits, int banks,
                           int maxVecBits) {
  assert(src.numTensorBits() == dst.numTensorBits() && "both layouts describe the same tile");
  int tensorBits = src.numTensorBits();
  uint32_t all = tensorBits == 0 ? 0 : ~0u >> (32 - tensorBits);
  // Everything is counted in elements: a line of all banks, and a 32-bit word (no bits for elements that fill it).
  int lineBits = std::max(0, log2Exact(banks) + 5 - log2Exact(elementBits));
  int wordBits = std::max(0, 5 - log2Exact(elementBits));

  F2Matrix bases;
  uint32_t low = 0;
  auto takeLow = [&](uint32_t candidates, int upTo) {
    for (int bit = 0; bit < tensorBits && static_cast<int>(bases.size()) < upTo; ++bit)
      if ((candidates & ~low) >> bit & 1) {
        bases.push_back(1u << bit);
        low |= 1u << bit;
      }
  };
  takeLow(static_cast<uint32_t>(src.ownedMask(MachineDim::Reg) & dst.ownedMask(MachineDim::Reg)),
          commonVectorBits(src, dst, elementBits, maxVecBits));
  // Fill the word: lanes of both sides are best there, since accesses to one word never conflict.
  uint32_t srcLanes = static_cast<uint32_t>(src.ownedMask(MachineDim::Lane));
  uint32_t dstLanes = static_cast<uint32_t>(dst.ownedMask(MachineDim::Lane));
  takeLow(srcLanes & dstLanes, wordBits);
  takeLow(srcLanes | dstLanes, wordBits);
  takeLow(all, wordBits);

  int lowBits = static_cast<int>(bases.size());
  uint32_t srcSpan = low | competingLanes(src, std::max(lowBits, wordBits), lineBits);
  uint32_t dstSpan = low | competingLanes(dst, std::max(lowBits, wordBits), lineBits);
  int segmentBits = std::max(0, tensorBits - lineBits);
  F2Matrix segment;
  for (int bit = 0; bit < tensorBits && static_cast<int>(segment.size()) < segmentBits; ++bit)
    if (!((srcSpan | dstSpan) >> bit & 1))
      segment.push_back(1u << bit);
  uint32_t onlySrc = srcSpan & ~dstSpan, onlyDst = dstSpan & ~srcSpan;
  while (static_cast<int>(segment.size()) < segmentBits) {
    assert(onlySrc != 0 && onlyDst != 0 && "a line holds what one phase reaches, so pairs cannot run out");
    uint32_t a = onlySrc & -onlySrc, b = onlyDst & -onlyDst;
    segment.push_back(a ^ b);
    onlySrc ^= a;
    onlyDst ^= b;
  }

  F2Matrix taken = bases;
  taken.insert(taken.end(), segment.begin(), segment.end());
  F2Matrix bank = f2::independentComplement(taken, tensorBits);
  bases.insert(bases.end(), bank.begin(), bank.end());
  bases.insert(bases.end(), segment.begin(), segment.end());
  return SharedLayout(src.shape(), elementBits, std::move(bases));
}

BankConflicts countBankConflicts(const DistributedLayout &registers, const SharedLayout &shared, int banks,
                                 int maxVecBits) {
  OffsetPlan plan = makeOffsetPlan(registers, shared, maxVecBits);
  int64_t accessBytes = int64_t(plan.vecElems) * shared.elementBytes();
  int lanes = registers.numLanes();
  int lanesPerPhase = static_cast<int>(std::clamp<int64_t>(4 * banks / std::max<int64_t>(4, accessBytes), 1, lanes));
  BankConflicts result;
  for (int warp = 0; warp < registers.numWarps(); ++warp)
    for (const SharedAccess &access : plan.accesses)
      for (int first = 0; first < lanes; first += lanesPerPhase) {
        std::map<int64_t, std::set<int64_t>> wordsOfBank;
        for (int lane = first; lane < first + lanesPerPhase; ++lane) {
          int64_t address = (access.offset ^ plan.threadOffset(lane, warp)) * shared.elementBytes();
          for (int64_t byte = address; byte < address + accessBytes; ++byte)
            wordsOfBank[byte / 4 % banks].insert(byte / 4);
        }
        size_t worst = 1;
        for (const auto &[bank, words] : wordsOfBank)
          worst = std::max(worst, words.size());
        result.worst = std::max(result.worst, static_cast<int>(worst));
        result.wavefronts += static_cast<int64_t>(worst);
        ++result.ideal;
      }
  return result;
}

} // namespace ditron::layout
