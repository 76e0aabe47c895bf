//===- ForkGate.h - fork() while other threads are in the library ---------------------------------------------*- C++ -*-===//
//
// A forked child has the memory of all threads and runs one of them: a mutex that another thread held, or a static variable that it
// was initialising, stays so for ever, and the child hangs where it needs it. LLVM, MLIR and the C++ library have hundreds of
// both. So a fork waits until no other thread is inside of a ForkGate: not for ever, since what runs there may wait for the very
// child that is being made.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SUPPORT_FORKGATE_H
#define DITRON_SUPPORT_FORKGATE_H

#include <chrono>

namespace ditron {

/// While one exists, fork() called by another thread waits, for `longest` at most. May be nested; to be destroyed by the thread
/// that made it. Costs two uncontended locks.
class ForkGate {
public:
  static constexpr std::chrono::seconds longest{2};

  ForkGate();
  ~ForkGate();
  ForkGate(const ForkGate &) = delete;
  ForkGate &operator=(const ForkGate &) = delete;
};

/// Within a ForkGate, around a wait for a GPU or for other processes that holds nothing a child could need: forks go ahead.
class ForkGateOpen {
public:
  ForkGateOpen();
  ~ForkGateOpen();
  ForkGateOpen(const ForkGateOpen &) = delete;
  ForkGateOpen &operator=(const ForkGateOpen &) = delete;

private:
  unsigned depth; ///< Of this thread, to be restored.
};

} // namespace ditron
#endif // DITRON_SUPPORT_FORKGATE_H
