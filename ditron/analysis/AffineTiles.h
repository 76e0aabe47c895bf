//===- AffineTiles.h - Tiles of integers and pointers as sums over their indices -----------------------------*- C++ -*-===//
//
// What `base + (start + arange)[:, None] * stride + arange[None, :]` says, with names kept: the element (i, j) is
//
//   base + offset + i * coefficients[0] + j * coefficients[1] + t * perTurn        in elements behind the pointer
//
// where offset, the coefficients and perTurn are polynomials in scalars of the kernel (arguments, program ids, what is loaded ...), and t counts the turns
// of one loop. Values that the loop carries and moves on by the same amount in each turn are understood, so a pointer that is moved by `32 * stride` has the
// perTurn 32 stride. Two polynomials that are written differently compare equal when multiplying out makes them equal.
//
// As everywhere in the language, index arithmetic does not overflow: widths of integers are not looked at.
//
//===--------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_ANALYSIS_AFFINETILES_H
#define DITRON_ANALYSIS_AFFINETILES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace ditron::analysis {

/// A sum of products of scalars with integer factors.
class Polynomial {
public:
  /// The factors of a term, in a fixed order; none: the constant.
  using Product = std::vector<mlir::Value>;
  struct Order {
    bool operator()(const Product &a, const Product &b) const;
  };

  Polynomial() = default;
  explicit Polynomial(int64_t constant) { add({}, constant); }
  explicit Polynomial(mlir::Value scalar) { add({scalar}, 1); }

  Polynomial operator+(const Polynomial &other) const;
  Polynomial operator-(const Polynomial &other) const;
  Polynomial operator*(const Polynomial &other) const;
  bool operator==(const Polynomial &other) const { return terms == other.terms; }

  bool isZero() const { return terms.empty(); }
  /// The value if no scalar is in it.
  std::optional<int64_t> constant() const;
  /// The one scalar that it is, once; null if it is anything else.
  mlir::Value scalar() const;
  /// None is zero. The order is that of addresses in the compiler: do not let output depend on it.
  const std::map<Product, int64_t, Order> &products() const { return terms; }

private:
  void add(Product product, int64_t factor);

  std::map<Product, int64_t, Order> terms;
};

/// Of a tile: i + t * perTurn < room, i its index in this dimension.
struct IndexLimit {
  unsigned dimension = 0;
  Polynomial room, perTurn;
  bool operator==(const IndexLimit &) const = default;
};

/// See the head of this file.
struct AffineTile {
  mlir::Value base; ///< A scalar pointer that nothing is added to; null of integers.
  Polynomial offset;
  llvm::SmallVector<Polynomial> coefficients; ///< One for each dimension, of an extent of 1 zero; none of scalars.
  Polynomial perTurn;
  /// Indices beyond these have other values, as of (first + arange) % bound. Only where they were asked for, and nothing in front of 0 is told apart:
  /// first must be seen not to be negative.
  llvm::SmallVector<IndexLimit> limits;

  bool isUniform() const; ///< No index changes it.
};

/// Answers for values of one kernel as seen from the turns of a loop, or without a loop from outside of all.
class AffineTiles {
public:
  /// `mayWrap`: also tiles that are such sums only as far as limits allow.
  explicit AffineTiles(mlir::scf::ForOp loop = {}, bool mayWrap = false) : loop(loop), mayWrap(mayWrap) {}

  /// What an integer or pointer, scalar or tensor, holds; nothing if it is no such sum. Scalars from outside of the loop, and such as
  /// the loop does not change, stand for themselves where they are not sums or products.
  std::optional<AffineTile> of(mlir::Value value);

  /// The limits that are all that a tile of truth values says; nothing if it says something else.
  std::optional<llvm::SmallVector<IndexLimit>> limitsOf(mlir::Value mask);

private:
  std::optional<IndexLimit> limitOf(mlir::arith::CmpIOp comparison);
  std::optional<AffineTile> wrapped(mlir::Operation *op);
  std::optional<AffineTile> derive(mlir::Value value);
  std::optional<AffineTile> ofArgument(mlir::BlockArgument argument);
  std::optional<AffineTile> symbol(mlir::Value scalar);

  mlir::scf::ForOp loop;
  bool mayWrap;
  llvm::DenseMap<mlir::Value, std::optional<AffineTile>> known;
};

} // namespace ditron::analysis

#endif // DITRON_ANALYSIS_AFFINETILES_H
