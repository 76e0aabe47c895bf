//===- AxisInfo.cpp - The data-flow analysis behind AxisInfo --------------------------------------------*- C++ -*-===//
//
// The lattice, entry states from argument attributes, and the solver. The rules per operation are in AxisTransfer.cpp.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/analysis/AxisInfo.h"

#include "ditron/analysis/AxisTransfer.h"
#include "ditron/dialect/tile/Tile.h"

#include "mlir/Analysis/DataFlow/SparseAnalysis.h"
#include "mlir/Analysis/DataFlow/Utils.h"
#include "mlir/Analysis/DataFlowFramework.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <algorithm>

using namespace mlir;
using namespace ditron::analysis;
namespace tile = ditron::tile;

//===--------------------------------------------------------------------------------------------------------------===//
// AxisInfo
//===--------------------------------------------------------------------------------------------------------------===//

int64_t ditron::analysis::powerOfTwoDivisor(int64_t value) {
  if (value == 0)
    return AxisInfo::maxDivisibility;
  return std::min(value & -value, AxisInfo::maxDivisibility);
}

AxisInfo AxisInfo::unknown(Type type) {
  size_t rank = std::max<size_t>(tile::shapeOf(type).size(), 1);
  AxisInfo info;
  info.contiguity.assign(rank, 1);
  info.divisibility.assign(rank, 1);
  info.constancy.assign(rank, 1);
  info.nonNegative = true;
  return info;
}

int64_t AxisInfo::divisibilityAt(int dim, int64_t run, int64_t unitBytes) const {
  if (run >= contiguity[dim])
    return divisibility[dim];
  return std::min(divisibility[dim], run * powerOfTwoDivisor(unitBytes));
}

AxisInfo AxisInfo::join(const AxisInfo &lhs, const AxisInfo &rhs) {
  if (!lhs.isInitialized())
    return rhs;
  if (!rhs.isInitialized())
    return lhs;
  AxisInfo result = lhs;
  for (int dim = 0; dim < lhs.rank(); ++dim) {
    // Runs of the shorter length. Where a longer run is cut, its inner starts are only multiples of that length; for
    // pointers this is too careful by the element size, which is not known here.
    result.contiguity[dim] = std::min(lhs.contiguity[dim], rhs.contiguity[dim]);
    result.divisibility[dim] =
        std::min(lhs.divisibilityAt(dim, result.contiguity[dim]), rhs.divisibilityAt(dim, result.contiguity[dim]));
    result.constancy[dim] = std::min(lhs.constancy[dim], rhs.constancy[dim]);
  }
  if (lhs.constant != rhs.constant)
    result.constant.reset();
  result.nonNegative = lhs.nonNegative && rhs.nonNegative;
  return result;
}

void AxisInfo::print(raw_ostream &os) const {
  if (!isInitialized()) {
    os << "unreachable";
    return;
  }
  auto list = [&](StringRef name, ArrayRef<int64_t> values) {
    os << name << " = [";
    llvm::interleaveComma(values, os);
    os << "]";
  };
  list("contiguity", contiguity);
  list(", divisibility", divisibility);
  list(", constancy", constancy);
  if (constant)
    os << ", constant = " << *constant;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Data flow
//===--------------------------------------------------------------------------------------------------------------===//

namespace {
class AxisLattice : public dataflow::Lattice<AxisInfo> {
public:
  using Lattice::Lattice;
};

class AxisDataFlow : public dataflow::SparseForwardDataFlowAnalysis<AxisLattice> {
public:
  using SparseForwardDataFlowAnalysis::SparseForwardDataFlowAnalysis;

  LogicalResult visitOperation(Operation *op, ArrayRef<const AxisLattice *> operands,
                               ArrayRef<AxisLattice *> results) override {
    SmallVector<AxisInfo> known;
    for (const AxisLattice *operand : operands) {
      if (!operand->getValue().isInitialized())
        return success(); // visited again when the operand is known
      known.push_back(operand->getValue());
    }
    for (auto [index, result] : llvm::enumerate(results))
      propagateIfChanged(result, result->join(transferAxisInfo(op, index, known)));
    return success();
  }

  /// Kernel arguments say what the caller promised; of everything else from outside nothing is known.
  void setToEntryState(AxisLattice *lattice) override {
    Value value = lattice->getAnchor();
    AxisInfo info = AxisInfo::unknown(value.getType());
    if (auto argument = dyn_cast<BlockArgument>(value))
      if (auto function = dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
          function && argument.getOwner()->isEntryBlock())
        if (auto promised = function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), "tile.divisibility"))
          info.divisibility.assign(info.rank(), powerOfTwoDivisor(promised.getInt()));
    propagateIfChanged(lattice, lattice->join(info));
  }

  /// Induction variables: block arguments that no predecessor passes.
  void visitNonControlFlowArguments(Operation *op, const RegionSuccessor &successor, ArrayRef<AxisLattice *> arguments,
                                    unsigned firstIndex) override {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!loop)
      return SparseForwardDataFlowAnalysis::visitNonControlFlowArguments(op, successor, arguments, firstIndex);
    ProgramPoint *point = getProgramPointBefore(loop.getBody());
    const AxisInfo &lower = getLatticeElementFor(point, loop.getLowerBound())->getValue();
    const AxisInfo &step = getLatticeElementFor(point, loop.getStep())->getValue();
    if (!lower.isInitialized() || !step.isInitialized())
      return;
    AxisLattice *variable = getLatticeElement(loop.getInductionVar());
    propagateIfChanged(variable, variable->join(inductionAxisInfo(lower, step)));
  }
};
} // namespace

AxisInfoAnalysis::AxisInfoAnalysis(Operation *root)
    : solver(std::make_unique<DataFlowSolver>(DataFlowConfig().setInterprocedural(false))) {
  dataflow::loadBaselineAnalyses(*solver);
  solver->load<AxisDataFlow>();
  // The analysis itself cannot fail; on a failure every value stays unknown.
  if (failed(solver->initializeAndRun(root)))
    solver = std::make_unique<DataFlowSolver>();
}

AxisInfoAnalysis::~AxisInfoAnalysis() = default;

AxisInfo AxisInfoAnalysis::getAxisInfo(Value value) const {
  const AxisLattice *lattice = solver->lookupState<AxisLattice>(value);
  if (!lattice || !lattice->getValue().isInitialized())
    return AxisInfo::unknown(value.getType());
  return lattice->getValue();
}

unsigned AxisInfoAnalysis::contiguousElements(Value pointers, int dim) const {
  auto pointer = dyn_cast<tile::PointerType>(tile::elementTypeOf(pointers.getType()));
  if (!pointer || !isa<RankedTensorType>(pointers.getType()))
    return 1;
  AxisInfo info = getAxisInfo(pointers);
  int64_t aligned = info.divisibility[dim] / pointer.getElementBytes();
  return static_cast<unsigned>(std::clamp<int64_t>(aligned, 1, info.contiguity[dim]));
}

unsigned AxisInfoAnalysis::maskAlignment(Value mask, int dim) const {
  return static_cast<unsigned>(getAxisInfo(mask).constancy[dim]);
}
