//===- Remarks.h - Performance facts as diagnostics ---------------------------------------------------------*- C++ -*-===//
//
// The passes report performance facts (what was pipelined and why not, which conversions stayed, how wide accesses are) through
// mlir::remark, which is silent until somebody listens. ditron-opt listens with --remarks-filter; the compiler with the
// function below.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_REMARKS_H
#define DITRON_TRANSFORMS_REMARKS_H

namespace mlir {
class MLIRContext;
}

namespace ditron::transforms {

/// From now on every remark of a pass is a diagnostic of severity Remark at its location: "pass: text".
void enableRemarks(mlir::MLIRContext &context);

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_REMARKS_H
