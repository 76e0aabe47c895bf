//===- CallMatch.cpp - The variant that was compiled for a call ----------------------------------------------------------===//
#include "ditron/package/CallMatch.h"

#include "ditron/runtime/CompiledAs.h"

#include <algorithm>
#include <fmt/format.h>

namespace ditron::package {

using runtime::Argument;

namespace {

std::string elementText(std::string_view type) {
  return std::string(type.substr(type.starts_with("*k") ? 2 : type.starts_with("*") ? 1 : 0));
}

/// Whether a run-time value is what an item was compiled for.
enum class Fit { Yes, OtherType, BrokenPromise };

Fit fitOfNumber(const Item &item, const Parameter &parameter, const Argument &argument) {
  const std::optional<DataType> type = parseDataType(elementText(item.type));
  auto promise = [](bool isKept) { return isKept ? Fit::Yes : Fit::BrokenPromise; };
  if (item.type.starts_with("*")) {
    if (!argument.is<runtime::Pointer>() || argument.get<runtime::Pointer>().type != type)
      return Fit::OtherType;
    return promise(runtime::isMultiple(argument.get<runtime::Pointer>().address, item.divisibility));
  }
  if (argument.forcedType() && argument.forcedType() != type)
    return Fit::OtherType;
  if (isFloat(*type)) // an integer is one only where the kernel's annotation says so
    return argument.is<double>() || (argument.isInteger() && parameter.type == item.type) ? Fit::Yes : Fit::OtherType;
  if (type == DataType::I1)
    return argument.is<bool>() ? Fit::Yes : Fit::OtherType;
  if (!argument.isInteger() || !runtime::fitsInteger(*type, argument))
    return Fit::OtherType;
  return promise(argument.integerBits() % item.divisibility == 0);
}

Fit fitOfDescriptor(const Item &item, const Argument &argument) {
  if (!argument.is<runtime::TensorDescriptor>())
    return Fit::OtherType;
  const auto &given = argument.get<runtime::TensorDescriptor>();
  if (!given.check().isOk() || given.base.type != parseDataType(item.type) || given.fillNan != item.fillNan ||
      !std::ranges::equal(given.blockShape, item.block))
    return Fit::OtherType;
  const bool isKept = runtime::rowsAreMultiples(given, item.divisibility) && given.shape.back() % item.sizeDivisibility == 0;
  return isKept ? Fit::Yes : Fit::BrokenPromise;
}

/// Why it is not.
std::string misfitText(const Item &item, Fit fit, const Argument &argument) {
  const bool isDescriptor = item.kind == Item::Kind::Descriptor;
  std::string compiled = item.type;
  if (fit == Fit::BrokenPromise)
    compiled = fmt::format("a multiple of {}", item.divisibility);
  else if (isDescriptor)
    compiled = fmt::format("tensordesc<{}[{}]{}>", item.type, fmt::join(item.block, ","), item.fillNan ? ",nan" : "");
  if (isDescriptor && fit == Fit::BrokenPromise)
    return fmt::format("'{}' is compiled for rows at multiples of {} bytes and of {} elements, given {}", item.path,
                       item.divisibility, item.sizeDivisibility, argument.describe());
  return fmt::format("'{}' is compiled as {}, given {}", item.path, compiled, argument.describe());
}

} // namespace

Expected<BoundCall> BoundCall::bind(const Kernel &kernel, const runtime::CallArguments &call,
                                    const runtime::LaunchOptions &options) {
  std::vector<runtime::CallParameter> parameters;
  for (const Parameter &parameter : kernel.parameters)
    parameters.push_back(
        {parameter.name, parameter.isConstexpr, parameter.hasDefault || parameter.isTuned || parameter.isComputed});
  DITRON_ASSIGN_OR_RETURN(const std::vector<runtime::GivenArgument> given,
                          runtime::assignArguments(kernel.name, parameters, call));
  BoundCall bound(kernel, options);
  for (size_t i = 0; i < given.size(); ++i) {
    const Parameter &parameter = kernel.parameters[i];
    if (given[i].value)
      bound.values.emplace_back(parameter.name, given[i].value);
    for (const auto &[path, value] : given[i].elements)
      bound.values.emplace_back(fmt::format("{}.{}", parameter.name, path), value);
    if (!given[i].isMissing())
      continue;
    if (parameter.isComputed)
      return unsupported(
          fmt::format("kernel '{}': '{}' is computed by @triton.heuristics, which needs the compiler; give it "
                      "in the call, or allow compilation",
                      kernel.name, parameter.name));
    if (!parameter.isConstexpr && parameter.defaultValue)
      bound.values.emplace_back(parameter.name, &*parameter.defaultValue);
  }
  return bound;
}

const Parameter &BoundCall::parameterOf(std::string_view path) const {
  // verify() has seen that it is there.
  return *std::ranges::find(kernel->parameters, path.substr(0, path.find('.')), &Parameter::name);
}

const Argument *BoundCall::argumentAt(std::string_view path) const {
  const auto found = std::ranges::find(values, path, [](const auto &each) { return std::string_view(each.first); });
  return found == values.end() ? nullptr : found->second;
}

bool BoundCall::matchItem(const Item &item, Score &score, std::string *reason) const {
  const Parameter &parameter = parameterOf(item.path);
  const Argument *argument = argumentAt(item.path);
  const Value *fallback = parameter.defaultValue ? &*parameter.defaultValue : nullptr;
  auto refuse = [&](auto text) {
    if (reason)
      *reason = text();
    return false;
  };
  switch (item.kind) {
  case Item::Kind::Default:
    if (!argument || (fallback && isSameValue(*argument, *fallback)))
      return true;
    return refuse([&] {
      return fmt::format("'{}' is compiled as the kernel's default, given {}", item.path, argument->describe());
    });
  case Item::Kind::Constant: {
    if (!argument && parameter.isTuned)
      return true;
    const Value *value = argument ? argument : fallback;
    // A forced type of a run-time parameter is that of arithmetic with it, which a constant does not have.
    if (value && isSameValue(*value, item.value) && (parameter.isConstexpr || !value->forcedType())) {
      score.constants += !parameter.isConstexpr;
      return true;
    }
    return refuse([&] {
      return fmt::format("'{}' is compiled as {}, given {}", item.path, valueText(item.value),
                         value ? value->describe() : "nothing");
    });
  }
  case Item::Kind::Number:
  case Item::Kind::Descriptor:
    if (!argument || parameter.isConstexpr)
      return refuse([&] {
        return fmt::format("'{}' is compiled as a value of {} at run time, given nothing", item.path, item.type);
      });
    const bool isNumber = item.kind == Item::Kind::Number;
    if (const Fit fit = isNumber ? fitOfNumber(item, parameter, *argument) : fitOfDescriptor(item, *argument);
        fit != Fit::Yes)
      return refuse([&] { return misfitText(item, fit, *argument); });
    score.promises += (item.divisibility > 1) + (item.sizeDivisibility > 1);
    if (isNumber && !item.type.starts_with("*"))
      score.naturalTypes += item.type == (parameter.type.empty() ? toString(runtime::naturalType(*argument)) : parameter.type);
    return true;
  }
  return false;
}

std::optional<BoundCall::Score> BoundCall::score(const Variant &variant, std::string *reason) const {
  auto differs = [&](std::string_view what, auto compiled, auto wanted) {
    if (reason)
      *reason = fmt::format("{} is {}, wanted {}", what, compiled, wanted);
    return std::nullopt;
  };
  if (options.config && variant.config != static_cast<int64_t>(*options.config))
    return differs("configuration", variant.config, *options.config);
  if (options.numWarps && *options.numWarps != variant.artifact.numWarps)
    return differs("num_warps", variant.artifact.numWarps, *options.numWarps);
  if (options.numStages && *options.numStages != variant.numStages)
    return differs("num_stages", variant.numStages, *options.numStages);
  if (options.debug != variant.debug)
    return differs("debug", variant.debug, options.debug);
  Score score;
  for (const Item &item : variant.items)
    if (!matchItem(item, score, reason))
      return std::nullopt;
  // A tuple may have elements that the variant was not compiled for.
  for (const auto &[path, value] : values)
    if (std::ranges::none_of(variant.items, [&](const Item &item) { return item.path == path; })) {
      if (reason)
        *reason = fmt::format("'{}' is not there, given {}", path, value->describe());
      return std::nullopt;
    }
  return score;
}

std::vector<Argument> BoundCall::runTimeArguments(const Variant &variant) const {
  std::vector<Argument> arguments;
  for (const Item &item : variant.items)
    if (item.kind == Item::Kind::Number || item.kind == Item::Kind::Descriptor)
      arguments.push_back(*argumentAt(item.path));
  return arguments;
}

namespace {

/// One value as a signature has it, without its name.
std::string itemText(const Parameter &parameter, const Argument &argument) {
  const bool promises = parameter.specialiseAlignment;
  if (argument.is<runtime::Pointer>()) {
    const runtime::Pointer pointer = argument.get<runtime::Pointer>();
    return fmt::format("{}{}", parameter.type.empty() ? fmt::format("*{}", toString(pointer.type)) : parameter.type,
                       promises && runtime::isMultiple(pointer.address, runtime::alignmentUnit) ? ":16" : "");
  }
  if (argument.is<runtime::TensorDescriptor>()) {
    const auto &given = argument.get<runtime::TensorDescriptor>();
    const bool wholeVectors = promises && !given.shape.empty() && given.shape.back() % runtime::alignmentUnit == 0;
    return given.typeText() +
           (promises && runtime::rowsAreMultiples(given, runtime::alignmentUnit) ? ":16"
            : wholeVectors                                   ? ":1"
                                                             : "") +
           (wholeVectors ? ":16" : "");
  }
  const bool isForced = argument.forcedType().has_value();
  const bool isConstant =
      parameter.isConstexpr || argument.is<runtime::None>() || argument.is<std::string>() || argument.is<DataType>() ||
      (argument.isInteger() && argument.integerBits() == 1 && parameter.specialiseValue && !isForced);
  if (isConstant)
    return valueText(argument);
  const std::string type(isForced                  ? toString(*argument.forcedType())
                         : !parameter.type.empty() ? std::string_view(parameter.type)
                                                   : toString(runtime::naturalType(argument)));
  return type + (argument.isInteger() && promises && argument.integerBits() % runtime::alignmentUnit == 0 ? ":16" : "");
}

/// "name=text", or the elements of a tuple by their paths as "name=(a, b)".
std::string tupleText(std::string_view name, const std::vector<std::pair<std::string, std::string>> &parts) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < parts.size();) {
    const size_t dot = parts[i].first.find('.');
    const std::string head = parts[i].first.substr(0, dot);
    std::vector<std::pair<std::string, std::string>> inner;
    for (; i < parts.size() && parts[i].first.substr(0, parts[i].first.find('.')) == head; ++i)
      inner.emplace_back(dot == std::string::npos ? "" : parts[i].first.substr(dot + 1), parts[i].second);
    const bool isNumber = head.find_first_not_of("0123456789") == std::string::npos;
    texts.push_back(dot != std::string::npos ? tupleText(isNumber ? "" : head, inner)
                    : isNumber               ? inner.front().second
                                             : fmt::format("{}={}", head, inner.front().second));
  }
  return fmt::format("{}{}({}{})", name, name.empty() ? "" : "=", fmt::join(texts, ", "), texts.size() == 1 ? "," : "");
}

} // namespace

std::string BoundCall::signatureText() const {
  std::vector<std::string> items;
  for (const Parameter &parameter : kernel->parameters) {
    std::vector<std::pair<std::string, std::string>> elements;
    const std::string prefix = parameter.name + ".";
    for (const auto &[path, value] : values) {
      const std::string text = itemText(parameter, *value);
      if (path == parameter.name)
        items.push_back(
            fmt::format("{}={}", parameter.isConstexpr ? "constexpr " + parameter.name : parameter.name, text));
      else if (path.starts_with(prefix))
        elements.emplace_back(path.substr(prefix.size()), text);
    }
    if (!elements.empty())
      items.push_back(tupleText(parameter.name, elements));
  }
  return fmt::format("{}", fmt::join(items, ", "));
}

} // namespace ditron::package
