//===- NvptxTargetInfo.cpp - NVIDIA leaves: module, identity, threads together --------------------------------------------===//
//
// Identity comes from special registers; blocks are one-dimensional, so that the lane and warp follow from thread id x.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/nvptx/NvptxTargetInfo.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dgpu/DiscardableAttrs.h"
#include "ditron/dialect/dgpu/ResidentBlocks.h"
#include "ditron/target/common/Partition.h"
#include "ditron/target/nvptx/NvptxTarget.h"
#include "ditron/target/nvptx/Passes.h"
#include "ditron/target/nvptx/PtxAsm.h"

#include <fmt/format.h>

using namespace mlir;

namespace ditron::target {

static constexpr llvm::StringLiteral sharedMemoryName = "ditron_shared_memory";
static constexpr unsigned globalSpace = 1, sharedSpace = 3;

static Type pointerIn(MLIRContext *context, unsigned space) { return LLVM::LLVMPointerType::get(context, space); }

Value inAddressSpace(Emitter &e, Value ptr, AddressSpace space) {
  Type type = pointerIn(e.getContext(), space == AddressSpace::Shared ? sharedSpace : globalSpace);
  if (ptr.getType() == type)
    return ptr;
  return LLVM::AddrSpaceCastOp::create(e, type, ptr);
}

Value NvptxTargetInfo::addressIn(Emitter &e, Value ptr, AddressSpace space) {
  return space == AddressSpace::Global && hasGenericAddresses ? ptr : inAddressSpace(e, ptr, space);
}

StringRef ptxSpace(Value address) {
  unsigned space = cast<LLVM::LLVMPointerType>(address.getType()).getAddressSpace();
  return space == globalSpace ? ".global" : space == sharedSpace ? ".shared" : "";
}

StringRef ptxScope(tile::MemoryScope scope) {
  switch (scope) {
  case tile::MemoryScope::Block:
    return ".cta";
  case tile::MemoryScope::Gpu:
    return ".gpu";
  case tile::MemoryScope::System:
    return ".sys";
  }
  return ".sys";
}

//===--- Module ---------------------------------------------------------------------------------------------------------===//

std::vector<std::unique_ptr<Pass>> NvptxTargetInfo::assemblerPasses() const {
  std::vector<std::unique_ptr<Pass>> passes;
  passes.push_back(createGuardAccumulatorLoops());
  return passes;
}

LogicalResult NvptxTargetInfo::prepareModule(ModuleOp module) {
  numWarps = launchWarpsOf(module);
  module.walk([&](dgpu::WarpSpecializeOp op) { clusterBlocks = op.getClusterBlocks(); });
  bool multiplies = false;
  module.walk([&](Operation *op) { multiplies |= isa<tile::DotOp, dgpu::WarpgroupDotOp, dgpu::WarpSpecializeOp>(op); });
  residentBlocks.reset();
  if (multiplies || module->hasAttr(dgpu::residentBlocksAttrName))
    residentBlocks = static_cast<uint32_t>(dgpu::residentBlocksOf(module));
  boundsWaits = module->hasAttr(dgpu::boundWaitsAttrName);
  notesEvents = module->hasAttr(dgpu::noteEventsAttrName);
  // A trace of a run that hangs shows what is still waited for.
  publishesWaits = boundsWaits || notesEvents || module->hasAttr(dgpu::publishWaitsAttrName);
  hopperLeaves.setBoundsWaits(boundsWaits);
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  // Its size is what the launch says: an external array of unknown length.
  LLVM::GlobalOp::create(builder, module.getLoc(), LLVM::LLVMArrayType::get(builder.getI8Type(), 0),
                         /*isConstant=*/false, LLVM::Linkage::External, sharedMemoryName, Attribute(),
                         /*alignment=*/architecture.capability >= 90 ? 1024 : 128, sharedSpace);
  if (publishesWaits)
    defineLastingWaits(module, boundsWaits);
  if (notesEvents)
    defineEvents(module);
  return success();
}

/// Pointer parameters become pointers to global memory, and alignments that the signature promises are passed on.
static void finishParameters(LLVM::LLVMFuncOp kernel) {
  MLIRContext *context = kernel.getContext();
  OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
  SmallVector<Type> types;
  SmallVector<Attribute> attributes;
  for (auto [i, argument] : llvm::enumerate(kernel.getArguments())) {
    NamedAttrList kept;
    Type type = argument.getType();
    if (auto byValue = kernel.getArgAttr(i, LLVM::LLVMDialect::getByValAttrName())) { // a tensor map
      kept.set(LLVM::LLVMDialect::getByValAttrName(), byValue);
      kept.set(LLVM::LLVMDialect::getAlignAttrName(), builder.getI64IntegerAttr(64));
    } else if (isa<LLVM::LLVMPointerType>(type)) {
      if (auto divisibility = kernel.getArgAttrOfType<IntegerAttr>(i, "tile.divisibility"))
        kept.set(LLVM::LLVMDialect::getAlignAttrName(), builder.getI64IntegerAttr(divisibility.getInt()));
      argument.setType(pointerIn(context, globalSpace));
      auto generic = LLVM::AddrSpaceCastOp::create(builder, kernel.getLoc(), type, argument);
      argument.replaceAllUsesExcept(generic, generic);
    }
    types.push_back(argument.getType());
    attributes.push_back(kept.getDictionary(context));
  }
  kernel.setFunctionType(LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), types));
  kernel.setArgAttrsAttr(builder.getArrayAttr(attributes));
}

LogicalResult NvptxTargetInfo::finishKernel(LLVM::LLVMFuncOp kernel) {
  if (notesEvents)
    noteBlocks(kernel);
  resolveWorldView(kernel);
  finishParameters(kernel);
  kernel.setCConv(LLVM::CConv::PTX_Kernel);
  kernel.setNoUnwind(true);
  Builder builder(kernel.getContext());
  // The block size is exact: LLVM bounds thread ids by it, ptxas registers.
  SmallVector<Attribute> attributes{builder.getStrArrayAttr({"nvvm.reqntid", std::to_string(numWarps * warpSize())})};
  // Mostly one block must fit, and no more: unless that is said, ptxas saves registers by moving additions between the loads that should all be on
  // their way before the first is waited for; and warps give registers to others only if the kernel says how many it has at its entry.
  if (residentBlocks)
    attributes.push_back(builder.getStrArrayAttr({"nvvm.minctasm", std::to_string(*residentBlocks)}));
  if (clusterBlocks > 1)
    attributes.push_back(builder.getStrArrayAttr({"nvvm.cluster_dim", fmt::format("{},1,1", clusterBlocks)}));
  kernel.setPassthroughAttr(builder.getArrayAttr(attributes));
  return success();
}

//===--- Who am I -------------------------------------------------------------------------------------------------------===//

static Value specialRegister(Emitter &e, StringRef name) {
  return callIntrinsic(e, fmt::format("llvm.nvvm.read.ptx.sreg.{}", name.str()), e.getI32Type(), {});
}

static char axisName(int axis) { return "xyz"[axis]; }

/// The producer whose code this is; its threads are numbered from 0.
static std::optional<Partition> producerAt(Emitter &e) {
  std::optional<Partition> partition = partitionAt(e);
  return partition && partition->isProducer() ? partition : std::nullopt;
}

Value NvptxTargetInfo::threadId(Emitter &e) {
  std::optional<Partition> producer = producerAt(e);
  if (producer && producer->numWarps == 1)
    return laneId(e);
  Value id = specialRegister(e, "tid.x");
  return producer ? e.sub(id, e.i32(producer->firstWarp * warpSize())) : id;
}
Value NvptxTargetInfo::laneId(Emitter &e) {
  return e.bitAnd(specialRegister(e, "tid.x"), e.i32(warpSize() - 1));
}
Value NvptxTargetInfo::warpId(Emitter &e) {
  std::optional<Partition> producer = producerAt(e);
  if (producer ? producer->numWarps == 1 : numWarps == 1)
    return e.i32(0);
  return e.lshr(threadId(e), 5);
}
Value NvptxTargetInfo::numThreads(Emitter &e) {
  std::optional<Partition> partition = partitionAt(e);
  return e.i32((partition ? partition->numWarps : numWarps) * warpSize());
}
Value NvptxTargetInfo::programId(Emitter &e, int axis) {
  return specialRegister(e, fmt::format("ctaid.{}", axisName(axis)));
}
Value NvptxTargetInfo::numPrograms(Emitter &e, int axis) {
  return specialRegister(e, fmt::format("nctaid.{}", axisName(axis)));
}

Value NvptxTargetInfo::sharedMemoryBase(Emitter &e) {
  Value address = LLVM::AddressOfOp::create(e, pointerIn(e.getContext(), sharedSpace), sharedMemoryName);
  return LLVM::AddrSpaceCastOp::create(e, e.pointerType(), address);
}

//===--- Threads together -----------------------------------------------------------------------------------------------===//

void NvptxTargetInfo::blockBarrier(Emitter &e) {
  std::optional<Partition> partition = partitionAt(e);
  if (partition && partition->isProducer() && partition->numWarps == 1)
    return warpBarrier(e);
  if (partition)
    return hopperLeaves.namedBarrier(e, e.i32(partition->barrier()), partition->numWarps * warpSize(),
                                     NamedBarrierKind::Sync);
  callIntrinsic(e, "llvm.nvvm.barrier.cta.sync.aligned.all", Type(), {e.i32(0)});
}

void NvptxTargetInfo::warpBarrier(Emitter &e) { callIntrinsic(e, "llvm.nvvm.bar.warp.sync", Type(), {e.i32(-1)}); }

/// A warp issues one instruction after the other, but LLVM and ptxas see one thread: that another lane wrote what this one reads
/// next keeps neither from moving the load up, or from giving it a value that this lane had before. Where that depends on what
/// the launch passes (`later`), one thread's addresses may be equal as well, so nothing is moved.
void NvptxTargetInfo::orderLanes(Emitter &e, ValueRange later, ValueRange earlier) {
  if (later.empty())
    warpBarrier(e);
}

Value NvptxTargetInfo::shuffle(Emitter &e, dist::ShuffleKind kind, Value word, Value operand, Value mask) {
  StringRef names[] = {"idx", "up", "down", "bfly"};
  // The last operand: no segments, and the lane number at which a shuffle stops (0 going up, else 31).
  int64_t clamp = kind == dist::ShuffleKind::Up ? 0 : 31;
  return callIntrinsic(e, fmt::format("llvm.nvvm.shfl.sync.{}.i32", names[static_cast<int>(kind)].str()),
                       e.getI32Type(), {mask ? mask : e.i32(-1), word, operand, e.i32(clamp)});
}

Value NvptxTargetInfo::ballot(Emitter &e, Value mask, Value predicate) {
  Value truth = predicate.getType().isInteger(1) ? predicate : e.isNotZero(predicate);
  return callIntrinsic(e, "llvm.nvvm.vote.ballot.sync", e.getI32Type(), {mask ? mask : e.i32(-1), truth});
}

void registerNvptxTarget() {
  registerTarget("cuda", [](StringRef name) -> Expected<std::unique_ptr<TargetInfo>> {
    DITRON_ASSIGN_OR_RETURN(NvptxArchitecture architecture, nvptxArchitectureOf(name.str()));
    return std::unique_ptr<TargetInfo>(std::make_unique<NvptxTargetInfo>(architecture));
  });
}

} // namespace ditron::target
