//===- GemmEpilogue.cpp - What becomes of the sums of a product -----------------------------------------------------------===//
#include "ditron/ops/GemmEpilogue.h"

#include "ditron/support/Suggest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>

namespace ditron::ops {

namespace {

constexpr Scaling scalings[] = {Scaling::None, Scaling::Tensor, Scaling::Vector};
constexpr Activation activations[] = {Activation::None, Activation::Relu, Activation::Gelu, Activation::Silu,
                                      Activation::SwiGlu};

template <typename Value, size_t count>
Expected<Value> parse(std::string_view what, std::string_view name, const Value (&values)[count]) {
  std::vector<std::string> names;
  for (const Value value : values) {
    if (toString(value) == name)
      return value;
    names.emplace_back(toString(value));
  }
  return invalidArgument(
      fmt::format("{} '{}'{}; {} are accepted", what, name, didYouMean(name, names), fmt::join(names, ", ")));
}

bool isWideFloat(DataType type) { return type == DataType::BF16 || type == DataType::F16 || type == DataType::F32; }

} // namespace

std::string_view toString(Scaling scaling) {
  switch (scaling) {
  case Scaling::None: return "none";
  case Scaling::Tensor: return "tensor";
  case Scaling::Vector: return "vector";
  }
  return "?";
}

std::string_view toString(Activation activation) {
  switch (activation) {
  case Activation::None: return "none";
  case Activation::Relu: return "relu";
  case Activation::Gelu: return "gelu";
  case Activation::Silu: return "silu";
  case Activation::SwiGlu: return "swiglu";
  }
  return "?";
}

Expected<Scaling> parseScaling(std::string_view name) { return parse("scales", name, scalings); }
Expected<Activation> parseActivation(std::string_view name) { return parse("activation", name, activations); }

DataType defaultResultType(DataType operands) { return isWideFloat(operands) ? operands : DataType::BF16; }
DataType sumType(DataType operands) { return operands == DataType::I8 ? DataType::I32 : DataType::F32; }

Status verifyEpilogue(std::string_view operation, DataType operands, DataType result, const GemmEpilogue &epilogue,
                      bool reduces) {
  const bool isNarrow = operands == DataType::F8E4NV || operands == DataType::F8E5 || operands == DataType::I8;
  if (!isWideFloat(operands) && !isNarrow)
    return unsupported(fmt::format("{}: operands of type {}; bf16, fp16, fp32, fp8e4nv, fp8e5 and i8 are accepted",
                                   operation, ditron::toString(operands)));
  if (!isWideFloat(result))
    return unsupported(
        fmt::format("{}: a result of type {}; bf16, fp16 and fp32 are accepted", operation, ditron::toString(result)));
  if (epilogue.bias && !isWideFloat(*epilogue.bias))
    return unsupported(fmt::format("{}: a bias of type {}; bf16, fp16 and fp32 are accepted", operation,
                                   ditron::toString(*epilogue.bias)));
  if (reduces && epilogue.activation != Activation::None)
    return unsupported(fmt::format("{}: activation {}; none is accepted, since the sum over the ranks comes behind",
                                   operation, toString(epilogue.activation)));
  return Status::ok();
}

Status verifyEpilogueOperands(std::string_view operation, const GemmEpilogue &epilogue,
                              const EpilogueOperands &operands) {
  auto verify = [&](std::string_view name, runtime::Pointer pointer, std::optional<DataType> type) {
    if (type)
      return verifyPointerType(operation, name, pointer, *type);
    if (pointer.address)
      return invalidArgument(
          fmt::format("{}: operand {} is given; the epilogue that was asked for has none", operation, name));
    return Status::ok();
  };
  auto scales = [](Scaling scaling) { return scaling == Scaling::None ? std::nullopt : std::optional(DataType::F32); };
  DITRON_RETURN_IF_ERROR(verify("scales of a", operands.scalesA, scales(epilogue.scalesA)));
  DITRON_RETURN_IF_ERROR(verify("scales of b", operands.scalesB, scales(epilogue.scalesB)));
  return verify("bias", operands.bias, epilogue.bias);
}

Status verifyEpilogueShape(std::string_view operation, DataType operands, const GemmEpilogue &epilogue, int64_t columns,
                           int64_t depth) {
  if (epilogue.activation == Activation::SwiGlu && columns % 2 != 0)
    return invalidArgument(fmt::format("{}: swiglu of {} columns; they are pairs of gate and up, so an even number is "
                                       "accepted",
                                       operation, columns));
  // The largest product is that of -128 and -128.
  constexpr int64_t most = std::numeric_limits<int32_t>::max() / (128 * 128);
  if (operands == DataType::I8 && depth > most)
    return invalidArgument(
        fmt::format("{}: K={} of int8 operands; at most {} is accepted, whose sums fit int32", operation, depth, most));
  return Status::ok();
}

Status verifyTileDepth(std::string_view operation, DataType operands, const TileConfig &tile) {
  constexpr uint32_t least = 32;
  if (sizeOf(operands) == 1 && tile.blockK < least)
    return invalidArgument(fmt::format("{}: tile blockK is {}; at least {} is accepted for operands of type {}",
                                       operation, tile.blockK, least, ditron::toString(operands)));
  return Status::ok();
}

Expected<RowStrides> completeStrides(std::string_view operation, const RowStrides &strides, int64_t columnsA,
                                     int64_t columnsB, int64_t columnsC) {
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  const RowStrides complete = {rowStride(strides.a, columnsA), rowStride(strides.b, columnsB),
                               rowStride(strides.c, columnsC)};
  for (auto [name, stride, columns] : {std::tuple("A", complete.a, columnsA), std::tuple("B", complete.b, columnsB),
                                       std::tuple("C", complete.c, columnsC)})
    if (stride < columns || stride > limit)
      return invalidArgument(fmt::format("{}: rows of {} are {} elements apart and have {} columns; {} to {} is "
                                         "accepted",
                                         operation, name, stride, columns, columns, limit));
  return complete;
}

Status verifySpans(std::string_view operation, const RowStrides &strides, const TileConfig &tile) {
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  const int64_t widest = std::max(int64_t(tile.blockM) * std::max(strides.a, strides.c),
                                  int64_t(std::max(tile.blockN, tile.blockK)) * strides.b);
  if (widest > limit)
    return invalidArgument(fmt::format("{}: rows of A, B and C that are {}, {} and {} elements apart make a tile of "
                                       "{}x{}x{} span {} elements; at most {} are accepted",
                                       operation, strides.a, strides.b, strides.c, tile.blockM, tile.blockN,
                                       tile.blockK, widest, limit));
  return Status::ok();
}

void appendColumnEpilogue(KernelCall &call, const GemmEpilogue &epilogue, const EpilogueOperands &operands,
                          int64_t biasColumns) {
  call.arguments.emplace_back("b_scale_ptr", orNone(epilogue.scalesB != Scaling::None, operands.scalesB));
  call.arguments.emplace_back("bias_ptr", orNone(epilogue.bias.has_value(), operands.bias));
  call.arguments.emplace_back("bias_columns", epilogue.bias ? biasColumns : 0);
  call.arguments.emplace_back("COLUMN_SCALES", epilogue.scalesB == Scaling::Vector);
}

void appendEpilogue(KernelCall &call, const GemmEpilogue &epilogue, const EpilogueOperands &operands,
                    int64_t biasColumns) {
  call.arguments.emplace_back("a_scale_ptr", orNone(epilogue.scalesA != Scaling::None, operands.scalesA));
  call.arguments.emplace_back("ROW_SCALES", epilogue.scalesA == Scaling::Vector);
  appendColumnEpilogue(call, epilogue, operands, biasColumns);
}

void appendActivation(KernelCall &call, const GemmEpilogue &epilogue) {
  call.arguments.emplace_back("ACTIVATION", std::string(toString(epilogue.activation)));
}

} // namespace ditron::ops
