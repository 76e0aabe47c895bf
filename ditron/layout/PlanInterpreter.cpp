//===- PlanInterpreter.cpp - Running a conversion plan on arrays --------------------------------------------*- C++ -*-===//
//
// Executes each step of a ConvertPlan for all threads, exactly as a lowering would emit it. Tests compare the outcome with
// what the destination layout says. A place in shared memory that is read before a thread in reach of the barrier wrote it
// gives `unwritten`, so a wrong plan shows in the result.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/layout/ConvertPlan.h"

#include <unordered_map>

namespace ditron::layout {

namespace {

constexpr int64_t unwritten = -1;

/// The id with bit `bit` replaced by `value`.
int withBit(int id, int bit, int value) { return (id & ~(1 << bit)) | value << bit; }

/// Applies value(reg, lane, warp) to every place of a state with `regs` registers.
template <typename Function> ThreadValues generate(int regs, const ThreadValues &machine, Function value) {
  ThreadValues result(regs, machine.numLanes, machine.numWarps);
  for (int warp = 0; warp < machine.numWarps; ++warp)
    for (int lane = 0; lane < machine.numLanes; ++lane)
      for (int reg = 0; reg < regs; ++reg)
        result.at(reg, lane, warp) = value(reg, lane, warp);
  return result;
}

struct StepRunner {
  const ThreadValues &x;

  ThreadValues operator()(const SelectStep &step) const {
    return generate(x.numRegs / 2, x, [&](int reg, int lane, int warp) {
      int own = (step.dim == MachineDim::Lane ? lane : warp) >> step.bit & 1;
      int low = reg & ((1 << step.regBit) - 1), high = (reg ^ low) << 1;
      return x.at(high | own << step.regBit | low, lane, warp);
    });
  }
  ThreadValues operator()(const WarpLaneStep &step) const {
    return generate(x.numRegs, x, [&](int reg, int lane, int warp) {
      return x.at(reg, withBit(lane, step.laneBit, warp >> step.warpBit & 1), warp);
    });
  }
  ThreadValues operator()(const ExchangeStep &step) const {
    ThreadValues y(x.numRegs, x.numLanes, x.numWarps);
    auto send = [&](int reg, int lane, int warp) { // what a lane sends for the pair that starts at reg
      bool b = lane >> step.laneBit & 1;
      return x.at(b ? reg : reg | 1 << step.regBit, lane, warp);
    };
    for (int warp = 0; warp < x.numWarps; ++warp)
      for (int lane = 0; lane < x.numLanes; ++lane)
        for (int reg = 0; reg < x.numRegs; ++reg) {
          if (reg >> step.regBit & 1)
            continue;
          int second = reg | 1 << step.regBit;
          bool b = lane >> step.laneBit & 1;
          int64_t received = send(reg, lane ^ 1 << step.laneBit, warp);
          y.at(reg, lane, warp) = b ? received : x.at(reg, lane, warp);
          y.at(second, lane, warp) = b ? x.at(second, lane, warp) : received;
        }
    return y;
  }
  ThreadValues operator()(const LanePermuteStep &step) const {
    return generate(x.numRegs, x, [&](int reg, int lane, int warp) {
      int from = 0;
      for (size_t j = 0; j < step.srcLaneBit.size(); ++j)
        from |= (lane >> j & 1) << step.srcLaneBit[j];
      return x.at(reg, from, warp);
    });
  }
  ThreadValues operator()(const RenameStep &step) const {
    return generate(static_cast<int>(step.srcRegOfDstReg.size()), x, [&](int reg, int lane, int warp) {
      return x.at(step.srcRegOfDstReg[reg], lane, warp);
    });
  }
};

ThreadValues runShared(const SharedExchange &exchange, const DistributedLayout &dst, const ThreadValues &x) {
  ThreadValues y(dst.numRegs(), x.numLanes, x.numWarps);
  size_t stores = exchange.store.accesses.size() / exchange.rounds;
  size_t loads = exchange.load.accesses.size() / exchange.rounds;
  for (int round = 0; round < exchange.rounds; ++round) {
    struct Cell {
      int64_t value = unwritten;
      int warp = -1;
    };
    std::unordered_map<int64_t, Cell> memory;
    for (int warp = 0; warp < x.numWarps; ++warp)
      for (int lane = 0; lane < x.numLanes; ++lane) {
        if ((lane & exchange.storeLaneFree) != 0 || (warp & exchange.storeWarpFree) != 0)
          continue;
        for (size_t i = round * stores; i < (round + 1) * stores; ++i) {
          const SharedAccess &access = exchange.store.accesses[i];
          int64_t offset = access.offset ^ exchange.store.threadOffset(lane, warp);
          for (size_t element = 0; element < access.regs.size(); ++element)
            memory[offset + static_cast<int64_t>(element)] = {x.at(access.regs[element], lane, warp), warp};
        }
      }
    for (int warp = 0; warp < x.numWarps; ++warp)
      for (int lane = 0; lane < x.numLanes; ++lane)
        for (size_t i = round * loads; i < (round + 1) * loads; ++i) {
          const SharedAccess &access = exchange.load.accesses[i];
          int64_t offset = access.offset ^ exchange.load.threadOffset(lane, warp);
          for (size_t element = 0; element < access.regs.size(); ++element) {
            Cell cell = memory[offset + static_cast<int64_t>(element)];
            bool visible = exchange.scope == BarrierScope::Block || cell.warp == warp;
            y.at(access.regs[element], lane, warp) = visible ? cell.value : unwritten;
          }
        }
  }
  return y;
}

} // namespace

ThreadValues ThreadValues::indicesOf(const DistributedLayout &layout) {
  ThreadValues machine(layout.numRegs(), layout.numLanes(), layout.numWarps());
  return generate(layout.numRegs(), machine,
                  [&](int reg, int lane, int warp) { return layout.apply(reg, lane, warp); });
}

ThreadValues interpret(const ConvertPlan &plan, const DistributedLayout &dst, const ThreadValues &values) {
  if (plan.shared)
    return runShared(*plan.shared, dst, values);
  ThreadValues state = values;
  for (const ConvertStep &step : plan.steps)
    state = std::visit(StepRunner{state}, step);
  return state;
}

} // namespace ditron::layout
