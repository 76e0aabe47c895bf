//===- TensorParallelPlan.cpp - The words of plans of products over several ranks ------------------------------------------===//
#include "ditron/ops/plans/TensorParallelPlan.h"

#include "ditron/ops/Gemm.h"
#include "ditron/ops/plans/PlanWords.h"

#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>

namespace ditron::ops {

namespace {

using Form = TensorParallelForm;
constexpr std::array allForms = {Form::OneLaunch,    Form::Overlapped, Form::Unfused, Form::OneShot,
                                 Form::FusedTwoShot, Form::TwoShot,    Form::Pushed};
constexpr uint32_t mostChunks = 128, mostBlocks = 128;

bool hasForm(std::string_view op, TensorParallelForm form) {
  switch (form) {
  case Form::OneLaunch:
  case Form::Overlapped: return op != "gemm_ar";
  case Form::Unfused: return true;
  case Form::Pushed: return op != "ag_gemm";
  case Form::OneShot:
  case Form::FusedTwoShot:
  case Form::TwoShot: return op == "gemm_ar";
  }
  return false;
}

/// None where no row fits. The operator of a row has read its plan already.
std::optional<TensorParallelPlan> planOf(const PlanChoice &choice, const PlanSizes &sizes, bool givenOnly = false) {
  const PlanRow *row = choice.find(sizes, givenOnly);
  if (!row)
    return std::nullopt;
  auto plan = parseTensorParallelPlan(row->op, row->plan);
  return plan.isOk() ? std::optional(*plan) : std::nullopt;
}

} // namespace

std::string_view toString(TensorParallelForm form) {
  switch (form) {
  case Form::OneLaunch: return "one_launch";
  case Form::Overlapped: return "overlapped";
  case Form::Unfused: return "unfused";
  case Form::OneShot: return "one_shot";
  case Form::FusedTwoShot: return "fused_two_shot";
  case Form::TwoShot: return "two_shot";
  case Form::Pushed: return "pushed";
  }
  return "?";
}

std::string TensorParallelPlan::text() const {
  std::string text(toString(form));
  if (tile) {
    text += fmt::format(" {}x{}x{} warps {} stages {}", tile->blockM, tile->blockN, tile->blockK, tile->numWarps,
                        tile->numStages);
    text += isOneLaunch(form) ? fmt::format(" splits {}", splits) : fmt::format(" group {}", tile->groupM);
  }
  if (tailSplits)
    text += fmt::format(" tail-splits {}", tailSplits);
  if (chunks)
    text += fmt::format(" chunks {}", chunks);
  if (exchangeBlocks)
    text += fmt::format(" exchange_blocks {}", exchangeBlocks);
  return text;
}

Expected<TensorParallelPlan> parseTensorParallelPlan(std::string_view op, std::string_view text) {
  PlanWords words(text);
  TensorParallelPlan plan;
  std::vector<std::string> forms;
  const TensorParallelForm *found = nullptr;
  for (const TensorParallelForm &form : allForms) {
    if (!hasForm(op, form))
      continue;
    forms.emplace_back(toString(form));
    if (words.first() == toString(form))
      found = &form;
  }
  if (!found)
    return invalidArgument(
        fmt::format("'{}' is no form of {}; {} are accepted", words.first(), op, fmt::join(forms, ", ")));
  plan.form = *found;
  const bool single = isOneLaunch(plan.form);
  if (words.hasTile()) {
    DITRON_ASSIGN_OR_RETURN(plan.tile, words.tile());
    plan.tile->groupM = single ? 1 : plan.tile->groupM;
    DITRON_RETURN_IF_ERROR(words.number("warps", 1, 32, plan.tile->numWarps));
    DITRON_RETURN_IF_ERROR(words.number("stages", 1, 8, plan.tile->numStages));
    if (single)
      DITRON_RETURN_IF_ERROR(words.number("splits", 1, 64, plan.splits));
    else
      DITRON_RETURN_IF_ERROR(words.number("group", 1, 1024, plan.tile->groupM));
    DITRON_RETURN_IF_ERROR(plan.tile->verify());
  }
  if ((op == "ag_gemm" && !single) || plan.form == Form::TwoShot || plan.form == Form::Pushed)
    DITRON_RETURN_IF_ERROR(words.number("chunks", 1, op == "ag_gemm" ? 64 : mostChunks, plan.chunks));
  if (plan.form == Form::TwoShot)
    DITRON_RETURN_IF_ERROR(words.number("exchange_blocks", 1, mostBlocks, plan.exchangeBlocks));
  if (plan.form == Form::Overlapped || plan.form == Form::TwoShot)
    DITRON_RETURN_IF_ERROR(words.number("tail-splits", 1, 64, plan.tailSplits));
  DITRON_RETURN_IF_ERROR(words.finish());
  return plan;
}

std::vector<RowsPlan> plansByRows(const PlanChoice &choice, const PlanSizes &others, bool givenOnly) {
  std::vector<int64_t> limits = choice.limitsOf("m", others);
  limits.push_back(std::numeric_limits<int64_t>::max());
  std::vector<RowsPlan> plans;
  for (const int64_t limit : limits) {
    PlanSizes sizes = others;
    sizes.emplace_back("m", limit);
    RowsPlan here{limit, planOf(choice, sizes, givenOnly)};
    if (!plans.empty() && plans.back().plan == here.plan)
      plans.back().mostRows = limit;
    else
      plans.push_back(std::move(here));
  }
  return plans;
}

PlanSizes knownSizes(int64_t m, int64_t n, int64_t k) {
  PlanSizes sizes;
  for (const auto &[name, size] : {std::pair("m", m), std::pair("n", n), std::pair("k", k)})
    if (size > 0)
      sizes.emplace_back(name, size);
  return sizes;
}

Expected<TensorParallelChoice> TensorParallelChoice::create(runtime::World &world, std::string_view op,
                                                            const TensorParallelSetting &setting) {
  if (setting.plan)
    DITRON_RETURN_IF_ERROR(parseTensorParallelPlan(op, setting.plan->text()).status().withContext("the plan given"));
  if (setting.tile != libraryTile)
    DITRON_RETURN_IF_ERROR(setting.tile.verify());
  TensorParallelChoice choice;
  choice.setting = setting;
  choice.world = &world;
  DITRON_ASSIGN_OR_RETURN(choice.tables, PlanChoice::create(world, op, setting.dtype, setting.gpu));
  return choice;
}

std::optional<TensorParallelPlan> TensorParallelChoice::planFor(const PlanSizes &sizes) const {
  return setting.plan ? setting.plan : planOf(tables, sizes);
}

std::optional<TensorParallelPlan> TensorParallelChoice::agreedPlanFor(const PlanSizes &sizes) const {
  return setting.plan ? setting.plan : planOf(tables, sizes, /*givenOnly=*/true);
}

std::vector<RowsPlan> TensorParallelChoice::byRows(const PlanSizes &others, bool givenOnly) const {
  if (setting.plan)
    return {{std::numeric_limits<int64_t>::max(), setting.plan}};
  return plansByRows(tables, others, givenOnly);
}

int64_t TensorParallelChoice::oneLaunchRows(int64_t most, const PlanSizes &others) const {
  if (!setting.plan && world->numNodes() > 1)
    return 0;
  return mostRows(most, others, [](const auto &plan) { return plan && isOneLaunch(plan->form); }, /*givenOnly=*/true);
}

bool TensorParallelChoice::saysOneLaunch(int64_t rows, const PlanSizes &others) const {
  PlanSizes sizes = others;
  sizes.emplace_back("m", rows);
  const std::optional<TensorParallelPlan> plan = agreedPlanFor(sizes);
  return plan && isOneLaunch(plan->form);
}

std::vector<OneLaunchRows> TensorParallelChoice::oneLaunchTiles(const PlanSizes &others) const {
  std::vector<OneLaunchRows> tiles;
  for (const RowsPlan &each : byRows(others, /*givenOnly=*/true))
    tiles.push_back({each.mostRows, each.plan ? each.plan->oneLaunchTile() : std::nullopt});
  return tiles;
}

TileConfig TensorParallelChoice::tileFor(int64_t m, int64_t n, int64_t k) const {
  return tileOf(planFor(knownSizes(m, n, k)), m, n, k);
}

uint32_t TensorParallelChoice::tailSplitsFor(int64_t m, int64_t n, int64_t k) const {
  const std::optional<TensorParallelPlan> plan = planFor(knownSizes(m, n, k));
  return plan ? plan->tailSplits : 0;
}

std::optional<TileConfig> TensorParallelChoice::givenTileFor(int64_t m, int64_t n, int64_t k) const {
  return givenTileOf(planFor(knownSizes(m, n, k)));
}

std::optional<TileConfig> TensorParallelChoice::givenTileOf(const std::optional<TensorParallelPlan> &plan) const {
  const bool isInOptions = setting.tile != libraryTile;
  // What is given in the options goes before the tables, and a plan that is given before everything.
  if (plan && plan->tile && !isOneLaunch(plan->form) && (setting.plan || !isInOptions))
    return plan->tile;
  return isInOptions ? std::optional(setting.tile) : std::nullopt;
}

TileConfig TensorParallelChoice::tileOf(const std::optional<TensorParallelPlan> &plan, int64_t m, int64_t n,
                                        int64_t k) const {
  if (const std::optional<TileConfig> given = givenTileOf(plan))
    return *given;
  constexpr int64_t usual = 4096; // of a size that is not known
  return chooseTile({.m = m > 0 ? m : usual,
                     .n = n > 0 ? n : usual,
                     .k = k > 0 ? k : usual,
                     .dtype = setting.dtype,
                     .resultType = setting.resultType,
                     .order = setting.order,
                     .precision = setting.precision,
                     .epilogue = setting.epilogue},
                    *world);
}

} // namespace ditron::ops
