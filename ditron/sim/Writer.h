//===- Writer.h - Who wrote a word ----------------------------------------------------------------------*- C++ -*-===//
//
// The record that answers "who wrote this last" in deadlock reports and draws arrows in traces.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_WRITER_H
#define DITRON_SIM_WRITER_H

#include "ditron/sim/Abi.h"
#include "ditron/sim/Machine.h"

namespace ditron::sim {

struct Writer {
  enum class Kind : uint8_t {
    None,   ///< Nobody that the machine saw.
    Kernel, ///< A thread of a kernel; name is the kernel's.
    Stream, ///< A stream operation; name is the stream's.
    Copy,   ///< A copy engine; name is the copy's.
  };
  Kind kind = Kind::None;
  uint32_t rank = 0;
  uint32_t name = 0;  ///< Index into the trace's table of names.
  uint32_t track = 0; ///< Track of the trace on which the write happened.
  uint32_t block[3] = {0, 0, 0};
  const DitronSimSite *site = nullptr; ///< Of a kernel.
  SimTime time = 0;
};

} // namespace ditron::sim

#endif // DITRON_SIM_WRITER_H
