//===- ProgramOrder.cpp - What may run before what ------------------------------------------------------------------------===//
//
// See ProgramOrder.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/ProgramOrder.h"

#include "mlir/IR/Block.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;

namespace ditron::transforms {

bool mayPrecede(Operation *earlier, Operation *later) {
  for (Operation *around = earlier->getParentOp(); around; around = around->getParentOp())
    if (isa<LoopLikeOpInterface>(around) && around->isProperAncestor(later))
      return true;
  for (Operation *op = earlier; op->getBlock(); op = op->getParentOp())
    if (Operation *other = op->getBlock()->findAncestorOpInBlock(*later))
      return op != other && op->isBeforeInBlock(other); // the same one: other regions of one branch
  return false;
}

} // namespace ditron::transforms
