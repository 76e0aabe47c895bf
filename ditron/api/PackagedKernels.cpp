//===- PackagedKernels.cpp - Kernels of ahead-of-time packages ----------------------------------------------------===//
#include "ditron/api/PackagedKernels.h"

#include <algorithm>
#include <fmt/format.h>

namespace ditron::api {

namespace {

class PackagedTemplate final : public KernelTemplate {
public:
  PackagedTemplate(std::shared_ptr<package::PackageProvider> packages, const package::Kernel &kernel,
                   std::string_view path, std::string_view text)
      : packages(std::move(packages)), source(kernel.source.name), path(path), text(text), kernel(kernel.name) {
    for (const package::Parameter &parameter : kernel.parameters) {
      names.push_back(parameter.name);
      if (parameter.isConstexpr)
        constexprNames.push_back(parameter.name);
    }
  }

  const std::vector<std::string> &parameterNames() const override { return names; }
  bool isConstexpr(std::string_view parameter) const override {
    return std::ranges::find(constexprNames, parameter) != constexprNames.end();
  }

  Expected<Variant> specialise(const CallArguments &arguments, const LaunchOptions &options) override {
    DITRON_ASSIGN_OR_RETURN(
        runtime::Specialisation made,
        packages->specialise({.name = source, .path = path, .text = text, .kernel = kernel}, arguments, options));
    return Variant{made.kernel, std::move(made.arguments),
                   [code = made.kernel.image().code](std::string_view stage) -> Expected<std::string> {
                     if (stage == "asm" && !code.empty())
                       return code;
                     return unsupported(
                         fmt::format("stage '{}' of a kernel from a package: it holds compiled code only", stage));
                   }};
  }

  Expected<Variant> compile(std::string_view signature, const LaunchOptions &) override {
    return unsupported(
        fmt::format("kernel '{}' is from a package: its variants are chosen by arguments, not by the signature '{}'",
                    kernel, signature));
  }

private:
  std::shared_ptr<package::PackageProvider> packages;
  std::string source, path, text, kernel;
  std::vector<std::string> names, constexprNames;
};

} // namespace

Expected<std::shared_ptr<KernelTemplate>> findPackaged(std::shared_ptr<package::PackageProvider> packages,
                                                       std::string_view source, std::string_view path,
                                                       std::string_view text, std::string_view kernel) {
  DITRON_ASSIGN_OR_RETURN(const package::Kernel *found, packages->findKernel(source, kernel));
  if (!found)
    return std::shared_ptr<KernelTemplate>();
  return std::shared_ptr<KernelTemplate>(std::make_shared<PackagedTemplate>(std::move(packages), *found, path, text));
}

} // namespace ditron::api
