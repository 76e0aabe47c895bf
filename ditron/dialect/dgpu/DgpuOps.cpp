//===- DgpuOps.cpp - Checks and folds of the dgpu operations --------------------------------------------*- C++ -*-===//
//
// Verifiers of conversions, buffers and asynchronous copies, and the simplifications of conversions: a conversion to
// the same layout, of a conversion, and of a value that every thread can make by itself.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dgpu/Dgpu.h"

#include "ditron/layout/Wgmma.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace ditron::dgpu;
namespace tile = ditron::tile;

//===--------------------------------------------------------------------------------------------------------------===//
// convert_layout
//===--------------------------------------------------------------------------------------------------------------===//

LogicalResult ConvertLayoutOp::verify() {
  RankedTensorType source = cast<RankedTensorType>(getSource().getType()), result = cast<RankedTensorType>(getType());
  if (source.getShape() != result.getShape() || source.getElementType() != result.getElementType())
    return emitOpError() << "changes the layout only, but source is " << source << " and result is " << result;
  for (auto [name, type] : {std::pair<StringRef, Type>("source", source), {"result", result}})
    if (!layoutAttrOf(type))
      return emitOpError() << name << " must have a #dgpu.layout, found " << type;
  const layout::DistributedLayout &from = layoutOf(source), &to = layoutOf(result);
  for (layout::MachineDim dim : {layout::MachineDim::Lane, layout::MachineDim::Warp, layout::MachineDim::Block})
    if (from.numBits(dim) != to.numBits(dim))
      return emitOpError() << "source and result must be spread over the same machine, but the source has "
                           << from.numBits(dim) << " " << layout::toString(dim) << " bits and the result "
                           << to.numBits(dim);
  return success();
}

OpFoldResult ConvertLayoutOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getType())
    return getSource();
  if (auto inner = getSource().getDefiningOp<ConvertLayoutOp>(); inner && inner.getSource().getType() == getType())
    return inner.getSource();
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getSource()))
    return DenseElementsAttr::get(cast<ShapedType>(getType()), splat.getSplatValue<Attribute>());
  return {};
}

namespace {
/// convert_layout(convert_layout(x)) goes there in one step.
struct ConvertOfConvert : public OpRewritePattern<ConvertLayoutOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvertLayoutOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getSource().getDefiningOp<ConvertLayoutOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "source is not a conversion");
    rewriter.replaceOpWithNewOp<ConvertLayoutOp>(op, op.getType(), inner.getSource(), IntegerAttr());
    return success();
  }
};

/// A splat or a range costs every thread nothing: it is made again where it is needed.
struct ConvertOfCreation : public OpRewritePattern<ConvertLayoutOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvertLayoutOp op, PatternRewriter &rewriter) const override {
    if (auto splat = op.getSource().getDefiningOp<tile::SplatOp>()) {
      rewriter.replaceOpWithNewOp<tile::SplatOp>(op, op.getType(), splat.getSource());
      return success();
    }
    if (auto range = op.getSource().getDefiningOp<tile::ArangeOp>()) {
      rewriter.replaceOpWithNewOp<tile::ArangeOp>(op, op.getType(), range.getStartAttr(), range.getEndAttr());
      return success();
    }
    return rewriter.notifyMatchFailure(op, "source is computed from other tensors");
  }
};
} // namespace

void ConvertLayoutOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ConvertOfConvert, ConvertOfCreation>(context);
}

//===--------------------------------------------------------------------------------------------------------------===//
// Buffers
//===--------------------------------------------------------------------------------------------------------------===//

/// A tile that enters or leaves a slot has the slot's shape and element type.
static LogicalResult verifyTile(Operation *op, BufferType buffer, StringRef what, Type shape, Type element) {
  if (tile::shapeOf(shape) != buffer.getShape())
    return op->emitOpError() << what << " is " << shape << ", but a slot has shape [" << buffer.getShape() << "]";
  if (element != buffer.getElementType())
    return op->emitOpError() << what << " has elements of type " << element << ", but the buffer holds "
                             << buffer.getElementType();
  return success();
}

LogicalResult BufferStoreOp::verify() {
  Type value = getValue().getType();
  return verifyTile(*this, getBuffer().getType(), "value", value, tile::elementTypeOf(value));
}

LogicalResult BufferLoadOp::verify() {
  return verifyTile(*this, getBuffer().getType(), "result", getType(), tile::elementTypeOf(getType()));
}

LogicalResult AsyncCopyOp::verify() {
  Type ptr = getPtr().getType();
  if (!isa<RankedTensorType>(ptr))
    return emitOpError() << "copies behind a tensor of pointers, found " << ptr;
  Type pointee = cast<tile::PointerType>(tile::elementTypeOf(ptr)).getPointee();
  if (failed(verifyTile(*this, getBuffer().getType(), "pointer", ptr, pointee)))
    return failure();
  if (getMask() && getMask().getType() != tile::withElementType(ptr, IntegerType::get(getContext(), 1)))
    return emitOpError() << "mask must have the shape and layout of the pointer " << ptr << ", found "
                         << getMask().getType();
  return success();
}

void BufferPermuteOp::build(OpBuilder &builder, OperationState &state, Value source, ArrayRef<int32_t> order) {
  build(builder, state, cast<BufferType>(source.getType()).permuted(order), source, order);
}

LogicalResult BufferPermuteOp::verify() {
  SmallVector<int32_t> sorted(getOrder());
  llvm::sort(sorted);
  if (sorted != llvm::to_vector(llvm::seq<int32_t>(getSource().getType().getShape().size())))
    return emitOpError() << "order must name each dimension of " << getSource().getType() << " once";
  if (getType() != getSource().getType().permuted(getOrder()))
    return emitOpError() << "result must be " << getSource().getType().permuted(getOrder()) << ", found " << getType();
  return success();
}

//===--------------------------------------------------------------------------------------------------------------===//
// Tensor copies
//===--------------------------------------------------------------------------------------------------------------===//

static LogicalResult verifyCopy(Operation *op, BufferType buffer, size_t offsets) {
  if (buffer.getShape().size() > offsets)
    return op->emitOpError() << "has " << offsets << " offsets for a tile of rank " << buffer.getShape().size();
  return success();
}

LogicalResult TmaLoadOp::verify() { return verifyCopy(*this, getBuffer().getType(), getOffsets().size()); }
LogicalResult TmaStoreOp::verify() {
  if (std::optional<ArrayRef<int32_t>> warpgroups = getWarpgroups())
    if (int64_t(warpgroups->size()) * layout::wgmmaRows != getBuffer().getType().getShape().front())
      return emitOpError() << "names " << warpgroups->size() << " warpgroups, expected one for each "
                           << layout::wgmmaRows << " of " << getBuffer().getType().getShape().front() << " rows";
  return verifyCopy(*this, getBuffer().getType(), getOffsets().size());
}

/// True if `all` are as many of each of `ofRow`, one type's behind the other's.
static bool areOfRows(TypeRange all, TypeRange ofRow) {
  if (ofRow.empty() || all.size() % ofRow.size() != 0)
    return all.empty() && ofRow.empty();
  const size_t copies = all.size() / ofRow.size();
  for (auto [i, type] : llvm::enumerate(all))
    if (type != ofRow[i / copies])
      return false;
  return true;
}

LogicalResult GatherRowsOp::verify() {
  Block &body = getRow().front();
  if (body.getNumArguments() != 1 || !body.getArgument(0).getType().isInteger(32))
    return emitOpError("needs a region of a row, i32");
  auto values = dyn_cast_or_null<RowValuesOp>(body.empty() ? nullptr : &body.back());
  if (!values)
    return emitOpError("needs a region that ends with row_values");
  if (values.getValues().empty() || getValues().empty() ||
      !areOfRows(getValues().getTypes(), values.getValues().getTypes()))
    return emitOpError("has results of other types than the values of a row");
  return success();
}

LogicalResult AsyncGatherOp::verify() {
  constexpr int64_t copyBytes = 16;
  BufferType type = getBuffer().getType();
  const int64_t elementBytes = type.getLayout().getLayout().elementBytes();
  if (type.getShape().size() != 2 || type.getShape().back() * elementBytes % copyBytes != 0)
    return emitOpError() << "copies matrices whose rows are multiples of " << copyBytes << " bytes, not " << type;
  Block &body = getAddress().front();
  const SmallVector<Type> arguments(body.getArgumentTypes());
  if (arguments.size() < 2 || !arguments[0].isInteger(32) || !arguments[1].isInteger(32))
    return emitOpError("needs a region of a row and a column, i32");
  if (!areOfRows(getHeld().getTypes(), ArrayRef(arguments).drop_front(2)))
    return emitOpError("needs a region that takes a value for each of those that are held of a row");
  auto address = dyn_cast_or_null<AddressOp>(body.empty() ? nullptr : &body.back());
  if (!address)
    return emitOpError("needs a region that ends with an address");
  auto pointer = dyn_cast<tile::PointerType>(address.getPtr().getType());
  if (!pointer || pointer.getElementBytes() != elementBytes)
    return emitOpError() << "copies elements of " << elementBytes << " bytes, from " << address.getPtr().getType();
  return success();
}

//===--------------------------------------------------------------------------------------------------------------===//
// Warpgroup dots
//===--------------------------------------------------------------------------------------------------------------===//

LogicalResult WarpgroupDotOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands,
                                               DictionaryAttr, OpaqueProperties, RegionRange,
                                               SmallVectorImpl<Type> &types) {
  auto isTensor = [](Value operand) { return isa<RankedTensorType>(operand.getType()); };
  types.push_back((*llvm::find_if(llvm::reverse(operands), isTensor)).getType()); // the last tensor is the accumulator
  return success();
}

LogicalResult WarpgroupDotOp::verify() {
  Type a = getA().getType();
  auto bufferA = dyn_cast<BufferType>(a);
  if (static_cast<bool>(bufferA) != static_cast<bool>(getSlotA()))
    return emitOpError() << "a buffer needs a slot and a tensor has none; a is " << a;
  ArrayRef<int64_t> shapeA = bufferA ? bufferA.getShape() : tile::shapeOf(a);
  Type element = bufferA ? bufferA.getElementType() : tile::elementTypeOf(a);
  BufferType b = getB().getType();
  ArrayRef<int64_t> shapeC = getType().getShape();
  if (shapeA.size() != 2 || b.getShape().size() != 2 || shapeC.size() != 2 || shapeA[0] != shapeC[0] ||
      shapeA[1] != b.getShape()[0] || b.getShape()[1] != shapeC[1])
    return emitOpError() << "shapes do not multiply: " << a << " by " << b << " gives " << getType();
  bool sameFloat8 = element.getIntOrFloatBitWidth() == 8 && isa<FloatType>(element) &&
                    isa<FloatType>(b.getElementType()) && b.getElementType().getIntOrFloatBitWidth() == 8;
  if (element != b.getElementType() && !sameFloat8)
    return emitOpError() << "operands have different element types: " << element << " and " << b.getElementType();
  if (getType().getElementType().isInteger() != element.isInteger())
    return emitOpError() << "a product of " << element << " does not accumulate in " << getType().getElementType();
  if (std::optional<uint32_t> promotion = getPromoteElems();
      promotion && (!sameFloat8 || *promotion % layout::wgmmaStepBytes != 0))
    return emitOpError() << "promotes sums of " << *promotion << " products of " << element
                         << "; accepted are multiples of " << layout::wgmmaStepBytes << " of fp8";
  for (auto [buffer, isA] : {std::pair(bufferA, true), {b, false}})
    if (buffer &&
        !layout::wgmmaOperand(buffer.getLayout().getLayout(), isA ? layout::DotOperand::A : layout::DotOperand::B))
      return emitOpError() << "cannot read " << (isA ? "a" : "b") << " from a buffer laid out as "
                           << buffer.getLayout();
  return success();
}

LogicalResult WarpgroupWaitOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands,
                                                DictionaryAttr, OpaqueProperties, RegionRange,
                                                SmallVectorImpl<Type> &types) {
  llvm::append_range(types, operands.getTypes());
  return success();
}

//===--------------------------------------------------------------------------------------------------------------===//
// Warp specialisation
//===--------------------------------------------------------------------------------------------------------------===//

LogicalResult WarpSpecializeOp::verify() {
  if (!isa_and_nonnull<func::FuncOp>((*this)->getParentOp()))
    return emitOpError("must stand at the top level of a kernel");
  if (getProducerWarps() < 1)
    return emitOpError("needs at least one producer warp");
  if (getActiveWarps() > getProducerWarps())
    return emitOpError() << "has " << getActiveWarps() << " active producer warps of " << getProducerWarps();
  return success();
}
