//===- Package.h - What an ahead-of-time package holds ------------------------------------------------------*- C++ -*-===//
//
// A package is one file with compiled kernels: `ditron build` makes it with the compiler, a PackageProvider launches from it
// without. This is its content as plain values; PackageFile.h has the bytes (docs/packages.md describes both).
//
//   Package
//     kernels       what the source declares: parameters, defaults, which are compile-time
//       variants    what was compiled: for one target, types, compile-time values and launch options
//         codes     in one or two forms: PTX, and machine code where there was an assembler
//     plans         what operators chose for the shapes they were built for
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_PACKAGE_PACKAGE_H
#define DITRON_PACKAGE_PACKAGE_H

#include "ditron/runtime/KernelProvider.h"

#include <map>

namespace ditron::package {

/// A compile-time value: None, a bool, an integer, a float, a string or a dtype.
using Value = runtime::Argument;

/// The same kind and the same value; 1, True and 1.0 are three values, and NaN equals itself.
bool isSameValue(const Value &a, const Value &b);
/// As a signature says it: 64, True, "gelu", fp16.
std::string valueText(const Value &value);

/// A parameter as the kernel's source declares it.
struct Parameter {
  std::string name;
  bool isConstexpr = false;
  bool hasDefault = false;
  bool specialiseValue = true;       ///< An integer 1 may be a compile-time value.
  bool specialiseAlignment = true;   ///< Multiples of 16 may be compiled as such.
  bool isTuned = false;              ///< Configurations of @triton.autotune set it.
  bool isComputed = false;           ///< @triton.heuristics sets it.
  std::optional<Value> defaultValue; ///< Where the default is a number, string or dtype.
  std::string type;                  ///< Forced by its annotation ("i64", "*fp16"), else empty.
};

/// What a variant was compiled for at one place: a parameter, or an element of a tuple ("t.0", "t.x").
struct Item {
  enum class Kind : uint8_t {
    Default,    ///< The parameter's default, which only the compiler knows.
    Constant,   ///< `value`.
    Number,     ///< A run-time value or pointer of `type`, a multiple of `divisibility`.
    Descriptor, ///< A tensor descriptor for blocks of elements of `type`.
  };

  std::string path;
  Kind kind = Kind::Number;
  Value value;
  std::string type; ///< "*bf16", "i32"; of a descriptor "bf16".
  uint32_t divisibility = 1;
  std::vector<uint32_t> block;   ///< Of a descriptor.
  bool fillNan = false;          ///< Of a descriptor.
  uint32_t sizeDivisibility = 1; ///< Of a descriptor: of the last size.
};

/// Code in one form.
struct Code {
  ArtifactCode kind = ArtifactCode::HostObject;
  std::string bytes;
};

struct Variant {
  std::string signature; ///< For people, and for `ditron build --signature`.
  uint32_t numStages = 3;
  bool debug = false;
  int32_t config = -1; ///< Configuration of @triton.autotune, negative for none.
  std::vector<Item> items;
  Artifact artifact; ///< Without code; `codeKind` has no meaning.
  std::vector<Code> codes;
};

/// A file that the compiler read, by the SHA-256 of its text in 64 hexadecimal digits.
struct SourceStamp {
  std::string name;
  std::string hash;

  bool operator==(const SourceStamp &) const = default;
};

struct Kernel {
  std::string name;
  SourceStamp source; ///< By the name that KernelReference::name has.
  std::vector<SourceStamp> imports;
  std::vector<Parameter> parameters;
  std::vector<Variant> variants;
};

/// What an operator chose for a problem.
struct OperatorPlan {
  std::string op;              ///< "ag_gemm".
  std::string target;          ///< "cuda:sm_90a".
  std::string problem;         ///< "m=4096 n=2048 k=8192 ranks=4 dtype=bf16".
  std::string plan;            ///< "tile 128x128x64 warps 8 stages 3 group 8".
  uint64_t workspaceBytes = 0; ///< Symmetric memory of each rank.
};

struct Package {
  std::string compiler;              ///< "ditron 0.1.0, commit 0123456789ab".
  std::vector<std::string> features; ///< Of the processor, that the code of simulated targets uses: "avx2".
  std::vector<Kernel> kernels;
  std::vector<OperatorPlan> plans;
};

/// Features of this machine's processor that compiled code may use, of those that can be asked for without a compiler.
std::vector<std::string> processorFeatures();

/// Ok, or the first thing in the package that contradicts itself or that no launch may rely on: types that do not exist, sizes
/// that do not fit them, indices of parameters that are not there.
Status verify(const Package &package);

} // namespace ditron::package
#endif // DITRON_PACKAGE_PACKAGE_H
