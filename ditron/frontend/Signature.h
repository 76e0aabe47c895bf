//===- Signature.h - What a kernel is compiled for ------------------------------------------------------------*- C++ -*-===//
//
// A kernel file is a template: a KernelSignature says, parameter by parameter, which run-time type it is compiled for or
// which compile-time value it has. It has a text form for command lines and tests:
//
//   *bf16:16, *bf16, i32:16, i32, constexpr BLOCK=64, constexpr KIND="gelu", constexpr OUT=fp16, constexpr ACTIVATION=@gelu
//
// @gelu is what the kernel's file binds the name to: a function, a tuple, a class, any value that no literal writes.
// `:16` promises that a pointer's address or an integer's value is a multiple of 16. A tensor descriptor that the host makes is
// written tensordesc<bf16[128,64]>, or tensordesc<bf16[128,64],nan> when it pads with NaN; `:16` after it promises that the
// tensor's address and all strides but the last are multiples of 16 bytes, a second number (`:16:8`) that the last size is a
// multiple of 8 elements. A tuple is written (i32, *fp32:16, constexpr 3), a named tuple (x=i32, y=*fp32). Items without a name
// belong to the parameters in order. Nothing here knows MLIR.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_SIGNATURE_H
#define DITRON_FRONTEND_SIGNATURE_H

#include "ditron/frontend/Types.h"
#include "ditron/frontend/syntax/ConstValue.h"
#include "ditron/support/Status.h"
#include <memory>
#include <variant>
#include <vector>

namespace ditron::frontend {

/// A compile-time argument: a Python scalar or a dtype.
using ConstexprArgument = std::variant<ConstValue, LangType>;

/// One parameter's type or compile-time value.
struct ArgumentSpec {
  std::string name;                                ///< Empty: the next parameter in order.
  std::optional<ConstexprArgument> constexprValue; ///< Set: a compile-time argument, and `type` has no meaning.
  std::string globalName;                          ///< Set: a compile-time argument, this name of the kernel's file.
  LangType type;                                   ///< A scalar; of a descriptor the tile.
  unsigned divisibility = 1;                       ///< Promised divisor of the address or value.
  bool isDescriptor = false;                       ///< A tensor descriptor made by the host.
  bool fillsNan = false;                           ///< Of a descriptor: its padding.
  unsigned sizeDivisibility = 1;                   ///< Of a descriptor: promised divisor of the last size.
  /// Set: a tuple of these; their names, if all have one, are the fields of a named tuple.
  std::shared_ptr<const std::vector<ArgumentSpec>> elements;

  bool isConstexpr() const { return constexprValue.has_value() || isGlobal(); }
  bool isGlobal() const { return !globalName.empty(); }
  bool isTuple() const { return elements != nullptr; }
  static ArgumentSpec tupleOf(std::vector<ArgumentSpec> elements, std::string name = {});
  static ArgumentSpec runTime(LangType type, unsigned divisibility = 1, std::string name = {});
  /// A tensor descriptor for tiles of a type.
  static ArgumentSpec descriptorOf(LangType tile, bool fillsNan, unsigned divisibility = 1, unsigned sizeDivisibility = 1,
                                   std::string name = {});
  static ArgumentSpec constexprOf(ConstexprArgument value, std::string name = {});
  /// A name of the kernel's file.
  static ArgumentSpec globalOf(std::string global, std::string name = {});
  bool operator==(const ArgumentSpec &other) const;
  /// The text form of this item.
  std::string str() const;
};

/// The arguments of one specialisation.
struct KernelSignature {
  std::vector<ArgumentSpec> arguments;

  bool operator==(const KernelSignature &) const = default;
  /// The text form; parseSignature reads it back.
  std::string str() const;
};

/// A parameter of the compiled kernel.
struct RunTimeParameter {
  std::string name;
  LangType type; ///< A scalar.
  unsigned divisibility = 1;
};

/// What the compiled kernel takes for one item, none for a compile-time value. A descriptor becomes its base (NAME), its sizes
/// (NAME.shape.0 ..., i32) and its strides but the last (NAME.stride.0 ..., i64, in elements); a tuple becomes its elements
/// (NAME.0 ..., or NAME.FIELD).
std::vector<RunTimeParameter> runTimeParameters(const ArgumentSpec &spec, std::string_view name);

/// Reads the text form.
Expected<KernelSignature> parseSignature(llvm::StringRef text);
/// Reads one compile-time value: 3, -0x10, 2.5, inf, True, None, "text", 'text', fp16, tl.float16.
Expected<ConstexprArgument> parseConstexpr(llvm::StringRef text);
/// Splits texts NAME=VALUE; the name may be an expression with comparisons in it, so the first '=' outside of brackets that is no comparison counts.
Expected<std::vector<std::pair<std::string, std::string>>> parseDefines(const std::vector<std::string> &texts);
/// A value as parseConstexpr reads it.
std::string printConstexpr(const ConstexprArgument &value);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_SIGNATURE_H
