//===- Descriptor.cpp - Tensor descriptors --------------------------------------------------------------------------===//
//
// tl.make_tensor_descriptor, and loads and stores of tiles through it.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/frontend/builtins/BuiltinHandlers.h"
#include "ditron/frontend/builtins/BuiltinKeywords.h"
#include "ditron/frontend/builtins/Descriptors.h"

#include "mlir/IR/Matchers.h"

#include <fmt/format.h>

namespace ditron::frontend {

mlir::Value descriptorIr(Emitter &emit, const DescriptorValue &descriptor) {
  if (descriptor.ir)
    return descriptor.ir;
  llvm::SmallVector<mlir::Value> sizes, strides;
  for (const LangValue &size : descriptor.sizes)
    sizes.push_back(size.ir());
  for (const LangValue &stride : descriptor.strides)
    strides.push_back(stride.ir());
  strides.push_back(emit.integerConstant(1, emit.builder.getI64Type()));
  auto type = tile::DescriptorType::get(descriptor.tile.shape(), emit.ir(descriptor.tile.element()));
  auto padding = descriptor.fillsNan ? tile::DescriptorPadding::Nan : tile::DescriptorPadding::Zero;
  return emit.create<tile::MakeDescriptorOp>(type, descriptor.base.ir(), sizes, strides, padding);
}

LangValue emitDescriptor(Emitter &emit, DescriptorValue descriptor) {
  descriptor.ir = descriptorIr(emit, descriptor);
  return LangValue(std::make_shared<const DescriptorValue>(std::move(descriptor)));
}

LangValue consumeDescriptor(Emitter &emit, const DescriptorValue &descriptor, mlir::Value token) {
  DescriptorValue result = descriptor;
  auto consume = [&](mlir::Value value) -> mlir::Value {
    return emit.create<dist::ConsumeTokenOp>(value.getType(), value, token);
  };
  result.ir = consume(descriptorIr(emit, descriptor));
  result.base = emit.wrap(consume(descriptor.base.ir()), descriptor.base.type());
  return LangValue(std::make_shared<const DescriptorValue>(std::move(result)));
}

namespace builtins {
namespace {

/// The elements of a tuple argument of `count` scalar integers, each converted by `convert`, which reports what it refuses.
std::optional<std::vector<LangValue>> integersOf(Evaluator &evaluator, BuiltinCall &call, const ValueArg &argument, size_t count,
                                                 llvm::function_ref<LangValue(size_t, const LangValue &)> convert) {
  llvm::ArrayRef<LangValue> given = argument->isTuple() ? llvm::ArrayRef<LangValue>(argument->elements()) : *argument;
  if (given.size() != count) {
    evaluator.emit.error(argument.range,
                        fmt::format("argument '{}' of {} needs one value per dimension, {} of them, but got {}", argument.name(),
                                    qualifiedName(*call.builtin), count, given.size()));
    return std::nullopt;
  }
  std::vector<LangValue> result;
  for (auto [index, element] : llvm::enumerate(given)) {
    const bool isInteger = element.isLiteral() ? element.constant().isIntegral()
                                               : element.isTensor() && !element.type().isBlock() && element.type().isInt();
    if (!isInteger) {
      evaluator.emit.error(argument.range,
                          fmt::format("argument '{}' of {} must hold scalar integers, but element {} is {}", argument.name(),
                                      qualifiedName(*call.builtin), index, element.describe()));
      return std::nullopt;
    }
    LangValue converted = convert(index, element);
    if (converted.isPoison())
      return std::nullopt;
    result.push_back(std::move(converted));
  }
  return result;
}

LangValue toInteger(Evaluator &evaluator, const LangValue &value, ScalarKind kind, SourceRange range) {
  if (!value.isLiteral())
    return evaluator.emit.cast(value, kind, range);
  if (!evaluator.emit.checkLiteralFits(value.constant(), kind, range))
    return LangValue::poison();
  return evaluator.emit.constantOf(value.constant(), kind);
}

} // namespace

std::optional<std::vector<LangValue>> descriptorOffsets(Evaluator &evaluator, BuiltinCall &call,
                                                        const DescriptorValue &descriptor, const ValueArg &offsets) {
  return integersOf(evaluator, call, offsets, descriptor.tile.rank(), [&](size_t index, const LangValue &offset) {
    if (offset.isTensor() && offset.type().bitWidth() > 32) {
      evaluator.emit
          .error(offsets.range,
                 fmt::format("offsets of {} only support 32 bit integers, but element {} is {}", qualifiedName(*call.builtin), index,
                             offset.describe()))
          .hint("offsets count elements of the tensor; convert with .to(tl.int32)");
      return LangValue::poison();
    }
    return toInteger(evaluator, offset, ScalarKind::Int32, offsets.range);
  });
}

bool fitsDescriptor(Evaluator &evaluator, BuiltinCall &call, const Arg<const DescriptorValue &> &descriptor, const ValueArg &value) {
  if (descriptor->base.type().isConstPointer()) {
    evaluator.emit.error(descriptor.range, fmt::format("Cannot store to a constant pointer: {} through {}", qualifiedName(*call.builtin),
                                                          descriptor->base.type().str()));
    return false;
  }
  if (value->isTensor() && !value->type().isPointer() && value->type().shape() == descriptor->tile.shape())
    return true;
  evaluator.emit.error(value.range,
                      fmt::format("argument 'value' of {} must have the descriptor's block shape {}, but got {}",
                                  qualifiedName(*call.builtin), LangValue::shape(descriptor->tile.shape()).display(),
                                  value->describe()));
  return false;
}

static llvm::SmallVector<mlir::Value> irOf(llvm::ArrayRef<LangValue> values) {
  llvm::SmallVector<mlir::Value> result;
  for (const LangValue &value : values)
    result.push_back(value.ir());
  return result;
}

LangValue makeTensorDescriptor(Evaluator &evaluator, BuiltinCall &call, ValueArg base, ValueArg shape, ValueArg stridesArg,
                               Arg<Dims> block, Arg<llvm::StringRef> padding) {
  Emitter &emit = evaluator.emit;
  if (base->type().isBlock())
    return emit.fail(base.range, fmt::format("argument 'base' of tl.make_tensor_descriptor must be a scalar "
                                                       "pointer, but got {}",
                                                       base->describe()));
  const LangType element = base->type().pointee();
  if (element.isPointer() || element.isBool())
    return emit.fail(base.range,
                     fmt::format("tl.make_tensor_descriptor does not support elements of type {}", element.str()));
  if (block->empty() || block->size() > 5)
    return emit.fail(block.range,
                     fmt::format("a tensor descriptor has 1 to 5 dimensions, but block_shape has {}", block->size()));
  if (!evaluator.checkBlockShape(*block, block.range))
    return LangValue::poison();
  const int64_t elementBytes = element.bitWidth() / 8, rowBytes = block->back() * elementBytes;
  if (rowBytes < smallestDescriptorRow) {
    emit.error(block.range,
               fmt::format("Descriptor block shape must have at least {} bytes in the last dimension, but got {} * {} = {} bytes",
                           smallestDescriptorRow, block->back(), elementBytes, rowBytes))
        .hint(fmt::format("of {} that is {} elements; what lies outside of the tensor is not accessed", element.str(),
                          smallestDescriptorRow / elementBytes));
    return LangValue::poison();
  }
  DescriptorValue descriptor;
  descriptor.base = *base;
  descriptor.tile = element.withShape(*block);

  descriptor.fillsNan = *padding == "nan";
  if (*padding != "zero" && *padding != "nan")
    return emit.fail(padding.range,
                     fmt::format("padding_option must be 'zero' or 'nan', but got '{}'", padding->str()));
  if (descriptor.fillsNan && !element.isFloat())
    return emit.fail(padding.range,
                     fmt::format("padding_option 'nan' needs floating point elements, but they are {}", element.str()));

  auto sizes = integersOf(evaluator, call, shape, block->size(), [&](size_t, const LangValue &size) {
    const bool isWide = size.isTensor() && size.type().bitWidth() == 64;
    return toInteger(evaluator, size, isWide ? ScalarKind::Int64 : ScalarKind::Int32, shape.range);
  });
  auto strides = integersOf(evaluator, call, stridesArg, block->size(), [&](size_t index, const LangValue &stride) {
    const bool isOne = stride.isLiteral() ? stride.constant().toInt64() == 1 : mlir::matchPattern(stride.ir(), mlir::m_One());
    if (index + 1 == block->size() && !isOne) {
      emit.error(stridesArg.range,
                 fmt::format("Tensor descriptor last dim must be 1: the last stride must be the compile-time 1, but got {}",
                             stride.describe()))
          .hint("write 1, or pass an argument that is 1: it is specialised");
      return LangValue::poison();
    }
    return toInteger(evaluator, stride, ScalarKind::Int64, stridesArg.range);
  });
  if (!sizes || !strides)
    return LangValue::poison();
  descriptor.sizes = std::move(*sizes);
  descriptor.strides = std::move(*strides);
  descriptor.strides.pop_back();
  return emitDescriptor(emit, std::move(descriptor));
}

LangValue loadDescriptor(Evaluator &evaluator, BuiltinCall &call, Arg<const DescriptorValue &> descriptor,
                         ValueArg offsetsArg, Arg<llvm::StringRef> evictionPolicy) {
  Emitter &emit = evaluator.emit;
  auto offsets = descriptorOffsets(evaluator, call, *descriptor, offsetsArg);
  auto policy = evictionPolicyOf(evaluator, call, evictionPolicy);
  if (!offsets || !policy)
    return LangValue::poison();
  auto op = emit.create<tile::DescriptorLoadOp>(emit.ir(descriptor->tile), descriptorIr(emit, *descriptor),
                                                irOf(*offsets), *policy);
  return emit.wrap(op.getResult(), descriptor->tile);
}

LangValue storeDescriptor(Evaluator &evaluator, BuiltinCall &call, Arg<const DescriptorValue &> descriptor, ValueArg offsetsArg,
                          ValueArg valueArg) {
  Emitter &emit = evaluator.emit;
  if (!fitsDescriptor(evaluator, call, descriptor, valueArg))
    return LangValue::poison();
  auto offsets = descriptorOffsets(evaluator, call, *descriptor, offsetsArg);
  if (!offsets)
    return LangValue::poison();
  LangValue value = emit.cast(*valueArg, descriptor->tile.element(), valueArg.range);
  if (value.isPoison())
    return value;
  emit.create<tile::DescriptorStoreOp>(descriptorIr(emit, *descriptor), irOf(*offsets), value.ir());
  return LangValue::none();
}

} // namespace builtins
} // namespace ditron::frontend
