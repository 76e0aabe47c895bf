//===- AbiSymbols.h - The simulator's functions by name -------------------------------------------------*- C++ -*-===//
//
// Addresses of everything in ditron/abi/Simulator.h, and of the functions of libdevice, for linking compiled kernels. Naming them also keeps the static linker from dropping
// them.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_ABISYMBOLS_H
#define DITRON_SIM_ABISYMBOLS_H

#include <span>

namespace ditron::sim {

struct AbiSymbol {
  const char *name;
  void *address;
};

std::span<const AbiSymbol> abiSymbols();

} // namespace ditron::sim
#endif // DITRON_SIM_ABISYMBOLS_H
