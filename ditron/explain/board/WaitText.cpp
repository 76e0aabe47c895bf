//===- WaitText.cpp - Published waits for people and programs --------------------------------------------------------===//
#include "ditron/explain/board/WaitText.h"

#include "ditron/support/Plural.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <tuple>

namespace ditron::explain {

namespace {

std::string siteText(const PublishedWait &wait) {
  if (wait.kernel.empty())
    return wait.line ? fmt::format("a kernel at line {}, column {}", wait.line, wait.column)
                     : std::string("an unknown kernel");
  if (!wait.line)
    return fmt::format("kernel {} in {}", wait.kernel, wait.sourceFile);
  return fmt::format("kernel {} at {}:{}:{}", wait.kernel, wait.sourceFile, wait.line, wait.column);
}

std::string blockText(const std::array<uint32_t, 3> &block) {
  return fmt::format("({},{},{})", block[0], block[1], block[2]);
}

std::string_view compareText(uint32_t compare) {
  static constexpr std::string_view compares[] = {"==", "!=", ">", "<=", "<", ">="};
  return compares[compare % std::size(compares)];
}

std::string wantsText(const PublishedWait &wait) {
  return wait.kind == DITRON_WAIT_LOOP ? std::string("polls it in a loop until it changes")
                                       : fmt::format("wants {} {}", compareText(wait.compare), wait.wanted);
}

std::string lastedText(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.0f} us", seconds * 1e6)
         : seconds < 1  ? fmt::format("{:.0f} ms", seconds * 1e3)
                        : fmt::format("{:.1f} s", seconds);
}

/// Waits of one kernel at one line for one word with one outcome.
struct Group {
  const PublishedWait *first = nullptr;
  std::vector<std::array<uint32_t, 3>> blocks;
  std::set<uint32_t> threads;
  double longest = 0;
  bool stands = true;

  std::string who() const {
    std::string text = fmt::format("rank {}, {}, ", first->rank, siteText(*first));
    if (blocks.size() == 1)
      text += fmt::format("block {}", blockText(blocks.front()));
    else
      text += fmt::format("{} ({} to {})", plural(blocks.size(), "block"), blockText(blocks.front()),
                          blockText(blocks.back()));
    if (threads.size() == 1)
      return text + fmt::format(", thread {}", *threads.begin());
    return text + fmt::format(", {} ({} to {})", plural(threads.size(), "thread"), *threads.begin(), *threads.rbegin());
  }
  std::string what() const {
    if (first->kind == DITRON_WAIT_MBARRIER)
      return fmt::format(
          "waits for another warp of its block, which fetches or frees a tile: phase of parity {} of an mbarrier at "
          "shared address {}",
          first->wanted, first->address & 0xffffff);
    std::string text = fmt::format("waits for {}: has {}, {}", wordText(*first), first->seen, wantsText(*first));
    if (longest > 0)
      text += fmt::format("; for {}", lastedText(longest));
    if (stands && longest > 0)
      text += "; it has stopped looking (a stopped GPU, or a kernel that was ended)";
    return text;
  }
};

std::vector<Group> groupsOf(const std::vector<PublishedWait> &waits) {
  using Key = std::tuple<uint32_t, uint32_t, std::string, uint32_t, uint32_t, std::string, std::string, int64_t>;
  std::map<Key, Group> groups;
  for (const PublishedWait &wait : waits) {
    Group &group = groups[{wait.rank, wait.pid, siteText(wait), wait.line, wait.column, wordText(wait), wantsText(wait),
                           wait.seen}];
    if (!group.first)
      group.first = &wait;
    if (std::find(group.blocks.begin(), group.blocks.end(), wait.block) == group.blocks.end())
      group.blocks.push_back(wait.block);
    group.threads.insert(wait.thread);
    group.longest = std::max(group.longest, wait.seconds);
    group.stands &= wait.stands;
  }
  std::vector<Group> list;
  for (auto &[key, group] : groups)
    list.push_back(std::move(group));
  return list;
}

/// A string of the DOT language.
std::string dotString(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out + "\"";
}

} // namespace

std::string wordText(const PublishedWait &wait) {
  if (!wait.homeRank)
    return fmt::format("{:#x}, memory without a name", wait.address);
  if (wait.memory.empty())
    return fmt::format("{:#x}, memory without a name on rank {}", wait.address, *wait.homeRank);
  std::string text = fmt::format("{}[{}]", wait.memory, wait.element);
  if (wait.restBytes)
    text += fmt::format("+{} bytes", wait.restBytes);
  return fmt::format("{} on rank {}", text, *wait.homeRank);
}

std::string describeWaits(const std::vector<PublishedWait> &waits) {
  std::string text;
  for (const Group &group : groupsOf(waits))
    text += fmt::format("{}  {}\n    {}", text.empty() ? "" : "\n", group.who(), group.what());
  return text;
}

std::string describeReading(const BoardReading &reading) {
  std::set<uint32_t> silent, pids;
  std::string text;
  for (const BoardFacts &board : reading.boards) {
    pids.insert(board.pid);
    if (board.kernels.empty())
      text += fmt::format("rank {} (process {}, GPU {}, {}) has loaded no kernel yet\n", board.rank, board.pid,
                          board.gpu, board.gpuName);
    if (std::none_of(reading.waits.begin(), reading.waits.end(),
                     [&](const PublishedWait &wait) { return wait.rank == board.rank; }))
      silent.insert(board.rank);
  }
  const std::string who =
      fmt::format("{} of {}", plural(reading.boards.size(), "rank"),
                  pids.size() == 1 ? fmt::format("process {}", *pids.begin()) : plural(pids.size(), "process") + "es");
  if (reading.waits.empty())
    return text + fmt::format("{}: no block has been waiting for long\n"
                              "(only kernels compiled with DITRON_PUBLISH_WAITS=1 say so; those of `ditron run` are)\n",
                              who);
  text += fmt::format("{}\nwaiting:\n{}\n", who, describeWaits(reading.waits));
  if (!silent.empty())
    text += fmt::format(
        "no block waits on rank{} {}: what others wait for is theirs to send, unless their kernels have ended\n",
        silent.size() == 1 ? "" : "s", fmt::join(silent, ", "));
  return text;
}

std::string jsonOf(const BoardReading &reading) {
  using nlohmann::ordered_json;
  ordered_json boards = ordered_json::array(), waits = ordered_json::array();
  for (const BoardFacts &board : reading.boards)
    boards.push_back({{"pid", board.pid},
                      {"rank", board.rank},
                      {"num_ranks", board.numRanks},
                      {"gpu", board.gpu},
                      {"gpu_name", board.gpuName},
                      {"kernels", board.kernels}});
  for (const PublishedWait &wait : reading.waits) {
    ordered_json one = {{"rank", wait.rank},       {"pid", wait.pid},        {"kernel", wait.kernel},
                        {"file", wait.sourceFile}, {"line", wait.line},      {"column", wait.column},
                        {"block", wait.block},     {"thread", wait.thread},  {"sm", wait.sm},
                        {"launch", wait.launch},   {"word", wordText(wait)}, {"seen", wait.seen},
                        {"seconds", wait.seconds}, {"stands", wait.stands}};
    if (wait.kind == DITRON_WAIT_LOOP)
      one["wants"] = "any change";
    else
      one["wants"] = fmt::format("{} {}", compareText(wait.compare), wait.wanted);
    if (!wait.memory.empty())
      one["memory"] = {{"rank", *wait.homeRank}, {"name", wait.memory}, {"index", wait.element}};
    waits.push_back(std::move(one));
  }
  return ordered_json{{"boards", boards}, {"waits", waits}}.dump(2, ' ', false,
                                                                 ordered_json::error_handler_t::replace) +
         "\n";
}

std::string dotOf(const BoardReading &reading) {
  std::string text = "digraph waits {\n  rankdir=LR;\n  node [shape=box];\n";
  for (const Group &group : groupsOf(reading.waits)) {
    const PublishedWait &wait = *group.first;
    const std::string who = fmt::format("rank {}\n{}", wait.rank, siteText(wait));
    text += fmt::format(
        "  {} -> {} [label={}];\n", dotString(who), dotString(wordText(wait)),
        dotString(fmt::format("{}\nhas {}, {}", plural(group.blocks.size(), "block"), wait.seen, wantsText(wait))));
    text += fmt::format("  {} [shape=ellipse];\n", dotString(wordText(wait)));
  }
  return text + "}\n";
}

} // namespace ditron::explain
