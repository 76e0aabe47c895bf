//===- Fiber.h - Stacks and context switches ------------------------------------------------------------*- C++ -*-===//
//
// The two things a fiber needs: a stack from a pool, and the switch (Boost.Context's fcontext, the lowest layer, since
// a GPU thread switches to the next GPU thread directly and not through a scheduler).
//
// Stacks come in slabs, each stack with a guard page below it; pages cost memory only when touched. Guards are made without
// mappings of their own where the system can (Linux 6.13), since their number is limited; elsewhere the first ten thousand or so
// stacks get one. The top
// of successive stacks is shifted by some cache lines: threads of a block stand at the same depth, and without the
// shift their hot lines would all fall into the same few cache sets.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_ENGINE_FIBER_H
#define DITRON_SIM_ENGINE_FIBER_H

#include <boost/context/detail/fcontext.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ditron::sim {

using Context = boost::context::detail::fcontext_t;
using Transfer = boost::context::detail::transfer_t;

/// Top and usable size of a stack; top is null when no memory was to be had.
struct Stack {
  char *top = nullptr;
  uint64_t bytes = 0;
};

/// Hands out stacks of one size and takes them back. What a pool leaves serves the next of the same size; above a limit memory returns to
/// the system with the pool.
class StackPool {
public:
  StackPool(uint64_t stackBytes, uint32_t stacksPerSlab);
  ~StackPool();
  StackPool(const StackPool &) = delete;
  StackPool &operator=(const StackPool &) = delete;

  Stack acquire();
  void release(Stack stack) { freeStacks.push_back(stack); }

  /// Memory for several stacks, with their guard pages.
  struct Slab {
    void *base = nullptr;
    uint64_t bytes = 0;
    uint32_t stacks = 0;
    uint32_t guards = 0; ///< Pages that took a mapping of their own.
  };

private:
  void addSlab();
  Slab makeSlab() const;

  uint64_t stackBytes;
  uint32_t stacksPerSlab;
  uint32_t made = 0;
  std::vector<Slab> slabs;
  std::vector<Stack> freeStacks;
};

} // namespace ditron::sim

#endif // DITRON_SIM_ENGINE_FIBER_H
