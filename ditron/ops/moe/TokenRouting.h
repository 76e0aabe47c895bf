//===- TokenRouting.h - Choosing experts, sorting slots and adding rows of the caller's ---------------------------*- C++ -*-===//
//
// Routing.h and prepareSlotSum as an object of one rank, for callers who give operands and results with each call:
//
//   choose   logits, bias -> ids, weights
//   sort     ids -> offsets, slotOfRow, rowOfSlot          what grouped products take (GroupedProduct.h)
//   sum      rows, rowOfSlot, weights -> out
//
// All operands at multiples of 16 bytes.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_MOE_TOKENROUTING_H
#define DITRON_OPS_MOE_TOKENROUTING_H

#include "ditron/ops/moe/Routing.h"

namespace ditron::ops {

struct TokenRoutingOptions {
  uint32_t experts = 0;
  uint32_t topK = 1;
  int64_t maxTokens = 0;
  RouterScore score = RouterScore::Softmax;
  bool normalized = true; ///< As RouterProblem's, like the next.
  double scale = 1;
  int64_t hidden = 0;              ///< Elements of the rows that are added; 0: none are.
  DataType dtype = DataType::BF16; ///< Of those rows and of out.
};

class TokenRouting {
public:
  /// Allocates on the rank, which must outlive this.
  static Expected<TokenRouting> create(runtime::Rank &rank, runtime::KernelProvider &kernels,
                                       const TokenRoutingOptions &options);

  /// Compiles and loads what calls with so many tokens need. What was not prepared is made by the call, which a capture does not allow.
  Status prepare(int64_t tokens);
  /// As prepareRouter, of fp32 logits.
  Status choose(runtime::Stream &stream, runtime::Pointer logits, runtime::Pointer bias, runtime::Pointer ids,
                runtime::Pointer weights, int64_t tokens);
  /// As Routing::enqueue, with results [experts + 1], [tokens * topK], [tokens, topK] int32.
  Status sort(runtime::Stream &stream, runtime::Pointer ids, runtime::Pointer offsets, runtime::Pointer slotOfRow,
              runtime::Pointer rowOfSlot, int64_t tokens);
  /// As prepareSlotSum; weights: null for ones.
  Status sum(runtime::Stream &stream, runtime::Pointer rows, runtime::Pointer rowOfSlot, runtime::Pointer weights,
             runtime::Pointer out, int64_t tokens);

  const TokenRoutingOptions &options() const { return optionValues; }

private:
  enum class Kind { Choose, Sort, Sum };
  /// An operand by the parameters of the device code; null ones stand for None.
  struct Operand {
    std::string_view name, parameter;
    runtime::Pointer pointer;
    DataType type;
    bool mayBeNull = false;
  };
  /// The launches of a call, with the parameters of each that are operands, by number.
  struct Launch {
    PreparedCall call;
    std::vector<std::pair<uint32_t, size_t>> pointers;
  };
  using Plan = std::vector<Launch>;
  using Operands = std::vector<Operand>;

  static Operands chooseOperands(runtime::Pointer logits, runtime::Pointer bias, runtime::Pointer ids,
                                 runtime::Pointer weights);
  static Operands sortOperands(runtime::Pointer ids, runtime::Pointer offsets, runtime::Pointer slotOfRow,
                               runtime::Pointer rowOfSlot);
  Operands sumOperands(runtime::Pointer rows, runtime::Pointer rowOfSlot, runtime::Pointer weights,
                       runtime::Pointer out) const;
  Status verifyTokens(int64_t tokens) const;
  static KeptPlans<Plan>::Key keyOf(Kind kind, const Operands &operands, int64_t tokens);
  Expected<Plan> makePlan(Kind kind, const Operands &operands, int64_t tokens);
  Status prepareOne(Kind kind, const Operands &operands, int64_t tokens);
  Status enqueue(runtime::Stream &stream, Kind kind, const Operands &operands, int64_t tokens);

  TokenRoutingOptions optionValues;
  runtime::Rank *rank = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  std::optional<Routing> routing; ///< Gives the launches that sort.
  KeptPlans<Plan> kept;
};

} // namespace ditron::ops
#endif // DITRON_OPS_MOE_TOKENROUTING_H
