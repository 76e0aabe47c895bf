//===- CutBlocks.cpp - Long straight code becomes several functions -------------------------------------------------------===//
//
// See CutBlocks.h. For each long block: positions are counted, for each position the values that are alive there, cuts are chosen
// from front to back, and the instructions between two cuts move into a function.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/sim/CutBlocks.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

#include <algorithm>
#include <numeric>

namespace ditron::target {

namespace {

/// Instructions of a part: at least, and at most unless too much is alive.
constexpr size_t shortestPart = 600;
constexpr size_t longestPart = 1000;

/// Values alive at a cut. A kernel of pointers and counters has a dozen; a chain of dots hundreds.
constexpr int mostLiveValues = 64;

/// Bytes of variables of a function that is cut: from then on none shares its place with another (removeLifetimes). Kernels have
/// 128, for the accesses that a call of the engine compares.
constexpr uint64_t mostVariableBytes = 16384;

constexpr llvm::StringLiteral partAttribute = "ditron-part";

/// Whether the code generator may make one fused operation of the two, of which the second uses the first.
bool mayFuse(const llvm::Instruction &first, const llvm::Instruction &second) {
  switch (first.getOpcode()) {
  case llvm::Instruction::FMul:
  case llvm::Instruction::FNeg:
  case llvm::Instruction::FPExt:
    break;
  default:
    return false;
  }
  switch (second.getOpcode()) {
  case llvm::Instruction::FAdd:
  case llvm::Instruction::FSub:
  case llvm::Instruction::FNeg:
  case llvm::Instruction::FPExt:
    return true;
  default:
    return false;
  }
}

/// What a cut in front of each instruction of a block would cost.
class CutCosts {
public:
  explicit CutCosts(llvm::BasicBlock &block) : alive(block.size() + 1), pairs(block.size() + 1) {
    for (llvm::Instruction &instruction : block)
      positions.try_emplace(&instruction, positions.size());
    llvm::DenseMap<const llvm::Value *, size_t> outside; // the last use of each value from elsewhere
    for (llvm::Instruction &instruction : block) {
      addUses(instruction);
      for (const llvm::Value *operand : instruction.operands())
        if (llvm::isa<llvm::Argument, llvm::Instruction>(operand) && !positions.contains(operand))
          outside[operand] = positions[&instruction];
    }
    for (auto [value, last] : outside)
      add(alive, 0, last);
    std::partial_sum(alive.begin(), alive.end(), alive.begin());
    std::partial_sum(pairs.begin(), pairs.end(), pairs.begin());
  }

  /// Values that a cut would have to pass on.
  int values(size_t position) const { return alive[position]; }
  bool isAllowed(size_t position) const { return pairs[position] == 0 && alive[position] <= mostLiveValues; }

private:
  /// One more for each cut behind `first` that is not behind `last`.
  static void add(std::vector<int> &counts, size_t first, size_t last) {
    if (first == last)
      return;
    ++counts[first + 1];
    if (last + 1 < counts.size())
      --counts[last + 1];
  }

  void addUses(const llvm::Instruction &value) {
    const size_t from = positions[&value];
    size_t last = from;
    for (const llvm::User *user : value.users()) {
      auto found = positions.find(user);
      const bool isInBlock = found != positions.end() && !llvm::isa<llvm::PHINode>(user);
      const size_t to = isInBlock ? found->second : positions.size() - 1;
      last = std::max(last, to);
      if (isInBlock && mayFuse(value, *llvm::cast<llvm::Instruction>(user)))
        add(pairs, from, to);
    }
    add(alive, from, last);
  }

  llvm::DenseMap<const llvm::Value *, size_t> positions;
  std::vector<int> alive, pairs;
};

/// Instructions that must stay with the frame they were written for.
bool mustStay(const llvm::Instruction &instruction) {
  if (llvm::isa<llvm::AllocaInst, llvm::PHINode>(instruction) || instruction.getType()->isTokenTy())
    return true;
  const auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  return call && (call->isMustTailCall() || call->hasFnAttr(llvm::Attribute::ReturnsTwice));
}

/// The instructions in front of which to cut, in order: parts lie between two of them, what is before the first and after the last
/// stays.
std::vector<llvm::Instruction *> chooseCuts(llvm::BasicBlock &block) {
  const CutCosts costs(block);
  std::vector<llvm::Instruction *> cuts;
  llvm::Instruction *best = nullptr;
  size_t position = 0, bestPosition = 0, lastCut = 0;
  for (llvm::Instruction &instruction : block) {
    const size_t at = position++;
    if (mustStay(instruction)) { // nothing before it moves
      cuts.clear();
      best = nullptr;
      lastCut = at + 1;
      continue;
    }
    const size_t least = cuts.empty() ? 0 : shortestPart;
    if (at >= lastCut + least && costs.isAllowed(at) && (!best || costs.values(at) <= costs.values(bestPosition))) {
      best = &instruction;
      bestPosition = at;
    }
    if (best && (at >= lastCut + longestPart || instruction.isTerminator())) {
      cuts.push_back(best);
      lastCut = bestPosition;
      best = nullptr;
    }
  }
  return cuts;
}

/// A part of a block, and what it needs from outside and gives to it.
struct Part {
  llvm::Instruction *first, *end; ///< `end` stays.
  llvm::SetVector<llvm::Value *> arguments;
  llvm::SmallVector<llvm::Instruction *> results;

  /// One result is returned, several go through memory.
  bool hasRecord() const { return results.size() > 1; }
  llvm::StructType *record() const {
    llvm::SmallVector<llvm::Type *> types;
    for (const llvm::Instruction *result : results)
      types.push_back(result->getType());
    return llvm::StructType::get(first->getContext(), types);
  }
};

Part describePart(llvm::Instruction *first, llvm::Instruction *end) {
  Part part{first, end, {}, {}};
  llvm::SmallPtrSet<const llvm::Value *, 32> inside;
  auto range = llvm::make_range(first->getIterator(), end->getIterator());
  for (llvm::Instruction &instruction : range)
    inside.insert(&instruction);
  for (llvm::Instruction &instruction : range) {
    for (llvm::Value *operand : instruction.operands())
      if (llvm::isa<llvm::Argument, llvm::Instruction>(operand) && !inside.contains(operand))
        part.arguments.insert(operand);
    if (llvm::any_of(instruction.users(), [&](const llvm::User *user) { return !inside.contains(user); }))
      part.results.push_back(&instruction);
  }
  return part;
}

/// Makes the function that a part becomes: its arguments, and the place of its results when there are several.
llvm::Function *createPartFunction(const Part &part, unsigned number) {
  llvm::Function &whole = *part.first->getFunction();
  llvm::LLVMContext &context = whole.getContext();
  llvm::SmallVector<llvm::Type *> types;
  for (const llvm::Value *argument : part.arguments)
    types.push_back(argument->getType());
  if (part.hasRecord())
    types.push_back(llvm::PointerType::get(context, 0));
  llvm::Type *returned = part.results.size() == 1 ? part.results.front()->getType() : llvm::Type::getVoidTy(context);
  auto *function = llvm::Function::Create(llvm::FunctionType::get(returned, types, false), llvm::GlobalValue::InternalLinkage,
                                          whole.getName() + ".part." + llvm::Twine(number), whole.getParent());
  function->setCallingConv(llvm::CallingConv::Fast);
  function->addFnAttr(llvm::Attribute::NoInline);
  function->addFnAttr(partAttribute);
  if (whole.doesNotThrow())
    function->setDoesNotThrow();
  return function;
}

/// Moves the instructions of a part into its function, where arguments stand for what was computed outside.
void movePart(const Part &part, llvm::Function &function) {
  auto *body = llvm::BasicBlock::Create(function.getContext(), "", &function);
  body->splice(body->end(), part.first->getParent(), part.first->getIterator(), part.end->getIterator());
  llvm::DenseMap<const llvm::Value *, llvm::Value *> inside;
  for (auto [index, argument] : llvm::enumerate(part.arguments))
    inside[argument] = function.getArg(index);
  for (llvm::Instruction &instruction : *body)
    for (llvm::Use &operand : instruction.operands())
      if (auto found = inside.find(operand.get()); found != inside.end())
        operand.set(found->second);
}

/// Moves a part into a function of its own and calls it where it was. `place` is where several results are handed over.
void outline(const Part &part, llvm::AllocaInst *place, unsigned number) {
  llvm::Function &function = *createPartFunction(part, number);
  llvm::SmallVector<llvm::Value *> arguments(part.arguments.begin(), part.arguments.end());
  if (part.hasRecord())
    arguments.push_back(place);
  movePart(part, function);
  llvm::IRBuilder<> outside(part.end);
  llvm::CallInst *call = outside.CreateCall(&function, arguments);
  call->setCallingConv(function.getCallingConv());

  llvm::IRBuilder<> inside(&function.getEntryBlock());
  llvm::StructType *record = part.record();
  for (auto [index, result] : llvm::enumerate(part.results)) {
    llvm::Value *received = call;
    if (part.hasRecord())
      received = outside.CreateLoad(result->getType(), outside.CreateStructGEP(record, place, index));
    result->replaceUsesWithIf(received, [&](const llvm::Use &use) {
      return llvm::cast<llvm::Instruction>(use.getUser())->getFunction() != &function;
    });
    if (part.hasRecord())
      inside.CreateStore(result, inside.CreateStructGEP(record, function.getArg(part.arguments.size()), index));
  }
  if (part.results.size() == 1)
    inside.CreateRet(part.results.front());
  else
    inside.CreateRetVoid();
}

/// Bytes of the function's own variables.
uint64_t variableBytes(const llvm::Function &function) {
  uint64_t bytes = 0;
  for (const llvm::Instruction &instruction : function.getEntryBlock())
    if (const auto *variable = llvm::dyn_cast<llvm::AllocaInst>(&instruction))
      bytes += variable->getAllocationSize(function.getDataLayout()).value_or(llvm::TypeSize::getFixed(0));
  return bytes;
}

/// Lifetimes may be said only where the variable is; without them its place is taken all the time.
void removeLifetimes(llvm::Function &function) {
  for (llvm::BasicBlock &block : function)
    for (llvm::Instruction &instruction : llvm::make_early_inc_range(block))
      if (auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction); call && call->isLifetimeStartOrEnd())
        call->eraseFromParent();
}

/// A place of the function's frame for the results of any one of the parts.
llvm::AllocaInst *createPlace(llvm::ArrayRef<Part> parts, llvm::Function &function) {
  uint64_t bytes = 0;
  llvm::Align alignment;
  for (const Part &part : parts)
    if (part.hasRecord()) {
      const llvm::StructLayout *layout = function.getDataLayout().getStructLayout(part.record());
      bytes = std::max<uint64_t>(bytes, layout->getSizeInBytes());
      alignment = std::max(alignment, layout->getAlignment());
    }
  if (bytes == 0)
    return nullptr;
  llvm::IRBuilder<> entry(&*function.getEntryBlock().getFirstInsertionPt());
  llvm::AllocaInst *place = entry.CreateAlloca(llvm::ArrayType::get(entry.getInt8Ty(), bytes));
  place->setAlignment(alignment);
  return place;
}

void cutBlock(llvm::BasicBlock &block, unsigned &number) {
  const std::vector<llvm::Instruction *> cuts = chooseCuts(block);
  llvm::SmallVector<Part> parts;
  for (size_t i = 0; i + 1 < cuts.size(); ++i)
    parts.push_back(describePart(cuts[i], cuts[i + 1]));
  llvm::AllocaInst *place = createPlace(parts, *block.getParent());
  for (size_t i = 0; i < parts.size(); ++i)
    outline(describePart(cuts[i], cuts[i + 1]), place, number++);
}

} // namespace

void cutLongBlocks(llvm::Module &module) {
  llvm::SmallVector<llvm::BasicBlock *> blocks;
  for (llvm::Function &function : module) {
    if (function.getSubprogram())
      continue;
    const size_t before = blocks.size();
    for (llvm::BasicBlock &block : function)
      if (block.size() > longBlock)
        blocks.push_back(&block);
    if (blocks.size() == before)
      continue;
    if (variableBytes(function) <= mostVariableBytes)
      removeLifetimes(function);
    else
      blocks.truncate(before);
  }
  unsigned number = 0;
  for (llvm::BasicBlock *block : blocks)
    cutBlock(*block, number);
}

bool isPartOfFunction(const llvm::Function &function) { return function.hasFnAttribute(partAttribute); }

} // namespace ditron::target
