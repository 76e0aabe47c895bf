//===- BuiltinKeywords.h - String arguments as enumerations ---------------------------------------------------*- C++ -*-===//
//
// The language names memory orders, scopes, cache hints and comparisons by strings; the IR has enumerations. Each function
// here reads one argument of a call and reports unknown words with the list of known ones. Private to the room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_BUILTINKEYWORDS_H
#define DITRON_FRONTEND_BUILTINKEYWORDS_H

#include "ditron/dialect/dist/Dist.h"
#include "ditron/frontend/Evaluator.h"

namespace ditron::frontend::builtins {

/// nullopt after a reported error; an argument that is None gives the default.
std::optional<tile::MemoryOrder> memoryOrderOf(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument,
                                               tile::MemoryOrder missing);
std::optional<tile::MemoryScope> memoryScopeOf(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument,
                                               tile::MemoryScope missing);
/// An empty text gives None or Normal. Loads and stores allow different words.
std::optional<tile::CacheModifier> cacheModifierOf(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument, bool isLoad);
std::optional<tile::EvictionPolicy> evictionPolicyOf(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument);
std::optional<tile::DotPrecision> dotPrecisionOf(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument);
std::optional<dist::Compare> compareOf(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument);
std::optional<dist::SignalOp> signalOpOf(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument);
std::optional<dist::CommScope> commScopeOf(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument);

/// No ordering when the argument is None.
std::optional<tile::ReductionOrderingAttr> reductionOrderingOf(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument);

} // namespace ditron::frontend::builtins

#endif // DITRON_FRONTEND_BUILTINKEYWORDS_H
