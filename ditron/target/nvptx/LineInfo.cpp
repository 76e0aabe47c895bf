//===- LineInfo.cpp - Source lines in PTX ---------------------------------------------------------------------------------===//
//
// See LineInfo.h. LLVM's translation understands single places, not ranges and names, so these are reduced first; MLIR's pass
// then gives every function and inlined call its scope.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/nvptx/LineInfo.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace ditron::target {

OwningOpRef<ModuleOp> withLineInfo(ModuleOp module) {
  OwningOpRef<ModuleOp> copy = module.clone();
  AttrTypeReplacer reduce;
  reduce.addReplacement([](FileLineColRange range) -> Attribute {
    return FileLineColLoc::get(range.getFilename(), range.getStartLine(), range.getStartColumn());
  });
  reduce.addReplacement([&reduce](NameLoc name) -> std::optional<std::pair<Attribute, WalkResult>> {
    return std::pair(reduce.replace(Attribute(LocationAttr(name.getChildLoc()))), WalkResult::skip());
  });
  reduce.recursivelyReplaceElementsIn(*copy, /*replaceAttrs=*/false, /*replaceLocs=*/true, /*replaceTypes=*/false);
  PassManager passes(copy->getContext());
  passes.enableVerifier(false);
  LLVM::DIScopeForLLVMFuncOpPassOptions options;
  options.emissionKind = LLVM::DIEmissionKind::DebugDirectivesOnly;
  passes.addPass(LLVM::createDIScopeForLLVMFuncOpPass(options));
  if (failed(passes.run(*copy)))
    return {};
  return copy;
}

} // namespace ditron::target
