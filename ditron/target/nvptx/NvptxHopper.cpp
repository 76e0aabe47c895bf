//===- NvptxHopper.cpp - NVIDIA leaves: tensor copies and warpgroup multiplies --------------------------------------------===//
//
// One instruction per leaf. The accumulators of wgmma are outputs tied to inputs, also of the wait: the values keep their
// registers from the first multiply to the last wait, as the hardware demands (ptxas serialises the multiplies when it finds
// a move between them).
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/nvptx/NvptxHopper.h"

#include "ditron/target/nvptx/NvptxTargetInfo.h"
#include "ditron/target/nvptx/PtxAsm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace mlir;

namespace ditron::target {

static Value inShared(Emitter &e, Value ptr) { return inAddressSpace(e, ptr, AddressSpace::Shared); }

Value NvptxHopper::electLane(Emitter &e) {
  PtxAsm code(e);
  std::string elected = code.output(e.getI32Type());
  return e.isNotZero(code.emit(fmt::format("{{\n.reg .pred elected;\nelect.sync _|elected, -1;\n"
                                           "selp.b32 {}, 1, 0, elected;\n}}",
                                           elected))[0]);
}

//===--- mbarriers ------------------------------------------------------------------------------------------------------===//

void NvptxHopper::mbarrierInit(Emitter &e, Value bar, int count, Value predicate) {
  PtxAsm code(e);
  std::string guard = code.guard(predicate), at = code.input(inShared(e, bar));
  code.emit(fmt::format("{}mbarrier.init.shared::cta.b64 [{}], {};", guard, at, count));
}

void NvptxHopper::mbarrierInitFence(Emitter &e) { PtxAsm(e).emit("fence.mbarrier_init.release.cluster;"); }

void NvptxHopper::mbarrierInvalidate(Emitter &e, Value bar, Value predicate) {
  PtxAsm code(e);
  std::string guard = code.guard(predicate), at = code.input(inShared(e, bar));
  code.emit(fmt::format("{}mbarrier.inval.shared::cta.b64 [{}];", guard, at));
}

void NvptxHopper::mbarrierExpect(Emitter &e, Value bar, int64_t bytes, Value predicate) {
  PtxAsm code(e);
  std::string guard = code.guard(predicate), at = code.input(inShared(e, bar));
  code.emit(fmt::format("{}mbarrier.arrive.expect_tx.shared::cta.b64 _, [{}], {};", guard, at, bytes));
}

void NvptxHopper::mbarrierArrive(Emitter &e, Value bar, Value predicate) {
  PtxAsm code(e);
  std::string guard = code.guard(predicate), at = code.input(inShared(e, bar));
  code.emit(fmt::format("{}mbarrier.arrive.shared::cta.b64 _, [{}];", guard, at));
}

void NvptxHopper::mbarrierArriveAtPeer(Emitter &e, Value bar, Value predicate) {
  PtxAsm code(e);
  std::string guard = code.guard(predicate), at = code.input(inShared(e, bar));
  code.emit(fmt::format("{{\n.reg .b32 peer, there;\nmov.u32 peer, %cluster_ctarank;\nxor.b32 peer, peer, 1;\n"
                        "mapa.shared::cluster.u32 there, {}, peer;\n"
                        "{}mbarrier.arrive.shared::cluster.b64 _, [there];\n}}",
                        at, guard));
}

void NvptxHopper::mbarrierArriveCopied(Emitter &e, Value bar) {
  PtxAsm code(e);
  std::string at = code.input(inShared(e, bar));
  code.emit(fmt::format("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [{}];", at));
}

void NvptxHopper::mbarrierWait(Emitter &e, Value bar, Value parity) {
  if (boundsWaits)
    return waitForMbarrier(e, bar, parity);
  PtxAsm code(e);
  std::string at = code.input(inShared(e, bar)), phase = code.input(parity);
  // The loop is in the text: as LLVM blocks it would be one more loop for every pass to look at.
  code.emit(fmt::format("{{\n.reg .pred done;\n$$L_mbarrier_${{:uid}}:\n"
                        "mbarrier.try_wait.parity.shared::cta.b64 done, [{}], {};\n"
                        "@!done bra $$L_mbarrier_${{:uid}};\n}}",
                        at, phase));
}

//===--- Tensor copies --------------------------------------------------------------------------------------------------===//

/// "[map, {x, y}]".
static std::string tensorOperand(PtxAsm &code, Value map, ValueRange coordinates) {
  std::string at = code.input(map);
  SmallVector<std::string> names;
  for (Value coordinate : coordinates)
    names.push_back(code.input(coordinate));
  return fmt::format("[{}, {{{}}}]", at, fmt::join(names, ", "));
}

void NvptxHopper::prefetchMap(Emitter &e, Value map, Value predicate) {
  PtxAsm code(e);
  std::string guard = code.guard(predicate), at = code.input(map);
  code.emit(fmt::format("{}prefetch.tensormap [{}];", guard, at));
}

void NvptxHopper::tmaLoad(Emitter &e, Value map, ValueRange coordinates, Value shared, Value bar, Value predicate,
                          tile::EvictionPolicy evict, bool toCluster) {
  PtxAsm code(e);
  std::string guard = code.guard(predicate), to = code.input(inShared(e, shared)),
              from = tensorOperand(code, map, coordinates), signal = code.input(inShared(e, bar));
  const bool isHinted = evict != tile::EvictionPolicy::Normal;
  std::string copy = fmt::format(
      "{}cp.async.bulk.tensor.{}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes{}{} [{}], {}, [{}]{}{};",
      guard, coordinates.size(), toCluster ? ".multicast::cluster" : "", isHinted ? ".L2::cache_hint" : "", to, from,
      signal, toCluster ? ", both" : "", isHinted ? ", policy" : "");
  if (isHinted)
    copy = fmt::format("{{\n.reg .b64 policy;\ncreatepolicy.fractional.L2::{}.b64 policy, 1.0;\n{}\n}}",
                       evict == tile::EvictionPolicy::EvictFirst ? "evict_first" : "evict_last", copy);
  if (toCluster)
    copy = fmt::format("{{\n.reg .b16 both;\nmov.b16 both, 3;\n{}\n}}", copy);
  code.emit(copy);
}

void NvptxHopper::tmaStore(Emitter &e, Value map, ValueRange coordinates, Value shared, Value predicate) {
  PtxAsm code(e);
  std::string guard = code.guard(predicate), to = tensorOperand(code, map, coordinates),
              from = code.input(inShared(e, shared));
  code.emit(fmt::format("{}cp.async.bulk.tensor.{}d.global.shared::cta.tile.bulk_group {}, [{}];", guard,
                        coordinates.size(), to, from));
}

void NvptxHopper::tmaStoreCommit(Emitter &e) { PtxAsm(e).emit("cp.async.bulk.commit_group;"); }

void NvptxHopper::tmaStoreWait(Emitter &e, int pending, bool onlyRead) {
  PtxAsm(e).emit(fmt::format("cp.async.bulk.wait_group{} {};", onlyRead ? ".read" : "", pending));
}

void NvptxHopper::fenceAsync(Emitter &e) { PtxAsm(e).emit("fence.proxy.async.shared::cta;"); }

void NvptxHopper::fenceAsyncGlobal(Emitter &e) { PtxAsm(e).emit("fence.proxy.async.global;"); }

//===--- Warpgroup multiply ---------------------------------------------------------------------------------------------===//

Value NvptxHopper::matrixDescriptor(Emitter &e, Value shared, int64_t leadingBytes, int64_t strideBytes,
                                    int swizzleBytes) {
  // PTX ISA, "matrix descriptor": fields in units of 16 bytes; layout type 1, 2, 3 for swizzles of 128, 64, 32 bytes.
  uint64_t mode = swizzleBytes == 128 ? 1 : swizzleBytes == 64 ? 2 : swizzleBytes == 32 ? 3 : 0;
  uint64_t fixed = uint64_t(leadingBytes >> 4 & 0x3fff) << 16 | uint64_t(strideBytes >> 4 & 0x3fff) << 32 | mode << 62;
  Value address = LLVM::PtrToIntOp::create(e, e.getI32Type(), inShared(e, shared));
  Value start = e.lshr(e.bitAnd(address, e.i32(0x3ffff)), 4);
  return e.bitOr(e.zextOrTrunc(start, e.getI64Type()), e.i64(static_cast<int64_t>(fixed)));
}

void NvptxHopper::wgmmaFence(Emitter &e) { callIntrinsic(e, "llvm.nvvm.wgmma.fence.sync.aligned", Type(), {}); }

void NvptxHopper::wgmmaCommit(Emitter &e) {
  callIntrinsic(e, "llvm.nvvm.wgmma.commit_group.sync.aligned", Type(), {});
}

namespace {
/// How wgmma names an operand type.
struct OperandName {
  const char *name;
  int k;             ///< Of one instruction.
  bool hasMajorness; ///< Takes the immediates that say which dimension is contiguous.
  bool isInteger;
};
} // namespace

static OperandName operandName(Type type) {
  if (type.isF16())
    return {"f16", 16, true, false};
  if (type.isBF16())
    return {"bf16", 16, true, false};
  if (type.isF32())
    return {"tf32", 8, false, false};
  if (isa<Float8E4M3FNType>(type))
    return {"e4m3", 32, false, false};
  if (isa<Float8E5M2Type>(type))
    return {"e5m2", 32, false, false};
  return {"s8", 32, false, true};
}

SmallVector<Value> NvptxHopper::wgmma(Emitter &e, const WarpgroupDot &dot) {
  OperandName operand = operandName(dot.operandType);
  SmallVector<Value> a = dot.a.empty() ? SmallVector<Value>() : packMmaOperand(e, dot.operandType.isF32(), dot.a);
  size_t wordsPerStep = a.size() / dot.kSteps;
  SmallVector<Value> sums = dot.c;
  for (int step = 0; step < dot.kSteps; ++step) {
    PtxAsm code(e);
    SmallVector<std::string> results;
    for (Value sum : sums)
      results.push_back(code.output(sum.getType()));
    std::string listA;
    if (a.empty()) {
      listA = code.input(e.add(dot.aDescriptor, e.i64(step * dot.aStepBytes >> 4)));
    } else {
      SmallVector<std::string> words;
      for (Value word : ValueRange(a).slice(step * wordsPerStep, wordsPerStep))
        words.push_back(code.input(word));
      listA = fmt::format("{{{}}}", fmt::join(words, ", "));
    }
    std::string b = code.input(e.add(dot.bDescriptor, e.i64(step * dot.bStepBytes >> 4)));
    // Whether to add to what the accumulators hold; then the signs of A and B, and their major-ness.
    std::string modifiers = "1";
    if (step == 0 && dot.accumulate) {
      std::optional<int64_t> known = e.constantOf(dot.accumulate);
      modifiers = !known ? code.input(dot.accumulate) : *known ? "1" : "0";
    }
    for (auto [i, sum] : llvm::enumerate(sums))
      code.initialize(static_cast<int>(i), sum);
    if (!operand.isInteger)
      modifiers += ", 1, 1";
    if (operand.hasMajorness && a.empty())
      modifiers += dot.isAMnMajor ? ", 1" : ", 0";
    if (operand.hasMajorness)
      modifiers += dot.isBMnMajor ? ", 1" : ", 0";
    sums = code.emit(fmt::format("wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{} {{{}}}, {}, {}, {};", dot.n, operand.k,
                                 operand.isInteger ? "s32" : "f32", operand.name, operand.name,
                                 fmt::join(results, ", "), listA, b, modifiers));
  }
  return sums;
}

SmallVector<Value> NvptxHopper::wgmmaUnset(Emitter &e, TypeRange types) {
  // Empty text with results: LLVM cannot know their values, as it would those of poison, and ptxas sees no definition.
  PtxAsm code(e);
  for (Type type : types)
    code.output(type);
  return code.emit("");
}

/// ptxas starts a wait as early as it can, for it sees only what comes behind it, and would leave nothing to do beside the multiplies.
/// What it does keep in order is a sleep in between; this one is for numbers that do not occur, a NaN with certain bits.
static void computeBeforeNext(Emitter &e, ValueRange values) {
  if (values.empty())
    return;
  PtxAsm code(e);
  std::string text =
      fmt::format("{{\n.reg .pred never;\n.reg .b32 bits;\nmov.b32 bits, {};\n", code.input(values.front()));
  for (Value value : values.drop_front())
    text += fmt::format("and.b32 bits, bits, {};\n", code.input(value));
  code.emit(text + "setp.eq.b32 never, bits, 0x7fc0dead;\n@never nanosleep.u32 1;\n}");
}

SmallVector<Value> NvptxHopper::wgmmaWait(Emitter &e, int pending, ValueRange values, ValueRange kept,
                                          ValueRange computed) {
  computeBeforeNext(e, computed);
  // As words, which is what the multiplies read.
  SmallVector<Value> words;
  if (!kept.empty())
    words = packMmaOperand(e, kept.front().getType().isF32(), kept);
  PtxAsm code(e);
  for (Value value : values)
    code.output(value.getType());
  for (auto [i, value] : llvm::enumerate(values))
    code.initialize(static_cast<int>(i), value);
  for (Value word : words)
    code.input(word);
  return code.emit(pending == waitsForNothing ? std::string()
                                              : fmt::format("wgmma.wait_group.sync.aligned {};", pending));
}

//===--- Clusters of two blocks -----------------------------------------------------------------------------------------===//

Value NvptxHopper::blockInCluster(Emitter &e) {
  return callIntrinsic(e, "llvm.nvvm.read.ptx.sreg.cluster.ctarank", e.getI32Type(), {});
}

void NvptxHopper::clusterBarrier(Emitter &e) {
  PtxAsm(e).emit("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;");
}

//===--- Warp specialisation --------------------------------------------------------------------------------------------===//

void NvptxHopper::namedBarrier(Emitter &e, Value id, int threads, NamedBarrierKind kind) {
  // ptxas reserves all sixteen barriers when the number is in a register, so constants stay in the text.
  PtxAsm code(e);
  std::optional<int64_t> known = e.constantOf(id);
  std::string number = known ? fmt::format("{}", *known) : code.input(id);
  code.emit(fmt::format("bar.{} {}, {};", kind == NamedBarrierKind::Sync ? "sync" : "arrive", number, threads));
}

void NvptxHopper::setMaxRegisters(Emitter &e, int count, bool isIncrease) {
  PtxAsm(e).emit(fmt::format("setmaxnreg.{}.sync.aligned.u32 {};", isIncrease ? "inc" : "dec", count));
}

} // namespace ditron::target
