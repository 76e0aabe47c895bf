//===- PtxAsm.cpp - Inline PTX --------------------------------------------------------------------------------------------===//
//
// See PtxAsm.h. Register classes: LLVM's NVPTX backend, "b" predicate, "h" 16, "r" 32 and "l" 64 bits, "f" and "d" floats.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/nvptx/PtxAsm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace mlir;

namespace ditron::target {

static char registerClass(Type type) {
  if (type.isF32())
    return 'f';
  if (type.isF64())
    return 'd';
  if (auto pointer = dyn_cast<LLVM::LLVMPointerType>(type))
    return pointer.getAddressSpace() == 3 ? 'r' : 'l';
  switch (type.getIntOrFloatBitWidth()) {
  case 1:
    return 'b';
  case 16:
    return 'h';
  case 32:
    return 'r';
  default:
    return 'l';
  }
}

std::string PtxAsm::output(Type type) {
  constraints += fmt::format("{}={}", constraints.empty() ? "" : ",", registerClass(type));
  results.push_back(type);
  return fmt::format("${}", results.size() - 1);
}

std::string PtxAsm::input(Value value) {
  constraints += fmt::format("{}{}", constraints.empty() ? "" : ",", registerClass(value.getType()));
  operands.push_back(value);
  return fmt::format("${}", results.size() + operands.size() - 1);
}

void PtxAsm::initialize(int index, Value value) {
  constraints += fmt::format("{}{}", constraints.empty() ? "" : ",", index);
  operands.push_back(value);
}

std::string PtxAsm::guard(Value predicate) { return predicate ? fmt::format("@{} ", input(predicate)) : ""; }

SmallVector<Value> PtxAsm::emit(StringRef text, bool hasEffects) {
  return emitInlineAsm(e, text, constraints, operands, results, hasEffects);
}

SmallVector<Value> emitInlineAsm(Emitter &e, StringRef text, StringRef constraints, ValueRange operands, ArrayRef<Type> results,
                                 bool hasEffects) {
  Type type;
  if (results.size() == 1)
    type = results.front();
  else if (results.size() > 1)
    type = LLVM::LLVMStructType::getLiteral(e.getContext(), results);
  auto op = LLVM::InlineAsmOp::create(
      e, type ? TypeRange(type) : TypeRange(), operands, text, constraints, hasEffects, /*is_align_stack=*/false,
      LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr::get(e.getContext(), LLVM::AsmDialect::AD_ATT),
      ArrayAttr());
  if (results.empty())
    return {};
  if (results.size() == 1)
    return {op.getResult(0)};
  SmallVector<Value> values;
  for (size_t i = 0; i < results.size(); ++i)
    values.push_back(LLVM::ExtractValueOp::create(e, op.getResult(0), static_cast<int64_t>(i)));
  return values;
}

Value callIntrinsic(Emitter &e, StringRef name, Type result, ValueRange arguments) {
  if (!result) {
    LLVM::CallIntrinsicOp::create(e, e.getStringAttr(name), arguments);
    return {};
  }
  return LLVM::CallIntrinsicOp::create(e, result, e.getStringAttr(name), arguments).getResult(0);
}

std::string ptxVector(ArrayRef<std::string> names) {
  return names.size() == 1 ? names.front() : fmt::format("{{{}}}", fmt::join(names, ", "));
}

} // namespace ditron::target
