//===- BuiltinsTarget.cpp - Questions about the target --------------------------------------------------------------------===//
//
// tl.target_info: compile-time answers. The simulator answers as the GPU that it simulates.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Importer.h"

namespace ditron::frontend::builtins {

LangValue targetIsCuda(Importer &, BuiltinCall &) { return LangValue::boolean(true); }

LangValue targetIsOther(Importer &, BuiltinCall &) { return LangValue::boolean(false); }

LangValue cudaCapabilityAtLeast(Importer &importer, BuiltinCall &call) {
  int64_t wanted = 10 * call.integer("major") + call.integer("minor");
  return LangValue::boolean(importer.options.capability >= wanted);
}

} // namespace ditron::frontend::builtins
