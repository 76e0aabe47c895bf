//===- FakeCuda.h - What tests ask of the stand-in for libcuda ----------------------------------------------*- C++ -*-===//
//
// A shared library with the driver's symbols that we use, so that the CUDA backend's logic is tested without a GPU. Memory is
// host memory (descriptors of physical memory are memfds, so that they travel between processes as the real ones do), streams
// are queues that advance when the host looks at them, and of kernels it knows the runtime's own plus a few for tests:
//
//   store(u64 address, u64 value)          writes a word
//   meet(u64 theirs, u64 own)              writes 1 to a peer's word, and runs until its own word is 1
//   spill(u64 address)                     does nothing, and needs 4096 bytes of local memory in each thread
//   sum(u64 x, u64 y, u64 out, u32 n)      out[i] = x[i] + y[i], 64-bit integers
//
// The environment variable FAKE_CUDA says what the machine is like: "gpus=4;no_p2p=0-2;capability=90;memory_mib=512".
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_TEST_FAKECUDA_H
#define DITRON_RUNTIME_TEST_FAKECUDA_H

#include <cstdint>

extern "C" {
/// The driver calls made so far that matter to tests, one a line, as "name(detail)"; empties the list.
const char *fakeCudaTakeLog();
/// The names of all calls made so far, in their order, one a line; what is called several times in a row is there once. Empties it.
const char *fakeCudaTakeCalls();
/// Makes calls that load code or map memory wait until no stream has work left, as the real driver may; 0 is the end of that.
/// Work that is left on streams is forgotten.
void fakeCudaLoadsWait(int wait);
/// Physical memory that has not been released, in bytes.
uint64_t fakeCudaLivePhysicalBytes();
/// Every later call of a stream fails with this error, as after an illegal access; 0 heals.
void fakeCudaBreak(int error);
/// Calls of the host's that are outside of every context.
uint64_t fakeCudaContextDepth();
}

#endif // DITRON_RUNTIME_TEST_FAKECUDA_H
