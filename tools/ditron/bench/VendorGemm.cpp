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

int cublasType(DataType type) { return type == DataType::BF16 ? typeBF16 : type == DataType::F16 ? typeF16 : typeF32; }

class Cublas : public VendorGemm {
public:
  ~Cublas() override {
    if (handle)
      destroy(handle);
  }

  Status open(const std::string &path, runtime::Stream &stream) {
    VendorLibrary library;
    DITRON_RETURN_IF_ERROR(library.open("cuBLAS", path, {"libcublas.so.13", "libcublas.so.12", "libcublas.so"}));
    int (*create)(void **handle) = nullptr;
    int (*setStream)(void *handle, void *stream) = nullptr;
    int (*getVersion)(void *handle, int *version) = nullptr;
    DITRON_RETURN_IF_ERROR(library.find(create, "cublasCreate_v2"));
    DITRON_RETURN_IF_ERROR(library.find(destroy, "cublasDestroy_v2"));
    DITRON_RETURN_IF_ERROR(library.find(setStream, "cublasSetStream_v2"));
    DITRON_RETURN_IF_ERROR(library.find(getVersion, "cublasGetVersion_v2"));
    DITRON_RETURN_IF_ERROR(library.find(gemmEx, "cublasGemmEx"));
    if (int result = create(&handle); result != 0) {
      handle = nullptr;
      return internalError(fmt::format("cublasCreate failed with status {}", result));
    }
    if (int result = setStream(handle, reinterpret_cast<void *>(stream.nativeHandle())); result != 0)
      return internalError(fmt::format("cublasSetStream failed with status {}", result));
    int version = 0;
    if (int result = getVersion(handle, &version); result != 0)
      return internalError(fmt::format("cublasGetVersion failed with status {}", result));
    nameText = fmt::format("cuBLAS {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
    return Status::ok();
  }

  Status prepare(const ops::GemmProblem &wanted, const ops::EpilogueOperands &) override {
    problem = wanted;
    return Status::ok();
  }

  Status enqueue(runtime::Pointer a, runtime::Pointer b, runtime::Pointer c) const override {
    const float one = 1, zero = 0;
    const int type = cublasType(problem.dtype);
    const bool transposed = problem.order == ops::MatrixOrder::Transposed;
    const int m = static_cast<int>(problem.m), n = static_cast<int>(problem.n), k = static_cast<int>(problem.k);
    const int compute = problem.dtype != DataType::F32                      ? computeF32
                        : problem.precision == ops::MultiplyPrecision::Tf32 ? computeTf32
                                                                            : computeF32Pedantic;
    const int result =
        gemmEx(handle, transposed ? operationTransposed : operationPlain, operationPlain, n, m, k, &one, b.address,
               type, transposed ? k : n, a.address, type, k, &zero, c.address, type, n, compute, algorithmDefault);
    return result == 0 ? Status::ok() : internalError(fmt::format("cublasGemmEx failed with status {}", result));
  }

private:
  void *handle = nullptr;
  int (*destroy)(void *handle) = nullptr;
  int (*gemmEx)(void *handle, int transposeA, int transposeB, int m, int n, int k, const void *alpha, const void *a,
                int typeA, int strideA, const void *b, int typeB, int strideB, const void *beta, void *c, int typeC,
                int strideC, int compute, int algorithm) = nullptr;
  ops::GemmProblem problem;
};

} // namespace

Status VendorLibrary::open(std::string libraryTitle, const std::string &given,
                           std::initializer_list<const char *> names) {
  title = std::move(libraryTitle);
  const std::vector<std::string> paths =
      given.empty() ? std::vector<std::string>(names.begin(), names.end()) : std::vector{given};
  std::string problem;
  for (const std::string &each : paths) {
    object = dlopen(each.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (object) {
      path = each;
      return Status::ok();
    }
    problem = dlerror();
  }
  return unsupported(fmt::format("cannot open {}: {}", title, problem));
}

void *VendorLibrary::address(const char *symbol) const { return dlsym(object, symbol); }

Status VendorLibrary::missing(const char *symbol) const {
  return unsupported(fmt::format("'{}' has no function {}; it is not {}, or an older one", path, symbol, title));
}

Expected<std::unique_ptr<VendorGemm>> openCublas(const std::string &path, runtime::Rank &rank) {
  auto gemm = std::make_unique<Cublas>();
  DITRON_RETURN_IF_ERROR(gemm->open(path, rank.stream()));
  return std::unique_ptr<VendorGemm>(std::move(gemm));
}

Expected<std::unique_ptr<VendorGemm>> VendorGemm::open(const std::string &path, runtime::Rank &rank, DataType operands,
                                                       bool fastAccumulation) {
  return sizeOf(operands) == 1 ? openCublasLt(path, rank, fastAccumulation) : openCublas(path, rank);
}

} // namespace ditron::tool
