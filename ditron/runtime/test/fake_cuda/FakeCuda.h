//===- FakeCuda.h - What tests ask of the stand-in for libcuda ----------------------------------------------*- C++ -*-===//
//
// A shared library with the driver's symbols that we use, so that the CUDA backend's logic is tested without a GPU. Memory is
// host memory (descriptors of physical memory are memfds, so that they travel between processes as the real ones do), streams
// are queues that advance when the host looks at them, and of kernels it knows the runtime's own plus a few for tests:
//
//   store(u64 address, u64 value)          writes a word
//   meet(u64 theirs, u64 own)              writes 1 to a peer's word, and runs until its own word is 1
//   await_...(u64 theirs, u64 own, u64 n)  raises a peer's word to n, and runs until its own is at least n; any name that begins so
//   spill(u64 address)                     does nothing, and needs 4096 bytes of local memory in each thread
//   pairs(u64 address)                     does nothing, in clusters of two blocks
//   sum(u64 x, u64 y, u64 out, u32 n)      out[i] = x[i] + y[i], 64-bit integers
//
// The environment variable FAKE_CUDA says what the machine is like: "gpus=4;no_p2p=0-2;capability=90;memory_mib=512;waits=1".
// With "says" in it the library tells at the end of the process how many GPUs it saw, as CUDA_VISIBLE_DEVICES leaves them, and which got a context.
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
/// Makes calls that may wait in the real driver wait: those that load code, map or allocate memory, make streams, or instantiate graphs.
/// 1: until no stream of the process has work left; 2: until none of the current context has; 0: not at all. Work that is left on
/// streams is forgotten. `waits=` of FAKE_CUDA is what holds at first.
void fakeCudaLoadsWait(int wait);
/// Whether any call has waited in that way since this was asked last.
int fakeCudaTakeWaited();
/// Physical memory that has not been released, in bytes.
uint64_t fakeCudaLivePhysicalBytes();
/// Every later call of a stream fails with this error, as after an illegal access; 0 heals.
void fakeCudaBreak(int error);
/// Calls of the host's that are outside of every context.
uint64_t fakeCudaContextDepth();
}

#endif // DITRON_RUNTIME_TEST_FAKECUDA_H
