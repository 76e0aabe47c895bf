//===- DgpuAttributes.cpp - Text and checks of layouts and buffer types ---------------------------------*- C++ -*-===//
//
// The text of a layout attribute is that of the layout room, which has its own scanner; here it is only cut out of the
// surrounding MLIR text. Also here: queries of tensor types and module attributes.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dgpu/Dgpu.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace ditron::dgpu;
namespace layout = ditron::layout;

/// The text between `<` and its `>`. MLIR has found the end of a dialect attribute's body before it calls the
/// attribute's parser, and continues behind it whatever the parser consumed; so the characters are there, and no token
/// needs to be taken for the XOR signs that MLIR's lexer would refuse.
static FailureOr<StringRef> takeBody(AsmParser &parser) {
  const char *open = parser.getCurrentLocation().getPointer();
  if (*open != '<') {
    parser.emitError(parser.getCurrentLocation(), "expected '<' and the text of a layout");
    return failure();
  }
  const char *end = open + 1;
  while (*end != '>' && *end != '\0')
    ++end;
  if (*end != '>') {
    parser.emitError(parser.getCurrentLocation(), "expected '>' after the text of a layout");
    return failure();
  }
  return StringRef(open + 1, end - open - 1);
}

/// Parses `<text>` with the scanner of the layout room.
template <typename AttributeT, typename LayoutT> static Attribute parseLayout(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  FailureOr<StringRef> body = takeBody(parser);
  if (failed(body))
    return {};
  ditron::Expected<LayoutT> parsed = LayoutT::parse(std::string_view(body->data(), body->size()));
  if (!parsed.isOk()) {
    parser.emitError(loc, parsed.status().message());
    return {};
  }
  return parser.getChecked<AttributeT>(loc, parser.getContext(), std::move(*parsed));
}

static LogicalResult reportInvalid(const ditron::Status &status, function_ref<InFlightDiagnostic()> emitError) {
  if (status.isOk())
    return success();
  return emitError() << status.message();
}

static std::string shapeText(ArrayRef<int64_t> shape) {
  return layout::shapeToString(layout::Shape(shape.begin(), shape.end()));
}

//===--------------------------------------------------------------------------------------------------------------===//
// Attributes
//===--------------------------------------------------------------------------------------------------------------===//

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  return parseLayout<LayoutAttr, layout::DistributedLayout>(parser);
}

void LayoutAttr::print(AsmPrinter &printer) const { printer << "<" << getLayout().toString() << ">"; }

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError, layout::DistributedLayout layout) {
  return reportInvalid(layout.verify(), emitError);
}

LogicalResult LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                         function_ref<InFlightDiagnostic()> emitError) const {
  if (ArrayRef<int64_t>(getLayout().shape()) == shape)
    return success();
  return emitError() << "the layout is for a tensor of shape " << layout::shapeToString(getLayout().shape())
                     << ", but the tensor has shape " << shapeText(shape);
}

Attribute SharedLayoutAttr::parse(AsmParser &parser, Type) {
  return parseLayout<SharedLayoutAttr, layout::SharedLayout>(parser);
}

void SharedLayoutAttr::print(AsmPrinter &printer) const { printer << "<" << getLayout().toString() << ">"; }

LogicalResult SharedLayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError, layout::SharedLayout layout) {
  return reportInvalid(layout.verify(), emitError);
}

//===--------------------------------------------------------------------------------------------------------------===//
// Buffer type: <slots x shape x element, layout>
//===--------------------------------------------------------------------------------------------------------------===//

Type BufferType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> dimensions; // the slots first
  Type elementType;
  SharedLayoutAttr layout;
  if (parser.parseLess() || parser.parseDimensionList(dimensions, /*allowDynamic=*/false) ||
      parser.parseType(elementType) || parser.parseComma() || parser.parseAttribute(layout) || parser.parseGreater())
    return {};
  if (dimensions.empty()) {
    parser.emitError(loc, "expected the number of slots, as in `!dgpu.buffer<2 x 64x32 x f16, #dgpu.shared<...>>`");
    return {};
  }
  return parser.getChecked<BufferType>(loc, parser.getContext(), dimensions.front(),
                                       ArrayRef<int64_t>(dimensions).drop_front(), elementType, layout);
}

void BufferType::print(AsmPrinter &printer) const {
  printer << "<" << getSlots() << " x ";
  for (auto [index, size] : llvm::enumerate(getShape()))
    printer << size << (index + 1 == getShape().size() ? " x " : "x");
  printer << getElementType() << ", " << getLayout() << ">";
}

/// Bits of one element in memory; i1 takes a byte.
static unsigned memoryBits(Type element) {
  if (isa<ditron::tile::PointerType>(element))
    return 64;
  return std::max(element.getIntOrFloatBitWidth(), 8u);
}

LogicalResult BufferType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t slots, ArrayRef<int64_t> shape,
                                 Type elementType, SharedLayoutAttr layout) {
  if (slots < 1)
    return emitError() << "a buffer has at least one slot, found " << slots;
  if (!elementType.isIntOrFloat() && !isa<tile::PointerType>(elementType))
    return emitError() << "cannot hold elements of type " << elementType;
  if (ArrayRef<int64_t>(layout.getLayout().shape()) != shape)
    return emitError() << "the shared layout is for a tile of shape "
                       << layout::shapeToString(layout.getLayout().shape()) << ", but the slots have shape "
                       << shapeText(shape);
  if (layout.getLayout().elementBits() != static_cast<int>(memoryBits(elementType)))
    return emitError() << "the shared layout is for elements of " << layout.getLayout().elementBits() << " bits, but "
                       << elementType << " takes " << memoryBits(elementType);
  return success();
}

int64_t BufferType::getSlotBytes() const { return getLayout().getLayout().bytes(); }

BufferType BufferType::permuted(ArrayRef<int32_t> order) const {
  SmallVector<int64_t> shape;
  for (int32_t dim : order)
    shape.push_back(getShape()[dim]);
  std::vector<int> dims(order.begin(), order.end());
  return get(getContext(), getSlots(), shape, getElementType(),
             SharedLayoutAttr::get(getContext(), getLayout().getLayout().permute(dims)));
}

LogicalResult MbarriersType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t slots) {
  if (slots < 1)
    return emitError() << "at least one mbarrier, found " << slots;
  return success();
}

//===--------------------------------------------------------------------------------------------------------------===//
// Queries
//===--------------------------------------------------------------------------------------------------------------===//

LayoutAttr ditron::dgpu::layoutAttrOf(Type tensorType) {
  auto tensor = dyn_cast<RankedTensorType>(tensorType);
  return tensor ? dyn_cast_or_null<LayoutAttr>(tensor.getEncoding()) : LayoutAttr();
}

const layout::DistributedLayout &ditron::dgpu::layoutOf(Type tensorType) {
  LayoutAttr attribute = layoutAttrOf(tensorType);
  assert(attribute && "the tensor type has no layout; layout assignment gives every tensor one");
  return attribute.getLayout();
}

RankedTensorType ditron::dgpu::withLayout(RankedTensorType tensorType, LayoutAttr layout) {
  return RankedTensorType::get(tensorType.getShape(), tensorType.getElementType(), layout);
}

/// An i32 attribute of the module around `op`, or a default for IR made by hand in tests.
static int moduleIntegerOf(Operation *op, StringRef name, int fallback) {
  ModuleOp module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  auto attribute = module ? module->getAttrOfType<IntegerAttr>(name) : IntegerAttr();
  return attribute ? static_cast<int>(attribute.getInt()) : fallback;
}

int ditron::dgpu::numWarpsOf(Operation *op) {
  for (Operation *inner = op, *outer = op->getParentOp(); outer; inner = outer, outer = outer->getParentOp()) {
    if (auto specialized = dyn_cast<WarpSpecializeOp>(outer);
        specialized && inner->getParentRegion() == &specialized.getProducer())
      return static_cast<int>(specialized.getActiveWarps());
    if (auto attribute = outer->getAttrOfType<IntegerAttr>(numWarpsAttrName))
      return static_cast<int>(attribute.getInt());
  }
  return moduleIntegerOf(op, numWarpsAttrName, 4);
}
int ditron::dgpu::threadsPerWarpOf(Operation *op) { return moduleIntegerOf(op, threadsPerWarpAttrName, 32); }
