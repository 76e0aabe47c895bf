//===- Rearrange.cpp - Functions that move elements around --------------------------------------------------------===//
//
// join, split and what is made of them, gathers, histograms, reversal, and functions of the user applied to elements.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/builtins/BuiltinHandlers.h"
#include "ditron/frontend/builtins/Rearrange.h"

#include "ditron/dialect/tile/ExchangeAttr.h"
#include "ditron/dialect/tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <fmt/format.h>

namespace ditron::frontend {

LangValue joinPair(Emitter &emit, const LangValue &a, const LangValue &b) {
  llvm::SmallVector<int64_t> shape(a.type().shape());
  shape.push_back(2);
  LangType type = a.type().withShape(shape);
  return emit.wrap(emit.create<tile::JoinOp>(emit.ir(type), a.ir(), b.ir()), type);
}

std::pair<LangValue, LangValue> splitPair(Emitter &emit, const LangValue &value) {
  LangType half = value.type().withShape(value.type().shape().drop_back());
  auto op = emit.create<tile::SplitOp>(emit.ir(half), emit.ir(half), value.ir());
  return {emit.wrap(op.getLhs(), half), emit.wrap(op.getRhs(), half)};
}

LangValue permuteDims(Emitter &emit, const LangValue &value, llvm::ArrayRef<int32_t> order) {
  llvm::SmallVector<int64_t> shape;
  for (int32_t dim : order)
    shape.push_back(value.type().shape()[dim]);
  LangType result = value.type().withShape(shape);
  return emit.wrap(emit.create<tile::TransOp>(emit.ir(result), value.ir(), emit.builder.getDenseI32ArrayAttr(order)),
                   result);
}

LangValue positionsAlong(Emitter &emit, llvm::ArrayRef<int64_t> shape, unsigned axis) {
  LangType type = LangType(ScalarKind::Int32).withShape({shape[axis]});
  LangValue line = emit.wrap(emit.create<tile::ArangeOp>(emit.ir(type), emit.builder.getI32IntegerAttr(0),
                                                         emit.builder.getI32IntegerAttr(shape[axis])),
                             type);
  llvm::SmallVector<int64_t> thin(shape.size(), 1);
  thin[axis] = shape[axis];
  return emit.broadcastTo(emit.reshape(line, thin), shape);
}

LangValue exchangeAlong(Emitter &emit, const LangValue &value, const LangValue &positions, unsigned axis,
                        int64_t mask) {
  if (mask == 0)
    return value;
  mlir::Value partner =
      emit.create<mlir::arith::XOrIOp>(positions.ir(), emit.integerConstant(mask, positions.ir().getType()));
  auto gather =
      emit.create<tile::GatherOp>(value.ir().getType(), value.ir(), partner, emit.builder.getI32IntegerAttr(axis));
  gather->setAttr(tile::exchangeMaskAttrName, emit.builder.getI32IntegerAttr(mask));
  return emit.wrap(gather, value.type());
}

namespace builtins {
namespace {

/// Two arguments as run-time values of one type and shape; a literal takes the other's type.
std::optional<std::pair<LangValue, LangValue>> pairOf(Evaluator &evaluator, BuiltinCall &call, const ValueArg &first,
                                                      const ValueArg &second) {
  Emitter &emit = evaluator.emit;
  LangValue pair[] = {*first, *second};
  for (int side : {0, 1}) {
    if (pair[side].isLiteral() && pair[1 - side].isTensor() && !pair[1 - side].type().isPointer()) {
      LangType element = pair[1 - side].type().element();
      if (!emit.checkLiteralFits(pair[side].constant(), element, call.range))
        return std::nullopt;
      pair[side] = emit.constantOf(pair[side].constant(), element);
    }
  }
  for (LangValue &value : pair)
    value = emit.toTensor(value, call.range);
  if (pair[0].isPoison() || pair[1].isPoison())
    return std::nullopt;
  if (pair[0].type().element() != pair[1].type().element()) {
    emit.error(call.range, fmt::format("{} needs two values of one element type, but got {} and {}",
                                       qualifiedName(*call.builtin), pair[0].type().str(), pair[1].type().str()))
        .hint("convert one of them with x.to(dtype)");
    return std::nullopt;
  }
  if (!emit.broadcastTogether(pair, call.range))
    return std::nullopt;
  return std::pair(pair[0], pair[1]);
}

/// An axis of a type, negative ones counting from the end; nullopt after an error.
std::optional<unsigned> axisOf(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument, const LangType &type) {
  int64_t axis = *argument.given->constant().toInt64(), rank = type.rank();
  if (axis >= -rank && axis < rank)
    return axis < 0 ? axis + rank : axis;
  evaluator.emit.error(argument.range, fmt::format("{} {} is out of range for {}", argument.name(), axis, type.str()));
  return std::nullopt;
}

} // namespace

//===------------------------------------------------------------------------------------------------------------------===//
// Join, split, cat
//===------------------------------------------------------------------------------------------------------------------===//

LangValue join(Evaluator &evaluator, BuiltinCall &call, ValueArg a, ValueArg b) {
  auto pair = pairOf(evaluator, call, a, b);
  return pair ? joinPair(evaluator.emit, pair->first, pair->second) : LangValue::poison();
}

LangValue split(Evaluator &evaluator, BuiltinCall &call, ValueArg value) {
  if (value->type().shape().back() != 2)
    return evaluator.emit.fail(value.range, fmt::format("{} needs a last dimension of size 2, but got {}",
                                                       qualifiedName(*call.builtin), value->describe()));
  auto [left, right] = splitPair(evaluator.emit, *value);
  return LangValue::tuple({left, right});
}

LangValue interleave(Evaluator &evaluator, BuiltinCall &call, ValueArg a, ValueArg b) {
  auto pair = pairOf(evaluator, call, a, b);
  if (!pair)
    return LangValue::poison();
  LangValue joined = joinPair(evaluator.emit, pair->first, pair->second);
  llvm::SmallVector<int64_t> shape(joined.type().shape());
  if (shape.size() > 1) {
    shape.pop_back();
    shape.back() *= 2;
  }
  return evaluator.checkBlockShape(shape, call.range) ? evaluator.emit.reshape(joined, shape) : LangValue::poison();
}

LangValue cat(Evaluator &evaluator, BuiltinCall &call, ValueArg a, ValueArg b, Arg<bool> canReorder, Arg<int64_t> dimArg) {
  Emitter &emit = evaluator.emit;
  if (a->type() != b->type())
    return emit.fail(call.range, fmt::format("tl.cat needs two blocks of one type and shape, but got {} and {}",
                                             a->type().str(), b->type().str()));
  if (*canReorder && a->type().rank() != 1)
    return emit.fail(call.range, fmt::format("tl.cat with can_reorder needs blocks of rank 1, but got {}", a->type().str()));
  auto dim = axisOf(evaluator, call, dimArg, a->type());
  if (!dim)
    return LangValue::poison();
  // The new dimension goes in front of the one that grows.
  LangValue joined = joinPair(emit, *a, *b);
  llvm::SmallVector<int32_t> order;
  for (unsigned i = 0; i < a->type().rank(); ++i) {
    if (i == *dim)
      order.push_back(a->type().rank());
    order.push_back(i);
  }
  llvm::SmallVector<int64_t> shape(a->type().shape());
  shape[*dim] *= 2;
  return evaluator.checkBlockShape(shape, call.range) ? emit.reshape(permuteDims(emit, joined, order), shape)
                                                     : LangValue::poison();
}

LangValue flip(Evaluator &evaluator, BuiltinCall &call, ValueArg value, Arg<std::optional<int64_t>> dim) {
  Emitter &emit = evaluator.emit;
  unsigned axis = value->type().rank() - 1;
  if (*dim) {
    auto given = axisOf(evaluator, call, dim, value->type());
    if (!given)
      return LangValue::poison();
    axis = *given;
  }
  llvm::ArrayRef<int64_t> shape = value->type().shape();
  return exchangeAlong(emit, *value, positionsAlong(emit, shape, axis), axis, shape[axis] - 1);
}

//===------------------------------------------------------------------------------------------------------------------===//
// Gather, histogram
//===------------------------------------------------------------------------------------------------------------------===//

LangValue gather(Evaluator &evaluator, BuiltinCall &call, ValueArg source, ValueArg index, Arg<int64_t> axisArg) {
  Emitter &emit = evaluator.emit;
  if (!index->type().isInt() || index->type().isBool())
    return emit.fail(index.range,
                     fmt::format("the index of tl.gather must be a block of integers, but got {}", index->describe()));
  if (source->type().rank() != index->type().rank())
    return emit.fail(call.range, fmt::format("the source and index of tl.gather must have the same rank, but are {} and {}",
                                             source->type().str(), index->type().str()));
  auto axis = axisOf(evaluator, call, axisArg, source->type());
  if (!axis)
    return LangValue::poison();
  for (unsigned dim = 0; dim < source->type().rank(); ++dim)
    if (dim != *axis && source->type().shape()[dim] != index->type().shape()[dim])
      return emit.fail(call.range, fmt::format("the source and index of tl.gather must have the same size along dimension {}, "
                                               "but are {} and {}",
                                               dim, source->type().str(), index->type().str()));
  LangType type = source->type().withShape(index->type().shape());
  return emit.wrap(emit.create<tile::GatherOp>(emit.ir(type), source->ir(), index->ir(), emit.builder.getI32IntegerAttr(*axis)),
                   type);
}

LangValue histogram(Evaluator &evaluator, BuiltinCall &call, ValueArg inputArg, Arg<int64_t> numBins, ValueArg maskArg) {
  Emitter &emit = evaluator.emit;
  LangValue input = *inputArg, mask = *maskArg;
  if (!input.type().isInt() || input.type().rank() != 1)
    return emit.fail(inputArg.range,
                     fmt::format("tl.histogram needs a block of integers of rank 1, but got {}", input.describe()));
  if (!evaluator.checkBlockShape({*numBins}, numBins.range))
    return LangValue::poison();
  if (!mask.isNone()) {
    mask = emit.toTensor(mask, maskArg.range);
    if (mask.isPoison())
      return mask;
    if (!mask.type().isBool())
      return emit.fail(maskArg.range, fmt::format("Mask must have boolean scalar type, but got {}", mask.describe()));
    if (mask.type().isBlock() && mask.type().rank() != 1)
      return emit.fail(maskArg.range,
                       fmt::format("the mask of tl.histogram must have the input's shape, but got {}", mask.describe()));
    LangValue both[] = {mask, input};
    if (!emit.broadcastTogether(both, call.range))
      return LangValue::poison();
    mask = both[0];
    input = both[1];
  }
  // Bins are counted by unsigned numbers: narrow negative ones must not become small.
  if (input.type().bitWidth() < 32)
    input = emit.cast(input, input.type().isSigned() ? ScalarKind::Int32 : ScalarKind::UInt32, call.range);
  LangType type = LangType(ScalarKind::Int32).withShape({*numBins});
  return emit.wrap(
      emit.create<tile::HistogramOp>(emit.ir(type), input.ir(), mask.isNone() ? mlir::Value() : mask.ir()), type);
}

//===------------------------------------------------------------------------------------------------------------------===//
// Functions of the user, element by element
//===------------------------------------------------------------------------------------------------------------------===//

/// The function of tl.map_elementwise, executed on scalars: its region, and what it gives.
struct MappedBody {
  mlir::Region region;
  std::vector<LangValue> results; ///< Empty after an error.
  bool isTuple = false;
};

/// The results' types are known when the function has run: the region is made first, and then moved into its operation.
static void runMapped(Evaluator &evaluator, const FunctionValue &function, llvm::ArrayRef<LangValue> sources,
                      llvm::ArrayRef<mlir::Value> operands, llvm::ArrayRef<mlir::Type> types, int64_t pack, SourceRange range,
                      MappedBody &body) {
  Emitter &emit = evaluator.emit;
  mlir::OpBuilder::InsertionGuard guard(emit.builder);
  llvm::SmallVector<mlir::Location> locations(types.size(), emit.location());
  // Constants and control flow look for the operation around them: the block grows at its final place.
  auto shell = emit.create<tile::MapElementwiseOp>(mlir::TypeRange(), operands, emit.builder.getI32IntegerAttr(pack));
  mlir::Block *block = emit.builder.createBlock(&shell.getBody(), {}, types, locations);
  std::vector<LangValue> arguments;
  for (auto [index, argument] : llvm::enumerate(block->getArguments()))
    arguments.push_back(emit.wrap(argument, sources[index / pack].type().element()));
  LangValue result = evaluator.callCombine(function, arguments, range);
  body.isTuple = result.isTuple();
  if (!result.isPoison()) {
    body.results = body.isTuple ? result.elements() : std::vector<LangValue>{result};
    for (LangValue &value : body.results)
      value = emit.toTensor(value, range);
    llvm::SmallVector<mlir::Value> yields;
    for (const LangValue &value : body.results)
      if (!value.isPoison())
        yields.push_back(value.ir());
    emit.create<tile::YieldOp>(yields);
  }
  body.region.takeBody(shell.getBody());
  shell.erase();
}

LangValue mapElementwise(Evaluator &evaluator, BuiltinCall &call, Arg<const FunctionValue &> scalarFn, ListArg args,
                         Arg<int64_t> pack) {
  Emitter &emit = evaluator.emit;
  std::vector<LangValue> sources = *args;
  if (sources.empty())
    return emit.fail(call.range, "tl.map_elementwise needs blocks to map");
  if (*pack < 1)
    return emit.fail(pack.range, fmt::format("pack must be 1 or more, but is {}", *pack));
  for (LangValue &source : sources)
    source = emit.toTensor(source, call.range);
  if (!emit.broadcastTogether(sources, call.range))
    return LangValue::poison();
  llvm::SmallVector<int64_t> shape(sources.front().type().shape());
  const bool isScalar = shape.empty();
  if (isScalar) // a block of one element
    for (LangValue &source : sources)
      source = emit.splat(source, {1});

  llvm::SmallVector<mlir::Value> operands;
  llvm::SmallVector<mlir::Type> types;
  for (const LangValue &source : sources) {
    operands.push_back(source.ir());
    types.append(*pack, emit.ir(source.type().element()));
  }
  MappedBody body;
  runMapped(evaluator, *scalarFn, sources, operands, types, *pack, call.range, body);
  std::vector<LangValue> &results = body.results;
  auto refuse = [&](std::string message) { return emit.fail(scalarFn.range, std::move(message)); };
  if (results.empty() || llvm::any_of(results, [](const LangValue &value) { return value.isPoison(); }))
    return LangValue::poison();
  std::string name = scalarFn->node->name.text.str();
  if (results.size() % *pack != 0)
    return refuse(
        fmt::format("the function '{}' must give a multiple of {} values, but gives {}", name, *pack, results.size()));
  std::vector<LangType> resultTypes;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].type().isBlock())
      return refuse(fmt::format("the function '{}' must give scalars, but gives {}", name, results[i].describe()));
    if (i % *pack == 0)
      resultTypes.push_back(results[i].type().withShape(isScalar ? llvm::ArrayRef<int64_t>{1} : shape));
    else if (results[i].type() != resultTypes.back().element())
      return refuse(fmt::format("the function '{}' gives {} and {} for elements of one result", name,
                                resultTypes.back().element().str(), results[i].type().str()));
  }
  llvm::SmallVector<mlir::Type> irTypes;
  for (const LangType &type : resultTypes)
    irTypes.push_back(emit.ir(type));
  auto op = emit.create<tile::MapElementwiseOp>(irTypes, operands, emit.builder.getI32IntegerAttr(*pack));
  op.getBody().takeBody(body.region);
  std::vector<LangValue> values;
  for (auto [result, type] : llvm::zip(op.getResults(), resultTypes)) {
    LangValue value = emit.wrap(result, type);
    values.push_back(isScalar ? emit.reshape(value, {}) : value);
  }
  return values.size() == 1 && !(body.isTuple && *pack == 1) ? values.front() : LangValue::tuple(std::move(values));
}

} // namespace builtins
} // namespace ditron::frontend
