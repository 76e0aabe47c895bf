//===- Types.h - Types of the kernel language -----------------------------------------------------------------*- C++ -*-===//
//
// The types that a kernel's author sees: integers with a sign, floating point formats, pointers, and blocks (tensors) of
// these. Signedness and the constness of pointers exist only here; the IR has signless integers and one pointer type.
// This file knows no MLIR, so that signatures can be handled without it.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_TYPES_H
#define DITRON_FRONTEND_TYPES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace ditron::frontend {

/// The number formats. The order groups them: void, bool, signed, unsigned, floating point.
enum class ScalarKind : uint8_t {
  Void,
  Int1,
  Int8,
  Int16,
  Int32,
  Int64,
  UInt8,
  UInt16,
  UInt32,
  UInt64,
  FP8E5,
  FP8E4NV,
  FP8E4B15, ///< Of storage only: bytes in the IR, converted by way of fp16.
  FP16,
  BF16,
  FP32,
  FP64,
};

/// The most elements that a block may have.
inline constexpr int64_t maxBlockElements = int64_t(1) << 20;

/// A type of the language: a scalar (number or pointer) or a block of scalars. A small value.
class LangType {
public:
  LangType() = default;
  LangType(ScalarKind kind) : base(kind) {}
  /// A pointer to a scalar type; const pointers may only be loaded from.
  static LangType pointer(LangType pointee, bool isConst = false);

  /// The type of one element: the type itself for a scalar.
  LangType element() const;
  /// A block of this type's elements; an empty shape gives the scalar.
  LangType withShape(llvm::ArrayRef<int64_t> shape) const;
  /// This type with other elements in the same shape.
  LangType withElement(LangType element) const { return element.withShape(shape()); }

  bool isBlock() const { return !dims.empty(); }
  llvm::ArrayRef<int64_t> shape() const { return dims; }
  unsigned rank() const { return dims.size(); }
  int64_t numElements() const;

  /// The predicates look at the element type.
  bool isPointer() const { return pointerDepth != 0; }
  bool isConstPointer() const { return isPointer() && isConst; }
  LangType pointee() const;
  ScalarKind kind() const { return base; }
  bool isVoid() const { return !isPointer() && base == ScalarKind::Void; }
  bool isBool() const { return !isPointer() && base == ScalarKind::Int1; }
  /// Any integer, bool too.
  bool isInt() const { return !isPointer() && base >= ScalarKind::Int1 && base <= ScalarKind::UInt64; }
  bool isSigned() const { return !isPointer() && base >= ScalarKind::Int8 && base <= ScalarKind::Int64; }
  bool isUnsigned() const { return isInt() && !isSigned(); }
  bool isFloat() const { return !isPointer() && base >= ScalarKind::FP8E5; }
  /// The 8-bit formats that hardware multiplies.
  bool isFP8() const { return !isPointer() && (base == ScalarKind::FP8E5 || base == ScalarKind::FP8E4NV); }
  bool is(ScalarKind kind) const { return !isPointer() && base == kind; }
  /// Bits of an element; 64 for a pointer.
  unsigned bitWidth() const;

  bool operator==(const LangType &other) const {
    return base == other.base && pointerDepth == other.pointerDepth && isConst == other.isConst && dims == other.dims;
  }

  /// As messages show it: "int32", "pointer<bf16>", "fp32[64, 32]".
  std::string str() const;
  /// As signatures write it: "i32", "*bf16", "*kfp32". Scalars only.
  std::string signatureText() const;

private:
  ScalarKind base = ScalarKind::Void; ///< Of the innermost pointee.
  uint8_t pointerDepth = 0;
  bool isConst = false;
  llvm::SmallVector<int64_t, 4> dims;
};

/// The language's name of a number format: "int32", "fp16".
llvm::StringRef toString(ScalarKind kind);
/// A format by any of its names: "int32", "i32", "float32", "fp32", "tl.float32", "u8", "float8_e4m3fn" and so on.
std::optional<ScalarKind> parseScalarKind(llvm::StringRef name);
/// A type in signature text: "i32", "*bf16", "*kfp32", "**u8".
std::optional<LangType> parseSignatureType(llvm::StringRef text);
/// The predicates of dtypes ("is_floating", "is_fp16"); nullopt for a name that is none.
std::optional<bool> typePredicate(const LangType &type, llvm::StringRef name);
/// The integer format of a width (1, 8, 16, 32, 64) and sign.
ScalarKind integerKind(unsigned width, bool isSigned);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_TYPES_H
