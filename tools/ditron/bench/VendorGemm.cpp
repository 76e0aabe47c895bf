//===- VendorGemm.cpp - The vendor's matrix product, to compare with ------------------------------------------------------===//
//
// Declarations are our own, after the library's public reference (cuBLAS Library User Guide, cublasGemmEx and section 2.2 on
// data types). The library is column-major: C^T [N, M] = B^T A^T computes our row-major C.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "bench/VendorGemm.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace ditron::tool {

namespace {

constexpr int operationPlain = 0, operationTransposed = 1;
constexpr int typeF32 = 0, typeF16 = 2, typeBF16 = 14;
constexpr int computeF32 = 68, computeF32Pedantic = 69, computeTf32 = 77;
constexpr int algorithmDefault = -1;

int cublasType(DataType type) {
  return type == DataType::BF16 ? typeBF16 : type == DataType::F16 ? typeF16 : typeF32;
}

} // namespace

struct VendorGemm::Library {
  void *object = nullptr;
  void *handle = nullptr;
  std::string name;
  int (*create)(void **handle) = nullptr;
  int (*destroy)(void *handle) = nullptr;
  int (*setStream)(void *handle, void *stream) = nullptr;
  int (*getVersion)(void *handle, int *version) = nullptr;
  int (*gemmEx)(void *handle, int transposeA, int transposeB, int m, int n, int k, const void *alpha, const void *a,
                int typeA, int strideA, const void *b, int typeB, int strideB, const void *beta, void *c, int typeC,
                int strideC, int compute, int algorithm) = nullptr;

  ~Library() {
    if (handle)
      destroy(handle);
    // The object stays open: it has made state in the process that outlives a handle.
  }
};

VendorGemm::VendorGemm(std::unique_ptr<Library> library) : library(std::move(library)) {}
VendorGemm::VendorGemm(VendorGemm &&other) noexcept = default;
VendorGemm &VendorGemm::operator=(VendorGemm &&other) noexcept = default;
VendorGemm::~VendorGemm() = default;

const std::string &VendorGemm::name() const { return library->name; }

Expected<VendorGemm> VendorGemm::open(const std::string &path, runtime::Stream &stream) {
  auto library = std::make_unique<Library>();
  const std::vector<std::string> paths =
      path.empty() ? std::vector<std::string>{"libcublas.so.13", "libcublas.so.12", "libcublas.so"} : std::vector{path};
  std::string problem;
  for (const std::string &each : paths) {
    library->object = dlopen(each.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library->object)
      break;
    problem = dlerror();
  }
  if (!library->object)
    return unsupported(fmt::format("cannot open cuBLAS: {}", problem));
  auto find = [&](auto &function, const char *symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library->object, symbol));
    return function != nullptr;
  };
  if (!find(library->create, "cublasCreate_v2") || !find(library->destroy, "cublasDestroy_v2") ||
      !find(library->setStream, "cublasSetStream_v2") || !find(library->getVersion, "cublasGetVersion_v2") ||
      !find(library->gemmEx, "cublasGemmEx"))
    return unsupported("cuBLAS: a function is missing; this is not version 11 or later");
  if (int result = library->create(&library->handle); result != 0) {
    library->handle = nullptr;
    return internalError(fmt::format("cublasCreate failed with status {}", result));
  }
  if (int result = library->setStream(library->handle, reinterpret_cast<void *>(stream.nativeHandle())); result != 0)
    return internalError(fmt::format("cublasSetStream failed with status {}", result));
  int version = 0;
  library->getVersion(library->handle, &version);
  library->name = fmt::format("cuBLAS {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  return VendorGemm(std::move(library));
}

Status VendorGemm::enqueue(const ops::GemmProblem &problem, runtime::Pointer a, runtime::Pointer b,
                           runtime::Pointer c) const {
  const float one = 1, zero = 0;
  const int type = cublasType(problem.dtype);
  const bool transposed = problem.order == ops::MatrixOrder::Transposed;
  const int m = static_cast<int>(problem.m), n = static_cast<int>(problem.n), k = static_cast<int>(problem.k);
  const int compute = problem.dtype != DataType::F32                             ? computeF32
                      : problem.precision == ops::MultiplyPrecision::Tf32 ? computeTf32
                                                                           : computeF32Pedantic;
  const int result = library->gemmEx(library->handle, transposed ? operationTransposed : operationPlain, operationPlain,
                                     n, m, k, &one, b.address, type, transposed ? k : n, a.address, type, k, &zero,
                                     c.address, type, n, compute, algorithmDefault);
  return result == 0 ? Status::ok() : internalError(fmt::format("cublasGemmEx failed with status {}", result));
}

} // namespace ditron::tool
