//===- MoeGradients.cpp - The pieces of a backward of mixtures of experts ---------------------------------------------------===//
#include "ditron/ops/moe/MoeGradients.h"

#include "ditron/ops/GemmKernels.h"
#include "ditron/support/TargetName.h"

#include <bit>
#include <fmt/format.h>
#include <limits>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "MoeGradients";
using Operand = std::tuple<std::string_view, runtime::Pointer, DataType>;

Status verifyOperands(std::initializer_list<Operand> operands) {
  for (const auto &[name, pointer, type] : operands)
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, name, pointer, type));
  return Status::ok();
}

Status verifySizes(std::initializer_list<std::pair<std::string_view, int64_t>> sizes) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  for (const auto &[name, size] : sizes)
    if (size < 1 || size > most)
      return invalidArgument(fmt::format("{}: {} is {}; 1 to {} are accepted", operation, name, size, most));
  return Status::ok();
}

uint32_t powerOfTwo(int64_t value) { return static_cast<uint32_t>(std::bit_ceil(static_cast<uint64_t>(value))); }

KernelCall callOf(std::string_view kernel, int64_t blocks) {
  KernelCall call;
  call.source = "moe/backward";
  call.kernel = kernel;
  call.grid = {static_cast<uint32_t>(blocks), 1, 1};
  return call;
}

} // namespace

Expected<PreparedCall> prepareRowsBackward(runtime::KernelProvider &kernels, runtime::Rank &rank, int64_t maxRows,
                                           int64_t inner, uint32_t experts, runtime::Pointer z,
                                           runtime::Pointer gradient, runtime::Pointer offsets, runtime::Pointer dz,
                                           runtime::Pointer weighted, const RowWeights &weights) {
  DITRON_RETURN_IF_ERROR(verifySizes({{"maxRows", maxRows}, {"inner", inner}, {"experts", experts}}));
  DITRON_RETURN_IF_ERROR(verifyOperandType(operation, z.type));
  DITRON_RETURN_IF_ERROR(verifyOperands({{"z", z, z.type},
                                         {"gradient", gradient, z.type},
                                         {"offsets", offsets, DataType::I32},
                                         {"dz", dz, z.type},
                                         {"weighted", weighted, z.type}}));
  if (weights.choices.address)
    DITRON_RETURN_IF_ERROR(
        verifyOperands({{"choices", weights.choices, DataType::F32}, {"values", weights.values, DataType::F32}}));
  if (weights.slotOfRow.address)
    DITRON_RETURN_IF_ERROR(verifyOperands({{"weights", weights.weights, DataType::F32},
                                           {"slotOfRow", weights.slotOfRow, DataType::I32},
                                           {"slotValues", weights.slotValues, DataType::F32}}));
  constexpr int64_t leastBlock = 128, mostBlock = 1024, blocksOfMultiprocessor = 4;
  KernelCall call =
      callOf("rows_backward", std::min<int64_t>(maxRows, rank.attributes().multiprocessors * blocksOfMultiprocessor));
  call.arguments = {{"z_ptr", z},
                    {"gradient_ptr", gradient},
                    {"dz_ptr", dz},
                    {"h_ptr", weighted},
                    {"offsets_ptr", offsets},
                    {"choices_ptr", orNone(weights.choices)},
                    {"values_ptr", orNone(weights.values)},
                    {"weights_ptr", orNone(weights.weights)},
                    {"slot_of_row_ptr", orNone(weights.slotOfRow)},
                    {"slot_values_ptr", orNone(weights.slotValues)},
                    {"max_rows", maxRows},
                    {"inner", inner},
                    {"experts", experts},
                    {"first_expert", weights.firstExpert},
                    {"TOP_K", weights.topK},
                    {"SLOTS", powerOfTwo(weights.topK)},
                    {"EXPERTS", powerOfTwo(experts)},
                    {"BLOCK", std::clamp<int64_t>(powerOfTwo(inner), leastBlock, mostBlock)}};
  return PreparedCall::create(kernels, rank, call);
}

Expected<PreparedCall> preparePackedChoices(runtime::KernelProvider &kernels, runtime::Rank &rank, int64_t tokens,
                                            uint32_t topK, runtime::Pointer ids, runtime::Pointer weights,
                                            runtime::Pointer choices) {
  DITRON_RETURN_IF_ERROR(verifySizes({{"tokens", tokens}, {"topK", topK}}));
  DITRON_RETURN_IF_ERROR(verifyOperands(
      {{"ids", ids, DataType::I32}, {"weights", weights, DataType::F32}, {"choices", choices, DataType::F32}}));
  const int64_t block = std::max<int64_t>(512 / powerOfTwo(topK), 1);
  KernelCall call = callOf("pack_choices", ceilDivide(tokens, block));
  call.arguments = {{"ids_ptr", ids}, {"weights_ptr", weights},    {"choices_ptr", choices}, {"tokens", tokens},
                    {"TOP_K", topK},  {"SLOTS", powerOfTwo(topK)}, {"BLOCK", block}};
  return PreparedCall::create(kernels, rank, call);
}

Expected<PreparedCall> prepareWeightGradient(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                             const WeightGradientProblem &problem, runtime::Pointer a,
                                             runtime::Pointer b, runtime::Pointer c, runtime::Pointer offsets,
                                             runtime::Pointer slotOfRow) {
  DITRON_RETURN_IF_ERROR(verifySizes({{"experts", problem.experts}, {"m", problem.m}, {"n", problem.n}}));
  DITRON_RETURN_IF_ERROR(verifyOperandType(operation, problem.dtype));
  DITRON_RETURN_IF_ERROR(verifyOperandType(operation, c.type));
  DITRON_RETURN_IF_ERROR(verifyOperands(
      {{"a", a, problem.dtype}, {"b", b, problem.dtype}, {"c", c, c.type}, {"offsets", offsets, DataType::I32}}));
  if (problem.aSlots + problem.bSlots > 0)
    DITRON_RETURN_IF_ERROR(verifyOperands({{"slotOfRow", slotOfRow, DataType::I32}}));
  const Expected<TargetName> name = parseTargetName(rank.world().target());
  const bool isSimulated = !name.isOk() || name->simulated;
  TileConfig tile = {.blockM = 128, .blockN = 128, .blockK = 64, .groupM = 8, .numWarps = 8, .numStages = 3};
  if (problem.dtype == DataType::F32)
    tile = {.blockM = 64, .blockN = 64, .blockK = 32, .groupM = 8, .numWarps = 4, .numStages = 3};
  if (isSimulated)
    tile = {.blockM = 32, .blockN = 32, .blockK = 32, .groupM = 8, .numWarps = 4, .numStages = 2};
  const int64_t tiles = problem.experts * ceilDivide(problem.m, tile.blockM) * ceilDivide(problem.n, tile.blockN);
  KernelCall call = callOf("weight_gradient", std::min<int64_t>(tiles, 2 * int64_t(rank.attributes().multiprocessors)));
  call.numWarps = tile.numWarps;
  call.numStages = tile.numStages;
  call.arguments = {{"a_ptr", a},
                    {"b_ptr", b},
                    {"c_ptr", c},
                    {"offsets_ptr", offsets},
                    {"slot_of_row_ptr", orNone(slotOfRow)},
                    {"experts", problem.experts},
                    {"M", problem.m},
                    {"N", problem.n},
                    {"A_SLOTS", problem.aSlots},
                    {"B_SLOTS", problem.bSlots},
                    {"ADD", problem.adds},
                    {"BLOCK_M", tile.blockM},
                    {"BLOCK_N", tile.blockN},
                    {"BLOCK_K", tile.blockK},
                    {"GROUP_M", tile.groupM},
                    {"PRECISION", std::string(toString(MultiplyPrecision::Ieee))}};
  return PreparedCall::create(kernels, rank, call);
}

Expected<PreparedCall> prepareRouterBackward(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                             const RouterProblem &problem, runtime::Pointer logits,
                                             runtime::Pointer ids, runtime::Pointer weights, runtime::Pointer gradients,
                                             int64_t stride, runtime::Pointer dlogits) {
  DITRON_RETURN_IF_ERROR(verifySizes(
      {{"tokens", problem.tokens}, {"experts", problem.experts}, {"topK", problem.topK}, {"stride", stride}}));
  DITRON_RETURN_IF_ERROR(verifyOperandType(operation, dlogits.type));
  DITRON_RETURN_IF_ERROR(verifyOperands({{"logits", logits, DataType::F32},
                                         {"ids", ids, DataType::I32},
                                         {"weights", weights, DataType::F32},
                                         {"gradients", gradients, DataType::F32},
                                         {"dlogits", dlogits, dlogits.type}}));
  const uint32_t width = powerOfTwo(problem.experts);
  const int64_t block = std::clamp<int64_t>(1024 / width, 1, 32);
  KernelCall call = callOf("router_backward", ceilDivide(problem.tokens, block));
  call.arguments = {{"logits_ptr", logits},
                    {"ids_ptr", ids},
                    {"weights_ptr", weights},
                    {"gradients_ptr", gradients},
                    {"dlogits_ptr", dlogits},
                    {"tokens", problem.tokens},
                    {"experts", problem.experts},
                    {"stride", stride},
                    {"scale", problem.scale},
                    {"TOP_K", problem.topK},
                    {"SLOTS", powerOfTwo(problem.topK)},
                    {"EXPERTS", width},
                    {"BLOCK", block},
                    {"SIGMOID", problem.score == RouterScore::Sigmoid},
                    {"NORMALIZED", problem.normalized}};
  return PreparedCall::create(kernels, rank, call);
}

Expected<PreparedCall> prepareElementSum(runtime::KernelProvider &kernels, runtime::Rank &rank, int64_t elements,
                                         runtime::Pointer a, runtime::Pointer b, runtime::Pointer out) {
  DITRON_RETURN_IF_ERROR(verifySizes({{"elements", elements}}));
  DITRON_RETURN_IF_ERROR(verifyOperandType(operation, a.type));
  DITRON_RETURN_IF_ERROR(verifyOperands({{"a", a, a.type}, {"b", b, b.type}, {"out", out, out.type}}));
  constexpr int64_t block = 1024;
  KernelCall call = callOf("add_elements", ceilDivide(elements, block));
  call.arguments = {{"a_ptr", a}, {"b_ptr", b}, {"out_ptr", out}, {"elements", elements}, {"BLOCK", block}};
  return PreparedCall::create(kernels, rank, call);
}

} // namespace ditron::ops
