//===- Shape.cpp - Programs, creation, shapes, casts ------------------------------------------------------------===//
//
// Handlers of the functions that make blocks and change their shape or element type.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/tile/Tile.h"
#include "ditron/frontend/builtins/BuiltinHandlers.h"

#include <fmt/format.h>

namespace ditron::frontend::builtins {
namespace {

bool checkAxis(Evaluator &evaluator, const Arg<int64_t> &axis) {
  if (*axis >= 0 && *axis <= 2)
    return true;
  evaluator.emit.error(axis.range, fmt::format("program_id axis must be 0, 1, or 2, but is {}", *axis));
  return false;
}

/// A non-negative axis below the rank; negative ones count from the end.
std::optional<unsigned> normalizeAxis(Evaluator &evaluator, int64_t axis, unsigned rank, SourceRange range) {
  int64_t result = axis < 0 ? axis + rank : axis;
  if (result >= 0 && result < int64_t(rank))
    return result;
  evaluator.emit.error(range, fmt::format("invalid axis {}: it is out of range for a result of rank {}", axis, rank));
  return std::nullopt;
}

/// A value of a dtype in a shape; literals are converted at compile time.
LangValue filled(Evaluator &evaluator, llvm::ArrayRef<int64_t> shape, const LangValue &value, const LangType &dtype,
                 SourceRange range) {
  Emitter &emit = evaluator.emit;
  if (dtype.isBlock() || dtype.isVoid())
    return emit.fail(range, fmt::format("{} is not the type of an element", dtype.str()));
  if (!evaluator.checkBlockShape(shape, range))
    return LangValue::poison();
  LangType type = dtype.withShape(shape);
  if (value.isLiteral() && !dtype.isPointer()) {
    if (!emit.checkLiteralFits(value.constant(), dtype, range))
      return LangValue::poison();
    return emit.constantOf(value.constant(), type);
  }
  LangValue scalar = emit.toTensor(value, range);
  if (scalar.isPoison())
    return scalar;
  if (scalar.type().isBlock())
    return emit.fail(range, fmt::format("a block is filled with a scalar, not with {}", value.describe()));
  scalar = scalar.type().isInt() && dtype.isPointer() ? emit.cast(scalar, ScalarKind::Int64, range) : scalar;
  scalar = emit.cast(scalar, dtype, range);
  return scalar.isPoison() ? scalar : emit.splat(scalar, shape);
}

} // namespace

LangValue programId(Evaluator &evaluator, BuiltinCall &call, Arg<int64_t> axis) {
  if (!checkAxis(evaluator, axis))
    return LangValue::poison();
  Emitter &emit = evaluator.emit;
  auto number = emit.builder.getI32IntegerAttr(*axis);
  return emit.wrap(emit.create<tile::ProgramIdOp>(emit.builder.getI32Type(), number), ScalarKind::Int32);
}

LangValue numPrograms(Evaluator &evaluator, BuiltinCall &call, Arg<int64_t> axis) {
  if (!checkAxis(evaluator, axis))
    return LangValue::poison();
  Emitter &emit = evaluator.emit;
  auto number = emit.builder.getI32IntegerAttr(*axis);
  return emit.wrap(emit.create<tile::NumProgramsOp>(emit.builder.getI32Type(), number), ScalarKind::Int32);
}

LangValue arange(Evaluator &evaluator, BuiltinCall &call, Arg<int64_t> start, Arg<int64_t> end) {
  Emitter &emit = evaluator.emit;
  if (*start < INT32_MIN || *end > INT32_MAX)
    return emit.fail(call.range, "the bounds of tl.arange must fit into int32");
  if (*end <= *start)
    return emit.fail(call.range, fmt::format("tl.arange needs an end above its start, but got {} and {}", *start, *end));
  int64_t size = *end - *start;
  if ((size & (size - 1)) != 0)
    return emit.fail(call.range, fmt::format("the length of tl.arange must be a power of 2, but is {}", size));
  if (!evaluator.checkBlockShape({size}, call.range))
    return LangValue::poison();
  LangType type = LangType(ScalarKind::Int32).withShape({size});
  return emit.wrap(
      emit.create<tile::ArangeOp>(emit.ir(type), emit.builder.getI32IntegerAttr(*start), emit.builder.getI32IntegerAttr(*end)),
      type);
}

LangValue full(Evaluator &evaluator, BuiltinCall &call, Arg<Dims> shape, ValueArg value, Arg<LangType> dtype) {
  return filled(evaluator, *shape, *value, *dtype, call.range);
}

LangValue zeros(Evaluator &evaluator, BuiltinCall &call, Arg<Dims> shape, Arg<LangType> dtype) {
  return filled(evaluator, *shape, LangValue::integer(0), *dtype, call.range);
}

LangValue zerosLike(Evaluator &evaluator, BuiltinCall &call, ValueArg input) {
  const LangType &type = input->type();
  return filled(evaluator, type.shape(), LangValue::integer(0), type.element(), call.range);
}

LangValue castTo(Evaluator &evaluator, BuiltinCall &call, ValueArg input, Arg<LangType> target,
                 Arg<std::optional<llvm::StringRef>> fpDowncastRounding, Arg<bool> bitcast) {
  Emitter &emit = evaluator.emit;
  LangValue value = emit.toTensor(*input, call.range);
  if (value.isPoison())
    return value;
  if (target->isBlock() || target->isVoid())
    return emit.fail(target.range, fmt::format("{} is not the type of an element", target->str()));
  CastRounding rounding = CastRounding::Default;
  if (*fpDowncastRounding) {
    llvm::StringRef text = **fpDowncastRounding;
    if (text != "rtne" && text != "rtz")
      return emit.fail(fpDowncastRounding.range, fmt::format("rounding must be 'rtne' or 'rtz', not '{}'", text.str()));
    const LangType from = value.type().element();
    const bool narrows = from.isFloat() && target->isFloat() && target->bitWidth() < from.bitWidth();
    // Triton's rule: a cast to the type that the value has is no cast, and takes any rounding; a bitcast looks at none.
    if (!narrows && from != *target && !*bitcast)
      return emit.fail(fpDowncastRounding.range,
                       fmt::format("a rounding is only for casts to a narrower floating point type, not from {} to {}",
                                   value.type().str(), target->str()));
    rounding = text == "rtz" ? CastRounding::TowardZero : CastRounding::NearestEven;
  }
  return *bitcast ? emit.bitcast(value, *target, call.range) : emit.cast(value, *target, call.range, rounding);
}

//===------------------------------------------------------------------------------------------------------------------===//
// Shapes
//===------------------------------------------------------------------------------------------------------------------===//

LangValue broadcast(Evaluator &evaluator, BuiltinCall &call, ValueArg input, ValueArg other) {
  Emitter &emit = evaluator.emit;
  LangValue pair[] = {emit.toTensor(*input, call.range), emit.toTensor(*other, call.range)};
  if (!emit.broadcastTogether(pair, call.range))
    return LangValue::poison();
  return LangValue::tuple({pair[0], pair[1]});
}

LangValue broadcastTo(Evaluator &evaluator, BuiltinCall &call, ValueArg input, Arg<Dims> shape) {
  Emitter &emit = evaluator.emit;
  LangValue value = emit.toTensor(*input, call.range);
  if (value.isPoison() || !evaluator.checkBlockShape(*shape, call.range))
    return LangValue::poison();
  const LangType &type = value.type();
  bool fits = !type.isBlock() || type.rank() == shape->size();
  for (size_t i = 0; fits && type.isBlock() && i < shape->size(); ++i)
    fits = type.shape()[i] == 1 || type.shape()[i] == (*shape)[i];
  if (!fits)
    return emit.fail(call.range,
                     fmt::format("cannot broadcast {} to shape {}; the ranks must be equal and each size equal or 1",
                                 type.str(), LangValue::shape(*shape).display()));
  return emit.broadcastTo(value, *shape);
}

LangValue expandDims(Evaluator &evaluator, BuiltinCall &call, ValueArg input, Arg<Dims> axes) {
  Emitter &emit = evaluator.emit;
  LangValue value = emit.toTensor(*input, call.range);
  if (value.isPoison())
    return value;
  unsigned rank = value.type().rank() + axes->size();
  llvm::SmallVector<unsigned> sorted;
  for (int64_t axis : *axes) {
    auto normal = normalizeAxis(evaluator, axis, rank, axes.range);
    if (!normal)
      return LangValue::poison();
    if (llvm::is_contained(sorted, *normal))
      return emit.fail(axes.range, fmt::format("duplicate axis {}: it is given twice", axis));
    sorted.push_back(*normal);
  }
  llvm::sort(sorted);
  for (unsigned axis : sorted)
    value = emit.expandDims(value, axis);
  return value;
}

LangValue unsqueeze(Evaluator &evaluator, BuiltinCall &call, ValueArg x, Arg<Dims> dims) {
  Emitter &emit = evaluator.emit;
  LangValue value = emit.toTensor(*x, call.range);
  if (value.isPoison() || dims->size() != 1)
    return value.isPoison() ? value : emit.fail(dims.range, "tl.unsqueeze inserts one dimension");
  auto axis = normalizeAxis(evaluator, dims->front(), value.type().rank() + 1, dims.range);
  return axis ? emit.expandDims(value, *axis) : LangValue::poison();
}

LangValue squeeze(Evaluator &evaluator, BuiltinCall &call, ValueArg x, Arg<int64_t> dim) {
  const LangType &type = x->type();
  auto axis = normalizeAxis(evaluator, *dim, type.rank(), dim.range);
  if (!axis)
    return LangValue::poison();
  if (type.shape()[*axis] != 1)
    return evaluator.emit.fail(dim.range, fmt::format("dimension {} of {} does not have size 1", *axis, type.str()));
  llvm::SmallVector<int64_t> shape(type.shape());
  shape.erase(shape.begin() + *axis);
  return evaluator.emit.reshape(*x, shape);
}

static LangValue reshaped(Evaluator &evaluator, BuiltinCall &call, const ValueArg &input, const Arg<Dims> &shape) {
  Emitter &emit = evaluator.emit;
  const LangType &type = input->type();
  if (!evaluator.checkBlockShape(*shape, call.range))
    return LangValue::poison();
  if (type.numElements() != type.withShape(*shape).numElements())
    return emit.fail(call.range,
                     fmt::format("reshape() cannot change total number of elements in tensor: {} does not fit into shape {}",
                                 type.str(), LangValue::shape(*shape).display()));
  return emit.reshape(*input, *shape);
}

LangValue reshape(Evaluator &evaluator, BuiltinCall &call, ValueArg input, Arg<Dims> shape, Arg<bool> canReorder) {
  return reshaped(evaluator, call, input, shape);
}

LangValue view(Evaluator &evaluator, BuiltinCall &call, ValueArg input, Arg<Dims> shape) {
  evaluator.emit.warning(call.range, "tl.view is deprecated in Triton: use tl.reshape");
  return reshaped(evaluator, call, input, shape);
}

LangValue ravel(Evaluator &evaluator, BuiltinCall &call, ValueArg x, Arg<bool> canReorder) {
  return evaluator.emit.reshape(*x, {x->type().numElements()});
}

LangValue trans(Evaluator &evaluator, BuiltinCall &call, ValueArg value, Arg<Dims> dims) {
  Emitter &emit = evaluator.emit;
  const LangType &type = value->type();
  unsigned rank = type.rank();
  llvm::SmallVector<int32_t> order;
  if (dims->empty()) {
    if (rank < 2)
      return emit.fail(call.range,
                       fmt::format("a transposition needs a block of rank 2 or more, but got {}", value->describe()));
    for (unsigned i = 0; i < rank; ++i)
      order.push_back(i);
    std::swap(order[rank - 1], order[rank - 2]);
  }
  for (int64_t dim : *dims)
    order.push_back(dim < 0 ? dim + rank : dim);
  llvm::SmallVector<bool> seen(rank, false);
  bool isPermutation = order.size() == rank;
  for (int32_t dim : order) {
    isPermutation = isPermutation && dim >= 0 && dim < int32_t(rank) && !seen[dim];
    if (isPermutation)
      seen[dim] = true;
  }
  if (!isPermutation)
    return emit.fail(call.range, fmt::format("{} is not a permutation of the {} dimensions of {}",
                                             LangValue::shape(*dims).display(), rank, type.str()));
  llvm::SmallVector<int64_t> shape;
  for (int32_t dim : order)
    shape.push_back(type.shape()[dim]);
  LangType result = type.withShape(shape);
  return emit.wrap(emit.create<tile::TransOp>(emit.ir(result), value->ir(), emit.builder.getDenseI32ArrayAttr(order)), result);
}

LangValue item(Evaluator &evaluator, BuiltinCall &call, ValueArg value) {
  if (value->type().numElements() != 1)
    return evaluator.emit.fail(call.range, fmt::format("item() needs exactly one element, but got {}", value->describe()));
  return evaluator.emit.reshape(*value, {});
}

LangValue swizzle2d(Evaluator &evaluator, BuiltinCall &call, ValueArg i, ValueArg j, ValueArg sizeI, ValueArg sizeJ,
                    ValueArg sizeG) {
  Emitter &emit = evaluator.emit;
  SourceRange range = call.range;
  auto op = [&](BinaryOp kind, const LangValue &a, const LangValue &b) { return emit.binary(kind, a, b, range); };
  LangValue linear = op(BinaryOp::Add, op(BinaryOp::Mult, *i, *sizeJ), *j);
  LangValue perGroup = op(BinaryOp::Mult, *sizeG, *sizeJ);
  LangValue first = op(BinaryOp::Mult, op(BinaryOp::FloorDiv, linear, perGroup), *sizeG);
  LangValue rows = op(BinaryOp::Sub, *sizeI, first);
  rows = rows.isConstant() && sizeG->isConstant()
             ? (emit.compare(CompareOp::Lt, rows, *sizeG, range).constant().isTrue() ? rows : *sizeG)
             : emit.minMax(false, rows, *sizeG, false, range);
  LangValue within = op(BinaryOp::Mod, linear, perGroup);
  LangValue newI = op(BinaryOp::Add, first, op(BinaryOp::Mod, within, rows));
  LangValue newJ = op(BinaryOp::FloorDiv, within, rows);
  return newI.isPoison() || newJ.isPoison() ? LangValue::poison() : LangValue::tuple({newI, newJ});
}

} // namespace ditron::frontend::builtins
