//===- CallBinding.cpp - Which argument each parameter gets --------------------------------------------------------------===//
#include "ditron/runtime/CallBinding.h"

#include "ditron/support/Suggest.h"

#include <algorithm>
#include <fmt/format.h>

namespace ditron::runtime {

namespace {

/// Takes the arguments one by one.
class Assignment {
public:
  Assignment(std::string_view kernel, std::span<const CallParameter> parameters)
      : kernel(kernel), parameters(parameters), given(parameters.size()) {
    for (const CallParameter &parameter : parameters)
      names.push_back(parameter.name);
  }

  Status takePositional(const std::vector<Argument> &arguments) {
    if (arguments.size() > given.size())
      return invalidArgument(fmt::format("kernel '{}' takes at most {} positional arguments ({}), given {}", kernel,
                                         given.size(), fmt::join(names, ", "), arguments.size()));
    for (size_t i = 0; i < arguments.size(); ++i)
      given[i].value = &arguments[i];
    return Status::ok();
  }

  Status takeKeyword(const std::string &name, const Argument &value) {
    const size_t dot = name.find('.');
    const auto found = std::ranges::find(names, name.substr(0, dot));
    if (found == names.end())
      return invalidArgument(fmt::format("kernel '{}' has no parameter '{}'{}; it has {}", kernel, name,
                                         didYouMean(name, names), fmt::join(names, ", ")));
    GivenArgument &target = given[found - names.begin()];
    const std::string_view path = dot == std::string::npos ? std::string_view() : std::string_view(name).substr(dot + 1);
    const bool isTaken = std::ranges::any_of(target.elements, [&](const auto &each) { return each.first == path; });
    if (target.value || isTaken || (path.empty() && !target.elements.empty()))
      return invalidArgument(fmt::format("kernel '{}' got several values for argument '{}'", kernel, name));
    if (path.empty())
      target.value = &value;
    else
      target.elements.emplace_back(path, &value);
    return Status::ok();
  }

  Expected<std::vector<GivenArgument>> finish() {
    std::vector<std::string> missing;
    for (size_t i = 0; i < given.size(); ++i)
      if (given[i].isMissing() && !parameters[i].mayBeMissing)
        missing.push_back(fmt::format("'{}'{}", names[i], parameters[i].isConstexpr ? " (tl.constexpr)" : ""));
    if (!missing.empty())
      return invalidArgument(fmt::format("kernel '{}' lacks {} {}", kernel, missing.size() == 1 ? "argument" : "arguments",
                                         fmt::join(missing, ", ")));
    return std::move(given);
  }

private:
  std::string_view kernel;
  std::span<const CallParameter> parameters;
  std::vector<std::string> names;
  std::vector<GivenArgument> given;
};

} // namespace

Expected<std::vector<GivenArgument>> assignArguments(std::string_view kernel, std::span<const CallParameter> parameters,
                                                     const CallArguments &call) {
  Assignment assignment(kernel, parameters);
  DITRON_RETURN_IF_ERROR(assignment.takePositional(call.positional));
  for (const auto &[name, value] : call.keywords)
    DITRON_RETURN_IF_ERROR(assignment.takeKeyword(name, value));
  return assignment.finish();
}

} // namespace ditron::runtime
