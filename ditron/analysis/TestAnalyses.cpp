//===- TestAnalyses.cpp - Passes that print what the analyses find --------------------------------------*- C++ -*-===//
//
// Remarks at operations and loop arguments, for tests with --verify-diagnostics.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/analysis/AxisInfo.h"
#include "ditron/analysis/Passes.h"
#include "ditron/analysis/Uniformity.h"

#include "ditron/dialect/tile/Tile.h"

#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
namespace tile = ditron::tile;

namespace ditron::analysis {
#define GEN_PASS_DEF_TESTAXISINFO
#define GEN_PASS_DEF_TESTUNIFORMITY
#include "ditron/analysis/AnalysisPasses.h.inc"
} // namespace ditron::analysis

static std::string describe(const ditron::analysis::AxisInfo &info) {
  std::string text;
  llvm::raw_string_ostream os(text);
  info.print(os);
  return text;
}

/// "result 1: " when an operation has several results or loop arguments beside them.
static std::string resultPrefix(Operation *op, unsigned index) {
  if (op->getNumResults() == 1 && !isa<LoopLikeOpInterface>(op))
    return "";
  return "result " + std::to_string(index) + ": ";
}

/// "widths = [1, 8]": what each dimension allows.
static std::string widths(StringRef name, Value value, llvm::function_ref<unsigned(Value, int)> width) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << name << " = [";
  int rank = static_cast<int>(tile::shapeOf(value.getType()).size());
  llvm::interleaveComma(llvm::seq(rank), os, [&](int dim) { os << width(value, dim); });
  os << "]";
  return text;
}

namespace {
struct TestAxisInfoPass : public ditron::analysis::impl::TestAxisInfoBase<TestAxisInfoPass> {
  void runOnOperation() override {
    const auto &axes = getAnalysis<ditron::analysis::AxisInfoAnalysis>();
    auto interesting = [](Value value) {
      Type element = tile::elementTypeOf(value.getType());
      return isa<IntegerType, IndexType, tile::PointerType>(element);
    };
    getOperation().getBody().walk([&](Operation *op) {
      for (OpResult result : op->getResults())
        if (interesting(result))
          op->emitRemark(resultPrefix(op, result.getResultNumber()) + describe(axes.getAxisInfo(result)));
      if (auto loop = dyn_cast<LoopLikeOpInterface>(op))
        for (auto [index, argument] : llvm::enumerate(loop->getRegion(0).getArguments()))
          if (interesting(argument))
            op->emitRemark() << "argument " << index << ": " << describe(axes.getAxisInfo(argument));
      if (auto load = dyn_cast<tile::LoadOp>(op)) {
        op->emitRemark(widths("pointer widths", load.getPtr(),
                              [&](Value value, int dim) { return axes.contiguousElements(value, dim); }));
        if (load.getMask())
          op->emitRemark(widths("mask widths", load.getMask(),
                                [&](Value value, int dim) { return axes.maskAlignment(value, dim); }));
      }
    });
  }
};

struct TestUniformityPass : public ditron::analysis::impl::TestUniformityBase<TestUniformityPass> {
  void runOnOperation() override {
    const auto &uniformity = getAnalysis<ditron::analysis::UniformityAnalysis>();
    getOperation().getBody().walk([&](Operation *op) {
      for (OpResult result : op->getResults())
        op->emitRemark(resultPrefix(op, result.getResultNumber()) +
                       (uniformity.isVarying(result) ? "varying" : "uniform"));
      if (uniformity.divergentCondition(op) && op->hasAttr("test.reached"))
        op->emitRemark("reached by some threads");
    });
  }
};
} // namespace
