//===- PackedHalves.cpp - Two 16-bit floats in one word -------------------------------------------------------------------===//
//
// See PackedHalves.h. Runs behind LLVM's optimiser, which would turn the vector back into shifts.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/nvptx/PackedHalves.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

namespace ditron::target {

void formPackedHalves(llvm::Module &module) {
  using namespace llvm::PatternMatch;
  llvm::SmallVector<llvm::WeakTrackingVH> replaced;
  for (llvm::Function &function : module)
    for (llvm::Instruction &word : llvm::make_early_inc_range(llvm::instructions(function))) {
      llvm::Value *low, *high;
      if (!word.getType()->isIntegerTy(32) ||
          !match(&word, m_c_Or(m_ZExt(m_BitCast(m_Value(low))), m_Shl(m_ZExt(m_BitCast(m_Value(high))), m_SpecificInt(16)))))
        continue;
      llvm::Type *type = low->getType();
      if (type != high->getType() || !(type->isHalfTy() || type->isBFloatTy()))
        continue;
      llvm::IRBuilder<> builder(&word);
      llvm::Value *pair = llvm::PoisonValue::get(llvm::FixedVectorType::get(type, 2));
      pair = builder.CreateInsertElement(pair, low, uint64_t(0));
      pair = builder.CreateInsertElement(pair, high, uint64_t(1));
      word.replaceAllUsesWith(builder.CreateBitCast(pair, word.getType()));
      replaced.push_back(&word);
    }
  llvm::RecursivelyDeleteTriviallyDeadInstructionsPermissive(replaced);
}

} // namespace ditron::target
