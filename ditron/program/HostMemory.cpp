//===- HostMemory.cpp - Allocation and free in the middle of a program --------------------------------------------===//
//
// What a real system may do counts, not what this one must: symmetric memory comes and goes by a call of all ranks, and a driver that
// maps or unmaps memory may wait for whatever runs on the GPUs that see it. A program that hangs when it does is reported as hanging.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/program/HostRun.h"

#include "ditron/sim/Machine.h"

#include <fmt/format.h>

namespace ditron::program {

Status HostRun::meetAll(const Step &step, const std::string &what) {
  {
    std::lock_guard lock(state.mutex);
    const uint64_t position = state.ranks[rank].collectives++;
    if (state.collectives.size() <= position)
      state.collectives.push_back({what, {}});
    Collective &collective = state.collectives[position];
    if (collective.what != what) {
      const auto &[other, place] = *collective.came.begin();
      return invalidArgument(
          fmt::format("the {} where rank {} makes the {} at line {}: all ranks make the same calls, in the same order",
                      what, other, collective.what, place.line));
    }
    collective.came[rank] = step.place;
  }
  return world.hostMeet("collective", state.program.ranks,
                        fmt::format("the {} at {}:{}, which all ranks have to come to", what, state.program.source.name,
                                    step.place.line));
}

Status HostRun::checkUnused(const LocalArray &array) const {
  if (const std::string user = world.pendingUse(array.pointer.address); !user.empty())
    return Status(
        StatusCode::OutOfBounds,
        fmt::format(
            "buffer '{}' is freed while {}, which was given its address, has not ended; synchronise with it first",
            array.name, user));
  if (!world.machine())
    return Status::ok();
  const uint64_t bytes = static_cast<uint64_t>(elementCount(array.shape)) * sizeOf(array.pointer.type);
  return world.machine()
      ->hostAccess(array.pointer.address, bytes, /*isWrite=*/true)
      .withContext(fmt::format("buffer '{}' is freed before what uses it has been waited for", array.name));
}

Status HostRun::perform(const Step &step, const AllocateStep &allocate) {
  DITRON_ASSIGN_OR_RETURN(const std::string own, text(allocate.value, "the value of a buffer"));
  DITRON_ASSIGN_OR_RETURN(const Memory::Value value, state.memory->readValue(allocate.buffer, own, rank));
  const bool isSymmetric = value.kind == BufferKind::Symmetric;
  const std::string what = fmt::format("allocation of {} buffer '{}'", toString(value.kind), allocate.buffer);
  if (isSymmetric)
    DITRON_RETURN_IF_ERROR(meetAll(step, what));
  DITRON_RETURN_IF_ERROR(world.hostWaitForWork(
      std::nullopt, fmt::format("the {} at {}:{}, where a driver may wait for what runs on any GPU", what,
                                state.program.source.name, step.place.line)));
  DITRON_RETURN_IF_ERROR(state.memory->allocate(allocate.buffer, value, rank, step.place));
  // Nobody uses it before all have filled it.
  return isSymmetric ? world.hostMeet("allocated", state.program.ranks, "the others' part of the " + what)
                     : Status::ok();
}

Status HostRun::perform(const Step &step, const FreeStep &free) {
  DITRON_ASSIGN_OR_RETURN(const LocalArray array, state.memory->find(free.buffer, rank));
  const bool isSymmetric = array.kind == BufferKind::Symmetric;
  const std::string what = fmt::format("free of {} buffer '{}'", toString(array.kind), free.buffer);
  if (isSymmetric)
    DITRON_RETURN_IF_ERROR(meetAll(step, what));
  DITRON_RETURN_IF_ERROR(checkUnused(array));
  DITRON_RETURN_IF_ERROR(world.hostWaitForWork(
      std::nullopt, fmt::format("the {} at {}:{}, where a driver may wait for what runs on any GPU", what,
                                state.program.source.name, step.place.line)));
  // Nobody's part goes before all have looked at theirs.
  if (isSymmetric)
    DITRON_RETURN_IF_ERROR(world.hostMeet("freed", state.program.ranks, "the others' part of the " + what));
  state.memory->free(free.buffer, rank, step.place);
  return Status::ok();
}

} // namespace ditron::program
