//===- BoardReport.cpp - Published waits as a report -------------------------------------------------------------------===//
#include "ditron/explain/board/BoardReport.h"

#include "ditron/support/Plural.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <tuple>

namespace ditron::explain {

namespace {

std::string blockText(const std::array<uint32_t, 3> &block) {
  return fmt::format("({},{},{})", block[0], block[1], block[2]);
}

std::string_view compareText(uint32_t compare) {
  static constexpr std::string_view compares[] = {"==", "!=", ">", "<=", "<", ">="};
  return compares[compare % std::size(compares)];
}

void setPlace(const PublishedWait &published, Wait &wait) {
  if (published.kernel.empty()) {
    wait.who = published.line ? fmt::format("a kernel at line {}, column {}", published.line, published.column)
                              : std::string("an unknown kernel");
  } else if (!published.line) {
    wait.who = fmt::format("kernel {} in {}", published.kernel, published.sourceFile);
  } else {
    wait.who = fmt::format("kernel {}", published.kernel);
    wait.file = published.sourceFile;
    wait.line = published.line;
    wait.column = published.column;
  }
}

/// The word without its rank.
std::string nameOf(const PublishedWait &published) {
  if (!published.homeRank || published.memory.empty())
    return fmt::format("{:#x}, memory without a name", published.address);
  return fmt::format("{}[{}]", published.memory, published.element) +
         (published.restBytes ? fmt::format("+{} bytes", published.restBytes) : "");
}

void setWord(const PublishedWait &published, Wait &wait) {
  if (published.kind == DITRON_WAIT_MBARRIER) {
    wait.word = fmt::format("an mbarrier at shared address {}", published.address & 0xffffff);
    wait.role = "of another warp of its block, which fetches or frees a tile";
    wait.wants = fmt::format("the end of the phase of parity {}", published.wanted);
    return;
  }
  wait.word = nameOf(published);
  wait.wordRank = published.homeRank;
  wait.has = published.seen;
  if (published.kind != DITRON_WAIT_LOOP)
    wait.wants = fmt::format("{} {}", compareText(published.compare), published.wanted);
}

struct Group {
  Wait wait;
  std::vector<std::array<uint32_t, 3>> blocks;
};

void addTo(Group &group, const PublishedWait &published) {
  Wait &wait = group.wait;
  if (std::find(group.blocks.begin(), group.blocks.end(), published.block) == group.blocks.end())
    group.blocks.push_back(published.block);
  wait.threads.insert(published.thread);
  wait.lastedSeconds = std::max(wait.lastedSeconds, published.seconds);
  wait.stands &= published.stands && published.seconds > 0;
}

std::string blocksText(const std::vector<std::array<uint32_t, 3>> &blocks) {
  if (blocks.size() == 1)
    return fmt::format("block {}", blockText(blocks.front()));
  return fmt::format("{} ({} to {})", plural(blocks.size(), "block"), blockText(blocks.front()),
                     blockText(blocks.back()));
}

RankActivity activityOf(const BoardFacts &board, uint64_t waitingBlocks) {
  RankActivity activity;
  activity.rank = board.rank;
  activity.lines.push_back(fmt::format("process {}, GPU {} ({})", board.pid, board.gpu, board.gpuName));
  if (waitingBlocks)
    activity.lines.push_back(
        fmt::format("{} {}", plural(waitingBlocks, "block"), waitingBlocks == 1 ? "waits" : "wait"));
  else if (board.kernels.empty())
    activity.lines.push_back("has loaded no kernel yet");
  else
    activity.lines.push_back(
        "no block waits: what others wait for is this rank's to send, unless its kernels have ended");
  return activity;
}

} // namespace

std::string wordText(const PublishedWait &wait) {
  return nameOf(wait) + (wait.homeRank ? fmt::format(" on rank {}", *wait.homeRank) : "");
}

std::vector<Wait> waitsOf(const std::vector<PublishedWait> &waits) {
  using Key = std::tuple<uint32_t, uint32_t, std::string, uint32_t, uint32_t, std::string, std::optional<uint32_t>,
                         std::string, std::optional<int64_t>>;
  std::map<Key, Group> groups;
  for (const PublishedWait &published : waits) {
    Wait wait;
    wait.rank = published.rank;
    wait.process = published.pid;
    wait.stands = true;
    setPlace(published, wait);
    setWord(published, wait);
    const Key key{wait.rank, published.pid, wait.who,   published.line, published.column,
                  wait.word, wait.wordRank, wait.wants, wait.has};
    addTo(groups.try_emplace(key, Group{std::move(wait), {}}).first->second, published);
  }
  std::vector<Wait> list;
  for (auto &[key, group] : groups) {
    group.wait.blocks = blocksText(group.blocks);
    group.wait.blockCount = group.blocks.size();
    list.push_back(std::move(group.wait));
  }
  return list;
}

WaitReport reportOf(const BoardReading &reading) {
  WaitReport report;
  report.kind = "moment";
  std::set<uint32_t> pids;
  for (const BoardFacts &board : reading.boards) {
    pids.insert(board.pid);
    std::set<std::tuple<std::string, uint64_t, std::array<uint32_t, 3>>> blocks;
    for (const PublishedWait &wait : reading.waits)
      if (wait.rank == board.rank && wait.pid == board.pid)
        blocks.insert({wait.kernel, wait.launch, wait.block});
    report.ranks.push_back(activityOf(board, blocks.size()));
  }
  report.headline = fmt::format("{} of {}", plural(reading.boards.size(), "rank"),
                                pids.size() == 1 ? fmt::format("process {}", *pids.begin())
                                                 : fmt::format("{} processes", pids.size()));
  report.waits = waitsOf(reading.waits);
  report.noWaits =
      "no block has been waiting for long (only kernels compiled with DITRON_PUBLISH_WAITS=1 say so; those of "
      "`ditron run` are)";
  return report;
}

} // namespace ditron::explain
