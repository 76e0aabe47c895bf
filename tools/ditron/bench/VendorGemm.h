//===- VendorGemm.h - The vendor's matrix product, to compare with --------------------------------------------*- C++ -*-===//
//
// cuBLAS, when it is installed: opened at run time, so that nothing depends on it. It enqueues on a stream of ours, so that both
// products can be timed in one process and in turns.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_VENDORGEMM_H
#define DITRON_TOOLS_DITRON_VENDORGEMM_H

#include "ditron/ops/Gemm.h"

namespace ditron::tool {

class VendorGemm {
public:
  /// Opens the library: `path`, or, when empty, by its usual names. The stream is of a GPU that is the process's first.
  static Expected<VendorGemm> open(const std::string &path, runtime::Stream &stream);
  VendorGemm(VendorGemm &&other) noexcept;
  VendorGemm &operator=(VendorGemm &&other) noexcept;
  ~VendorGemm();

  /// "cuBLAS 13.1.0"
  const std::string &name() const;
  /// C = A * B, all without gaps between rows. bf16 and fp16 with fp32 accumulation; fp32 as tf32 or exact.
  Status enqueue(const ops::GemmProblem &problem, runtime::Pointer a, runtime::Pointer b, runtime::Pointer c) const;

private:
  struct Library;
  explicit VendorGemm(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library;
};

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_VENDORGEMM_H
