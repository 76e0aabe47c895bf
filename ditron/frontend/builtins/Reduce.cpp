//===- Reduce.cpp - Reductions and scans ----------------------------------------------------------------------------===//
//
// Reductions and scans are one operation each with a combine region; this file builds the regions of the named ones and
// inlines the user's functions into those of tl.reduce and tl.associative_scan.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/tile/Tile.h"
#include "ditron/frontend/builtins/BuiltinHandlers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <fmt/format.h>

namespace ditron::frontend::builtins {
namespace arith = mlir::arith;
namespace math = mlir::math;
namespace {

/// Builds a combine region: gets n left and n right scalars, gives n.
using Combine = llvm::function_ref<std::vector<LangValue>(llvm::ArrayRef<LangValue>, llvm::ArrayRef<LangValue>)>;

/// The axis of a reduction, counted from the front; -1 after an error.
int64_t axisOf(Evaluator &evaluator, int64_t axis, SourceRange range, const LangType &type) {
  int64_t rank = type.rank();
  if (axis >= -rank && axis < rank)
    return axis < 0 ? axis + rank : axis;
  evaluator.emit.error(range, fmt::format("axis {} is out of range for {}", axis, type.str()));
  return -1;
}

bool fillRegion(Evaluator &evaluator, mlir::Region &region, llvm::ArrayRef<LangValue> sources, Combine combine) {
  Emitter &emit = evaluator.emit;
  mlir::OpBuilder::InsertionGuard guard(emit.builder);
  llvm::SmallVector<mlir::Type> types;
  for (int side = 0; side < 2; ++side)
    for (const LangValue &source : sources)
      types.push_back(emit.ir(source.type().element()));
  llvm::SmallVector<mlir::Location> locations(types.size(), emit.location());
  mlir::Block *block = emit.builder.createBlock(&region, {}, types, locations);
  std::vector<LangValue> left, right;
  for (auto [index, source] : llvm::enumerate(sources)) {
    left.push_back(emit.wrap(block->getArgument(index), source.type().element()));
    right.push_back(emit.wrap(block->getArgument(index + sources.size()), source.type().element()));
  }
  std::vector<LangValue> results = combine(left, right);
  if (results.size() != sources.size())
    return false;
  llvm::SmallVector<mlir::Value> values;
  for (const LangValue &result : results)
    values.push_back(result.ir());
  emit.create<tile::YieldOp>(values);
  return true;
}

/// Reduces sources of one shape along an axis, or over all elements without one.
std::optional<std::vector<LangValue>> reduceAll(Evaluator &evaluator, std::vector<LangValue> sources,
                                                std::optional<int64_t> axis, bool keepsDims, Combine combine,
                                                tile::ReductionOrderingAttr ordering = {}) {
  Emitter &emit = evaluator.emit;
  llvm::SmallVector<int64_t> original(sources.front().type().shape());
  if (!axis) {
    for (LangValue &source : sources)
      source = emit.reshape(source, {source.type().numElements()});
    axis = 0;
  }
  llvm::SmallVector<int64_t> reduced(sources.front().type().shape());
  reduced.erase(reduced.begin() + *axis);
  llvm::SmallVector<mlir::Value> operands;
  llvm::SmallVector<mlir::Type> types;
  for (const LangValue &source : sources) {
    operands.push_back(source.ir());
    types.push_back(emit.ir(source.type().withShape(reduced)));
  }
  auto op = emit.create<tile::ReduceOp>(types, operands, emit.builder.getI32IntegerAttr(*axis), ordering);
  if (!fillRegion(evaluator, op.getCombine(), sources, combine)) {
    op.erase();
    return std::nullopt;
  }
  llvm::SmallVector<int64_t> kept(original);
  if (reduced.empty() && original.size() > 1)
    std::fill(kept.begin(), kept.end(), 1);
  else
    kept[*axis] = 1;
  std::vector<LangValue> results;
  for (auto [result, source] : llvm::zip(op.getResults(), sources)) {
    LangValue value = emit.wrap(result, source.type().withShape(reduced));
    results.push_back(keepsDims ? emit.reshape(value, kept) : value);
  }
  return results;
}

/// The usual front of a reduction: a block, and an axis that exists.
bool checkReduction(Evaluator &evaluator, BuiltinCall &call, const ValueArg &input, const AnyArg &axisArg,
                    std::optional<int64_t> &axis) {
  if (!input->type().isBlock() || input->type().isPointer()) {
    evaluator.emit.error(
        input.range, fmt::format("{} needs a block of numbers, but got {}", qualifiedName(*call.builtin), input->describe()));
    return false;
  }
  axis = std::nullopt;
  if (axisArg.given->isNone())
    return true;
  int64_t at = axisOf(evaluator, *axisArg.given->constant().toInt64(), axisArg.range, input->type());
  axis = at;
  return at >= 0;
}

/// Sums of narrow integers are formed in 32 bits.
LangType sumType(const LangType &element) {
  if (element.isInt() && element.bitWidth() < 32)
    return element.isSigned() ? ScalarKind::Int32 : ScalarKind::UInt32;
  return element;
}

std::vector<LangValue> single(LangValue value) { return {std::move(value)}; }

/// Maximum or minimum together with its index; a tie goes to the lower index on demand.
LangValue extremeWithIndex(Evaluator &evaluator, BuiltinCall &call, const ValueArg &given, const AnyArg &axisArg, bool isMax,
                           bool breaksTiesLeft, bool keepsDims, bool wantsValue) {
  Emitter &emit = evaluator.emit;
  LangValue input = *given;
  std::optional<int64_t> axis;
  if (!checkReduction(evaluator, call, given, axisArg, axis))
    return LangValue::poison();
  if (!axis)
    return emit.fail(call.range, fmt::format("{} with indices needs an axis", qualifiedName(*call.builtin)));
  if (input.type().is(ScalarKind::BF16))
    input = emit.cast(input, ScalarKind::FP32, call.range);
  int64_t size = input.type().shape()[*axis];
  LangType lineType = LangType(ScalarKind::Int32).withShape({size});
  LangValue index = emit.wrap(emit.create<tile::ArangeOp>(emit.ir(lineType), emit.builder.getI32IntegerAttr(0),
                                                          emit.builder.getI32IntegerAttr(size)),
                              lineType);
  llvm::SmallVector<int64_t> shape(input.type().rank(), 1);
  shape[*axis] = size;
  index = emit.broadcastTo(emit.reshape(index, shape), input.type().shape());
  SourceRange range = call.range;
  auto combine = [&](llvm::ArrayRef<LangValue> a, llvm::ArrayRef<LangValue> b) -> std::vector<LangValue> {
    LangValue wins = emit.compare(isMax ? CompareOp::Gt : CompareOp::Lt, a[0], b[0], range);
    if (breaksTiesLeft) {
      LangValue ties = emit.compare(CompareOp::Eq, a[0], b[0], range);
      LangValue isLower = emit.compare(CompareOp::Lt, a[1], b[1], range);
      wins = emit.logical(false, wins, emit.logical(true, ties, isLower, range), range);
    }
    return {emit.select(wins, a[0], b[0], range), emit.select(wins, a[1], b[1], range)};
  };
  // Without a rule for ties any of the indices will do.
  tile::ReductionOrderingAttr ordering;
  if (!breaksTiesLeft)
    ordering = tile::ReductionOrderingAttr::get(emit.builder.getContext(), tile::ReductionOrdering::Unordered);
  auto results = reduceAll(evaluator, {input, index}, axis, keepsDims, combine, ordering);
  if (!results)
    return LangValue::poison();
  return wantsValue ? LangValue::tuple({(*results)[0], (*results)[1]}) : (*results)[1];
}

/// The blocks of tl.reduce and tl.associative_scan: one, or a tuple of one shape.
std::optional<std::vector<LangValue>> blocksOf(Evaluator &evaluator, BuiltinCall &call, const ValueArg &input) {
  std::vector<LangValue> sources = input->isTuple() ? input->elements() : std::vector<LangValue>{*input};
  bool isGood = !sources.empty();
  for (const LangValue &source : sources)
    isGood = isGood && source.isTensor() && source.type().isBlock() &&
             source.type().shape() == sources.front().type().shape();
  if (isGood)
    return sources;
  evaluator.emit.error(input.range, fmt::format("{} needs a block or a tuple of blocks of one shape, but got {}",
                                               qualifiedName(*call.builtin), input->describe()));
  return std::nullopt;
}

/// Runs a user's combine function and checks what it gives.
std::vector<LangValue> userCombine(Evaluator &evaluator, BuiltinCall &call, const Arg<const FunctionValue &> &function,
                                   llvm::ArrayRef<LangValue> sources, llvm::ArrayRef<LangValue> left,
                                   llvm::ArrayRef<LangValue> right) {
  llvm::SmallVector<LangValue> arguments(left);
  arguments.append(right.begin(), right.end());
  LangValue result = evaluator.callCombine(*function, arguments, call.range);
  if (result.isPoison())
    return {};
  std::vector<LangValue> values = result.isTuple() ? result.elements() : std::vector<LangValue>{result};
  std::string name = function->node->name.text.str();
  if (values.size() != sources.size()) {
    evaluator.emit.error(function.range, fmt::format("the combine function '{}' must give {} values, but gives {}", name,
                                                    sources.size(), values.size()));
    return {};
  }
  for (auto [value, source] : llvm::zip(values, sources)) {
    if (value.isLiteral())
      value = evaluator.emit.constantOf(value.constant(), source.type().element());
    if (!value.isTensor() || value.type() != source.type().element()) {
      evaluator.emit.error(function.range, fmt::format("the combine function '{}' must give {}, but gives {}", name,
                                                      source.type().element().str(), value.describe()));
      return {};
    }
  }
  return values;
}

LangValue packed(const std::vector<LangValue> &values, bool isTuple) {
  return isTuple ? LangValue::tuple(values) : values.front();
}

/// An inclusive scan of blocks of one shape.
LangValue scan(Evaluator &evaluator, const std::vector<LangValue> &sources, int64_t axis, bool isReverse, bool isTuple,
               Combine combine) {
  Emitter &emit = evaluator.emit;
  llvm::SmallVector<mlir::Value> operands;
  llvm::SmallVector<mlir::Type> types;
  for (const LangValue &source : sources) {
    operands.push_back(source.ir());
    types.push_back(source.ir().getType());
  }
  auto op = emit.create<tile::ScanOp>(types, operands, emit.builder.getI32IntegerAttr(axis),
                                      emit.builder.getBoolAttr(isReverse));
  if (!fillRegion(evaluator, op.getCombine(), sources, combine)) {
    op.erase();
    return LangValue::poison();
  }
  std::vector<LangValue> results;
  for (auto [result, source] : llvm::zip(op.getResults(), sources))
    results.push_back(emit.wrap(result, source.type()));
  return packed(results, isTuple);
}

} // namespace

//===------------------------------------------------------------------------------------------------------------------===//
// Reductions
//===------------------------------------------------------------------------------------------------------------------===//

LangValue sum(Evaluator &evaluator, BuiltinCall &call, ValueArg inputArg, Arg<std::optional<int64_t>> axisArg, Arg<bool> keepDims,
              Arg<std::optional<LangType>> dtype, ValueArg orderingArg) {
  Emitter &emit = evaluator.emit;
  LangValue input = *inputArg;
  std::optional<int64_t> axis;
  if (!checkReduction(evaluator, call, inputArg, axisArg, axis))
    return LangValue::poison();
  auto ordering = reductionOrderingOf(evaluator, call, orderingArg);
  if (!ordering)
    return LangValue::poison();
  LangType element = *dtype ? **dtype : sumType(input.type().element());
  input = emit.cast(input, element, call.range);
  if (input.isPoison())
    return input;
  auto combine = [&](llvm::ArrayRef<LangValue> a, llvm::ArrayRef<LangValue> b) {
    return single(emit.binary(BinaryOp::Add, a[0], b[0], call.range));
  };
  auto results = reduceAll(evaluator, {input}, axis, *keepDims, combine, *ordering);
  return results ? results->front() : LangValue::poison();
}

LangValue maxOrMin(Evaluator &evaluator, BuiltinCall &call, bool isMax, ValueArg inputArg, Arg<std::optional<int64_t>> axisArg,
                   Arg<bool> returnIndices, Arg<bool> returnIndicesTieBreakLeft, Arg<bool> keepDims) {
  Emitter &emit = evaluator.emit;
  if (*returnIndices)
    return extremeWithIndex(evaluator, call, inputArg, axisArg, isMax, *returnIndicesTieBreakLeft, *keepDims, true);
  LangValue input = *inputArg;
  std::optional<int64_t> axis;
  if (!checkReduction(evaluator, call, inputArg, axisArg, axis))
    return LangValue::poison();
  if (input.type().bitWidth() < 32)
    input = emit.cast(input, input.type().isFloat() ? ScalarKind::FP32 : ScalarKind::Int32, call.range);
  auto combine = [&](llvm::ArrayRef<LangValue> a, llvm::ArrayRef<LangValue> b) {
    return single(emit.minMax(isMax, a[0], b[0], false, call.range));
  };
  auto results = reduceAll(evaluator, {input}, axis, *keepDims, combine);
  return results ? results->front() : LangValue::poison();
}

LangValue argMaxOrMin(Evaluator &evaluator, BuiltinCall &call, bool isMax, ValueArg input, Arg<int64_t> axis,
                      Arg<bool> tieBreakLeft, Arg<bool> keepDims) {
  return extremeWithIndex(evaluator, call, input, axis, isMax, *tieBreakLeft, *keepDims, false);
}

LangValue xorOrReduce(Evaluator &evaluator, BuiltinCall &call, BinaryOp op, ValueArg input, Arg<std::optional<int64_t>> axisArg,
                      Arg<bool> keepDims) {
  Emitter &emit = evaluator.emit;
  std::optional<int64_t> axis;
  if (!checkReduction(evaluator, call, input, axisArg, axis))
    return LangValue::poison();
  if (!input->type().isInt())
    return emit.fail(input.range,
                     fmt::format("{} needs integers, but got {}", qualifiedName(*call.builtin), input->describe()));
  auto combine = [&](llvm::ArrayRef<LangValue> a, llvm::ArrayRef<LangValue> b) {
    return single(emit.binary(op, a[0], b[0], call.range));
  };
  auto results = reduceAll(evaluator, {*input}, axis, *keepDims, combine);
  return results ? results->front() : LangValue::poison();
}

LangValue reduce(Evaluator &evaluator, BuiltinCall &call, ValueArg input, Arg<std::optional<int64_t>> axisArg,
                 Arg<const FunctionValue &> combineFn, Arg<bool> keepDims, ValueArg orderingArg) {
  auto sources = blocksOf(evaluator, call, input);
  if (!sources)
    return LangValue::poison();
  std::optional<int64_t> axis;
  if (*axisArg) {
    axis = axisOf(evaluator, **axisArg, axisArg.range, sources->front().type());
    if (*axis < 0)
      return LangValue::poison();
  }
  auto ordering = reductionOrderingOf(evaluator, call, orderingArg);
  if (!ordering)
    return LangValue::poison();
  auto combine = [&](llvm::ArrayRef<LangValue> a, llvm::ArrayRef<LangValue> b) {
    return userCombine(evaluator, call, combineFn, *sources, a, b);
  };
  auto results = reduceAll(evaluator, *sources, axis, *keepDims, combine, *ordering);
  return results ? packed(*results, input->isTuple()) : LangValue::poison();
}

LangValue softmax(Evaluator &evaluator, BuiltinCall &call, ValueArg x, Arg<std::optional<int64_t>> dimArg, Arg<std::optional<bool>> keepsDims,
                  Arg<bool> ieeeRounding) {
  Emitter &emit = evaluator.emit;
  if (!x->type().is(ScalarKind::FP32) && !x->type().is(ScalarKind::FP64))
    return emit.fail(x.range, fmt::format("tl.softmax: Expected dtype ['fp32', 'fp64'] but got {} for argument 'x'",
                                          x->type().element().signatureText()));
  int64_t rank = x->type().rank(), dim = dimArg->value_or(0);
  if (dim < -rank || dim >= rank)
    return emit.fail(dimArg.range, fmt::format("dim {} is out of range for {}", dim, x->type().str()));
  dim = dim < 0 ? dim + rank : dim;
  SourceRange range = call.range;
  // The result has the shape of x whatever keep_dims says, as in Triton 3.9; older ones refused other dimensions without it.
  auto along = [&](const LangValue &value, Combine combine) {
    return reduceAll(evaluator, {value}, dim, /*keepsDims=*/true, combine)->front();
  };
  LangValue highest = along(*x, [&](llvm::ArrayRef<LangValue> a, llvm::ArrayRef<LangValue> b) {
    return single(emit.minMax(true, a[0], b[0], false, range));
  });
  LangValue shifted = emit.binary(BinaryOp::Sub, *x, highest, range);
  if (shifted.isPoison())
    return shifted;
  LangValue powers = emit.wrap(emit.create<math::ExpOp>(shifted.ir()), shifted.type());
  LangValue total = along(powers, [&](llvm::ArrayRef<LangValue> a, llvm::ArrayRef<LangValue> b) {
    return single(emit.binary(BinaryOp::Add, a[0], b[0], range));
  });
  if (!*ieeeRounding)
    return emit.binary(BinaryOp::Div, powers, total, range);
  LangValue divisor = emit.broadcastTo(total, powers.type().shape());
  return emit.wrap(emit.create<arith::DivFOp>(powers.ir(), divisor.ir()), powers.type());
}

//===------------------------------------------------------------------------------------------------------------------===//
// Scans
//===------------------------------------------------------------------------------------------------------------------===//

LangValue associativeScan(Evaluator &evaluator, BuiltinCall &call, ValueArg input, Arg<int64_t> axisArg,
                          Arg<const FunctionValue &> combineFn, Arg<bool> reverse) {
  auto sources = blocksOf(evaluator, call, input);
  if (!sources)
    return LangValue::poison();
  int64_t axis = axisOf(evaluator, *axisArg, axisArg.range, sources->front().type());
  if (axis < 0)
    return LangValue::poison();
  auto combine = [&](llvm::ArrayRef<LangValue> a, llvm::ArrayRef<LangValue> b) {
    return userCombine(evaluator, call, combineFn, *sources, a, b);
  };
  return scan(evaluator, *sources, axis, *reverse, input->isTuple(), combine);
}

/// cumsum and cumprod.
static LangValue cumulative(Evaluator &evaluator, BuiltinCall &call, const ValueArg &given, const Arg<int64_t> &axisArg,
                            const Arg<bool> &reverse, BinaryOp op, std::optional<LangType> wanted) {
  Emitter &emit = evaluator.emit;
  LangValue input = *given;
  if (input.type().isPointer())
    return emit.fail(given.range,
                     fmt::format("{} needs a block of numbers, but got {}", qualifiedName(*call.builtin), input.describe()));
  int64_t axis = axisOf(evaluator, *axisArg, axisArg.range, input.type());
  if (axis < 0)
    return LangValue::poison();
  LangType element = input.type().element();
  if (element.is(ScalarKind::BF16))
    element = ScalarKind::FP32;
  else if (op == BinaryOp::Add)
    element = sumType(element);
  input = emit.cast(input, wanted.value_or(element), call.range);
  if (input.isPoison())
    return input;
  auto combine = [&](llvm::ArrayRef<LangValue> a, llvm::ArrayRef<LangValue> b) {
    return single(emit.binary(op, a[0], b[0], call.range));
  };
  return scan(evaluator, {input}, axis, *reverse, false, combine);
}

LangValue cumsum(Evaluator &evaluator, BuiltinCall &call, ValueArg input, Arg<int64_t> axis, Arg<bool> reverse,
                 Arg<std::optional<LangType>> dtype) {
  return cumulative(evaluator, call, input, axis, reverse, BinaryOp::Add, *dtype);
}

LangValue cumprod(Evaluator &evaluator, BuiltinCall &call, ValueArg input, Arg<int64_t> axis, Arg<bool> reverse,
                  Arg<std::optional<LangType>> dtype) {
  return cumulative(evaluator, call, input, axis, reverse, BinaryOp::Mult, *dtype);
}

} // namespace ditron::frontend::builtins
