//===- PreparingKernel.h - The host is about to launch a kernel ---------------------------------------------------*- C++ -*-===//
//
// Compiling a kernel takes longer than anything else that a host does between two launches. Runtimes that keep launches back until
// the host has nothing more to add must not take that for the end (runtime/cuda/SubmissionQueue.h).
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SUPPORT_PREPARINGKERNEL_H
#define DITRON_SUPPORT_PREPARINGKERNEL_H

#include <atomic>

namespace ditron {

/// Exists while a thread of this process makes a kernel. A hint: nothing is wrong without it.
class PreparingKernel {
public:
  PreparingKernel() { ++count; }
  ~PreparingKernel() { --count; }
  PreparingKernel(const PreparingKernel &) = delete;
  PreparingKernel &operator=(const PreparingKernel &) = delete;

  static bool any() { return count.load() != 0; }

private:
  static inline std::atomic<unsigned> count = 0;
};

} // namespace ditron
#endif // DITRON_SUPPORT_PREPARINGKERNEL_H
