//===- NvptxDebug.cpp - Prints and assertions of kernels -------------------------------------------------------------------===//
//
// Through vprintf, which the driver provides to every module: a format and an array of arguments, each at a multiple of its
// size. The driver prints when the host next waits for the GPU.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/nvptx/NvptxTargetInfo.h"

#include <fmt/format.h>

using namespace mlir;

namespace ditron::target {
namespace {

/// The address of a text with its terminating zero; one constant for equal texts.
Value textAddress(Emitter &e, ModuleOp module, StringRef text) {
  std::string bytes = text.str();
  bytes.push_back('\0');
  LLVM::GlobalOp global;
  unsigned count = 0;
  for (auto each : module.getOps<LLVM::GlobalOp>()) {
    count += each.getSymName().starts_with("__ditron_text_");
    auto value = dyn_cast_or_null<StringAttr>(each.getValueOrNull());
    if (value && value.getValue() == bytes && each.getSymName().starts_with("__ditron_text_"))
      global = each;
  }
  if (!global) {
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    // The place of a call would be looked for in a function.
    global = LLVM::GlobalOp::create(builder, module.getLoc(), LLVM::LLVMArrayType::get(e.getI8Type(), bytes.size()),
                                    /*isConstant=*/true, LLVM::Linkage::Internal, fmt::format("__ditron_text_{}", count),
                                    builder.getStringAttr(bytes), /*alignment=*/1, /*addrSpace=*/0);
  }
  return LLVM::AddressOfOp::create(e, e.pointerType(), global.getSymName());
}

} // namespace

void NvptxTargetInfo::print(Emitter &e, StringRef format, ValueRange values) {
  auto module = e.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  if (!module.lookupSymbol("vprintf")) {
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    LLVM::LLVMFuncOp::create(builder, e.getLoc(), "vprintf",
                             LLVM::LLVMFunctionType::get(e.getI32Type(), {e.pointerType(), e.pointerType()}));
  }
  // All slots have 8 bytes; 32-bit numbers fill the gaps of a C struct, so their offsets are counted.
  Value array = e.allocaAtEntry(e.getI64Type(), std::max<int64_t>(1, values.size()), 8);
  int64_t offset = 0;
  for (Value value : values) {
    int64_t bytes = isa<LLVM::LLVMPointerType>(value.getType()) ? 8 : Emitter::bitWidth(value.getType()) / 8;
    offset = (offset + bytes - 1) / bytes * bytes;
    LLVM::StoreOp::create(e, value, e.addBytes(array, offset));
    offset += bytes;
  }
  LLVM::CallOp::create(e, TypeRange(e.getI32Type()), "vprintf", ValueRange{textAddress(e, module, format), array});
}

void NvptxTargetInfo::assertionFailed(Emitter &e, StringRef format, ValueRange values) {
  // The line of the source comes from the debugger's tables; the message says what and which block.
  SmallVector<Value> all;
  for (int axis = 0; axis < 3; ++axis)
    all.push_back(programId(e, axis));
  all.append(values.begin(), values.end());
  print(e, "block (%u, %u, %u): assertion failed: " + format.str() + "\n", all);
  LLVM::InlineAsmOp::create(e, TypeRange(), ValueRange(), "trap;", "", /*has_side_effects=*/true, /*is_align_stack=*/false,
                            LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
}

} // namespace ditron::target
