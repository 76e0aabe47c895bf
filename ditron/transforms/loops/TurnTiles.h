//===- TurnTiles.h - Loops whose turns go along tiles that follow each other ------------------------------------*- C++ -*-===//
//
// Which tiles of a loop are pieces of longer ones, so that dgpu-widen-turns can take longer pieces in fewer turns.
//
// A tile follows the turns along dimension d, of extent B, if there is one long tile of which turn t has the rows t B .. t B + B - 1:
//
//   element (.., r, ..) of turn t = element (.., t B + r, ..) of the long tile, for all t and r
//
// For integers and pointers analysis/AffineTiles.h decides: that holds if what a turn adds is B times the coefficient of d. All else follows the turns
// if it is computed row by row from what does: loads, functions of elements, dots whose other operand is the same in all turns. A tile that changes
// neither along d nor from turn to turn follows them along d, too. The parts of a sum of indices need not: in `splat(at) + arange(32)`, where `at`
// moves by 32, neither does by itself.
//
// Example: with q_ptrs = q + (m + arange(32))[None, :] * s + arange(64)[:, None], which the loop moves by 32 * s, load(q_ptrs) follows the turns along
// dimension 1, and so does dot(k, load(q_ptrs), 0) if the loop does not change k. Moved by 16 * s, neither does.
//
// The sums that the loop carries contract over the turns: dot(a, b, sum) with `a` following along its columns and `b` along its rows.
//
//===--------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_TURNTILES_H
#define DITRON_TRANSFORMS_TURNTILES_H

#include "ditron/analysis/AffineTiles.h"
#include "ditron/dialect/tile/Tile.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

#include <string>

namespace ditron::transforms {

/// In place of a dimension: the value is needed as it is.
inline constexpr int asItIs = -1;

/// A value, and the dimension along which a longer one is needed, or asItIs.
using NeededTile = std::pair<mlir::Value, int>;

/// Along which dimension an operand must be longer for results that are longer along `dimension`. Operations that TurnTiles accepts only.
int dimensionOfOperand(mlir::OpOperand &operand, int dimension);

/// True for what a value of the loop's body is computed from alone, without effects, if nothing of it changes from turn to turn.
bool isInvariant(mlir::Value value, mlir::scf::ForOp loop);

/// See the head of this file.
class TurnTiles {
public:
  TurnTiles(mlir::scf::ForOp loop, int warps) : loop(loop), warps(warps), affine(loop) {}

  /// Why the loop's turns cannot be taken together, or nothing. Then all below is known.
  std::string find();

  /// The rows of a turn: the extent of tiles along the dimension in which turns follow each other.
  int64_t extent() const { return rows; }
  /// What the body's dots need of its values, those that they are computed from included, and also of values outside.
  llvm::ArrayRef<NeededTile> needed() const { return need.getArrayRef(); }
  /// The dot that adds to a carried value; null for one that moves on by a fixed amount.
  mlir::Operation *dotOf(unsigned carried) const { return sums[carried]; }
  /// What is added to the other carried values in each turn: an invariant scalar, or a tile that is the splat of one or of a number.
  mlir::Value amountOf(unsigned carried) const { return amounts[carried]; }
  /// Dots with results that follow the turns along their columns.
  llvm::ArrayRef<mlir::Operation *> columnDots() const { return dots; }

  std::optional<analysis::AffineTile> affineTile(mlir::Value value) { return affine.of(value); }

private:
  bool findCarried();
  bool findSum(unsigned carried);
  bool findAmount(unsigned carried);
  bool follows(mlir::Value value, int dimension);
  bool followsByOperands(mlir::Operation *op, int dimension);
  bool isComparisonOfPlaces(mlir::Operation *op, int dimension);
  /// True if the tile's rows go on from turn to turn.
  bool isContinued(const analysis::AffineTile &tile, int dimension) const;
  bool needWithOperands(mlir::Value value, int dimension);
  bool refuse(llvm::StringRef why);

  mlir::scf::ForOp loop;
  int warps;
  analysis::AffineTiles affine;
  int64_t rows = 0;
  std::string reason;
  llvm::SmallVector<mlir::Operation *> sums, dots;
  llvm::SmallVector<mlir::Value> amounts;
  llvm::SetVector<NeededTile> need;
  llvm::DenseSet<NeededTile> visited; ///< By follows: what is needed for others' indices need not follow by itself.
};

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_TURNTILES_H
