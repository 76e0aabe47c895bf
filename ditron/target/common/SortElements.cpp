//===- SortElements.cpp - The elements of one thread in a sorting network -------------------------------------------------===//
//
// See SortElements.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/SortElements.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ditron::target {

Flag RegisterNumber::bit(Emitter &e, int position) const {
  if (!base || (1 << position) < unit)
    return {(offset >> position & 1) != 0, {}};
  return {std::nullopt, e.bitOf(base, position)};
}

SortElements::SortElements(Emitter &e, ValueRange initial, int registerWords)
    : count(static_cast<int>(initial.size())), type(initial.front().getType()), current(initial) {
  const int words = static_cast<int>(llvm::divideCeil(Emitter::bitWidth(type), 32u));
  if (count * words <= registerWords)
    return;
  array = e.allocaAtEntry(memoryType(type), count, 16);
  for (auto [index, value] : llvm::enumerate(initial))
    store(e, e.i32(static_cast<int64_t>(index)), value);
  current.clear();
}

Value SortElements::address(Emitter &e, Value index) {
  const unsigned bytes = Emitter::bitWidth(memoryType(type)) / 8;
  return e.addBytes(array, e.mul(index, e.i32(bytes)));
}

Value SortElements::load(Emitter &e, Value index) {
  return fromMemory(e, LLVM::LoadOp::create(e, memoryType(type), address(e, index)), type);
}

void SortElements::store(Emitter &e, Value index, Value value) {
  LLVM::StoreOp::create(e, toMemory(e, value), address(e, index));
}

void SortElements::forPairs(Emitter &e, int bit, PairBody body) {
  const int distance = 1 << bit;
  if (!isArray()) {
    for (int low = 0; low < count; ++low)
      if (!(low & distance))
        std::tie(current[low], current[low | distance]) =
            body(e, RegisterNumber{low, {}, 1}, current[low], current[low | distance]);
    return;
  }
  auto pairs = scf::ForOp::create(e, e.i32(0), e.i32(count / 2), e.i32(1));
  OpBuilder::InsertionGuard guard(e);
  e.setInsertionPointToStart(pairs.getBody());
  // Makes room for the bit.
  Value number = pairs.getInductionVar(), below = e.bitAnd(number, e.i32(distance - 1));
  Value low = e.add(e.shl(e.sub(number, below), 1), below), high = e.add(low, e.i32(distance));
  auto [newLow, newHigh] = body(e, RegisterNumber{0, low, 1}, load(e, low), load(e, high));
  store(e, low, newLow);
  store(e, high, newHigh);
}

void SortElements::forGroups(Emitter &e, int groupSize, GroupBody body) {
  if (!isArray()) {
    for (int first = 0; first < count; first += groupSize) {
      Values replaced = body(e, RegisterNumber{first, {}, 1}, ValueRange(current).slice(first, groupSize));
      llvm::copy(replaced, current.begin() + first);
    }
    return;
  }
  auto groups = scf::ForOp::create(e, e.i32(0), e.i32(count), e.i32(groupSize));
  OpBuilder::InsertionGuard guard(e);
  e.setInsertionPointToStart(groups.getBody());
  Value first = groups.getInductionVar();
  Values own;
  for (int i = 0; i < groupSize; ++i)
    own.push_back(load(e, e.add(first, e.i32(i))));
  for (auto [i, value] : llvm::enumerate(body(e, RegisterNumber{0, first, groupSize}, own)))
    store(e, e.add(first, e.i32(static_cast<int64_t>(i))), value);
}

void SortElements::loop(Emitter &e, int first, int last, llvm::function_ref<void(Emitter &, Value)> body) {
  auto loop = scf::ForOp::create(e, e.i32(first), e.i32(last + 1), e.i32(1), current);
  {
    OpBuilder::InsertionGuard guard(e);
    e.setInsertionPointToStart(loop.getBody());
    current.assign(loop.getRegionIterArgs().begin(), loop.getRegionIterArgs().end());
    body(e, loop.getInductionVar());
    if (!isArray()) // without values to carry there is a terminator already
      scf::YieldOp::create(e, current);
  }
  current.assign(loop.getResults().begin(), loop.getResults().end());
}

void SortElements::when(Emitter &e, Value condition, llvm::function_ref<void(Emitter &)> body) {
  Values before = current;
  auto branch = scf::IfOp::create(e, ValueRange(before).getTypes(), condition, /*withElseRegion=*/!isArray());
  {
    OpBuilder::InsertionGuard guard(e);
    e.setInsertionPointToStart(branch.thenBlock());
    body(e);
    if (!isArray()) {
      scf::YieldOp::create(e, current);
      e.setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(e, before);
    }
  }
  current.assign(branch.getResults().begin(), branch.getResults().end());
}

SmallVector<Value> SortElements::values(Emitter &e) {
  if (!isArray())
    return current;
  Values loaded;
  for (int i = 0; i < count; ++i)
    loaded.push_back(load(e, e.i32(i)));
  return loaded;
}

} // namespace ditron::target
