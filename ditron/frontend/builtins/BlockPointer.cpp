//===- BlockPointer.cpp - Block pointers -------------------------------------------------------------------------------===//
//
// tl.make_block_ptr, tl.advance, and what tl.load and tl.store do with a block pointer.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dist/Dist.h"
#include "ditron/frontend/Aggregates.h"
#include "ditron/frontend/builtins/BlockPointers.h"
#include "ditron/frontend/builtins/BuiltinHandlers.h"
#include "ditron/frontend/builtins/TileAddresses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <fmt/format.h>

namespace ditron::frontend {
namespace {

/// The fields, in order.
enum Field : unsigned { Base, Shape, Strides, Offsets, BlockShape, Order };

const std::shared_ptr<const ClassInfo> &blockPointerClass() {
  static const std::shared_ptr<const ClassInfo> info = [] {
    auto made = std::make_shared<ClassInfo>();
    made->name = "block_pointer";
    for (const char *name : {"base", "shape", "strides", "offsets", "block_shape", "order"}) {
      ClassField field;
      field.name = name;
      made->fields.push_back(std::move(field));
    }
    return made;
  }();
  return info;
}

llvm::SmallVector<int64_t> dimsOf(const LangValue &tuple) {
  llvm::SmallVector<int64_t> dims;
  for (const LangValue &element : tuple.elements())
    dims.push_back(*element.constant().toInt64());
  return dims;
}

} // namespace

bool isBlockPointer(const LangValue &value) {
  return value.isAggregate() && value.classInfo() == blockPointerClass().get();
}

LangValue blockPointerAttribute(const LangValue &pointer, llvm::StringRef name) {
  if (name == "dtype" || name == "type")
    return LangValue(pointer.parts()[Base].type());
  if (name == "advance" || name == "store")
    if (const Builtin *builtin = findBuiltin(ModuleMember, name))
      return LangValue(MethodValue{builtin, builtin->name, std::make_shared<const LangValue>(pointer), {}});
  return LangValue::poison();
}

LangValue consumeBlockPointer(Emitter &emit, const LangValue &pointer, mlir::Value token) {
  std::vector<LangValue> fields = pointer.parts();
  const LangValue base = fields[Base];
  fields[Base] = emit.wrap(emit.create<dist::ConsumeTokenOp>(base.ir().getType(), base.ir(), token), base.type());
  return pointer.withParts(std::move(fields));
}

namespace builtins {
namespace {

/// A tuple of scalar integers as int64, or poison after an error.
LangValue wideIntegers(Evaluator &evaluator, BuiltinCall &call, const ValueArg &argument, size_t count) {
  Emitter &emit = evaluator.emit;
  const SourceRange range = argument.range;
  llvm::ArrayRef<LangValue> given = argument->isTuple() ? llvm::ArrayRef<LangValue>(argument->elements()) : *argument;
  if (given.size() != count)
    return emit.fail(range, fmt::format("Expected shape/strides/offsets/block_shape to have the same length: argument '{}' of "
                                        "{} has {} values, not {}",
                                        argument.name(), qualifiedName(*call.builtin), given.size(), count));
  std::vector<LangValue> result;
  for (auto [index, element] : llvm::enumerate(given)) {
    const bool isInteger = element.isLiteral() ? element.constant().isIntegral()
                                               : element.isTensor() && !element.type().isBlock() && element.type().isInt();
    if (!isInteger)
      return emit.fail(range, fmt::format("argument '{}' of {} must hold scalar integers, but element {} is {}",
                                          argument.name(), qualifiedName(*call.builtin), index, element.describe()));
    if (element.isLiteral() && !emit.checkLiteralFits(element.constant(), ScalarKind::Int64, range))
      return LangValue::poison();
    result.push_back(element.isLiteral() ? emit.constantOf(element.constant(), ScalarKind::Int64)
                                         : emit.cast(element, ScalarKind::Int64, range));
  }
  return LangValue::tuple(std::move(result));
}

/// The dimensions of boundary_check; nullopt after an error.
std::optional<llvm::SmallVector<int64_t>> checkedDims(Evaluator &evaluator, const Arg<Dims> &boundaryCheck, size_t rank) {
  llvm::SmallVector<int64_t> dims;
  for (int64_t dim : *boundaryCheck) {
    const bool isGood = dim >= 0 && dim < int64_t(rank);
    if (!isGood || llvm::is_contained(dims, dim)) {
      evaluator.emit.error(boundaryCheck.range,
                          isGood ? fmt::format("Duplicate dimension {} in `boundary_check`", dim)
                                 : fmt::format("boundary_check names dimension {}, but the block pointer has {}", dim, rank));
      return std::nullopt;
    }
    dims.push_back(dim);
  }
  llvm::sort(dims);
  return dims;
}

} // namespace

LangValue makeBlockPointer(Evaluator &evaluator, BuiltinCall &call, ValueArg base, ValueArg shape, ValueArg strides,
                           ValueArg offsets, Arg<Dims> block, Arg<Dims> order) {
  Emitter &emit = evaluator.emit;
  if (base->type().isBlock())
    return emit.fail(base.range,
                     fmt::format("Expected `base` to be a pointer type (but not a block pointer type or others), but got {}",
                                 base->describe()));
  if (block->empty())
    return emit.fail(block.range, "a block pointer has at least one dimension");
  if (!evaluator.checkBlockShape(*block, block.range))
    return LangValue::poison();
  llvm::SmallVector<int64_t> sorted(*order);
  llvm::sort(sorted);
  for (auto [index, dim] : llvm::enumerate(sorted))
    if (dim != int64_t(index) || order->size() != block->size())
      return emit.fail(order.range,
                       fmt::format("Expected a permutation of (0, 1, ..., len(order)-1) in order, one number per dimension, "
                                   "but got {}",
                                   LangValue::shape(*order).display()));
  if (order->size() != block->size())
    return emit.fail(order.range, "argument 'order' of tl.make_block_ptr needs one number per dimension");
  std::vector<LangValue> fields{*base};
  for (const ValueArg *argument : {&shape, &strides, &offsets}) {
    fields.push_back(wideIntegers(evaluator, call, *argument, block->size()));
    if (fields.back().isPoison())
      return LangValue::poison();
  }
  fields.push_back(LangValue::shape(*block));
  fields.push_back(LangValue::shape(*order));
  return LangValue(AggregateValue{blockPointerClass(), std::make_shared<const std::vector<LangValue>>(std::move(fields))});
}

LangValue advanceBlockPointer(Evaluator &evaluator, BuiltinCall &call, ValueArg pointer, ValueArg given) {
  Emitter &emit = evaluator.emit;
  std::vector<LangValue> fields = pointer->parts();
  const std::vector<LangValue> before = fields[Offsets].elements();
  LangValue steps = wideIntegers(evaluator, call, given, before.size());
  if (steps.isPoison())
    return steps;
  std::vector<LangValue> after;
  for (size_t dim = 0; dim < before.size(); ++dim) {
    // What does not move stays the same value, so that loops need not carry it.
    const LangValue &step = given->isTuple() ? given->elements()[dim] : *given;
    const bool moves = !step.isLiteral() || step.constant().isTrue();
    after.push_back(moves ? emit.wrap(emit.create<mlir::arith::AddIOp>(before[dim].ir(), steps.elements()[dim].ir()),
                                      ScalarKind::Int64)
                          : before[dim]);
  }
  fields[Offsets] = LangValue::tuple(std::move(after));
  return pointer->withParts(std::move(fields));
}

bool resolveBlockPointer(Evaluator &evaluator, BuiltinCall &call, AccessOperands &operands, const AnyArg &mask,
                         const AnyArg *other, const BlockPointerOptions &options) {
  Emitter &emit = evaluator.emit;
  auto refuse = [&](SourceRange range, std::string message) {
    emit.error(range, std::move(message));
    return false;
  };
  const llvm::StringRef padding = options.padding ? **options.padding : llvm::StringRef();
  if (!isBlockPointer(operands.pointer)) {
    if (options.boundaryCheck->empty() && padding.empty())
      return true;
    return refuse(call.range, "`padding_option` or `boundary_check` argument is not supported for pointers and blocks of "
                              "pointers; use mask and other, or block pointers (defined by `make_block_ptr`)");
  }
  if (!operands.mask.isNone())
    return refuse(mask.range, fmt::format("`mask` and `other` arguments cannot be specified for {} block pointers",
                                          other ? "loading" : "storing"));
  if (!operands.other.isNone())
    return refuse(other->range, "`mask` and `other` arguments cannot be specified for loading block pointers");
  const std::vector<LangValue> fields = operands.pointer.parts();
  const llvm::SmallVector<int64_t> block = dimsOf(fields[BlockShape]);
  auto dims = checkedDims(evaluator, options.boundaryCheck, block.size());
  if (!dims)
    return false;
  if (!padding.empty() && padding != "zero" && padding != "nan")
    return refuse(options.padding->range,
                  fmt::format("padding_option must be '', 'zero' or 'nan', but got '{}'", padding.str()));
  if (padding == "nan" && !fields[Base].type().pointee().isFloat())
    return refuse(options.padding->range, "Padding option `nan` is not supported for integer block pointers");
  if (padding == "nan" && !dims->empty())
    operands.other = LangValue(ConstValue::floating(std::numeric_limits<double>::quiet_NaN()));
  const StridedTile tile{fields[Base], fields[Shape].elements(), fields[Strides].elements(), fields[Offsets].elements(), block};
  LangValue inside = tileMask(emit, tile, *dims);
  operands.mask = inside.isPoison() ? LangValue::none() : inside;
  operands.pointer = tilePointers(emit, tile);
  return true;
}

} // namespace builtins
} // namespace ditron::frontend
