//===- AccumulatingDots.cpp - Warpgroup dots of a pipelined loop that run into its next turn -------------------------------===//
#include "ditron/transforms/pipelining/AccumulatingDots.h"

namespace ditron::transforms {

using namespace mlir;

bool AccumulatingDots::all() {
  return llvm::all_of(loop.getBody()->getOps<dgpu::WarpgroupWaitOp>(),
                      [&](dgpu::WarpgroupWaitOp wait) { return onlyAccumulates(wait); });
}

bool AccumulatingDots::some() {
  return llvm::any_of(loop.getBody()->getOps<dgpu::WarpgroupWaitOp>(),
                      [&](dgpu::WarpgroupWaitOp wait) { return onlyAccumulates(wait, /*fromRegisters=*/true); });
}

bool AccumulatingDots::turnComputesBetween() {
  auto waits = loop.getBody()->getOps<dgpu::WarpgroupWaitOp>();
  auto dots = loop.getBody()->getOps<dgpu::WarpgroupDotOp>();
  if (waits.empty())
    return false;
  auto first = (*waits.begin()).getSources();
  return !all() && first.size() == 1 && first.front().getDefiningOp() == *dots.begin() &&
         !onlyAccumulates(*waits.begin(), /*fromRegisters=*/true) &&
         llvm::none_of(dots, [](dgpu::WarpgroupDotOp dot) { return dot.getPromoteElems().has_value(); });
}

void AccumulatingDots::runOn(bool computesBetween, bool stayInFlight) {
  Block *body = loop.getBody();
  if (body->getOps<dgpu::BufferStoreOp>().empty()) {
    SmallVector<Operation *> fences;
    for (auto fence : body->getOps<dgpu::FenceAsyncOp>())
      fences.push_back(fence);
    for (Operation *fence : ArrayRef(fences).drop_front()) // the first one is that of the copies
      fence->erase();
  }
  // A wait whose value is the next iteration's accumulator and nothing else moves there.
  if (computesBetween ? !some() : !all())
    return;
  SmallVector<dgpu::WarpgroupWaitOp> waits(body->getOps<dgpu::WarpgroupWaitOp>());
  SmallVector<unsigned> indices;
  dgpu::WarpgroupWaitOp firstStaying;
  for (dgpu::WarpgroupWaitOp wait : waits) {
    if (!onlyAccumulates(wait, computesBetween)) {
      firstStaying = firstStaying ? firstStaying : wait;
      continue;
    }
    indices.push_back(wait.getResult(0).use_begin()->getOperandNumber());
    wait.getResult(0).replaceAllUsesWith(wait.getSources()[0]);
    wait.erase();
  }
  Operation *yield = body->getTerminator();
  SmallVector<Value> carried, started, results;
  for (unsigned index : indices) {
    carried.push_back(loop.getRegionIterArg(index));
    started.push_back(yield->getOperand(index));
    results.push_back(loop.getResult(index));
  }
  OpBuilder builder(loop.getContext());
  if (stayInFlight && computesBetween) {
    // Dots end in the order in which they start: the turn's first wait is also one for the turn before.
    builder.setInsertionPoint(firstStaying);
    SmallVector<Value> sources(firstStaying.getSources());
    llvm::append_range(sources, carried);
    auto wait = dgpu::WarpgroupWaitOp::create(builder, firstStaying.getLoc(), sources, firstStaying.getPending());
    firstStaying.getResult(0).replaceAllUsesWith(wait.getResult(0));
    firstStaying.erase();
    for (auto [value, complete] : llvm::zip(carried, wait.getResults().drop_front()))
      value.replaceAllUsesExcept(complete, wait);
  } else if (stayInFlight) {
    builder.setInsertionPoint(yield);
    waitFor(builder, started, static_cast<uint32_t>(started.size()));
  } else {
    builder.setInsertionPointAfter(*body->getOps<dgpu::FenceAsyncOp>().begin());
    waitFor(builder, carried, 0);
  }
  builder.setInsertionPointAfter(loop);
  waitFor(builder, results, 0);
}

void AccumulatingDots::waitFor(OpBuilder &builder, ValueRange values, uint32_t pending) {
  auto wait = dgpu::WarpgroupWaitOp::create(builder, loop.getLoc(), values, pending);
  for (auto [value, complete] : llvm::zip(values, wait.getResults()))
    value.replaceAllUsesExcept(complete, wait);
}

/// True for the wait of a dot that adds to a carried value, which nothing else uses, and hands it on; the dot promotes nothing, and reads no
/// registers unless that is said.
bool AccumulatingDots::onlyAccumulates(dgpu::WarpgroupWaitOp wait, bool fromRegisters) {
  if (wait.getSources().size() != 1 || !wait.getResult(0).hasOneUse())
    return false;
  auto dot = wait.getSources()[0].getDefiningOp<dgpu::WarpgroupDotOp>();
  if (!dot || !dot->hasOneUse() || !(dot.getSlotA() || fromRegisters) || dot.getPromoteElems())
    return false;
  auto argument = dyn_cast<BlockArgument>(dot.getC());
  OpOperand &use = *wait.getResult(0).use_begin();
  return argument && argument.getOwner() == loop.getBody() && argument.hasOneUse() &&
         use.getOwner() == loop.getBody()->getTerminator() && loop.getRegionIterArg(use.getOperandNumber()) == argument;
}

} // namespace ditron::transforms
