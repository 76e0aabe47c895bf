//===- Fault.h - Accesses of memory that is not there ---------------------------------------------------*- C++ -*-===//
//
// Without bounds checks a kernel may touch any address, and the system answers with SIGSEGV or SIGBUS. While fibers run, that
// signal is turned into the end of the run: the handler, on a signal stack of its own, lets the faulting fiber go on in a
// function that fails the thread as a bounds check would, with the line of the last access that was announced. What lay on the fiber's
// stack is lost, which is nothing that owns anything but at most a message or a buffer of the engine.
//
// With bounds checks such a fault is a bug of ours, and is reported as one. A fault outside of fibers is left to whoever handled
// the signal before.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_MEMORY_FAULT_H
#define DITRON_SIM_MEMORY_FAULT_H

namespace ditron::sim {

/// Makes this operating-system thread and the process ready; cheap when they are.
void prepareForFaults();

} // namespace ditron::sim

#endif // DITRON_SIM_MEMORY_FAULT_H
