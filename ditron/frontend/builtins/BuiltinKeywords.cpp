//===- BuiltinKeywords.cpp - String arguments as enumerations ---------------------------------------------------------===//
//
// Tables of words, one per enumeration.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/builtins/BuiltinKeywords.h"

#include <fmt/format.h>

namespace ditron::frontend::builtins {
namespace {

template <typename Enum> struct Word {
  llvm::StringLiteral text;
  Enum value;
};

template <typename Enum>
std::optional<Enum> readWord(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument, llvm::ArrayRef<Word<Enum>> words,
                             bool ignoresCase = false) {
  llvm::StringRef text = argument.given->constant().getString();
  std::string known;
  for (const Word<Enum> &word : words) {
    if (word.text == text || (ignoresCase && word.text.equals_insensitive(text)))
      return word.value;
    known += fmt::format("{}'{}'", known.empty() ? "" : ", ", word.text.str());
  }
  evaluator.emit.error(argument.range, fmt::format("argument '{}' of {} cannot be '{}'; it is one of {}", argument.name(),
                                                  qualifiedName(*call.builtin), text.str(), known));
  return std::nullopt;
}

} // namespace

std::optional<tile::MemoryOrder> memoryOrderOf(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument,
                                               tile::MemoryOrder missing) {
  using O = tile::MemoryOrder;
  static constexpr Word<O> words[] = {
      {"relaxed", O::Relaxed}, {"acquire", O::Acquire}, {"release", O::Release}, {"acq_rel", O::AcquireRelease}};
  if (argument.given->isNone() || argument.given->constant().getString().empty())
    return missing;
  // AMD's names.
  llvm::StringRef text = argument.given->constant().getString();
  if (text == "monotonic" || text == "acquire_release")
    return text == "monotonic" ? O::Relaxed : O::AcquireRelease;
  return readWord<O>(evaluator, call, argument, words);
}

std::optional<tile::MemoryScope> memoryScopeOf(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument,
                                               tile::MemoryScope missing) {
  using S = tile::MemoryScope;
  static constexpr Word<S> words[] = {{"gpu", S::Gpu}, {"cta", S::Block}, {"sys", S::System}};
  if (argument.given->isNone() || argument.given->constant().getString().empty())
    return missing;
  // AMD's names.
  llvm::StringRef text = argument.given->constant().getString();
  if (text == "agent" || text == "system" || text == "workgroup")
    return text == "agent" ? S::Gpu : text == "system" ? S::System : S::Block;
  return readWord<S>(evaluator, call, argument, words);
}

std::optional<tile::CacheModifier> cacheModifierOf(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument, bool isLoad) {
  using C = tile::CacheModifier;
  static constexpr Word<C> forLoads[] = {{"", C::None}, {".ca", C::CA}, {".cg", C::CG}, {".cs", C::CS}, {".cv", C::CV}};
  static constexpr Word<C> forStores[] = {
      {"", C::None}, {".wb", C::WB}, {".cg", C::CG}, {".cs", C::CS}, {".wt", C::WT}};
  return readWord<C>(evaluator, call, argument, isLoad ? llvm::ArrayRef(forLoads) : llvm::ArrayRef(forStores));
}

std::optional<tile::EvictionPolicy> evictionPolicyOf(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument) {
  using E = tile::EvictionPolicy;
  static constexpr Word<E> words[] = {{"", E::Normal}, {"evict_first", E::EvictFirst}, {"evict_last", E::EvictLast}};
  return readWord<E>(evaluator, call, argument, words);
}

std::optional<tile::DotPrecision> dotPrecisionOf(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument) {
  using P = tile::DotPrecision;
  static constexpr Word<P> words[] = {{"tf32", P::TF32}, {"tf32x3", P::TF32x3}, {"ieee", P::IEEE},
                                      {"bf16x3", P::BF16x3}, {"bf16x6", P::BF16x6}};
  return readWord<P>(evaluator, call, argument, words, /*ignoresCase=*/true);
}

std::optional<dist::Compare> compareOf(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument) {
  using C = dist::Compare;
  static constexpr Word<C> words[] = {{"eq", C::EQ}, {"ne", C::NE}, {"gt", C::GT},
                                      {"ge", C::GE}, {"lt", C::LT}, {"le", C::LE}};
  return readWord<C>(evaluator, call, argument, words);
}

std::optional<dist::SignalOp> signalOpOf(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument) {
  using S = dist::SignalOp;
  static constexpr Word<S> words[] = {{"set", S::Set}, {"add", S::Add}};
  return readWord<S>(evaluator, call, argument, words);
}

std::optional<dist::CommScope> commScopeOf(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument) {
  using S = dist::CommScope;
  static constexpr Word<S> words[] = {{"gpu", S::Gpu}, {"intra_node", S::IntraNode}, {"inter_node", S::InterNode}};
  return readWord<S>(evaluator, call, argument, words);
}

std::optional<tile::ReductionOrderingAttr> reductionOrderingOf(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument) {
  using R = tile::ReductionOrdering;
  static constexpr Word<R> words[] = {{"unordered", R::Unordered}, {"inner_tree", R::InnerTree}};
  if (argument.given->isNone())
    return tile::ReductionOrderingAttr();
  std::optional<R> ordering;
  // tl.ReductionOrdering's numbers, or the words.
  if (argument.given->isConstant() && argument.given->constant().isIntegral())
    ordering = argument.given->constant().isTrue() ? R::InnerTree : R::Unordered;
  else if (argument.given->isString())
    ordering = readWord<R>(evaluator, call, argument, words);
  else
    evaluator.emit.error(argument.range, fmt::format("argument '{}' of {} must be a tl.ReductionOrdering, but got {}",
                                                    argument.name(), qualifiedName(*call.builtin), argument.given->describe()));
  if (!ordering)
    return std::nullopt;
  return tile::ReductionOrderingAttr::get(evaluator.emit.builder.getContext(), *ordering);
}

} // namespace ditron::frontend::builtins
