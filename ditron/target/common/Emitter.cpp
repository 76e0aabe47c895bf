//===- Emitter.cpp - A builder for the scalar code of one thread --------------------------------------------------------===//
//
// See Emitter.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/Emitter.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace ditron::target {

Value Emitter::constant(Type integer, int64_t value) {
  return LLVM::ConstantOp::create(*this, integer, IntegerAttr::get(integer, value));
}

Value Emitter::zero(Type type) {
  if (isa<IntegerType>(type))
    return constant(type, 0);
  return LLVM::ZeroOp::create(*this, type);
}

std::optional<int64_t> Emitter::constantOf(Value value) {
  APInt result;
  if (matchPattern(value, m_ConstantInt(&result)))
    return result.getSExtValue();
  return std::nullopt;
}

/// The value of two constants combined, or null.
static Value foldConstants(Emitter &e, Value lhs, Value rhs, llvm::function_ref<int64_t(int64_t, int64_t)> combine) {
  std::optional<int64_t> left = e.constantOf(lhs), right = left ? e.constantOf(rhs) : std::nullopt;
  return right ? e.constant(lhs.getType(), combine(*left, *right)) : Value();
}

Value Emitter::add(Value lhs, Value rhs) {
  if (constantOf(lhs) == 0)
    return rhs;
  if (constantOf(rhs) == 0)
    return lhs;
  if (Value folded = foldConstants(*this, lhs, rhs, [](int64_t a, int64_t b) { return a + b; }))
    return folded;
  return LLVM::AddOp::create(*this, lhs, rhs);
}

Value Emitter::sub(Value lhs, Value rhs) {
  if (constantOf(rhs) == 0)
    return lhs;
  return LLVM::SubOp::create(*this, lhs, rhs);
}

Value Emitter::mul(Value lhs, Value rhs) {
  if (constantOf(lhs) == 1)
    return rhs;
  if (constantOf(rhs) == 1)
    return lhs;
  if (Value folded = foldConstants(*this, lhs, rhs, [](int64_t a, int64_t b) { return a * b; }))
    return folded;
  return LLVM::MulOp::create(*this, lhs, rhs);
}

Value Emitter::bitAnd(Value lhs, Value rhs) { return LLVM::AndOp::create(*this, lhs, rhs); }

Value Emitter::bitOr(Value lhs, Value rhs) {
  if (constantOf(lhs) == 0)
    return rhs;
  if (constantOf(rhs) == 0)
    return lhs;
  return LLVM::OrOp::create(*this, lhs, rhs);
}

Value Emitter::bitXor(Value lhs, Value rhs) {
  if (constantOf(lhs) == 0)
    return rhs;
  if (constantOf(rhs) == 0)
    return lhs;
  return LLVM::XOrOp::create(*this, lhs, rhs);
}

Value Emitter::shl(Value value, int amount) {
  return amount == 0 ? value : LLVM::ShlOp::create(*this, value, constant(value.getType(), amount)).getResult();
}

Value Emitter::lshr(Value value, int amount) {
  return amount == 0 ? value : LLVM::LShrOp::create(*this, value, constant(value.getType(), amount)).getResult();
}

Value Emitter::zextOrTrunc(Value value, Type type) {
  unsigned from = value.getType().getIntOrFloatBitWidth(), to = type.getIntOrFloatBitWidth();
  if (from == to)
    return value;
  if (from < to)
    return LLVM::ZExtOp::create(*this, type, value);
  return LLVM::TruncOp::create(*this, type, value);
}

Value Emitter::sextOrTrunc(Value value, Type type) {
  unsigned from = value.getType().getIntOrFloatBitWidth(), to = type.getIntOrFloatBitWidth();
  if (from == to)
    return value;
  if (from < to)
    return LLVM::SExtOp::create(*this, type, value);
  return LLVM::TruncOp::create(*this, type, value);
}

Value Emitter::compare(LLVM::ICmpPredicate predicate, Value lhs, Value rhs) {
  return LLVM::ICmpOp::create(*this, predicate, lhs, rhs);
}

Value Emitter::isZero(Value value) { return compare(LLVM::ICmpPredicate::eq, value, constant(value.getType(), 0)); }
Value Emitter::isNotZero(Value value) { return compare(LLVM::ICmpPredicate::ne, value, constant(value.getType(), 0)); }

Value Emitter::bitOf(Value value, int position) {
  return isNotZero(bitAnd(value, constant(value.getType(), int64_t(1) << position)));
}

Value Emitter::select(Value condition, Value yes, Value no) {
  return yes == no ? yes : LLVM::SelectOp::create(*this, condition, yes, no).getResult();
}

Value Emitter::conjunction(Value lhs, Value rhs) {
  if (!lhs)
    return rhs;
  if (!rhs)
    return lhs;
  return bitAnd(lhs, rhs);
}

unsigned Emitter::bitWidth(Type scalar) {
  return isa<LLVM::LLVMPointerType>(scalar) ? 64 : scalar.getIntOrFloatBitWidth();
}

Value Emitter::toBits(Value value) {
  Type type = value.getType();
  if (isa<IntegerType>(type))
    return value;
  Type bits = getIntegerType(bitWidth(type));
  if (isa<LLVM::LLVMPointerType>(type))
    return LLVM::PtrToIntOp::create(*this, bits, value);
  return LLVM::BitcastOp::create(*this, bits, value);
}

Value Emitter::fromBits(Value bits, Type type) {
  if (bits.getType() == type)
    return bits;
  if (isa<LLVM::LLVMPointerType>(type))
    return LLVM::IntToPtrOp::create(*this, type, bits);
  return LLVM::BitcastOp::create(*this, type, bits);
}

Value Emitter::bitcast(Value value, Type type) { return fromBits(toBits(value), type); }

Value Emitter::addBytes(Value ptr, Value bytes) {
  if (std::optional<int64_t> known = constantOf(bytes))
    return addBytes(ptr, *known);
  return LLVM::GEPOp::create(*this, ptr.getType(), getI8Type(), ptr, ArrayRef<LLVM::GEPArg>{bytes});
}

Value Emitter::addBytes(Value ptr, int64_t bytes) {
  if (bytes == 0)
    return ptr;
  if (bytes != static_cast<int32_t>(bytes))
    return LLVM::GEPOp::create(*this, ptr.getType(), getI8Type(), ptr, ArrayRef<LLVM::GEPArg>{i64(bytes)});
  return LLVM::GEPOp::create(*this, ptr.getType(), getI8Type(), ptr,
                             ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(bytes)});
}

Value Emitter::packVector(ValueRange values) {
  auto type = VectorType::get({static_cast<int64_t>(values.size())}, values.front().getType());
  Value vector = LLVM::PoisonOp::create(*this, type);
  for (auto [i, value] : llvm::enumerate(values))
    vector = LLVM::InsertElementOp::create(*this, vector, value, i32(i));
  return vector;
}

SmallVector<Value> Emitter::unpackVector(Value vector) {
  SmallVector<Value> values;
  int64_t count = cast<VectorType>(vector.getType()).getNumElements();
  for (int64_t i = 0; i < count; ++i)
    values.push_back(LLVM::ExtractElementOp::create(*this, vector, i32(i)));
  return values;
}

Value Emitter::allocaAtEntry(Type element, int64_t count, int alignment) {
  OpBuilder::InsertionGuard guard(*this);
  Operation *parent = getInsertionBlock()->getParentOp();
  while (!isa<FunctionOpInterface>(parent))
    parent = parent->getParentOp();
  setInsertionPointToStart(&cast<FunctionOpInterface>(parent).getFunctionBody().front());
  return LLVM::AllocaOp::create(*this, pointerType(), element, i64(count), alignment);
}

Type memoryType(Type storage) {
  if (storage.isInteger(1))
    return IntegerType::get(storage.getContext(), 8);
  if (isa<LLVM::LLVMPointerType>(storage))
    return IntegerType::get(storage.getContext(), 64);
  return storage;
}

Value toMemory(Emitter &e, Value value) {
  if (value.getType().isInteger(1))
    return e.zextOrTrunc(value, e.getI8Type());
  return isa<LLVM::LLVMPointerType>(value.getType()) ? e.toBits(value) : value;
}

Value fromMemory(Emitter &e, Value value, Type storage) {
  if (storage.isInteger(1))
    return e.isNotZero(value);
  return isa<LLVM::LLVMPointerType>(storage) ? e.fromBits(value, storage) : value;
}

} // namespace ditron::target
