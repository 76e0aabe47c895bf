//===- CollectivePlans.cpp - Reading the table of collectives ---------------------------------------------------------===//
#include "ditron/ops/collectives/CollectivePlans.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <map>
#include <optional>

namespace ditron::ops {

namespace {

/// Of packets: the words of all ranks are in registers at once.
constexpr uint32_t mostPacketRanks = 16;
constexpr uint32_t mostBlocks = 1024, mostWarps = 32;
constexpr uint32_t leastThreadsOfWarp = 32;
constexpr uint32_t leastChunkBytes = 512, mostChunkBytes = 1 << 16;

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> result;
  line = line.substr(0, line.find('#'));
  for (size_t at = 0; (at = line.find_first_not_of(" \t\r", at)) != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    result.push_back(line.substr(at, end - at));
    at = end;
  }
  return result;
}

template <typename Number> std::optional<Number> parseNumber(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

/// What the table may say of a form.
struct FormTraits {
  CollectiveForm form;
  std::string_view name;
  bool hasChunks;  ///< The column of that name is a number of bytes.
  bool isForNodes; ///< For worlds of several nodes, and not for others.
  std::vector<CollectiveKind> kinds;
};

const std::vector<FormTraits> &allForms() {
  using enum CollectiveKind;
  using Form = CollectiveForm;
  static const std::vector<FormTraits> forms = {
      {Form::Packets, "packets", false, false, {AllReduce, AllGather, ReduceScatter, AllToAll}},
      {Form::TwoShotPackets, "two_shot_packets", false, false, {AllReduce}},
      {Form::Lamport, "lamport", false, false, {AllReduce, AllGather, ReduceScatter, AllToAll}},
      {Form::TwoShotLamport, "two_shot_lamport", false, false, {AllReduce}},
      {Form::Chunks, "chunks", true, false, {AllReduce, AllGather, ReduceScatter, AllToAll, Broadcast}},
      {Form::Ring, "ring", true, false, {AllReduce, AllGather, ReduceScatter, Broadcast}},
      {Form::CopyEngine, "copy_engine", false, false, {AllGather, AllToAll, Broadcast}},
      {Form::TensorCopies, "tensor_copies", true, false, {AllReduce, AllGather, ReduceScatter, AllToAll}},
      {Form::OneShotMultimem, "one_shot_multimem", true, false, {AllReduce}},
      {Form::Multimem, "multimem", true, false, {AllReduce, AllGather}},
      {Form::TwoLevelPackets, "two_level_packets", false, true, {AllReduce, AllGather}},
      {Form::TwoLevel, "two_level", true, true, {AllReduce, AllGather, ReduceScatter}},
  };
  return forms;
}

const FormTraits &traitsOf(CollectiveForm form) { return *std::ranges::find(allForms(), form, &FormTraits::form); }

/// Whether ranks hand each other packets, which are all in registers at once.
bool hasPackets(CollectiveForm form) {
  return form == CollectiveForm::Packets || form == CollectiveForm::TwoShotPackets || form == CollectiveForm::Lamport ||
         form == CollectiveForm::TwoShotLamport;
}

std::optional<CollectiveForm> parseForm(std::string_view name) {
  const auto found = std::ranges::find(allForms(), name, &FormTraits::name);
  return found == allForms().end() ? std::nullopt : std::optional(found->form);
}

} // namespace

std::string_view toString(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::AllReduce: return "all_reduce";
  case CollectiveKind::AllGather: return "all_gather";
  case CollectiveKind::ReduceScatter: return "reduce_scatter";
  case CollectiveKind::AllToAll: return "all_to_all";
  case CollectiveKind::Broadcast: return "broadcast";
  }
  return "?";
}

const std::vector<CollectiveKind> &allCollectiveKinds() {
  static const std::vector<CollectiveKind> kinds = {CollectiveKind::AllReduce, CollectiveKind::AllGather,
                                                    CollectiveKind::ReduceScatter, CollectiveKind::AllToAll,
                                                    CollectiveKind::Broadcast};
  return kinds;
}

Expected<CollectiveKind> parseCollectiveKind(std::string_view name) {
  std::vector<std::string_view> names;
  for (CollectiveKind kind : allCollectiveKinds()) {
    if (toString(kind) == name)
      return kind;
    names.push_back(toString(kind));
  }
  return invalidArgument(fmt::format("there is no collective '{}'; there are {}", name, fmt::join(names, ", ")));
}

std::string_view toString(CollectiveForm form) { return traitsOf(form).name; }

const std::vector<CollectiveForm> &formsOf(CollectiveKind kind) {
  static const auto byKind = [] {
    std::map<CollectiveKind, std::vector<CollectiveForm>> forms;
    for (const FormTraits &traits : allForms())
      for (CollectiveKind each : traits.kinds)
        forms[each].push_back(traits.form);
    return forms;
  }();
  return byKind.at(kind);
}

bool hasChunks(CollectiveForm form) { return traitsOf(form).hasChunks; }
bool isForNodes(CollectiveForm form) { return traitsOf(form).isForNodes; }
bool hasFormForNodes(CollectiveKind kind) { return std::ranges::any_of(formsOf(kind), isForNodes); }

std::string CollectivePlan::text() const {
  return fmt::format("{} {} {} {}", toString(form), blocks, numWarps,
                     hasChunks(form) ? fmt::to_string(chunkBytes) : "-");
}

Expected<CollectivePlan> parseCollectivePlan(std::string_view text) {
  const std::vector<std::string_view> fields = words(text);
  const std::optional<CollectiveForm> form = fields.empty() ? std::nullopt : parseForm(fields[0]);
  if (form && fields.size() >= 3 && fields.size() <= 4) {
    const std::optional<uint32_t> blocks = parseNumber<uint32_t>(fields[1]), warps = parseNumber<uint32_t>(fields[2]);
    const std::string_view cut = fields.size() == 4 ? fields[3] : "-";
    const std::optional<uint32_t> chunk = parseNumber<uint32_t>(cut);
    const bool chunked = hasChunks(*form);
    if (blocks && warps && (chunked ? chunk.has_value() : cut == "-"))
      return CollectivePlan{*form, *blocks, *warps, chunked ? *chunk : 0};
  }
  std::vector<std::string> accepted;
  for (const FormTraits &traits : allForms())
    accepted.push_back(fmt::format("'{} BLOCKS WARPS{}'", traits.name, traits.hasChunks ? " BYTES" : ""));
  return invalidArgument(
      fmt::format("'{}' is no plan of a collective; accepted are {}", text, fmt::join(accepted, ", ")));
}

Status CollectivePlan::verify(CollectiveKind kind, uint32_t numRanks, uint32_t numNodes) const {
  const FormTraits &traits = traitsOf(form);
  if (std::ranges::find(traits.kinds, kind) == traits.kinds.end() || traits.isForNodes != (numNodes > 1)) {
    std::vector<std::string_view> forms;
    for (CollectiveForm each : formsOf(kind))
      if (isForNodes(each) == (numNodes > 1))
        forms.push_back(toString(each));
    return unsupported(fmt::format("{} by {} on {} node{}; its forms there are: {}", toString(kind), traits.name,
                                   numNodes, numNodes > 1 ? "s" : "", fmt::join(forms, ", ")));
  }
  if (hasPackets(form) && numRanks > mostPacketRanks)
    return unsupported(fmt::format("{} by {} on {} ranks; at most {} are accepted, or the form chunks", toString(kind),
                                   traits.name, numRanks, mostPacketRanks));
  if (form == CollectiveForm::TwoLevelPackets && numRanks / numNodes > mostPacketRanks)
    return unsupported(fmt::format("{} by {} on nodes of {} ranks; at most {} are accepted, or the form two_level",
                                   toString(kind), traits.name, numRanks / numNodes, mostPacketRanks));
  if (blocks < 1 || blocks > mostBlocks)
    return invalidArgument(fmt::format("{} blocks; 1 to {} are accepted", blocks, mostBlocks));
  if (!std::has_single_bit(numWarps) || numWarps > mostWarps)
    return invalidArgument(fmt::format("{} warps; powers of two up to {} are accepted", numWarps, mostWarps));
  // Each signals with a thread.
  if (traits.hasChunks && numRanks > numWarps * leastThreadsOfWarp)
    return unsupported(fmt::format("{} by {} with {} warps on {} ranks; at least {} warps are accepted", toString(kind),
                                   traits.name, numWarps, numRanks,
                                   std::bit_ceil((numRanks + leastThreadsOfWarp - 1) / leastThreadsOfWarp)));
  if (traits.hasChunks &&
      (!std::has_single_bit(chunkBytes) || chunkBytes < leastChunkBytes || chunkBytes > mostChunkBytes))
    return invalidArgument(fmt::format("chunks of {} bytes; powers of two from {} to {} are accepted", chunkBytes,
                                       leastChunkBytes, mostChunkBytes));
  return Status::ok();
}

Expected<std::vector<CollectivePlanRow>> collectivePlanRows(const PlanChoice &choice, const PlanSizes &others) {
  constexpr int64_t anySize = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> limits = choice.limitsOf("bytes", others);
  limits.push_back(anySize);
  std::vector<CollectivePlanRow> rows;
  for (const int64_t limit : limits) {
    PlanSizes sizes = {{"bytes", limit}};
    sizes.insert(sizes.end(), others.begin(), others.end());
    const PlanRow *found = choice.find(sizes);
    if (!found)
      return invalidArgument(rows.empty() && limits.size() == 1
                                 ? std::string("no row of the tables of plans fits")
                                 : fmt::format("no row of the tables of plans fits {} bytes", limit));
    DITRON_ASSIGN_OR_RETURN(const CollectivePlan plan, parseCollectivePlan(found->plan));
    const uint64_t mostBytes = limit == anySize ? std::numeric_limits<uint64_t>::max() : static_cast<uint64_t>(limit);
    if (!rows.empty() && rows.back().plan == plan)
      rows.back().mostBytes = mostBytes;
    else
      rows.push_back({mostBytes, plan});
  }
  return rows;
}

static Expected<std::vector<CollectivePlanRow>> rowsOf(const PlanKey &key, const PlanSizes &others = {}) {
  DITRON_ASSIGN_OR_RETURN(const PlanChoice choice, PlanChoice::create(key));
  Expected<std::vector<CollectivePlanRow>> rows = collectivePlanRows(choice, others);
  if (!rows.isOk())
    return rows.status().withContext(fmt::format("{} of {} on {} with {} ranks on {} node{}", key.op,
                                                 ditron::toString(key.dtype), key.gpu, key.numRanks, key.numNodes,
                                                 key.numNodes > 1 ? "s" : ""));
  return rows;
}

Expected<std::vector<CollectivePlanRow>> collectivePlanRows(CollectiveKind kind, std::string_view gpu,
                                                            uint32_t numRanks, DataType dtype, uint32_t numNodes) {
  return rowsOf({std::string(toString(kind)), std::string(gpu), numRanks, dtype, numNodes});
}

Expected<std::vector<CollectivePlanRow>> collectivePlanRows(std::string_view op, std::string_view gpu,
                                                            uint32_t numRanks, DataType dtype,
                                                            const PlanSizes &others) {
  return rowsOf({std::string(op), std::string(gpu), numRanks, dtype}, others);
}

Status verifyPlanOf(std::string_view op, const CollectivePlan &plan, uint32_t numRanks) {
  using enum CollectiveForm;
  const bool isPairs = op == pairsOperator;
  const std::vector<CollectiveForm> forms =
      isPairs ? std::vector{Packets, Chunks} : std::vector{Lamport, TwoShotLamport, Chunks};
  if (std::ranges::find(forms, plan.form) == forms.end()) {
    std::vector<std::string_view> names;
    for (CollectiveForm form : forms)
      names.push_back(toString(form));
    return unsupported(fmt::format("{} by {}; its forms are {}", op, toString(plan.form), fmt::join(names, ", ")));
  }
  return plan.verify(isPairs ? CollectiveKind::AllToAll : CollectiveKind::AllReduce, numRanks);
}

} // namespace ditron::ops
