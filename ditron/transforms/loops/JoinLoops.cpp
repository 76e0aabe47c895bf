//===- JoinLoops.cpp - Two loops over tiles alike become one ---------------------------------------------------------------===//
//
// Loops of dots are often written twice: once over the tiles that need no mask, once over those that do. What dgpu-delay-dots keeps in flight
// from turn to turn ends with the first loop, and the tensor core idles until the second one is under way. Here both become one loop, and what
// differs between their bodies a branch in it. Works on tile IR, before warps are specialised.
//
//   a = for i in l .. m: (acc)                 becomes       for t in 0 .. turns of the first + turns of the second: (acc)
//     x = dot q, load k[i]                                     x = dot q, load k[i]
//     p = exp2(x * s)                                          p = if t < turns of the first: exp2(x * s)
//     yield dot p, load v[i], acc                                  else: exp2(where(mask(i), x * s, c))
//   b = for i in m .. n: (a)                                   yield dot p, load v[i], acc
//     x = dot q, load k[i]
//     p = exp2(where(mask(i), x * s, c))
//     yield dot p, load v[i], acc
// 1. Which loops: neighbours in a block, both with several dots and loads of descriptors, as many and of the same types; the second one begins
//    with what the first one has carried. Scalars that it begins with otherwise, as the place of the next tile, are chosen in its first turn.
// 2. Matching, from the loads, dots and yielded values backward: operations with the same name, attributes and types match, and so do their
//    operands, as far as that goes. Where it ends, the value is one that the branch yields.
// 3. An operation between two values of the branch belongs to it, and a product stays with the sum that it goes into, so that the hardware does
//    both at once. What is computed from the branch's tiles alone, element by element or by reductions, goes with them: an assembler orders
//    instructions inside of a block, and functions of elements then run beside the arithmetic before them. One branch remains.
// 4. Loads and dots must all match: they happen in every turn, in the same order. Nothing else may have effects.
//
// Turns and results are the same in number and order; nothing is rounded otherwise.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/transforms/Constants.h"
#include "ditron/transforms/layouts/LayoutRules.h"
#include "ditron/transforms/warps/WarpRings.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_JOINLOOPS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

using Pair = std::pair<Value, Value>; ///< Of the first loop and of the second.

/// What every turn does, and what loops must agree in.
bool isAnchor(Operation *op) { return isa<tile::DescriptorLoadOp, tile::DotOp>(op); }

SmallVector<Operation *> anchorsOf(scf::ForOp loop) {
  SmallVector<Operation *> anchors;
  for (Operation &op : *loop.getBody())
    if (isAnchor(&op))
      anchors.push_back(&op);
  return anchors;
}

/// True if the operations compute the same from the same operands.
bool isAlike(Operation *a, Operation *b) {
  return a->getName() == b->getName() && a->getAttrDictionary() == b->getAttrDictionary() &&
         a->getResultTypes() == b->getResultTypes() && a->getOperandTypes() == b->getOperandTypes() &&
         llvm::all_of(llvm::zip_equal(a->getRegions(), b->getRegions()), [](auto regions) {
           return OperationEquivalence::isRegionEquivalentTo(&std::get<0>(regions), &std::get<1>(regions),
                                                             OperationEquivalence::IgnoreLocations);
         });
}

/// What matches in the bodies of two loops.
class BodyMatch {
public:
  BodyMatch(scf::ForOp a, scf::ForOp b, ArrayRef<std::pair<unsigned, unsigned>> carried)
      : loopA(a), loopB(b), carried(carried) {}

  /// Why the bodies cannot become one, or nothing.
  std::string run() {
    const SmallVector<Operation *> anchorsA = anchorsOf(loopA), anchorsB = anchorsOf(loopB);
    if (anchorsA.size() != anchorsB.size())
      return "their loads and dots differ in number";
    for (scf::ForOp loop : {loopA, loopB})
      for (Operation &op : *loop.getBody())
        if (!isMemoryEffectFree(&op) && !isAnchor(&op))
          return ("they have other effects, of '" + op.getName().getStringRef() + "'").str();
    // Each round sets at least one more operation of the first body apart.
    do {
      partner.clear();
      partnerOfB.clear();
      merged.clear();
      for (auto [a, b] : llvm::zip_equal(anchorsA, anchorsB)) {
        if (apart.contains(a) || !match(a, b))
          return "a load or dot differs, or depends on what differs";
      }
      for (auto [indexA, indexB] : carried)
        match(loopA.getYieldedValues()[indexA], loopB.getYieldedValues()[indexB]);
      collectBranch();
    } while (setApart());
    return {};
  }

  bool isMatched(Operation *op) const { return partner.contains(op); }
  Operation *partnerOf(Operation *op) const { return partner.lookup(op); }
  ArrayRef<Pair> branchValues() const { return merged.getArrayRef(); }
  /// What only one of the loops computes, in order.
  SmallVector<Operation *> branchOf(bool first) {
    SmallVector<Operation *> ops;
    for (Operation &op : *(first ? loopA : loopB).getBody())
      if ((first ? branchA : branchB).contains(&op))
        ops.push_back(&op);
    return ops;
  }

private:
  bool match(Operation *a, Operation *b) {
    auto known = partner.find(a);
    if (known != partner.end())
      return known->second == b;
    if (partnerOfB.contains(b) || apart.contains(a) || !isAlike(a, b))
      return false;
    partner[a] = b;
    partnerOfB.insert(b);
    for (auto [operandA, operandB] : llvm::zip_equal(a->getOperands(), b->getOperands()))
      match(operandA, operandB);
    return true;
  }

  void match(Value a, Value b) {
    if (isSame(a, b))
      return;
    Operation *opA = a.getDefiningOp(), *opB = b.getDefiningOp();
    const bool areInside = opA && opB && opA->getBlock() == loopA.getBody() && opB->getBlock() == loopB.getBody();
    if (areInside && cast<OpResult>(a).getResultNumber() == cast<OpResult>(b).getResultNumber() && match(opA, opB))
      return;
    merged.insert({a, b});
  }

  /// True for one value from outside, and for arguments of the bodies that stand for each other.
  bool isSame(Value a, Value b) {
    auto argumentA = dyn_cast<BlockArgument>(a), argumentB = dyn_cast<BlockArgument>(b);
    if (!argumentA || !argumentB || argumentA.getOwner() != loopA.getBody() || argumentB.getOwner() != loopB.getBody())
      return a == b;
    if (argumentA == loopA.getInductionVar() || argumentB == loopB.getInductionVar())
      return argumentA.getArgNumber() == argumentB.getArgNumber();
    return llvm::is_contained(carried, std::pair(argumentA.getArgNumber() - 1, argumentB.getArgNumber() - 1));
  }

  void collectBranch() {
    branchA.clear();
    branchB.clear();
    for (auto [a, b] : merged) {
      collect(a, loopA, branchA, [&](Operation *op) { return partner.contains(op); });
      collect(b, loopB, branchB, [&](Operation *op) { return partnerOfB.contains(op); });
    }
  }

  static void collect(Value value, scf::ForOp loop, llvm::SetVector<Operation *> &branch,
                      llvm::function_ref<bool(Operation *)> isMatched) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != loop.getBody() || isMatched(op) || !branch.insert(op))
      return;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        collect(operand, loop, branch, isMatched);
    });
  }

  /// Takes operations out of what matches that belong to the branch. True if there were any.
  bool setApart() {
    const size_t before = apart.size();
    llvm::DenseSet<Operation *> behind; // matched, and depends on the branch
    for (Operation &a : *loopA.getBody()) {
      auto found = partner.find(&a);
      if (found == partner.end())
        continue;
      Operation *b = found->second;
      bool isProductMerged = false, isBehind = false;
      for (auto [operandA, operandB] : llvm::zip_equal(a.getOperands(), b->getOperands())) {
        const bool isMerged = merged.contains({operandA, operandB});
        isBehind |= isMerged || behind.contains(operandA.getDefiningOp());
        isProductMerged |= isMerged && (isProduct(operandA) || isProduct(operandB));
      }
      if (isBehind)
        behind.insert(&a);
      const bool isSum = isa<arith::AddFOp, arith::SubFOp>(a);
      const bool goesWithTiles = isComputedFromTiles(a, b);
      const bool isBetween = isBehind && (isUsedIn(&a, loopA, branchA) || isUsedIn(b, loopB, branchB));
      if ((isSum && isProductMerged) || isBetween || goesWithTiles)
        apart.insert(&a);
    }
    return apart.size() > before;
  }

  /// True if the operation's tiles, not the rows and scalars beside them, are all the branch's.
  bool isComputedFromTiles(Operation &a, Operation *b) const {
    if (!isElementwise(&a) && !isa<tile::ReduceOp>(a))
      return false;
    bool hasTile = false;
    for (auto [operandA, operandB] : llvm::zip_equal(a.getOperands(), b->getOperands())) {
      auto type = dyn_cast<RankedTensorType>(operandA.getType());
      if (!type || type.getRank() < 2)
        continue;
      if (!merged.contains({operandA, operandB}))
        return false;
      hasTile = true;
    }
    return hasTile;
  }

  static bool isProduct(Value value) { return isTensor(value) && value.getDefiningOp<arith::MulFOp>(); }
  static bool isUsedIn(Operation *op, scf::ForOp loop, const llvm::SetVector<Operation *> &branch) {
    return llvm::any_of(op->getUsers(), [&](Operation *user) {
      Operation *around = loop.getBody()->findAncestorOpInBlock(*user);
      return around && branch.contains(around);
    });
  }

  scf::ForOp loopA, loopB;
  ArrayRef<std::pair<unsigned, unsigned>> carried;
  llvm::DenseMap<Operation *, Operation *> partner; ///< Of the first body -> of the second.
  llvm::DenseSet<Operation *> partnerOfB, apart;
  llvm::SetVector<Pair> merged;
  llvm::SetVector<Operation *> branchA, branchB;
};

/// Two loops that may become one.
class LoopPair {
public:
  LoopPair(scf::ForOp a, scf::ForOp b) : a(a), b(b), loc(a.getLoc()) {}

  /// Why they stay two, or nothing.
  std::string find() {
    if (a->getDiscardableAttrDictionary() != b->getDiscardableAttrDictionary() || a.getUnsignedCmp() ||
        b.getUnsignedCmp() || a.getInductionVar().getType() != b.getInductionVar().getType())
      return "their options differ";
    for (scf::ForOp loop : {a, b})
      if (constantOf(loop.getStep()).value_or(0) <= 0)
        return "a step is no positive constant";
    // Of the backward of attention, whose masked loop took four of its turns together and the other one two (dgpu-widen-turns), ptxas makes one loop in
    // which multiplies wait for each other (C7511, heads of 64), or as fast a kernel as of two (heads of 128).
    if (constantOf(a.getStep()) != constantOf(b.getStep()))
      return "their steps differ";
    if (std::string reason = pairCarried(); !reason.empty())
      return reason;
    if (std::string reason = findBetween(); !reason.empty())
      return reason;
    match.emplace(a, b, carried);
    return match->run();
  }

  void join() {
    for (Operation *op : between)
      op->moveBefore(a);
    builder.setInsertionPoint(a);
    Value turnsA = turnsOf(a), turns = arith::AddIOp::create(builder, loc, turnsA, turnsOf(b));
    SmallVector<Value> inits;
    for (auto [indexA, indexB] : carried)
      inits.push_back(a.getInitArgs()[indexA]);
    joined = scf::ForOp::create(builder, loc, number(0), turns, number(1), inits);
    joined->setDiscardableAttrs(a->getDiscardableAttrDictionary());
    builder.setInsertionPointToStart(joined.getBody());
    mapArguments(turnsA);
    for (Operation &op : a.getBody()->without_terminator())
      if (match->isMatched(&op))
        emit(&op);
    SmallVector<Value> results;
    for (auto [indexA, indexB] : carried)
      results.push_back(valueOf(a.getYieldedValues()[indexA], b.getYieldedValues()[indexB]));
    if (!results.empty())
      scf::YieldOp::create(builder, loc, results);
    for (auto [index, pair] : llvm::enumerate(carried))
      b.getResult(pair.second).replaceAllUsesWith(joined.getResult(index));
    b->erase();
    a->erase();
  }

private:
  /// Which values of the loops are one: first those that the second loop takes from the first one, then scalars in their order.
  std::string pairCarried() {
    llvm::SmallBitVector isPairedA(a.getNumResults()), isPairedB(b.getNumResults());
    for (auto [indexB, init] : llvm::enumerate(b.getInitArgs()))
      if (auto result = dyn_cast<OpResult>(init); result && result.getOwner() == a) {
        if (!result.hasOneUse())
          return "something else uses what the first one has carried";
        carried.push_back({result.getResultNumber(), static_cast<unsigned>(indexB)});
        isPairedA.set(result.getResultNumber());
        isPairedB.set(indexB);
      }
    if (carried.empty())
      return "the second one does not go on with what the first one has carried";
    for (unsigned indexA = 0; indexA < a.getNumResults(); ++indexA) {
      if (isPairedA.test(indexA))
        continue;
      const Type type = a.getResult(indexA).getType();
      unsigned indexB = 0;
      while (indexB < b.getNumResults() && (isPairedB.test(indexB) || b.getResult(indexB).getType() != type))
        ++indexB;
      if (!a.getResult(indexA).use_empty() || isa<RankedTensorType>(type) || indexB == b.getNumResults())
        return "they carry different values";
      // What it begins with is chosen in the second loop's first turn, which there may not be.
      if (!b.getResult(indexB).use_empty())
        return "something uses a scalar that the second one has carried";
      carried.push_back({indexA, indexB});
      isPairedB.set(indexB);
    }
    return isPairedB.all() ? std::string() : "they carry different values";
  }

  /// What stands between the loops must do without the first one's results.
  std::string findBetween() {
    for (Operation *op = a->getNextNode(); op != b; op = op->getNextNode()) {
      if (!isMemoryEffectFree(op))
        return "something happens between them";
      bool dependsOnA = false;
      op->walk([&](Operation *inner) {
        dependsOnA |= llvm::any_of(inner->getOperands(), [&](Value operand) { return operand.getDefiningOp() == a; });
      });
      if (dependsOnA)
        return "something between them depends on the first one";
      between.push_back(op);
    }
    return {};
  }

  /// Sums of indices do not overflow (analysis/AxisInfo.h).
  Value turnsOf(scf::ForOp loop) {
    const int64_t step = *constantOf(loop.getStep());
    Value distance = arith::SubIOp::create(builder, loc, loop.getUpperBound(), loop.getLowerBound());
    Value positive = arith::MaxSIOp::create(builder, loc, distance, number(0));
    Value rounded = arith::AddIOp::create(builder, loc, positive, number(step - 1));
    return arith::DivSIOp::create(builder, loc, rounded, loop.getStep());
  }

  void mapArguments(Value turnsA) {
    Value turn = joined.getInductionVar();
    isSecond = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, turn, turnsA);
    auto at = [&](scf::ForOp loop, Value number) -> Value {
      Value distance = arith::MulIOp::create(builder, loc, number, loop.getStep());
      return arith::AddIOp::create(builder, loc, loop.getLowerBound(), distance);
    };
    Value turnOfB = arith::SubIOp::create(builder, loc, turn, turnsA);
    Value counter = arith::SelectOp::create(builder, loc, isSecond, at(b, turnOfB), at(a, turn));
    valuesA.map(a.getInductionVar(), counter);
    valuesB.map(b.getInductionVar(), counter);
    Value isFirstOfB;
    for (auto [pair, argument] : llvm::zip_equal(carried, joined.getRegionIterArgs())) {
      auto [indexA, indexB] = pair;
      Value value = argument, init = b.getInitArgs()[indexB];
      if (init.getDefiningOp() != a) {
        if (!isFirstOfB)
          isFirstOfB = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, turn, turnsA);
        value = arith::SelectOp::create(builder, loc, isFirstOfB, init, value);
      }
      valuesA.map(a.getRegionIterArg(indexA), value);
      valuesB.map(b.getRegionIterArg(indexB), value);
    }
  }

  /// The value that stands for one of the first body and one of the second.
  Value valueOf(Value ofA, Value ofB) {
    const ArrayRef<Pair> merged = match->branchValues();
    if (const auto *found = llvm::find(merged, Pair(ofA, ofB)); found != merged.end()) {
      emitBranch();
      return branch.getResult(found - merged.begin());
    }
    if (Operation *op = ofA.getDefiningOp(); op && op->getBlock() == a.getBody())
      emit(op);
    return valuesA.lookupOrDefault(ofA);
  }

  /// A matched operation, with what it needs.
  void emit(Operation *op) {
    if (!emitted.insert(op).second)
      return;
    Operation *other = match->partnerOf(op);
    SmallVector<Value> operands;
    for (auto [ofA, ofB] : llvm::zip_equal(op->getOperands(), other->getOperands()))
      operands.push_back(valueOf(ofA, ofB));
    Operation *copy = builder.clone(*op, valuesA);
    copy->setOperands(operands);
    valuesA.map(op->getResults(), copy->getResults());
    valuesB.map(other->getResults(), copy->getResults());
  }

  void emitBranch() {
    if (branch)
      return;
    const SmallVector<Operation *> onlyA = match->branchOf(/*first=*/true), onlyB = match->branchOf(/*first=*/false);
    for (Operation &op : a.getBody()->without_terminator()) // in the order of the first body
      if (match->isMatched(&op) && (isNeeded(&op, onlyA) || isNeeded(match->partnerOf(&op), onlyB)))
        emit(&op);
    SmallVector<Type> types;
    for (auto [ofA, ofB] : match->branchValues())
      types.push_back(ofA.getType());
    branch = scf::IfOp::create(builder, loc, types, isSecond, /*withElseRegion=*/true);
    fill(branch.thenBlock(), onlyB, valuesB, [](Pair pair) { return pair.second; });
    fill(branch.elseBlock(), onlyA, valuesA, [](Pair pair) { return pair.first; });
  }

  static bool isNeeded(Operation *op, ArrayRef<Operation *> users) {
    return llvm::any_of(op->getUsers(), [&](Operation *user) {
      return llvm::any_of(users, [&](Operation *around) { return around->isAncestor(user); });
    });
  }

  void fill(Block *block, ArrayRef<Operation *> operations, const IRMapping &outside,
            llvm::function_ref<Value(Pair)> sideOf) {
    OpBuilder inBranch = OpBuilder::atBlockBegin(block);
    IRMapping values = outside;
    for (Operation *op : operations)
      inBranch.clone(*op, values);
    SmallVector<Value> results;
    for (Pair pair : match->branchValues())
      results.push_back(values.lookupOrDefault(sideOf(pair)));
    scf::YieldOp::create(inBranch, loc, results);
  }

  Value number(int64_t value) {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(a.getInductionVar().getType(), value));
  }

  scf::ForOp a, b, joined;
  Location loc;
  SmallVector<std::pair<unsigned, unsigned>> carried; ///< Indices in both loops.
  SmallVector<Operation *> between;
  std::optional<BodyMatch> match;
  OpBuilder builder{a.getContext()};
  IRMapping valuesA, valuesB; ///< To the joined body.
  llvm::DenseSet<Operation *> emitted;
  Value isSecond;
  scf::IfOp branch;
};

class JoinLoopsPass : public impl::JoinLoopsBase<JoinLoopsPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!hasProducers(module))
      return;
    SmallVector<std::pair<scf::ForOp, scf::ForOp>> pairs;
    module.walk([&](scf::ForOp loop) {
      if (auto next = nextLoop(loop); next && hasSeveralDots(loop) && hasSeveralDots(next))
        pairs.push_back({loop, next});
    });
    llvm::DenseSet<Operation *> gone;
    for (auto [first, second] : pairs) {
      if (gone.contains(first))
        continue;
      constexpr auto options = [] { return remark::RemarkOpts::name("join").category("dgpu-join-loops"); };
      LoopPair pair(first, second);
      if (std::string reason = pair.find(); !reason.empty()) {
        remark::missed(second.getLoc(), options()) << "the loop is not joined with the one before: " + reason;
        continue;
      }
      remark::passed(second.getLoc(), options()) << "joined with the loop before, and a branch for what differs";
      gone.insert(second);
      pair.join();
    }
  }

  static scf::ForOp nextLoop(scf::ForOp loop) {
    for (Operation *op = loop->getNextNode(); op; op = op->getNextNode())
      if (auto next = dyn_cast<scf::ForOp>(op))
        return next;
    return {};
  }

  static bool hasSeveralDots(scf::ForOp loop) {
    auto dots = loop.getBody()->getOps<tile::DotOp>();
    return llvm::range_size(dots) > 1 && !loop.getBody()->getOps<tile::DescriptorLoadOp>().empty();
  }
};

} // namespace
} // namespace ditron::transforms
