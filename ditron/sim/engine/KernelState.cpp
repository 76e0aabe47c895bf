//===- KernelState.cpp - What the threads of a kernel will do next, as a number -------------------------------------===//
#include "ditron/sim/engine/KernelState.h"

#include "ditron/sim/engine/Engine.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace ditron::sim {

namespace {

/// Mixes 64-bit words by wide products.
class StateHash {
public:
  void add(uint64_t word) {
    const auto product = static_cast<unsigned __int128>(value ^ word) * 0x9e3779b97f4a7c15ULL;
    value = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64) ^ 0xa0761d6478bd642fULL;
    value = std::rotl(value, 23) + word;
  }
  void add(const void *pointer) { add(reinterpret_cast<uintptr_t>(pointer)); }
  /// Stacks are read as they lie, gaps between variables included.
  [[gnu::no_sanitize("address")]] void addBytes(const char *from, const char *to) {
    for (; from + 8 <= to; from += 8) {
      uint64_t word;
      __builtin_memcpy(&word, from, 8);
      add(word);
    }
    for (; from < to; ++from)
      add(static_cast<unsigned char>(*from));
  }
  uint64_t result() const { return value; }

private:
  uint64_t value = 0x243f6a8885a308d3ULL;
};

} // namespace

uint64_t stateOfKernel(const Thread &thread, const char *frame) {
  if (!frame) // what the engine has on the stack as well: less often equal, never wrongly
    frame = static_cast<const char *>(__builtin_frame_address(0));
  StateHash hash;
  hash.addBytes(frame, thread.stack.top);
  return hash.result();
}

uint64_t stateOf(const Block &block) {
  StateHash hash;
  for (const auto &thread : block.allThreads()) {
    hash.add(static_cast<uint64_t>(thread->state));
    if (thread->state == ThreadState::Finished)
      continue;
    hash.addBytes(thread->frame ? thread->frame : static_cast<const char *>(thread->context), thread->stack.top);
    switch (thread->state) {
    case ThreadState::WaitingWord: {
      const Waiter &waiter = thread->waits();
      hash.add(waiter.address);
      hash.add(static_cast<uint64_t>(waiter.kind));
      hash.add(static_cast<uint64_t>(waiter.compare));
      hash.add(static_cast<uint64_t>(waiter.value));
      break;
    }
    case ThreadState::AtWarp: // what it gives to the others
      hash.add(thread->value);
      hash.add(thread->operand);
      break;
    default: hash.add(thread->asyncWork.barrier); break;
    }
  }
  const auto &threads = block.allThreads();
  if (!threads.empty())
    hash.addBytes(block.sharedMemory(), block.sharedMemory() + threads.front()->sharedBytes);
  return hash.result();
}

bool looksAt(uint64_t moment) {
  const uint64_t kept = std::bit_floor(moment);
  return moment - kept <= std::max<uint64_t>(8, kept / 8);
}

bool keepsStateOf(uint64_t moment) { return std::has_single_bit(moment); }

bool Recurrence::isStuck(const Block &block, uint64_t effectsNow) {
  if (std::exchange(effects, effectsNow) != effectsNow) {
    moments = 0;
    stuck = false;
  }
  if (stuck || !looksAt(++moments))
    return stuck;
  const uint64_t now = stateOf(block);
  stuck = moments > 1 && now == state;
  if (keepsStateOf(moments))
    state = now;
  return stuck;
}

} // namespace ditron::sim
