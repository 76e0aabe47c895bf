//===- WaitReport.cpp - Who waits for what, as text -----------------------------------------------------------------===//
#include "ditron/explain/waits/WaitReport.h"

#include "ditron/support/Plural.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <tuple>

namespace ditron::explain {

namespace {

/// So many ranks that do the same are one entry; fewer are easier to read one by one.
constexpr size_t manyRanks = 4;

std::string siteText(const Wait &wait) {
  return wait.file.empty() ? std::string() : fmt::format(" at {}:{}:{}", wait.file, wait.line, wait.column);
}

std::string whoText(const Wait &wait) {
  std::string text = wait.who + siteText(wait);
  if (!wait.blocks.empty())
    text += fmt::format(", {}, {} {}", wait.blocks, wait.threads.size() == 1 ? "thread" : "threads",
                        rangesText(wait.threads));
  return text;
}

/// What is behind the name of the word.
std::string stateText(const Wait &wait) {
  std::string text = wait.role.empty() ? std::string() : fmt::format(" ({})", wait.role);
  text += wait.has ? fmt::format(": has {}, ", *wait.has) : std::string(": ");
  if (!wait.wants.empty())
    return text + fmt::format("wants {}", wait.wants);
  if (wait.acts)
    return text + fmt::format("read {} times so far, with effects in between", wait.attempts);
  text += "polls it in a loop until it changes";
  if (wait.attempts)
    text += fmt::format(", {} times so far, never in the state of an earlier time", wait.attempts);
  return text;
}

std::string lastedText(const Wait &wait) {
  const double seconds = wait.lastedSeconds;
  if (seconds <= 0)
    return {};
  return (seconds < 1e-3 ? fmt::format("; for {:.0f} us", seconds * 1e6)
          : seconds < 1  ? fmt::format("; for {:.0f} ms", seconds * 1e3)
                         : fmt::format("; for {:.1f} s", seconds)) +
         (wait.stands ? "; it has stopped looking (a stopped GPU, or a kernel that was ended)" : "");
}

std::string placeOfWord(const Wait &wait) { return wait.wordRank ? fmt::format(" on rank {}", *wait.wordRank) : ""; }

std::string ranksText(const std::set<uint64_t> &ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", rangesText(ranks));
}

std::string raisersText(const std::vector<Raiser> &raisers, const Wait &wait) {
  if (!wait.knowsRaisers)
    return {};
  if (raisers.empty() && wait.onlyRank)
    return fmt::format(
        "nobody is left who could raise it: only rank {} does, and none of its kernels runs or is still to run",
        *wait.onlyRank);
  if (raisers.empty() && wait.onlyItself)
    return "nobody is left who could raise it: all threads that are left of those who were given it wait for it";
  if (raisers.empty())
    return "nobody is left who could raise it: nothing that runs or is still to run was given it";
  std::vector<std::pair<std::string, std::string>> order;
  std::map<std::pair<std::string, std::string>, std::set<uint64_t>> ranks;
  for (const Raiser &raiser : raisers) {
    auto [group, isNew] = ranks.try_emplace({raiser.who, raiser.state});
    if (isNew)
      order.push_back(group->first);
    group->second.insert(raiser.rank);
  }
  std::string text;
  for (const auto &[who, state] : order)
    text += fmt::format("{}{} on {}, {}", text.empty() ? "" : "; ", who, ranksText(ranks[{who, state}]), state);
  return "could still raise it: " + text;
}

/// Waits of several ranks that differ in the rank alone, each for a word of its own rank or all for one.
struct RankGroup {
  std::vector<const Wait *> waits;

  bool isEachItsOwn() const {
    return std::all_of(waits.begin(), waits.end(), [](const Wait *wait) { return wait->wordRank == wait->rank; });
  }
};

std::string entryText(const std::vector<const Wait *> &waits, bool isEachItsOwn) {
  const Wait &first = *waits.front();
  std::set<uint64_t> ranks;
  std::vector<Raiser> raisers;
  bool isOneWriter = true;
  for (const Wait *wait : waits) {
    ranks.insert(wait->rank);
    isOneWriter &= wait->lastWritten == first.lastWritten;
    for (const Raiser &raiser : wait->raisers)
      if (std::none_of(raisers.begin(), raisers.end(), [&](const Raiser &other) {
            return other.rank == raiser.rank && other.who == raiser.who && other.state == raiser.state;
          }))
        raisers.push_back(raiser);
  }
  std::string text = fmt::format("  {}, {}\n    {} {}{}", ranksText(ranks), whoText(first),
                                 first.acts ? "looks at" : "waits for", first.word, placeOfWord(first));
  if (waits.size() > 1 && isEachItsOwn)
    text += ", each of the others for that of its own rank";
  text += stateText(first) + lastedText(first);
  if (!first.lastWritten.empty())
    text += "; " + first.lastWritten +
            (isOneWriter ? "" : fmt::format(" (that of rank {})", first.wordRank.value_or(first.rank)));
  text += "\n";
  if (const std::string who = raisersText(raisers, first); !who.empty())
    text += fmt::format("    {}\n", who);
  if (!first.inSameBlock.empty())
    text += fmt::format("    in the same block: {}\n", first.inSameBlock);
  return text;
}

std::string waitsText(const std::vector<Wait> &waits) {
  // Equal but for the rank. A word of the waiting rank's own counts as equal to that of another rank's own.
  using Key = std::tuple<std::string, std::string, bool, uint32_t, std::string, bool, std::string>;
  std::map<Key, std::vector<const Wait *>> groups;
  std::vector<const std::pair<const Key, std::vector<const Wait *>> *>
      groupOf; // of each wait: there may be tens of thousands
  for (const Wait &wait : waits) {
    const bool own = wait.wordRank == wait.rank;
    Key key{whoText(wait),
            wait.word,
            own,
            own ? 0 : wait.wordRank.value_or(UINT32_MAX),
            stateText(wait),
            wait.lastWritten == "never written",
            wait.inSameBlock + (wait.stands ? " stands" : "")};
    const auto group = groups.try_emplace(std::move(key)).first;
    group->second.push_back(&wait);
    groupOf.push_back(&*group);
  }
  std::string text;
  for (size_t i = 0; i < waits.size(); ++i) {
    const auto &[key, group] = *groupOf[i];
    if (group.size() < manyRanks)
      text += entryText({&waits[i]}, /*isEachItsOwn=*/false);
    else if (group.front() == &waits[i])
      text += entryText(group, std::get<2>(key));
  }
  return text;
}

std::string activityText(const std::vector<RankActivity> &ranks) {
  std::map<std::vector<std::string>, std::set<uint64_t>> equal;
  for (const RankActivity &rank : ranks)
    equal[rank.lines].insert(rank.rank);
  std::string text = "what the ranks are doing:\n";
  for (const RankActivity &rank : ranks) {
    const std::set<uint64_t> &group = equal[rank.lines];
    const bool isMany = group.size() >= manyRanks;
    if (isMany && *group.begin() != rank.rank)
      continue;
    text += fmt::format("  {}:\n", ranksText(isMany ? group : std::set<uint64_t>{rank.rank}));
    for (const std::string &line : rank.lines)
      text += fmt::format("    {}\n", line);
    if (rank.lines.empty())
      text += "    idle\n";
  }
  return text;
}

} // namespace

std::string rangesText(const std::set<uint64_t> &values) {
  std::string text;
  for (auto it = values.begin(); it != values.end();) {
    uint64_t first = *it, last = first;
    while (++it != values.end() && *it == last + 1)
      last = *it;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", first);
    if (last != first)
      text += fmt::format("{}{}", last == first + 1 ? ", " : "..", last);
  }
  return text;
}

std::string textOf(const std::vector<Wait> &waits) {
  std::string text = waitsText(waits);
  if (!text.empty())
    text.pop_back();
  return text;
}

std::string textOf(const WaitReport &report) {
  std::string text = report.headline + "\n";
  if (!report.waits.empty() || !report.noWaits.empty())
    text += "waiting:\n";
  text += report.waits.empty() ? (report.noWaits.empty() ? "" : "  " + report.noWaits + "\n") : waitsText(report.waits);
  text += activityText(report.ranks);
  text.pop_back();
  return text;
}

} // namespace ditron::explain
