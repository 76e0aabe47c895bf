//===- TileVerifiers.cpp - What a well-formed tile operation is -----------------------------------------*- C++ -*-===//
//
// Every message names what was found and what is expected. Shapes and element types are checked here, and that operands
// which are accessed together have the same encoding; how encodings of shape operations relate is not the business of
// this dialect, which knows no layouts.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/tile/Tile.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace ditron::tile;

//===--------------------------------------------------------------------------------------------------------------===//
// Shared checks
//===--------------------------------------------------------------------------------------------------------------===//

static Attribute encodingOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getEncoding() : Attribute();
}

/// The two are both scalars, or tensors of one shape and encoding.
static LogicalResult verifySameShape(Operation *op, StringRef firstName, Type first, StringRef secondName,
                                     Type second) {
  if (isa<RankedTensorType>(first) != isa<RankedTensorType>(second) || shapeOf(first) != shapeOf(second))
    return op->emitOpError() << firstName << " and " << secondName << " must have the same shape, found " << first
                             << " and " << second;
  if (encodingOf(first) != encodingOf(second))
    return op->emitOpError() << firstName << " and " << secondName << " must have the same layout, found " << first
                             << " and " << second;
  return success();
}

static LogicalResult verifyElementType(Operation *op, StringRef what, Type found, Type expected) {
  if (elementTypeOf(found) == expected)
    return success();
  return op->emitOpError() << what << " has element type " << elementTypeOf(found) << ", expected " << expected;
}

static Type pointeeOf(Type pointerLike) { return cast<PointerType>(elementTypeOf(pointerLike)).getPointee(); }

static int64_t elementCount(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getNumElements() : 1;
}

static LogicalResult verifyAxis(Operation *op, int64_t axis, int64_t rank) {
  if (axis < rank)
    return success();
  return op->emitOpError() << "axis " << axis << " is out of range for rank " << rank;
}

LogicalResult ditron::tile::verifyAtomicElement(Operation *op, AtomicOp kind, Type element) {
  bool word = element.isInteger(32) || element.isInteger(64);
  bool wide = element.isF32() || element.isF64();
  StringRef accepted;
  switch (kind) {
  case AtomicOp::Exchange:
    if (word || wide)
      return success();
    accepted = "i32, i64, f32 or f64";
    break;
  case AtomicOp::FAdd:
  case AtomicOp::FMax:
  case AtomicOp::FMin:
    if (wide || element.isF16() || element.isBF16())
      return success();
    accepted = "f16, bf16, f32 or f64";
    break;
  default:
    if (word)
      return success();
    accepted = "i32 or i64";
    break;
  }
  return op->emitOpError() << "atomic " << stringifyAtomicOp(kind) << " works on elements of type " << accepted
                           << ", found " << element;
}

LogicalResult ditron::tile::verifyCompareSwapElement(Operation *op, Type element) {
  if (element.isIntOrFloat() && llvm::is_contained({16u, 32u, 64u}, element.getIntOrFloatBitWidth()))
    return success();
  return op->emitOpError() << "compare and swap works on elements of 16, 32 or 64 bits, found " << element;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Creation and shape
//===--------------------------------------------------------------------------------------------------------------===//

LogicalResult ArangeOp::verify() {
  int64_t start = static_cast<int32_t>(getStart()), end = static_cast<int32_t>(getEnd());
  if (end <= start)
    return emitOpError() << "end must be greater than start, found " << start << " to " << end;
  if (!llvm::isPowerOf2_64(end - start))
    return emitOpError() << "range must have a power of two of elements, found " << end - start;
  ArrayRef<int64_t> shape = getType().getShape();
  if (shape.size() != 1 || shape[0] != end - start)
    return emitOpError() << "result must have shape [" << end - start << "], found " << getType();
  return success();
}

LogicalResult SplatOp::verify() { return verifyElementType(*this, "result", getType(), getSource().getType()); }

LogicalResult UnsplatOp::verify() {
  if (elementCount(getSource().getType()) != 1)
    return emitOpError() << "source must have one element, found " << getSource().getType();
  return verifyElementType(*this, "source", getSource().getType(), getType());
}

LogicalResult ExpandDimsOp::verify() {
  ArrayRef<int64_t> source = shapeOf(getSource().getType());
  if (failed(verifyAxis(*this, getAxis(), source.size() + 1)))
    return failure();
  SmallVector<int64_t> expected(source);
  expected.insert(expected.begin() + getAxis(), 1);
  if (shapeOf(getType()) != ArrayRef<int64_t>(expected))
    return emitOpError() << "result must have shape [" << expected << "], found " << getType();
  return verifyElementType(*this, "result", getType(), elementTypeOf(getSource().getType()));
}

LogicalResult BroadcastOp::verify() {
  ArrayRef<int64_t> source = shapeOf(getSource().getType()), result = shapeOf(getType());
  if (source.size() != result.size())
    return emitOpError() << "source and result must have the same rank, found " << source.size() << " and "
                         << result.size();
  for (auto [dim, sizes] : llvm::enumerate(llvm::zip_equal(source, result))) {
    auto [from, to] = sizes;
    if (from != to && from != 1)
      return emitOpError() << "dimension " << dim << " has size " << from << " and cannot become " << to
                           << "; only size 1 is repeated";
  }
  return verifyElementType(*this, "result", getType(), elementTypeOf(getSource().getType()));
}

LogicalResult ReshapeOp::verify() {
  if (elementCount(getSource().getType()) != elementCount(getType()))
    return emitOpError() << "source and result must have the same number of elements, found "
                         << elementCount(getSource().getType()) << " and " << elementCount(getType());
  return verifyElementType(*this, "result", getType(), elementTypeOf(getSource().getType()));
}

LogicalResult TransOp::verify() {
  ArrayRef<int64_t> source = shapeOf(getSource().getType());
  ArrayRef<int32_t> order = getOrder();
  SmallVector<int32_t> sorted(order);
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int32_t>(0, source.size())))
    return emitOpError() << "order [" << order << "] is not a permutation of the " << source.size()
                         << " dimensions of the source";
  SmallVector<int64_t> expected;
  for (int32_t dim : order)
    expected.push_back(source[dim]);
  if (shapeOf(getType()) != ArrayRef<int64_t>(expected))
    return emitOpError() << "result must have shape [" << expected << "], found " << getType();
  return verifyElementType(*this, "result", getType(), elementTypeOf(getSource().getType()));
}

//===--------------------------------------------------------------------------------------------------------------===//
// Pointers and hints
//===--------------------------------------------------------------------------------------------------------------===//

LogicalResult AddPtrOp::verify() {
  Type element = elementTypeOf(getOffset().getType());
  if (!element.isInteger(32) && !element.isInteger(64))
    return emitOpError() << "offset must be of type i32 or i64, found " << element;
  return verifySameShape(*this, "pointer", getPtr().getType(), "offset", getOffset().getType());
}

LogicalResult PtrToIntOp::verify() {
  if (!elementTypeOf(getType()).isInteger(64))
    return emitOpError() << "an address is an i64, found " << getType();
  return verifySameShape(*this, "source", getSource().getType(), "result", getType());
}

LogicalResult IntToPtrOp::verify() {
  if (!elementTypeOf(getSource().getType()).isInteger(64))
    return emitOpError() << "an address is an i64, found " << getSource().getType();
  return verifySameShape(*this, "source", getSource().getType(), "result", getType());
}

LogicalResult PtrCastOp::verify() {
  return verifySameShape(*this, "source", getSource().getType(), "result", getType());
}

LogicalResult HintOp::verify() {
  Type type = getSource().getType();
  int64_t expected = std::max<int64_t>(shapeOf(type).size(), 1);
  auto check = [&](StringRef name, std::optional<ArrayRef<int64_t>> values) -> LogicalResult {
    if (!values)
      return success();
    if (static_cast<int64_t>(values->size()) != expected)
      return emitOpError() << name << " has " << values->size() << " numbers, expected one per dimension of " << type
                           << ", that is " << expected;
    for (int64_t value : *values)
      if (value < 1)
        return emitOpError() << name << " must be positive, found " << value;
    return success();
  };
  if (failed(check("divisibility", getDivisibility())) || failed(check("contiguity", getContiguity())))
    return failure();
  return check("constancy", getConstancy());
}

//===--------------------------------------------------------------------------------------------------------------===//
// Memory
//===--------------------------------------------------------------------------------------------------------------===//

/// Checks a value that is read or written through a pointer.
static LogicalResult verifyAccess(Operation *op, Type ptr, StringRef what, Type value) {
  if (failed(verifySameShape(op, "pointer", ptr, what, value)))
    return failure();
  return verifyElementType(op, what, value, pointeeOf(ptr));
}

static LogicalResult verifyMask(Operation *op, Type ptr, Value mask) {
  return mask ? verifySameShape(op, "pointer", ptr, "mask", mask.getType()) : success();
}

LogicalResult LoadOp::verify() {
  Type ptr = getPtr().getType();
  if (failed(verifyAccess(*this, ptr, "result", getType())) || failed(verifyMask(*this, ptr, getMask())))
    return failure();
  if (!getOther())
    return success();
  if (!getMask())
    return emitOpError() << "`other` is what a false mask gives, but there is no mask";
  return verifyAccess(*this, ptr, "other", getOther().getType());
}

LogicalResult StoreOp::verify() {
  if (failed(verifyAccess(*this, getPtr().getType(), "value", getValue().getType())))
    return failure();
  return verifyMask(*this, getPtr().getType(), getMask());
}

LogicalResult AtomicRmwOp::verify() {
  Type ptr = getPtr().getType();
  if (failed(verifyAccess(*this, ptr, "value", getValue().getType())) ||
      failed(verifyAccess(*this, ptr, "result", getType())) || failed(verifyMask(*this, ptr, getMask())))
    return failure();
  return verifyAtomicElement(*this, getOp(), pointeeOf(ptr));
}

LogicalResult AtomicCasOp::verify() {
  Type ptr = getPtr().getType();
  if (failed(verifyAccess(*this, ptr, "value", getValue().getType())) ||
      failed(verifyAccess(*this, ptr, "result", getType())))
    return failure();
  return verifyCompareSwapElement(*this, pointeeOf(ptr));
}

//===--------------------------------------------------------------------------------------------------------------===//
// Descriptors
//===--------------------------------------------------------------------------------------------------------------===//

LogicalResult MakeDescriptorOp::verify() {
  DescriptorType type = getResult().getType();
  if (getBase().getType().getPointee() != type.getElementType())
    return emitOpError() << "base is " << getBase().getType() << ", but the descriptor has elements of type "
                         << type.getElementType();
  const auto rank = static_cast<size_t>(type.getRank());
  if (getSizes().size() != rank || getStrides().size() != rank)
    return emitOpError() << "needs a size and a stride for each of the " << rank << " dimensions, found "
                         << getSizes().size() << " sizes and " << getStrides().size() << " strides";
  APInt last;
  if (!matchPattern(getStrides().back(), m_ConstantInt(&last)) || !last.isOne())
    return emitOpError() << "the last stride must be the constant 1";
  if (getPadding() == DescriptorPadding::Nan && !isa<FloatType>(type.getElementType()))
    return emitOpError() << "elements of type " << type.getElementType() << " have no NaN to pad with";
  return success();
}

/// Checks a tile that is read or written through a descriptor.
static LogicalResult verifyTile(Operation *op, DescriptorType descriptor, size_t offsets, Type tile) {
  if (offsets != static_cast<size_t>(descriptor.getRank()))
    return op->emitOpError() << "needs an offset for each of the " << descriptor.getRank() << " dimensions, found "
                             << offsets;
  if (shapeOf(tile) != descriptor.getShape() || elementTypeOf(tile) != descriptor.getElementType())
    return op->emitOpError() << "moves tiles of type " << descriptor.getTileType() << ", found " << tile;
  return success();
}

LogicalResult DescriptorLoadOp::verify() {
  return verifyTile(*this, getDescriptor().getType(), getOffsets().size(), getType());
}

LogicalResult DescriptorStoreOp::verify() {
  return verifyTile(*this, getDescriptor().getType(), getOffsets().size(), getValue().getType());
}

//===--------------------------------------------------------------------------------------------------------------===//
// Join, split, gather, histogram
//===--------------------------------------------------------------------------------------------------------------===//

/// `pair` has the shape of `half` and a last dimension of 2.
static LogicalResult verifyPair(Operation *op, Type half, Type pair) {
  SmallVector<int64_t> expected(shapeOf(half));
  expected.push_back(2);
  if (shapeOf(pair) != ArrayRef<int64_t>(expected))
    return op->emitOpError() << "pairs of " << half << " have the shape [" << expected << "], found " << pair;
  return verifyElementType(op, "the tensor of pairs", pair, elementTypeOf(half));
}

LogicalResult JoinOp::verify() { return verifyPair(*this, getLhs().getType(), getType()); }

LogicalResult SplitOp::verify() { return verifyPair(*this, getLhs().getType(), getSource().getType()); }

LogicalResult GatherOp::verify() {
  RankedTensorType source = getSource().getType(), index = getIndex().getType();
  if (source.getRank() != index.getRank())
    return emitOpError() << "source and index must have the same rank, found " << source << " and " << index;
  if (failed(verifyAxis(*this, getAxis(), source.getRank())))
    return failure();
  for (int64_t dim = 0; dim < source.getRank(); ++dim)
    if (dim != getAxis() && source.getDimSize(dim) != index.getDimSize(dim))
      return emitOpError() << "source and index must have the same size along dimension " << dim << ", found " << source
                           << " and " << index;
  if (failed(verifySameShape(*this, "index", index, "result", getType())))
    return failure();
  return verifyElementType(*this, "result", getType(), source.getElementType());
}

LogicalResult BitonicOp::verify() {
  RankedTensorType type = getType();
  if (type.getRank() == 0)
    return emitOpError() << "works along the last dimension, found " << type;
  const int64_t levels = llvm::Log2_64(type.getShape().back());
  if (getFirstStage() < 1 || getFirstStage() > getLastStage() || getLastStage() > levels)
    return emitOpError() << "the last dimension of " << type << " has stages 1 to " << levels << ", found " << getFirstStage()
                         << " to " << getLastStage();
  return success();
}

LogicalResult HistogramOp::verify() {
  if (getType().getRank() != 1)
    return emitOpError() << "the bins have rank 1, found " << getType();
  if (!getMask())
    return success();
  return verifySameShape(*this, "source", getSource().getType(), "mask", getMask().getType());
}

//===--------------------------------------------------------------------------------------------------------------===//
// Contraction, reduction, scan
//===--------------------------------------------------------------------------------------------------------------===//

LogicalResult DotOp::verify() {
  RankedTensorType a = getA().getType(), b = getB().getType(), c = getC().getType();
  // A leading batch dimension is allowed: it is common to all three.
  int64_t rank = a.getRank();
  if ((rank != 2 && rank != 3) || b.getRank() != rank || c.getRank() != rank)
    return emitOpError() << "operands must all have rank 2, or 3 with a batch dimension, found " << a << ", " << b
                         << " and " << c;
  if (rank == 3 && (a.getDimSize(0) != b.getDimSize(0) || a.getDimSize(0) != c.getDimSize(0)))
    return emitOpError() << "batch sizes differ: " << a.getDimSize(0) << ", " << b.getDimSize(0) << " and "
                         << c.getDimSize(0);
  if (a.getDimSize(rank - 1) != b.getDimSize(rank - 2))
    return emitOpError() << "a has " << a.getDimSize(rank - 1) << " columns, but b has " << b.getDimSize(rank - 2)
                         << " rows";
  if (c.getDimSize(rank - 2) != a.getDimSize(rank - 2) || c.getDimSize(rank - 1) != b.getDimSize(rank - 1))
    return emitOpError() << "result must be " << a.getDimSize(rank - 2) << "x" << b.getDimSize(rank - 1) << ", found "
                         << c;

  Type aElement = a.getElementType(), bElement = b.getElementType(), cElement = c.getElementType();
  bool bothFp8 = aElement.getIntOrFloatBitWidth() == 8 && bElement.getIntOrFloatBitWidth() == 8 &&
                 isa<FloatType>(aElement) && isa<FloatType>(bElement);
  if (aElement != bElement && !bothFp8)
    return emitOpError() << "a and b must have the same element type, found " << aElement << " and " << bElement;
  bool accumulates = aElement.isInteger(8)         ? cElement.isInteger(32)
                     : aElement.isF64()            ? cElement.isF64()
                     : aElement.isF16() || bothFp8 ? cElement.isF32() || cElement.isF16()
                                                   : cElement.isF32();
  if (!accumulates)
    return emitOpError() << "operands of type " << aElement << " cannot accumulate in " << cElement;
  return success();
}

/// What reduce and scan share: sources of one shape, and a region (lefts, rights) -> combined on their elements.
static LogicalResult verifyCombine(Operation *op, ValueRange sources, int64_t axis, Region &combine) {
  if (sources.empty())
    return op->emitOpError() << "needs at least one source";
  for (Value source : sources.drop_front())
    if (failed(verifySameShape(op, "first source", sources.front().getType(), "another source", source.getType())))
      return failure();
  if (failed(verifyAxis(op, axis, shapeOf(sources.front().getType()).size())))
    return failure();

  SmallVector<Type> elements;
  for (Value source : sources)
    elements.push_back(elementTypeOf(source.getType()));
  SmallVector<Type> expected(elements);
  expected.append(elements);
  Block &body = combine.front();
  if (!llvm::equal(body.getArgumentTypes(), expected))
    return op->emitOpError() << "combine region must take (" << expected << "), found (" << body.getArgumentTypes()
                             << ")";
  auto yield = body.empty() ? YieldOp() : dyn_cast<YieldOp>(body.back());
  if (!yield)
    return op->emitOpError() << "combine region must end in tile.yield";
  if (!llvm::equal(yield.getOperandTypes(), elements))
    return yield.emitOpError() << "must yield (" << elements << "), found (" << yield.getOperandTypes() << ")";
  return success();
}

LogicalResult ReduceOp::verify() {
  if (failed(verifyCombine(*this, getSources(), getAxis(), getCombine())))
    return failure();
  if (getNumResults() != getSources().size())
    return emitOpError() << "has " << getSources().size() << " sources, but " << getNumResults() << " results";
  for (auto [source, result] : llvm::zip_equal(getSources(), getResults())) {
    SmallVector<int64_t> expected(shapeOf(source.getType()));
    expected.erase(expected.begin() + getAxis());
    bool scalar = expected.empty();
    if (isa<RankedTensorType>(result.getType()) == scalar || shapeOf(result.getType()) != ArrayRef<int64_t>(expected)) {
      InFlightDiagnostic diagnostic = emitOpError() << "result of a reduction along axis " << getAxis() << " of "
                                                    << source.getType() << " must be ";
      if (scalar)
        return diagnostic << "a scalar, found " << result.getType();
      return diagnostic << "of shape [" << expected << "], found " << result.getType();
    }
    if (failed(verifyElementType(*this, "result", result.getType(), elementTypeOf(source.getType()))))
      return failure();
  }
  return success();
}

LogicalResult ScanOp::verify() {
  if (failed(verifyCombine(*this, getSources(), getAxis(), getCombine())))
    return failure();
  if (getNumResults() != getSources().size())
    return emitOpError() << "has " << getSources().size() << " sources, but " << getNumResults() << " results";
  for (auto [source, result] : llvm::zip_equal(getSources(), getResults())) {
    if (failed(verifySameShape(*this, "source", source.getType(), "result", result.getType())) ||
        failed(verifyElementType(*this, "result", result.getType(), elementTypeOf(source.getType()))))
      return failure();
  }
  return success();
}
