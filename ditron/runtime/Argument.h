//===- Argument.h - Values for kernel parameters --------------------------------------------------------*- C++ -*-===//
//
// An Argument is one value that host code gives to a kernel: a typed pointer, an integer, a float, a bool, None, or
// (for compile-time parameters) a string or a dtype. Launching a compiled kernel checks each against what the code was
// compiled for: count, type, range, and the divisibility that the code relies on. Errors name the parameter, what was
// given and what is expected.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_ARGUMENT_H
#define DITRON_RUNTIME_ARGUMENT_H

#include "ditron/runtime/Buffer.h"
#include "ditron/support/Artifact.h"

#include <concepts>
#include <optional>
#include <variant>

namespace ditron::runtime {

/// Python's None: no value, decided at compile time.
struct None {
  bool operator==(const None &) const = default;
};

/// A tensor in device memory that a kernel moves in tiles: what a parameter of type tensordesc takes. All lists hold the
/// outermost dimension first and count elements; the last stride is 1.
struct TensorDescriptor {
  Pointer base;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;    ///< Empty: a dense tensor.
  std::vector<int64_t> blockShape; ///< Powers of two.
  bool fillNan = false;            ///< What lies outside of the tensor reads as NaN, else as zero.

  /// Ok, or what is wrong with it.
  Status check() const;
  /// With the strides of a dense tensor if it has none.
  TensorDescriptor withStrides() const;
  /// "tensordesc<bf16[128,64]>", with ",nan" inside for padding.
  std::string typeText() const;
};

/// One value. Converts from what host code has at hand.
class Argument {
public:
  using Value = std::variant<None, bool, int64_t, uint64_t, double, Pointer, std::string, DataType, TensorDescriptor>;

  Argument() = default;
  Argument(None) {}
  Argument(std::nullptr_t) = delete; // ambiguous: pass None() or a Pointer
  Argument(std::same_as<bool> auto value) : storage(value) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Argument(T value) {
    if constexpr (std::signed_integral<T>)
      storage = static_cast<int64_t>(value);
    else
      storage = static_cast<uint64_t>(value);
  }
  Argument(std::floating_point auto value) : storage(static_cast<double>(value)) {}
  Argument(DataType type) : storage(type) {} ///< A dtype, for compile-time parameters.
  Argument(Pointer pointer) : storage(pointer) {}
  Argument(const Buffer &buffer) : storage(buffer.pointer()) {}
  Argument(TensorDescriptor descriptor) : storage(std::move(descriptor)) {}
  Argument(std::string text) : storage(std::move(text)) {}
  Argument(const char *text) : storage(std::string(text)) {}

  /// The value with a type that it must have, for example fp64 or i64 where the value alone would say fp32 or i32.
  static Argument typed(DataType type, Argument value) {
    value.typeValue = type;
    return value;
  }

  const Value &value() const { return storage; }
  std::optional<DataType> forcedType() const { return typeValue; }
  template <typename T> bool is() const { return std::holds_alternative<T>(storage); }
  template <typename T> const T &get() const { return std::get<T>(storage); }
  /// Integer of either signedness.
  bool isInteger() const { return is<int64_t>() || is<uint64_t>(); }
  /// Two's complement bits of an integer or bool.
  uint64_t integerBits() const;
  /// For messages: "integer 7", "fp32 pointer 0x1000", "None".
  std::string describe() const;

private:
  Value storage;
  std::optional<DataType> typeValue;
};

/// Argument values at their offsets in one block of bytes.
struct PackedArguments {
  std::vector<std::byte> bytes;
  std::vector<uint32_t> offsets;

  void add(const void *data, uint32_t size);
};

/// Checks `arguments` against `parameters` and packs them. `kernel` names the kernel in errors. A tensor descriptor takes the
/// place of its base, sizes and strides but the last.
Expected<PackedArguments> packArguments(std::string_view kernel, std::span<const ArtifactParameter> parameters,
                                        std::span<const Argument> arguments);

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_ARGUMENT_H
