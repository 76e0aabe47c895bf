//===- MultimemProtocol.cpp - Collectives through NVLink multicast ----------------------------------------------------===//
//
// Host side of kernels/collectives/multimem.py, where the protocols are.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/collectives/Channels.h"
#include "ditron/ops/collectives/CollectiveProtocol.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {

class MultimemProtocol final : public CollectiveProtocol {
public:
  MultimemProtocol(CollectiveForm form, CollectiveSetting setting)
      : CollectiveProtocol(std::move(setting)), form(form) {}

  Status allocate(std::span<const SizedPlan> plans) override;
  Expected<CollectiveCall> call(runtime::Rank &rank, const CollectivePlan &plan, runtime::Pointer in,
                                runtime::Pointer out, int64_t elements) const override;
  runtime::Pointer memory(uint32_t rank) const override { return staged.on(rank); }
  uint64_t workspaceBytes() const override { return staged.bytes() + slots.bytes() + signals.bytes(); }

private:
  bool isOneShot() const { return form == CollectiveForm::OneShotMultimem; }
  bool isTwoShot() const { return reduces() && !isOneShot(); }
  Status verify() const;

  CollectiveForm form;
  runtime::SymmetricBuffer staged; ///< Operands of this rank.
  runtime::SymmetricBuffer slots;  ///< Results: sums, or what all ranks have given.
  runtime::SymmetricBuffer signals;
  std::vector<runtime::Buffer> generations; ///< Per rank [blocks]: chunks so far
  int64_t slotElements = 0;
};

Status MultimemProtocol::verify() const {
  const std::string what = fmt::format("{} by {}", toString(options().kind), toString(form));
  if (!world().hasMulticast())
    return unsupported(
        fmt::format("{}: there is no multicast memory on {}, where the runtime maps none", what, world().target()));
  if (!reduces())
    return Status::ok();
  if (options().reduction != Reduction::Sum)
    return unsupported(fmt::format("{}: reduction {}; switches make a sum only", what, toString(options().reduction)));
  if (options().dtype != DataType::BF16 && options().dtype != DataType::F16 && options().dtype != DataType::F32)
    return unsupported(
        fmt::format("{} of {}: switches add bf16, fp16 and fp32", what, ditron::toString(options().dtype)));
  return Status::ok();
}

Status MultimemProtocol::allocate(std::span<const SizedPlan> plans) {
  DITRON_RETURN_IF_ERROR(verify());
  const auto [blocks, largestChunk] = chunkSpace(plans);
  slotElements = largestChunk;
  // One shot: a ring of what this rank gives; gather: of what all have given; two shots: both.
  const uint64_t chunk = uint64_t{blocks} * slotElements, ring = chunk * slotsOfRing;
  DITRON_ASSIGN_OR_RETURN(staged, world().allocateSymmetric(options().dtype,
                                                            isTwoShot()   ? ring * numRanks()
                                                            : isOneShot() ? ring
                                                                          : chunk,
                                                            name("_multimem")));
  DITRON_ASSIGN_OR_RETURN(slots, world().allocateSymmetric(options().dtype, isOneShot() ? chunk : ring * numRanks(),
                                                           name("_multimem_results")));
  DITRON_ASSIGN_OR_RETURN(signals, world().allocateSymmetric(DataType::I64,
                                                             uint64_t{blocks} * numRanks() * (isTwoShot() ? 2 : 1),
                                                             name("_multimem_signals")));
  DITRON_ASSIGN_OR_RETURN(generations, allocateCounters(world(), blocks, name("_multimem_chunks")));
  return Status::ok();
}

Expected<CollectiveCall> MultimemProtocol::call(runtime::Rank &rank, const CollectivePlan &plan, runtime::Pointer in,
                                                runtime::Pointer out, int64_t elements) const {
  const int64_t part = isTwoShot() ? partElements(elements) : elements;
  const int64_t chunk = chunkElements(plan, part);
  const uint32_t me = rank.id();
  KernelCall call;
  call.source = "collectives/multimem";
  call.kernel = isTwoShot()   ? "multimem_all_reduce"
                : isOneShot() ? "multimem_one_shot_all_reduce"
                              : "multimem_all_gather";
  call.numWarps = plan.numWarps;
  call.grid = chunkGrid(plan, part, chunk);
  call.arguments = {{"x_ptr", in},
                    {"out_ptr", out},
                    {"staged_ptr", staged.on(me)},
                    {reduces() ? "sums_ptr" : "slots_ptr", slots.on(me)},
                    {"signals_ptr", signals.on(me)},
                    {"generation_ptr", generations[me].pointer()},
                    {"n", elements},
                    {"rank", me},
                    {"slot_elements", slotElements},
                    {"WORLD", numRanks()},
                    {"CHUNK", chunk}};
  if (isTwoShot())
    call.arguments.emplace_back("part", part);
  if (reduces()) {
    call.arguments.emplace_back("scale", static_cast<double>(options().scale.value_or(1.0f)));
    call.arguments.emplace_back("SCALED", options().scale.has_value());
  }
  return oneLaunch(rank, call);
}

} // namespace

std::unique_ptr<CollectiveProtocol> makeMultimemProtocol(CollectiveForm form, CollectiveSetting setting) {
  return std::make_unique<MultimemProtocol>(form, std::move(setting));
}

} // namespace ditron::ops
