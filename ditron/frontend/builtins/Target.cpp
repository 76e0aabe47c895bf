//===- Target.cpp - Questions about the target --------------------------------------------------------------------===//
//
// tl.target_info: compile-time answers. The simulator answers as the GPU that it simulates.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/builtins/BuiltinHandlers.h"

namespace ditron::frontend::builtins {

LangValue targetIsCuda(Evaluator &evaluator, BuiltinCall &call) { return LangValue::boolean(true); }

LangValue targetIsOther(Evaluator &evaluator, BuiltinCall &call) { return LangValue::boolean(false); }

LangValue cudaCapabilityAtLeast(Evaluator &evaluator, BuiltinCall &call, Arg<int64_t> major, Arg<int64_t> minor) {
  int64_t wanted = 10 * *major + *minor;
  return LangValue::boolean(evaluator.options.capability >= wanted);
}

} // namespace ditron::frontend::builtins
