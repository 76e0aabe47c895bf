//===- Tuner.cpp - From shapes to a table of plans ------------------------------------------------------------------------===//
#include "tune/Tuner.h"

#include "ditron/support/OutputFile.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <tuple>

namespace ditron::tool {

namespace {

/// A row without sizes and plan.
ops::PlanRow keyOf(const TuneProblem &problem, const std::string &gpu) {
  ops::PlanRow row;
  row.op = problem.op;
  row.gpu = gpu;
  std::ranges::replace(row.gpu, ' ', '_');
  row.ranks = problem.ranks;
  row.dtype = problem.dtype;
  return row;
}

/// The row of a trial in the journal: the very sizes, and the GPU that it ran on, whatever rows of the table call it.
ops::PlanRow trialRow(const TuneProblem &problem, const std::string &gpu, const std::string &plan) {
  ops::PlanRow row = keyOf(problem, gpu);
  const auto add = [&](std::string_view name, int64_t size) {
    row.sizes.push_back({std::string(name), size, false, size});
  };
  if (problem.isCollective() || problem.isGrouped() || problem.isAttention()) {
    for (const auto &[name, size] : problem.sizes())
      add(name, size);
  } else { // of the whole
    add("m", problem.m);
    add("n", problem.n);
    add("k", problem.k);
  }
  row.plan = plan;
  return row;
}

/// Plans that are given go first, then those of the model; each once.
Expected<std::vector<Candidate>> candidatesOf(const TuneProblem &problem, const TuneOptions &options,
                                              const TuneMachine &machine) {
  std::vector<Candidate> candidates;
  for (const std::string &plan : options.plans) {
    DITRON_ASSIGN_OR_RETURN(const double predicted, predictedMicroseconds(problem, machine, plan));
    candidates.push_back({plan, predicted});
  }
  DITRON_ASSIGN_OR_RETURN(const std::vector<Candidate> found, candidatesFor(problem, machine, options.mostCandidates));
  for (const Candidate &each : found)
    if (std::ranges::find(options.plans, each.plan) == options.plans.end())
      candidates.push_back(each);
  return candidates;
}

/// Puts the row into the file, in place of one with the same key.
Status writeRow(const std::string &path, const ops::PlanRow &row) {
  ops::PlanTable table;
  if (std::filesystem::exists(path)) {
    DITRON_ASSIGN_OR_RETURN(table, ops::PlanTable::read(path));
  }
  const auto same = std::ranges::find_if(table.rows, [&](ops::PlanRow each) {
    for (size_t i = 0; i < std::min(each.sizes.size(), row.sizes.size()); ++i)
      each.sizes[i].least = row.sizes[i].least; // what is below has been tuned, or not, since then
    return each.hasKeyOf(row);
  });
  if (same == table.rows.end())
    table.rows.push_back(row);
  else
    *same = row;
  const auto key = [](const ops::PlanRow &each) {
    return std::tuple(each.op, each.gpu, each.ranks.value_or(0),
                      each.dtype ? toString(*each.dtype) : std::string_view(),
                      each.sizes.empty() ? 0 : each.sizes.front().value, each.text());
  };
  std::ranges::sort(table.rows, {}, key);
  return writeWholeFile(path,
                        "# Written by `ditron tune`; use it with DITRON_PLANS=FILE (docs/tuner.md).\n" + table.text());
}

/// Has those that are close to the best run in turns, whose times then count. Nothing changes when one of them has no time.
void settle(TunedProblem &tuned, const TrialOptions &options) {
  const std::vector<TunedPlan *> close = closeToBest(tuned);
  if (close.size() < 2)
    return;
  std::vector<std::string> names;
  for (const TunedPlan *plan : close)
    names.push_back(plan->plan);
  const std::map<std::string, double> times = runTurns(tuned.problem, names, options);
  if (times.size() != close.size() ||
      !std::ranges::all_of(names, [&](const std::string &name) { return times.contains(name); }))
    return;
  for (TunedPlan *plan : close)
    plan->result.microseconds = times.at(plan->plan);
  tuned.best = *std::ranges::min_element(close, {}, [](const TunedPlan *plan) { return *plan->result.microseconds; });
  tuned.inTurns = close.size();
}

} // namespace

std::vector<TunedPlan *> closeToBest(TunedProblem &tuned) {
  constexpr double close = 1.15;
  constexpr size_t most = 4;
  std::vector<TunedPlan *> result;
  if (!tuned.best)
    return result;
  for (TunedPlan &plan : tuned.plans)
    if (plan.result.microseconds && *plan.result.microseconds <= close * *tuned.best->result.microseconds)
      result.push_back(&plan);
  std::ranges::stable_sort(result, {}, [](const TunedPlan *plan) { return *plan->result.microseconds; });
  result.resize(std::min(result.size(), most));
  return result;
}

std::vector<ops::PlanSize> bucketOf(const TuneProblem &problem, const std::vector<TuneProblem> &all) {
  const int64_t size = problem.firstSize();
  int64_t below = size / 4;
  for (const TuneProblem &other : all)
    if (other.n == problem.n && other.k == problem.k && other.firstSize() < size)
      below = std::max(below, other.firstSize());
  std::vector<ops::PlanSize> bucket;
  for (const auto &[name, value] : problem.sizes())
    bucket.push_back({std::string(name), value, true});
  bucket.front() = {bucket.front().name, size, false, below + 1};
  return bucket;
}

Status tune(const TuneOptions &options, const TuneMachine &machine, const std::string &version, Progress &progress,
            const std::function<void(const TunedProblem &)> &report) {
  const std::string gpu = options.gpu.empty() ? machine.gpu.name : options.gpu;
  // A table that cannot be read is not one to be replaced.
  if (std::filesystem::exists(options.outFile))
    DITRON_RETURN_IF_ERROR(ops::PlanTable::read(options.outFile).status().withContext("--out"));
  DITRON_ASSIGN_OR_RETURN(Journal journal, Journal::open(options.outFile + ".journal", version, options.startOver));
  std::vector<TunedProblem> tuned;
  size_t trials = 0;
  for (const TuneProblem &problem : options.problems) {
    TunedProblem &one = tuned.emplace_back();
    one.problem = problem;
    DITRON_ASSIGN_OR_RETURN(const std::vector<Candidate> candidates, candidatesOf(problem, options, machine));
    for (const Candidate &candidate : candidates) {
      TunedPlan &plan = one.plans.emplace_back();
      plan.plan = candidate.plan;
      plan.predictedMicroseconds = candidate.predictedMicroseconds;
      if (const TrialResult *known = journal.find(trialRow(problem, machine.gpu.name, candidate.plan))) {
        plan.result = *known;
        plan.isFromJournal = true;
      } else {
        ++trials;
      }
    }
  }
  // Plans that an earlier run has tried count, too: the best of them is not given up for the best of fewer.
  for (TunedProblem &one : tuned)
    for (const auto &[plan, result] : journal.plansOf(trialRow(one.problem, machine.gpu.name, "")))
      if (std::ranges::find(one.plans, plan, &TunedPlan::plan) == one.plans.end())
        if (const auto predicted = predictedMicroseconds(one.problem, machine, plan); predicted.isOk())
          one.plans.push_back({plan, *predicted, result, true});
  size_t done = 0;
  for (TunedProblem &one : tuned) {
    for (TunedPlan &plan : one.plans) {
      if (!plan.isFromJournal) {
        progress.activity(
            fmt::format("{} {}: {} (trial {} of {})", one.problem.op, one.problem.text(), plan.plan, done + 1, trials));
        TrialOptions trial = options.trial;
        if (const auto fault = options.planted.find(plan.plan); fault != options.planted.end())
          trial.plant = fault->second;
        plan.result = runTrial(one.problem, plan.plan, trial);
        DITRON_RETURN_IF_ERROR(journal.add(trialRow(one.problem, machine.gpu.name, plan.plan), plan.result));
        progress.reached(static_cast<double>(++done) / static_cast<double>(trials));
      }
      if (plan.result.microseconds && (!one.best || *plan.result.microseconds < *one.best->result.microseconds))
        one.best = &plan;
    }
    if (one.best && one.problem.comparesPlans() && !machine.target.simulated) {
      progress.activity(fmt::format("{} {}: the best in turns", one.problem.op, one.problem.text()));
      settle(one, options.trial);
    }
    if (one.best) {
      ops::PlanRow row = keyOf(one.problem, gpu);
      row.sizes = bucketOf(one.problem, options.problems);
      row.plan = one.best->plan;
      row.comment = fmt::format("{:.2f} us, the best of {}{}{}", *one.best->result.microseconds, one.plans.size(),
                                one.inTurns ? fmt::format(", {} of them in turns", one.inTurns) : "",
                                machine.target.simulated ? ", simulated" : "");
      const Journal::Lock alone = journal.lock();
      DITRON_RETURN_IF_ERROR(writeRow(options.outFile, row).withContext("--out"));
    }
    report(one);
  }
  return Status::ok();
}

} // namespace ditron::tool
