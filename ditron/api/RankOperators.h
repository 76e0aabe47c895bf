//===- RankOperators.h - What operators that are called rank by rank have in common ----------------------------*- C++ -*-===//
#ifndef DITRON_API_RANKOPERATORS_H
#define DITRON_API_RANKOPERATORS_H

#include "ditron/api/Handles.h"

#include <fmt/format.h>
#include <optional>

namespace ditron::api {

/// The type of an options struct, where zero means bf16.
inline Expected<DataType> elementType(ditron_dtype_t dtype, std::string_view options) {
  DITRON_ASSIGN_OR_RETURN(const DataType type, toDataType(dtype, options));
  return type == DataType::I1 ? DataType::BF16 : type;
}

/// What an option says where zero stands for the default.
template <typename Value> std::optional<Value> unlessZero(Value value) {
  return value == 0 ? std::nullopt : std::optional(value);
}

/// Makes an operator with make(world, kernels) and puts it behind a handle.
template <typename Handle, typename Make> Status create(ditron_context_h context, Handle **handle, const Make &make) {
  DITRON_RETURN_IF_ERROR(checkGiven(context, "the context"));
  DITRON_RETURN_IF_ERROR(checkGiven(handle, "the place of the result"));
  DITRON_RETURN_IF_ERROR(context->state->checkThread());
  DITRON_ASSIGN_OR_RETURN(runtime::KernelProvider * kernels, context->state->kernels());
  std::shared_ptr<runtime::World> world = context->state->world();
  DITRON_ASSIGN_OR_RETURN(auto op, make(*world, *kernels));
  *handle = new Handle{context->state, std::move(world), std::move(op)};
  return Status::ok();
}

template <typename Handle> Status prepare(Handle *handle, std::string_view what) {
  DITRON_RETURN_IF_ERROR(checkHandle(handle, what));
  for (uint32_t id : handle->world->localRanks())
    DITRON_RETURN_IF_ERROR(handle->op.prepare(handle->world->rank(id)));
  return Status::ok();
}

/// The rank of the stream, on which the operator may be called.
template <typename Handle>
Expected<runtime::Rank *> rankOf(Handle *handle, ditron_stream_h stream, std::string_view what) {
  DITRON_RETURN_IF_ERROR(checkHandle(handle, what));
  DITRON_RETURN_IF_ERROR(checkGiven(stream, "the stream"));
  if (stream->world != handle->world)
    return invalidArgument(
        fmt::format("the {} and the stream are of different contexts, or of different runs of one", what));
  return &handle->world->rank(stream->stream.rank());
}

template <typename Handle> Status check(Handle *handle, ditron_stream_h stream, std::string_view what) {
  DITRON_ASSIGN_OR_RETURN(runtime::Rank * rank, rankOf(handle, stream, what));
  DITRON_RETURN_IF_ERROR(stream->stream.synchronize());
  return handle->op.check(*rank);
}

/// An object of each rank of this process; null for ranks of others.
template <typename Op> using OfRanks = std::vector<std::unique_ptr<Op>>;

/// Makes one on each rank of this process with make(rank, kernels).
template <typename Op, typename Make>
Expected<OfRanks<Op>> onEachRank(runtime::World &world, runtime::KernelProvider &kernels, const Make &make) {
  OfRanks<Op> all(world.numRanks());
  for (uint32_t id : world.localRanks()) {
    DITRON_ASSIGN_OR_RETURN(Op made, make(world.rank(id), kernels));
    all[id] = std::make_unique<Op>(std::move(made));
  }
  return all;
}

/// The object of the stream's rank.
template <typename Handle>
auto ofRank(Handle *handle, ditron_stream_h stream, std::string_view what) -> Expected<decltype(handle->op[0].get())> {
  DITRON_ASSIGN_OR_RETURN(runtime::Rank * rank, rankOf(handle, stream, what));
  return handle->op[rank->id()].get();
}

/// prepare(object of a rank) for each of this process.
template <typename Handle, typename Prepare>
Status prepareEach(Handle *handle, std::string_view what, const Prepare &prepare) {
  DITRON_RETURN_IF_ERROR(checkHandle(handle, what));
  for (uint32_t id : handle->world->localRanks())
    DITRON_RETURN_IF_ERROR(prepare(*handle->op[id]));
  return Status::ok();
}

/// A layer's weights of the ranks of this process, read with read(weights); `type` is the structure's name.
template <typename Weights, typename Raw, typename Read>
Expected<std::vector<Weights>> toWeights(const runtime::World &world, const Raw *const *weights, uint32_t count,
                                         std::string_view type, const Read &read) {
  DITRON_RETURN_IF_ERROR(checkGiven(weights, "the weights"));
  if (count != world.numRanks())
    return invalidArgument(fmt::format("weights of {} ranks are given; there are {}", count, world.numRanks()));
  std::vector<Weights> converted(world.numRanks());
  for (uint32_t id : world.localRanks()) {
    DITRON_RETURN_IF_ERROR(checkGiven(weights[id], fmt::format("the weights of rank {}", id)));
    DITRON_ASSIGN_OR_RETURN(const Raw own, readStruct(weights[id], type));
    converted[id] = read(own);
  }
  return converted;
}

inline runtime::Pointer given(const void *address, DataType type) { return {const_cast<void *>(address), type}; }

} // namespace ditron::api
#endif // DITRON_API_RANKOPERATORS_H
