//===- SimIntrinsics.cpp - Simulated leaves: dist.intrinsic ---------------------------------------------------------------===//
//
// Addresses within shared memory count from its beginning here, where hardware counts from somewhere: both are opaque to
// kernels. Fences between ordinary accesses and those of the accelerator matter for shared memory only.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/sim/SimIntrinsics.h"

#include "ditron/abi/Simulator.h"
#include "ditron/target/common/Patterns.h"

#include <cstddef>

using namespace mlir;

namespace ditron::target {

using Values = SmallVector<Value>;

static int64_t option(DictionaryAttr options, StringRef name) {
  auto value = options.getAs<IntegerAttr>(name);
  return value ? value.getInt() : 0;
}

/// The field of a tensor map that an intrinsic replaces.
static std::optional<int> mapField(StringRef name) {
  static constexpr std::pair<StringLiteral, int> fields[] = {
      {"global_address", DITRON_SIM_MAP_ADDRESS}, {"global_dim", DITRON_SIM_MAP_DIM},
      {"global_stride", DITRON_SIM_MAP_STRIDE},   {"box_dim", DITRON_SIM_MAP_BOX},
      {"element_stride", DITRON_SIM_MAP_ELEMENT_STRIDE}, {"rank", DITRON_SIM_MAP_RANK},
      {"elemtype", DITRON_SIM_MAP_ELEMENT_TYPE},  {"interleave_layout", DITRON_SIM_MAP_INTERLEAVE},
      {"swizzle_mode", DITRON_SIM_MAP_SWIZZLE},   {"fill_mode", DITRON_SIM_MAP_FILL}};
  if (name.consume_front("tensormap_replace_"))
    for (auto [field, number] : fields)
      if (field == name)
        return number;
  return std::nullopt;
}

static Value sharedBase(Emitter &e, SimCalls &sim) { return sim.field(e, offsetof(DitronSimThread, sharedMemory), e.pointerType()); }

FailureOr<SmallVector<Value>> simIntrinsic(Emitter &e, SimCalls &sim, HopperLeaves *hopper, StringRef name, ValueRange operands,
                                           DictionaryAttr options) {
  // Everywhere.
  auto special = [&](DitronSimRegister which) { return sim.call(e, "register", {sim.self(e), e.i32(which)}); };
  if (name == "smid")
    return Values{e.zextOrTrunc(special(DITRON_SIM_SMID), e.getI32Type())};
  if (name == "globaltimer")
    return Values{special(DITRON_SIM_GLOBALTIMER)};
  if (name == "clock64")
    return Values{special(DITRON_SIM_CLOCK)};
  if (name == "prefetch_l2") // there is no cache
    return Values();
  if (name == "named_barrier_sync" || name == "named_barrier_arrive") {
    int kind = name.ends_with("sync") ? DITRON_SIM_BARRIER_SYNC : DITRON_SIM_BARRIER_ARRIVE;
    sim.call(e, "named_barrier",
             {sim.self(e), e.i32(option(options, "id")), e.i32(option(options, "threads")), e.i32(kind), sim.site(e)});
    return Values();
  }
  if (name == "shared_address") {
    Value offset = e.sub(LLVM::PtrToIntOp::create(e, e.getI64Type(), operands[0]),
                         LLVM::PtrToIntOp::create(e, e.getI64Type(), sharedBase(e, sim)));
    return Values{e.zextOrTrunc(offset, e.getI32Type())};
  }
  if (name == "shared_pointer")
    return Values{e.addBytes(sharedBase(e, sim), e.zextOrTrunc(operands[0], e.getI64Type()))};

  // With tensor copies.
  if (!hopper)
    return reportNoIntrinsic(e, name);
  auto call = [&](StringRef function, ValueRange arguments) {
    Values all{sim.self(e)};
    llvm::append_range(all, arguments);
    all.push_back(sim.site(e));
    return sim.call(e, function, all);
  };
  if (name == "elect_one_sync")
    return Values{hopper->electLane(e)};
  if (name == "mbarrier_init" || name == "mbarrier_invalidate") {
    call(name, operands);
    return Values();
  }
  if (name == "mbarrier_arrive") {
    hopper->mbarrierArrive(e, operands[0], Value());
    return Values();
  }
  if (name == "mbarrier_arrive_expect_tx") {
    call("mbarrier_expect_tx", {operands[0], operands[1], e.i32(1)});
    return Values();
  }
  if (name == "mbarrier_expect_transaction") {
    call("mbarrier_transaction", operands);
    return Values();
  }
  if (name == "mbarrier_try_wait_parity")
    return Values{e.isNotZero(call("mbarrier_test", operands))};
  if (name == "mbarrier_wait_parity") {
    hopper->mbarrierWait(e, operands[0], operands[1]);
    return Values();
  }
  if (name.starts_with("tma_load_2d")) {
    call("map_check", operands[0]);
    hopper->tmaLoad(e, operands[0], operands.slice(3, 2), operands[1], operands[2], operands.size() > 5 ? operands[5] : Value());
    return Values();
  }
  if (name == "tma_store_2d") {
    call("map_check", operands[0]);
    hopper->tmaStore(e, operands[0], operands.slice(2, 2), operands[1], Value());
    return Values();
  }
  if (name == "bulk_load" || name == "bulk_store") {
    bool isLoad = operands.size() == 4;
    Value global = operands[isLoad ? 1 : 0], shared = operands[isLoad ? 0 : 1];
    call("bulk_copy", {global, shared, operands[2], isLoad ? operands[3] : e.zero(e.pointerType())});
    return Values();
  }
  if (name == "bulk_commit_group") {
    hopper->tmaStoreCommit(e);
    return Values();
  }
  if (name == "bulk_wait_group") {
    hopper->tmaStoreWait(e, static_cast<int>(option(options, "pending")), option(options, "read") != 0);
    return Values();
  }
  if (std::optional<int> field = mapField(name)) {
    Value value = operands.size() > 1 ? e.zextOrTrunc(operands[1], e.getI64Type()) : e.i64(option(options, "value"));
    call("map_replace", {operands[0], e.i32(*field), e.i32(option(options, "ordinal")), value});
    return Values();
  }
  if (name == "tensormap_cp_fenceproxy") {
    call("warp_barrier", {});
    call("map_publish", operands);
    call("warp_barrier", {});
    return Values();
  }
  if (name == "fence_async_shared" || name == "fence_proxy_async") {
    hopper->fenceAsync(e);
    if (name == "fence_proxy_async")
      hopper->fenceAsyncGlobal(e);
    return Values();
  }
  // Hints, and orders that hold here anyway.
  if (name.starts_with("prefetch_") || name == "fence_proxy_tensormap_acquire" || name == "fence_mbarrier_init")
    return Values();
  return reportNoIntrinsic(e, name);
}

} // namespace ditron::target
