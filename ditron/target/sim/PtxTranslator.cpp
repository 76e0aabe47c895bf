//===- PtxTranslator.cpp - Inline assembly for the simulated GPU: registers, moves, memory ----------------------------------===//
//
// See PtxTranslator.h. A register is a value of its width in a table, which statements replace; one under a predicate selects between
// the new value and the old. The arithmetic is in PtxArithmetic.cpp.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/sim/PtxTranslator.h"

#include "ditron/target/common/FloatFormats.h"
#include "ditron/target/common/Patterns.h"

#include "llvm/ADT/StringExtras.h"
#include <bit>
#include <fmt/format.h>

using namespace mlir;

namespace ditron::target {

StringRef modelledInstructions() {
  return "mov, add, sub, mul, mad, fma, div, rem, neg, abs, min, max, and, or, xor, not, shl, shr, shf, lop3, prmt, popc, clz, brev, setp, "
         "selp, cvt, ex2, lg2, rcp, rsqrt, sqrt, sin, cos, tanh, ld.global, st.global";
}

FailureOr<SmallVector<Value>> PtxTranslator::translate(StringRef text, StringRef constraints, ValueRange operands, ArrayRef<Type> results) {
  auto refuse = [&](const std::string &why) {
    return emitError(e.getLoc()) << "the simulator cannot run this inline assembly: " << why << " (it models " << modelledInstructions()
                                 << ")";
  };
  Expected<PtxProgram> program = readPtx(text);
  if (!program.isOk())
    return refuse(program.status().message());
  for (auto [index, type] : llvm::enumerate(results))
    registers[fmt::format("${}", index)] = e.zero(e.getIntegerType(Emitter::bitWidth(type)));
  SmallVector<StringRef> items;
  constraints.split(items, ',');
  items.erase(items.begin(), items.begin() + std::min(items.size(), results.size()));
  for (auto [index, operand] : llvm::enumerate(operands)) {
    registers[fmt::format("${}", results.size() + index)] = e.toBits(operand);
    if (unsigned tied = 0; index < items.size() && !items[index].trim().getAsInteger(10, tied))
      registers[fmt::format("${}", tied)] = e.toBits(operand);
  }
  auto declared = program->registers.begin();
  for (auto [index, statement] : llvm::enumerate(program->statements)) {
    for (; declared != program->registers.end() && declared->before <= index; ++declared)
      registers[declared->name] = e.zero(e.getIntegerType(declared->bits));
    guard = {};
    if (!statement.guard.empty()) {
      guard = read(PtxOperand{PtxOperand::Kind::Name, statement.guard, 0, {}}, 1);
      if (guard && statement.negated)
        guard = e.bitXor(guard, e.i1(true));
    }
    if (!isGood || !run(statement) || !isGood)
      return refuse(fmt::format("'{}'", statement.text));
  }
  SmallVector<Value> outputs;
  for (auto [index, type] : llvm::enumerate(results))
    outputs.push_back(e.fromBits(registers[fmt::format("${}", index)], type));
  return outputs;
}

bool PtxTranslator::run(const PtxStatement &statement) {
  if (statement.operands.empty())
    return false;
  StringRef name = statement.opcode.front();
  if (name == "mov")
    return move(statement);
  if (name == "cvt")
    return convert(statement);
  std::optional<PtxType> type = typeOf(statement.opcode.back());
  if (!type)
    return false;
  return name == "ld" || name == "st" ? memory(statement, *type)
                                      : compareOrSelect(statement, *type) || bitwise(statement, *type) ||
                                            (type->isFloat() ? floats(statement, *type) || approximate(statement, *type)
                                                             : integers(statement, *type));
}

std::optional<PtxType> PtxTranslator::typeOf(StringRef suffix) {
  PtxType type;
  if (suffix.consume_back("x2"))
    type.lanes = 2;
  auto floating = [&](unsigned bits, FloatType format) {
    type.kind = PtxType::Kind::Float;
    type.bits = bits;
    type.format = format;
    return type;
  };
  MLIRContext *context = e.getContext();
  if (suffix == "f16")
    return floating(16, Float16Type::get(context));
  if (suffix == "bf16")
    return floating(16, BFloat16Type::get(context));
  if (suffix == "e4m3")
    return floating(8, Float8E4M3FNType::get(context));
  if (suffix == "e5m2")
    return floating(8, Float8E5M2Type::get(context));
  if (suffix == "f32" || suffix == "tf32")
    return floating(32, e.getF32Type());
  if (suffix == "f64")
    return floating(64, e.getF64Type());
  if (suffix == "pred") {
    type.kind = PtxType::Kind::Predicate;
    type.bits = 1;
    return type;
  }
  char letter = suffix.empty() ? ' ' : suffix.front();
  if ((letter != 'b' && letter != 'u' && letter != 's') || suffix.drop_front().getAsInteger(10, type.bits) ||
      (type.bits != 8 && type.bits != 16 && type.bits != 32 && type.bits != 64))
    return std::nullopt;
  type.kind = letter == 'b' ? PtxType::Kind::Bits : letter == 'u' ? PtxType::Kind::Unsigned : PtxType::Kind::Signed;
  return type;
}

Type PtxTranslator::irType(const PtxType &type) {
  if (type.isFloat() && type.bits >= 32)
    return type.format;
  return e.getIntegerType(type.bits);
}

//===------------------------------------------------------------------------------------------------------------------===//
// Operands
//===------------------------------------------------------------------------------------------------------------------===//

Value PtxTranslator::immediate(StringRef text, unsigned bits) {
  Type type = e.getIntegerType(bits);
  uint64_t pattern = 0;
  int64_t number = 0;
  if (StringRef hex = text; (hex.consume_front_insensitive("0f") || hex.consume_front_insensitive("0d")) && !hex.getAsInteger(16, pattern))
    return e.constant(type, static_cast<int64_t>(pattern));
  StringRef plain = text;
  plain.consume_back("U");
  if (!plain.getAsInteger(0, number))
    return e.constant(type, number);
  if (!plain.getAsInteger(0, pattern))
    return e.constant(type, static_cast<int64_t>(pattern));
  if (double value = 0; !text.getAsDouble(value))
    return e.constant(type, bits == 64 ? std::bit_cast<int64_t>(value) : std::bit_cast<int32_t>(static_cast<float>(value)));
  return {};
}

Value PtxTranslator::specialRegister(StringRef name) {
  auto [stem, axisName] = name.split('.');
  int axis = axisName == "y" ? 1 : axisName == "z" ? 2 : 0;
  if (stem == "%laneid")
    return target.laneId(e);
  if (stem == "%warpid")
    return target.warpId(e);
  if (stem == "%tid")
    return axis == 0 ? target.threadId(e) : e.i32(0);
  if (stem == "%ntid")
    return axis == 0 ? target.numThreads(e) : e.i32(1);
  if (stem == "%ctaid")
    return target.programId(e, axis);
  if (stem == "%nctaid")
    return target.numPrograms(e, axis);
  return {};
}

Value PtxTranslator::read(const PtxOperand &operand, unsigned bits) {
  Value value;
  if (operand.kind == PtxOperand::Kind::Name) {
    StringRef name = operand.name;
    if (auto known = registers.find(operand.name); known != registers.end())
      value = known->second;
    else
      value = name.starts_with("%") ? specialRegister(name) : immediate(name, bits);
  }
  isGood &= value != nullptr;
  return e.zextOrTrunc(value ? value : e.zero(e.getIntegerType(bits)), e.getIntegerType(bits));
}

void PtxTranslator::write(const PtxOperand &operand, Value value) {
  auto place = operand.kind == PtxOperand::Kind::Name ? registers.find(operand.name) : registers.end();
  if (operand.name == "_")
    return;
  if (place == registers.end()) {
    isGood = false;
    return;
  }
  Value bits = e.zextOrTrunc(e.toBits(value), place->second.getType());
  place->second = guard ? e.select(guard, bits, place->second) : bits;
}

Value PtxTranslator::widen(Value bits, FloatType format) {
  if (format.isF32() || format.isF64())
    return e.fromBits(bits, format);
  if (format.isF16())
    return LLVM::FPExtOp::create(e, e.getF32Type(), e.fromBits(bits, format));
  return extendToF32(e, bits, format);
}

Value PtxTranslator::narrow(Value value, FloatType format) {
  if (value.getType() == format)
    return e.toBits(value);
  if (value.getType().isF64() || format.isF64())
    return e.toBits(format.isF64() ? LLVM::FPExtOp::create(e, format, value).getResult()
                    : format.isF32() ? LLVM::FPTruncOp::create(e, format, value).getResult()
                                     : e.fromBits(narrow(LLVM::FPTruncOp::create(e, e.getF32Type(), value), format), e.getIntegerType(format.getWidth())));
  if (format.isF16())
    return e.toBits(LLVM::FPTruncOp::create(e, format, value));
  return truncateFromF32(e, value, format);
}

SmallVector<Value> PtxTranslator::readLanes(const PtxOperand &operand, const PtxType &type) {
  Value whole = read(operand, type.bits * type.lanes);
  Values lanes;
  for (unsigned lane = 0; lane < type.lanes; ++lane) {
    Value bits = e.zextOrTrunc(e.lshr(whole, static_cast<int>(lane * type.bits)), e.getIntegerType(type.bits));
    lanes.push_back(type.isFloat() ? widen(bits, type.format) : bits);
  }
  return lanes;
}

void PtxTranslator::writeLanes(const PtxOperand &operand, const PtxType &type, ValueRange lanes) {
  Type whole = e.getIntegerType(type.bits * type.lanes);
  Value word;
  for (auto [lane, value] : llvm::enumerate(lanes)) {
    Value bits = e.zextOrTrunc(type.isFloat() ? narrow(value, type.format) : e.toBits(value), whole);
    bits = e.shl(bits, static_cast<int>(lane * type.bits));
    word = word ? e.bitOr(word, bits) : bits;
  }
  write(operand, word);
}

//===------------------------------------------------------------------------------------------------------------------===//
// Moves and memory
//===------------------------------------------------------------------------------------------------------------------===//

bool PtxTranslator::move(const PtxStatement &statement) {
  std::optional<PtxType> type = typeOf(statement.opcode.back());
  if (!type || statement.opcode.size() != 2 || statement.operands.size() != 2)
    return false;
  const PtxOperand &to = statement.operands[0], &from = statement.operands[1];
  unsigned bits = type->bits * type->lanes;
  if (to.kind == PtxOperand::Kind::Vector) {
    Value whole = read(from, bits);
    unsigned part = bits / to.parts.size();
    for (auto [index, element] : llvm::enumerate(to.parts))
      write(element, e.zextOrTrunc(e.lshr(whole, static_cast<int>(index * part)), e.getIntegerType(part)));
    return part * to.parts.size() == bits;
  }
  if (from.kind == PtxOperand::Kind::Vector) {
    unsigned part = bits / from.parts.size();
    Value word;
    for (auto [index, element] : llvm::enumerate(from.parts)) {
      Value piece = e.shl(e.zextOrTrunc(read(element, part), e.getIntegerType(bits)), static_cast<int>(index * part));
      word = word ? e.bitOr(word, piece) : piece;
    }
    write(to, word);
    return word && part * from.parts.size() == bits;
  }
  write(to, read(from, bits));
  return true;
}

bool PtxTranslator::memory(const PtxStatement &statement, const PtxType &type) {
  bool isLoad = statement.opcode.front() == "ld";
  size_t count = statement.has("v2") ? 2 : statement.has("v4") ? 4 : 1;
  for (StringRef modifier : ArrayRef(statement.opcode).drop_front().drop_back())
    if (!llvm::is_contained({"global", "v2", "v4", "relaxed", "acquire", "release", "volatile", "weak", "gpu", "sys", "cta", "nc", "ca", "cg", "cs", "cv", "wb", "wt"},
                            modifier))
      return false;
  if (statement.operands.size() != 2)
    return false;
  const PtxOperand &place = statement.operands[isLoad ? 1 : 0], &data = statement.operands[isLoad ? 0 : 1];
  if (place.kind != PtxOperand::Kind::Address || (count > 1) != (data.kind == PtxOperand::Kind::Vector) ||
      (count > 1 && data.parts.size() != count))
    return false;
  Value address = LLVM::IntToPtrOp::create(e, e.pointerType(), read(PtxOperand{PtxOperand::Kind::Name, place.name, 0, {}}, 64));
  address = e.addBytes(address, place.offset);
  Type element = e.getIntegerType(type.bits * type.lanes);
  ArrayRef<PtxOperand> parts = count > 1 ? ArrayRef(data.parts) : ArrayRef(data);
  MemoryFlags flags;
  flags.isVolatile = statement.has("volatile");
  bool isOrdered = statement.has("relaxed") || statement.has("acquire") || statement.has("release");
  tile::MemoryScope scope = statement.has("cta") ? tile::MemoryScope::Block : statement.has("gpu") ? tile::MemoryScope::Gpu : tile::MemoryScope::System;
  if (isOrdered && (guard || count > 1))
    return false;
  if (isLoad) {
    Values loaded = isOrdered ? Values{target.orderedLoad(e, element, address, statement.has("acquire") ? tile::MemoryOrder::Acquire : tile::MemoryOrder::Relaxed,
                                                          scope, /*spin=*/false)}
                              : target.loadVector(e, address, element, static_cast<int>(count), guard, {}, AddressSpace::Global, flags);
    for (auto [part, value] : llvm::zip_equal(parts, loaded)) {
      bool extends = type.isSigned() && type.bits < 32;
      write(part, extends ? e.sextOrTrunc(value, e.getI32Type()) : value);
    }
    return true;
  }
  Values values;
  for (const PtxOperand &part : parts)
    values.push_back(read(part, type.bits * type.lanes));
  if (isOrdered)
    target.orderedStore(e, address, values.front(), statement.has("release") ? tile::MemoryOrder::Release : tile::MemoryOrder::Relaxed, scope);
  else
    target.storeVector(e, address, values, guard, AddressSpace::Global, flags);
  return true;
}

} // namespace ditron::target
