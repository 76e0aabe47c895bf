//===- BuiltinsSort.cpp - Sorting by bitonic networks --------------------------------------------------------------------===//
//
// A step of a bitonic network compares each element with the one whose position differs in one bit; the lower of the two keeps
// the smaller value or the larger one, as the block that it belongs to ascends or descends. Both sides decide by the same
// comparison, so that no element is lost, not even a NaN, for which the order is unspecified.
//
// The k largest elements of n: blocks of k are sorted, in turns up and down, and of each two the larger elements are kept at once,
// until one block is left. This is how Triton defines the result, types of less than 32 bits becoming 32-bit ones.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/BuiltinHandlers.h"
#include "ditron/frontend/Rearrange.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"
#include <fmt/format.h>
#include <map>

namespace ditron::frontend::builtins {
namespace arith = mlir::arith;
namespace {

/// Steps of a network along the last dimension of values of one shape.
class BitonicNetwork {
public:
  BitonicNetwork(Emitter &emit, const LangType &type, SourceRange range)
      : emit(emit), axis(type.rank() - 1), range(range), positions(positionsAlong(emit, type.shape(), axis)),
        mask(LangType(ScalarKind::Int1).withShape(type.shape())) {}

  /// Sorts blocks of 2^stage elements that are bitonic. Neighbouring blocks go up and down in turns, or all as `descending` says.
  LangValue merge(LangValue value, unsigned stage, std::optional<bool> descending) {
    for (unsigned step = stage; step-- > 0 && !value.isPoison();) {
      // True where the smaller value of a pair is kept: on the lower side of an ascending block, and the other way round.
      mlir::Value keepsSmaller = bitIsSet(step);
      if (!descending)
        keepsSmaller = emit.create<arith::CmpIOp>(arith::CmpIPredicate::eq, keepsSmaller, bitIsSet(stage));
      else if (!*descending)
        keepsSmaller = emit.create<arith::XOrIOp>(keepsSmaller, emit.integerConstant(1, emit.ir(mask)));
      value = compareAndKeep(value, exchangeAlong(emit, value, positions, axis, int64_t(1) << step), keepsSmaller);
    }
    return value;
  }

private:
  /// Whether a bit of the position is set, everywhere.
  mlir::Value bitIsSet(unsigned bit) {
    mlir::Value &known = bits[bit];
    if (!known) {
      mlir::Type type = positions.ir().getType();
      mlir::Value isolated = emit.create<arith::AndIOp>(positions.ir(), emit.integerConstant(int64_t(1) << bit, type));
      known = emit.create<arith::CmpIOp>(arith::CmpIPredicate::ne, isolated, emit.integerConstant(0, type));
    }
    return known;
  }

  LangValue compareAndKeep(const LangValue &own, const LangValue &partner, mlir::Value keepsSmaller) {
    LangValue isLarger = emit.compare(CompareOp::Gt, own, partner, range);
    LangValue isSmaller = emit.compare(CompareOp::Lt, own, partner, range);
    if (isLarger.isPoison() || isSmaller.isPoison())
      return LangValue::poison();
    mlir::Value takes = emit.create<arith::SelectOp>(keepsSmaller, isLarger.ir(), isSmaller.ir());
    return emit.wrap(emit.create<arith::SelectOp>(takes, partner.ir(), own.ir()), own.type());
  }

  Emitter &emit;
  unsigned axis;
  SourceRange range;
  LangValue positions;
  LangType mask;
  std::map<unsigned, mlir::Value> bits;
};

/// The block to sort, or poison when it or the dimension is not one that can be.
LangValue sortable(Importer &importer, BuiltinCall &call, const ValueArg &x, const Arg<std::optional<int64_t>> &dimArg) {
  const LangValue &value = *x;
  const LangType &type = value.type();
  std::string name = qualifiedName(*call.builtin);
  if (type.isPointer())
    return importer.emit.fail(x.range, fmt::format("{} needs a block of numbers, but got {}", name, value.describe()));
  int64_t rank = type.rank(), dim = dimArg->value_or(rank - 1);
  if (dim != rank - 1 && dim != -1)
    return importer.emit.fail(dimArg.range,
                              fmt::format("{} sorts along the last dimension only (only minor dimension is currently "
                                          "supported): dim is {}, but the block is {}",
                                          name, dim, type.str()));
  return value;
}

} // namespace

LangValue sort(Importer &importer, BuiltinCall &call, ValueArg x, Arg<std::optional<int64_t>> dim, Arg<bool> descending) {
  LangValue value = sortable(importer, call, x, dim);
  if (value.isPoison())
    return value;
  const unsigned levels = llvm::Log2_64(value.type().shape().back());
  BitonicNetwork network(importer.emit, value.type(), call.range);
  for (unsigned stage = 1; stage <= levels; ++stage)
    value = network.merge(value, stage, stage < levels ? std::nullopt : std::optional(*descending));
  return value;
}

LangValue bitonicMerge(Importer &importer, BuiltinCall &call, ValueArg x, Arg<std::optional<int64_t>> dim,
                       Arg<bool> descending) {
  LangValue value = sortable(importer, call, x, dim);
  if (value.isPoison())
    return value;
  BitonicNetwork network(importer.emit, value.type(), call.range);
  return network.merge(value, llvm::Log2_64(value.type().shape().back()), *descending);
}

LangValue topk(Importer &importer, BuiltinCall &call, ValueArg x, Arg<int64_t> kArg, Arg<std::optional<int64_t>> dim,
               Arg<bool> descending) {
  Emitter &emit = importer.emit;
  LangValue value = sortable(importer, call, x, dim);
  if (value.isPoison())
    return value;
  const int64_t k = *kArg, size = value.type().shape().back();
  if (k < 1 || k > size || (k & (k - 1)) != 0)
    return emit.fail(
        kArg.range, fmt::format("k must be a power of two and at most {}, the size of the last dimension, but is {}", size, k));
  const unsigned levels = llvm::Log2_64(size), kept = llvm::Log2_64(k);
  llvm::SmallVector<int64_t> shape(value.type().shape());
  {
    BitonicNetwork network(emit, value.type(), call.range);
    for (unsigned stage = 1; stage <= kept; ++stage)
      value = network.merge(value, stage, stage < levels ? std::nullopt : std::optional(*descending));
  }
  if (kept < levels && value.isTensor() && value.type().bitWidth() < 32)
    value = emit.cast(value, value.type().isFloat() ? ScalarKind::FP32 : ScalarKind::Int32, call.range);
  for (unsigned level = kept + 1; level <= levels && !value.isPoison(); ++level) {
    // Of an ascending block and the descending one behind it, the winners at each position are a bitonic block.
    llvm::SmallVector<int64_t> blocks(shape);
    blocks.back() /= 2 * k;
    blocks.append({2, k});
    LangValue parts = emit.reshape(value, blocks);
    llvm::SmallVector<int32_t> order;
    for (unsigned i = 0; i < blocks.size(); ++i)
      order.push_back(i);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    auto [left, right] = splitPair(emit, permuteDims(emit, parts, order));
    shape.back() /= 2;
    value = emit.reshape(emit.minMax(*descending, left, right, false, call.range), shape);
    BitonicNetwork network(emit, value.type(), call.range);
    value = network.merge(value, kept, level < levels ? std::nullopt : std::optional(*descending));
  }
  return value;
}

} // namespace ditron::frontend::builtins
