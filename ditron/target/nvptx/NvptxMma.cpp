//===- NvptxMma.cpp - NVIDIA leaves: dots -----------------------------------------------------------------------------------===//
//
// One mma.sync per fragment triple. Operands narrower than 32 bits travel packed, neighbours of the instruction's element
// order in one register. The loop over K is outermost, so that consecutive instructions do not depend on each other.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/nvptx/NvptxTargetInfo.h"
#include "ditron/target/nvptx/PtxAsm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace mlir;
using namespace ditron::layout;

namespace ditron::target {

namespace {
/// The instruction for a kind of dot.
struct MmaInstruction {
  std::string text; ///< Without operands.
  Type accumulator;
};
} // namespace

static MmaInstruction instructionFor(Emitter &e, const MmaDot &dot) {
  switch (dot.kind) {
  case MmaKind::M16N8K16B16: {
    const char *type = dot.operandType.isBF16() ? "bf16" : "f16";
    return {fmt::format("mma.sync.aligned.m16n8k16.row.col.f32.{0}.{0}.f32", type), e.getF32Type()};
  }
  case MmaKind::M16N8K8TF32:
    return {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", e.getF32Type()};
  case MmaKind::M8N8K4F64:
    return {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", e.getF64Type()};
  case MmaKind::M16N8K32B8:
    break;
  }
  return {"mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32", e.getI32Type()};
}

/// Rounds an f32 to tf32, to nearest with ties away from zero; the result is the register that mma takes.
static Value toTf32(Emitter &e, Value value) {
  PtxAsm code(e);
  std::string result = code.output(e.getI32Type()), operand = code.input(value);
  return code.emit(fmt::format("cvt.rna.tf32.f32 {}, {};", result, operand), /*hasEffects=*/false)[0];
}

SmallVector<Value> packMmaOperand(Emitter &e, bool isTf32, ValueRange elements) {
  SmallVector<Value> words;
  if (isTf32) {
    llvm::DenseMap<Value, Value> rounded; // values may be used in several places, as copies
    for (Value element : elements) {
      Value &word = rounded[element];
      if (!word)
        word = toTf32(e, element);
      words.push_back(word);
    }
    return words;
  }
  if (elements.front().getType().isF64())
    return SmallVector<Value>(elements);
  size_t perWord = 32 / Emitter::bitWidth(elements.front().getType());
  for (size_t begin = 0; begin < elements.size(); begin += perWord)
    words.push_back(LLVM::BitcastOp::create(e, e.getI32Type(), e.packVector(elements.slice(begin, perWord))));
  return words;
}

static SmallVector<Value> emitMma(Emitter &e, const MmaInstruction &instruction, ValueRange a, ValueRange b,
                                  ValueRange c) {
  PtxAsm code(e);
  SmallVector<std::string> results;
  for (size_t i = 0; i < c.size(); ++i)
    results.push_back(code.output(instruction.accumulator));
  auto list = [&](ValueRange values) {
    std::string names;
    for (Value value : values)
      names += (names.empty() ? "" : ", ") + code.input(value);
    return names;
  };
  std::string listA = list(a), listB = list(b), listC = list(c);
  return code.emit(fmt::format("{} {{{}}}, {{{}}}, {{{}}}, {{{}}};", instruction.text, fmt::join(results, ", "),
                               listA, listB, listC),
                   /*hasEffects=*/false);
}

SmallVector<Value> NvptxTargetInfo::mma(Emitter &e, const MmaDot &dot) {
  MmaInstruction instruction = instructionFor(e, dot);
  bool isTf32 = dot.kind == MmaKind::M16N8K8TF32;
  SmallVector<Value> a = packMmaOperand(e, isTf32, dot.a), b = packMmaOperand(e, isTf32, dot.b), c = dot.c;
  size_t regsA = a.size() / (dot.mTiles * dot.kTiles), regsB = b.size() / (dot.kTiles * dot.nTiles),
         regsC = c.size() / (dot.mTiles * dot.nTiles);
  for (int k = 0; k < dot.kTiles; ++k)
    for (int m = 0; m < dot.mTiles; ++m)
      for (int n = 0; n < dot.nTiles; ++n) {
        size_t atC = (size_t(m) * dot.nTiles + n) * regsC;
        SmallVector<Value> sums =
            emitMma(e, instruction, ValueRange(a).slice((size_t(m) * dot.kTiles + k) * regsA, regsA),
                    ValueRange(b).slice((size_t(k) * dot.nTiles + n) * regsB, regsB), ValueRange(c).slice(atC, regsC));
        llvm::copy(sums, c.begin() + atC);
      }
  return c;
}

SmallVector<Value> NvptxTargetInfo::fmaDot(Emitter &e, const FmaDot &dot) {
  SmallVector<Value> c = dot.c;
  for (int k = 0; k < dot.k; ++k)
    for (int m = 0; m < dot.m; ++m)
      for (int n = 0; n < dot.n; ++n) {
        Value a = dot.a[size_t(m) * dot.k + k], b = dot.b[size_t(k) * dot.n + n], &sum = c[size_t(m) * dot.n + n];
        if (isa<IntegerType>(dot.accumulatorType))
          sum = LLVM::AddOp::create(e, sum, LLVM::MulOp::create(e, a, b));
        else
          sum = LLVM::FMAOp::create(e, a, b, sum);
      }
  return c;
}

} // namespace ditron::target
