//===- DeviceFunctions.h - libdevice on the host -----------------------------------------------------------*- C++ -*-===//
//
// The functions of support/Libdevice.def under their names, for kernels that run in the simulator. Integer and bit functions and
// those with a direction of rounding are exact; functions of one to three fp32 numbers are computed in fp64 and rounded once.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_ARITHMETIC_DEVICEFUNCTIONS_H
#define DITRON_SIM_ARITHMETIC_DEVICEFUNCTIONS_H

#include "ditron/sim/AbiSymbols.h"

#include <span>

namespace ditron::sim {

/// All functions, by name.
std::span<const AbiSymbol> deviceFunctions();

/// Special functions that the C library lacks.
double inverseErf(double y);
double inverseErfc(double z);
/// exp(x * x) * erfc(x).
double scaledErfc(double x);
/// Modified Bessel functions of the first kind, of order 0 and 1.
double besselI(int order, double x);

} // namespace ditron::sim

#endif // DITRON_SIM_ARITHMETIC_DEVICEFUNCTIONS_H
