//===- BuiltinsTarget.cpp - Questions about the target --------------------------------------------------------------------===//
//
// tl.target_info: compile-time answers. The simulator answers as the GPU that it simulates.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/BuiltinHandlers.h"

namespace ditron::frontend::builtins {

LangValue targetIsCuda(Importer &importer, BuiltinCall &call) { return LangValue::boolean(true); }

LangValue targetIsOther(Importer &importer, BuiltinCall &call) { return LangValue::boolean(false); }

LangValue cudaCapabilityAtLeast(Importer &importer, BuiltinCall &call, Arg<int64_t> major, Arg<int64_t> minor) {
  int64_t wanted = 10 * *major + *minor;
  return LangValue::boolean(importer.options.capability >= wanted);
}

} // namespace ditron::frontend::builtins
