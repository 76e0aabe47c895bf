//===- Request.h - What is to be predicted --------------------------------------------------------------*- C++ -*-===//
#ifndef DITRON_PREDICT_REQUEST_H
#define DITRON_PREDICT_REQUEST_H

#include "ditron/ops/GemmKernels.h"
#include "ditron/predict/JsonFields.h"

#include <map>

namespace ditron::predict {

enum class Operator {
  Gemm,          ///< One GPU: [m, k] x [k, n].
  AgGemm,        ///< allgather(A [m, k]) x B [k, n / gpus].
  GemmRs,        ///< reduce_scatter(A [m, k / gpus] x B [k / gpus, n]).
  GemmAr,        ///< The same with all_reduce.
  A2aGemm,       ///< A row of blocks from every peer, [m / gpus, k] each, then x B [k, n].
  AllGather,     ///< `bytes` from each rank to all others.
  ReduceScatter, ///< `bytes` of result on each rank.
  AllReduce,     ///< `bytes` on each rank.
  AllToAll,      ///< `bytes` from each rank to each other one.
  AgMoe,         ///< allgather of tokens, then the first product of the experts, tensor parallel.
  MoeRs,         ///< The second product, sum over the experts of a token, reduce_scatter.
  MoeAr,         ///< The same with all_reduce.
  EpDispatch,    ///< Tokens to the ranks of their experts, each token to a rank once.
  EpCombine,     ///< And back.
  AgAttention,   ///< Attention of each rank's queries over gathered keys and values.
  FlashDecode,   ///< One query against a context that is dealt out over the ranks.
};

enum class Form {
  Overlapped, ///< The operator's own schedule: copies beside a kernel whose tiles wait.
  Unfused,    ///< The same kernels, all communication before or after.
  Vendor,     ///< The vendor's libraries, one call after the other.
  CopyEngine, ///< A collective as copies by the copy engines in rotated order.
  OneShot,    ///< A collective by SMs through symmetric memory: everything to everybody at once.
  TwoShot,    ///< all_reduce as reduce_scatter and all_gather through symmetric memory.
};

std::string_view toString(Operator op);
std::string_view toString(Form form);
/// All of them, as users write them.
const std::vector<std::string> &operatorNames();
const std::vector<std::string> &formNames();
/// The forms that an operator has, the default first.
std::vector<Form> formsOf(Operator op);

struct Request {
  Operator op = Operator::Gemm;
  Form form = Form::Overlapped;
  uint32_t gpus = 1;
  DataType dtype = DataType::BF16;
  int64_t m = 0, n = 0, k = 0;                                             ///< Of the whole product.
  int64_t bytes = 0;                                                       ///< Of collectives.
  int64_t tokens = 0, hidden = 0, intermediate = 0, experts = 0, topk = 0; ///< Tokens of all ranks; for ep_*: of each.
  int64_t batch = 1, heads = 0, kvHeads = 0, headDim = 0, context = 0;     ///< Context: of all ranks together.
  uint32_t chunksPerRank = 1;
  std::optional<ops::TileConfig> tile = std::nullopt;     ///< What the operator would choose when not given.
  uint32_t communicationSms = 0;                          ///< SMs that move bytes in one_shot and two_shot; 0: all.
  std::map<uint32_t, double> slowRanks = {};              ///< Rank -> factor.
  std::optional<bool> usesRepresentatives = std::nullopt; ///< Chosen by the number of GPUs when not given.
  bool keepsSpans = false;
};

/// Refuses what is missing, has no effect or makes no sense for the operator.
Status verify(const Request &request);

/// Reads the keys of a request: "op", "form", "gpus", "dtype", "m", ...; the caller reads what else there is and finishes.
Request readRequest(JsonFields &fields);

/// "128x256x64", with "stages" and so on as in plans of `ditron bench gemm`.
Expected<ops::TileConfig> parseTile(std::string_view text);

} // namespace ditron::predict
#endif // DITRON_PREDICT_REQUEST_H
