//===- Uniformity.h - Which values differ between the threads of a block --------------------------------*- C++ -*-===//
//
// A kernel is written for a whole block, except that a few operations speak about one thread: dist.thread_id, lane_id,
// ld, the thread-level atomics, shuffles and ballots. What is computed from them is "varying"; all else is uniform:
// every thread of the block holds the same. A branch or loop whose condition varies is divergent: the operations in it
// are reached by some threads only, and what it yields varies, even when each branch yields something uniform.
//
//   %t = dist.thread_id 0                   varying
//   %c = arith.cmpi slt, %t, %n             varying
//   %r = scf.if %c -> i32 { yield %a } else { yield %b }     varying, because of %c
//   %s = tile.reduce(...)                   uniform: every thread gets the sum
//
// Results of block-level operations (loads of uniform addresses, scalar atomics, waits, reductions) are uniform by
// definition. A tensor counts as uniform when the block agrees on it, although its elements lie in different threads.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_ANALYSIS_UNIFORMITY_H
#define DITRON_ANALYSIS_UNIFORMITY_H

#include "mlir/IR/Value.h"
#include "mlir/IR/ValueRange.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir {
class Operation;
class Region;
namespace scf {
class ForOp;
class IfOp;
class WhileOp;
} // namespace scf
} // namespace mlir

namespace ditron::analysis {

/// Among whom values may differ.
enum class UniformityOf {
  Threads, ///< Of one block.
  Blocks,  ///< Of a grid: program ids, and whatever is read from memory. Thread numbers are the same in every block.
  /// Of a cluster of two: blocks whose first program ids divided by 2 are equal, and the others too. Memory as with Blocks.
  Clusters,
};

/// The uniformity of all values in an operation with structured control flow. Suitable for getAnalysis.
class UniformityAnalysis {
public:
  explicit UniformityAnalysis(mlir::Operation *root, UniformityOf whom = UniformityOf::Threads);

  /// Whether threads of one block (or the blocks of a grid) may see different values.
  bool isVarying(mlir::Value value) const { return varying.contains(value); }

  /// The varying condition (or loop bound) that decides which threads reach `op`; null when all threads of the block
  /// do. With several, the outermost.
  mlir::Value divergentCondition(mlir::Operation *op) const;

  /// The varying condition (or loop bound) of a branch or loop itself, or null.
  mlir::Value ownCondition(mlir::Operation *op) const;
  /// All conditions that decide which threads reach `op`, outermost first.
  llvm::SmallVector<mlir::Value> divergentConditions(mlir::Operation *op) const;

  /// The thread-level operation from which a varying value came, for diagnostics; null for uniform values.
  mlir::Operation *sourceOf(mlir::Value value) const { return sources.lookup(value); }

private:
  void visit(mlir::Operation *op);
  void visitIf(mlir::scf::IfOp op);
  void visitFor(mlir::scf::ForOp op);
  void visitWhile(mlir::scf::WhileOp op);
  void visitRegion(mlir::Region &region);
  /// Marks a value that varies because of `cause` (or is a source itself when cause is null).
  void mark(mlir::Value value, mlir::Operation *source);
  void markAll(mlir::ValueRange values, mlir::Operation *source);
  /// `to` varies if `from` does.
  void flow(mlir::Value from, mlir::Value to);
  /// The first varying value, or null.
  mlir::Value firstVarying(mlir::ValueRange values) const;

  bool isSource(mlir::Operation *op) const;
  bool isBroadcast(mlir::Operation *op) const;

  UniformityOf whom;
  llvm::DenseSet<mlir::Value> varying;
  llvm::DenseMap<mlir::Value, mlir::Operation *> sources;
  bool changed = false;
};

} // namespace ditron::analysis

#endif // DITRON_ANALYSIS_UNIFORMITY_H
