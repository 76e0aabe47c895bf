//===- StoreGroups.h - Tensor stores of a thread, in groups ---------------------------------------------*- C++ -*-===//
//
// A thread closes a group of tensor stores and later waits until all but the last few groups have read their source, or are visible
// in global memory. Groups are counted from the thread's start; the open one has the number of those that are closed.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_HOPPER_STOREGROUPS_H
#define DITRON_SIM_HOPPER_STOREGROUPS_H

#include <cstdint>
#include <vector>

namespace ditron::sim {

struct SharedUse;

class StoreGroups {
public:
  //===- What the thread does -------------------------------------------------------------------------------------===//

  /// A store joins the open group, whose number is given.
  uint32_t add() {
    groups.resize(closed + 1);
    ++groups[closed].unread;
    ++groups[closed].unwritten;
    return closed;
  }
  void close() {
    ++closed;
    groups.resize(closed);
  }
  /// The groups below it are those to wait for so that no more than `pending` closed ones are left.
  uint64_t target(uint32_t pending) const { return closed > pending ? closed - pending : 0; }
  /// Whether the groups below the target have read their source (`read`), or are visible.
  bool isDone(uint64_t target, bool read) const {
    for (uint64_t group = firstOpen; group < target && group < groups.size(); ++group)
      if (read ? groups[group].unread : groups[group].unwritten)
        return false;
    return true;
  }
  /// The thread has waited for the groups below the target and does not ask for the visible ones again.
  void skipVisible(uint64_t target) {
    while (firstOpen < target && (firstOpen >= groups.size() || groups[firstOpen].unwritten == 0))
      ++firstOpen;
  }

  //===- What its stores do ---------------------------------------------------------------------------------------===//

  void noteRead(uint32_t group) { --groups[group].unread; }
  void noteWritten(uint32_t group) { --groups[group].unwritten; }
  bool isReading(uint32_t group) const { return groups[group].unread != 0; }

  //===- Their sources in shared memory, until the thread knows that they have been read --------------------------===//

  void keep(uint32_t group, SharedUse *use) { uses.push_back({group, use}); }
  /// Calls end(use) for the sources of the groups below the target, and forgets them.
  template <typename End> void endUses(uint64_t target, End end) {
    std::erase_if(uses, [&](const Source &source) {
      if (source.group >= target)
        return false;
      end(source.use);
      return true;
    });
  }

  // What the thread is parked for.
  uint64_t awaited = 0;
  bool awaitsRead = false;

private:
  struct Group {
    uint32_t unread = 0;    ///< Stores that have not read their source.
    uint32_t unwritten = 0; ///< That are not visible in global memory.
  };
  struct Source {
    uint32_t group;
    SharedUse *use;
  };
  std::vector<Group> groups;
  std::vector<Source> uses;
  uint32_t closed = 0;
  uint32_t firstOpen = 0; ///< Groups before it are complete.
};

} // namespace ditron::sim

#endif // DITRON_SIM_HOPPER_STOREGROUPS_H
