//===- Origins.cpp - What the addresses of accesses are made from ---------------------------------------------------------===//
#include "ditron/target/sim/Origins.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

#include <map>
#include <optional>
#include <tuple>

namespace ditron::target {

namespace {

/// A DitronSimOrigin.
using Origin = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>;

/// Functions of abi/Simulator.h that access what an operand points to; the site is the last operand.
struct Accessor {
  llvm::StringLiteral name;
  unsigned address;
};
constexpr Accessor accessors[] = {{"ditron_sim_access", 1},     {"ditron_sim_ld", 1},
                                  {"ditron_sim_st", 1},         {"ditron_sim_atomic_rmw", 3},
                                  {"ditron_sim_atomic_cas", 1}, {"ditron_sim_wait_until", 1},
                                  {"ditron_sim_async_copy", 2}};

/// The functions that read a kernel's arguments from the launch's array.
constexpr llvm::StringLiteral entrySuffix = "__entry";

class OriginFinder {
public:
  explicit OriginFinder(llvm::Module &module) : module(module) {}

  void run() {
    llvm::SmallVector<llvm::CallInst *> accesses, marks;
    for (llvm::Function &function : module)
      for (llvm::Instruction &instruction : llvm::instructions(function))
        if (auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction); call && call->getCalledFunction()) {
          if (call->getCalledFunction()->getName() == sharedArrayName)
            marks.push_back(call);
          else if (accessorOf(*call))
            accesses.push_back(call);
        }
    for (llvm::CallInst *access : accesses)
      if (std::optional<Origin> origin = originOf(access->getArgOperand(accessorOf(*access)->address)))
        if (auto *site = llvm::dyn_cast<llvm::GlobalVariable>(access->getArgOperand(access->arg_size() - 1)))
          access->setArgOperand(access->arg_size() - 1, siteWith(*site, *origin));
    for (llvm::CallInst *mark : marks) {
      mark->replaceAllUsesWith(mark->getArgOperand(0));
      mark->eraseFromParent();
    }
    if (llvm::Function *mark = module.getFunction(sharedArrayName))
      mark->eraseFromParent();
  }

private:
  static const Accessor *accessorOf(const llvm::CallInst &call) {
    const auto *found = llvm::find_if(
        accessors, [&](const Accessor &each) { return call.getCalledFunction()->getName() == each.name; });
    return found == std::end(accessors) ? nullptr : found;
  }

  /// The one thing that all ways to the address begin at.
  std::optional<Origin> originOf(const llvm::Value *address) const {
    llvm::SmallVector<const llvm::Value *> objects;
    llvm::getUnderlyingObjects(address, objects, /*LI=*/nullptr, /*MaxLookup=*/0);
    std::optional<Origin> common;
    for (const llvm::Value *object : objects) {
      if (llvm::isa<llvm::ConstantPointerNull>(object)) // where remote_ptr gives none, nothing can be accessed
        continue;
      const std::optional<Origin> origin = beginning(object);
      if (!origin || (common && *common != *origin))
        return std::nullopt;
      common = origin;
    }
    return common;
  }

  std::optional<Origin> beginning(const llvm::Value *object) const {
    if (const auto *call = llvm::dyn_cast<llvm::CallInst>(object))
      return call->getCalledFunction() && call->getCalledFunction()->getName() == sharedArrayName ? ofArray(*call)
                                                                                                  : std::nullopt;
    if (const auto *argument = llvm::dyn_cast<llvm::Argument>(object))
      return ofKernelsArgument(*argument);
    if (const auto *address = llvm::dyn_cast<llvm::IntToPtrInst>(object))
      return ofPeersPart(*address);
    return ofLoadedArgument(object);
  }

  /// What symm_at becomes: pointer - base[own rank] + base[other rank], where the bases are read through one argument.
  std::optional<Origin> ofPeersPart(const llvm::IntToPtrInst &address) const {
    const llvm::Value *pointer = nullptr;
    llvm::SmallVector<const llvm::Value *, 2> added, taken;
    llvm::SmallVector<std::pair<const llvm::Value *, bool>> open = {{address.getOperand(0), true}};
    while (!open.empty()) {
      const auto [value, isAdded] = open.pop_back_val();
      const auto *sum = llvm::dyn_cast<llvm::BinaryOperator>(value);
      if (sum && (sum->getOpcode() == llvm::Instruction::Add || sum->getOpcode() == llvm::Instruction::Sub)) {
        open.push_back({sum->getOperand(0), isAdded});
        open.push_back({sum->getOperand(1), isAdded == (sum->getOpcode() == llvm::Instruction::Add)});
      } else if (const auto *number = llvm::dyn_cast<llvm::PtrToIntInst>(value); number && isAdded && !pointer) {
        pointer = number->getPointerOperand();
      } else {
        (isAdded ? added : taken).push_back(value);
      }
    }
    if (!pointer || added.size() != 1 || taken.size() != 1)
      return std::nullopt;
    const std::optional<Origin> origin = originOf(pointer), own = ofTable(taken.front()),
                                others = ofTable(added.front());
    return origin && own && own == others && own != origin ? origin : std::nullopt;
  }

  /// The argument that a word is read through.
  std::optional<Origin> ofTable(const llvm::Value *word) const {
    const auto *load = llvm::dyn_cast<llvm::LoadInst>(word);
    return load ? originOf(load->getPointerOperand()) : std::nullopt;
  }

  /// Of a kernel that was not inlined into its entry. Its own numbers say nothing: arguments that nobody uses are gone.
  static std::optional<Origin> ofKernelsArgument(const llvm::Argument &argument) {
    const llvm::Function &function = *argument.getParent();
    const auto *call = function.hasOneUse() ? llvm::dyn_cast<llvm::CallInst>(*function.user_begin()) : nullptr;
    return call && call->getCalledFunction() == &function ? ofLoadedArgument(call->getArgOperand(argument.getArgNo()))
                                                          : std::nullopt;
  }

  static std::optional<Origin> ofArray(const llvm::CallInst &mark) {
    const auto number = [&](unsigned operand) {
      return static_cast<uint32_t>(llvm::cast<llvm::ConstantInt>(mark.getArgOperand(operand))->getZExtValue());
    };
    return Origin{0, number(1), number(2), number(3)};
  }

  /// The entry's own load of an argument: *(T *)arguments[i], where the kernel was inlined there.
  static std::optional<Origin> ofLoadedArgument(const llvm::Value *object) {
    const auto *value = llvm::dyn_cast<llvm::LoadInst>(object);
    const auto *place = value ? llvm::dyn_cast<llvm::LoadInst>(value->getPointerOperand()) : nullptr;
    if (!place || !place->getFunction()->getName().ends_with(entrySuffix))
      return std::nullopt;
    llvm::APInt offset(64, 0);
    const llvm::Value *array = place->getPointerOperand()->stripAndAccumulateConstantOffsets(
        place->getDataLayout(), offset, /*AllowNonInbounds=*/true);
    constexpr uint64_t pointerBytes = 8;
    if (array != place->getFunction()->getArg(0) || offset.isNegative() || offset.urem(pointerBytes) != 0)
      return std::nullopt;
    return Origin{static_cast<uint32_t>(offset.getZExtValue() / pointerBytes + 1), 0, 0, 0};
  }

  llvm::GlobalVariable *global(llvm::Constant *value, const llvm::Twine &name) {
    return new llvm::GlobalVariable(module, value->getType(), /*isConstant=*/true, llvm::GlobalValue::InternalLinkage,
                                    value, name);
  }

  llvm::Constant *constantOf(const Origin &origin) {
    llvm::Constant *&made = origins[origin];
    if (!made) {
      const auto &[argument, offset, bytes, line] = origin;
      llvm::Type *word = llvm::Type::getInt32Ty(module.getContext());
      made = global(
          llvm::ConstantStruct::getAnon({llvm::ConstantInt::get(word, argument), llvm::ConstantInt::get(word, offset),
                                         llvm::ConstantInt::get(word, bytes), llvm::ConstantInt::get(word, line)}),
          "ditron_origin");
    }
    return made;
  }

  /// The same place with the origin.
  llvm::Constant *siteWith(const llvm::GlobalVariable &site, const Origin &origin) {
    llvm::Constant *&made = sites[{&site, origin}];
    if (!made) {
      llvm::SmallVector<llvm::Constant *> fields;
      const auto *record = llvm::cast<llvm::ConstantStruct>(site.getInitializer());
      for (const llvm::Use &field : record->operands())
        fields.push_back(llvm::cast<llvm::Constant>(field.get()));
      fields.back() = constantOf(origin);
      made = global(llvm::ConstantStruct::get(record->getType(), fields), site.getName());
    }
    return made;
  }

  llvm::Module &module;
  std::map<Origin, llvm::Constant *> origins;
  std::map<std::pair<const llvm::GlobalVariable *, Origin>, llvm::Constant *> sites;
};

} // namespace

void nameOrigins(llvm::Module &module) { OriginFinder(module).run(); }

} // namespace ditron::target
