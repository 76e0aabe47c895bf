//===- Gemm.h - C = A * B on one GPU ----------------------------------------------------------------------------*- C++ -*-===//
//
// The matrix product of the library, with fp32 (of int8 operands int32) accumulation and the epilogue of GemmEpilogue.h. Device code: kernels/gemm. How it is cut into tiles is chosen
// per shape by chooseGemmTile and may be given instead.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_GEMM_H
#define DITRON_OPS_GEMM_H

#include "ditron/ops/GemmEpilogue.h"

namespace ditron::ops {

/// How tiles get to and from the multiprocessors.
enum class GemmMovement {
  Descriptors, ///< A persistent kernel with tensor descriptors: TMA, wgmma and warp specialisation where there are such.
  Pointers,    ///< A block per tile, loads through pointers.
};
std::string_view toString(GemmMovement movement);

struct GemmProblem {
  int64_t m = 0, n = 0, k = 0;
  DataType dtype = DataType::BF16; ///< Of A and B: bf16, fp16, fp32, fp8 (e4m3, e5m2) or int8.
  std::optional<DataType> resultType = std::nullopt; ///< Of C: bf16, fp16 or fp32; defaultResultType when not given.
  MatrixOrder order = MatrixOrder::Transposed;
  RowStrides strides = {};
  MultiplyPrecision precision = MultiplyPrecision::Tf32;
  GemmEpilogue epilogue = {};
  bool addsBias = true; ///< False: the epilogue has a bias, which another rank's part of the product adds.

  DataType typeOfResult() const { return resultType.value_or(defaultResultType(dtype)); }
};

/// A complete choice of how to compute a product.
struct GemmPlan {
  GemmMovement movement = GemmMovement::Pointers;
  TileConfig tile;

  /// "descriptors 128x256x64 warps 8 stages 3 group 8"
  std::string text() const;
};
/// Reads the text form, of which everything after the blocks may be left out: "128x256x64 stages 4". `defaults` gives the rest.
Expected<GemmPlan> parseGemmPlan(std::string_view text, GemmPlan defaults);

/// The plan whose predicted time is least, for a target ("cuda:sm_90a") whose GPUs have `multiprocessors`.
GemmPlan chooseGemmPlan(const GemmProblem &problem, std::string_view target, uint32_t multiprocessors);
/// The tile of that plan in a world: what operators that overlap take for one rank's product. The C interface and
/// `ditron build --op` both ask here, so that packages hold what programs look for.
TileConfig chooseTile(const GemmProblem &problem, runtime::World &world);
/// All plans that are considered for the problem, best predicted first.
std::vector<GemmPlan> rankGemmPlans(const GemmProblem &problem, std::string_view target, uint32_t multiprocessors);

/// Whether tensor descriptors can move the problem's matrices: rows are multiples of 16 bytes apart, and 8-bit weights lie along K.
bool allowsDescriptors(const GemmProblem &problem);
/// Refuses what no kernel accepts.
Status verifyGemm(const GemmProblem &problem, const GemmPlan &plan);

/// Binds the kernel of the plan (or of chooseGemmPlan) to operands on a rank; calls of the result compute C = A * B with the
/// epilogue. A: [m, k]; B: [n, k], or [k, n] where the order is Plain; C: [m, n], [m, n / 2] with SwiGlu.
Expected<PreparedCall> prepareGemm(runtime::KernelProvider &kernels, runtime::Rank &rank, const GemmProblem &problem, runtime::Pointer a,
                                   runtime::Pointer b, runtime::Pointer c,
                                   const std::optional<GemmPlan> &plan = std::nullopt,
                                   const EpilogueOperands &extras = {});

} // namespace ditron::ops
#endif // DITRON_OPS_GEMM_H
