//===- Routing.h - Which token goes to which expert, and where its row lies -------------------------------------*- C++ -*-===//
//
// A slot is one choice of one token: its j-th expert. Rows are the slots that have an expert, sorted by expert, those of one expert in
// the order of their slots. All of it is found on the device, in launches that can be captured; the host knows the number of
// tokens and no more. Device code: kernels/moe/routing.py.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_MOE_ROUTING_H
#define DITRON_OPS_MOE_ROUTING_H

#include "ditron/ops/KeptPlans.h"
#include "ditron/ops/KernelLaunch.h"

namespace ditron::ops {

/// How logits become scores.
enum class RouterScore { Softmax, Sigmoid };
std::string_view toString(RouterScore score);

struct RouterProblem {
  int64_t tokens = 0;
  uint32_t experts = 0; ///< At most mostExperts.
  uint32_t topK = 1;    ///< At most `experts` and mostTopK.
  RouterScore score = RouterScore::Softmax;
  bool normalized = true; ///< The weights of a token sum up to `scale`; else they are its scores times `scale`.
  double scale = 1;
};
inline constexpr uint32_t mostExperts = 1024, mostTopK = 64;

/// The topK experts of each token with the highest scores, the best first, the lower number first among equals.
///   logits: [tokens, experts], fp32, bf16 or fp16. bias: [experts] fp32, counts for the choice and not for the weights; null: none.
///   ids: [tokens, topK] int32. weights: [tokens, topK] fp32.
Expected<PreparedCall> prepareRouter(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                     const RouterProblem &problem, runtime::Pointer logits, runtime::Pointer bias,
                                     runtime::Pointer ids, runtime::Pointer weights);

struct RoutingOptions {
  uint32_t experts = 0; ///< At most mostExperts.
  uint32_t topK = 1;    ///< Slots of a token.
  int64_t maxTokens = 0;
  uint32_t blockM = 128; ///< Rows of a tile of the products that follow (GroupedGemm.h).
};

/// The rows of a rank. Its results are valid from a call's end to the next call.
class Routing {
public:
  /// Allocates on the rank, which must outlive this.
  static Expected<Routing> create(runtime::Rank &rank, runtime::KernelProvider &kernels, const RoutingOptions &options);

  /// Compiles and loads what calls with so many tokens need.
  Status prepare(int64_t tokens);
  /// Enqueues the sorting of ids [tokens, topK] int32, on the device. A slot whose id is not in [0, experts) has no row. Not prepared under
  /// capture is an error.
  Status enqueue(runtime::Stream &stream, runtime::Pointer ids, int64_t tokens);
  /// The launches of such a call, for an operator that makes it a part of its own. The order of the tokens begins at `firstToken` and
  /// goes round.
  Expected<std::vector<PreparedCall>> calls(runtime::Pointer ids, int64_t tokens, int64_t firstToken = 0);

  /// [experts + 1] int32: where the rows of each expert begin; the last is the number of rows.
  runtime::Pointer offsets() const { return offsetsOf.pointer(); }
  /// [rows] int32.
  runtime::Pointer slotOfRow() const { return slots.pointer(); }
  /// [tokens, topK] int32; -1: no row.
  runtime::Pointer rowOfSlot() const { return rows.pointer(); }
  /// The tiles of the rows, for products whose tiles have options().blockM rows.
  runtime::Pointer tiles() const { return tilesOf.pointer(); }
  const RoutingOptions &options() const { return optionValues; }

private:
  struct Plan {
    std::vector<PreparedCall> calls;
    uint32_t countIds = 0, placeIds = 0; ///< Parameters.
  };
  Expected<Plan> plan(runtime::Pointer ids, int64_t tokens);
  Status verifyTokens(int64_t tokens) const;

  RoutingOptions optionValues;
  runtime::Rank *rank = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  runtime::Buffer counts, offsetsOf, slots, rows, tilesOf;
  KeptPlans<Plan> kept;
};

/// How the device code that counts and places slots cuts them: so many for a block.
inline constexpr int64_t slotsOfChunk = 512;
/// Gives launches of count_slots and place_slots of any wrapper the warps of their blocks and what those hold at once: CHUNK, PART, EXPERTS, and
/// of place_slots COUNTS.
void cutSlots(const runtime::Rank &rank, uint32_t experts, KernelCall &count, KernelCall &place);
/// Tiles of `blockM` rows that `rows` rows of `experts` experts have at most.
int64_t mostTilesOf(int64_t rows, uint32_t experts, uint32_t blockM);

/// Fills a table of tiles from offsets [experts + 1] int32 that somebody else has made. tiles: [1 + 2 * mostTilesOf(maxRows, ...)] int32.
Expected<PreparedCall> prepareTiles(runtime::KernelProvider &kernels, runtime::Rank &rank, uint32_t experts,
                                    int64_t maxRows, uint32_t blockM, runtime::Pointer offsets, runtime::Pointer tiles);
/// The same of rows with a capacity: expert e has room for `capacity` rows from row e * capacity on, and `counts` [experts] int32 of them
/// are there; a count that is more stands for all of the room, so that nothing is ever read or written beyond it. Also fills
/// offsets [experts + 1] int32, of which a product reads where the rows of each expert end: offsets[e + 1]. The product's maxRows is
/// experts * capacity.
Expected<PreparedCall> prepareCapacityTiles(runtime::KernelProvider &kernels, runtime::Rank &rank, uint32_t experts,
                                            int64_t capacity, uint32_t blockM, runtime::Pointer counts,
                                            runtime::Pointer offsets, runtime::Pointer tiles);

} // namespace ditron::ops
#endif // DITRON_OPS_MOE_ROUTING_H
