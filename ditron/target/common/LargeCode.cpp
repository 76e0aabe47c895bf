//===- LargeCode.cpp - What LLVM is spared for long straight code ---------------------------------------------------------===//
//
// See LargeCode.h. How deep the vectoriser looks is an option of the process; it is set once and for all modules.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/LargeCode.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"

#include <mutex>

namespace ditron::target {

size_t largestBlock(const llvm::Module &module) {
  size_t largest = 0;
  for (const llvm::Function &function : module)
    for (const llvm::BasicBlock &block : function)
      largest = std::max(largest, block.size());
  return largest;
}

void boundVectoriser(llvm::PipelineTuningOptions &tuning, const llvm::Module &module) {
  static std::once_flag once;
  std::call_once(once, [] {
    constexpr llvm::StringLiteral name = "slp-recursion-max-depth";
    auto &options = llvm::cl::getRegisteredOptions();
    if (auto found = options.find(name); found != options.end())
      found->second->addOccurrence(1, name, "8");
  });
  tuning.SLPVectorization = largestBlock(module) <= largeUnoptimisedBlock;
}

bool LargeCodeGate::shouldRunPass(llvm::StringRef pass, llvm::StringRef) const {
  constexpr llvm::StringLiteral leftOut[] = {"slsr", "nary-reassociate", "post-RA-sched"};
  return !llvm::is_contained(leftOut, pass);
}

} // namespace ditron::target
