//===- Types.cpp - Types of the kernel language -----------------------------------------------------------------------===//
//
// Names and properties of the language's types. One table holds all names of all number formats.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Types.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::frontend {
namespace {

struct KindInfo {
  ScalarKind kind;
  unsigned bits;
  llvm::StringLiteral name;      ///< In messages and as `dtype.name`.
  llvm::StringLiteral shortName; ///< In signatures.
  llvm::StringLiteral longName;  ///< As an attribute of `tl`.
};

constexpr KindInfo kindTable[] = {
    {ScalarKind::Void, 0, "void", "void", "void"},        {ScalarKind::Int1, 1, "int1", "i1", "int1"},
    {ScalarKind::Int8, 8, "int8", "i8", "int8"},          {ScalarKind::Int16, 16, "int16", "i16", "int16"},
    {ScalarKind::Int32, 32, "int32", "i32", "int32"},     {ScalarKind::Int64, 64, "int64", "i64", "int64"},
    {ScalarKind::UInt8, 8, "uint8", "u8", "uint8"},       {ScalarKind::UInt16, 16, "uint16", "u16", "uint16"},
    {ScalarKind::UInt32, 32, "uint32", "u32", "uint32"},  {ScalarKind::UInt64, 64, "uint64", "u64", "uint64"},
    {ScalarKind::FP8E5, 8, "fp8e5", "fp8e5", "float8e5"}, {ScalarKind::FP8E4NV, 8, "fp8e4nv", "fp8e4nv", "float8e4nv"},
    {ScalarKind::FP8E4B15, 8, "fp8e4b15", "fp8e4b15", "float8e4b15"},
    {ScalarKind::FP16, 16, "fp16", "fp16", "float16"},    {ScalarKind::BF16, 16, "bf16", "bf16", "bfloat16"},
    {ScalarKind::FP32, 32, "fp32", "fp32", "float32"},    {ScalarKind::FP64, 64, "fp64", "fp64", "float64"},
};

const KindInfo &infoOf(ScalarKind kind) { return kindTable[static_cast<unsigned>(kind)]; }

} // namespace

llvm::StringRef toString(ScalarKind kind) { return infoOf(kind).name; }

std::optional<ScalarKind> parseScalarKind(llvm::StringRef name) {
  name.consume_front("tl.");
  for (const KindInfo &info : kindTable)
    if (name == info.name || name == info.shortName || name == info.longName)
      return info.kind;
  if (name == "u1" || name == "bool")
    return ScalarKind::Int1;
  if (name == "float8_e4m3fn")
    return ScalarKind::FP8E4NV;
  if (name == "float8_e5m2")
    return ScalarKind::FP8E5;
  return std::nullopt;
}

std::optional<LangType> parseSignatureType(llvm::StringRef text) {
  constexpr size_t mostPointers = 64;
  llvm::SmallVector<bool> pointers; // outermost first: whether each is const
  while (text.consume_front("*")) {
    if (pointers.size() == mostPointers)
      return std::nullopt;
    pointers.push_back(text.consume_front("k"));
  }
  auto kind = parseScalarKind(text);
  if (!kind || *kind == ScalarKind::Void)
    return std::nullopt;
  LangType type(*kind);
  for (bool isConst : llvm::reverse(pointers))
    type = LangType::pointer(type, isConst);
  return type;
}

ScalarKind integerKind(unsigned width, bool isSigned) {
  switch (width) {
  case 1: return ScalarKind::Int1;
  case 8: return isSigned ? ScalarKind::Int8 : ScalarKind::UInt8;
  case 16: return isSigned ? ScalarKind::Int16 : ScalarKind::UInt16;
  case 32: return isSigned ? ScalarKind::Int32 : ScalarKind::UInt32;
  default: return isSigned ? ScalarKind::Int64 : ScalarKind::UInt64;
  }
}

LangType LangType::pointer(LangType pointee, bool isConst) {
  LangType result = pointee.element();
  ++result.pointerDepth;
  result.isConst = isConst;
  return result;
}

LangType LangType::element() const {
  LangType result = *this;
  result.dims.clear();
  return result;
}

LangType LangType::withShape(llvm::ArrayRef<int64_t> shape) const {
  LangType result = *this;
  result.dims.assign(shape.begin(), shape.end());
  return result;
}

int64_t LangType::numElements() const {
  int64_t count = 1;
  for (int64_t size : dims)
    count *= size;
  return count;
}

LangType LangType::pointee() const {
  LangType result = element();
  --result.pointerDepth;
  result.isConst = false;
  return result;
}

unsigned LangType::bitWidth() const { return isPointer() ? 64 : infoOf(base).bits; }

std::string LangType::str() const {
  std::string text;
  if (isPointer())
    text = fmt::format("pointer<{}{}>", isConst ? "const " : "", pointee().str());
  else
    text = infoOf(base).name.str();
  if (isBlock())
    text += fmt::format("[{}]", fmt::join(dims.begin(), dims.end(), ", "));
  return text;
}

std::string LangType::signatureText() const {
  if (isPointer())
    return (isConst ? "*k" : "*") + pointee().signatureText();
  return infoOf(base).shortName.str();
}

} // namespace ditron::frontend
