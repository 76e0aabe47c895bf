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
      : packages(std::move(packages)), source(kernel.source.name), path(path), sourceText(text), kernel(kernel.name) {
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

  Expected<runtime::Specialisation> specialise(const CallArguments &arguments, const LaunchOptions &options) override {
    return packages->specialise({.name = source, .path = path, .text = sourceText, .kernel = kernel}, arguments,
                                options);
  }
  Expected<std::string> signatureOf(const CallArguments &) const override { return std::string(); }
  Expected<runtime::Kernel> compile(std::string_view signature, const LaunchOptions &) override {
    return unsupported(
        fmt::format("kernel '{}' is from a package: its variants are chosen by arguments, not by the signature '{}'",
                    kernel, signature));
  }

  Expected<std::string> text(const runtime::Kernel &variant, std::string_view, const LaunchOptions &,
                             std::string_view stage) const override {
    if (stage == "asm" && !variant.image().code.empty())
      return variant.image().code;
    return unsupported(fmt::format("stage '{}' of a kernel from a package: it holds compiled code only", stage));
  }

private:
  std::shared_ptr<package::PackageProvider> packages;
  std::string source, path, sourceText, kernel;
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
