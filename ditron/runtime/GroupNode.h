//===- GroupNode.h - Some ranks of a world as a Node ------------------------------------------------------*- C++ -*-===//
#ifndef DITRON_RUNTIME_GROUPNODE_H
#define DITRON_RUNTIME_GROUPNODE_H

#include "ditron/runtime/Node.h"

#include <algorithm>

namespace ditron::runtime {

/// Some ranks of another node.
class GroupNode final : public Node {
public:
  GroupNode(Node &parent, std::vector<uint32_t> members) : parent(parent), members(std::move(members)) {}

  std::optional<uint32_t> currentRank() const override {
    const std::optional<uint32_t> id = parent.currentRank();
    const auto found = id ? std::ranges::find(members, *id) : members.end();
    return found == members.end() ? std::nullopt : std::optional(static_cast<uint32_t>(found - members.begin()));
  }
  Status hostBarrier() override { return unsupported("hostBarrier of a group; that of the world meets all ranks"); }
  Status runRanks(const std::vector<uint32_t> &, const std::function<Status(uint32_t)> &) override {
    return unsupported("runRanks of a group; that of the world runs the host code of all ranks");
  }
  Status synchronize(const std::vector<uint32_t> &ranks, const std::function<Status(uint32_t)> &each) override {
    for (uint32_t rank : ranks)
      DITRON_RETURN_IF_ERROR(each(rank));
    return parent.status();
  }
  Status status() const override { return parent.status(); }
  bool spansProcesses() const override { return parent.spansProcesses(); }
  Expected<std::vector<std::string>> allGather(std::string_view step, const std::string &own) override {
    DITRON_ASSIGN_OR_RETURN(std::vector<std::string> all, parent.allGather(step, own));
    std::vector<std::string> ours;
    for (uint32_t member : members)
      ours.push_back(std::move(all[member]));
    return ours;
  }
  Status agree(std::string_view step, const std::string &request) override { return parent.agree(step, request); }
  Status hostMeet(std::string_view key, uint32_t participants, std::string_view what) override {
    return parent.hostMeet(key, participants, what);
  }
  sim::Machine *machine() const override { return parent.machine(); }

private:
  Node &parent;
  const std::vector<uint32_t> members;
};

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_GROUPNODE_H
