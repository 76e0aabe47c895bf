//===- BuiltinsDescriptorAccess.cpp - Atomics, gather and scatter of tensor descriptors ------------------------------------===//
//
// Accesses through descriptors that expand to pointers and masks in the frontend: atomic updates of a tile, and rows that are
// listed one by one. Hopper has instructions for the former only; atomics of pointers give the same memory.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/tile/Tile.h"
#include "ditron/frontend/Descriptors.h"
#include "ditron/frontend/Importer.h"
#include "ditron/frontend/TileAddresses.h"

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
bool hasUpdate(llvm::StringRef name, const LangType &element) {
  auto isOneOf = [&](std::initializer_list<ScalarKind> kinds) {
    return llvm::any_of(kinds, [&](ScalarKind kind) { return element.is(kind); });
  };
  using K = ScalarKind;
  if (name == "add")
    return isOneOf({K::UInt32, K::Int32, K::UInt64, K::FP32, K::FP16, K::BF16});
  if (name == "min" || name == "max")
    return isOneOf({K::UInt32, K::Int32, K::UInt64, K::Int64, K::FP16, K::BF16});
  return isOneOf({K::UInt32, K::Int32, K::UInt64, K::Int64});
}

tile::AtomicOp updateOf(llvm::StringRef name, const LangType &element) {
  if (name == "add")
    return element.isFloat() ? tile::AtomicOp::FAdd : tile::AtomicOp::Add;
  if (name == "max")
    return element.isFloat() ? tile::AtomicOp::FMax : element.isSigned() ? tile::AtomicOp::Max : tile::AtomicOp::UMax;
  if (name == "min")
    return element.isFloat() ? tile::AtomicOp::FMin : element.isSigned() ? tile::AtomicOp::Min : tile::AtomicOp::UMin;
  return name == "and" ? tile::AtomicOp::And : name == "or" ? tile::AtomicOp::Or : tile::AtomicOp::Xor;
}

/// Rows of a descriptor that are listed one by one: the shape of the tile, and where its elements are.
struct ListedRows {
  LangValue pointers, mask;
  llvm::SmallVector<int64_t> shape;
};

/// For gather and scatter: checks the descriptor and the argument 'x_offsets'; nullopt after an error.
std::optional<ListedRows> listedRows(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  const DescriptorValue &descriptor = call["desc"].descriptor();
  const LangValue &rows = call["x_offsets"], &column = call["y_offset"];
  llvm::ArrayRef<int64_t> block = descriptor.tile.shape();
  auto refuse = [&](llvm::StringRef argument, std::string message) -> std::optional<ListedRows> {
    emit.error(call.rangeOf(argument), std::move(message));
    return std::nullopt;
  };
  const std::string shape = LangValue::shape(block).display(), what = "descriptor " + call.builtin->name.str();
  if (block.size() != 2)
    return refuse("desc", fmt::format("descriptor must be 2D, but got {}", shape));
  if (block[0] != 1)
    return refuse("desc", fmt::format("descriptor block must have 1 row, but got {}", shape));
  if (rows.type().rank() != 1 || !rows.type().isInt() || rows.type().bitWidth() > 32 || rows.type().bitWidth() < 16)
    return refuse("x_offsets", fmt::format("x offsets must be 1D, of int16 or int32, but got {}", rows.describe()));
  if (rows.type().shape()[0] < 8)
    return refuse("x_offsets",
                  fmt::format("{} must have at least 8 rows, but got {}", what, rows.type().shape()[0]));
  const int64_t leastColumns = 32 / int64_t(descriptor.tile.bitWidth()) * 8;
  if (block[1] < leastColumns)
    return refuse("desc", fmt::format("{} of {} must have at least {} columns, but got {}", what,
                                      descriptor.tile.element().str(), leastColumns, block[1]));
  const bool isInt = column.isLiteral() ? column.constant().isIntegral()
                                        : column.isTensor() && !column.type().isBlock() && column.type().isInt();
  if (!isInt || (column.isTensor() && column.type().bitWidth() > 32))
    return refuse("y_offset", fmt::format("y offsets only support 32 bit integers, but got {}", column.describe()));
  const SourceRange range = call.rangeOf("y_offset");
  const LangValue first = column.isLiteral() ? emit.constantOf(column.constant(), ScalarKind::Int64)
                                             : emit.cast(column, ScalarKind::Int64, range);
  ListedRows result;
  result.shape = {rows.type().shape()[0], block[1]};
  const LangValue positions[] = {emit.cast(rows, ScalarKind::Int64, call.rangeOf("x_offsets")), first};
  std::tie(result.pointers, result.mask) = addressesOf(emit, descriptor, positions, result.shape);
  return result;
}

} // namespace

LangValue descriptorAtomic(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  const DescriptorValue &descriptor = call["desc"].descriptor();
  const LangType element = descriptor.tile.element();
  const llvm::StringRef name = call.builtin->name.drop_front(strlen("atomic_"));
  if (!hasUpdate(name, element))
    return emit.fail(call.rangeOf("desc"),
                     fmt::format("Unsupported dtype: {} of {}", qualifiedName(*call.builtin), element.str()));
  if (!fitsDescriptor(importer, call, descriptor))
    return LangValue::poison();
  const LangValue &value = call["value"];
  if (value.type().element() != element)
    return emit.fail(call.rangeOf("value"), fmt::format("argument 'value' of {} must have the descriptor's type {}, but got {}",
                                                        qualifiedName(*call.builtin), element.str(), value.describe()));
  auto offsets = descriptorOffsets(importer, call, descriptor);
  if (!offsets)
    return LangValue::poison();
  for (LangValue &offset : *offsets)
    offset = emit.cast(offset, ScalarKind::Int64, call.rangeOf("offsets"));
  auto [pointers, mask] = addressesOf(emit, descriptor, *offsets, descriptor.tile.shape());
  emit.create<tile::AtomicRmwOp>(value.ir().getType(), updateOf(name, element), tile::MemoryOrder::Relaxed,
                                 tile::MemoryScope::Gpu, pointers.ir(), value.ir(), mask.ir());
  return LangValue::none();
}

LangValue descriptorGather(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  const DescriptorValue &descriptor = call["desc"].descriptor();
  auto rows = listedRows(importer, call);
  if (!rows)
    return LangValue::poison();
  const LangType type = descriptor.tile.element().withShape(rows->shape);
  mlir::Value other;
  if (descriptor.fillsNan)
    other = emit.floatConstant(std::numeric_limits<double>::quiet_NaN(), emit.ir(type));
  auto op = emit.create<tile::LoadOp>(rows->pointers.ir(), rows->mask.ir(), other);
  return emit.wrap(op.getResult(), type);
}

LangValue descriptorScatter(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  const DescriptorValue &descriptor = call["desc"].descriptor();
  if (descriptor.base.type().isConstPointer())
    return emit.fail(call.rangeOf("desc"), fmt::format("Cannot store to a constant pointer: {} through {}", qualifiedName(*call.builtin),
                                                       descriptor.base.type().str()));
  auto rows = listedRows(importer, call);
  if (!rows)
    return LangValue::poison();
  LangValue value = call["value"];
  if (!value.isTensor() || value.type().isPointer() || value.type().shape() != llvm::ArrayRef<int64_t>(rows->shape))
    return emit.fail(call.rangeOf("value"),
                     fmt::format("argument 'value' of {} must have the shape {}, but got {}", qualifiedName(*call.builtin),
                                 LangValue::shape(rows->shape).display(), value.describe()));
  value = emit.cast(value, descriptor.tile.element(), call.rangeOf("value"));
  if (value.isPoison())
    return value;
  emit.create<tile::StoreOp>(rows->pointers.ir(), value.ir(), rows->mask.ir());
  return LangValue::none();
}

} // namespace ditron::frontend::builtins
