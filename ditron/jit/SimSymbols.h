//===- SimSymbols.h - The simulator's functions by name -------------------------------------------------*- C++ -*-===//
//
// Addresses of everything in sim/Abi.h, for linking. Naming them also keeps the static linker from dropping them.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_JIT_SIMSYMBOLS_H
#define DITRON_JIT_SIMSYMBOLS_H

#include <span>

namespace ditron::jit {

struct SimSymbol {
  const char *name;
  void *address;
};

std::span<const SimSymbol> simSymbols();

} // namespace ditron::jit
#endif // DITRON_JIT_SIMSYMBOLS_H
