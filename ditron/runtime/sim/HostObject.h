//===- HostObject.h - Compiled code for simulated targets into this process ------------------------------*- C++ -*-===//
//
// A kernel for a simulated target is a relocatable object of this machine (ArtifactCode::HostObject). This maps its sections,
// puts the addresses in, and makes the code executable: a linker as small as our objects need it, so that a program which
// only runs kernels carries none.
//
//   section        mapped as                     relocations  what they take
//   .text          readable, executable          R_X86_64_64, PC64, 32, 32S      an address
//   .rodata        readable                      PC32; PLT32                     a distance; that to a stub, for functions elsewhere
//   .data, .bss    readable, writable            GOTPCREL, (REX_)GOTPCRELX       the distance to a word with the address
//
// Names that the object does not define are the simulator's functions (sim/AbiSymbols.h), then those of the process: libm and
// libc. The bytes are taken as hostile as far as the linker goes: offsets, counts and types are checked, and what is not known
// is an error. What the code does when it runs is another matter: like any library that a program loads, it is trusted.
//
// x86-64 only: objects of other machines are refused by name.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_SIM_HOSTOBJECT_H
#define DITRON_RUNTIME_SIM_HOSTOBJECT_H

#include "ditron/runtime/Kernel.h"

namespace ditron::runtime {

/// Maps the object and finds its entry. The image's owner keeps it mapped.
Expected<ModuleImage> loadHostObject(std::string_view object, std::string_view entrySymbol);

/// The image of any artifact: host objects are mapped; what a GPU's driver loads is handed on.
Expected<ModuleImage> makeImage(const Artifact &artifact);

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_SIM_HOSTOBJECT_H
