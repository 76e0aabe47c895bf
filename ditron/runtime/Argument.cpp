//===- Argument.cpp - Values for kernel parameters ----------------------------------------------------------------===//
//
// Checking and packing. Every refusal has one form: which parameter of which kernel, what was given, what is expected.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/Argument.h"

#include "ditron/runtime/CompiledAs.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace ditron::runtime {

namespace {

/// The argument as it would be declared, for "expected ..." texts.
std::string describeType(std::string_view type) {
  if (type.starts_with("*"))
    return fmt::format("a {} pointer", type.substr(type.starts_with("*k") ? 2 : 1));
  return std::string(type);
}

/// One parameter with its place, to phrase its errors.
struct Checker {
  std::string_view kernel;
  const ArtifactParameter &parameter;
  size_t index;
  const Argument &argument;

  Status fail(std::string_view problem) const {
    return invalidArgument(
        fmt::format("kernel '{}', argument '{}' (number {}): {}", kernel, parameter.name, index, problem));
  }
  Status mismatch() const {
    return fail(fmt::format("expected {}, given {}", describeType(parameter.type), argument.describe()));
  }

  Status pack(PackedArguments &packed) const {
    if (parameter.type.starts_with("*"))
      return packPointer(packed);
    const std::optional<DataType> type = parseDataType(parameter.type);
    if (!type)
      return internalError(
          fmt::format("kernel '{}' has a parameter '{}' of unknown type '{}'", kernel, parameter.name, parameter.type));
    if (argument.forcedType() && *argument.forcedType() != *type)
      return mismatch();
    alignas(8) std::byte storage[8] = {};
    if (isFloat(*type))
      DITRON_RETURN_IF_ERROR(storeFloat(*type, storage));
    else
      DITRON_RETURN_IF_ERROR(storeInteger(*type, storage));
    packed.add(storage, sizeOf(*type));
    return Status::ok();
  }

private:
  Status packPointer(PackedArguments &packed) const {
    if (!argument.is<Pointer>())
      return mismatch();
    const Pointer pointer = argument.get<Pointer>();
    const std::string_view element = std::string_view(parameter.type).substr(parameter.type.starts_with("*k") ? 2 : 1);
    if (parseDataType(element) != pointer.type)
      return mismatch();
    if (parameter.divisibility > 1 && !isMultiple(pointer.address, parameter.divisibility))
      return fail(fmt::format("the kernel was compiled for addresses that are multiples of {}, given {}",
                              parameter.divisibility, argument.describe()));
    packed.add(&pointer.address, sizeof(void *));
    return Status::ok();
  }

  Status storeFloat(DataType type, std::byte *storage) const {
    if (argument.is<double>())
      storeElement(type, storage, argument.get<double>());
    else if (argument.is<int64_t>())
      storeElement(type, storage, static_cast<double>(argument.get<int64_t>()));
    else if (argument.is<uint64_t>())
      storeElement(type, storage, static_cast<double>(argument.get<uint64_t>()));
    else
      return mismatch();
    return Status::ok();
  }

  Status storeInteger(DataType type, std::byte *storage) const {
    if (type == DataType::I1) {
      if (!argument.is<bool>())
        return mismatch();
      storage[0] = std::byte(argument.get<bool>());
      return Status::ok();
    }
    if (!argument.isInteger())
      return mismatch();
    const uint64_t value = argument.integerBits();
    if (!fitsInteger(type, argument))
      return fail(fmt::format("{} does not fit into {}", argument.describe(), parameter.type));
    if (parameter.divisibility > 1 && value % parameter.divisibility != 0)
      return fail(fmt::format("the kernel was compiled for multiples of {}, given {}", parameter.divisibility,
                              argument.describe()));
    std::memcpy(storage, &value, sizeOf(type)); // little-endian: the low bytes come first
    return Status::ok();
  }
};

} // namespace

uint64_t Argument::integerBits() const {
  if (is<bool>())
    return get<bool>();
  return is<int64_t>() ? static_cast<uint64_t>(get<int64_t>()) : get<uint64_t>();
}

std::string Argument::describe() const {
  struct Describe {
    std::string operator()(None) const { return "None"; }
    std::string operator()(bool value) const { return value ? "bool True" : "bool False"; }
    std::string operator()(int64_t value) const { return fmt::format("integer {}", value); }
    std::string operator()(uint64_t value) const { return fmt::format("integer {}", value); }
    std::string operator()(double value) const { return fmt::format("float {}", value); }
    std::string operator()(const Pointer &value) const {
      return fmt::format("{}{} pointer", value.address ? "" : "null ", toString(value.type));
    }
    std::string operator()(const std::string &value) const { return fmt::format("string '{}'", value); }
    std::string operator()(DataType value) const { return fmt::format("dtype {}", toString(value)); }
    std::string operator()(const TensorDescriptor &value) const {
      return fmt::format("{} of a tensor [{}]", value.typeText(), fmt::join(value.shape, ","));
    }
  };
  const std::string text = std::visit(Describe(), storage);
  return typeValue ? fmt::format("{} of type {}", text, toString(*typeValue)) : text;
}

Status TensorDescriptor::check() const {
  constexpr int64_t smallestRow = 16; // what the hardware copies at least, and Triton's limit everywhere
  auto fail = [&](std::string_view problem) { return invalidArgument(fmt::format("{}: {}", typeText(), problem)); };
  if (shape.empty() || shape.size() > 5)
    return fail(fmt::format("a tensor descriptor has 1 to 5 dimensions, given {}", shape.size()));
  if (blockShape.size() != shape.size() || (!strides.empty() && strides.size() != shape.size()))
    return fail(fmt::format("shape has {} dimensions, but strides have {} and the block has {}", shape.size(), strides.size(),
                            blockShape.size()));
  for (int64_t size : shape)
    if (size < 0 || size > INT32_MAX)
      return fail(fmt::format("a size is {}; accepted are 0 to {}", size, INT32_MAX));
  for (int64_t size : blockShape)
    if (size < 1 || (size & (size - 1)) != 0)
      return fail(fmt::format("a size of the block is {}; only powers of two are accepted", size));
  if (const int64_t rowBytes = blockShape.back() * sizeOf(base.type); rowBytes < smallestRow)
    return fail(fmt::format("the block has {} bytes in the last dimension; at least {} are needed", rowBytes, smallestRow));
  if (!strides.empty() && strides.back() != 1)
    return fail(fmt::format("the last stride is {}; only 1 is accepted", strides.back()));
  if (fillNan && !isFloat(base.type))
    return fail(fmt::format("elements of type {} have no NaN", toString(base.type)));
  // Offsets inside of a tile are computed in 32 bits.
  const std::vector<int64_t> all = withStrides().strides;
  int64_t span = 0;
  for (size_t dim = 0; dim < all.size(); ++dim)
    if (int64_t extent = 0; __builtin_mul_overflow(all[dim], blockShape[dim] - 1, &extent) ||
                            __builtin_add_overflow(span, extent, &span) || span > INT32_MAX || extent < INT32_MIN)
      return fail(fmt::format("a tile spans more than 2^31 elements, by the stride {} of dimension {}", all[dim], dim));
  return Status::ok();
}

TensorDescriptor TensorDescriptor::withStrides() const {
  TensorDescriptor result = *this;
  if (!strides.empty())
    return result;
  result.strides.assign(shape.size(), 1);
  for (size_t dim = shape.size(); dim-- > 1;)
    result.strides[dim - 1] = result.strides[dim] * std::max<int64_t>(shape[dim], 1);
  return result;
}

std::string TensorDescriptor::typeText() const {
  return fmt::format("tensordesc<{}[{}]{}>", toString(base.type), fmt::join(blockShape, ","), fillNan ? ",nan" : "");
}

namespace {

/// The arguments as the compiled kernel takes them.
Expected<std::vector<Argument>> expandDescriptors(std::string_view kernel, std::span<const Argument> arguments) {
  std::vector<Argument> expanded;
  for (const Argument &argument : arguments) {
    if (!argument.is<TensorDescriptor>()) {
      expanded.push_back(argument);
      continue;
    }
    const Status checked = argument.get<TensorDescriptor>().check();
    if (!checked.isOk())
      return checked.withContext(fmt::format("kernel '{}'", kernel));
    const TensorDescriptor descriptor = argument.get<TensorDescriptor>().withStrides();
    expanded.emplace_back(descriptor.base);
    for (int64_t size : descriptor.shape)
      expanded.push_back(Argument::typed(DataType::I32, size));
    for (size_t dim = 0; dim + 1 < descriptor.strides.size(); ++dim)
      expanded.push_back(Argument::typed(DataType::I64, descriptor.strides[dim]));
  }
  return expanded;
}

} // namespace

void PackedArguments::add(const void *data, uint32_t size) {
  // Natural alignment: sizes are powers of two.
  const size_t offset = (bytes.size() + size - 1) / size * size;
  bytes.resize(offset + size);
  std::memcpy(bytes.data() + offset, data, size);
  offsets.push_back(static_cast<uint32_t>(offset));
}

Expected<PackedArguments> packArguments(std::string_view kernel, std::span<const ArtifactParameter> parameters,
                                        std::span<const Argument> given) {
  std::vector<Argument> expanded;
  std::span<const Argument> arguments = given;
  if (std::ranges::any_of(given, [](const Argument &argument) { return argument.is<TensorDescriptor>(); })) {
    DITRON_ASSIGN_OR_RETURN(expanded, expandDescriptors(kernel, given));
    arguments = expanded;
  }
  if (arguments.size() != parameters.size()) {
    std::vector<std::string> names;
    for (const ArtifactParameter &parameter : parameters)
      names.push_back(fmt::format("{}: {}", parameter.name, parameter.type));
    return invalidArgument(fmt::format("kernel '{}' takes {} arguments ({}), given {}", kernel, parameters.size(),
                                       fmt::join(names, ", "), arguments.size()));
  }
  PackedArguments packed;
  for (size_t i = 0; i < parameters.size(); ++i)
    DITRON_RETURN_IF_ERROR((Checker{kernel, parameters[i], i, arguments[i]}.pack(packed)));
  return packed;
}

} // namespace ditron::runtime
