//===- BuiltinKeywords.cpp - String arguments as enumerations ---------------------------------------------------------===//
//
// Tables of words, one per enumeration.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/BuiltinKeywords.h"

#include <fmt/format.h>

namespace ditron::frontend::builtins {
namespace {

template <typename Enum> struct Word {
  llvm::StringLiteral text;
  Enum value;
};

template <typename Enum>
std::optional<Enum> readWord(Importer &importer, BuiltinCall &call, llvm::StringRef name,
                             llvm::ArrayRef<Word<Enum>> words) {
  llvm::StringRef text = call.text(name);
  std::string known;
  for (const Word<Enum> &word : words) {
    if (word.text == text)
      return word.value;
    known += fmt::format("{}'{}'", known.empty() ? "" : ", ", word.text.str());
  }
  importer.emit.error(call.rangeOf(name), fmt::format("argument '{}' of {} cannot be '{}'; it is one of {}", name.str(),
                                                      qualifiedName(*call.builtin), text.str(), known));
  return std::nullopt;
}

} // namespace

std::optional<tile::MemoryOrder> memoryOrderOf(Importer &importer, BuiltinCall &call, llvm::StringRef name,
                                               tile::MemoryOrder missing) {
  using O = tile::MemoryOrder;
  static constexpr Word<O> words[] = {
      {"relaxed", O::Relaxed}, {"acquire", O::Acquire}, {"release", O::Release}, {"acq_rel", O::AcquireRelease}};
  if (call.isNone(name))
    return missing;
  // AMD's names.
  llvm::StringRef text = call.text(name);
  if (text == "monotonic" || text == "acquire_release")
    return text == "monotonic" ? O::Relaxed : O::AcquireRelease;
  return readWord<O>(importer, call, name, words);
}

std::optional<tile::MemoryScope> memoryScopeOf(Importer &importer, BuiltinCall &call, llvm::StringRef name,
                                               tile::MemoryScope missing) {
  using S = tile::MemoryScope;
  static constexpr Word<S> words[] = {{"gpu", S::Gpu}, {"cta", S::Block}, {"sys", S::System}};
  if (call.isNone(name))
    return missing;
  // AMD's names.
  llvm::StringRef text = call.text(name);
  if (text == "agent" || text == "system" || text == "workgroup")
    return text == "agent" ? S::Gpu : text == "system" ? S::System : S::Block;
  return readWord<S>(importer, call, name, words);
}

std::optional<tile::CacheModifier> cacheModifierOf(Importer &importer, BuiltinCall &call, llvm::StringRef name) {
  using C = tile::CacheModifier;
  static constexpr Word<C> forLoads[] = {{"", C::None}, {".ca", C::CA}, {".cg", C::CG}, {".cs", C::CS}, {".cv", C::CV}};
  static constexpr Word<C> forStores[] = {
      {"", C::None}, {".wb", C::WB}, {".cg", C::CG}, {".cs", C::CS}, {".wt", C::WT}};
  if (call.builtin->name == "load")
    return readWord<C>(importer, call, name, forLoads);
  return readWord<C>(importer, call, name, forStores);
}

std::optional<tile::EvictionPolicy> evictionPolicyOf(Importer &importer, BuiltinCall &call, llvm::StringRef name) {
  using E = tile::EvictionPolicy;
  static constexpr Word<E> words[] = {{"", E::Normal}, {"evict_first", E::EvictFirst}, {"evict_last", E::EvictLast}};
  return readWord<E>(importer, call, name, words);
}

std::optional<tile::DotPrecision> dotPrecisionOf(Importer &importer, BuiltinCall &call, llvm::StringRef name) {
  using P = tile::DotPrecision;
  static constexpr Word<P> words[] = {{"tf32", P::TF32}, {"tf32x3", P::TF32x3}, {"ieee", P::IEEE},
                                      {"bf16x3", P::BF16x3}, {"bf16x6", P::BF16x6}};
  return readWord<P>(importer, call, name, words);
}

std::optional<tile::ReductionOrderingAttr> reductionOrderingOf(Importer &importer, BuiltinCall &call) {
  using R = tile::ReductionOrdering;
  static constexpr Word<R> words[] = {{"unordered", R::Unordered}, {"inner_tree", R::InnerTree}};
  if (call.isNone("reduction_ordering"))
    return tile::ReductionOrderingAttr();
  std::optional<R> ordering = readWord<R>(importer, call, "reduction_ordering", words);
  if (!ordering)
    return std::nullopt;
  return tile::ReductionOrderingAttr::get(importer.emit.builder.getContext(), *ordering);
}

std::optional<dist::Compare> compareOf(Importer &importer, BuiltinCall &call, llvm::StringRef name) {
  using C = dist::Compare;
  static constexpr Word<C> words[] = {{"eq", C::EQ}, {"ne", C::NE}, {"gt", C::GT},
                                      {"ge", C::GE}, {"lt", C::LT}, {"le", C::LE}};
  return readWord<C>(importer, call, name, words);
}

std::optional<dist::SignalOp> signalOpOf(Importer &importer, BuiltinCall &call, llvm::StringRef name) {
  using S = dist::SignalOp;
  static constexpr Word<S> words[] = {{"set", S::Set}, {"add", S::Add}};
  return readWord<S>(importer, call, name, words);
}

std::optional<dist::CommScope> commScopeOf(Importer &importer, BuiltinCall &call, llvm::StringRef name) {
  using S = dist::CommScope;
  static constexpr Word<S> words[] = {{"gpu", S::Gpu}, {"intra_node", S::IntraNode}, {"inter_node", S::InterNode}};
  return readWord<S>(importer, call, name, words);
}

} // namespace ditron::frontend::builtins
