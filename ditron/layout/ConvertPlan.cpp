//===- ConvertPlan.cpp - How to get from one register layout to another -------------------------------------*- C++ -*-===//
//
// makePlan. The planner keeps, for each register and lane bit of the current state, the tensor bit that it owns, and works
// towards the destination:
//
//   1. Warp bits. Equal owners: nothing. A copy in the source that owns something in the destination: the warp has the data,
//      so it selects by its own warp bit among registers, or among lanes. Anything else must cross warps: shared memory.
//   2. Lane bits that are copies in the source and whose destination content is in registers: select by own lane bit.
//   3. Lane bits whose content must leave the lanes: exchange with the register bit that owns what this lane needs, then with
//      any that some lane needs, else with a copy register (made by doubling the registers), so that the lane holds copies.
//   4. What lanes still need from registers goes into lanes that hold copies, by selects.
//   5. One permutation of the lanes, one renaming of the registers.
//
// The plan is complete: whatever a warp can get without other warps is found (checked exhaustively in the tests). If it takes
// too many shuffles, shared memory is used nevertheless.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/layout/ConvertPlan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <numeric>

namespace ditron::layout {

std::string_view toString(ConvertClass cls) {
  switch (cls) {
  case ConvertClass::None:
    return "none";
  case ConvertClass::Select:
    return "select";
  case ConvertClass::Shuffle:
    return "shuffle";
  case ConvertClass::Shared:
    return "shared";
  case ConvertClass::CrossBlock:
    return "cross-block";
  }
  return "?";
}

namespace {

/// Plans what can be done inside each warp.
class WarpLocalPlanner {
public:
  WarpLocalPlanner(const DistributedLayout &src, const DistributedLayout &dst)
      : srcWarps(src.bases(MachineDim::Warp)), dstWarps(dst.bases(MachineDim::Warp)), dstRegs(dst.bases(MachineDim::Reg)),
        dstLanes(dst.bases(MachineDim::Lane)), regs(src.bases(MachineDim::Reg)), lanes(src.bases(MachineDim::Lane)) {}

  /// False if data must cross warps; the plan is then meaningless.
  bool run() {
    if (!selectByWarps())
      return false;
    selectInPlace();
    exchangeLeavingLanes();
    selectIntoFreeLanes();
    permuteLanes();
    renameRegisters();
    return true;
  }

  int exchanges = 0;
  ConvertPlan plan;

private:
  int numRegs() const { return 1 << regs.size(); }
  static int find(const std::vector<int> &bases, int basis) {
    auto at = std::find(bases.begin(), bases.end(), basis);
    return at == bases.end() ? -1 : static_cast<int>(at - bases.begin());
  }

  bool selectByWarps() {
    for (size_t warpBit = 0; warpBit < srcWarps.size(); ++warpBit) {
      int has = srcWarps[warpBit], wants = dstWarps[warpBit];
      if (has == wants)
        continue;
      if (has != zeroBasis)
        return false;
      if (int reg = find(regs, wants); reg >= 0) {
        select(reg, MachineDim::Warp, static_cast<int>(warpBit));
      } else if (int lane = find(lanes, wants); lane >= 0) {
        plan.steps.push_back(WarpLaneStep{lane, static_cast<int>(warpBit)});
        plan.shuffles += numRegs();
        lanes[lane] = zeroBasis;
      } else {
        return false;
      }
    }
    return true;
  }

  void select(int regBit, MachineDim dim, int bit) {
    plan.steps.push_back(SelectStep{regBit, dim, bit});
    plan.selects += numRegs() / 2;
    regs.erase(regs.begin() + regBit);
  }

  void selectIntoLane(int regBit, int lane) {
    lanes[lane] = regs[regBit];
    select(regBit, MachineDim::Lane, lane);
  }

  void selectInPlace() {
    for (size_t lane = 0; lane < lanes.size(); ++lane)
      if (lanes[lane] == zeroBasis && dstLanes[lane] != zeroBasis)
        if (int reg = find(regs, dstLanes[lane]); reg >= 0)
          selectIntoLane(reg, static_cast<int>(lane));
  }

  /// A register bit whose tensor bit some lane of the destination owns, or -1.
  int regThatLanesNeed() const {
    for (int wanted : dstLanes)
      if (wanted != zeroBasis)
        if (int reg = find(regs, wanted); reg >= 0)
          return reg;
    return -1;
  }

  bool mustLeave(int lane) const { return lanes[lane] != zeroBasis && find(dstLanes, lanes[lane]) < 0; }

  void exchangeLeavingLanes() {
    // First those that get their final content, so that no later choice takes it away.
    for (size_t lane = 0; lane < lanes.size(); ++lane)
      if (mustLeave(lane) && dstLanes[lane] != zeroBasis)
        if (int reg = find(regs, dstLanes[lane]); reg >= 0)
          exchange(reg, static_cast<int>(lane));
    for (size_t lane = 0; lane < lanes.size(); ++lane)
      if (mustLeave(lane)) {
        int reg = regThatLanesNeed();
        exchange(reg >= 0 ? reg : addCopyRegister(), static_cast<int>(lane));
      }
  }

  void exchange(int regBit, int lane) {
    plan.steps.push_back(ExchangeStep{regBit, lane});
    plan.shuffles += numRegs() / 2;
    plan.selects += 3 * numRegs() / 2;
    std::swap(regs[regBit], lanes[lane]);
    ++exchanges;
  }

  /// Doubles the registers; the new highest bit reaches copies.
  int addCopyRegister() {
    RenameStep step;
    for (int reg = 0; reg < 2 * numRegs(); ++reg)
      step.srcRegOfDstReg.push_back(reg & (numRegs() - 1));
    plan.steps.push_back(std::move(step));
    regs.push_back(zeroBasis);
    return static_cast<int>(regs.size()) - 1;
  }

  void selectIntoFreeLanes() {
    for (int reg = regThatLanesNeed(); reg >= 0; reg = regThatLanesNeed()) {
      // A lane that shall not stay a copy if there is one: fewer lanes then have to be permuted.
      int best = -1;
      for (size_t lane = 0; lane < lanes.size(); ++lane)
        if (lanes[lane] == zeroBasis && (best < 0 || dstLanes[best] == zeroBasis))
          best = static_cast<int>(lane);
      assert(best >= 0 && "the destination's lanes hold at least as many copies");
      selectIntoLane(reg, best);
    }
  }

  void permuteLanes() {
    LanePermuteStep step;
    step.srcLaneBit.assign(lanes.size(), -1);
    std::vector<bool> used(lanes.size());
    auto match = [&](size_t to, size_t from) {
      step.srcLaneBit[to] = static_cast<int>(from);
      used[from] = true;
    };
    for (size_t lane = 0; lane < lanes.size(); ++lane)
      if (lanes[lane] == dstLanes[lane])
        match(lane, lane);
    bool identity = true;
    for (size_t to = 0; to < lanes.size(); ++to)
      for (size_t from = 0; from < lanes.size() && step.srcLaneBit[to] < 0; ++from)
        if (!used[from] && lanes[from] == dstLanes[to]) {
          match(to, from);
          identity = false;
        }
    if (identity)
      return;
    plan.steps.push_back(std::move(step));
    plan.shuffles += numRegs();
    lanes = dstLanes;
  }

  void renameRegisters() {
    assert(regs.size() == dstRegs.size() && "what is neither in lanes nor in warps is in registers");
    if (regs == dstRegs)
      return;
    RenameStep step;
    for (int dstReg = 0; dstReg < numRegs(); ++dstReg) {
      int srcReg = 0;
      for (size_t p = 0; p < dstRegs.size(); ++p)
        if (dstReg >> p & 1)
          srcReg |= 1 << find(regs, dstRegs[p]);
      step.srcRegOfDstReg.push_back(srcReg);
    }
    plan.steps.push_back(std::move(step));
  }

  const std::vector<int> &srcWarps, &dstWarps, &dstRegs, &dstLanes;
  std::vector<int> regs, lanes; ///< The current state: the tensor bit of each position, or a copy.
};

/// The layout of one round: without the register bits `roundBits`, and rank 1.
DistributedLayout withoutBits(const DistributedLayout &layout, const std::vector<int> &roundBits) {
  auto compact = [&](MachineDim dim) {
    std::vector<int> bases;
    for (int basis : layout.bases(dim)) {
      bool dropped = std::find(roundBits.begin(), roundBits.end(), basis) != roundBits.end();
      auto below = std::count_if(roundBits.begin(), roundBits.end(), [&](int bit) { return bit < basis; });
      bases.push_back(dropped || basis == zeroBasis ? zeroBasis : basis - static_cast<int>(below));
    }
    return bases;
  };
  return DistributedLayout({layout.numElements() >> roundBits.size()}, compact(MachineDim::Reg), compact(MachineDim::Lane),
                           compact(MachineDim::Warp), compact(MachineDim::Block));
}

/// Repeats the accesses of one round for all rounds, with the registers of the whole layout.
void expandRounds(OffsetPlan &offsets, const DistributedLayout &whole, const std::vector<int> &roundBits) {
  // Register bits of the whole layout that vary inside a round, and those that number the rounds.
  std::vector<int> inner, outer;
  for (int p = 0; p < whole.numBits(MachineDim::Reg); ++p) {
    int basis = whole.bases(MachineDim::Reg)[p];
    (std::find(roundBits.begin(), roundBits.end(), basis) == roundBits.end() ? inner : outer).push_back(p);
  }
  auto spread = [](int id, const std::vector<int> &positions) {
    int reg = 0;
    for (size_t p = 0; p < positions.size(); ++p)
      reg |= (id >> p & 1) << positions[p];
    return reg;
  };
  std::vector<SharedAccess> all;
  for (int round = 0; round < 1 << outer.size(); ++round)
    for (SharedAccess access : offsets.accesses) {
      for (int &reg : access.regs)
        reg = spread(reg, inner) | spread(round, outer);
      all.push_back(std::move(access));
    }
  offsets.accesses = std::move(all);
}

SharedExchange planShared(const DistributedLayout &src, const DistributedLayout &dst, int elementBits,
                          const PlanOptions &options) {
  // Rounds are numbered by common register bits beyond those that make a vector, the highest first.
  int vecBits = commonVectorBits(src, dst, elementBits, options.maxVecBits);
  int64_t common = src.ownedMask(MachineDim::Reg) & dst.ownedMask(MachineDim::Reg);
  std::vector<int> commonBits, roundBits;
  for (int bit = 0; bit < src.numTensorBits(); ++bit)
    if (common >> bit & 1)
      commonBits.push_back(bit);
  int64_t bytes = src.numElements() * elementBits / 8;
  for (size_t p = commonBits.size(); p > static_cast<size_t>(vecBits) && bytes > options.maxBytes; --p, bytes /= 2)
    roundBits.insert(roundBits.begin(), commonBits[p - 1]);

  SharedExchange exchange;
  exchange.rounds = 1 << roundBits.size();
  bool whole = roundBits.empty();
  DistributedLayout roundSrc = whole ? src : withoutBits(src, roundBits);
  DistributedLayout roundDst = whole ? dst : withoutBits(dst, roundBits);
  exchange.layout = chooseSwizzle(roundSrc, roundDst, elementBits, options.banks, options.maxVecBits);
  // One side alone might find wider vectors in this layout, but the swizzle is free of conflicts for the common width.
  int accessBits = elementBits << vecBits;
  exchange.store = makeOffsetPlan(roundSrc, exchange.layout, accessBits);
  exchange.load = makeOffsetPlan(roundDst, exchange.layout, accessBits);
  if (!whole) {
    expandRounds(exchange.store, src, roundBits);
    expandRounds(exchange.load, dst, roundBits);
  }
  exchange.storeLaneFree = src.freeMask(MachineDim::Lane);
  exchange.storeWarpFree = src.freeMask(MachineDim::Warp);
  bool warpsKeepTheirPart = src.bases(MachineDim::Warp) == dst.bases(MachineDim::Warp) && exchange.storeWarpFree == 0;
  exchange.scope = warpsKeepTheirPart ? BarrierScope::Warp : BarrierScope::Block;
  exchange.bytes = exchange.layout.bytes();
  return exchange;
}

} // namespace

std::string ConvertPlan::describe() const {
  if (cls == ConvertClass::Shared)
    return fmt::format("shared: {} bytes, {} stores and {} loads of {} bits, {} barrier{}", shared->bytes,
                       shared->store.accesses.size(), shared->load.accesses.size(),
                       shared->store.vecElems * shared->layout.elementBits(),
                       shared->scope == BarrierScope::Warp ? "warp" : "block",
                       shared->rounds > 1 ? fmt::format(", {} rounds", shared->rounds) : "");
  if (cls == ConvertClass::Select || cls == ConvertClass::Shuffle) {
    auto exchanges = std::count_if(steps.begin(), steps.end(),
                                   [](const ConvertStep &step) { return std::holds_alternative<ExchangeStep>(step); });
    return fmt::format("{}: {} exchanges, {} shuffles, {} selects", toString(cls), exchanges, shuffles, selects);
  }
  return std::string(toString(cls));
}

int registersOfWord(int elementBits) { return std::max(1, 32 / std::max(8, elementBits)); }

std::vector<int> bitsMovedTogether(const ConvertPlan &plan, int elementBits, int numRegs) {
  uint32_t stay = static_cast<uint32_t>(numRegs) - 1; // register bits that no step touches
  for (const ConvertStep &step : plan.steps) {
    if (std::holds_alternative<RenameStep>(step))
      break;
    if (std::holds_alternative<SelectStep>(step)) // later steps count the registers that are left
      return {};
    if (const auto *exchange = std::get_if<ExchangeStep>(&step))
      stay &= ~(1u << exchange->regBit);
  }
  std::vector<int> bits;
  for (int wanted = registersOfWord(elementBits); wanted > 1; wanted /= 2) {
    if (stay == 0)
      return {};
    bits.push_back(std::countr_zero(stay));
    stay &= stay - 1;
  }
  return bits;
}

ConvertPlan makePlan(const DistributedLayout &src, const DistributedLayout &dst, int elementBits,
                     const PlanOptions &options) {
  assert(src.shape() == dst.shape() && src.numLanes() == dst.numLanes() && src.numWarps() == dst.numWarps() &&
         src.numBlocks() == dst.numBlocks() && "both layouts spread one tensor over one machine");
  ConvertPlan plan;
  if (src == dst)
    return plan;
  if (src.bases(MachineDim::Block) != dst.bases(MachineDim::Block)) {
    plan.cls = ConvertClass::CrossBlock;
    return plan;
  }
  WarpLocalPlanner planner(src, dst);
  bool local = planner.run();
  if (local) {
    const int together = registersOfWord(elementBits);
    planner.plan.shuffles = (planner.plan.shuffles + together - 1) / together;
    planner.plan.cls = planner.plan.shuffles > 0 ? ConvertClass::Shuffle : ConvertClass::Select;
    if (options.force ? *options.force != ConvertClass::Shared : planner.plan.cls == ConvertClass::Select)
      return std::move(planner.plan);
  }
  plan.cls = ConvertClass::Shared;
  plan.shared = planShared(src, dst, std::max(8, elementBits), options);
  if (local && !options.force) {
    int sharedCost = static_cast<int>(plan.shared->store.accesses.size() + plan.shared->load.accesses.size()) +
                     options.barrierCost;
    if (planner.exchanges <= options.maxExchanges && planner.plan.shuffles <= sharedCost)
      return std::move(planner.plan);
  }
  return plan;
}

} // namespace ditron::layout
