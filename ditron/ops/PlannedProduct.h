//===- PlannedProduct.h - What products over the ranks have in common on the host ------------------------------*- C++ -*-===//
//
// AllGather+GEMM, GEMM+ReduceScatter and GEMM+AllReduce are called alike: by a plan that the caller holds, or by shape, with plans that
// the operator keeps. Here are the plan, the keeping, and the checks of what a call is given; the operators say what a plan launches.
//
// A plan's enqueue exchanges pointers and launches the plan's graph, or, in a capture or where the plan was made by enqueue itself,
// appends to the two streams, and nothing else: it can be captured and replayed.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_PLANNEDPRODUCT_H
#define DITRON_OPS_PLANNEDPRODUCT_H

#include "ditron/ops/Gemm.h"
#include "ditron/ops/KeptPlans.h"
#include "ditron/ops/collectives/Collective.h"
#include "ditron/ops/plans/PlanAgreement.h"
#include "ditron/runtime/CallSequence.h"

namespace ditron::ops {

/// What a call is given by the caller.
enum class Operand { A, B, Result, ScalesA, ScalesB, Bias };
inline constexpr size_t numOperands = 6;
/// "a", "b", "result", "scales of a", "scales of b", "bias": in messages.
std::string_view toString(Operand operand);

/// By Operand; null for what the operator's epilogue does not have.
struct OperandPointers {
  std::array<runtime::Pointer, numOperands> pointers;

  OperandPointers(runtime::Pointer a, runtime::Pointer b, runtime::Pointer result, const EpilogueOperands &extras)
      : pointers{a, b, result, extras.scalesA, extras.scalesB, extras.bias} {}
  runtime::Pointer operator[](Operand operand) const { return pointers[static_cast<size_t>(operand)]; }
  EpilogueOperands epilogue() const { return {pointers[3], pointers[4], pointers[5]}; }
  /// With those of others where these are null.
  OperandPointers orElse(const OperandPointers &others) const;
};
/// By Operand; none for what is not taken.
using OperandTypes = std::array<std::optional<DataType>, numOperands>;
OperandTypes operandTypes(DataType dtype, DataType resultType, const GemmEpilogue &epilogue);

/// The shape of one rank's call: rows, and columns (AllGather+GEMM) or depth (the others).
struct ProductShape {
  int64_t rows = 0, size = 0;
  RowStrides strides = {};
};

/// What the options of an operator say about the product of a call; the sizes are one rank's.
struct ProductTerms {
  DataType dtype;
  int64_t maxRows, columns, depth;
  MatrixOrder weightOrder;
  const GemmEpilogue &epilogue;
};

/// A launch of a call, and which of its parameters are the call's operands.
struct OperandLaunch {
  using Names = std::vector<std::pair<std::string_view, Operand>>;

  /// The kernel's parameter, the operand that it points into, and where: elements from its beginning.
  struct Parameter {
    uint32_t parameter = 0;
    Operand operand = Operand::A;
    int64_t offset = 0;
  };

  PreparedCall call;
  std::vector<Parameter> parameters;

  /// `names`: of pointer parameters.
  static Expected<OperandLaunch> create(runtime::KernelProvider &kernels, runtime::Rank &rank, const KernelCall &wanted,
                                        const Names &names);
  static Expected<OperandLaunch> create(PreparedCall call, const Names &names);
  /// Adds the parameters of appendEpilogue.
  static Names withEpilogue(Names names, const GemmEpilogue &epilogue);
};

/// Rows of the caller's result, `stride` elements apart.
struct CallerRows {
  int64_t first, count, columns, stride;
};
/// Adds the copy of as many rows from `source`, which has no gaps between them.
void addRowsToCaller(runtime::CallSequence &sequence, runtime::Lane lane, runtime::Pointer source,
                     const CallerRows &rows, std::string_view name);

/// One shape on one rank. Valid as long as the operator; one thread at a time. Copies share it.
class ProductPlan {
public:
  ProductPlan() = default;
  /// Enqueues one call; every rank must make the same sequence of calls, with the same number of rows. The operands have the shapes that the
  /// operator says, row-major with the strides of the plan, at addresses that are multiples of 16 bytes. They may be reused once the work
  /// enqueued on `stream` so far has run.
  Status enqueue(runtime::Stream &stream, runtime::Pointer a, runtime::Pointer b, runtime::Pointer result,
                 const EpilogueOperands &extras = {});

  /// A collective, from an operand of the call or from memory that stays, to another one.
  struct Exchange {
    using Place = std::variant<Operand, runtime::Pointer>;
    Collective::Plan plan;
    Place in, out;
  };
  /// What an operator puts together.
  struct Parts {
    std::vector<OperandLaunch> launches; ///< Those of the sequence that take operands.
    runtime::CallSequence sequence;      ///< The caller's memory of its copies is the result.
    std::optional<Exchange> exchange;    ///< Behind the sequence.
    bool isBegunByExchange = false;      ///< On all ranks; what the sequence has is perhaps this one's alone.
    std::optional<OperandLaunch> last;   ///< Behind the exchange.
    runtime::Buffer dense;               ///< An operand without gaps between its rows, for an exchange that needs that.
  };

private:
  friend class PlannedProduct;
  struct State;
  std::shared_ptr<State> state;
};

class PlannedProduct {
public:
  using Plan = ProductPlan;

  virtual ~PlannedProduct() = default;

  /// Every rank makes plans for the same numbers of rows in the same order: where ranks have operators of their own, one that differs is
  /// an error on all (plans/PlanAgreement.h).
  /// Compiles and loads what calls with this shape need on a rank, and records them as a graph: on a GPU that may wait until nothing
  /// runs there, so it must not happen when a part of a call waits for another already. `size`: columns (AllGather+GEMM) or
  /// depth, of this rank.
  Expected<Plan> plan(runtime::Rank &rank, int64_t rows, int64_t size, const RowStrides &strides = {});

  /// Makes the plan that enqueue() then finds, in the same order on all ranks as plan(). One that is there already stays, since graphs may have its kernels.
  Status prepare(runtime::Rank &rank, int64_t rows, int64_t size, const RowStrides &strides = {});
  /// Plan::enqueue with the prepared plan for the shape, or with one that is made now, which a capture does not allow, and whose
  /// operations are enqueued one by one. Also takes addresses that are no multiples of 16 bytes.
  Status enqueue(runtime::Rank &rank, runtime::Stream &stream, runtime::Pointer a, runtime::Pointer b,
                 runtime::Pointer result, int64_t rows, int64_t size, const EpilogueOperands &extras = {},
                 const RowStrides &strides = {});

protected:
  PlannedProduct() = default;
  PlannedProduct(PlannedProduct &&) = default;
  PlannedProduct &operator=(PlannedProduct &&) = default;

  /// Of the operator that has been created. `name` is a literal.
  void keepPlans(runtime::World &world, std::string_view name, const OperandTypes &operands);
  /// Of calls with this ProductShape::size.
  virtual ProductTerms terms(int64_t size) const = 0;
  /// A buffer's address that stands for operands: only their type and alignment matter, and all buffers are aligned alike.
  virtual runtime::Pointer anyBuffer(uint32_t rank) const = 0;
  /// A call with operands like these.
  virtual Expected<ProductPlan::Parts> makeParts(runtime::Rank &rank, const OperandPointers &operands,
                                                 const ProductShape &shape) = 0;
  /// Operands whose rows are dealt out to the ranks: a rank that has none of them may give null.
  virtual std::vector<Operand> dealtOperands() const { return {}; }
  /// What of a call's plan must be the same on all ranks.
  virtual std::string agreedPlan(const ProductShape &shape) const = 0;

  /// Of the products of a rank's calls, which follow each other.
  GemmWorkspace &gemmWorkspace(uint32_t rank) { return workspaces[rank]; }
  /// The rank is one of the operator's world; before memory of its number is looked for.
  Status verifyOwnRank(const runtime::Rank &rank) const;
  /// Refuses tiles that cannot make a call's product.
  Status verifyTile(const ProductShape &shape, const TileConfig &tile) const;

  PlanAgreement planAgreement; ///< Set where the operator is created.

private:
  /// The shape with all strides filled in; refuses what no call may have.
  Expected<ProductShape> verifyShape(const ProductShape &shape) const;
  OperandPointers anyOperands(uint32_t rank) const;
  /// What stands for operands of which the rank has no rows; null for the others.
  OperandPointers standIns(uint32_t rank, int64_t rows) const;
  Expected<Plan> recordedPlan(runtime::Rank &rank, int64_t rows, int64_t size, const RowStrides &strides);
  /// PlanAgreement::reach for a plan that could be made or not.
  Status agree(const runtime::Rank &rank, const Status &made, int64_t rows, int64_t size) const;
  Expected<Plan> makePlan(runtime::Rank &rank, const OperandPointers &operands, const ProductShape &shape);
  static KeptPlans<Plan>::Key keyOf(const ProductShape &shape, const OperandPointers &operands);

  const runtime::World *ownWorld = nullptr;
  std::shared_ptr<runtime::CallAgreement> agreement;
  std::string_view operationName;
  OperandTypes types;
  std::vector<std::unique_ptr<KeptPlans<Plan>>> kept; ///< Null for ranks of other processes.
  std::vector<GemmWorkspace> workspaces;
};

} // namespace ditron::ops
#endif // DITRON_OPS_PLANNEDPRODUCT_H
