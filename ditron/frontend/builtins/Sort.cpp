//===- Sort.cpp - Sorting by bitonic networks --------------------------------------------------------------------===//
//
// The networks are operations of the tile dialect (tile.bitonic): code is made of them where it is known which elements a thread
// holds. NaNs never change places, so their order is unspecified.
//
// The k largest elements of n: blocks of k are sorted, in turns up and down, and of each two the larger elements are kept at once,
// until one block is left. This is how Triton defines the result, types of less than 32 bits becoming 32-bit ones.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/builtins/BuiltinHandlers.h"
#include "ditron/frontend/builtins/Rearrange.h"

#include "ditron/dialect/tile/Tile.h"
#include "llvm/Support/MathExtras.h"
#include <fmt/format.h>
#include <optional>

namespace ditron::frontend::builtins {
namespace {

/// Stages `first` to `last` of a bitonic network along the last dimension; `descending` says how the blocks of the last stage go,
/// nothing: up and down in turns.
LangValue network(Emitter &emit, const LangValue &value, unsigned first, unsigned last, std::optional<bool> descending) {
  if (value.isPoison() || first > last)
    return value;
  const LangType &type = value.type();
  // An 8-bit float of storage only is a byte to the IR.
  tile::SortKey key = type.is(ScalarKind::FP8E4B15)         ? tile::SortKey::SignMagnitude
                      : type.isFloat() || type.isSigned() ? tile::SortKey::Signed
                                                            : tile::SortKey::Unsigned;
  tile::SortDirection direction = !descending   ? tile::SortDirection::Alternating
                                  : *descending ? tile::SortDirection::Descending
                                                : tile::SortDirection::Ascending;
  return emit.wrap(emit.create<tile::BitonicOp>(value.ir().getType(), value.ir(), first, last, direction, key), type);
}

/// The block to sort, or poison when it or the dimension is not one that can be.
LangValue sortable(Evaluator &evaluator, BuiltinCall &call, const ValueArg &x, const Arg<std::optional<int64_t>> &dimArg) {
  const LangValue &value = *x;
  const LangType &type = value.type();
  std::string name = qualifiedName(*call.builtin);
  if (type.isPointer())
    return evaluator.emit.fail(x.range, fmt::format("{} needs a block of numbers, but got {}", name, value.describe()));
  int64_t rank = type.rank(), dim = dimArg->value_or(rank - 1);
  if (dim != rank - 1 && dim != -1)
    return evaluator.emit.fail(dimArg.range,
                              fmt::format("{} sorts along the last dimension only (only minor dimension is currently "
                                          "supported): dim is {}, but the block is {}",
                                          name, dim, type.str()));
  return value;
}

} // namespace

LangValue sort(Evaluator &evaluator, BuiltinCall &call, ValueArg x, Arg<std::optional<int64_t>> dim, Arg<bool> descending) {
  LangValue value = sortable(evaluator, call, x, dim);
  if (value.isPoison())
    return value;
  return network(evaluator.emit, value, 1, llvm::Log2_64(value.type().shape().back()), *descending);
}

LangValue bitonicMerge(Evaluator &evaluator, BuiltinCall &call, ValueArg x, Arg<std::optional<int64_t>> dim,
                       Arg<bool> descending) {
  LangValue value = sortable(evaluator, call, x, dim);
  if (value.isPoison())
    return value;
  const unsigned levels = llvm::Log2_64(value.type().shape().back());
  return levels == 0 ? value : network(evaluator.emit, value, levels, levels, *descending);
}

LangValue topk(Evaluator &evaluator, BuiltinCall &call, ValueArg x, Arg<int64_t> kArg, Arg<std::optional<int64_t>> dim,
               Arg<bool> descending) {
  Emitter &emit = evaluator.emit;
  LangValue value = sortable(evaluator, call, x, dim);
  if (value.isPoison())
    return value;
  const int64_t k = *kArg, size = value.type().shape().back();
  if (k < 1 || k > size || (k & (k - 1)) != 0)
    return emit.fail(
        kArg.range, fmt::format("k must be a power of two and at most {}, the size of the last dimension, but is {}", size, k));
  const unsigned levels = llvm::Log2_64(size), kept = llvm::Log2_64(k);
  llvm::SmallVector<int64_t> shape(value.type().shape());
  // The sorted blocks of a level, all but the last of which go up and down in turns.
  auto directionAt = [&](unsigned level) { return level < levels ? std::nullopt : std::optional(*descending); };
  value = network(emit, value, 1, kept, directionAt(kept));
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
    if (kept > 0)
      value = network(emit, value, kept, kept, directionAt(level));
  }
  return value;
}

} // namespace ditron::frontend::builtins
