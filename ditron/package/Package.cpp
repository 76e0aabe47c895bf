//===- Package.cpp - What an ahead-of-time package holds -----------------------------------------------------------------===//
//
// Values, the processor, and the checks that everything behind the reader relies on.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/package/Package.h"

#include "ditron/support/TargetName.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <elf.h>
#include <fmt/format.h>
#include <set>

namespace ditron::package {

namespace {

constexpr uint32_t mostWarps = 64, mostStages = 64, mostParameters = 4096, mostDimensions = 5;
constexpr uint64_t mostSharedBytes = uint64_t(1) << 20;
constexpr uint32_t mostDivisibility = 1u << 20;

bool isPointer(std::string_view type) { return type.starts_with("*"); }

/// The element of a pointer, "*k" being one to constant data, or the type itself.
std::optional<DataType> elementOf(std::string_view type) {
  if (isPointer(type))
    type.remove_prefix(type.starts_with("*k") ? 2 : 1);
  return parseDataType(type);
}

Status wrongType(std::string_view where, std::string_view type) {
  return invalidArgument(fmt::format("{} has the type '{}', which does not exist", where, type));
}

/// What a machine's loader is given must not lead it behind the bytes.
Status checkCubin(std::string_view bytes) {
  Elf64_Ehdr header;
  auto fits = [&](uint64_t offset, uint64_t size) { return offset <= bytes.size() && size <= bytes.size() - offset; };
  if (!fits(0, sizeof(header)))
    return invalidArgument("machine code that is no ELF file");
  std::memcpy(&header, bytes.data(), sizeof(header));
  const uint64_t programs = uint64_t(header.e_phnum) * header.e_phentsize;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_shentsize != sizeof(Elf64_Shdr) ||
      !fits(header.e_shoff, uint64_t(header.e_shnum) * sizeof(Elf64_Shdr)) || !fits(header.e_phoff, programs))
    return invalidArgument("machine code that is no whole ELF file");
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, bytes.data() + header.e_shoff + i * sizeof(section), sizeof(section));
    if (section.sh_type != SHT_NOBITS && !fits(section.sh_offset, section.sh_size))
      return invalidArgument("machine code with a section that ends behind the file");
  }
  return Status::ok();
}

/// Checks one variant of a kernel; its messages name neither, which the caller does.
class VariantChecker {
public:
  VariantChecker(const Kernel &kernel, const Variant &variant)
      : kernel(kernel), variant(variant), artifact(variant.artifact) {}

  Status check() const {
    DITRON_RETURN_IF_ERROR(checkLaunch());
    DITRON_RETURN_IF_ERROR(checkCodes());
    for (const ArtifactParameter &parameter : artifact.parameters)
      DITRON_RETURN_IF_ERROR(checkParameter(parameter));
    for (const ArtifactTensorMap &map : artifact.tensorMaps)
      DITRON_RETURN_IF_ERROR(checkMap(map));
    return checkItems();
  }

private:
  Status checkLaunch() const {
    DITRON_ASSIGN_OR_RETURN(const TargetName target, parseTargetName(artifact.target));
    if (target.text != artifact.target || artifact.threadsPerWarp != target.warpSize)
      return invalidArgument(
          fmt::format("target '{}' with warps of {} threads", artifact.target, artifact.threadsPerWarp));
    if (!std::has_single_bit(artifact.numWarps) || artifact.numWarps > 32 || artifact.launchWarps > mostWarps ||
        variant.numStages < 1 || variant.numStages > mostStages || artifact.sharedBytes > mostSharedBytes ||
        variant.config < -1)
      return invalidArgument(fmt::format(
          "{} warps ({} at launch), {} stages, {} bytes of shared memory, configuration {}", artifact.numWarps,
          artifact.launchWarps, variant.numStages, artifact.sharedBytes, variant.config));
    if (artifact.kernel != kernel.name || artifact.entrySymbol.empty())
      return invalidArgument(
          fmt::format("code of kernel '{}' with the entry '{}'", artifact.kernel, artifact.entrySymbol));
    if (artifact.parameters.size() > mostParameters)
      return invalidArgument(
          fmt::format("{} parameters; at most {} are accepted", artifact.parameters.size(), mostParameters));
    return Status::ok();
  }

  Status checkCodes() const {
    const bool isSimulated = artifact.target.starts_with("sim");
    std::set<ArtifactCode> seen;
    for (const Code &code : variant.codes) {
      if ((code.kind == ArtifactCode::HostObject) != isSimulated || code.bytes.empty() ||
          !seen.insert(code.kind).second)
        return invalidArgument(fmt::format("code that target '{}' cannot have", artifact.target));
      if (code.kind == ArtifactCode::Cubin)
        DITRON_RETURN_IF_ERROR(checkCubin(code.bytes));
    }
    return variant.codes.empty() ? invalidArgument("no code") : Status::ok();
  }

  Status checkParameter(const ArtifactParameter &parameter) const {
    const std::optional<DataType> element = elementOf(parameter.type);
    const std::string where = fmt::format("parameter '{}'", parameter.name);
    if (!element)
      return wrongType(where, parameter.type);
    const uint32_t bytes = isPointer(parameter.type) ? 8 : sizeOf(*element);
    if (parameter.bytes != bytes || parameter.divisibility < 1 || parameter.divisibility > mostDivisibility)
      return invalidArgument(fmt::format("{} of type {} has {} bytes and is a multiple of {}", where, parameter.type,
                                         parameter.bytes, parameter.divisibility));
    return Status::ok();
  }

  Status checkMap(const ArtifactTensorMap &map) const {
    const size_t rank = map.sizes.size();
    const bool isShaped = rank >= 1 && rank <= mostDimensions && map.strides.size() == rank && map.box.size() == rank;
    if (!isShaped || map.base >= artifact.parameters.size() || !isPointer(artifact.parameters[map.base].type) ||
        !map.elementType() || std::ranges::count(map.box, 0u) > 0 ||
        (map.swizzleBytes != 0 && map.swizzleBytes != 32 && map.swizzleBytes != 64 && map.swizzleBytes != 128))
      return invalidArgument(fmt::format("a tensor map of {} dimensions at parameter {}", rank, map.base));
    for (const auto *numbers : {&map.sizes, &map.strides})
      for (const ArtifactMapNumber &number : *numbers) {
        const bool isThere = number.parameter < 0 || static_cast<size_t>(number.parameter) < artifact.parameters.size();
        const std::optional<DataType> type = isThere && number.parameter >= 0
                                                 ? parseDataType(artifact.parameters[number.parameter].type)
                                                 : DataType::I64;
        if (!isThere || !type || !isInteger(*type))
          return invalidArgument(
              fmt::format("a tensor map takes parameter {}, which is no integer of the kernel", number.parameter));
      }
    return Status::ok();
  }

  /// The items give the run-time parameters, one by one.
  Status checkItems() const {
    std::set<std::string_view> paths;
    size_t next = 0;
    auto take = [&](std::string_view type) {
      const bool isThat = next < artifact.parameters.size() && (type.empty() || artifact.parameters[next].type == type);
      ++next;
      return isThat;
    };
    for (const Item &item : variant.items) {
      const std::string_view head = std::string_view(item.path).substr(0, item.path.find('.'));
      if (std::ranges::none_of(kernel.parameters, [&](const Parameter &each) { return each.name == head; }) ||
          !paths.insert(item.path).second)
        return invalidArgument(fmt::format("'{}' is no parameter of its own", item.path));
      if (item.divisibility < 1 || item.divisibility > mostDivisibility || item.sizeDivisibility < 1 ||
          item.sizeDivisibility > mostDivisibility)
        return invalidArgument(
            fmt::format("'{}' is a multiple of {} and {}", item.path, item.divisibility, item.sizeDivisibility));
      bool isRight = true;
      if (item.kind == Item::Kind::Number) {
        isRight = elementOf(item.type).has_value() && take(item.type);
      } else if (item.kind == Item::Kind::Descriptor) {
        const size_t rank = item.block.size();
        isRight = rank >= 1 && rank <= mostDimensions && parseDataType(item.type) && take("*" + item.type);
        for (size_t i = 0; i < rank && isRight; ++i)
          isRight = take("i32");
        for (size_t i = 0; i + 1 < rank && isRight; ++i)
          isRight = take("i64");
      }
      if (!isRight)
        return invalidArgument(fmt::format("'{}' of type '{}' is not what the code takes", item.path, item.type));
    }
    if (next != artifact.parameters.size())
      return invalidArgument(
          fmt::format("the code takes {} values, and {} are described", artifact.parameters.size(), next));
    return Status::ok();
  }

  const Kernel &kernel;
  const Variant &variant;
  const Artifact &artifact;
};

bool isHash(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Status verifyKernel(const Kernel &kernel) {
  if (kernel.name.empty() || kernel.source.name.empty() || !isHash(kernel.source.hash))
    return invalidArgument("without a name, or its source without a name and hash");
  for (const SourceStamp &import : kernel.imports)
    if (!isHash(import.hash))
      return invalidArgument(fmt::format("the file '{}' has no hash", import.name));
  std::set<std::string_view> names;
  for (const Parameter &parameter : kernel.parameters) {
    if (parameter.name.empty() || parameter.name.find('.') != std::string::npos || !names.insert(parameter.name).second)
      return invalidArgument(fmt::format("a parameter's name '{}'", parameter.name));
    if (!parameter.type.empty() && !elementOf(parameter.type))
      return wrongType(fmt::format("parameter '{}'", parameter.name), parameter.type);
  }
  for (size_t i = 0; i < kernel.variants.size(); ++i)
    if (const Status status = VariantChecker(kernel, kernel.variants[i]).check(); !status.isOk())
      return Status(StatusCode::InvalidArgument, fmt::format("variant {}: {}", i, status.message()));
  return Status::ok();
}

} // namespace

bool isSameValue(const Value &a, const Value &b) {
  if (a.value().index() != b.value().index()) // 5 is the same integer with a sign and without
    return a.isInteger() && b.isInteger() && a.integerBits() == b.integerBits() &&
           static_cast<int64_t>(a.integerBits()) >= 0;
  if (a.is<bool>())
    return a.get<bool>() == b.get<bool>();
  if (a.isInteger())
    return a.integerBits() == b.integerBits();
  if (a.is<double>())
    return (std::isnan(a.get<double>()) && std::isnan(b.get<double>())) ||
           std::bit_cast<uint64_t>(a.get<double>()) == std::bit_cast<uint64_t>(b.get<double>());
  if (a.is<std::string>())
    return a.get<std::string>() == b.get<std::string>();
  if (a.is<DataType>())
    return a.get<DataType>() == b.get<DataType>();
  return a.is<runtime::None>();
}

std::string valueText(const Value &value) {
  struct Print {
    std::string operator()(runtime::None) const { return "None"; }
    std::string operator()(bool truth) const { return truth ? "True" : "False"; }
    std::string operator()(int64_t number) const { return std::to_string(number); }
    std::string operator()(uint64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const {
      return std::isfinite(number) ? fmt::format("{:#}", number) : fmt::format("{}", number);
    }
    std::string operator()(const runtime::Pointer &) const { return "pointer"; }
    std::string operator()(const std::string &text) const {
      std::string quoted = "\"";
      for (char c : text)
        if (c == '"' || c == '\\')
          quoted += {'\\', c};
        else
          quoted += static_cast<unsigned char>(c) < 0x20 ? fmt::format("\\x{:02x}", c) : std::string(1, c);
      return quoted + "\"";
    }
    std::string operator()(DataType type) const { return std::string(toString(type)); }
    std::string operator()(const runtime::TensorDescriptor &) const { return "descriptor"; }
  };
  return std::visit(Print(), value.value());
}

std::vector<std::string> processorFeatures() {
  std::vector<std::string> features;
#if defined(__x86_64__)
  __builtin_cpu_init();
#define DITRON_FEATURE(name)                                                                                           \
  if (__builtin_cpu_supports(name))                                                                                    \
  features.emplace_back(name)
  DITRON_FEATURE("sse4.2");
  DITRON_FEATURE("popcnt");
  DITRON_FEATURE("avx");
  DITRON_FEATURE("avx2");
  DITRON_FEATURE("bmi");
  DITRON_FEATURE("bmi2");
  DITRON_FEATURE("fma");
  DITRON_FEATURE("avx512f");
  DITRON_FEATURE("avx512bw");
  DITRON_FEATURE("avx512cd");
  DITRON_FEATURE("avx512dq");
  DITRON_FEATURE("avx512vl");
  DITRON_FEATURE("avx512ifma");
  DITRON_FEATURE("avx512vbmi");
  DITRON_FEATURE("avx512vbmi2");
  DITRON_FEATURE("avx512vnni");
  DITRON_FEATURE("avx512bitalg");
  DITRON_FEATURE("avx512vpopcntdq");
  DITRON_FEATURE("gfni");
  DITRON_FEATURE("vpclmulqdq");
  DITRON_FEATURE("avx512bf16");
  DITRON_FEATURE("avx512fp16");
  DITRON_FEATURE("avx512vp2intersect");
  DITRON_FEATURE("avxvnni");
  DITRON_FEATURE("f16c");
  DITRON_FEATURE("lzcnt");
  DITRON_FEATURE("movbe");
  DITRON_FEATURE("vaes");
#undef DITRON_FEATURE
#endif
  return features;
}

Status verify(const Package &package) {
  std::set<std::pair<std::string_view, std::string_view>> names;
  for (const Kernel &kernel : package.kernels) {
    if (const Status status = verifyKernel(kernel); !status.isOk())
      return status.withContext(fmt::format("kernel '{}'", kernel.name));
    if (!names.emplace(kernel.source.name, kernel.name).second)
      return invalidArgument(fmt::format("kernel '{}' of '{}' is there twice", kernel.name, kernel.source.name));
  }
  return Status::ok();
}

} // namespace ditron::package
