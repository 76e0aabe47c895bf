//===- PackedHalves.cpp - Two 16-bit floats in one word -------------------------------------------------------------------===//
//
// See PackedHalves.h. formPackedHalves runs behind LLVM's optimiser, which would turn the vector back into shifts.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/nvptx/PackedHalves.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

namespace ditron::target {

/// bitcast <low, high> to i32
static llvm::Value *packHalves(llvm::IRBuilder<> &builder, llvm::Value *low, llvm::Value *high) {
  llvm::Value *pair = llvm::PoisonValue::get(llvm::FixedVectorType::get(low->getType(), 2));
  pair = builder.CreateInsertElement(pair, low, uint64_t(0));
  pair = builder.CreateInsertElement(pair, high, uint64_t(1));
  return builder.CreateBitCast(pair, builder.getInt32Ty());
}

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
      word.replaceAllUsesWith(packHalves(builder, low, high));
      replaced.push_back(&word);
    }
  llvm::RecursivelyDeleteTriviallyDeadInstructionsPermissive(replaced);
}

/// Packs the carried pairs of one function.
static void carryPackedHalves(llvm::Function &function) {
  using namespace llvm::PatternMatch;
  llvm::SmallVector<llvm::WeakTrackingVH> words;
  for (llvm::Instruction &instruction : llvm::instructions(function))
    if (llvm::isa<llvm::BitCastInst>(instruction) && instruction.getType()->isIntegerTy(32))
      words.push_back(&instruction);
  auto isOnlyPacked = [](llvm::PHINode *carried) {
    return carried && llvm::all_of(carried->users(), llvm::IsaPred<llvm::InsertElementInst>);
  };
  llvm::DenseMap<std::pair<llvm::Value *, llvm::Value *>, llvm::PHINode *> packed;
  while (!words.empty()) {
    auto *word = llvm::dyn_cast_or_null<llvm::Instruction>(words.pop_back_val());
    llvm::Value *low = nullptr, *high = nullptr;
    if (!word || !match(word, m_BitCast(m_InsertElt(m_InsertElt(m_Value(), m_Value(low), m_SpecificInt(0)),
                                                    m_Value(high), m_SpecificInt(1)))))
      continue;
    auto *first = llvm::dyn_cast<llvm::PHINode>(low), *second = llvm::dyn_cast<llvm::PHINode>(high);
    llvm::PHINode *&carried = packed[{low, high}];
    if (!carried) {
      if (low->getType()->getScalarSizeInBits() != 16 || !isOnlyPacked(first) || !isOnlyPacked(second) ||
          first->getParent() != second->getParent())
        continue;
      carried = llvm::PHINode::Create(word->getType(), first->getNumIncomingValues(), "", first->getIterator());
      llvm::DenseMap<llvm::BasicBlock *, llvm::Value *> incoming; // a block may come in by several edges
      for (llvm::BasicBlock *block : first->blocks()) {
        llvm::Value *&value = incoming[block];
        if (!value) {
          llvm::IRBuilder<> builder(block->getTerminator());
          value = packHalves(builder, first->getIncomingValueForBlock(block), second->getIncomingValueForBlock(block));
          words.push_back(value);
        }
        carried->addIncoming(value, block);
      }
    }
    word->replaceAllUsesWith(carried);
  }
}

void carryPackedHalves(llvm::Module &module) {
  for (llvm::Function &function : module)
    carryPackedHalves(function);
}

} // namespace ditron::target
