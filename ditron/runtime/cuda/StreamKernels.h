//===- StreamKernels.h - The few kernels that the runtime itself needs ----------------------------------------*- C++ -*-===//
//
// PTX of one-thread kernels that stand in where the driver has no stream operation: adding to a signal, waiting with a
// comparison that cuStreamWaitValue lacks, and a delay that makes a rank slow in tests.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_CUDA_STREAMKERNELS_H
#define DITRON_RUNTIME_CUDA_STREAMKERNELS_H

namespace ditron::cuda {

/// Needs PTX ISA 6.2 and compute capability 7.0: every GPU and driver that we run on.
///   ditron_signal_add_32/64   (u64 address, u64 value)
///   ditron_signal_write_32/64 (u64 address, u64 value)
///   ditron_signal_wait_32/64  (u64 address, u64 value, u32 compare)   compare: runtime::Compare; signed
///   ditron_delay              (u64 nanoseconds)
extern const char *const streamKernelsPtx;

} // namespace ditron::cuda
#endif // DITRON_RUNTIME_CUDA_STREAMKERNELS_H
