//===- DeviceCode.cpp - Calls of device code that is written in C -----------------------------------------------------------===//
//
// See DeviceCode.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/nvptx/DeviceCode.h"

#include "ditron/devicelib/DeviceLibrary.h"

#include "mlir/IR/BuiltinOps.h"

#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/SourceMgr.h"

#include <fmt/format.h>

using namespace mlir;

namespace ditron::target {

static constexpr llvm::StringLiteral prefix = "ditron_device_";

void callDevice(Emitter &e, StringRef function, ValueRange arguments) {
  auto module = e.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  if (!module.lookupSymbol(function)) {
    OpBuilder::InsertionGuard guard(e);
    e.setInsertionPointToStart(module.getBody());
    SmallVector<Type> types(arguments.getTypes());
    auto declared = LLVM::LLVMFuncOp::create(
        e, function, LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(e.getContext()), types));
    declared.setNoUnwind(true);
  }
  LLVM::CallOp::create(e, TypeRange(), function, arguments);
}

Status linkDeviceCode(llvm::Module &module) {
  bool isNeeded = false;
  for (const llvm::Function &function : module)
    isNeeded |= function.isDeclaration() && function.getName().starts_with(prefix);
  if (!isNeeded)
    return Status::ok();
  const DeviceSource source = nvptxDeviceSource("copy");
  llvm::SMDiagnostic problem;
  std::unique_ptr<llvm::Module> library = llvm::parseIR(
      llvm::MemoryBufferRef(llvm::StringRef(source.text.data(), source.text.size()), "devicelib"), problem, module.getContext());
  if (!library)
    return internalError(fmt::format("the embedded device code '{}' does not parse: {}", source.path, problem.getMessage().str()));
  library->setDataLayout(module.getDataLayout());
  library->setTargetTriple(module.getTargetTriple());
  // It was compiled for the least architecture, freestanding; functions of different kinds are not inlined into each other.
  for (llvm::Function &function : *library)
    for (const char *name : {"target-cpu", "target-features", "frame-pointer", "stack-protector-buffer-size", "no-builtins"})
      function.removeFnAttr(name);
  if (llvm::Linker::linkModules(module, std::move(library), llvm::Linker::Flags::LinkOnlyNeeded))
    return internalError(fmt::format("cannot link the embedded device code '{}'", source.path));
  for (llvm::Function &function : module)
    if (!function.isDeclaration() && function.getName().starts_with(prefix))
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
  return Status::ok();
}

} // namespace ditron::target
