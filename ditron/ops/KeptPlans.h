//===- KeptPlans.h - The plans of one rank by shape -----------------------------------------------------------*- C++ -*-===//
//
// For callers who give the shape with each call instead of holding a plan. Code is compiled for the alignment of addresses, so that
// is part of what a plan is for.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_KEPTPLANS_H
#define DITRON_OPS_KEPTPLANS_H

#include "ditron/runtime/Stream.h"

#include <fmt/format.h>
#include <map>
#include <vector>

namespace ditron::ops {

/// What plans rely on addresses being multiples of, and all buffers are.
inline constexpr int64_t planAlignment = 16;

/// planAlignment, or 1 for an address that is no multiple of it.
inline int64_t alignmentOf(runtime::Pointer pointer) {
  return reinterpret_cast<uintptr_t>(pointer.address) % planAlignment == 0 ? planAlignment : 1;
}

/// Before a call that was not prepared loads its kernels, which are launched on `stream` and beside it. `call`: in words. An error in a
/// capture, since loading code waits for the GPU.
inline Status beginUnprepared(std::string_view operation, runtime::Stream &stream, std::string_view call) {
  if (!stream.isCapturing()) {
    stream.beginUnpreparedCall();
    return Status::ok();
  }
  return invalidArgument(fmt::format("{}: a call with {} was not prepared, and the stream is being captured: "
                                     "call prepare before the capture begins",
                                     operation, call));
}

template <typename Plan> class KeptPlans {
public:
  /// Sizes, then the alignment of each pointer and what else the code is compiled for.
  using Key = std::vector<int64_t>;

  bool has(const Key &key) const { return plans.contains(key); }
  /// Null where there is none.
  Plan *get(const Key &key) {
    auto found = plans.find(key);
    return found == plans.end() ? nullptr : &found->second;
  }
  void keep(Key key, Plan plan) { plans.insert_or_assign(std::move(key), std::move(plan)); }

  /// The plan of that key; made now when there is none, unless the stream is being captured.
  /// `describe` gives a call of that key in words.
  template <typename Describe, typename Make>
  Expected<Plan *> find(std::string_view operation, runtime::Stream &stream, const Key &key, const Describe &describe,
                        const Make &make) {
    auto found = plans.find(key);
    if (found == plans.end()) {
      DITRON_RETURN_IF_ERROR(beginUnprepared(operation, stream, describe()));
      DITRON_ASSIGN_OR_RETURN(Plan made, make());
      found = plans.emplace(key, std::move(made)).first;
    }
    return &found->second;
  }

private:
  std::map<Key, Plan> plans;
};

} // namespace ditron::ops
#endif // DITRON_OPS_KEPTPLANS_H
