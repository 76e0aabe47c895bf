//===- BuiltinHandlers.h - The C++ functions that the stubs name ---------------------------------------------*- C++ -*-===//
//
// One declaration for each handler, made from library/*.pyi by ditron-stub-table: what the stub says of the parameters is what the
// function gets, so the two cannot disagree. Only the handlers' files and the table include this. Private to the room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_BUILTINHANDLERS_H
#define DITRON_FRONTEND_BUILTINHANDLERS_H

#include "ditron/frontend/builtins/BuiltinArguments.h"
#include "ditron/frontend/builtins/BuiltinKeywords.h"
#include "ditron/frontend/Evaluator.h"

namespace ditron::frontend::builtins {
#include "ditron/frontend/BuiltinHandlers.inc"
} // namespace ditron::frontend::builtins

#endif // DITRON_FRONTEND_BUILTINHANDLERS_H
