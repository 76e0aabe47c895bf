//===- ArgumentBinding.cpp - From a call's arguments to a signature -----------------------------------------------===//
//
// Two steps: which argument goes to which parameter, then what each becomes in the signature.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/jit/ArgumentBinding.h"

#include "ditron/runtime/CallBinding.h"
#include "ditron/runtime/CompiledAs.h"

#include <algorithm>
#include <fmt/format.h>

namespace ditron::jit {

using compiler::KernelInterface;
using compiler::KernelParameter;
using frontend::ArgumentSpec;
using frontend::ConstexprArgument;
using frontend::ConstValue;
using frontend::LangType;
using runtime::Argument;
using runtime::GivenArgument;

std::optional<LangType> annotatedType(std::string_view annotation) {
  if (annotation.size() >= 2 && (annotation.front() == '"' || annotation.front() == '\''))
    annotation = annotation.substr(1, annotation.size() - 2);
  // tl.pointer_type(tl.float16)
  constexpr std::string_view pointerType = "pointer_type(";
  if (const size_t at = annotation.find(pointerType); at != std::string_view::npos && annotation.ends_with(')')) {
    annotation.remove_suffix(1);
    std::optional<LangType> pointee = annotatedType(annotation.substr(at + pointerType.size()));
    return pointee ? std::optional(LangType::pointer(*pointee)) : std::nullopt;
  }
  if (std::optional<LangType> type = frontend::parseSignatureType(std::string(annotation)))
    return type;
  if (std::optional<frontend::ScalarKind> kind = frontend::parseScalarKind(std::string(annotation)))
    return LangType(*kind);
  return std::nullopt;
}

namespace {

using runtime::alignmentUnit;

LangType langTypeOf(DataType type) { return *frontend::parseSignatureType(std::string(toString(type))); }

/// One parameter with its argument.
class ParameterBinder {
public:
  ParameterBinder(const KernelInterface &kernel, const KernelParameter &parameter, const Argument &argument)
      : kernel(kernel), parameter(parameter), argument(argument) {}

  Expected<ArgumentSpec> bind() const {
    if (parameter.isConstexpr) {
      std::optional<ConstexprArgument> value = toConstexpr(argument);
      if (!value)
        return fail(fmt::format("it is a tl.constexpr parameter and takes a compile-time value, given {}",
                                argument.describe()));
      return ArgumentSpec::constexprOf(std::move(*value), parameter.name);
    }
    const std::optional<LangType> annotated = annotatedType(parameter.annotation);
    if (argument.is<runtime::None>() || argument.is<std::string>() || argument.is<DataType>())
      return ArgumentSpec::constexprOf(std::move(*toConstexpr(argument)), parameter.name);
    if (argument.is<runtime::Pointer>())
      return bindPointer(annotated);
    if (argument.is<runtime::TensorDescriptor>())
      return bindDescriptor();
    if (annotated && annotated->isPointer())
      return fail(fmt::format("it is annotated {}, given {}", annotated->signatureText(), argument.describe()));
    if (!argument.isInteger())
      return ArgumentSpec::runTime(chosenType(annotated, runtime::naturalType(argument)), 1, parameter.name);
    return bindInteger(annotated);
  }

private:
  Status fail(std::string_view problem) const {
    return invalidArgument(fmt::format("kernel '{}', argument '{}': {}", kernel.name, parameter.name, problem));
  }

  LangType chosenType(const std::optional<LangType> &annotated, DataType natural) const {
    if (argument.forcedType())
      return langTypeOf(*argument.forcedType());
    return annotated ? *annotated : langTypeOf(natural);
  }

  Expected<ArgumentSpec> bindPointer(const std::optional<LangType> &annotated) const {
    const runtime::Pointer pointer = argument.get<runtime::Pointer>();
    LangType type = LangType::pointer(langTypeOf(pointer.type));
    if (annotated) {
      if (!annotated->isPointer() || !(annotated->pointee() == type.pointee()))
        return fail(fmt::format("it is annotated {}, given {}", annotated->signatureText(), argument.describe()));
      type = *annotated;
    }
    const bool aligned = runtime::isMultiple(pointer.address, alignmentUnit);
    return ArgumentSpec::runTime(type, aligned && parameter.specialiseAlignment ? alignmentUnit : 1, parameter.name);
  }

  /// Rows that begin at multiples of 16 bytes are compiled as such, and whole vectors of them.
  Expected<ArgumentSpec> bindDescriptor() const {
    if (const Status status = argument.get<runtime::TensorDescriptor>().check(); !status.isOk())
      return fail(status.message());
    const auto &descriptor = argument.get<runtime::TensorDescriptor>();
    const bool aligned = runtime::rowsAreMultiples(descriptor, alignmentUnit);
    const bool wholeVectors = descriptor.shape.back() % alignmentUnit == 0;
    return ArgumentSpec::descriptorOf(langTypeOf(descriptor.base.type).withShape(descriptor.blockShape),
                                      descriptor.fillNan, aligned && parameter.specialiseAlignment ? alignmentUnit : 1,
                                      wholeVectors && parameter.specialiseAlignment ? alignmentUnit : 1,
                                      parameter.name);
  }

  Expected<ArgumentSpec> bindInteger(const std::optional<LangType> &annotated) const {
    const uint64_t bits = argument.integerBits();
    const bool isForced = argument.forcedType().has_value();
    if (bits == 1 && parameter.specialiseValue && !isForced)
      return ArgumentSpec::constexprOf(ConstValue::integer(int64_t(1)), parameter.name);
    const LangType type = chosenType(annotated, runtime::naturalType(argument));
    const bool aligned = type.isInt() && !type.isBool() && bits % alignmentUnit == 0;
    return ArgumentSpec::runTime(type, aligned && parameter.specialiseAlignment ? alignmentUnit : 1, parameter.name);
  }

  const KernelInterface &kernel;
  const KernelParameter &parameter;
  const Argument &argument;
};

/// Which argument each parameter gets.
Expected<std::vector<GivenArgument>> assignTo(const KernelInterface &kernel, const CallArguments &call) {
  std::vector<runtime::CallParameter> parameters;
  for (const KernelParameter &parameter : kernel.parameters)
    parameters.push_back({parameter.name, parameter.isConstexpr, parameter.hasDefault});
  return runtime::assignArguments(kernel.name, parameters, call);
}

/// The specification of a tuple whose elements are given by paths; appends the values that are left for run time.
Expected<ArgumentSpec> bindTuple(const KernelInterface &kernel, const KernelParameter &parameter,
                                 const std::vector<std::pair<std::string_view, const Argument *>> &elements,
                                 std::vector<Argument> &runTime) {
  // By the first component of the path: a value, or the elements of an inner tuple.
  std::vector<std::pair<std::string, GivenArgument>> parts;
  for (const auto &[path, value] : elements) {
    const size_t dot = path.find('.');
    const std::string head(path.substr(0, dot));
    auto part = std::ranges::find(parts, head, [](const auto &each) { return each.first; });
    if (part == parts.end())
      part = parts.insert(parts.end(), {head, {}});
    if (dot == std::string_view::npos)
      part->second.value = value;
    else
      part->second.elements.emplace_back(path.substr(dot + 1), value);
  }
  auto isNumber = [](const std::string &text) {
    return text.find_first_not_of("0123456789") == std::string::npos && text.size() < 6;
  };
  const bool isPlain = std::ranges::all_of(parts, [&](const auto &part) { return isNumber(part.first); });
  if (isPlain)
    std::ranges::sort(parts, {}, [](const auto &part) { return std::stoul(part.first); });
  std::vector<ArgumentSpec> specs;
  for (const auto &[name, given] : parts) {
    KernelParameter element = parameter;
    element.name = parameter.name + "." + name;
    element.annotation.clear();
    if (given.value && !given.elements.empty())
      return invalidArgument(
          fmt::format("kernel '{}' got a value and elements for argument '{}'", kernel.name, element.name));
    if (isPlain && std::stoul(name) != specs.size())
      return invalidArgument(
          fmt::format("kernel '{}', argument '{}': element {} is missing", kernel.name, parameter.name, specs.size()));
    Expected<ArgumentSpec> spec = given.value ? ParameterBinder(kernel, element, *given.value).bind()
                                              : bindTuple(kernel, element, given.elements, runTime);
    if (!spec.isOk())
      return spec.status();
    if (given.value && !spec->isConstexpr())
      runTime.push_back(*given.value);
    spec->name = isPlain ? "" : name;
    specs.push_back(std::move(*spec));
  }
  return ArgumentSpec::tupleOf(std::move(specs), parameter.name);
}

} // namespace

std::optional<ConstexprArgument> toConstexpr(const Argument &argument) {
  struct Convert {
    std::optional<ConstexprArgument> operator()(runtime::None) const { return ConstValue::none(); }
    std::optional<ConstexprArgument> operator()(bool value) const { return ConstValue::boolean(value); }
    std::optional<ConstexprArgument> operator()(int64_t value) const { return ConstValue::integer(value); }
    std::optional<ConstexprArgument> operator()(uint64_t value) const {
      if (value <= INT64_MAX)
        return ConstValue::integer(static_cast<int64_t>(value));
      Expected<ConstValue> big = toInt(ConstValue::string(std::to_string(value)));
      return big.isOk() ? std::optional<ConstexprArgument>(*big) : std::nullopt;
    }
    std::optional<ConstexprArgument> operator()(double value) const { return ConstValue::floating(value); }
    std::optional<ConstexprArgument> operator()(const runtime::Pointer &) const { return std::nullopt; }
    std::optional<ConstexprArgument> operator()(const std::string &value) const { return ConstValue::string(value); }
    std::optional<ConstexprArgument> operator()(DataType value) const { return langTypeOf(value); }
    std::optional<ConstexprArgument> operator()(const runtime::TensorDescriptor &) const { return std::nullopt; }
  };
  return std::visit(Convert(), argument.value());
}

std::optional<Argument> toArgument(const ConstexprArgument &value) {
  const auto *scalar = std::get_if<ConstValue>(&value);
  if (!scalar) {
    std::optional<DataType> type = parseDataType(std::get<LangType>(value).signatureText());
    return type ? std::optional(Argument(*type)) : std::nullopt;
  }
  if (scalar->isStr())
    return Argument(scalar->getString());
  if (scalar->isNone())
    return Argument(runtime::None());
  if (scalar->isBool())
    return Argument(scalar->getBool());
  if (scalar->isFloat())
    return Argument(scalar->getFloat());
  if (std::optional<int64_t> integer = scalar->toInt64())
    return Argument(*integer);
  if (std::optional<uint64_t> large = scalar->getInt().toUint64())
    return Argument(*large);
  return std::nullopt;
}

Expected<BoundCall> bindArguments(const KernelInterface &kernel, const CallArguments &call) {
  DITRON_ASSIGN_OR_RETURN(const std::vector<GivenArgument> given, assignTo(kernel, call));
  BoundCall bound;
  for (size_t i = 0; i < given.size(); ++i) {
    const KernelParameter &parameter = kernel.parameters[i];
    Argument argument;
    if (!given[i].elements.empty()) {
      DITRON_ASSIGN_OR_RETURN(ArgumentSpec tuple, bindTuple(kernel, parameter, given[i].elements, bound.arguments));
      bound.signature.arguments.push_back(std::move(tuple));
      continue;
    }
    if (given[i].value) {
      argument = *given[i].value;
    } else {
      // Defaults of compile-time parameters, and those that are no literals, are the frontend's to evaluate.
      std::optional<Argument> fallback;
      if (!parameter.isConstexpr && parameter.defaultValue)
        fallback = toArgument(*parameter.defaultValue);
      if (!fallback)
        continue;
      argument = std::move(*fallback);
    }
    DITRON_ASSIGN_OR_RETURN(ArgumentSpec spec, ParameterBinder(kernel, parameter, argument).bind());
    if (!spec.isConstexpr())
      bound.arguments.push_back(std::move(argument));
    bound.signature.arguments.push_back(std::move(spec));
  }
  return bound;
}

} // namespace ditron::jit
