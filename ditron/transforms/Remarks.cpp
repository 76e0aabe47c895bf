//===- Remarks.cpp - Performance facts as diagnostics ---------------------------------------------------------------------===//
//
// See Remarks.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Remarks.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace ditron::transforms {

namespace {
class DiagnosticStreamer : public remark::detail::MLIRRemarkStreamerBase {
public:
  void streamOptimizationRemark(const remark::detail::Remark &fact) override {
    std::string text;
    for (const remark::detail::Remark::Arg &part : fact.getArgs())
      text += part.val;
    emitRemark(fact.getLocation()) << fact.getCategoryName() << ": " << text;
  }
};
} // namespace

void enableRemarks(MLIRContext &context) {
  remark::RemarkCategories everything;
  everything.passed = everything.missed = everything.analysis = everything.failed = ".*";
  // Can only fail for streamers that write files.
  (void)remark::enableOptimizationRemarks(context, std::make_unique<DiagnosticStreamer>(),
                                          std::make_unique<remark::RemarkEmittingPolicyAll>(), everything);
}

} // namespace ditron::transforms
