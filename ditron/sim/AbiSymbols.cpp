//===- AbiSymbols.cpp - The simulator's functions by name ---------------------------------------------------------===//
//
// Those of abi/Simulator.def, and the mathematical functions of the device.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/AbiSymbols.h"

#include "ditron/abi/Simulator.h"
#include "ditron/sim/arithmetic/DeviceFunctions.h"

#include <vector>

namespace ditron::sim {

std::span<const AbiSymbol> abiSymbols() {
  static const AbiSymbol engine[] = {
#define DITRON_SIM_FUNCTION(name) {"ditron_sim_" #name, reinterpret_cast<void *>(&ditron_sim_##name)},
#include "ditron/abi/Simulator.def"
  };
  static const std::vector<AbiSymbol> symbols = [] {
    std::vector<AbiSymbol> all(std::begin(engine), std::end(engine));
    all.insert(all.end(), deviceFunctions().begin(), deviceFunctions().end());
    return all;
  }();
  return symbols;
}

} // namespace ditron::sim
