//===- DescriptorAccess.cpp - Atomics, gather and scatter of tensor descriptors ------------------------------------===//
//
// Accesses through descriptors that expand to pointers and masks in the frontend: atomic updates of a tile, and rows that are
// listed one by one. Hopper has instructions for the former only; atomics of pointers give the same memory.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/tile/Tile.h"
#include "ditron/frontend/builtins/BuiltinHandlers.h"
#include "ditron/frontend/builtins/Descriptors.h"
#include "ditron/frontend/builtins/TileAddresses.h"

#include <fmt/format.h>

namespace ditron::frontend::builtins {
namespace {

/// The tensor behind a descriptor with everything in 64 bits.
struct WideDescriptor {
  WideDescriptor(Emitter &emit, const DescriptorValue &descriptor) : base(descriptor.base) {
    auto wide = [&](const LangValue &value) { return emit.cast(value, ScalarKind::Int64, emit.range()); };
    llvm::transform(descriptor.sizes, std::back_inserter(sizes), wide);
    llvm::transform(descriptor.strides, std::back_inserter(strides), wide);
    strides.push_back(emit.wrap(emit.integerConstant(1, emit.builder.getI64Type()), ScalarKind::Int64));
  }

  LangValue base;
  llvm::SmallVector<LangValue> sizes, strides;
};

/// The pointers and the mask of a tile at positions of int64; judged by all dimensions.
std::pair<LangValue, LangValue> addressesOf(Emitter &emit, const DescriptorValue &descriptor,
                                            llvm::ArrayRef<LangValue> positions, llvm::ArrayRef<int64_t> shape) {
  const WideDescriptor wide(emit, descriptor);
  const StridedTile tile{wide.base, wide.sizes, wide.strides, positions, shape};
  llvm::SmallVector<int64_t> dims;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    dims.push_back(dim);
  LangValue pointers = tilePointers(emit, tile);
  return {pointers, tileMask(emit, tile, dims)};
}

/// Does the language have this update of this element type?
bool hasUpdate(tile::AtomicOp op, const LangType &element) {
  auto isOneOf = [&](std::initializer_list<ScalarKind> kinds) {
    return llvm::any_of(kinds, [&](ScalarKind kind) { return element.is(kind); });
  };
  using K = ScalarKind;
  if (op == tile::AtomicOp::Add)
    return isOneOf({K::UInt32, K::Int32, K::UInt64, K::FP32, K::FP16, K::BF16});
  if (op == tile::AtomicOp::Min || op == tile::AtomicOp::Max)
    return isOneOf({K::UInt32, K::Int32, K::UInt64, K::Int64, K::FP16, K::BF16});
  return isOneOf({K::UInt32, K::Int32, K::UInt64, K::Int64});
}

/// Rows of a descriptor that are listed one by one: the shape of the tile, and where its elements are.
struct ListedRows {
  LangValue pointers, mask;
  llvm::SmallVector<int64_t> shape;
};

/// For gather and scatter: checks the descriptor and the argument 'x_offsets'; nullopt after an error.
std::optional<ListedRows> listedRows(Evaluator &evaluator, BuiltinCall &call, const Arg<const DescriptorValue &> &desc,
                                     const ValueArg &rows, const ValueArg &column) {
  Emitter &emit = evaluator.emit;
  const DescriptorValue &descriptor = *desc;
  llvm::ArrayRef<int64_t> block = descriptor.tile.shape();
  auto refuse = [&](const AnyArg &argument, std::string message) -> std::optional<ListedRows> {
    emit.error(argument.range, std::move(message));
    return std::nullopt;
  };
  const std::string shape = LangValue::shape(block).display(), what = "descriptor " + call.builtin->name.str();
  if (block.size() != 2)
    return refuse(desc, fmt::format("descriptor must be 2D, but got {}", shape));
  if (block[0] != 1)
    return refuse(desc, fmt::format("descriptor block must have 1 row, but got {}", shape));
  if (rows->type().rank() != 1 || !rows->type().isInt() || rows->type().bitWidth() > 32 || rows->type().bitWidth() < 16)
    return refuse(rows, fmt::format("x offsets must be 1D, of int16 or int32, but got {}", rows->describe()));
  if (rows->type().shape()[0] < 8)
    return refuse(rows, fmt::format("{} must have at least 8 rows, but got {}", what, rows->type().shape()[0]));
  const int64_t leastColumns = 32 / int64_t(descriptor.tile.bitWidth()) * 8;
  if (block[1] < leastColumns)
    return refuse(desc, fmt::format("{} of {} must have at least {} columns, but got {}", what, descriptor.tile.element().str(),
                                    leastColumns, block[1]));
  const bool isInt = column->isLiteral() ? column->constant().isIntegral()
                                         : column->isTensor() && !column->type().isBlock() && column->type().isInt();
  if (!isInt || (column->isTensor() && column->type().bitWidth() > 32))
    return refuse(column, fmt::format("y offsets only support 32 bit integers, but got {}", column->describe()));
  const SourceRange range = column.range;
  const LangValue first = column->isLiteral() ? emit.constantOf(column->constant(), ScalarKind::Int64)
                                              : emit.cast(*column, ScalarKind::Int64, range);
  ListedRows result;
  result.shape = {rows->type().shape()[0], block[1]};
  const LangValue positions[] = {emit.cast(*rows, ScalarKind::Int64, rows.range), first};
  std::tie(result.pointers, result.mask) = addressesOf(emit, descriptor, positions, result.shape);
  return result;
}

} // namespace

LangValue descriptorAtomic(Evaluator &evaluator, BuiltinCall &call, tile::AtomicOp op, Arg<const DescriptorValue &> desc,
                           ValueArg offsetsArg, ValueArg value) {
  Emitter &emit = evaluator.emit;
  const DescriptorValue &descriptor = *desc;
  const LangType element = descriptor.tile.element();
  if (!hasUpdate(op, element))
    return emit.fail(desc.range, fmt::format("Unsupported dtype: {} of {}", qualifiedName(*call.builtin), element.str()));
  if (!fitsDescriptor(evaluator, call, desc, value))
    return LangValue::poison();
  if (value->type().element() != element)
    return emit.fail(value.range, fmt::format("argument 'value' of {} must have the descriptor's type {}, but got {}",
                                              qualifiedName(*call.builtin), element.str(), value->describe()));
  auto offsets = descriptorOffsets(evaluator, call, descriptor, offsetsArg);
  if (!offsets)
    return LangValue::poison();
  for (LangValue &offset : *offsets)
    offset = emit.cast(offset, ScalarKind::Int64, offsetsArg.range);
  auto [pointers, mask] = addressesOf(emit, descriptor, *offsets, descriptor.tile.shape());
  emit.create<tile::AtomicRmwOp>(value->ir().getType(), atomicKind(op, element), tile::MemoryOrder::Relaxed,
                                 tile::MemoryScope::Gpu, pointers.ir(), value->ir(), mask.ir());
  return LangValue::none();
}

LangValue descriptorGather(Evaluator &evaluator, BuiltinCall &call, Arg<const DescriptorValue &> desc, ValueArg xOffsets,
                           ValueArg yOffset) {
  Emitter &emit = evaluator.emit;
  const DescriptorValue &descriptor = *desc;
  auto rows = listedRows(evaluator, call, desc, xOffsets, yOffset);
  if (!rows)
    return LangValue::poison();
  const LangType type = descriptor.tile.element().withShape(rows->shape);
  mlir::Value other;
  if (descriptor.fillsNan)
    other = emit.floatConstant(std::numeric_limits<double>::quiet_NaN(), emit.ir(type));
  auto op = emit.create<tile::LoadOp>(rows->pointers.ir(), rows->mask.ir(), other);
  return emit.wrap(op.getResult(), type);
}

LangValue descriptorScatter(Evaluator &evaluator, BuiltinCall &call, Arg<const DescriptorValue &> desc, ValueArg valueArg,
                            ValueArg xOffsets, ValueArg yOffset) {
  Emitter &emit = evaluator.emit;
  const DescriptorValue &descriptor = *desc;
  if (descriptor.base.type().isConstPointer())
    return emit.fail(desc.range, fmt::format("Cannot store to a constant pointer: {} through {}", qualifiedName(*call.builtin),
                                             descriptor.base.type().str()));
  auto rows = listedRows(evaluator, call, desc, xOffsets, yOffset);
  if (!rows)
    return LangValue::poison();
  LangValue value = *valueArg;
  if (!value.isTensor() || value.type().isPointer() || value.type().shape() != llvm::ArrayRef<int64_t>(rows->shape))
    return emit.fail(valueArg.range,
                     fmt::format("argument 'value' of {} must have the shape {}, but got {}", qualifiedName(*call.builtin),
                                 LangValue::shape(rows->shape).display(), value.describe()));
  value = emit.cast(value, descriptor.tile.element(), valueArg.range);
  if (value.isPoison())
    return value;
  emit.create<tile::StoreOp>(rows->pointers.ir(), value.ir(), rows->mask.ir());
  return LangValue::none();
}

} // namespace ditron::frontend::builtins
