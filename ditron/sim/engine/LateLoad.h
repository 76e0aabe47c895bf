//===- LateLoad.h - Loads that are carried out after the store behind them ------------------------------*- C++ -*-===//
//
// A GPU may carry out a relaxed load after a later relaxed store of the same thread to another word (load buffering). Compiled code
// wants the loaded value at once, so the thread is let run twice. Its stack is saved at the load. It is given a value and runs on;
// if the next thing that it does with effect is such a store, the store is made, others act for a while, the stack is put back, and
// the load is carried out: now it may give what others have stored after they had seen the store. If the thread then makes the
// same store again, which is left out, this is an outcome that the GPU shows. If it does anything else, the store depended on the
// load, and would have come out of thin air: the stack is put back once more, and the load gives its first value.
//
// A fence of a scope that does not hold all observers lets it happen too (an H200 does it across blocks with fence.sc.cta). For those
// within its scope the order stands: the load is not given what they have stored, nor anything once one of them has touched the
// word of the store, nor a store of anybody who knows that the load was before.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_ENGINE_LATELOAD_H
#define DITRON_SIM_ENGINE_LATELOAD_H

#include "ditron/sim/engine/Fiber.h"
#include "ditron/sim/race/Strand.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace ditron::sim {

struct LateLoad {
  enum class Phase : uint8_t {
    None,
    Ahead, ///< The load has given a value, and nothing with effect has happened since.
    Late,  ///< The store has been made; the load is carried out, and nothing with effect has happened since.
    Back,  ///< That did not lead to the store: the load gives its first value again.
  };
  enum class Request : uint8_t { None, Save, Restore };
  Phase phase = Phase::None;
  Request request = Request::None; ///< Of its stack, when the thread has switched away.
  const void *loaded = nullptr;
  race::Moment moment;           ///< Of the load where it stands: who knows of it cannot have stored what it gives.
  std::optional<uint32_t> fence; ///< The widest scope of fences between the load and the store.
  uint64_t value = 0; ///< The first one.
  /// The store.
  void *stored = nullptr;
  uint64_t storedValue = 0;
  uint32_t storedBytes = 0;

  /// The stack from the context on.
  void save(Context at, const Stack &whole) {
    context = at;
    stack.assign(static_cast<const char *>(at), static_cast<const char *>(whole.top));
  }
  Context restore() const {
    std::copy(stack.begin(), stack.end(), static_cast<char *>(context));
    return context;
  }

private:
  Context context = nullptr;
  std::vector<char> stack;
};

} // namespace ditron::sim

#endif // DITRON_SIM_ENGINE_LATELOAD_H
