//===- AxisTransfer.cpp - How operations carry axis information -----------------------------------------*- C++ -*-===//
//
// One function per family of operations. Every number is a power of two, so gcd is min throughout. Notation in the
// comments: c, d, k are contiguity, divisibility and constancy along the dimension in question, l and r the operands.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/analysis/AxisTransfer.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>
#include <limits>

using namespace mlir;
using namespace ditron::analysis;
namespace tile = ditron::tile;
namespace dist = ditron::dist;
namespace dgpu = ditron::dgpu;

using Operands = ArrayRef<AxisInfo>;

//===--------------------------------------------------------------------------------------------------------------===//
// Building blocks
//===--------------------------------------------------------------------------------------------------------------===//

static SmallVector<int64_t> dimensionsOf(Type type) {
  SmallVector<int64_t> shape(tile::shapeOf(type));
  if (shape.empty())
    shape.push_back(1);
  return shape;
}

/// Divisibility that every element has, whatever the runs are: the best of what the dimensions say.
static int64_t elementDivisibility(const AxisInfo &info) {
  int64_t best = 1;
  for (int dim = 0; dim < info.rank(); ++dim)
    best = std::max(best, info.divisibilityAt(dim, 1));
  return best;
}

/// The same value in every element.
static AxisInfo uniform(Type type, int64_t divisibility, std::optional<int64_t> constant, bool nonNegative) {
  AxisInfo info = AxisInfo::unknown(type);
  info.constancy.assign(dimensionsOf(type));
  info.divisibility.assign(info.rank(), divisibility);
  info.constant = constant;
  info.nonNegative = nonNegative;
  return info;
}

static AxisInfo constantInfo(Type type, int64_t value) {
  return uniform(type, powerOfTwoDivisor(value), value, value >= 0);
}

/// The constancy of an elementwise function of its operands: equal operands give equal results. Scalars fit any run.
static int64_t commonConstancy(Operands operands, int dim) {
  int64_t constancy = std::numeric_limits<int64_t>::max();
  for (const AxisInfo &operand : operands)
    constancy = std::min(constancy, operand.constancy[dim]);
  return constancy;
}

/// Any elementwise operation of which nothing else is known.
static AxisInfo elementwise(Type type, Operands operands) {
  AxisInfo info = AxisInfo::unknown(type);
  for (int dim = 0; dim < info.rank(); ++dim)
    info.constancy[dim] = commonConstancy(operands, dim);
  info.nonNegative = false;
  return info;
}

/// The largest aligned run within a contiguous run of `info` whose starts are multiples of its length: what a division,
/// remainder or comparison against multiples of it treats alike.
static int64_t alignedRun(const AxisInfo &info, int dim) {
  return std::min(info.contiguity[dim], info.divisibility[dim]);
}

//===--------------------------------------------------------------------------------------------------------------===//
// Arithmetic
//===--------------------------------------------------------------------------------------------------------------===//

/// l + r and l - r, and pointer + offset where the right side counts units of several bytes. A contiguous side plus a
/// constant one is contiguous: c = max(min(cl, kr), min(kl, cr)); a constant minus a contiguous one runs downwards and
/// is not.
static AxisInfo transferSum(Type type, Operands operands, bool subtract, int64_t unitBytes) {
  const AxisInfo &lhs = operands[0], &rhs = operands[1];
  AxisInfo info = elementwise(type, operands);
  for (int dim = 0; dim < info.rank(); ++dim) {
    int64_t run = std::min(lhs.contiguity[dim], rhs.constancy[dim]);
    if (!subtract)
      run = std::max(run, std::min(lhs.constancy[dim], rhs.contiguity[dim]));
    info.contiguity[dim] = run;
    int64_t offset = std::min(rhs.divisibilityAt(dim, run) * powerOfTwoDivisor(unitBytes), AxisInfo::maxDivisibility);
    info.divisibility[dim] = std::min(lhs.divisibilityAt(dim, run, unitBytes), offset);
  }
  info.nonNegative = !subtract && lhs.nonNegative && rhs.nonNegative;
  return info;
}

/// l * r: runs end, divisors multiply.
static AxisInfo transferProduct(Type type, Operands operands) {
  if (operands[0].constant == 1)
    return operands[1];
  if (operands[1].constant == 1)
    return operands[0];
  AxisInfo info = elementwise(type, operands);
  for (int dim = 0; dim < info.rank(); ++dim) {
    int64_t left = operands[0].divisibilityAt(dim, 1), right = operands[1].divisibilityAt(dim, 1);
    info.divisibility[dim] = left > AxisInfo::maxDivisibility / right ? AxisInfo::maxDivisibility : left * right;
  }
  info.nonNegative = operands[0].nonNegative && operands[1].nonNegative;
  return info;
}

/// l / divisor, for a constant divisor or any other. Within an aligned run of g elements, g | divisor, all quotients
/// are equal: g = min(c, d, 2-part of the divisor). Rounding towards zero breaks this below zero, where -8 / 8 = -1 but
/// -7 / 8 = 0.
static AxisInfo transferQuotient(Type type, Operands operands, bool roundsToZero) {
  const AxisInfo &lhs = operands[0], &rhs = operands[1];
  if (rhs.constant == 1)
    return lhs;
  AxisInfo info = elementwise(type, operands);
  // Divisors are sizes, also where a subtraction made them: the rows of the last group of a matrix, min(rows - first, group).
  info.nonNegative = lhs.nonNegative && (rhs.nonNegative || !rhs.constant);
  if (roundsToZero && !lhs.nonNegative)
    return info;
  for (int dim = 0; dim < info.rank(); ++dim) {
    int64_t run = std::min({alignedRun(lhs, dim), rhs.divisibilityAt(dim, 1), rhs.constancy[dim]});
    info.constancy[dim] = std::max(info.constancy[dim], run);
    if (rhs.constant && *rhs.constant > 0 && powerOfTwoDivisor(*rhs.constant) == *rhs.constant) {
      // Every element equals (start of its run) / divisor.
      int64_t starts = lhs.divisibilityAt(dim, run);
      info.divisibility[dim] = std::max<int64_t>(starts / *rhs.constant, 1);
    }
  }
  return info;
}

/// l % r keeps runs that lie in one period: g = min(c, d, dr, kr). Beyond that a run may wrap around.
static AxisInfo transferRemainder(Type type, Operands operands, bool roundsToZero) {
  const AxisInfo &lhs = operands[0], &rhs = operands[1];
  AxisInfo info = elementwise(type, operands);
  for (int dim = 0; dim < info.rank(); ++dim) {
    int64_t modulus = rhs.divisibilityAt(dim, 1);
    if (!roundsToZero || lhs.nonNegative)
      info.contiguity[dim] = std::min({alignedRun(lhs, dim), modulus, rhs.constancy[dim]});
    info.divisibility[dim] = std::min(lhs.divisibilityAt(dim, info.contiguity[dim]), modulus);
  }
  info.nonNegative = lhs.nonNegative;
  return info;
}

/// l & r. Two masks have a meaning for indices: 2^n - 1 is a remainder and -2^n rounds down. Otherwise low zero bits of
/// either side stay.
static AxisInfo transferAnd(Type type, Operands operands) {
  for (auto [value, mask] : {std::pair(0, 1), std::pair(1, 0)}) {
    if (!operands[mask].constant || tile::elementTypeOf(type).isInteger(1))
      continue;
    int64_t bits = *operands[mask].constant;
    if (bits > 0 && powerOfTwoDivisor(bits + 1) == bits + 1)
      return transferRemainder(type, {operands[value], constantInfo(type, bits + 1)}, /*roundsToZero=*/false);
    if (bits < 0 && powerOfTwoDivisor(bits) == -bits) {
      AxisInfo info = elementwise(type, operands);
      for (int dim = 0; dim < info.rank(); ++dim) {
        info.constancy[dim] = std::max(info.constancy[dim], std::min(alignedRun(operands[value], dim), -bits));
        info.divisibility[dim] = std::max(-bits, operands[value].divisibilityAt(dim, 1));
      }
      info.nonNegative = operands[value].nonNegative;
      return info;
    }
  }
  AxisInfo info = elementwise(type, operands);
  for (int dim = 0; dim < info.rank(); ++dim)
    info.divisibility[dim] = std::max(operands[0].divisibilityAt(dim, 1), operands[1].divisibilityAt(dim, 1));
  info.nonNegative = operands[0].nonNegative || operands[1].nonNegative;
  return info;
}

/// A function that keeps common low zero bits: or, xor, minimum, maximum.
static AxisInfo transferBitwise(Type type, Operands operands) {
  AxisInfo info = elementwise(type, operands);
  for (int dim = 0; dim < info.rank(); ++dim)
    info.divisibility[dim] = std::min(operands[0].divisibilityAt(dim, 1), operands[1].divisibilityAt(dim, 1));
  info.nonNegative = operands[0].nonNegative && operands[1].nonNegative;
  return info;
}

/// Shifts by a constant multiply by, or divide by (rounding down), a power of two.
static AxisInfo transferShift(Type type, Operands operands, bool left) {
  std::optional<int64_t> amount = operands[1].constant;
  if (!amount || *amount < 0 || *amount > 40)
    return elementwise(type, operands);
  AxisInfo factor = constantInfo(type, int64_t(1) << *amount);
  if (left)
    return transferProduct(type, {operands[0], factor});
  return transferQuotient(type, {operands[0], factor}, /*roundsToZero=*/false);
}

//===--------------------------------------------------------------------------------------------------------------===//
// Comparison, selection, casts
//===--------------------------------------------------------------------------------------------------------------===//

/// x < b and x >= b are equal over an aligned run of g elements when b is a multiple of g: g = min(c, d, db, kb). x <=
/// b is x < b + 1, of which something is known only for constants. A contiguous right side is the mirror image.
static AxisInfo transferCompare(arith::CmpIOp op, Operands operands) {
  using P = arith::CmpIPredicate;
  AxisInfo info = elementwise(op.getType(), operands);
  info.nonNegative = true;
  auto refine = [&](const AxisInfo &x, const AxisInfo &bound, bool strictOnRight) {
    for (int dim = 0; dim < info.rank(); ++dim) {
      int64_t multiple = strictOnRight    ? bound.divisibilityAt(dim, 1)
                         : bound.constant ? powerOfTwoDivisor(*bound.constant + 1)
                                          : 1;
      info.constancy[dim] =
          std::max(info.constancy[dim], std::min({alignedRun(x, dim), multiple, bound.constancy[dim]}));
    }
  };
  const AxisInfo &lhs = operands[0], &rhs = operands[1];
  switch (op.getPredicate()) {
  case P::slt:
  case P::ult:
  case P::sge:
  case P::uge: // l < r: with l running, r is the strict bound; with r running, r > l is r >= l + 1
    refine(lhs, rhs, true);
    refine(rhs, lhs, false);
    break;
  case P::sle:
  case P::ule:
  case P::sgt:
  case P::ugt:
    refine(lhs, rhs, false);
    refine(rhs, lhs, true);
    break;
  case P::eq:
  case P::ne: break;
  }
  return info;
}

/// select(condition, a, b): runs in which the condition does not change and both sides run.
static AxisInfo transferSelect(Type type, Operands operands, bool scalarCondition, int64_t unitBytes) {
  const AxisInfo &condition = operands[0], &yes = operands[1], &no = operands[2];
  if (condition.constant)
    return *condition.constant ? yes : no;
  AxisInfo info = AxisInfo::unknown(type);
  for (int dim = 0; dim < info.rank(); ++dim) {
    int64_t same = scalarCondition ? std::numeric_limits<int64_t>::max() : condition.constancy[dim];
    info.contiguity[dim] = std::min({same, yes.contiguity[dim], no.contiguity[dim]});
    info.constancy[dim] = std::min({same, yes.constancy[dim], no.constancy[dim]});
    info.divisibility[dim] = std::min(yes.divisibilityAt(dim, info.contiguity[dim], unitBytes),
                                      no.divisibilityAt(dim, info.contiguity[dim], unitBytes));
  }
  if (yes.constant == no.constant)
    info.constant = yes.constant;
  info.nonNegative = yes.nonNegative && no.nonNegative;
  return info;
}

/// Zero extension and truncation wrap where a run crosses zero or the modulus; aligned runs do not cross either.
static AxisInfo transferWrap(const AxisInfo &source, bool truncates) {
  if (!truncates && source.nonNegative)
    return source;
  AxisInfo info = source;
  for (int dim = 0; dim < info.rank(); ++dim) {
    info.contiguity[dim] = alignedRun(source, dim);
    info.divisibility[dim] = source.divisibilityAt(dim, info.contiguity[dim]);
  }
  if (truncates || (info.constant && *info.constant < 0))
    info.constant.reset();
  info.nonNegative = truncates ? source.nonNegative : true;
  return info;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Tensors
//===--------------------------------------------------------------------------------------------------------------===//

static AxisInfo transferExpandDims(const AxisInfo &source, int axis) {
  AxisInfo info = source;
  int64_t divisibility = elementDivisibility(source);
  info.contiguity.insert(info.contiguity.begin() + axis, 1);
  info.divisibility.insert(info.divisibility.begin() + axis, divisibility);
  info.constancy.insert(info.constancy.begin() + axis, 1);
  return info;
}

static AxisInfo transferBroadcast(Type type, const AxisInfo &source, Type sourceType) {
  AxisInfo info = source;
  for (auto [dim, sizes] : llvm::enumerate(llvm::zip_equal(tile::shapeOf(sourceType), tile::shapeOf(type))))
    if (std::get<0>(sizes) != std::get<1>(sizes))
      info.constancy[dim] = std::get<1>(sizes);
  return info;
}

/// Dimensions of size 1 that come or go change nothing. In general only the last dimension keeps its runs, up to its
/// new size.
static AxisInfo transferReshape(Type type, const AxisInfo &source, Type sourceType, int64_t unitBytes) {
  SmallVector<int64_t> from = dimensionsOf(sourceType), to = dimensionsOf(type);
  auto nonUnit = [](ArrayRef<int64_t> shape) {
    SmallVector<int> dims;
    for (auto [dim, size] : llvm::enumerate(shape))
      if (size != 1)
        dims.push_back(dim);
    return dims;
  };
  SmallVector<int> fromDims = nonUnit(from), toDims = nonUnit(to);
  bool sameSizes = fromDims.size() == toDims.size() && llvm::all_of(llvm::zip(fromDims, toDims), [&](auto pair) {
                     return from[std::get<0>(pair)] == to[std::get<1>(pair)];
                   });
  AxisInfo info = AxisInfo::unknown(type);
  info.divisibility.assign(info.rank(), elementDivisibility(source));
  info.constant = source.constant;
  info.nonNegative = source.nonNegative;
  if (source.constant || llvm::equal(source.constancy, from))
    info.constancy.assign(to);
  auto copy = [&](int fromDim, int toDim) {
    int64_t size = to[toDim];
    info.contiguity[toDim] = std::min(source.contiguity[fromDim], size);
    info.constancy[toDim] = std::max(info.constancy[toDim], std::min(source.constancy[fromDim], size));
    info.divisibility[toDim] = source.divisibilityAt(fromDim, info.contiguity[toDim], unitBytes);
  };
  if (sameSizes) {
    for (auto [fromDim, toDim] : llvm::zip_equal(fromDims, toDims))
      copy(fromDim, toDim);
  } else if (from.back() != 1 && to.back() != 1) {
    copy(static_cast<int>(from.size()) - 1, static_cast<int>(to.size()) - 1);
  }
  return info;
}

static AxisInfo transferTrans(const AxisInfo &source, ArrayRef<int32_t> order) {
  AxisInfo info = source;
  for (auto [dim, from] : llvm::enumerate(order)) {
    info.contiguity[dim] = source.contiguity[from];
    info.divisibility[dim] = source.divisibility[from];
    info.constancy[dim] = source.constancy[from];
  }
  return info;
}

/// Bytes by which consecutive values differ: those of a pointee for pointers, else one.
static int64_t unitBytesOf(Type type) {
  auto pointer = dyn_cast<tile::PointerType>(tile::elementTypeOf(type));
  return pointer ? pointer.getElementBytes() : 1;
}

/// The same bits counted in other units: runs stay only if the unit does.
static AxisInfo transferReinterpret(Type type, const AxisInfo &source, Type sourceType) {
  int64_t unit = unitBytesOf(sourceType);
  AxisInfo info = source;
  if (unit == unitBytesOf(type))
    return info;
  for (int dim = 0; dim < info.rank(); ++dim) {
    info.divisibility[dim] = source.divisibilityAt(dim, 1, unit);
    info.contiguity[dim] = 1;
  }
  return info;
}

/// Promises only add to what is known.
static AxisInfo transferHint(tile::HintOp op, const AxisInfo &source) {
  AxisInfo info = source;
  auto raise = [&](SmallVectorImpl<int64_t> &facts, std::optional<ArrayRef<int64_t>> promised, bool withinShape) {
    if (!promised)
      return;
    SmallVector<int64_t> sizes = dimensionsOf(op.getType());
    for (auto [dim, value] : llvm::enumerate(*promised)) {
      int64_t fact = powerOfTwoDivisor(value);
      facts[dim] = std::max(facts[dim], withinShape ? std::min(fact, sizes[dim]) : fact);
    }
  };
  raise(info.contiguity, op.getContiguity(), true);
  raise(info.constancy, op.getConstancy(), true);
  raise(info.divisibility, op.getDivisibility(), false);
  return info;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Dispatch
//===--------------------------------------------------------------------------------------------------------------===//

/// A constant operation's value as one number: an integer, or a tensor of equal ones. i1 counts as 0 and 1.
static std::optional<int64_t> integerConstant(Operation *op) {
  APInt value;
  if (!matchPattern(op, m_ConstantInt(&value)) || value.getBitWidth() > 64)
    return std::nullopt;
  return value.getBitWidth() == 1 ? static_cast<int64_t>(value.getZExtValue()) : value.getSExtValue();
}

/// The result of integer operations on constants that canonicalisation has not folded (loop bounds, hints).
static std::optional<int64_t> foldConstants(Operation *op, Operands operands) {
  if (operands.size() != 2 || !operands[0].constant || !operands[1].constant)
    return std::nullopt;
  int64_t lhs = *operands[0].constant, rhs = *operands[1].constant, result = 0;
  bool overflow = TypeSwitch<Operation *, bool>(op)
                      .Case<arith::AddIOp>([&](auto) { return __builtin_add_overflow(lhs, rhs, &result); })
                      .Case<arith::SubIOp>([&](auto) { return __builtin_sub_overflow(lhs, rhs, &result); })
                      .Case<arith::MulIOp>([&](auto) { return __builtin_mul_overflow(lhs, rhs, &result); })
                      .Default([](Operation *) { return true; });
  unsigned width = tile::elementTypeOf(op->getResult(0).getType()).getIntOrFloatBitWidth();
  if (overflow || width < 8 || !llvm::isIntN(width, result))
    return std::nullopt;
  return result;
}

AxisInfo ditron::analysis::transferAxisInfo(Operation *op, unsigned index, Operands operands) {
  Type type = op->getResult(index).getType();
  if (!isa<RankedTensorType>(type) && !type.isIntOrIndexOrFloat() && !isa<tile::PointerType>(type))
    return AxisInfo::unknown(type);
  if (std::optional<int64_t> value = integerConstant(op))
    return constantInfo(type, *value);
  if (isa<IntegerType>(tile::elementTypeOf(type)))
    if (std::optional<int64_t> value = foldConstants(op, operands))
      return constantInfo(type, *value);
  int64_t unit = unitBytesOf(type);

  return TypeSwitch<Operation *, AxisInfo>(op)
      .Case<tile::ArangeOp>([&](tile::ArangeOp range) {
        AxisInfo info = AxisInfo::unknown(type);
        int32_t start = static_cast<int32_t>(range.getStart());
        info.contiguity[0] = range.getType().getDimSize(0);
        info.divisibility[0] = powerOfTwoDivisor(start);
        info.nonNegative = start >= 0;
        return info;
      })
      .Case<tile::SplatOp>([&](auto) {
        return uniform(type, elementDivisibility(operands[0]), operands[0].constant, operands[0].nonNegative);
      })
      .Case<tile::UnsplatOp>([&](auto) {
        return uniform(type, elementDivisibility(operands[0]), operands[0].constant, operands[0].nonNegative);
      })
      .Case<tile::ExpandDimsOp>([&](auto expand) { return transferExpandDims(operands[0], expand.getAxis()); })
      .Case<tile::BroadcastOp>(
          [&](auto broadcast) { return transferBroadcast(type, operands[0], broadcast.getSource().getType()); })
      .Case<tile::ReshapeOp>(
          [&](auto reshape) { return transferReshape(type, operands[0], reshape.getSource().getType(), unit); })
      .Case<tile::TransOp>([&](auto trans) { return transferTrans(operands[0], trans.getOrder()); })
      .Case<dgpu::ConvertLayoutOp, dist::ConsumeTokenOp>([&](auto) { return operands[0]; })
      .Case<tile::HintOp>([&](tile::HintOp hint) { return transferHint(hint, operands[0]); })
      .Case<tile::AddPtrOp>([&](auto) { return transferSum(type, operands, /*subtract=*/false, unit); })
      .Case<tile::PtrCastOp, tile::PtrToIntOp, tile::IntToPtrOp>(
          [&](auto cast) { return transferReinterpret(type, operands[0], cast.getSource().getType()); })
      .Case<dist::SymmAtOp>([&](auto) {
        // Symmetric heaps begin at multiples of 256 bytes on every rank (transforms/Passes.h).
        return uniform(type, std::min<int64_t>(operands[0].divisibility[0], 256), std::nullopt, true);
      })
      .Case<dist::SharedAllocOp>([&](dist::SharedAllocOp own) {
        return uniform(type, static_cast<int64_t>(own.getAlignment()), std::nullopt, true);
      })
      .Case<arith::AddIOp>([&](auto) { return transferSum(type, operands, /*subtract=*/false, 1); })
      .Case<arith::SubIOp>([&](auto) { return transferSum(type, operands, /*subtract=*/true, 1); })
      .Case<arith::MulIOp>([&](auto) { return transferProduct(type, operands); })
      .Case<arith::DivSIOp>([&](auto) { return transferQuotient(type, operands, /*roundsToZero=*/true); })
      .Case<arith::DivUIOp, arith::FloorDivSIOp>(
          [&](auto) { return transferQuotient(type, operands, /*roundsToZero=*/false); })
      .Case<arith::RemSIOp>([&](auto) { return transferRemainder(type, operands, /*roundsToZero=*/true); })
      .Case<arith::RemUIOp>([&](auto) { return transferRemainder(type, operands, /*roundsToZero=*/false); })
      .Case<arith::AndIOp>([&](auto) { return transferAnd(type, operands); })
      .Case<arith::OrIOp, arith::XOrIOp, arith::MinSIOp, arith::MinUIOp, arith::MaxUIOp>(
          [&](auto) { return transferBitwise(type, operands); })
      .Case<arith::MaxSIOp>([&](auto) {
        AxisInfo info = transferBitwise(type, operands);
        info.nonNegative = operands[0].nonNegative || operands[1].nonNegative;
        return info;
      })
      .Case<arith::ShLIOp>([&](auto) { return transferShift(type, operands, /*left=*/true); })
      .Case<arith::ShRSIOp, arith::ShRUIOp>([&](auto) { return transferShift(type, operands, /*left=*/false); })
      .Case<arith::CmpIOp>([&](arith::CmpIOp compare) { return transferCompare(compare, operands); })
      .Case<arith::SelectOp>([&](arith::SelectOp select) {
        bool scalar = !isa<RankedTensorType>(select.getCondition().getType());
        return transferSelect(type, operands, scalar, unit);
      })
      .Case<arith::ExtSIOp, arith::IndexCastOp>([&](auto) { return operands[0]; })
      .Case<arith::ExtUIOp, arith::IndexCastUIOp>([&](auto) { return transferWrap(operands[0], /*truncates=*/false); })
      .Case<arith::TruncIOp>([&](auto) { return transferWrap(operands[0], /*truncates=*/true); })
      .Default([&](Operation *other) {
        DenseElementsAttr constant; // of floating-point numbers
        if (matchPattern(other, m_Constant(&constant)) && constant.isSplat())
          return uniform(type, 1, std::nullopt, false);
        bool sameRank = llvm::all_of(
            operands, [&](const AxisInfo &operand) { return operand.rank() == AxisInfo::unknown(type).rank(); });
        if (OpTrait::hasElementwiseMappableTraits(other) && !operands.empty() && sameRank)
          return elementwise(type, operands);
        return AxisInfo::unknown(type);
      });
}

AxisInfo ditron::analysis::inductionAxisInfo(const AxisInfo &lower, const AxisInfo &step) {
  AxisInfo info = lower;
  info.constant.reset();
  info.divisibility[0] = std::min(lower.divisibility[0], step.divisibility[0]);
  info.nonNegative = lower.nonNegative && step.nonNegative;
  return info;
}
