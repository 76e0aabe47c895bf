//===- OrderArrivals.cpp - Consumers that have read a slot themselves -----------------------------------------------------===//
//
// The pass dgpu-order-arrivals. A consumer gives a slot back to the producer when one lane of each warp arrives at an mbarrier. What
// warpgroup dots read of the slot has been read for the whole warp once it has waited for them. Ordinary loads are each lane's own:
// the lane that arrives does not know that the others are done, so the lanes of the warp meet before it does.
//
// Which slots are read by loads is not followed: where a consumer has any, all of its arrivals are ordered. That costs a warp barrier
// in kernels that use both.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "mlir/IR/BuiltinOps.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_ORDERARRIVALS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

class OrderArrivalsPass : public impl::OrderArrivalsBase<OrderArrivalsPass> {
  void runOnOperation() override {
    getOperation().walk([](dgpu::WarpSpecializeOp op) {
      Region &consumer = op.getConsumer();
      if (consumer.walk([](dgpu::BufferLoadOp) { return WalkResult::interrupt(); }).wasInterrupted())
        consumer.walk([](dgpu::MbarrierArriveOp arrive) { arrive.setAfterLoads(true); });
      op.getProducer().walk([](dgpu::MbarrierArriveOp arrive) { arrive.setAfterLoads(true); });
    });
  }
};

} // namespace
} // namespace ditron::transforms
