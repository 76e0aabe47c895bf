//===- SimHopper.cpp - Simulated leaves: tensor copies and warpgroup multiplies -------------------------------------------===//
//
// See SimHopper.h. Accumulators in flight are values like any others: the engine fills them with tokens that stand for the
// result, and a wait lets it replace the tokens of what is complete.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/sim/SimHopper.h"

#include "ditron/abi/Simulator.h"
#include "ditron/target/common/Patterns.h"

using namespace mlir;

namespace ditron::target {

static Value word(Emitter &e, Value predicate) {
  return predicate ? e.zextOrTrunc(predicate, e.getI32Type()) : e.i32(1);
}

Value SimHopper::electLane(Emitter &e) {
  return e.isZero(sim.field(e, offsetof(DitronSimThread, laneId), e.getI32Type()));
}

//===--- mbarriers ------------------------------------------------------------------------------------------------------===//

void SimHopper::mbarrierInit(Emitter &e, Value bar, int count, Value predicate) {
  emitIf(e, predicate, {}, [&](Emitter &inner) -> SmallVector<Value> {
    sim.call(inner, "mbarrier_init", {sim.self(inner), bar, inner.i32(count), sim.site(inner)});
    return {};
  });
}

void SimHopper::mbarrierInvalidate(Emitter &e, Value bar, Value predicate) {
  emitIf(e, predicate, {}, [&](Emitter &inner) -> SmallVector<Value> {
    sim.call(inner, "mbarrier_invalidate", {sim.self(inner), bar, sim.site(inner)});
    return {};
  });
}

void SimHopper::mbarrierExpect(Emitter &e, Value bar, int64_t bytes, Value predicate) {
  sim.call(e, "mbarrier_expect_tx", {sim.self(e), bar, e.i32(bytes), word(e, predicate), sim.site(e)});
}

void SimHopper::mbarrierArrive(Emitter &e, Value bar, Value predicate) {
  sim.call(e, "mbarrier_arrive", {sim.self(e), bar, e.i32(1), word(e, predicate), sim.site(e)});
}

void SimHopper::mbarrierArriveCopied(Emitter &e, Value bar) {
  // At the earliest moment that there can be.
  sim.call(e, "async_commit", {sim.self(e), sim.site(e)});
  sim.call(e, "async_wait", {sim.self(e), e.i32(0), sim.site(e)});
  mbarrierArrive(e, bar, Value());
}

void SimHopper::mbarrierWait(Emitter &e, Value bar, Value parity) {
  sim.call(e, "mbarrier_wait", {sim.self(e), bar, parity, sim.site(e)});
}

//===--- Tensor copies --------------------------------------------------------------------------------------------------===//

Value SimHopper::coordinateArray(Emitter &e, ValueRange coordinates) { return SimCalls::spill(e, coordinates); }

void SimHopper::tmaLoad(Emitter &e, Value map, ValueRange coordinates, Value shared, Value bar, Value predicate,
                        tile::EvictionPolicy, bool) {
  Value array = coordinateArray(e, coordinates);
  sim.call(e, "tma_load",
           {sim.self(e), map, e.i32(coordinates.size()), array, shared, bar, word(e, predicate), sim.site(e)});
}

void SimHopper::tmaStore(Emitter &e, Value map, ValueRange coordinates, Value shared, Value predicate) {
  Value array = coordinateArray(e, coordinates);
  sim.call(e, "tma_store",
           {sim.self(e), map, e.i32(coordinates.size()), array, shared, word(e, predicate), sim.site(e)});
}

void SimHopper::tmaStoreCommit(Emitter &e) { sim.call(e, "tma_store_commit", {sim.self(e), sim.site(e)}); }

void SimHopper::tmaStoreWait(Emitter &e, int pending, bool onlyRead) {
  sim.call(e, "tma_store_wait", {sim.self(e), e.i32(pending), e.i32(onlyRead), sim.site(e)});
}

void SimHopper::fenceAsync(Emitter &e) { sim.call(e, "fence_async", {sim.self(e), sim.site(e)}); }

void SimHopper::fenceAsyncGlobal(Emitter &e) { sim.call(e, "fence_async_global", {sim.self(e), sim.site(e)}); }

//===--- Warpgroup multiply ---------------------------------------------------------------------------------------------===//

static DitronSimType operandCode(Type type) {
  if (type.isF16())
    return DITRON_SIM_F16;
  if (type.isBF16())
    return DITRON_SIM_BF16;
  if (type.isF32())
    return DITRON_SIM_TF32;
  if (isa<Float8E4M3FNType>(type))
    return DITRON_SIM_E4M3;
  if (isa<Float8E5M2Type>(type))
    return DITRON_SIM_E5M2;
  return DITRON_SIM_I8;
}

Value SimHopper::matrixDescriptor(Emitter &e, Value shared, int64_t leadingBytes, int64_t strideBytes,
                                  int swizzleBytes) {
  uint64_t mode = swizzleBytes == 128 ? 1 : swizzleBytes == 64 ? 2 : swizzleBytes == 32 ? 3 : 0;
  uint64_t fixed = uint64_t(leadingBytes >> 4 & 0x3fff) << 16 | uint64_t(strideBytes >> 4 & 0x3fff) << 32 | mode << 62;
  Value base = sim.field(e, offsetof(DitronSimThread, sharedMemory), e.pointerType());
  Value offset =
      e.sub(LLVM::PtrToIntOp::create(e, e.getI64Type(), shared), LLVM::PtrToIntOp::create(e, e.getI64Type(), base));
  return e.bitOr(e.lshr(e.bitAnd(offset, e.i64(0x3ffff)), 4), e.i64(static_cast<int64_t>(fixed)));
}

void SimHopper::wgmmaFence(Emitter &e) { sim.call(e, "wgmma_fence", {sim.self(e), sim.site(e)}); }

SmallVector<Value> SimHopper::wgmma(Emitter &e, const WarpgroupDot &dot) {
  uint32_t flags = DITRON_SIM_WGMMA_SCALE_D | (dot.isAMnMajor ? DITRON_SIM_WGMMA_A_MN_MAJOR : 0) |
                   (dot.isBMnMajor ? DITRON_SIM_WGMMA_B_MN_MAJOR : 0);
  bool inRegisters = !dot.a.empty();
  Value registersA = inRegisters ? SimCalls::spill(e, dot.a) : e.zero(e.pointerType());
  Value descriptorA = inRegisters ? e.i64(0) : dot.aDescriptor;
  // Registers that are not read hold anything; the engine reads them.
  SmallVector<Value> sums = dot.c;
  if (dot.accumulate)
    for (Value &sum : sums)
      sum = e.select(dot.accumulate, sum, e.zero(sum.getType()));
  Value c = SimCalls::spill(e, sums);
  sim.call(e, "wgmma",
           {sim.self(e), e.i32(operandCode(dot.operandType)), e.i32(dot.n), e.i32(dot.kSteps), e.i32(flags), registersA,
            descriptorA, e.i32(inRegisters ? 0 : dot.aStepBytes), dot.bDescriptor, e.i32(dot.bStepBytes), c,
            sim.site(e)});
  return SimCalls::reload(e, c, dot.c);
}

void SimHopper::wgmmaCommit(Emitter &e) { sim.call(e, "wgmma_commit", {sim.self(e), sim.site(e)}); }

SmallVector<Value> SimHopper::wgmmaUnset(Emitter &e, TypeRange types) {
  SmallVector<Value> values;
  for (Type type : types)
    values.push_back(e.zero(type));
  return values;
}

SmallVector<Value> SimHopper::wgmmaWait(Emitter &e, int pending, ValueRange values, ValueRange, ValueRange) {
  sim.call(e, "wgmma_wait", {sim.self(e), e.i32(pending), sim.site(e)});
  if (values.empty())
    return {};
  Value array = SimCalls::spill(e, values);
  sim.call(e, "wgmma_result", {sim.self(e), array, e.i32(values.size()), sim.site(e)});
  return SimCalls::reload(e, array, values);
}

//===--- Warp specialisation --------------------------------------------------------------------------------------------===//

void SimHopper::namedBarrier(Emitter &e, Value id, int threads, NamedBarrierKind kind) {
  uint32_t code = kind == NamedBarrierKind::Sync ? DITRON_SIM_BARRIER_SYNC : DITRON_SIM_BARRIER_ARRIVE;
  sim.call(e, "named_barrier", {sim.self(e), id, e.i32(threads), e.i32(code), sim.site(e)});
}

void SimHopper::setMaxRegisters(Emitter &e, int count, bool isIncrease) {
  sim.call(e, "setmaxnreg", {sim.self(e), e.i32(count), e.i32(isIncrease), sim.site(e)});
}

} // namespace ditron::target
