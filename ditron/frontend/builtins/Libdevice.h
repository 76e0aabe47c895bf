//===- Libdevice.h - The functions of libdevice as functions of the language ---------------------------------*- C++ -*-===//
//
// Libdevice.def as rows of the table of functions.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_LIBDEVICE_H
#define DITRON_FRONTEND_LIBDEVICE_H

#include "ditron/frontend/builtins/Builtins.h"

namespace ditron::frontend {

/// Appends a row for every name.
void addLibdeviceRows(std::vector<Builtin> &rows);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_LIBDEVICE_H
