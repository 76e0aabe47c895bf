//===- EngineTrace.h - What the engine tells the trace --------------------------------------------------*- C++ -*-===//
//
// Each of these draws one thing that the engine knows; all are called only while the trace records (Trace::isEnabled).
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_REPORT_ENGINETRACE_H
#define DITRON_SIM_REPORT_ENGINETRACE_H

#include "ditron/abi/Simulator.h"
#include "ditron/sim/Machine.h"

#include <string>

namespace ditron::sim {

class Block;
class CopyEngine;
class Stream;
struct PendingTransfer;
struct StreamOp;
struct Waiter;
struct Writer;

/// What a block has read or written on another rank, in one allocation.
struct RemoteTraffic {
  std::string name; ///< Of the allocation.
  const void *allocation = nullptr;
  uint32_t peer = 0;
  bool isWrite = false;
  uint64_t bytes = 0, accesses = 0;
  SimTime begin = 0, end = 0;
  const DitronSimSite *site = nullptr; ///< Of the first access.
};

/// A wait ends at `when`; the writer, who ended it, may be null.
void traceWaitEnd(Machine::State &engine, const Waiter &waiter, const Writer *writer, SimTime when);
void traceBlock(const Block &block, SimTime end, bool isFinished);
/// The operation at the stream's head, which began at `start`.
void traceStreamOperation(const Stream &stream, SimTime start, SimTime end, bool isFinished);
/// The copy in front of a copy engine.
void traceCopy(const CopyEngine &copyEngine, SimTime end, bool isFinished);
/// A transfer of kernels: arrived, or still under way. Gives the track on which it is drawn.
uint32_t traceTransfer(Machine::State &engine, const PendingTransfer &transfer, uint32_t rank, SimTime end,
                       bool isFinished);
/// The copy unit of the block's SM moves the bytes of a tensor copy.
void traceTensorCopy(const Block &block, std::string_view what, SimTime start, SimTime end, uint64_t bytes,
                     const DitronSimSite *site);
/// The tensor cores of the block's SM carry out a warpgroup's multiply.
void traceMultiply(const Block &block, SimTime start, SimTime end, uint32_t n, uint32_t k);
/// Host code of a rank, or (Machine outside of runRanks) of none, was busy with that.
void traceHost(Machine::State &engine, std::string_view what, SimTime start, SimTime end, bool isFinished = true);
/// The run has failed: everything that has not ended reaches up to the end of time.
void traceUnfinished(Machine::State &engine);

} // namespace ditron::sim

#endif // DITRON_SIM_REPORT_ENGINETRACE_H
