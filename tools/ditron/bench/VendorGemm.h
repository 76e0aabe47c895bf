//===- VendorGemm.h - The vendor's matrix product, to compare with --------------------------------------------*- C++ -*-===//
//
// cuBLAS, or for 8-bit operands cuBLASLt, when it is installed: opened at run time, so that nothing depends on it. It enqueues on a
// stream of ours, so that both products can be timed in one process and in turns.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_VENDORGEMM_H
#define DITRON_TOOLS_DITRON_VENDORGEMM_H

#include "ditron/ops/Gemm.h"

namespace ditron::tool {

/// C = A * B of one shape after the other, all matrices without gaps between rows. bf16 and fp16 with fp32 accumulation; fp32 as tf32
/// or exact; fp8 with scales, the result in the problem's type; int8 to int32 without scales.
class VendorGemm {
public:
  /// Opens the library for operands of a type: `path`, or, when empty, by its usual names. The rank's GPU is the process's first.
  static Expected<std::unique_ptr<VendorGemm>> open(const std::string &path, runtime::Rank &rank, DataType operands,
                                                    bool fastAccumulation);
  virtual ~VendorGemm() = default;

  /// "cuBLAS 13.1.0"
  const std::string &name() const { return nameText; }
  /// Of C.
  virtual DataType resultType(const ops::GemmProblem &problem) const { return problem.typeOfResult(); }
  /// Chooses how to compute the problem; the scales, as its epilogue says, must live as long as calls are enqueued. An error says what
  /// the library does not support.
  virtual Status prepare(const ops::GemmProblem &problem, const ops::EpilogueOperands &scales) = 0;
  /// A call of what was prepared.
  virtual Status enqueue(runtime::Pointer a, runtime::Pointer b, runtime::Pointer c) const = 0;

protected:
  std::string nameText;
};

/// cuBLAS: 16-bit operands and fp32.
Expected<std::unique_ptr<VendorGemm>> openCublas(const std::string &path, runtime::Rank &rank);
/// cuBLASLt: 8-bit operands. `fastAccumulation`: fp8 is added in the tensor cores alone, whose sums are shorter than fp32.
Expected<std::unique_ptr<VendorGemm>> openCublasLt(const std::string &path, runtime::Rank &rank, bool fastAccumulation);

/// A library opened at run time. It is never closed: it has made state in the process that outlives its handles.
class VendorLibrary {
public:
  /// `path`, or, when empty, the first of `names` that there is. `title`: for errors.
  Status open(std::string title, const std::string &path, std::initializer_list<const char *> names);
  /// Sets the function; an error names a symbol that is missing.
  template <class Function> Status find(Function &function, const char *symbol) const {
    function = reinterpret_cast<Function>(address(symbol));
    return function ? Status::ok() : missing(symbol);
  }
  /// Null where there is none.
  void *address(const char *symbol) const;

private:
  Status missing(const char *symbol) const;
  std::string title, path;
  void *object = nullptr;
};

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_VENDORGEMM_H
