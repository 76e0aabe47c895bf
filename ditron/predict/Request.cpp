//===- Request.cpp - What is to be predicted ------------------------------------------------------------------------===//
#include "ditron/predict/Request.h"

#include "ditron/ops/Gemm.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::predict {

namespace {

/// The sizes that an operator takes; all others must not be given.
enum SizeSet : uint32_t { Product = 1, Bytes = 2, Moe = 4, Ep = 8, Attention = 16 };

struct OperatorRow {
  Operator op;
  std::string_view name;
  SizeSet sizes;
  std::vector<Form> forms;
};

const std::vector<OperatorRow> &operators() {
  using enum Operator;
  static const std::vector<Form> fused = {Form::Overlapped, Form::Unfused, Form::Vendor},
                                 own = {Form::Overlapped, Form::Vendor},
                                 collective = {Form::Vendor, Form::CopyEngine, Form::OneShot};
  static const std::vector<OperatorRow> rows = {
      {Gemm, "gemm", Product, own},
      {AgGemm, "ag_gemm", Product, fused},
      {GemmRs, "gemm_rs", Product, fused},
      {GemmAr, "gemm_ar", Product, {Form::Overlapped, Form::Vendor, Form::TwoShot}},
      {A2aGemm, "a2a_gemm", Product, own},
      {AllGather, "all_gather", Bytes, collective},
      {ReduceScatter, "reduce_scatter", Bytes, {Form::Vendor, Form::OneShot}},
      {AllReduce, "all_reduce", Bytes, {Form::Vendor, Form::OneShot, Form::TwoShot}},
      {AllToAll, "all_to_all", Bytes, collective},
      {AgMoe, "ag_moe", Moe, own},
      {MoeRs, "moe_rs", Moe, own},
      {MoeAr, "moe_ar", Moe, own},
      {EpDispatch, "ep_dispatch", Ep, {Form::Vendor, Form::OneShot}},
      {EpCombine, "ep_combine", Ep, {Form::Vendor, Form::OneShot}},
      {AgAttention, "ag_attention", Attention, own},
      {FlashDecode, "flash_decode", Attention, {Form::Overlapped}},
  };
  return rows;
}

const OperatorRow &rowOf(Operator op) { return *std::ranges::find(operators(), op, &OperatorRow::op); }

constexpr std::pair<Form, std::string_view> forms[] = {
    {Form::Overlapped, "overlapped"},  {Form::Unfused, "unfused"},  {Form::Vendor, "vendor"},
    {Form::CopyEngine, "copy_engine"}, {Form::OneShot, "one_shot"}, {Form::TwoShot, "two_shot"},
};

struct NamedSize {
  const char *name;
  int64_t Request::*field;
  uint32_t usedBy;
  int64_t most = int64_t(1) << 30; ///< Products of three sizes are computed with.
};
constexpr int64_t mostBytes = int64_t(1) << 40;
constexpr NamedSize sizes[] = {
    {"m", &Request::m, Product},
    {"n", &Request::n, Product},
    {"k", &Request::k, Product},
    {"bytes", &Request::bytes, Bytes, mostBytes},
    {"tokens", &Request::tokens, Moe | Ep},
    {"hidden", &Request::hidden, Moe | Ep},
    {"intermediate", &Request::intermediate, Moe},
    {"experts", &Request::experts, Moe | Ep, 1 << 20},
    {"topk", &Request::topk, Moe | Ep, 1 << 20},
    {"heads", &Request::heads, Attention},
    {"kv_heads", &Request::kvHeads, Attention},
    {"head_dim", &Request::headDim, Attention},
    {"context", &Request::context, Attention},
};

Status verifyDivisible(std::string_view name, int64_t value, uint32_t gpus) {
  if (value % gpus != 0)
    return invalidArgument(fmt::format("{} is {}; a multiple of the {} GPUs is accepted", name, value, gpus));
  return Status::ok();
}

} // namespace

std::string_view toString(Operator op) { return rowOf(op).name; }
std::string_view toString(Form form) {
  return std::ranges::find(forms, form, &std::pair<Form, std::string_view>::first)->second;
}

const std::vector<std::string> &operatorNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const OperatorRow &row : operators())
      all.emplace_back(row.name);
    return all;
  }();
  return names;
}

const std::vector<std::string> &formNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto &[form, name] : forms)
      all.emplace_back(name);
    return all;
  }();
  return names;
}

std::vector<Form> formsOf(Operator op) { return rowOf(op).forms; }

Expected<ops::TileConfig> parseTile(std::string_view text) {
  ops::GemmPlan defaults;
  defaults.tile = {.blockM = 128, .blockN = 256, .blockK = 64, .groupM = 8, .numWarps = 8, .numStages = 3};
  Expected<ops::GemmPlan> plan = ops::parseGemmPlan(text, defaults);
  if (!plan.isOk())
    return invalidArgument(
        fmt::format("tile '{}' is not accepted; write rows x columns x depth in powers of two, as in "
                    "128x256x64 ({})",
                    text, plan.status().message()));
  return plan->tile;
}

Status verify(const Request &request) {
  const OperatorRow &row = rowOf(request.op);
  if (std::ranges::find(row.forms, request.form) == row.forms.end()) {
    std::vector<std::string_view> accepted;
    for (Form form : row.forms)
      accepted.push_back(toString(form));
    return invalidArgument(fmt::format("{} has no form '{}'; accepted are {}", row.name, toString(request.form),
                                       fmt::join(accepted, ", ")));
  }
  for (const NamedSize &size : sizes) {
    const int64_t value = request.*size.field;
    if ((size.usedBy & row.sizes) == 0 && value != 0)
      return invalidArgument(fmt::format("{} takes no {}", row.name, size.name));
    if ((size.usedBy & row.sizes) != 0 && (value < 1 || value > size.most))
      return invalidArgument(value == 0 ? fmt::format("{} needs {}", row.name, size.name)
                                        : fmt::format("{} is {}; 1 to {} is accepted", size.name, value, size.most));
  }
  if (request.batch < 1 || request.batch > 65536)
    return invalidArgument(fmt::format("batch is {}; 1 to 65536 is accepted", request.batch));
  if (row.sizes != Attention && request.batch != 1)
    return invalidArgument(fmt::format("{} takes no batch", row.name));
  if (request.op == Operator::Gemm && request.gpus != 1)
    return invalidArgument(fmt::format("gemm is of one GPU, not of {}", request.gpus));
  if (request.op != Operator::Gemm && request.gpus < 2)
    return invalidArgument(fmt::format("{} needs at least 2 GPUs", row.name));
  if (request.chunksPerRank < 1 || request.chunksPerRank > 64)
    return invalidArgument(fmt::format("chunks is {}; 1 to 64 are accepted", request.chunksPerRank));
  if (request.chunksPerRank != 1 && request.op != Operator::AgGemm)
    return invalidArgument(fmt::format("{} takes no chunks", row.name));
  if (request.communicationSms != 0 && request.form != Form::OneShot && request.form != Form::TwoShot)
    return invalidArgument(fmt::format("form '{}' takes no number of SMs for communication; one_shot and two_shot do",
                                       toString(request.form)));
  if (request.op == Operator::AgGemm)
    DITRON_RETURN_IF_ERROR(verifyDivisible("n", request.n, request.gpus));
  if (request.op == Operator::GemmRs || request.op == Operator::GemmAr)
    DITRON_RETURN_IF_ERROR(verifyDivisible("k", request.k, request.gpus));
  if (row.sizes == Moe)
    DITRON_RETURN_IF_ERROR(verifyDivisible("intermediate", request.intermediate, request.gpus));
  if ((row.sizes == Moe || row.sizes == Ep) && request.topk > request.experts)
    return invalidArgument(
        fmt::format("topk is {}; at most the {} experts are accepted", request.topk, request.experts));
  if (row.sizes == Ep) // each GPU has as many
    DITRON_RETURN_IF_ERROR(verifyDivisible("experts", request.experts, request.gpus));
  if (row.sizes == Attention) {
    DITRON_RETURN_IF_ERROR(verifyDivisible("context", request.context, request.gpus));
    if (request.heads % request.kvHeads != 0)
      return invalidArgument(
          fmt::format("kv_heads is {}; a divisor of heads, {}, is accepted", request.kvHeads, request.heads));
  }
  for (const auto &[rank, factor] : request.slowRanks)
    if (rank >= request.gpus || !(factor >= 1 && factor <= 1000))
      return invalidArgument(
          fmt::format("slow rank {} with factor {}: ranks 0 to {} and factors 1 to 1000 are accepted", rank, factor,
                      request.gpus - 1));
  return Status::ok();
}

Request readRequest(JsonFields &fields) {
  Request request;
  const std::string op = fields.text("op", operatorNames());
  for (const OperatorRow &row : operators())
    if (row.name == op)
      request.op = row.op;
  const std::string form = fields.text("form", formNames(), std::string(toString(formsOf(request.op).front())));
  for (const auto &[each, name] : forms)
    if (name == form)
      request.form = each;
  request.gpus = static_cast<uint32_t>(fields.integer("gpus", 1, 1 << 20, 1));
  const std::string dtype = fields.text("dtype", dataTypeNames(), "bf16");
  request.dtype = parseDataType(dtype).value_or(DataType::BF16);
  for (const NamedSize &size : sizes)
    request.*size.field = fields.integer(size.name, 1, size.most, 0);
  request.batch = fields.integer("batch", 1, 65536, 1);
  request.chunksPerRank = static_cast<uint32_t>(fields.integer("chunks", 1, 64, 1));
  request.communicationSms = static_cast<uint32_t>(fields.integer("communication_sms", 1, 4096, 0));
  if (fields.has("tile")) {
    Expected<ops::TileConfig> tile = parseTile(fields.text("tile", {}));
    if (tile.isOk())
      request.tile = *tile;
    else
      fields.fail("tile", fmt::format("is wrong: {}", tile.status().message()));
  }
  return request;
}

} // namespace ditron::predict
