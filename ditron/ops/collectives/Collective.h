//===- Collective.h - AllReduce, AllGather, ReduceScatter, AllToAll, Broadcast --------------------------------*- C++ -*-===//
//
// Collectives as one kernel launch each, in most forms: no kernel in front, no second stream. In all of them no host argument changes
// from call to call, so that a call can be captured and replayed, and calls of all sizes may follow each other in any order. Device code:
// kernels/collectives; host side of a form: CollectiveProtocol.h. Which form, and how many blocks, a size gets is read from a table
// (CollectivePlans.h).
//
// Results are the same bits on every rank and in every call: contributions are combined in ascending order of the ranks, sums in fp32
// (fp64 in fp64, integers in 32 or 64 bits) and rounded once. So it is in all forms that the table chooses on one node; what others do: CollectivePlans.h.
//
//   Collective reduce = *Collective::create(world, kernels, {.kind = CollectiveKind::AllReduce, .maxElements = 1 << 20});
//   reduce.prepare(rank, elements);                                   // on every rank, before the first call anywhere
//   reduce.enqueue(rank, stream, in, out, elements);
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_COLLECTIVES_COLLECTIVE_H
#define DITRON_OPS_COLLECTIVES_COLLECTIVE_H

#include "ditron/ops/KeptPlans.h"
#include "ditron/ops/KernelLaunch.h"
#include "ditron/ops/collectives/CollectivePlans.h"
#include "ditron/ops/plans/PlanAgreement.h"

#include <map>
#include <optional>

namespace ditron::ops {

/// How contributions become one result.
enum class Reduction { Sum, Max, Min, Average };
/// sum, max, min, average.
std::string_view toString(Reduction reduction);
Expected<Reduction> parseReduction(std::string_view name);

struct CollectiveOptions {
  CollectiveKind kind = CollectiveKind::AllReduce;
  /// bf16, fp16, fp32, fp64, fp8, and integers of 8 to 64 bits. fp8 takes part in AllReduce and ReduceScatter like any other: each sum is
  /// made in fp32 and rounded once.
  DataType dtype = DataType::BF16;
  Reduction reduction = Reduction::Sum; ///< AllReduce and ReduceScatter only. Average of integers drops the fraction.
  /// Each rank's factor for its own contribution, applied in fp32 and rounded to dtype before it is sent (NCCL's PreMulSum).
  /// Only floats.
  std::optional<float> scale = std::nullopt;
  uint32_t root = 0;       ///< Broadcast only: whose data all ranks get.
  int64_t maxElements = 0; ///< Largest `elements` of any call; sizes the buffers.
  /// Calls of so many operators at once, on streams that nothing orders, must find places for all of their blocks, or could wait for
  /// each other forever. With more than 1 a call has no more blocks than its part of the multiprocessors.
  uint32_t concurrentCalls = 1;
  uint32_t takenMultiprocessors = 0; ///< Of that part, by other kernels of each such operator.
  /// Instead of what the table says, for tuners and tests. Every rank must give the same.
  std::optional<CollectivePlan> plan = std::nullopt;
  /// The device's name by which the table is read, instead of that of this process's first rank: for builds ahead of time.
  std::string gpu = {};
};

class CollectiveProtocol;

class Collective {
public:
  /// Allocates slots and counters on all ranks. Refuses options that make no sense, and worlds in which the kind, or the plan, has no form.
  static Expected<Collective> create(runtime::World &world, runtime::KernelProvider &kernels,
                                     const CollectiveOptions &options);

  /// One size on one rank. Valid as long as the operator; one thread at a time. Copies share it.
  class Plan {
  public:
    Plan() = default;
    /// Enqueues one call. Every rank must make the same sequence of calls of one operator, each with the same `elements`, on one stream
    /// after the other. Shapes, row-major, of options.dtype, with n = elements:
    ///   AllReduce       in [n]          out [n]
    ///   AllGather       in [n]          out [ranks, n]
    ///   ReduceScatter   in [ranks, n]   out [n]
    ///   AllToAll        in [ranks, n]   out [ranks, n]: part r of `in` becomes part `rank` of rank r's `out`
    ///   Broadcast       in [n], read on the root only;  out [n] on every rank
    /// In place: `out` may be `in` for AllReduce, AllToAll and Broadcast; `in` may be the own part of `out` (AllGather), `out`
    /// the own part of `in` (ReduceScatter). Other overlaps are undefined (Collective::enqueue refuses them). Addresses are multiples of 16 bytes.
    Status enqueue(runtime::Stream &stream, runtime::Pointer in, runtime::Pointer out);
    /// For an operator whose calls begin with this one: they are agreed on as its own, and no longer as the collective's.
    void setAgreedCall(const runtime::AgreedCall &call);

  private:
    friend class Collective;
    struct State;
    std::shared_ptr<State> state;
  };

  /// Compiles and loads what calls of this size need on a rank: on a GPU that may wait until nothing runs there, so it must not
  /// happen when a part of a call waits for another already.
  Expected<Plan> plan(runtime::Rank &rank, int64_t elements);
  /// The same for addresses like these, which need not be multiples of 16 bytes.
  Expected<Plan> plan(runtime::Rank &rank, runtime::Pointer in, runtime::Pointer out, int64_t elements);

  /// A call's launch for an operator that enqueues it among its own: the kernel, and its parameters for `in` and `out`. Only where a call is one
  /// launch: not by the copy engine.
  struct Launch {
    PreparedCall call;
    uint32_t in = 0, out = 0;
  };
  Expected<Launch> launch(runtime::Rank &rank, runtime::Pointer in, runtime::Pointer out, int64_t elements);

  /// Makes the plan that enqueue() then finds, unless it is there. Every rank prepares the same sizes in the same order: where ranks have
  /// operators of their own, a plan that differs is an error on all (plans/PlanAgreement.h).
  Status prepare(runtime::Rank &rank, int64_t elements);
  /// Whether enqueue() would take these: types, sizes, alignments, and where they overlap. Nothing is enqueued.
  Status verifyCall(const runtime::Rank &rank, runtime::Pointer in, runtime::Pointer out, int64_t elements) const;
  /// Plan::enqueue with the prepared plan for the size, or with one that is made now, which a capture does not allow. Also takes
  /// addresses that are no multiples of 16 bytes. No elements: nothing happens, on any rank.
  Status enqueue(runtime::Rank &rank, runtime::Stream &stream, runtime::Pointer in, runtime::Pointer out,
                 int64_t elements);

  const CollectiveOptions &options() const { return optionValues; }
  /// How a call of this size is carried out.
  CollectivePlan planFor(int64_t elements) const;
  /// Some aligned memory of a rank that a plan can be made with.
  runtime::Pointer any(uint32_t rank) const;
  /// Bytes of symmetric memory per rank.
  uint64_t workspaceBytes() const;

private:
  Status verifyElements(int64_t elements) const;
  Status makeProtocols(runtime::World &world);
  Status keepPlan(runtime::Rank &rank, int64_t elements);
  uint64_t bytesOf(int64_t elements) const { return static_cast<uint64_t>(elements) * sizeOf(optionValues.dtype); }

  CollectiveOptions optionValues;
  runtime::World *world = nullptr;
  std::shared_ptr<runtime::CallAgreement> callAgreement;
  runtime::KernelProvider *kernels = nullptr;
  PlanAgreement agreement;
  std::vector<CollectivePlanRow> rows; ///< Those of the table for this operator, in ascending order of sizes.
  std::map<CollectiveForm, std::shared_ptr<CollectiveProtocol>> protocols; ///< Of the rows' forms.
  std::vector<std::unique_ptr<KeptPlans<Plan>>> kept;                      ///< Null for ranks of other processes.
};

} // namespace ditron::ops
#endif // DITRON_OPS_COLLECTIVES_COLLECTIVE_H
