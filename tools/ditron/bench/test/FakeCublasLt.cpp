//===- FakeCublasLt.cpp - A stand-in for cuBLASLt ---------------------------------------------------------------------------===//
//
// A shared library with the functions that VendorScaledGemm.cpp calls, which computes at once and on the host what the descriptors say:
// C = alpha * op(A) * op(B) * scales, column-major. It is written after the library's public reference, not after our calls, and
// refuses what that refuses on Hopper. The environment variable FAKE_CUBLASLT names a function that fails.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/support/DataType.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

using ditron::DataType;

namespace {

constexpr int ok = 0, invalidValue = 7, notSupported = 15, internalError = 14;

struct Operation {
  int compute = 0, scaleType = 0;
  int32_t transposeA = 0, transposeB = 0, modeA = 0, modeB = 0;
  const float *scaleA = nullptr, *scaleB = nullptr;
  int8_t fast = 0;
};
struct Layout {
  int type = 0;
  uint64_t rows = 0, columns = 0;
  int64_t stride = 0;
};
struct Preference {
  uint64_t workspace = 0;
};
struct Heuristic {
  uint64_t algorithm[8];
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
};
constexpr uint64_t algorithmMark = 0xD17205, workspaceNeeded = uint64_t(1) << 20;
int objects = 0;

bool fails(std::string_view function) {
  const char *named = std::getenv("FAKE_CUBLASLT");
  return named && function == named;
}

bool isFloat8(int type) { return type == 28 || type == 29; }

DataType dataType(int type) {
  switch (type) {
  case 3: return DataType::I8;
  case 10: return DataType::I32;
  case 14: return DataType::BF16;
  case 2: return DataType::F16;
  case 28: return DataType::F8E4NV;
  case 29: return DataType::F8E5;
  default: return DataType::F32;
  }
}

template <class Object> int make(void **place, const char *function, Object object) {
  if (fails(function)) {
    *place = reinterpret_cast<void *>(uintptr_t(0xDEAD)); // what a failed call leaves must not be destroyed
    return internalError;
  }
  *place = new Object(object);
  ++objects;
  return ok;
}
template <class Object> int destroy(void *object) {
  delete static_cast<Object *>(object);
  --objects;
  return ok;
}

template <class Value> int take(Value &place, const void *value, size_t bytes) {
  if (bytes != sizeof place)
    return invalidValue;
  std::memcpy(&place, value, bytes);
  return ok;
}

/// What op(A) [m, k], op(B) [k, n] and C [m, n] must be.
int check(const Operation &operation, const Layout &a, const Layout &b, const Layout &c) {
  const uint64_t m = operation.transposeA ? a.columns : a.rows, k = operation.transposeA ? a.rows : a.columns;
  const uint64_t depthB = operation.transposeB ? b.columns : b.rows, n = operation.transposeB ? b.rows : b.columns;
  if (k != depthB || c.rows != m || c.columns != n || a.stride < int64_t(a.rows) || b.stride < int64_t(b.rows) ||
      c.stride < int64_t(c.rows))
    return invalidValue;
  const bool isAlongDepth = operation.transposeA == 1 && operation.transposeB == 0;
  if (isFloat8(a.type) && isFloat8(b.type))
    return isAlongDepth && !(a.type == 29 && b.type == 29) && c.type == 14 && operation.compute == 68 &&
                   operation.scaleType == 0 && a.stride % 16 == 0 && b.stride % 16 == 0 && c.stride * 2 % 16 == 0
               ? ok
               : notSupported;
  if (a.type == 3 && b.type == 3)
    return isAlongDepth && c.type == 10 && operation.compute == 72 && operation.scaleType == 10 && !operation.scaleA &&
                   !operation.scaleB && a.stride % 4 == 0 && b.stride % 4 == 0
               ? ok
               : notSupported;
  return notSupported;
}

} // namespace

extern "C" {

int fakeCublasLtObjects() { return objects; }

int cublasLtCreate(void **handle) { return make(handle, "cublasLtCreate", int(0)); }
int cublasLtDestroy(void *handle) { return destroy<int>(handle); }
size_t cublasLtGetVersion() { return 130102; }
const char *cublasLtGetStatusName(int status) {
  return status == notSupported    ? "CUBLAS_STATUS_NOT_SUPPORTED"
         : status == internalError ? "CUBLAS_STATUS_INTERNAL_ERROR"
                                   : "CUBLAS_STATUS_INVALID_VALUE";
}

int cublasLtMatmulDescCreate(void **place, int compute, int scaleType) {
  return make(place, "cublasLtMatmulDescCreate", Operation{.compute = compute, .scaleType = scaleType});
}
int cublasLtMatmulDescDestroy(void *object) { return destroy<Operation>(object); }
int cublasLtMatmulDescSetAttribute(void *object, int attribute, const void *value, size_t bytes) {
  if (fails("cublasLtMatmulDescSetAttribute"))
    return internalError;
  auto &operation = *static_cast<Operation *>(object);
  switch (attribute) {
  case 3: return take(operation.transposeA, value, bytes);
  case 4: return take(operation.transposeB, value, bytes);
  case 17: return take(operation.scaleA, value, bytes);
  case 18: return take(operation.scaleB, value, bytes);
  case 25: return take(operation.fast, value, bytes);
  case 31: return take(operation.modeA, value, bytes);
  case 32: return take(operation.modeB, value, bytes);
  default: return invalidValue;
  }
}

int cublasLtMatrixLayoutCreate(void **place, int type, uint64_t rows, uint64_t columns, int64_t stride) {
  return make(place, "cublasLtMatrixLayoutCreate", Layout{type, rows, columns, stride});
}
int cublasLtMatrixLayoutDestroy(void *object) { return destroy<Layout>(object); }

int cublasLtMatmulPreferenceCreate(void **place) { return make(place, "cublasLtMatmulPreferenceCreate", Preference()); }
int cublasLtMatmulPreferenceDestroy(void *object) { return destroy<Preference>(object); }
int cublasLtMatmulPreferenceSetAttribute(void *object, int attribute, const void *value, size_t bytes) {
  if (fails("cublasLtMatmulPreferenceSetAttribute"))
    return internalError;
  return attribute == 1 ? take(static_cast<Preference *>(object)->workspace, value, bytes) : invalidValue;
}

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *operation, void *a, void *b, void *c, void *d, void *preference,
                                   int wanted, Heuristic *results, int *found) {
  *found = 0;
  if (fails("cublasLtMatmulAlgoGetHeuristic") || !handle || wanted != 1 || c != d)
    return internalError;
  if (fails("no algorithm"))
    return ok;
  if (int status = check(*static_cast<Operation *>(operation), *static_cast<Layout *>(a), *static_cast<Layout *>(b),
                         *static_cast<Layout *>(c)))
    return status;
  if (static_cast<Preference *>(preference)->workspace < workspaceNeeded)
    return notSupported;
  *results = {.algorithm = {algorithmMark}, .workspace = workspaceNeeded, .status = ok, .waves = 1, .reserved = {}};
  *found = 1;
  return ok;
}

int cublasLtMatmul(void *handle, void *op, const void *alpha, const void *a, void *layoutA, const void *b,
                   void *layoutB, const void *beta, const void *c, void *layoutC, void *d, void *layoutD,
                   const uint64_t *algorithm, void *workspace, size_t workspaceBytes, void *) {
  const auto &operation = *static_cast<Operation *>(op);
  const auto &formA = *static_cast<Layout *>(layoutA), &formB = *static_cast<Layout *>(layoutB),
             &formC = *static_cast<Layout *>(layoutC);
  if (fails("cublasLtMatmul"))
    return internalError;
  if (!handle || c != d || layoutC != layoutD || algorithm[0] != algorithmMark || !workspace ||
      workspaceBytes < workspaceNeeded)
    return invalidValue;
  if (int status = check(operation, formA, formB, formC))
    return status;
  const DataType scalar = dataType(operation.scaleType);
  const double one = ditron::loadElement(scalar, alpha), zero = ditron::loadElement(scalar, beta);
  auto at = [](const void *matrix, const Layout &form, uint64_t row, uint64_t column) {
    const DataType type = dataType(form.type);
    return ditron::loadElement(type,
                               static_cast<const std::byte *>(matrix) + (row + column * form.stride) * sizeOf(type));
  };
  auto scale = [](const float *scales, int32_t mode, uint64_t index) {
    return scales ? double(scales[mode == 3 ? index : 0]) : 1;
  };
  const uint64_t depth = operation.transposeA ? formA.rows : formA.columns;
  const DataType result = dataType(formC.type);
  for (uint64_t column = 0; column < formC.columns; ++column)
    for (uint64_t row = 0; row < formC.rows; ++row) {
      double sum = 0;
      for (uint64_t k = 0; k < depth; ++k)
        sum += (operation.transposeA ? at(a, formA, k, row) : at(a, formA, row, k)) *
               (operation.transposeB ? at(b, formB, column, k) : at(b, formB, k, column));
      sum *= one * scale(operation.scaleA, operation.modeA, row) * scale(operation.scaleB, operation.modeB, column);
      auto *place = static_cast<std::byte *>(d) + (row + column * formC.stride) * sizeOf(result);
      ditron::storeElement(result, place, sum + (zero == 0 ? 0 : zero * ditron::loadElement(result, place)));
    }
  return ok;
}

} // extern "C"
