//===- Exploration.cpp - One program under many schedules -------------------------------------------------------------===//

#include "run/Exploration.h"

#include "ditron/sim/Machine.h"
#include "ditron/sim/engine/TimeLimit.h"
#include "ditron/support/Plural.h"
#include "ditron/values/ArrayPrint.h"
#include "ditron/values/TextPieces.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::tool {

namespace {

std::string firstLine(const std::string &text) { return text.substr(0, text.find('\n')); }

/// What two failures have in common that are one mistake: their kind and place, or else their words without numbers.
std::string kindOf(const Status &status) {
  if (const SourceLocation *place = status.location())
    return fmt::format("{} {}:{}", static_cast<int>(status.code()), place->file, place->line);
  std::string words = firstLine(status.message());
  // The place of a message that has been rendered with its line.
  if (const size_t end = words.find(": error: "); end != std::string::npos)
    return fmt::format("{} {}", static_cast<int>(status.code()), words.substr(0, words.rfind(':', end - 1)));
  std::erase_if(words, [](unsigned char c) { return std::isdigit(c) != 0; });
  return fmt::format("{} {}", static_cast<int>(status.code()), words);
}

/// The first run that ended well.
struct Reference {
  sim::Schedule schedule;
  std::vector<RunOutcome::Result> results;
};

/// Turns a run whose results differ from those of the reference into one that has failed.
void compareResults(const Reference &reference, uint64_t seed, std::string_view howToName, RunOutcome &outcome) {
  const std::vector<RunOutcome::Result> &wanted = reference.results;
  for (size_t i = 0; i < std::min(wanted.size(), outcome.results.size()); ++i) {
    const RunOutcome::Result &expected = wanted[i], &got = outcome.results[i];
    const auto [a, b] = std::ranges::mismatch(expected.array.data, got.array.data);
    if (a == expected.array.data.end() && b == got.array.data.end())
      continue;
    const size_t bytes =
        std::max<size_t>(1, expected.array.data.size() / std::max<size_t>(1, expected.array.elementCount()));
    const size_t element = static_cast<size_t>(a - expected.array.data.begin()) / bytes;
    const auto text = [&](const NpyArray &array) {
      return values::elementText(array.type, array.data.data() + element * bytes);
    };
    outcome.mismatched = true;
    outcome.status = invalidArgument(
        fmt::format("the result depends on the schedule: element {} of {} is {} with --seed {} and {} with --seed {}; "
                    "if {} is no result, {} says which arrays are and compares only those; --results-may-differ "
                    "accepts any difference{}",
                    values::indexText(static_cast<int64_t>(element), expected.array.shape), expected.name,
                    text(expected.array), reference.schedule.seed, text(got.array), seed,
                    expected.name.substr(0, expected.name.find(" on rank ")), howToName, outcome.oldValues));
    outcome.isDifferent = true;
    return;
  }
}

/// Tries to do without what the schedule draws, as long as the same goes wrong.
void simplify(const RunOnce &run, const std::string &kind, const std::function<void(RunOutcome &, uint64_t)> &judge,
              ExplorationResult &result) {
  for (bool simpler = true; simpler;) {
    simpler = false;
    for (const std::string &knob : result.schedule.drawnKnobs()) {
      const sim::Schedule candidate = result.schedule.without(knob);
      if (candidate == result.schedule)
        continue;
      RunOutcome outcome = run(candidate);
      result.interrupted = sim::TimeLimit::interruption() != 0;
      if (result.interrupted)
        return;
      judge(outcome, candidate.seed);
      if (!outcome.isFailureOfProgram() || kindOf(outcome.status) != kind)
        continue;
      result.schedule = candidate;
      result.outcome = std::move(outcome);
      simpler = true;
    }
  }
}

} // namespace

std::string oldValuesNote(const runtime::World &world) {
  const std::string lines = world.machine() ? world.machine()->oldValues() : std::string();
  if (lines.empty())
    return {};
  return "\nditron: note: under this schedule loads were given older values, as a GPU may:\n" + lines;
}

std::string ExplorationResult::summary() const {
  std::string text = interrupted ? "interrupted " : "";
  if (unfinished)
    text += fmt::format("in the schedule of --seed {}, ", unfinished->seed);
  text += (interrupted ? "after " : "") + plural(schedules, "schedule");
  if (schedules)
    text += failed ? fmt::format(": {} failed", failed) : std::string(": all ended well");
  text += "\n";
  for (const Failure &failure : failures)
    text += fmt::format("  {} of {}, first with --seed {}: {}\n", failure.count, schedules, failure.firstSeed,
                        failure.what);
  if (failed == 0)
    return text;
  const std::vector<std::string> knobs = schedule.drawnKnobs();
  if (knobs.empty() && schedule.seed == 0)
    text += "the first fails without anything being left to chance\n";
  else if (knobs.empty())
    text += fmt::format("the first fails with nothing left to chance but small differences of cost: {}\n",
                        schedule.toJson());
  else
    text += fmt::format("the first fails with nothing left to chance but {}: {}\n", fmt::join(knobs, ", "),
                        schedule.toJson());
  return text;
}

Expected<ExplorationResult> explore(const ExplorationOptions &options, const RunOnce &run,
                                    const std::function<void(double)> &reached) {
  ExplorationResult result;
  std::optional<Reference> reference;
  const auto judge = [&](RunOutcome &outcome, uint64_t seed) {
    if (outcome.status.isOk() && reference && !options.resultsMayDiffer)
      compareResults(*reference, seed, options.howToName, outcome);
  };
  std::vector<std::string> kinds;
  for (uint64_t i = 0; i < options.schedules && !result.interrupted; ++i) {
    const sim::Schedule schedule = options.given.empty()
                                       ? sim::Schedule::draw(options.firstSeed + i, options.ranks, options.smsPerRank)
                                       : options.given[i];
    const uint64_t seed = schedule.seed;
    RunOutcome outcome = run(schedule);
    result.interrupted = sim::TimeLimit::interruption() != 0;
    if (result.interrupted) {
      if (!outcome.status.isOk())
        result.unfinished = {seed, std::move(outcome.status)};
      break;
    }
    judge(outcome, seed);
    if (!outcome.status.isOk() && !outcome.isFailureOfProgram())
      return outcome.status;
    ++result.schedules;
    reached(static_cast<double>(i + 1) / static_cast<double>(options.schedules));
    if (outcome.status.isOk()) {
      if (!reference)
        reference = {schedule, std::move(outcome.results)};
      continue;
    }
    ++result.failed;
    const std::string kind = kindOf(outcome.status);
    const auto known = std::ranges::find(kinds, kind);
    const auto place = static_cast<size_t>(known - kinds.begin());
    if (known == kinds.end()) {
      kinds.push_back(kind);
      result.failures.push_back({firstLine(outcome.status.message()), 0, seed});
    }
    ++result.failures[place].count;
    if (result.failed == 1) {
      result.schedule = schedule;
      result.outcome = std::move(outcome);
    }
  }
  if (result.failed && !result.interrupted && options.given.empty())
    simplify(run, kinds.front(), judge, result);
  if (result.outcome.isDifferent)
    result.reference = reference->schedule;
  return result;
}

} // namespace ditron::tool
