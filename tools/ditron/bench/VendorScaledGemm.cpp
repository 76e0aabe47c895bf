//===- VendorScaledGemm.cpp - The vendor's product of 8-bit operands --------------------------------------------------------===//
//
// cublasLtMatmul as torch._scaled_mm calls it: the first algorithm of the library's heuristics for a workspace of 32 MiB. Declarations
// are our own, after the library's public reference (cuBLAS Library User Guide, chapter "Using the cuBLASLt API"). The library is
// column-major: C^T [N, M] = B^T A^T computes our row-major C, so its first operand, with N rows, is our B. On GPUs before Blackwell
// it takes 8-bit operands only with K innermost in both: B as [N, K].
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "bench/VendorGemm.h"

#include <fmt/format.h>

namespace ditron::tool {

namespace {

// The library's numbers for types, operations and attributes.
constexpr int32_t operationPlain = 0, operationTransposed = 1;
constexpr int32_t typeF32 = 0, typeF16 = 2, typeI8 = 3, typeI32 = 10, typeBF16 = 14, typeF8E4M3 = 28, typeF8E5M2 = 29;
constexpr int32_t computeF32 = 68, computeI32 = 72;
constexpr int attributeTransposeA = 3, attributeTransposeB = 4, attributeScaleA = 17, attributeScaleB = 18,
              attributeFastAccumulation = 25, attributeScaleModeA = 31, attributeScaleModeB = 32;
constexpr int32_t scaleModeOuterVector = 3;
constexpr int preferenceWorkspaceBytes = 1;
constexpr int statusNotSupported = 15;
constexpr uint64_t workspaceBytes = uint64_t(32) << 20;

struct Algorithm {
  uint64_t data[8];
};
struct HeuristicResult {
  Algorithm algorithm;
  size_t workspaceBytes;
  int status;
  float waves;
  int reserved[4];
};
static_assert(sizeof(HeuristicResult) == 96 && offsetof(HeuristicResult, status) == 72, "as the library lays it out");

struct Functions {
  int (*create)(void **handle) = nullptr;
  int (*destroy)(void *handle) = nullptr;
  size_t (*getVersion)() = nullptr;
  int (*createOperation)(void **operation, int compute, int scaleType) = nullptr;
  int (*destroyOperation)(void *operation) = nullptr;
  int (*setOperationAttribute)(void *operation, int attribute, const void *value, size_t bytes) = nullptr;
  int (*createLayout)(void **layout, int type, uint64_t rows, uint64_t columns, int64_t stride) = nullptr;
  int (*destroyLayout)(void *layout) = nullptr;
  int (*createPreference)(void **preference) = nullptr;
  int (*destroyPreference)(void *preference) = nullptr;
  int (*setPreferenceAttribute)(void *preference, int attribute, const void *value, size_t bytes) = nullptr;
  int (*findAlgorithms)(void *handle, void *operation, void *layoutA, void *layoutB, void *layoutC, void *layoutD,
                        void *preference, int wanted, HeuristicResult *results, int *found) = nullptr;
  int (*matmul)(void *handle, void *operation, const void *alpha, const void *a, void *layoutA, const void *b,
                void *layoutB, const void *beta, const void *c, void *layoutC, void *d, void *layoutD,
                const Algorithm *algorithm, void *workspace, size_t workspaceBytes, void *stream) = nullptr;
  const char *(*statusName)(int status) = nullptr; ///< Not in the oldest versions.

  Status find(const VendorLibrary &library) {
    DITRON_RETURN_IF_ERROR(library.find(create, "cublasLtCreate"));
    DITRON_RETURN_IF_ERROR(library.find(destroy, "cublasLtDestroy"));
    DITRON_RETURN_IF_ERROR(library.find(getVersion, "cublasLtGetVersion"));
    DITRON_RETURN_IF_ERROR(library.find(createOperation, "cublasLtMatmulDescCreate"));
    DITRON_RETURN_IF_ERROR(library.find(destroyOperation, "cublasLtMatmulDescDestroy"));
    DITRON_RETURN_IF_ERROR(library.find(setOperationAttribute, "cublasLtMatmulDescSetAttribute"));
    DITRON_RETURN_IF_ERROR(library.find(createLayout, "cublasLtMatrixLayoutCreate"));
    DITRON_RETURN_IF_ERROR(library.find(destroyLayout, "cublasLtMatrixLayoutDestroy"));
    DITRON_RETURN_IF_ERROR(library.find(createPreference, "cublasLtMatmulPreferenceCreate"));
    DITRON_RETURN_IF_ERROR(library.find(destroyPreference, "cublasLtMatmulPreferenceDestroy"));
    DITRON_RETURN_IF_ERROR(library.find(setPreferenceAttribute, "cublasLtMatmulPreferenceSetAttribute"));
    DITRON_RETURN_IF_ERROR(library.find(findAlgorithms, "cublasLtMatmulAlgoGetHeuristic"));
    DITRON_RETURN_IF_ERROR(library.find(matmul, "cublasLtMatmul"));
    statusName = reinterpret_cast<decltype(statusName)>(library.address("cublasLtGetStatusName"));
    return Status::ok();
  }

  Status check(int status, std::string_view call) const {
    if (status == 0)
      return Status::ok();
    const std::string text = fmt::format("{} failed with status {}{}", call, status,
                                         statusName ? fmt::format(" ({})", statusName(status)) : "");
    return status == statusNotSupported ? unsupported(text) : internalError(text);
  }
};

/// Something that the library makes and destroys.
class Owned {
public:
  Owned() = default;
  Owned(const Owned &) = delete;
  Owned &operator=(const Owned &) = delete;
  ~Owned() { reset(); }
  /// Destroys what it held; what is put at the address is destroyed by `destroyer`.
  void **place(int (*destroyer)(void *)) {
    reset();
    destroy = destroyer;
    return &object;
  }
  /// What a call that failed has put there is nobody's.
  void forget() { object = nullptr; }
  operator void *() const { return object; }

private:
  void reset() {
    if (object)
      destroy(object);
    object = nullptr;
  }
  void *object = nullptr;
  int (*destroy)(void *) = nullptr;
};

int32_t cublasType(DataType type) {
  switch (type) {
  case DataType::F8E4NV: return typeF8E4M3;
  case DataType::F8E5: return typeF8E5M2;
  case DataType::I8: return typeI8;
  case DataType::I32: return typeI32;
  case DataType::BF16: return typeBF16;
  case DataType::F16: return typeF16;
  default: return typeF32;
  }
}

class CublasLt : public VendorGemm {
public:
  CublasLt(runtime::Rank &rank, bool fastAccumulation) : rank(rank), fastAccumulation(fastAccumulation) {}

  Status open(const std::string &path) {
    VendorLibrary library;
    DITRON_RETURN_IF_ERROR(
        library.open("cuBLASLt", path, {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}));
    DITRON_RETURN_IF_ERROR(call.find(library));
    DITRON_RETURN_IF_ERROR(made(handle, call.create(handle.place(call.destroy)), "cublasLtCreate"));
    stream = reinterpret_cast<void *>(rank.stream().nativeHandle());
    DITRON_ASSIGN_OR_RETURN(workspace, rank.allocate(DataType::U8, workspaceBytes, "cuBLASLt's workspace"));
    const size_t version = call.getVersion();
    nameText = fmt::format("cuBLASLt {}.{}.{}{}", version / 10000, version / 100 % 100, version % 100,
                           fastAccumulation ? ", fast accumulation" : "");
    return Status::ok();
  }

  DataType resultType(const ops::GemmProblem &problem) const override {
    return problem.dtype == DataType::I8 ? DataType::I32 : problem.typeOfResult();
  }

  Status prepare(const ops::GemmProblem &problem, const ops::EpilogueOperands &scales) override {
    isInteger = problem.dtype == DataType::I8;
    DITRON_RETURN_IF_ERROR(describeOperation(problem, scales));
    const int32_t operands = cublasType(problem.dtype), result = cublasType(resultType(problem));
    const bool transposed = problem.order == ops::MatrixOrder::Transposed;
    const int64_t depth = problem.k, rows = problem.n, columns = problem.m;
    DITRON_RETURN_IF_ERROR(transposed ? describe(layoutA, operands, depth, rows)
                                      : describe(layoutA, operands, rows, depth));
    DITRON_RETURN_IF_ERROR(describe(layoutB, operands, depth, columns));
    DITRON_RETURN_IF_ERROR(describe(layoutC, result, rows, columns));

    Owned preference;
    DITRON_RETURN_IF_ERROR(made(preference, call.createPreference(preference.place(call.destroyPreference)),
                                "cublasLtMatmulPreferenceCreate"));
    const uint64_t bytes = workspaceBytes;
    DITRON_RETURN_IF_ERROR(
        call.check(call.setPreferenceAttribute(preference, preferenceWorkspaceBytes, &bytes, sizeof bytes),
                   "cublasLtMatmulPreferenceSetAttribute of the workspace's size"));
    HeuristicResult found = {};
    int count = 0;
    DITRON_RETURN_IF_ERROR(call.check(
        call.findAlgorithms(handle, operation, layoutA, layoutB, layoutC, layoutC, preference, 1, &found, &count),
        "cublasLtMatmulAlgoGetHeuristic"));
    if (count < 1)
      return unsupported("cublasLtMatmulAlgoGetHeuristic found no algorithm");
    DITRON_RETURN_IF_ERROR(call.check(found.status, "the algorithm of cublasLtMatmulAlgoGetHeuristic"));
    if (found.workspaceBytes > workspaceBytes)
      return internalError(
          fmt::format("cublasLtMatmulAlgoGetHeuristic: an algorithm that needs {} bytes; {} were offered",
                      found.workspaceBytes, workspaceBytes));
    algorithm = found.algorithm;
    return Status::ok();
  }

  Status enqueue(runtime::Pointer a, runtime::Pointer b, runtime::Pointer c) const override {
    // As the operation's scale type says: fp32, or int32 of int8 operands.
    static const float oneF32 = 1, zeroF32 = 0;
    static const int32_t oneI32 = 1, zeroI32 = 0;
    const void *one = isInteger ? static_cast<const void *>(&oneI32) : &oneF32;
    const void *zero = isInteger ? static_cast<const void *>(&zeroI32) : &zeroF32;
    return call.check(call.matmul(handle, operation, one, b.address, layoutA, a.address, layoutB, zero, c.address,
                                  layoutC, c.address, layoutC, &algorithm, workspace.address(), workspaceBytes, stream),
                      "cublasLtMatmul");
  }

private:
  Status describeOperation(const ops::GemmProblem &problem, const ops::EpilogueOperands &scales) {
    DITRON_RETURN_IF_ERROR(
        made(operation,
             call.createOperation(operation.place(call.destroyOperation), isInteger ? computeI32 : computeF32,
                                  isInteger ? typeI32 : typeF32),
             "cublasLtMatmulDescCreate"));
    const bool transposed = problem.order == ops::MatrixOrder::Transposed;
    DITRON_RETURN_IF_ERROR(set(attributeTransposeA, transposed ? operationTransposed : operationPlain, "TRANSA"));
    DITRON_RETURN_IF_ERROR(set(attributeTransposeB, operationPlain, "TRANSB"));
    if (isInteger)
      return Status::ok(); // int32 sums have no scales
    DITRON_RETURN_IF_ERROR(set(attributeFastAccumulation, static_cast<int8_t>(fastAccumulation), "FAST_ACCUM"));
    const ops::GemmEpilogue &epilogue = problem.epilogue;
    if (epilogue.scalesB != ops::Scaling::None)
      DITRON_RETURN_IF_ERROR(
          set(attributeScaleA, static_cast<const void *>(scales.scalesB.address), "A_SCALE_POINTER"));
    if (epilogue.scalesA != ops::Scaling::None)
      DITRON_RETURN_IF_ERROR(
          set(attributeScaleB, static_cast<const void *>(scales.scalesA.address), "B_SCALE_POINTER"));
    // Versions before 12.8 know no modes, but one scale of a matrix.
    if (epilogue.scalesB == ops::Scaling::Vector)
      DITRON_RETURN_IF_ERROR(set(attributeScaleModeA, scaleModeOuterVector, "A_SCALE_MODE"));
    if (epilogue.scalesA == ops::Scaling::Vector)
      DITRON_RETURN_IF_ERROR(set(attributeScaleModeB, scaleModeOuterVector, "B_SCALE_MODE"));
    return Status::ok();
  }

  /// Of a call that makes something.
  Status made(Owned &owned, int status, std::string_view name) {
    if (status != 0)
      owned.forget();
    return call.check(status, name);
  }

  /// The attribute's type must be the one that the library has for it.
  template <class Value> Status set(int attribute, Value value, std::string_view attributeName) {
    return call.check(call.setOperationAttribute(operation, attribute, &value, sizeof value),
                      fmt::format("cublasLtMatmulDescSetAttribute of {}", attributeName));
  }

  /// A column-major matrix without gaps.
  Status describe(Owned &layout, int32_t type, int64_t rows, int64_t columns) {
    return made(layout, call.createLayout(layout.place(call.destroyLayout), type, rows, columns, rows),
                "cublasLtMatrixLayoutCreate");
  }

  runtime::Rank &rank;
  const bool fastAccumulation;
  Functions call;
  void *stream = nullptr;
  bool isInteger = false;
  Owned handle, operation, layoutA, layoutB, layoutC;
  Algorithm algorithm = {};
  runtime::Buffer workspace;
};

} // namespace

Expected<std::unique_ptr<VendorGemm>> openCublasLt(const std::string &path, runtime::Rank &rank,
                                                   bool fastAccumulation) {
  auto gemm = std::make_unique<CublasLt>(rank, fastAccumulation);
  DITRON_RETURN_IF_ERROR(gemm->open(path));
  return std::unique_ptr<VendorGemm>(std::move(gemm));
}

} // namespace ditron::tool
