//===- HostMemory.h - How much memory this process may still take ------------------------------------------*- C++ -*-===//
//
// Memory that is claimed without asking is granted by Linux and paid for later, by whichever process the kernel then kills. So
// whoever is about to take much asks here first. The answer is the least of what the machine has available (MemAvailable),
// what the control groups above this process leave, and what its limits on address space and data do (ulimit -v, -d).
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SUPPORT_HOSTMEMORY_H
#define DITRON_SUPPORT_HOSTMEMORY_H

#include <cstdint>
#include <string>

namespace ditron {

/// In bytes; UINT64_MAX where the system does not say.
uint64_t availableHostMemory();

/// "12.5 GiB"
std::string memoryText(uint64_t bytes);

} // namespace ditron
#endif // DITRON_SUPPORT_HOSTMEMORY_H
