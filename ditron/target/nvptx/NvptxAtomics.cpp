//===- NvptxAtomics.cpp - NVIDIA leaves: atomics ----------------------------------------------------------------------------===//
//
// One atom instruction each, guarded by the predicate; ptxas turns those whose result is unused into reductions. What the
// hardware lacks:
//   - max and min of floats: as signed integers where the operand's sign bit is clear, as unsigned with the opposite
//     operation where it is set (the order of the bit patterns; NaN is not handled, as in the language);
//   - addition on bf16 before sm_90, max and min of 16-bit floats: LLVM's expansion into a compare-and-swap loop.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/Patterns.h"
#include "ditron/target/nvptx/NvptxTargetInfo.h"
#include "ditron/target/nvptx/PtxAsm.h"

#include <fmt/format.h>

using namespace mlir;

namespace ditron::target {

/// ".acq_rel.gpu" and the like.
static std::string semantics(tile::MemoryOrder order, tile::MemoryScope scope) {
  return fmt::format(".{}{}", tile::stringifyMemoryOrder(order).str(), ptxScope(scope).str());
}

/// One atom instruction on a register-sized value.
static Value emitAtom(Emitter &e, StringRef operation, Value address, Value value, Value predicate,
                      tile::MemoryOrder order, tile::MemoryScope scope) {
  PtxAsm code(e);
  std::string old = code.output(value.getType());
  std::string guard = code.guard(predicate), to = code.input(address), operand = code.input(value);
  return code.emit(fmt::format("{}atom{}{}.{} {}, [{}], {};", guard, semantics(order, scope), ptxSpace(address).str(), operation.str(), old,
                               to, operand))[0];
}

/// max and min of floats by way of integers.
static Value emitFloatExtremum(Emitter &e, bool isMax, Value address, Value value, Value predicate,
                               tile::MemoryOrder order, tile::MemoryScope scope) {
  Value bits = e.toBits(value);
  unsigned width = Emitter::bitWidth(bits.getType());
  Value isNegative = e.compare(LLVM::ICmpPredicate::slt, bits, e.constant(bits.getType(), 0));
  Value isPositive = e.bitXor(isNegative, e.i1(true));
  Value positive = emitAtom(e, fmt::format("{}.s{}", isMax ? "max" : "min", width), address, bits,
                            e.conjunction(predicate, isPositive), order, scope);
  Value negative = emitAtom(e, fmt::format("{}.u{}", isMax ? "min" : "max", width), address, bits,
                            e.conjunction(predicate, isNegative), order, scope);
  return e.fromBits(e.select(isNegative, negative, positive), value.getType());
}

static LLVM::AtomicOrdering llvmOrdering(tile::MemoryOrder order) {
  switch (order) {
  case tile::MemoryOrder::Relaxed:
    return LLVM::AtomicOrdering::monotonic;
  case tile::MemoryOrder::Acquire:
    return LLVM::AtomicOrdering::acquire;
  case tile::MemoryOrder::Release:
    return LLVM::AtomicOrdering::release;
  case tile::MemoryOrder::AcquireRelease:
    return LLVM::AtomicOrdering::acq_rel;
  }
  return LLVM::AtomicOrdering::acq_rel;
}

static StringRef llvmScope(tile::MemoryScope scope) {
  return scope == tile::MemoryScope::Block ? "block" : scope == tile::MemoryScope::Gpu ? "device" : "";
}

Value NvptxTargetInfo::atomicRmw(Emitter &e, tile::AtomicOp op, Type semanticType, Value ptr, Value value,
                                 Value predicate, tile::MemoryOrder order, tile::MemoryScope scope) {
  Value address = addressIn(e, ptr, AddressSpace::Global);
  unsigned width = Emitter::bitWidth(value.getType());
  // What no instruction does on 16 bits.
  auto expanded = [&](LLVM::AtomicBinOp operation) {
    return emitIf(e, predicate, value.getType(), [&](Emitter &inner) -> SmallVector<Value> {
      return {LLVM::AtomicRMWOp::create(inner, operation, address, value, llvmOrdering(order), llvmScope(scope),
                                        /*alignment=*/2)};
    })[0];
  };
  switch (op) {
  case tile::AtomicOp::FMax:
  case tile::AtomicOp::FMin:
    if (width == 16)
      return expanded(op == tile::AtomicOp::FMax ? LLVM::AtomicBinOp::fmax : LLVM::AtomicBinOp::fmin);
    return emitFloatExtremum(e, op == tile::AtomicOp::FMax, address, value, predicate, order, scope);
  case tile::AtomicOp::FAdd:
    if (width > 16)
      return emitAtom(e, fmt::format("add.f{}", width), address, value, predicate, order, scope);
    if (value.getType().isBF16() && !architecture.hasBf16Atomics())
      return expanded(LLVM::AtomicBinOp::fadd);
    return e.fromBits(emitAtom(e, value.getType().isBF16() ? "add.noftz.bf16" : "add.noftz.f16", address,
                               e.toBits(value), predicate, order, scope),
                      value.getType());
  default:
    break;
  }
  auto instruction = [&]() -> std::string {
    switch (op) {
    case tile::AtomicOp::Add:
      return fmt::format("add.u{}", width);
    case tile::AtomicOp::And:
      return fmt::format("and.b{}", width);
    case tile::AtomicOp::Or:
      return fmt::format("or.b{}", width);
    case tile::AtomicOp::Xor:
      return fmt::format("xor.b{}", width);
    case tile::AtomicOp::Max:
      return fmt::format("max.s{}", width);
    case tile::AtomicOp::Min:
      return fmt::format("min.s{}", width);
    case tile::AtomicOp::UMax:
      return fmt::format("max.u{}", width);
    case tile::AtomicOp::UMin:
      return fmt::format("min.u{}", width);
    default:
      return fmt::format("exch.b{}", width);
    }
  };
  Value old = emitAtom(e, instruction(), address, e.toBits(value), predicate, order, scope);
  return e.fromBits(old, value.getType());
}

Value NvptxTargetInfo::atomicCas(Emitter &e, Value ptr, Value compare, Value value, tile::MemoryOrder order,
                                 tile::MemoryScope scope) {
  Value bits = e.toBits(value);
  PtxAsm code(e);
  std::string old = code.output(bits.getType());
  Value place = addressIn(e, ptr, AddressSpace::Global);
  std::string address = code.input(place);
  std::string expected = code.input(e.toBits(compare)), desired = code.input(bits);
  Value seen = code.emit(fmt::format("atom{}{}.cas.b{} {}, [{}], {}, {};", semantics(order, scope), ptxSpace(place).str(),
                                     Emitter::bitWidth(bits.getType()), old, address, expected, desired))[0];
  return e.fromBits(seen, value.getType());
}

} // namespace ditron::target
