//===- Precompiled.h - Precompiled header of the evaluator ----------------------------------------------------*- C++ -*-===//
//
// Only to be precompiled: no source includes it. Every source still includes what it uses; the build without precompiled
// headers (DITRON_USE_PCH=OFF) proves it.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"
#include "ditron/frontend/Iterators.h"
#include "ditron/frontend/Vectors.h"
#include "ditron/frontend/builtins/BuiltinHandlers.h"
#include "ditron/frontend/natives/Natives.h"
#include "ditron/frontend/syntax/AstPrinter.h"
#include "ditron/support/Plural.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
