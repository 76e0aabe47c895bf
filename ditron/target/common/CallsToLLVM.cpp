//===- CallsToLLVM.cpp - tile.extern_call and tile.inline_asm -------------------------------------------------------------===//
//
// A function of a device library is called by its name once per register; the target or the simulator has it. Assembly takes the
// elements of `pack` registers of a thread at a time: those narrower than 32 bits share registers as far as a pack goes, and
// what is missing in the last pack is undefined.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/Patterns.h"

using namespace mlir;

namespace ditron::target {
LLVM::LLVMFuncOp declareLibraryFunction(Emitter &e, StringRef symbol, Type result, TypeRange operands, bool isPure) {
  auto module = e.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(symbol))
    return known;
  OpBuilder::InsertionGuard guard(e);
  e.setInsertionPointToStart(module.getBody());
  auto type = LLVM::LLVMFunctionType::get(result, SmallVector<Type>(operands));
  auto function = LLVM::LLVMFuncOp::create(e, symbol, type);
  function.setNoUnwind(true);
  if (isPure) {
    SmallVector<LLVM::ModRefInfo> none(6, LLVM::ModRefInfo::NoModRef);
    function.setMemoryEffectsAttr(LLVM::MemoryEffectsAttr::get(e.getContext(), none));
    function.setWillReturn(true);
  }
  return function;
}

namespace {

class ExternCallPattern : public TilePattern<tile::ExternCallOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::ExternCallOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Type result = target.storageType(tile::elementTypeOf(op.getType()));
    auto call = [&](ValueRange operands) -> Values {
      LLVM::LLVMFuncOp function = declareLibraryFunction(e, op.getSymbol(), result, operands.getTypes(), op.getIsPure());
      return {LLVM::CallOp::create(e, function, operands).getResult()};
    };
    SmallVector<Type> types;
    if (failed(getTypeConverter()->convertType(op.getType(), types)))
      return rewriter.notifyMatchFailure(op, "type has no lowering");
    SmallVector<ValueRange> operands(adaptor.getArgs().begin(), adaptor.getArgs().end());
    rewriter.replaceOpWithMultiple(op, applyToRegisters(types.size(), 1, operands, call));
    return success();
  }
};

/// The integer type that holds so many elements of a pack, as a register of the assembly's class must be wide.
Type registerType(Emitter &e, StringRef constraint) {
  switch (constraint.back()) {
  case 'f': return e.getF32Type();
  case 'd': return e.getF64Type();
  case 'l': return e.getI64Type();
  case 'h': return e.getIntegerType(16);
  default: return e.getI32Type();
  }
}

class InlineAsmPattern : public TilePattern<tile::InlineAsmOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::InlineAsmOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    SmallVector<StringRef> constraints;
    op.getConstraints().split(constraints, ',');
    SmallVector<Type> outputTypes;
    for (StringRef &constraint : constraints)
      if ((constraint = constraint.trim()).starts_with("="))
        outputTypes.push_back(registerType(e, constraint));
    ArrayRef<StringRef> inputs = ArrayRef(constraints).drop_front(outputTypes.size());

    SmallVector<SmallVector<Type>> types;
    for (Type type : op.getResultTypes())
      if (failed(getTypeConverter()->convertType(type, types.emplace_back())))
        return rewriter.notifyMatchFailure(op, "type has no lowering");
    size_t pack = op.getPack(), registers = types.empty() ? 1 : types.front().size();
    for (ValueRange argument : adaptor.getArgs())
      registers = std::max(registers, argument.size());

    SmallVector<Values> results(op.getNumResults());
    for (size_t first = 0; first < registers; first += pack) {
      Values operands;
      for (ValueRange argument : adaptor.getArgs())
        packOperand(e, argument, first, pack, inputs.drop_front(operands.size()), outputTypes, operands);
      FailureOr<SmallVector<Value>> outputs =
          target.inlineAsm(e, op.getAssembly(), op.getConstraints(), operands, outputTypes, op.getIsPure());
      if (failed(outputs))
        return outputs;
      ArrayRef<Value> rest(*outputs);
      for (auto [result, resultTypes] : llvm::zip_equal(results, types))
        unpackResult(e, rest, resultTypes, pack, result);
    }
    rewriter.replaceOpWithMultiple(op, results);
    return success();
  }

private:
  /// Elements of `width` bits that share a register.
  static size_t sharing(unsigned width, size_t pack) { return width < 32 ? std::min<size_t>(pack, 32 / width) : 1; }

  static Type typeFor(Emitter &e, StringRef constraint, ArrayRef<Type> outputs) {
    unsigned tied = 0;
    return constraint.getAsInteger(10, tied) ? registerType(e, constraint) : outputs[tied];
  }

  void packOperand(Emitter &e, ValueRange argument, size_t first, size_t pack, ArrayRef<StringRef> constraints, ArrayRef<Type> outputs,
                   Values &operands) const {
    Type element = memoryType(argument.front().getType());
    unsigned width = Emitter::bitWidth(element);
    size_t share = sharing(width, pack);
    for (size_t begin = 0; begin < pack; begin += share, constraints = constraints.drop_front()) {
      Type type = typeFor(e, constraints.front(), outputs);
      Type wide = e.getIntegerType(Emitter::bitWidth(type));
      Value word;
      for (size_t i = 0; i < share; ++i) {
        size_t index = first + begin + i;
        if (index >= argument.size())
          continue;
        Value bits = e.zextOrTrunc(e.toBits(toMemory(e, argument[index])), wide);
        bits = e.shl(bits, static_cast<int>(i * width));
        word = word ? e.bitOr(word, bits) : bits;
      }
      operands.push_back(word ? e.fromBits(word, type) : LLVM::PoisonOp::create(e, type).getResult());
    }
  }

  /// Takes the registers of one result's pack from the front of `outputs`.
  static void unpackResult(Emitter &e, ArrayRef<Value> &outputs, ArrayRef<Type> types, size_t pack, Values &result) {
    Type storage = types.front();
    unsigned width = Emitter::bitWidth(memoryType(storage));
    size_t share = sharing(width, pack);
    for (size_t begin = 0; begin < pack; begin += share, outputs = outputs.drop_front()) {
      Value bits = e.toBits(outputs.front());
      for (size_t i = 0; i < share && result.size() < types.size(); ++i) {
        Value part = e.zextOrTrunc(e.lshr(bits, static_cast<int>(i * width)), e.getIntegerType(width));
        result.push_back(fromMemory(e, e.fromBits(part, memoryType(storage)), storage));
      }
    }
  }
};

} // namespace

void populateCallPatterns(RewritePatternSet &patterns, const LoweringContext &lowering) {
  patterns.add<ExternCallPattern, InlineAsmPattern>(patterns.getContext(), lowering);
}

} // namespace ditron::target
