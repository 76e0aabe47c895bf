//===- TileDialect.cpp - Generated parts of the tile dialect --------------------------------------------*- C++ -*-===//
//
// Registration, the pointer type, and all code that mlir-tblgen writes for the operations. Verifiers and folders are in
// TileVerifiers.cpp and TileFolds.cpp, so that changing them does not rebuild this expensive unit.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/tile/AttributeTable.h"
#include "ditron/dialect/tile/ExchangeAttr.h"
#include "ditron/dialect/tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ditron::tile;

#include "ditron/dialect/tile/TileDialect.cpp.inc"
#include "ditron/dialect/tile/TileEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "ditron/dialect/tile/TileAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "ditron/dialect/tile/TileTypes.cpp.inc"
#define GET_OP_CLASSES
#include "ditron/dialect/tile/TileOps.cpp.inc"

void TileDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ditron/dialect/tile/TileAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "ditron/dialect/tile/TileTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ditron/dialect/tile/TileOps.cpp.inc"
      >();
}

Operation *TileDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

LogicalResult PointerType::verify(function_ref<InFlightDiagnostic()> emitError, Type pointee) {
  if (isa<PointerType>(pointee) || pointee.isF16() || pointee.isBF16() || pointee.isF32() || pointee.isF64() ||
      isa<Float8E4M3FNType, Float8E5M2Type>(pointee))
    return success();
  if (auto integer = dyn_cast<IntegerType>(pointee); integer && integer.isSignless())
    if (llvm::is_contained({1u, 8u, 16u, 32u, 64u}, integer.getWidth()))
      return success();
  return emitError() << "cannot point at " << pointee
                     << "; expected i1, i8, i16, i32, i64, f8E4M3FN, f8E5M2, f16, bf16, f32, f64 or a pointer";
}

unsigned PointerType::getElementBytes() const {
  if (isa<PointerType>(getPointee()))
    return 8;
  return std::max(getPointee().getIntOrFloatBitWidth() / 8, 1u);
}

LogicalResult DescriptorType::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape,
                                     Type elementType) {
  if (shape.empty() || shape.size() > 5)
    return emitError() << "a descriptor has 1 to 5 dimensions, found " << shape.size();
  for (int64_t extent : shape)
    if (extent < 1)
      return emitError() << "a descriptor's tile needs positive extents, found " << extent;
  if (isa<PointerType>(elementType) || elementType.isInteger(1))
    return emitError() << "a descriptor's elements are numbers of at least 8 bits, found " << elementType;
  return PointerType::verify(emitError, elementType);
}

RankedTensorType DescriptorType::getTileType() const { return RankedTensorType::get(getShape(), getElementType()); }

Type DescriptorType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type element;
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) || parser.parseType(element) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<DescriptorType>(parser.getContext(), shape, element);
}

void DescriptorType::print(AsmPrinter &printer) const {
  printer << '<';
  for (int64_t extent : getShape())
    printer << extent << 'x';
  printer << getElementType() << '>';
}

Type ditron::tile::elementTypeOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getElementType() : type;
}

Type ditron::tile::withElementType(Type type, Type element) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? RankedTensorType::get(tensor.getShape(), element, tensor.getEncoding()) : element;
}

ArrayRef<int64_t> ditron::tile::shapeOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getShape() : ArrayRef<int64_t>();
}

/// Options of a loop are those of tl.range (frontend/Loops.cpp), and what passes make of them.
LogicalResult TileDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  constexpr auto isLoop = [](Operation *carrier) { return isa<LoopLikeOpInterface>(carrier); };
  constexpr auto isGather = [](Operation *carrier) { return isa<GatherOp>(carrier); };
  static constexpr AttributeRule table[] = {
      {"tile.kernel", AttributeKind::Unit, "functions", isFunction},
      {"tile.num_stages", AttributeKind::Integer, "loops", isLoop},
      {"tile.loop_unroll_factor", AttributeKind::Integer, "loops", isLoop},
      {"tile.flatten", AttributeKind::Unit, "loops", isLoop},
      {"tile.warp_specialize", AttributeKind::Unit, "loops", isLoop},
      {"tile.cluster_blocks", AttributeKind::Integer, "loops", isLoop},
      {"tile.disallow_acc_multi_buffer", AttributeKind::Unit, "loops", isLoop},
      {exchangeMaskAttrName, AttributeKind::Integer, "tile.gather", isGather},
  };
  return verifyByTable(op, attribute, table);
}

LogicalResult TileDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned, NamedAttribute attribute) {
  static constexpr AttributeRule table[] = {
      {"tile.divisibility", AttributeKind::Integer, "arguments of functions", isFunction}};
  return verifyByTable(op, attribute, table);
}
