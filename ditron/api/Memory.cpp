//===- Memory.cpp - Memory of the C interface ---------------------------------------------------------------------===//
#include "ditron/api/Handles.h"

#include <fmt/format.h>

using namespace ditron;
using namespace ditron::api;

/// One of: a buffer of one rank, symmetric memory of all, memory of the caller's.
struct ditron_memory {
  std::shared_ptr<Context> context;
  std::shared_ptr<runtime::World> world;
  runtime::Buffer buffer;
  runtime::SymmetricBuffer symmetric;
  uint32_t rank = 0;
  void *adopted = nullptr;
  uint64_t bytes = 0;

  /// The rank's part; null address when it has none.
  runtime::Pointer on(uint32_t of) const {
    if (symmetric.isValid())
      return of < symmetric.numRanks() ? symmetric.on(of) : runtime::Pointer();
    if (of != rank)
      return {};
    return adopted ? runtime::Pointer{adopted, DataType::U8} : buffer.pointer();
  }
};

namespace {

/// The device and address for an immediate copy, checked against the memory's size.
Expected<std::pair<runtime::Device *, std::byte *>> placeOf(ditron_memory_h memory, uint32_t rank, uint64_t offset,
                                                            uint64_t bytes) {
  DITRON_RETURN_IF_ERROR(checkGiven(memory, "the memory"));
  if (!memory->adopted) {
    DITRON_RETURN_IF_ERROR(checkUsable(*memory->context, memory->world, "memory"));
  }
  DITRON_ASSIGN_OR_RETURN(runtime::Rank * owner, memory->context->rank(rank));
  const runtime::Pointer begin = memory->on(rank);
  if (!begin.address)
    return invalidArgument(fmt::format("the memory is not of rank {}", rank));
  if (offset > memory->bytes || bytes > memory->bytes - offset)
    return invalidArgument(fmt::format("bytes [{}, {}) of memory that has {}", offset, offset + bytes, memory->bytes));
  return std::pair(owner->device().get(), static_cast<std::byte *>(begin.address) + offset);
}

} // namespace

extern "C" {

ditron_status_t ditron_memory_allocate(ditron_context_h context, uint32_t rank, uint64_t bytes, const char *name,
                                       ditron_memory_h *memory) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(context, "the context"));
    DITRON_RETURN_IF_ERROR(checkGiven(memory, "the place of the result"));
    DITRON_RETURN_IF_ERROR(context->state->checkThread());
    DITRON_ASSIGN_OR_RETURN(runtime::Rank * owner, context->state->rank(rank));
    auto made = std::make_unique<ditron_memory>();
    DITRON_ASSIGN_OR_RETURN(made->buffer, owner->allocate(DataType::U8, bytes, name ? name : "memory"));
    made->context = context->state;
    made->world = context->state->world();
    made->rank = rank;
    made->bytes = bytes;
    *memory = made.release();
    return Status::ok();
  });
}

ditron_status_t ditron_memory_allocate_symmetric(ditron_context_h context, uint64_t bytes, const char *name,
                                                 ditron_memory_h *memory) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(context, "the context"));
    DITRON_RETURN_IF_ERROR(checkGiven(memory, "the place of the result"));
    DITRON_RETURN_IF_ERROR(context->state->checkThread());
    auto made = std::make_unique<ditron_memory>();
    made->context = context->state;
    made->world = context->state->world();
    DITRON_ASSIGN_OR_RETURN(made->symmetric,
                            made->world->allocateSymmetric(DataType::U8, bytes, name ? name : "symmetric memory"));
    made->bytes = bytes;
    *memory = made.release();
    return Status::ok();
  });
}

ditron_status_t ditron_memory_adopt(ditron_context_h context, uint32_t rank, void *address, uint64_t bytes,
                                    const char *name, ditron_memory_h *memory) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(context, "the context"));
    DITRON_RETURN_IF_ERROR(checkGiven(address, "the address"));
    DITRON_RETURN_IF_ERROR(checkGiven(memory, "the place of the result"));
    DITRON_RETURN_IF_ERROR(context->state->checkThread());
    DITRON_RETURN_IF_ERROR(context->state->adopt(rank, address, bytes, name ? name : "adopted memory"));
    auto made = std::make_unique<ditron_memory>();
    made->context = context->state;
    made->world = context->state->world();
    made->rank = rank;
    made->adopted = address;
    made->bytes = bytes;
    *memory = made.release();
    return Status::ok();
  });
}

void ditron_memory_destroy(ditron_memory_h memory) {
  if (memory && memory->adopted)
    (void)memory->context->release(memory->adopted, memory->bytes);
  delete memory;
}

void *ditron_memory_address(ditron_memory_h memory, uint32_t rank) {
  return memory ? memory->on(rank).address : nullptr;
}
uint64_t ditron_memory_bytes(ditron_memory_h memory) { return memory ? memory->bytes : 0; }

ditron_status_t ditron_memory_upload(ditron_memory_h memory, uint32_t rank, uint64_t offset, const void *source,
                                     uint64_t bytes) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(bytes ? checkGiven(source, "the source") : Status::ok());
    DITRON_ASSIGN_OR_RETURN(const auto place, placeOf(memory, rank, offset, bytes));
    return place.first->upload(place.second, source, bytes);
  });
}

ditron_status_t ditron_memory_download(ditron_memory_h memory, uint32_t rank, uint64_t offset, void *destination,
                                       uint64_t bytes) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(bytes ? checkGiven(destination, "the destination") : Status::ok());
    DITRON_ASSIGN_OR_RETURN(const auto place, placeOf(memory, rank, offset, bytes));
    return place.first->download(destination, place.second, bytes);
  });
}

} // extern "C"
