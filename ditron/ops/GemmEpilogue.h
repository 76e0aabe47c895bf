//===- GemmEpilogue.h - What becomes of the sums of a product -------------------------------------------------*- C++ -*-===//
//
// The elements of C = A * B are computed in fp32 (int8 operands: exact int32 sums, then fp32), and stored once:
//
//   value = sum over k of A[m, k] * B[k, n] * scale of A * scale of B + bias[n]
//   C[m, n] = activation(value), rounded to the result's type
//
// Scales make narrow operands (fp8, int8) stand for larger ranges: one number for a matrix, or one for each row of A or column of B, as
// quantisation of activations by token and of weights by output channel gives them. They are fp32 in device memory.
//
// SwiGlu takes pairs of columns, gate first: the weights of gate and up projection are *interleaved*, column 2j of B is the gate of column
// 2j + 1, and C[m, j] = silu(value[m, 2j]) * value[m, 2j + 1] has half as many columns. Interleaved, both are in one tile and in one
// thread's registers. Device code: kernels/product.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_GEMMEPILOGUE_H
#define DITRON_OPS_GEMMEPILOGUE_H

#include "ditron/ops/GemmKernels.h"

#include <optional>

namespace ditron::ops {

/// How many scales a matrix has.
enum class Scaling {
  None,
  Tensor, ///< One fp32 number.
  Vector, ///< fp32: one for each row of A [M] or each column of B [N].
};
/// "none", "tensor", "vector".
std::string_view toString(Scaling scaling);
Expected<Scaling> parseScaling(std::string_view name);

enum class Activation { None, Relu, Gelu, Silu, SwiGlu };
/// "none", "relu", "gelu" (with the error function), "silu", "swiglu".
std::string_view toString(Activation activation);
Expected<Activation> parseActivation(std::string_view name);

struct GemmEpilogue {
  Scaling scalesA = Scaling::None, scalesB = Scaling::None;
  std::optional<DataType> bias = std::nullopt; ///< Its type, bf16, fp16 or fp32; none: no bias.
  Activation activation = Activation::None;

  /// Of a product with so many columns.
  int64_t resultColumns(int64_t columns) const { return activation == Activation::SwiGlu ? columns / 2 : columns; }
};

/// What a call's epilogue reads; each as the options say, null where they have none.
struct EpilogueOperands {
  runtime::Pointer scalesA, scalesB; ///< fp32: [1], or [M] and [N]; the rows of A that this rank gives.
  runtime::Pointer bias;             ///< [N]
};

/// The result's type where the options name none: that of the operands, of fp8 and int8 operands bf16.
DataType defaultResultType(DataType operands);
/// Of the sums of a tile: i32 for int8 operands, else fp32.
DataType sumType(DataType operands);

/// Operands of bf16, fp16, fp32, fp8 (e4m3, e5m2) and int8, results of bf16, fp16 and fp32; of operators whose sums go on to other
/// ranks (`reduces`) no activation.
Status verifyEpilogue(std::string_view operation, DataType operands, DataType result, const GemmEpilogue &epilogue,
                      bool reduces);
/// What the epilogue reads is there and of its type, and nothing else is given.
Status verifyEpilogueOperands(std::string_view operation, const GemmEpilogue &epilogue,
                              const EpilogueOperands &operands);
/// `columns` of a product can have this activation, and sums of `depth` int8 products fit.
Status verifyEpilogueShape(std::string_view operation, DataType operands, const GemmEpilogue &epilogue, int64_t columns,
                           int64_t depth);
/// Tiles that the tensor cores multiply: of 8-bit operands at least 32 deep.
Status verifyTileDepth(std::string_view operation, DataType operands, const TileConfig &tile);

/// Elements from row to row of a call's matrices; 0: rows follow each other without a gap.
struct RowStrides {
  int64_t a = 0, b = 0, c = 0;
};
/// The distance of rows with so many columns.
inline int64_t rowStride(int64_t given, int64_t columns) { return given == 0 ? columns : given; }
/// `strides` without zeros, for matrices of so many columns; refuses rows that overlap.
Expected<RowStrides> completeStrides(std::string_view operation, const RowStrides &strides, int64_t columnsA,
                                     int64_t columnsB, int64_t columnsC);
/// Offsets inside a tile of matrices with these strides, all given, fit 32 bits.
Status verifySpans(std::string_view operation, const RowStrides &strides, const TileConfig &tile);

/// Adds the arguments that kernels/product takes, but the activation. `biasColumns`: 0 on ranks that leave the bias to another.
void appendEpilogue(KernelCall &call, const GemmEpilogue &epilogue, const EpilogueOperands &operands,
                    int64_t biasColumns);
/// The same without scales of A, for kernels that have none.
void appendColumnEpilogue(KernelCall &call, const GemmEpilogue &epilogue, const EpilogueOperands &operands,
                          int64_t biasColumns);
void appendActivation(KernelCall &call, const GemmEpilogue &epilogue);

} // namespace ditron::ops
#endif // DITRON_OPS_GEMMEPILOGUE_H
