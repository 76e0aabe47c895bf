//===- VerifyInput.cpp - What passes may rely on in IR that somebody wrote ------------------------------------------===//
#include "VerifyInput.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <bit>

namespace ditron {
namespace {

using namespace mlir;

/// Places in shared memory and their sizes fit 31 bits, as on every GPU; sums of a few of them then do not overflow.
constexpr int64_t mostSharedBytes = int64_t(1) << 30;

class VerifyInput : public PassWrapper<VerifyInput, OperationPass<>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(VerifyInput)

  StringRef getName() const override { return "verify-input"; }

  void runOnOperation() override {
    const WalkResult result = getOperation()->walk([](Operation *op) {
      return failed(checkNumbers(op)) || failed(checkPlace(op)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  /// An integer attribute in [least, most]; `isPower`: a power of two.
  static LogicalResult checkNumber(Operation *op, StringRef name, int64_t least, int64_t most, bool isPower) {
    Attribute attribute = op->getAttr(name);
    if (!attribute)
      return success();
    auto number = dyn_cast<IntegerAttr>(attribute);
    const bool isWide = number && number.getValue().getSignificantBits() > 64;
    const int64_t value = number && !isWide ? number.getValue().getSExtValue() : -1;
    if (number && !isWide && value >= least && value <= most && (!isPower || std::has_single_bit(static_cast<uint64_t>(value))))
      return success();
    return op->emitError() << name << " is " << attribute << "; " << (isPower ? "a power of two" : "an integer") << " from "
                           << least << " to " << most << " is accepted";
  }

  static LogicalResult checkNumbers(Operation *op) {
    return success(succeeded(checkNumber(op, dgpu::numWarpsAttrName, 1, 32, true)) &&
                   succeeded(checkNumber(op, dgpu::threadsPerWarpAttrName, 32, 64, true)) &&
                   succeeded(checkNumber(op, dgpu::numStagesAttrName, 1, 64, false)) &&
                   succeeded(checkNumber(op, dgpu::sharedBytesAttrName, 0, mostSharedBytes, false)) &&
                   succeeded(checkNumber(op, dgpu::offsetBytesAttrName, 0, mostSharedBytes, false)));
  }

  static LogicalResult checkPlace(Operation *op) {
    const bool isOurs = isa_and_nonnull<tile::TileDialect, dist::DistDialect, dgpu::DgpuDialect>(op->getDialect());
    if (!isOurs || op->getParentOfType<FunctionOpInterface>())
      return success();
    return op->emitError() << "stands outside of every function";
  }
};

} // namespace

std::unique_ptr<mlir::Pass> createVerifyInput() { return std::make_unique<VerifyInput>(); }

} // namespace ditron
