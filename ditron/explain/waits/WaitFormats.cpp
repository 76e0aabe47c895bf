//===- WaitFormats.cpp - Who waits for what, for programs -----------------------------------------------------------===//
#include "ditron/explain/waits/WaitReport.h"

#include "ditron/support/Plural.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <map>

namespace ditron::explain {

namespace {

/// A string of the DOT language.
std::string dotString(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out + "\"";
}

std::string wordOf(const Wait &wait) {
  return wait.word + (wait.wordRank ? fmt::format(" on rank {}", *wait.wordRank) : "");
}

std::string wantsOf(const Wait &wait) { return wait.wants.empty() ? "any change" : wait.wants; }

/// The nodes of the graph. A kernel that waits at several lines has a node for each.
class Graph {
public:
  void addWait(const Wait &wait) {
    std::string label = fmt::format("rank {}\n{}", wait.rank, wait.who);
    if (!wait.file.empty())
      label += fmt::format("\n{}:{}:{}", wait.file, wait.line, wait.column);
    if (!wait.blocks.empty())
      label += "\n" + wait.blocks;
    const std::string waiter = node(label, "box");
    waiters[{wait.rank, wait.who}].push_back(waiter);
    if (!wait.file.empty()) // who could end a wait of its own block is known by its place
      waiters[{wait.rank, fmt::format("{} at {}:{}:{}", wait.who, wait.file, wait.line, wait.column)}].push_back(
          waiter);
    const std::string edge = (wait.has ? fmt::format("has {}, ", *wait.has) : std::string()) + "wants " + wantsOf(wait);
    addEdge(fmt::format("{} -> {} [label={}]", waiter, word(wait), dotString(edge)));
  }

  /// After all waits: who waits itself has its nodes by now.
  void addRaisers(const Wait &wait) {
    for (const Raiser &raiser : wait.raisers) {
      auto known = waiters.find({raiser.rank, raiser.who});
      std::vector<std::string> targets;
      if (known != waiters.end())
        targets = known->second;
      else
        targets = {node(fmt::format("rank {}\n{}\n{}", raiser.rank, raiser.who, raiser.state), "box, style=dashed")};
      for (const std::string &target : targets)
        addEdge(fmt::format("{} -> {} [style=dashed, label=\"could be raised by\"]", word(wait), target));
    }
    if (wait.knowsRaisers && wait.raisers.empty())
      addEdge(
          fmt::format("{} -> {} [style=dashed]", word(wait), node("nobody is left who could raise it", "plaintext")));
  }

  std::string text(const WaitReport &report) const {
    std::string text =
        fmt::format("digraph waits {{\n  rankdir=LR;\n  label={};\n  labelloc=t;\n", dotString(report.headline));
    for (const std::string &line : lines)
      text += "  " + line + ";\n";
    return text + "}\n";
  }

private:
  std::string word(const Wait &wait) {
    std::string label = wordOf(wait);
    if (!wait.role.empty())
      label += "\n" + wait.role;
    if (!wait.lastWritten.empty())
      label += "\n" + wait.lastWritten;
    return node(label, "ellipse");
  }
  std::string node(const std::string &label, std::string_view shape) {
    auto [found, isNew] = numbers.try_emplace(label, numbers.size());
    const std::string name = fmt::format("n{}", found->second);
    if (isNew)
      lines.push_back(fmt::format("{} [label={}, shape={}]", name, dotString(label), shape));
    return name;
  }
  void addEdge(const std::string &edge) {
    if (edges.insert(edge).second)
      lines.push_back(edge);
  }

  std::map<std::string, size_t> numbers;
  std::map<std::pair<uint32_t, std::string>, std::vector<std::string>> waiters;
  std::set<std::string> edges;
  std::vector<std::string> lines;
};

} // namespace

std::string dotOf(const WaitReport &report) {
  Graph graph;
  for (const Wait &wait : report.waits)
    graph.addWait(wait);
  for (const Wait &wait : report.waits)
    graph.addRaisers(wait);
  return graph.text(report);
}

std::string jsonOf(const WaitReport &report) {
  using nlohmann::ordered_json;
  ordered_json waits = ordered_json::array(), ranks = ordered_json::array();
  for (const Wait &wait : report.waits) {
    ordered_json one = {{"rank", wait.rank}, {"who", wait.who}};
    if (!wait.file.empty())
      one.update({{"file", wait.file}, {"line", wait.line}, {"column", wait.column}});
    if (!wait.blocks.empty())
      one.update({{"blocks", wait.blocks}, {"block_count", wait.blockCount}, {"threads", wait.threads}});
    if (wait.process)
      one["process"] = *wait.process;
    if (wait.sinceMicroseconds)
      one["since_us"] = *wait.sinceMicroseconds;
    if (wait.lastedSeconds > 0)
      one.update({{"lasted_s", wait.lastedSeconds}, {"stopped_looking", wait.stands}});
    one["word"] = wait.word;
    if (!wait.role.empty())
      one["role"] = wait.role;
    if (wait.wordRank)
      one["word_rank"] = *wait.wordRank;
    if (wait.has)
      one["has"] = *wait.has;
    one["wants"] = wantsOf(wait);
    if (wait.attempts)
      one["attempts"] = wait.attempts;
    if (wait.acts)
      one["acts_between"] = true;
    if (!wait.lastWritten.empty())
      one["last_written"] = wait.lastWritten;
    if (!wait.inSameBlock.empty())
      one["in_same_block"] = wait.inSameBlock;
    if (wait.knowsRaisers) {
      one["could_be_raised_by"] = ordered_json::array();
      for (const Raiser &raiser : wait.raisers)
        one["could_be_raised_by"].push_back({{"rank", raiser.rank}, {"who", raiser.who}, {"state", raiser.state}});
    }
    waits.push_back(std::move(one));
  }
  for (const RankActivity &rank : report.ranks)
    ranks.push_back({{"rank", rank.rank}, {"doing", rank.lines}});
  ordered_json whole = {{"kind", report.kind}, {"headline", report.headline}};
  if (report.microseconds)
    whole["virtual_time_us"] = *report.microseconds;
  whole.update({{"waits", std::move(waits)}, {"ranks", std::move(ranks)}});
  return whole.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

} // namespace ditron::explain
