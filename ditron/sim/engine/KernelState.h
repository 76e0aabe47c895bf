//===- KernelState.h - What the threads of a kernel will do next, as a number ---------------------------*- C++ -*-===//
//
// Whether a loop that waits can ever end is not seen from its code here, but from its state: a thread that comes back to the same place
// with the same registers and the same stack, and that has read the same values in between, does the same again until one of the
// words that it has read changes. A loop that counts its attempts is different each time, and so is left alone.
//
// Registers and stack of a kernel are all that lies in its fiber's stack above the function of the engine that it has called:
//
//     top of the stack   threadMain
//                        the kernel's frames, with spilled registers and local arrays
//                        its return address
//                        rbp, r15, r14, r13, r12, rbx     <- kernelFrame()
//                        frames of the engine, which hold clocks and what was left there before
//
// Registers that a function must preserve may hold values of the kernel anywhere below. So a function of the engine in which a thread
// may sleep for long claims to overwrite all of them: the compiler then saves them where it begins, under the return address. All other
// registers are the caller's to save, and lie in its frames.
//
// A block's state is that of its threads, of its shared memory and of its barriers, taken while all of its threads are parked.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_ENGINE_KERNELSTATE_H
#define DITRON_SIM_ENGINE_KERNELSTATE_H

#include <cstdint>

namespace ditron::sim {

class Block;
struct Thread;

/// Where the kernel's part of the stack begins, in a function that the kernel has called; null where that is not known. Must be
/// called before anything else there.
[[gnu::always_inline]] inline const char *kernelFrame() {
#if defined(__x86_64__)
  asm volatile("" ::: "rbx", "r12", "r13", "r14", "r15");
  constexpr int64_t savedBytes = 5 * 8; // below the saved rbp, at which the frame address points
  return static_cast<const char *>(__builtin_frame_address(0)) - savedBytes;
#else
  return nullptr;
#endif
}

/// While this lives, the thread may park in a function that the kernel has called, with the kernel's frame known.
template <typename Parked> struct FrameGuard {
  Parked &thread;
  FrameGuard(Parked &thread, const char *frame) : thread(thread) { thread.frame = frame; }
  ~FrameGuard() { thread.frame = nullptr; }
};

/// Of the kernel of the running thread, whose part of the stack begins at `frame`. Equal states have equal numbers; others almost
/// never.
uint64_t stateOfKernel(const Thread &thread, const char *frame);
/// Of a block none of whose threads can run.
uint64_t stateOf(const Block &block);

/// Finds out, from the states of a block at the moments when nothing in the machine can run, that it goes round in a circle.
class Recurrence {
public:
  void clear() { *this = {}; }
  /// The block is as it is, and the machine has had `effects` effects. True when the block has been like this before, with none
  /// since: unless somebody else has an effect it stays in this circle for ever.
  bool isStuck(const Block &block, uint64_t effects);

private:
  /// Brent's algorithm: states are compared with one that is replaced after 1, 2, 4 ... moments; longer and longer circles are
  /// found, and only an eighth of the moments looks at the state.
  uint64_t moments = 0; ///< Since the last effect.
  uint64_t effects = UINT64_MAX;
  uint64_t state = 0;
  bool stuck = false;
};

/// Whether Brent's algorithm looks at the state of this moment (counted from 1), and whether it keeps it.
bool looksAt(uint64_t moment);
bool keepsStateOf(uint64_t moment);

} // namespace ditron::sim

#endif // DITRON_SIM_ENGINE_KERNELSTATE_H
