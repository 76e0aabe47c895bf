//===- LowerDescriptors.cpp - Descriptor accesses as pointers and masks ---------------------------------------------------===//
//
// Replaces loads and stores through tensor descriptors, those that no tensor copy performs, by loads and stores of pointers, and
// removes the descriptors.
//
// A tile of shape [B0, B1] at offsets [o0, o1] of a tensor with sizes [n0, n1] and strides [s0, 1]:
//
//   origin  = base + (o0 * s0 + o1)                      a scalar, in 64 bits
//   pointer = origin + (arange(B0)[:, None] * s0 + arange(B1)[None, :])        offsets inside of the tile, in 32 bits
//   mask    = (arange(B0)[:, None] < n0 - o0) & (arange(B1)[None, :] < n1 - o1)
//
// which is how a careful author writes it: the axis analysis sees contiguity and divisibility, and the part that changes in a loop
// is one scalar. The mask takes this form when the offset cannot be negative; else it is an unsigned comparison of offset + arange
// with the size, which excludes what lies before the tensor too. Whatever does not change in the loops around the access is computed
// before them.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/transforms/Constants.h"
#include "ditron/transforms/ProgramOrder.h"
#include "ditron/transforms/tensor_copies/TensorMaps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_LOWERDESCRIPTORS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// Whether a 32-bit value cannot be negative, by how it is computed. Sums and products are taken not to overflow.
class SignAnalysis {
public:
  bool isNonNegative(Value value) {
    // What a loop carries is not negative if its start is not, and one step from a value that is not gives none that is.
    if (llvm::is_contained(assumed, value))
      return true;
    const size_t before = assumed.size();
    assumed.push_back(value);
    if (derive(value))
      return true;
    assumed.resize(before); // and all that relied on it
    return false;
  }

private:
  bool both(Operation *op) { return isNonNegative(op->getOperand(0)) && isNonNegative(op->getOperand(1)); }

  bool derive(Value value) {
    if (std::optional<int64_t> number = constantOf(value))
      return *number >= 0;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (!loop)
        return false;
      if (argument == loop.getInductionVar())
        return isNonNegative(loop.getLowerBound());
      OpOperand *init = loop.getTiedLoopInit(argument), *yielded = loop.getTiedLoopYieldedValue(argument);
      return isNonNegative(init->get()) && isNonNegative(yielded->get());
    }
    Operation *op = value.getDefiningOp();
    if (isa<tile::ProgramIdOp, tile::NumProgramsOp>(op))
      return true;
    if (isa<arith::AddIOp, arith::MulIOp, arith::DivSIOp, arith::MinSIOp>(op))
      return both(op);
    if (isa<arith::MaxSIOp, arith::AndIOp>(op))
      return isNonNegative(op->getOperand(0)) || isNonNegative(op->getOperand(1));
    if (isa<arith::RemSIOp, arith::ExtSIOp, tile::HintOp, dist::ConsumeTokenOp>(op))
      return isNonNegative(op->getOperand(0));
    if (auto select = dyn_cast<arith::SelectOp>(op))
      return isNonNegative(select.getTrueValue()) && isNonNegative(select.getFalseValue());
    return false;
  }

  SmallVector<Value> assumed;
};

/// Creates pure operations, each outside of the loops in which nothing that it needs changes.
class HoistingBuilder {
public:
  HoistingBuilder(Operation *before) : builder(before), loc(before->getLoc()) {}

  template <typename Op, typename... Args> Value create(Args &&...args) {
    auto op = Op::create(builder, loc, std::forward<Args>(args)...);
    while (auto loop = dyn_cast_or_null<LoopLikeOpInterface>(op->getParentOp())) {
      if (!llvm::all_of(op->getOperands(), [&](Value operand) { return loop.isDefinedOutsideOfLoop(operand); }))
        break;
      op->moveBefore(loop);
    }
    return op->getResult(0);
  }

  Value integer(int64_t value, Type type) { return create<arith::ConstantOp>(builder.getIntegerAttr(type, value)); }
  Value i32(int64_t value) { return integer(value, builder.getI32Type()); }

  /// The integer as i64 or i32.
  Value extend(Value value) {
    Type i64 = builder.getI64Type();
    return value.getType() == i64 ? value : create<arith::ExtSIOp>(i64, value);
  }
  Value truncate(Value value) {
    Type i32 = builder.getI32Type();
    return value.getType() == i32 ? value : create<arith::TruncIOp>(i32, value);
  }

  Value splat(Value scalar, ArrayRef<int64_t> shape) {
    return create<tile::SplatOp>(RankedTensorType::get(shape, scalar.getType()), scalar);
  }
  Value arange(int64_t extent) {
    return create<tile::ArangeOp>(RankedTensorType::get(extent, builder.getI32Type()), 0,
                                  static_cast<uint32_t>(extent));
  }
  /// A vector along one dimension, repeated along all others.
  Value alongDimension(Value vector, size_t dim, ArrayRef<int64_t> shape) {
    Type element = tile::elementTypeOf(vector.getType());
    SmallVector<int64_t> expanded = {shape[dim]};
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (axis == dim)
        continue;
      expanded.insert(expanded.begin() + axis, 1);
      vector =
          create<tile::ExpandDimsOp>(RankedTensorType::get(expanded, element), vector, static_cast<uint32_t>(axis));
    }
    auto full = RankedTensorType::get(shape, element);
    return vector.getType() == full ? vector : create<tile::BroadcastOp>(full, vector);
  }

  OpBuilder builder;
  Location loc;
};

/// What a descriptor's value consists of, tokens applied.
struct DescriptorParts {
  tile::MakeDescriptorOp make;
  Value base;
};

class AccessLowering {
public:
  LogicalResult lower(tile::DescriptorLoadOp load) {
    FailureOr<DescriptorParts> parts = partsOf(load.getDescriptor(), load);
    if (failed(parts))
      return parts;
    HoistingBuilder build(load);
    Value pointers = pointersOf(build, *parts, load.getOffsets());
    Value mask = maskOf(build, *parts, load.getOffsets());
    Value other;
    if (mask && parts->make.getPadding() == tile::DescriptorPadding::Nan) {
      auto element = cast<FloatType>(load.getType().getElementType());
      APFloat nan = APFloat::getNaN(element.getFloatSemantics());
      other = build.create<arith::ConstantOp>(DenseElementsAttr::get(load.getType(), nan));
    }
    auto replacement = tile::LoadOp::create(build.builder, load.getLoc(), pointers, mask, other);
    replacement.setEvict(load.getEvict());
    load.replaceAllUsesWith(replacement.getResult());
    load.erase();
    return success();
  }

  LogicalResult lower(tile::DescriptorStoreOp store) {
    FailureOr<DescriptorParts> parts = partsOf(store.getDescriptor(), store);
    if (failed(parts))
      return parts;
    HoistingBuilder build(store);
    Value pointers = pointersOf(build, *parts, store.getOffsets());
    Value mask = maskOf(build, *parts, store.getOffsets());
    tile::StoreOp::create(build.builder, store.getLoc(), pointers, store.getValue(), mask);
    // Whoever accesses the tensor later finds what is stored, as behind a tensor copy (docs/memory-model.md).
    if (mayBeAccessedLater(store))
      dist::SyncThreadsOp::create(build.builder, store.getLoc());
    store.erase();
    return success();
  }

private:
  /// Whether an access that is no descriptor store may come after the store and meet what it writes.
  static bool mayBeAccessedLater(tile::DescriptorStoreOp store) {
    tile::MakeDescriptorOp written = descriptorOf(store.getDescriptor());
    const BlockArgument object = written ? argumentBehind(written.getBase()) : BlockArgument();
    auto meets = [&](Operation *op) {
      if (!isa<tile::LoadOp, tile::StoreOp, tile::DescriptorLoadOp>(op) || !mayPrecede(store, op))
        return false;
      Value pointer = op->getOperand(0);
      if (isa<tile::DescriptorType>(pointer.getType())) {
        tile::MakeDescriptorOp read = descriptorOf(pointer);
        pointer = read ? read.getBase() : Value();
      }
      const BlockArgument accessed = pointer ? argumentBehind(pointer) : BlockArgument();
      return !accessed || !object || accessed == object;
    };
    return store->getParentOfType<func::FuncOp>()
        ->walk([&](Operation *op) { return meets(op) ? WalkResult::interrupt() : WalkResult::advance(); })
        .wasInterrupted();
  }

  /// Follows tokens to the definition; each token is applied to the base where it was to the descriptor. Reports at `access` what has
  /// no definition.
  FailureOr<DescriptorParts> partsOf(Value descriptor, Operation *access) {
    if (auto known = cache.find(descriptor); known != cache.end())
      return known->second;
    FailureOr<DescriptorParts> parts;
    if (auto make = descriptor.getDefiningOp<tile::MakeDescriptorOp>()) {
      parts = DescriptorParts{make, make.getBase()};
    } else if (auto consume = descriptor.getDefiningOp<dist::ConsumeTokenOp>()) {
      parts = partsOf(consume.getSource(), access);
      if (failed(parts))
        return parts;
      OpBuilder builder(consume);
      parts->base = dist::ConsumeTokenOp::create(builder, consume.getLoc(), parts->base.getType(), parts->base,
                                                 consume.getToken());
    } else {
      return access->emitError(
          "the descriptor of this access is chosen at run time; descriptors cannot be carried by loops and "
          "branches");
    }
    cache.insert({descriptor, *parts});
    return parts;
  }

  Value pointersOf(HoistingBuilder &build, const DescriptorParts &parts, ValueRange offsets) {
    tile::MakeDescriptorOp make = parts.make;
    ArrayRef<int64_t> shape = make.getResult().getType().getShape();
    Value origin, inside;
    auto sum = [&](Value &total, Value part) { total = total ? build.create<arith::AddIOp>(total, part) : part; };
    for (auto [dim, offset, stride] : llvm::enumerate(offsets, make.getStrides())) {
      const bool isLast = dim + 1 == shape.size();
      if (constantOf(offset) != 0) {
        Value distance = build.extend(offset);
        sum(origin, isLast ? distance : build.create<arith::MulIOp>(distance, stride));
      }
      if (shape[dim] == 1)
        continue;
      Value steps = build.arange(shape[dim]);
      if (!isLast)
        steps = build.create<arith::MulIOp>(steps, build.splat(build.truncate(stride), shape[dim]));
      sum(inside, build.alongDimension(steps, dim, shape));
    }
    Value first = origin ? build.create<tile::AddPtrOp>(parts.base.getType(), parts.base, origin) : parts.base;
    Value pointers = build.splat(first, shape);
    return inside ? build.create<tile::AddPtrOp>(pointers.getType(), pointers, inside) : pointers;
  }

  /// Which elements of the tile lie in the tensor; null if all do.
  Value maskOf(HoistingBuilder &build, const DescriptorParts &parts, ValueRange offsets) {
    tile::MakeDescriptorOp make = parts.make;
    ArrayRef<int64_t> shape = make.getResult().getType().getShape();
    Value mask;
    for (auto [dim, offset, size] : llvm::enumerate(offsets, make.getSizes())) {
      std::optional<int64_t> begin = constantOf(offset), end = constantOf(size);
      if (begin && end && *begin >= 0 && *begin + shape[dim] <= *end)
        continue;
      Value steps = build.arange(shape[dim]), limit = sizeOf32(build, size);
      Value inRange;
      if (SignAnalysis().isNonNegative(offset)) {
        limit = begin == 0 ? limit : build.create<arith::SubIOp>(limit, offset);
        inRange = build.create<arith::CmpIOp>(arith::CmpIPredicate::slt, steps, build.splat(limit, shape[dim]));
      } else {
        Value index = build.create<arith::AddIOp>(build.splat(offset, shape[dim]), steps);
        inRange = build.create<arith::CmpIOp>(arith::CmpIPredicate::ult, index, build.splat(limit, shape[dim]));
      }
      Value all = build.alongDimension(inRange, dim, shape);
      mask = mask ? build.create<arith::AndIOp>(mask, all) : all;
    }
    return mask;
  }

  /// The size in 32 bits: offsets have no more.
  Value sizeOf32(HoistingBuilder &build, Value size) {
    if (size.getType().isInteger(32))
      return size;
    Value largest = build.integer(INT32_MAX, size.getType());
    return build.truncate(build.create<arith::MinSIOp>(size, largest));
  }

  DenseMap<Value, DescriptorParts> cache;
};

class LowerDescriptorsPass : public impl::LowerDescriptorsBase<LowerDescriptorsPass> {
public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<Operation *> accesses;
    module.walk([&](Operation *op) {
      if (isa<tile::DescriptorLoadOp, tile::DescriptorStoreOp>(op))
        accesses.push_back(op);
    });
    AccessLowering lowering;
    for (Operation *access : accesses) {
      auto load = dyn_cast<tile::DescriptorLoadOp>(access);
      if (failed(load ? lowering.lower(load) : lowering.lower(cast<tile::DescriptorStoreOp>(access))))
        return signalPassFailure();
    }
    eraseDescriptors(module);
  }

private:
  /// Descriptors without accesses, users before definitions.
  void eraseDescriptors(ModuleOp module) {
    SmallVector<Operation *> descriptors;
    module.walk([&](Operation *op) {
      if (op->getNumResults() == 1 && isa<tile::DescriptorType>(op->getResult(0).getType()))
        descriptors.push_back(op);
    });
    for (Operation *op : llvm::reverse(descriptors))
      if (op->use_empty())
        op->erase();
  }
};

} // namespace
} // namespace ditron::transforms
