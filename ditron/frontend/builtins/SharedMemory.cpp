//===- SharedMemory.cpp - Shared memory that a kernel manages itself -----------------------------------------------===//
//
// allocate_smem and what is done with its result, an aggregate of a pointer and of what is known at compile time. The memory
// is the block's for the whole kernel, wherever the call stands. Elements are stored row by row; a swizzle permutes groups of
// `vec` elements within a row: group g of row r lies where group g ^ ((r / per_phase) % max_phase) would.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dist/Dist.h"
#include "ditron/frontend/builtins/BuiltinHandlers.h"

#include <fmt/format.h>

namespace ditron::frontend::builtins {
namespace {

enum Field { Pointer, ElementType, DType, Shape, Numel, Rank, Bytes, Vec, PerPhase, MaxPhase, NumFields };

const std::shared_ptr<const ClassInfo> &sharedMemoryClass() {
  static const std::shared_ptr<const ClassInfo> cls = [] {
    auto info = std::make_shared<ClassInfo>();
    info->name = "SharedMemoryDesc";
    for (const char *name : {"ptr", "element_ty", "dtype", "shape", "numel", "rank", "nbytes", "vec", "per_phase", "max_phase"})
      info->fields.push_back({name, {}, nullptr, nullptr, nullptr});
    return info;
  }();
  return cls;
}

struct Swizzle {
  int64_t vec = 1, perPhase = 1, maxPhase = 1;
};

LangValue descriptor(LangValue pointer, const LangType &element, llvm::ArrayRef<int64_t> shape, Swizzle swizzle) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  std::vector<LangValue> fields(NumFields);
  fields[Pointer] = std::move(pointer);
  fields[ElementType] = fields[DType] = LangValue(element);
  fields[Shape] = LangValue::shape(shape);
  fields[Numel] = LangValue::integer(count);
  fields[Rank] = LangValue::integer(int64_t(shape.size()));
  fields[Bytes] = LangValue::integer(count * (element.isBool() ? 8 : element.bitWidth()) / 8);
  fields[Vec] = LangValue::integer(swizzle.vec);
  fields[PerPhase] = LangValue::integer(swizzle.perPhase);
  fields[MaxPhase] = LangValue::integer(swizzle.maxPhase);
  return LangValue(AggregateValue{sharedMemoryClass(), std::make_shared<const std::vector<LangValue>>(std::move(fields))});
}

/// The descriptor argument of a call, read back.
struct Memory {
  LangValue pointer;
  LangType element;
  llvm::SmallVector<int64_t> shape;
  Swizzle swizzle;
};

std::optional<Memory> memoryOf(Evaluator &evaluator, BuiltinCall &call, const ValueArg &smem) {
  const LangValue &value = *smem;
  if (!value.isAggregate() || value.classInfo() != sharedMemoryClass().get()) {
    reject(evaluator, call, smem, "shared memory from allocate_smem");
    return std::nullopt;
  }
  const std::vector<LangValue> &fields = value.parts();
  Memory memory;
  memory.pointer = fields[Pointer];
  memory.element = fields[ElementType].asType();
  for (const LangValue &size : fields[Shape].elements())
    memory.shape.push_back(*size.constant().toInt64());
  memory.swizzle = {*fields[Vec].constant().toInt64(), *fields[PerPhase].constant().toInt64(), *fields[MaxPhase].constant().toInt64()};
  return memory;
}

/// Index values as a list: a single one may stand without brackets.
std::vector<LangValue> indexList(const LangValue &value) {
  if (value.isNone())
    return {};
  return value.isTuple() ? value.elements() : std::vector<LangValue>{value};
}

/// An index as int32, checked against the extent where it is known.
LangValue checkedIndex(Evaluator &evaluator, const LangValue &index, int64_t size, SourceRange range) {
  if (index.isLiteral() && index.constant().isIntegral()) {
    auto number = index.constant().toInt64();
    if (!number || *number < 0 || *number >= size)
      return evaluator.emit.fail(range, fmt::format("index {} is outside of an extent of {}", index.display(), size));
  }
  return scalarAs(evaluator, index, ScalarKind::Int32, range, "an index");
}

/// The pointer to an element. With fewer indices than dimensions, the rest is 0.
LangValue elementPointer(Evaluator &evaluator, const Memory &memory, llvm::ArrayRef<LangValue> indices, SourceRange range) {
  Emitter &emit = evaluator.emit;
  if (indices.size() > memory.shape.size())
    return emit.fail(range, fmt::format("{} indices for shared memory of rank {}", indices.size(), memory.shape.size()));
  std::vector<LangValue> at;
  for (size_t dim = 0; dim < memory.shape.size(); ++dim) {
    at.push_back(checkedIndex(evaluator, dim < indices.size() ? indices[dim] : LangValue::integer(0), memory.shape[dim], range));
    if (at.back().isPoison())
      return LangValue::poison();
  }
  auto number = [&](int64_t value) { return emit.constantOf(ConstValue::integer(value), ScalarKind::Int32); };
  auto apply = [&](BinaryOp op, const LangValue &a, int64_t b) { return emit.binary(op, a, number(b), range); };
  const Swizzle &swizzle = memory.swizzle;
  size_t last = memory.shape.size() - 1;
  if (swizzle.maxPhase > 1 && last > 0) {
    LangValue phase = apply(BinaryOp::Mod, apply(BinaryOp::FloorDiv, at[last - 1], swizzle.perPhase), swizzle.maxPhase);
    LangValue group = emit.binary(BinaryOp::BitXor, apply(BinaryOp::FloorDiv, at[last], swizzle.vec), phase, range);
    at[last] = emit.binary(BinaryOp::Add, apply(BinaryOp::Mult, group, swizzle.vec), apply(BinaryOp::Mod, at[last], swizzle.vec), range);
  }
  LangValue linear = at[0];
  for (size_t dim = 1; dim <= last; ++dim)
    linear = emit.binary(BinaryOp::Add, apply(BinaryOp::Mult, linear, memory.shape[dim]), at[dim], range);
  return indices.empty() ? memory.pointer : emit.binary(BinaryOp::Add, memory.pointer, linear, range);
}

} // namespace

LangValue allocateShared(Evaluator &evaluator, BuiltinCall &call, Arg<LangType> element, Arg<Dims> shape, Arg<int64_t> vec,
                         Arg<int64_t> perPhase, Arg<int64_t> maxPhase) {
  Emitter &emit = evaluator.emit;
  if (element->isVoid() || element->isBlock())
    return reject(evaluator, call, element, "the type of a scalar");
  Swizzle swizzle{*vec, *perPhase, *maxPhase};
  if (shape->empty())
    return emit.fail(shape.range, "the shape of shared memory has at least one dimension");
  int64_t count = 1;
  for (int64_t size : *shape) {
    if (size < 1 || size > maxBlockElements || (count *= size) > maxBlockElements)
      return emit.fail(shape.range, fmt::format("the sizes of shared memory are positive, and at most {} elements in all",
                                                maxBlockElements));
  }
  for (int64_t part : {swizzle.vec, swizzle.perPhase, swizzle.maxPhase})
    if (part < 1 || (part & (part - 1)) != 0)
      return emit.fail(call.range, fmt::format("the parts of a swizzle are powers of two, not {}", part));
  if (swizzle.maxPhase > 1 && shape->back() < swizzle.vec * swizzle.maxPhase)
    return emit.fail(call.range, fmt::format("a swizzle of {} groups of {} elements needs rows of as many, not of {}",
                                             swizzle.maxPhase, swizzle.vec, shape->back()));
  int64_t bytes = count * (element->isBool() ? 8 : element->bitWidth()) / 8;
  // Tensor copies ask for 128 bytes, their widest swizzle for 1024.
  int64_t alignment = bytes >= 1024 ? 1024 : bytes >= 128 ? 128 : 16;
  LangType pointer = LangType::pointer(*element);
  auto op = emit.create<dist::SharedAllocOp>(emit.ir(pointer), bytes, alignment);
  return descriptor(emit.wrap(op.getResult(), pointer), *element, *shape, swizzle);
}

LangValue sharedIndex(Evaluator &evaluator, BuiltinCall &call, ValueArg smem, ValueArg indexArg) {
  Emitter &emit = evaluator.emit;
  auto memory = memoryOf(evaluator, call, smem);
  if (!memory)
    return LangValue::poison();
  if (memory->shape.size() < 2)
    return emit.fail(smem.range, "smem_index needs shared memory of rank 2 or more");
  LangValue index = checkedIndex(evaluator, *indexArg, memory->shape.front(), indexArg.range);
  if (index.isPoison())
    return index;
  int64_t stage = 1;
  for (int64_t size : llvm::ArrayRef(memory->shape).drop_front())
    stage *= size;
  LangValue offset = emit.binary(BinaryOp::Mult, index, emit.constantOf(ConstValue::integer(stage), ScalarKind::Int32), call.range);
  return descriptor(emit.binary(BinaryOp::Add, memory->pointer, offset, call.range), memory->element,
                    llvm::ArrayRef(memory->shape).drop_front(), memory->swizzle);
}

namespace {

/// An element of shared memory that all indices are given for.
struct Element {
  LangValue pointer; ///< Poison after a reported error.
  LangType type;
};

Element elementOf(Evaluator &evaluator, BuiltinCall &call, const ValueArg &smem, const ValueArg &indicesArg) {
  auto memory = memoryOf(evaluator, call, smem);
  if (!memory)
    return {LangValue::poison(), {}};
  std::vector<LangValue> indices = indexList(*indicesArg);
  if (indices.size() != memory->shape.size())
    return {evaluator.emit.fail(indicesArg.range, fmt::format("{} indices for shared memory of rank {}", indices.size(), memory->shape.size())),
            {}};
  return {elementPointer(evaluator, *memory, indices, indicesArg.range), memory->element};
}

} // namespace

LangValue sharedLoad(Evaluator &evaluator, BuiltinCall &call, ValueArg smem, ValueArg indicesArg) {
  Emitter &emit = evaluator.emit;
  auto [pointer, elementType] = elementOf(evaluator, call, smem, indicesArg);
  if (pointer.isPoison())
    return pointer;
  return emit.wrap(emit.create<dist::LdOp>(emit.ir(elementType), tile::MemoryOrder::Relaxed, tile::MemoryScope::Block, pointer.ir()), elementType);
}

LangValue sharedStore(Evaluator &evaluator, BuiltinCall &call, ValueArg smem, ValueArg valueArg, ValueArg indicesArg) {
  Emitter &emit = evaluator.emit;
  auto [pointer, elementType] = elementOf(evaluator, call, smem, indicesArg);
  if (pointer.isPoison())
    return pointer;
  LangValue value = scalarFor(evaluator, call, valueArg, elementType);
  if (value.isPoison())
    return LangValue::poison();
  emit.create<dist::StOp>(tile::MemoryOrder::Relaxed, tile::MemoryScope::Block, pointer.ir(), value.ir());
  return LangValue::none();
}

LangValue sharedPointer(Evaluator &evaluator, BuiltinCall &call, ValueArg smem, ValueArg indices) {
  auto memory = memoryOf(evaluator, call, smem);
  if (!memory)
    return LangValue::poison();
  return elementPointer(evaluator, *memory, indexList(*indices), indices.range);
}

LangValue sharedAddress(Evaluator &evaluator, BuiltinCall &call, ValueArg smem, ValueArg indices) {
  Emitter &emit = evaluator.emit;
  LangValue pointer = sharedPointer(evaluator, call, smem, indices);
  if (pointer.isPoison())
    return pointer;
  auto op = emit.create<dist::IntrinsicOp>(mlir::TypeRange(emit.builder.getI32Type()), emit.builder.getStringAttr("shared_address"),
                                           mlir::ValueRange(pointer.ir()), mlir::DictionaryAttr());
  return emit.wrap(op.getResult(0), ScalarKind::UInt32);
}

LangValue sharedDealloc(Evaluator &evaluator, BuiltinCall &call, ValueArg smem) {
  return memoryOf(evaluator, call, smem) ? LangValue::none() : LangValue::poison();
}

} // namespace ditron::frontend::builtins
