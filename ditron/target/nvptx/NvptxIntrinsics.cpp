//===- NvptxIntrinsics.cpp - NVIDIA leaves: dist.intrinsic ----------------------------------------------------------------===//
//
// One instruction each, most of them inline PTX. Those of compute capability 9.0 fail to exist elsewhere. Fields of tensor
// maps are rows of a table.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dgpu/DiscardableAttrs.h"
#include "ditron/target/nvptx/NvptxTargetInfo.h"
#include "ditron/target/nvptx/PtxAsm.h"

#include <fmt/args.h>
#include <fmt/format.h>

using namespace mlir;

namespace ditron::target {
namespace {

using Values = SmallVector<Value>;

int64_t option(DictionaryAttr options, StringRef name) {
  auto value = options.getAs<IntegerAttr>(name);
  return value ? value.getInt() : 0;
}

/// How an operand is written.
enum class As { Plain, Shared, Global };

/// Emits an instruction without results; "{0}", "{1}" stand for the operands.
Values effect(Emitter &e, StringRef text, ValueRange operands, ArrayRef<As> kinds, Value predicate = Value()) {
  PtxAsm code(e);
  std::string guard = code.guard(predicate);
  fmt::dynamic_format_arg_store<fmt::format_context> names;
  for (auto [i, operand] : llvm::enumerate(operands)) {
    As kind = i < kinds.size() ? kinds[i] : As::Plain;
    names.push_back(code.input(kind == As::Plain ? operand
                                                 : inAddressSpace(e, operand, kind == As::Shared ? AddressSpace::Shared : AddressSpace::Global)));
  }
  code.emit(guard + fmt::vformat(text.str(), names));
  return {};
}

/// A special register.
Values special(Emitter &e, StringRef name, Type type) {
  PtxAsm code(e);
  std::string result = code.output(type);
  return code.emit(fmt::format("mov.u{} {}, %{};", type.getIntOrFloatBitWidth(), result, name.str()));
}

/// tensormap.replace: field, width of the new value, and whether it has an ordinal or is an immediate.
struct MapField {
  StringLiteral name, type;
  bool hasOrdinal, isImmediate;
};
constexpr MapField mapFields[] = {
    {"global_address", "b64", false, false}, {"global_dim", "b32", true, false},    {"global_stride", "b64", true, false},
    {"box_dim", "b32", true, false},         {"element_stride", "b32", true, false}, {"rank", "b32", false, true},
    {"elemtype", "b32", false, true},        {"interleave_layout", "b32", false, true},
    {"swizzle_mode", "b32", false, true},    {"fill_mode", "b32", false, true}};

std::optional<Values> replaceField(Emitter &e, StringRef name, ValueRange operands, DictionaryAttr options) {
  if (!name.consume_front("tensormap_replace_"))
    return std::nullopt;
  for (const MapField &field : mapFields) {
    if (field.name != name)
      continue;
    e.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>()->setAttr(dgpu::changesTensorMapsAttrName,
                                                                               e.getUnitAttr());
    PtxAsm code(e);
    std::string map = code.input(inAddressSpace(e, operands[0], AddressSpace::Shared));
    std::string value = field.isImmediate ? std::to_string(option(options, "value")) : code.input(operands[1]);
    std::string ordinal = field.hasOrdinal ? fmt::format("{}, ", option(options, "ordinal")) : "";
    code.emit(fmt::format("tensormap.replace.tile.{}.shared::cta.b1024.{} [{}], {}{};", name.str(), field.type.str(), map, ordinal,
                          value));
    return Values();
  }
  return std::nullopt;
}

} // namespace

FailureOr<SmallVector<Value>> NvptxTargetInfo::intrinsic(Emitter &e, StringRef name, ValueRange operands, DictionaryAttr options) {
  Type i32 = e.getI32Type(), i64 = e.getI64Type();
  // Everywhere.
  if (name == "smid")
    return special(e, "smid", i32);
  if (name == "globaltimer")
    return special(e, "globaltimer", i64);
  if (name == "clock64")
    return special(e, "clock64", i64);
  if (name == "shmem_value") {
    orderedStore(e, operands[0], operands[1], tile::MemoryOrder::Relaxed, tile::MemoryScope::System);
    return Values();
  }
  if (name == "gdc_wait")
    return effect(e, "griddepcontrol.wait;", {}, {});
  if (name == "gdc_launch_dependents")
    return effect(e, "griddepcontrol.launch_dependents;", {}, {});
  if (name == "prefetch_l2")
    return effect(e, "prefetch.global.L2 [{0}];", operands, {As::Global});
  if (name == "bar_warp_sync") {
    warpBarrier(e);
    return Values();
  }
  if (name == "named_barrier_sync" || name == "named_barrier_arrive")
    return effect(e, fmt::format("bar.{} {}, {};", name.ends_with("sync") ? "sync" : "arrive", option(options, "id"), option(options, "threads")),
                  {}, {});
  if (name == "shared_address")
    return Values{LLVM::PtrToIntOp::create(e, i32, inAddressSpace(e, operands[0], AddressSpace::Shared))};
  if (name == "shared_pointer") {
    Value shared = LLVM::IntToPtrOp::create(e, LLVM::LLVMPointerType::get(e.getContext(), 3), operands[0]);
    return Values{LLVM::AddrSpaceCastOp::create(e, e.pointerType(), shared)};
  }

  // Since compute capability 9.0.
  if (!architecture.hasWgmma())
    return reportNoIntrinsic(e, name);
  if (name == "elect_one_sync")
    return Values{hopperLeaves.electLane(e)};
  if (name == "mbarrier_init")
    return effect(e, "mbarrier.init.shared::cta.b64 [{0}], {1};", operands, {As::Shared});
  if (name == "mbarrier_invalidate")
    return effect(e, "mbarrier.inval.shared::cta.b64 [{0}];", operands, {As::Shared});
  if (name == "mbarrier_arrive")
    return effect(e, "mbarrier.arrive.shared::cta.b64 _, [{0}];", operands, {As::Shared});
  if (name == "mbarrier_arrive_expect_tx")
    return effect(e, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [{0}], {1};", operands, {As::Shared});
  if (name == "mbarrier_expect_transaction")
    return effect(e, "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [{0}], {1};", operands, {As::Shared});
  if (name == "mbarrier_try_wait_parity") {
    PtxAsm code(e);
    std::string done = code.output(i32), bar = code.input(inAddressSpace(e, operands[0], AddressSpace::Shared)), parity = code.input(operands[1]);
    return Values{e.isNotZero(code.emit(fmt::format("{{\n.reg .pred done;\nmbarrier.try_wait.parity.shared::cta.b64 done, [{}], {};\n"
                                                    "selp.b32 {}, 1, 0, done;\n}}",
                                                    bar, parity, done))[0])};
  }
  if (name == "mbarrier_wait_parity") {
    hopperLeaves.mbarrierWait(e, operands[0], operands[1]);
    return Values();
  }
  if (name.starts_with("tma_load_2d")) {
    // Operands: map, shared memory, mbarrier, coordinates, predicate.
    hopperLeaves.tmaLoad(e, operands[0], operands.slice(3, 2), operands[1], operands[2],
                         operands.size() > 5 ? operands[5] : Value(), tile::EvictionPolicy::Normal,
                         /*toCluster=*/false);
    return Values();
  }
  if (name == "tma_store_2d") {
    hopperLeaves.tmaStore(e, operands[0], operands.slice(2, 2), operands[1], Value());
    return Values();
  }
  if (name == "bulk_load")
    return effect(e, "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [{0}], [{1}], {2}, [{3}];", operands,
                  {As::Shared, As::Global, As::Plain, As::Shared});
  if (name == "bulk_store")
    return effect(e, "cp.async.bulk.global.shared::cta.bulk_group [{0}], [{1}], {2};", operands, {As::Global, As::Shared});
  if (name == "bulk_commit_group") {
    hopperLeaves.tmaStoreCommit(e);
    return Values();
  }
  if (name == "bulk_wait_group") {
    hopperLeaves.tmaStoreWait(e, static_cast<int>(option(options, "pending")), option(options, "read") != 0);
    return Values();
  }
  if (name == "prefetch_tensormap") {
    hopperLeaves.prefetchMap(e, operands[0], Value());
    return Values();
  }
  if (name == "prefetch_tensor_2d_l2")
    return effect(e, "cp.async.bulk.prefetch.tensor.2d.L2.global [{0}, {{{1}, {2}}}];", operands, {});
  if (auto done = replaceField(e, name, operands, options))
    return *done;
  if (name == "tensormap_cp_fenceproxy")
    return effect(e, "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [{0}], [{1}], 128;", operands,
                  {As::Global, As::Shared});
  if (name == "fence_proxy_tensormap_acquire")
    return effect(e, "fence.proxy.tensormap::generic.acquire.gpu [{0}], 128;", operands, {});
  if (name == "fence_async_shared") {
    hopperLeaves.fenceAsync(e);
    return Values();
  }
  if (name == "fence_proxy_async")
    return effect(e, "fence.proxy.async;", {}, {});
  if (name == "fence_mbarrier_init") {
    hopperLeaves.mbarrierInitFence(e);
    return Values();
  }
  return reportNoIntrinsic(e, name);
}

/// PTX of a kernel's author. Volatile marks keep LLVM from removing or merging what is not pure.
FailureOr<SmallVector<Value>> NvptxTargetInfo::inlineAsm(Emitter &e, StringRef text, StringRef constraints, ValueRange operands,
                                                         ArrayRef<Type> results, bool isPure) {
  return emitInlineAsm(e, text, constraints, operands, results, /*hasEffects=*/!isPure);
}

} // namespace ditron::target
