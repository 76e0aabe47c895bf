//===- TensorMaps.cpp - Descriptors as arguments of the hardware's tensor copies ------------------------------------------===//
//
// See TensorMaps.h. What the hardware asks for: a base and outer strides of whole 16 bytes, a contiguous last dimension. Boxes
// and swizzles: layout/CopyBoxes.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/tensor_copies/TensorMaps.h"

#include "ditron/analysis/AxisInfo.h"
#include "ditron/analysis/Scratch.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/layout/CopyBoxes.h"
#include "ditron/transforms/Constants.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

#include <numeric>

using namespace mlir;

namespace ditron::transforms {

tile::MakeDescriptorOp descriptorOf(Value descriptor) {
  while (auto token = descriptor.getDefiningOp<dist::ConsumeTokenOp>())
    descriptor = token.getSource();
  return descriptor.getDefiningOp<tile::MakeDescriptorOp>();
}

BlockArgument argumentBehind(Value pointer) {
  while (true) {
    if (auto argument = dyn_cast<BlockArgument>(pointer)) {
      Operation *parent = argument.getOwner()->getParentOp();
      if (isa<func::FuncOp>(parent))
        return argument;
      // A pointer that a loop moves forward stays in its object.
      auto loop = dyn_cast<scf::ForOp>(parent);
      if (!loop || argument == loop.getInductionVar())
        return {};
      pointer = loop.getTiedLoopInit(argument)->get();
      continue;
    }
    Operation *op = pointer.getDefiningOp();
    // The peer's copy of a symmetric object: an address, moved by the distance of two heaps.
    if (auto peer = dyn_cast<tile::IntToPtrOp>(op))
      if (auto sum = peer.getSource().getDefiningOp<arith::AddIOp>())
        if (auto own = sum.getLhs().getDefiningOp<tile::PtrToIntOp>())
          op = own;
    if (!isa<dist::ConsumeTokenOp, tile::HintOp, tile::AddPtrOp, tile::PtrToIntOp, tile::PtrCastOp, tile::SplatOp,
             tile::BroadcastOp, tile::ExpandDimsOp>(op))
      return {};
    pointer = op->getOperand(0);
  }
}

/// The value itself, without hints, tokens and changes of width.
static Value plainValue(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<dist::ConsumeTokenOp, tile::HintOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

static BlockArgument kernelArgument(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && isa<func::FuncOp>(argument.getOwner()->getParentOp()) ? argument : BlockArgument();
}

/// An argument that is taken for a number where it is less, as max(argument, number); null of anything else.
static std::pair<BlockArgument, int64_t> argumentOrMore(Value value) {
  auto max = plainValue(value).getDefiningOp<arith::MaxSIOp>();
  const std::optional<int64_t> number = max ? constantOf(plainValue(max.getRhs())) : std::nullopt;
  if (!number || *number < 1)
    return {};
  return {kernelArgument(plainValue(max.getLhs())), *number};
}

/// The largest power of two that divisors are known to.
static constexpr int64_t largestDivisor = int64_t(1) << 20;

static int64_t divisorOfNumber(int64_t number) { return std::min(analysis::powerOfTwoDivisor(number), largestDivisor); }

/// What divides the argument's value, as the specialisation promises.
static int64_t divisorOfArgument(BlockArgument argument) {
  auto kernel = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto divisibility = kernel.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), "tile.divisibility");
  return divisibility ? divisorOfNumber(divisibility.getInt()) : 1;
}

/// The tile as a matrix: without the outer dimensions of one element.
static layout::Shape matrixShape(ArrayRef<int64_t> shape) {
  ArrayRef<int64_t> matrix = shape.take_back(2);
  return layout::Shape(matrix.begin(), matrix.end());
}

/// How tensor copies hold a tile of the descriptor.
static layout::CopyForm copyFormOf(tile::DescriptorType descriptor) {
  return layout::copyForm(matrixShape(descriptor.getShape()), analysis::sharedElementBits(descriptor.getElementType()));
}

dgpu::BufferType copyBufferType(tile::DescriptorType descriptor, int64_t slots) {
  return copyBufferType(RankedTensorType::get(descriptor.getShape(), descriptor.getElementType()), slots);
}

dgpu::BufferType copyBufferType(RankedTensorType tile, int64_t slots) {
  const layout::Shape shape = matrixShape(tile.getShape());
  MLIRContext *context = tile.getContext();
  const layout::CopyForm form = layout::copyForm(shape, analysis::sharedElementBits(tile.getElementType()));
  return dgpu::BufferType::get(context, slots, shape, tile.getElementType(),
                               dgpu::SharedLayoutAttr::get(context, form.layout));
}

std::string whyNoTensorMap(Value descriptor) {
  tile::MakeDescriptorOp make = descriptorOf(descriptor);
  if (!make)
    return "the descriptor is chosen at run time";
  auto type = cast<tile::DescriptorType>(make.getResult().getType());
  if (type.getShape().size() < 2 || llvm::any_of(type.getShape().drop_back(2), [](int64_t size) { return size != 1; }))
    return "only tiles with two dimensions of more than one element are copied by the hardware, and these come last";
  const int64_t elementBytes = analysis::sharedElementBytes(type.getElementType());
  if (type.getShape().back() * elementBytes < 32)
    return "rows of the tile are shorter than 32 bytes";
  if (make.getPadding() == tile::DescriptorPadding::Nan && type.getElementType().getIntOrFloatBitWidth() == 8)
    return "the hardware has no NaN of 8 bits to pad with";
  BlockArgument base = kernelArgument(plainValue(make.getBase()));
  if (!base)
    return "its base is not an argument of the kernel";
  if (divisorOfArgument(base) % copyAlignmentBytes != 0)
    return "its base is not known to be divisible by 16";
  for (Value size : make.getSizes())
    if (!constantOf(plainValue(size)) && !kernelArgument(plainValue(size)) && !argumentOrMore(size).first)
      return "its sizes are not arguments of the kernel";
  for (auto [dim, stride] : llvm::enumerate(make.getStrides())) {
    std::optional<int64_t> number = constantOf(plainValue(stride));
    BlockArgument argument = kernelArgument(plainValue(stride));
    if (dim + 1 == make.getStrides().size()) {
      if (number != 1)
        return "its last stride is not 1";
    } else if (!number && !argument) {
      return "its strides are not arguments of the kernel";
    } else if ((number ? *number : divisorOfArgument(argument)) * elementBytes % copyAlignmentBytes != 0) {
      return "its rows are not known to begin at multiples of 16 bytes";
    }
  }
  return {};
}

static int64_t divisorOf(Value value, int depth) {
  constexpr int deepest = 16;
  value = plainValue(value);
  if (depth == deepest)
    return 1;
  auto of = [&](Value operand) { return divisorOf(operand, depth + 1); };
  if (std::optional<int64_t> number = constantOf(value))
    return divisorOfNumber(*number);
  if (BlockArgument argument = kernelArgument(value))
    return divisorOfArgument(argument);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop)
      return 1;
    if (argument == loop.getInductionVar())
      return std::gcd(of(loop.getLowerBound()), of(loop.getStep()));
    // A counter of the kernel's own: grows by the same amount in each turn.
    auto sum = loop.getTiedLoopYieldedValue(argument)->get().getDefiningOp<arith::AddIOp>();
    if (!sum || (sum.getLhs() != argument && sum.getRhs() != argument))
      return 1;
    return std::gcd(of(loop.getTiedLoopInit(argument)->get()),
                    of(sum.getLhs() == argument ? sum.getRhs() : sum.getLhs()));
  }
  Operation *op = value.getDefiningOp();
  if (isa<arith::MulIOp>(op))
    return std::min(of(op->getOperand(0)) * of(op->getOperand(1)), largestDivisor);
  if (isa<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp>(op))
    return std::gcd(of(op->getOperand(0)), of(op->getOperand(1)));
  if (isa<arith::SelectOp>(op))
    return std::gcd(of(op->getOperand(1)), of(op->getOperand(2)));
  return 1;
}

int64_t divisorOf(Value value) { return divisorOf(value, 0); }

std::string whyNoTensorCopy(Value descriptor, ValueRange offsets, bool isStore) {
  if (std::string reason = whyNoTensorMap(descriptor); !reason.empty())
    return reason;
  tile::MakeDescriptorOp make = descriptorOf(descriptor);
  const int64_t elementBytes =
      analysis::sharedElementBytes(cast<tile::DescriptorType>(make.getResult().getType()).getElementType());
  if (divisorOf(offsets.back()) * elementBytes % copyAlignmentBytes != 0)
    return "its last offset is not known to be a multiple of 16 bytes";
  if (!isStore)
    return {};
  if (divisorOf(make.getSizes().back()) * elementBytes % copyAlignmentBytes != 0)
    return "its last size is not known to be a multiple of 16 bytes, the step in which the hardware writes";
  for (Value offset : offsets)
    if (kernelArgument(plainValue(offset)) || constantOf(plainValue(offset)).value_or(0) < 0)
      return "an offset may be negative";
  return {};
}

/// {arg = index}, {arg = index, value = the least that it is taken for} or {value = number}.
static Attribute sourceOf(Value value, Builder &builder) {
  const auto named = [&](StringRef name, int64_t number) {
    return builder.getNamedAttr(name, builder.getI64IntegerAttr(number));
  };
  if (const auto [argument, least] = argumentOrMore(value); argument)
    return builder.getDictionaryAttr({named("arg", argument.getArgNumber()), named("value", least)});
  value = plainValue(value);
  if (std::optional<int64_t> number = constantOf(value))
    return builder.getDictionaryAttr(named("value", *number));
  return builder.getDictionaryAttr(named("arg", cast<BlockArgument>(value).getArgNumber()));
}

/// How many boxes a tile has.
static int64_t countBoxes(tile::DescriptorType type, const layout::CopyForm &form) {
  int64_t count = 1;
  for (auto [extent, box] : llvm::zip_equal(matrixShape(type.getShape()), form.box))
    count *= extent / box;
  return count;
}

bool canBeFetchedByHalves(tile::DescriptorType type) {
  // A swizzle repeats after eight rows, and the half must begin with it.
  constexpr int64_t swizzleRows = 8;
  const layout::CopyForm form = copyFormOf(type);
  return countBoxes(type, form) % 2 == 0 || (form.box.front() / 2) % swizzleRows == 0;
}

static DictionaryAttr describeMap(tile::MakeDescriptorOp make, MapUse use) {
  Builder builder(make.getContext());
  auto type = cast<tile::DescriptorType>(make.getResult().getType());
  layout::CopyForm form = copyFormOf(type);
  if (use == MapUse::SharedDotOperands && countBoxes(type, form) % 2 != 0)
    form.box.front() /= 2;
  SmallVector<Attribute> sizes, strides, box;
  for (Value size : make.getSizes())
    sizes.push_back(sourceOf(size, builder));
  for (Value stride : make.getStrides())
    strides.push_back(sourceOf(stride, builder));
  box.append(type.getShape().size() - form.box.size(), builder.getI64IntegerAttr(1));
  for (int64_t extent : form.box)
    box.push_back(builder.getI64IntegerAttr(extent));
  Type element = type.getElementType();
  if (use != MapUse::Plain && element.isF32())
    element = FloatTF32Type::get(make.getContext());
  const bool fillsNan = make.getPadding() == tile::DescriptorPadding::Nan;
  return builder.getDictionaryAttr({
      builder.getNamedAttr("base",
                           builder.getI64IntegerAttr(cast<BlockArgument>(plainValue(make.getBase())).getArgNumber())),
      builder.getNamedAttr("sizes", builder.getArrayAttr(sizes)),
      builder.getNamedAttr("strides", builder.getArrayAttr(strides)),
      builder.getNamedAttr("box", builder.getArrayAttr(box)),
      builder.getNamedAttr("swizzle", builder.getI64IntegerAttr(form.swizzleBytes)),
      builder.getNamedAttr("element", TypeAttr::get(element)),
      builder.getNamedAttr("padding", builder.getStringAttr(fillsNan ? "nan" : "zero")),
  });
}

Value tensorMapFor(Value descriptor, func::FuncOp kernel, MapUse use) {
  const DictionaryAttr description = describeMap(descriptorOf(descriptor), use);
  for (BlockArgument argument : kernel.getArguments())
    if (kernel.getArgAttr(argument.getArgNumber(), dgpu::tensorMapAttrName) == description)
      return argument;
  // The world view stays last.
  const unsigned position = kernel.getNumArguments() - (kernel->hasAttr("tile.kernel") ? 1 : 0);
  const auto attributes = DictionaryAttr::get(
      kernel.getContext(), NamedAttribute(StringAttr::get(kernel.getContext(), dgpu::tensorMapAttrName), description));
  [[maybe_unused]] LogicalResult inserted =
      kernel.insertArgument(position, dgpu::TensorMapType::get(kernel.getContext()), attributes, descriptor.getLoc());
  assert(succeeded(inserted) && "the type of a kernel may change");
  return kernel.getArgument(position);
}

} // namespace ditron::transforms
