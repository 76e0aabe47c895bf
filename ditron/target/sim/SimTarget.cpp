//===- SimTarget.cpp - The leaves of the simulated GPU --------------------------------------------------------------------===//
//
// Where a GPU target emits an instruction, these leaves emit a call into the simulator (abi/Simulator.h). Plain memory accesses are
// native loads and stores; each is announced by ditron_sim_access before, which checks it in checked mode (a tile in shared
// memory once for all pieces that a thread accesses). A predicated access does not branch: where the predicate is false, a
// load reads zeros and a store writes a place that nobody reads.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/sim/SimTarget.h"

#include "ditron/abi/Simulator.h"
#include "ditron/target/common/Partition.h"
#include "ditron/target/common/Patterns.h"
#include "ditron/target/common/TargetInfo.h"
#include "ditron/target/sim/PtxTranslator.h"
#include "ditron/target/sim/SimCalls.h"
#include "ditron/target/sim/SimCodegen.h"
#include "ditron/target/sim/SimHopper.h"
#include "ditron/target/sim/SimIntrinsics.h"
#include "ditron/target/sim/SimLoops.h"

#include <cstddef>
#include <fmt/format.h>

using namespace mlir;

namespace ditron::target {

// The enumerations of the dialects are numbered as those of the interface.
static_assert(int(tile::MemoryOrder::AcquireRelease) == DITRON_SIM_ACQ_REL);
static_assert(int(tile::MemoryOrder::Release) == DITRON_SIM_RELEASE);
static_assert(int(tile::MemoryScope::System) == DITRON_SIM_SCOPE_SYSTEM);
static_assert(int(tile::AtomicOp::Exchange) == DITRON_SIM_RMW_EXCHANGE);
static_assert(int(tile::AtomicOp::FMin) == DITRON_SIM_RMW_FMIN);
static_assert(int(dist::Compare::GE) == DITRON_SIM_GE);
static_assert(int(dist::Compare::GT) == DITRON_SIM_GT);
static_assert(int(dist::SignalOp::Add) == DITRON_SIM_SIGNAL_ADD);
static_assert(int(dist::OrderKind::Quiet) == DITRON_SIM_SHMEM_QUIET);
static_assert(int(dist::ShuffleKind::Butterfly) == DITRON_SIM_SHUFFLE_BUTTERFLY);

std::string simEntryName(std::string_view kernel) { return fmt::format("{}__entry", kernel); }

/// The code of a semantic element type.
static DitronSimType simTypeOf(Type type) {
  if (type.isF16())
    return DITRON_SIM_F16;
  if (type.isBF16())
    return DITRON_SIM_BF16;
  if (type.isF32())
    return DITRON_SIM_F32;
  if (type.isF64())
    return DITRON_SIM_F64;
  switch (Emitter::bitWidth(memoryType(type))) {
  case 8: return DITRON_SIM_I8;
  case 16: return DITRON_SIM_I16;
  case 32: return DITRON_SIM_I32;
  default: return DITRON_SIM_I64;
  }
}

namespace {

class SimTarget : public TargetInfo {
public:
  explicit SimTarget(int capability) : capability(capability) {}

  //===--- Questions ------------------------------------------------------------------------------------------------===//

  int warpSize() const override { return 32; }
  bool hasAsyncCopy() const override { return true; }
  HopperLeaves *hopper() override { return capability >= 90 ? &hopperLeaves : nullptr; }
  int64_t sharedMemoryLimit() const override { return (capability >= 90 ? 227 : 163) * 1024; }
  bool hasLoadMatrix() const override { return true; }
  bool hasStoreMatrix() const override { return capability >= 90; }
  int shuffleBits() const override { return 64; }
  bool divisionTraps() const override { return true; }
  int registerWords() const override { return 32; } // the host's
  bool isNativeFloat(FloatType type) const override { return type.isF16() || type.isF32() || type.isF64(); }

  //===--- Module ---------------------------------------------------------------------------------------------------===//

  LogicalResult prepareModule(ModuleOp module) override {
    sim.declare(module);
    return success();
  }

  LogicalResult finishKernel(LLVM::LLVMFuncOp kernel) override {
    kernel.setLinkage(LLVM::Linkage::Internal);
    kernel.setNoUnwind(true);
    checkTimeInLoops(kernel, sim);
    OpBuilder builder(kernel);
    builder.setInsertionPointAfter(kernel);
    MLIRContext *context = kernel.getContext();
    auto pointer = LLVM::LLVMPointerType::get(context);
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), {pointer});
    auto entry = LLVM::LLVMFuncOp::create(builder, kernel.getLoc(), simEntryName(kernel.getSymName().str()), type);
    entry.setNoUnwind(true);
    builder.setInsertionPointToStart(entry.addEntryBlock(builder));
    Emitter e(kernel.getLoc(), builder);
    SmallVector<Value> arguments;
    for (auto [i, parameter] : llvm::enumerate(kernel.getFunctionType().getParams())) {
      Value place = LLVM::LoadOp::create(e, pointer, e.addBytes(entry.getArgument(0), int64_t(i) * 8));
      if (kernel.getArgAttr(i, LLVM::LLVMDialect::getByValAttrName()))
        arguments.push_back(place); // a tensor map, where the launcher has put it
      else if (isa<LLVM::LLVMPointerType>(parameter))
        arguments.push_back(LLVM::LoadOp::create(e, parameter, place));
      else
        arguments.push_back(fromMemory(e, LLVM::LoadOp::create(e, memoryType(parameter), place), parameter));
    }
    kernel.removeArgAttrsAttr();
    LLVM::CallOp::create(e, kernel, arguments);
    LLVM::ReturnOp::create(e, ValueRange());
    return success();
  }

  std::string entrySymbol(std::string_view kernel) const override { return simEntryName(kernel); }

  Expected<TargetCode> generateCode(ModuleOp module, const CodegenOptions &options) const override {
    SimCodegenOptions host{options.optimizationLevel, options.keepLLVMText, options.keepAssembly};
    DITRON_ASSIGN_OR_RETURN(SimCode code, emitSimObject(module, host));
    return TargetCode{ArtifactCode::HostObject, std::string(code.object.begin(), code.object.end()),
                      std::move(code.llvmText), std::move(code.assemblyText),
                      std::move(code.steps),    {}};
  }

  //===--- Who am I -------------------------------------------------------------------------------------------------===//

  Value threadId(Emitter &e) override {
    Value id = sim.field(e, offsetof(DitronSimThread, threadId), e.getI32Type());
    std::optional<Partition> producer = producerAt(e);
    return producer ? e.sub(id, e.i32(producer->firstWarp * warpSize())) : id;
  }
  Value laneId(Emitter &e) override { return sim.field(e, offsetof(DitronSimThread, laneId), e.getI32Type()); }
  Value warpId(Emitter &e) override {
    Value id = sim.field(e, offsetof(DitronSimThread, warpId), e.getI32Type());
    std::optional<Partition> producer = producerAt(e);
    return producer ? e.sub(id, e.i32(producer->firstWarp)) : id;
  }
  Value numThreads(Emitter &e) override {
    if (std::optional<Partition> partition = partitionAt(e))
      return e.i32(partition->numWarps * warpSize());
    return sim.field(e, offsetof(DitronSimThread, numThreads), e.getI32Type());
  }
  Value programId(Emitter &e, int axis) override {
    return sim.field(e, offsetof(DitronSimThread, blockId) + 4 * axis, e.getI32Type());
  }
  Value numPrograms(Emitter &e, int axis) override {
    return sim.field(e, offsetof(DitronSimThread, gridDim) + 4 * axis, e.getI32Type());
  }
  Value sharedMemoryBase(Emitter &e) override {
    return sim.field(e, offsetof(DitronSimThread, sharedMemory), e.pointerType());
  }
  Value sharedArray(Emitter &e, int64_t offset, int64_t bytes) override {
    return sim.sharedArray(e, TargetInfo::sharedArray(e, offset, bytes), offset, bytes);
  }

  //===--- Memory ---------------------------------------------------------------------------------------------------===//

  /// Each element as a relaxed load of system scope, which is what PTX makes of it: it may be the body of a loop that waits.
  SmallVector<Value> loadVolatile(Emitter &e, Value ptr, Type element, int count, Value predicate, ValueRange other) {
    const unsigned bytes = Emitter::bitWidth(element) / 8;
    Value how = predicate ? e.select(predicate, e.i32(0), e.i32(DITRON_SIM_LD_NOT)) : e.i32(0);
    SmallVector<Value> results;
    for (int i = 0; i < count; ++i) {
      Value word = sim.call(e, "ld",
                            {sim.self(e), i ? e.addBytes(ptr, int64_t(i) * bytes) : ptr, e.i32(bytes),
                             e.i32(DITRON_SIM_RELAXED), e.i32(DITRON_SIM_SCOPE_SYSTEM), how, sim.site(e)});
      Value loaded = fromWord(e, word, element);
      results.push_back(predicate && !other.empty() ? e.select(predicate, loaded, other[i]) : loaded);
    }
    return results;
  }

  SmallVector<Value> loadVector(Emitter &e, Value ptr, Type element, int count, Value predicate, ValueRange other,
                                AddressSpace space, const MemoryFlags &flags) override {
    unsigned bytes = Emitter::bitWidth(element) / 8;
    if (flags.isVolatile && !flags.isAnnounced && space != AddressSpace::Shared)
      return loadVolatile(e, ptr, element, count, predicate, other);
    if (!flags.isAnnounced)
      announce(e, ptr, bytes * count, predicate,
               flags.represents ? e.select(flags.represents, e.i32(DITRON_SIM_LOAD), e.i32(DITRON_SIM_LOAD_COPY))
                                : e.i32(DITRON_SIM_LOAD),
               spaceCode(space));
    Value address = predicate ? e.select(predicate, ptr, sim.zeros(e)) : ptr;
    Type type = count == 1 ? element : VectorType::get({count}, element);
    Value loaded = LLVM::LoadOp::create(e, type, address, /*alignment=*/bytes, flags.isVolatile);
    if (predicate && !other.empty())
      loaded = e.select(predicate, loaded, count == 1 ? other.front() : e.packVector(other));
    if (count == 1)
      return {loaded};
    return e.unpackVector(loaded);
  }

  /// The same of stores.
  void storeVolatile(Emitter &e, Value ptr, ValueRange values, Value predicate) {
    const unsigned bytes = Emitter::bitWidth(values.front().getType()) / 8;
    Value stored = predicate ? e.select(predicate, e.i32(bytes), e.i32(0)) : e.i32(bytes);
    for (auto [i, value] : llvm::enumerate(values))
      sim.call(e, "st",
               {sim.self(e), i ? e.addBytes(ptr, int64_t(i) * bytes) : ptr, word(e, value), stored,
                e.i32(DITRON_SIM_RELAXED), e.i32(DITRON_SIM_SCOPE_SYSTEM), sim.site(e)});
  }

  void storeVector(Emitter &e, Value ptr, ValueRange values, Value predicate, AddressSpace space,
                   const MemoryFlags &flags) override {
    unsigned bytes = Emitter::bitWidth(values.front().getType()) / 8;
    if (flags.isVolatile && !flags.isAnnounced && space != AddressSpace::Shared)
      return storeVolatile(e, ptr, values, predicate);
    if (!flags.isAnnounced)
      announce(e, ptr, bytes * values.size(), predicate, e.i32(DITRON_SIM_STORE), spaceCode(space));
    Value address = predicate ? e.select(predicate, ptr, sim.sink(e)) : ptr;
    Value stored = values.size() == 1 ? values.front() : e.packVector(values);
    LLVM::StoreOp::create(e, stored, address, /*alignment=*/bytes, flags.isVolatile);
  }

  bool wantsRepresentatives() const override { return true; }
  void announceTile(Emitter &e, Value base, int64_t bytes, Value predicate, bool isStore) override {
    announce(e, base, bytes, predicate, e.i32(isStore ? DITRON_SIM_STORE : DITRON_SIM_LOAD), DITRON_SIM_SHARED_TILE);
  }

  Value atomicRmw(Emitter &e, tile::AtomicOp op, Type semanticType, Value ptr, Value value, Value predicate,
                  tile::MemoryOrder order, tile::MemoryScope scope) override {
    Value old = sim.call(e, "atomic_rmw",
                         {sim.self(e), code(e, op), e.i32(simTypeOf(semanticType)), ptr, word(e, value),
                          predicateWord(e, predicate), code(e, order), code(e, scope), sim.site(e)});
    return fromWord(e, old, value.getType());
  }

  Value atomicCas(Emitter &e, Value ptr, Value compare, Value value, tile::MemoryOrder order,
                  tile::MemoryScope scope) override {
    Value old = sim.call(e, "atomic_cas",
                         {sim.self(e), ptr, word(e, compare), word(e, value), bytesOf(e, value.getType()),
                          code(e, order), code(e, scope), sim.site(e)});
    return fromWord(e, old, value.getType());
  }

  Value orderedLoad(Emitter &e, Type storage, Value ptr, tile::MemoryOrder order, tile::MemoryScope scope,
                    bool spin) override {
    Value loaded = sim.call(
        e, "ld", {sim.self(e), ptr, bytesOf(e, storage), code(e, order), code(e, scope), e.i32(spin), sim.site(e)});
    return fromWord(e, loaded, storage);
  }

  void orderedStore(Emitter &e, Value ptr, Value value, tile::MemoryOrder order, tile::MemoryScope scope) override {
    sim.call(
        e, "st",
        {sim.self(e), ptr, word(e, value), bytesOf(e, value.getType()), code(e, order), code(e, scope), sim.site(e)});
  }

  Value waitUntil(Emitter &e, Value ptr, dist::Compare compare, Value value, tile::MemoryOrder order,
                  tile::MemoryScope scope) override {
    Value seen = sim.call(e, "wait_until",
                          {sim.self(e), ptr, bytesOf(e, value.getType()), code(e, compare),
                           e.sextOrTrunc(value, e.getI64Type()), code(e, order), code(e, scope), sim.site(e)});
    return fromWord(e, seen, value.getType());
  }

  void fence(Emitter &e, tile::MemoryOrder order, tile::MemoryScope scope) override {
    sim.call(e, "fence", {sim.self(e), code(e, order), code(e, scope), sim.site(e)});
  }
  void sequentialFence(Emitter &e, tile::MemoryScope scope) override {
    sim.call(e, "fence", {sim.self(e), e.i32(DITRON_SIM_SEQ_CST), code(e, scope), sim.site(e)});
  }

  bool checksRanks() const override { return true; }
  void print(Emitter &e, StringRef format, ValueRange values) override {
    sim.call(e, "print", {sim.self(e), sim.text(e, format), wordsOf(e, values)});
  }
  void assertionFailed(Emitter &e, StringRef format, ValueRange values) override {
    sim.call(e, "assertion_failed", {sim.self(e), sim.text(e, format), wordsOf(e, values), sim.site(e)});
  }
  /// An array of 64-bit words on the stack with the bits of each value.
  static Value wordsOf(Emitter &e, ValueRange values) {
    SmallVector<Value> words;
    for (Value value : values) {
      Value bits = isa<LLVM::LLVMPointerType>(value.getType())
                       ? LLVM::PtrToIntOp::create(e, e.getI64Type(), value).getResult()
                       : e.toBits(value);
      words.push_back(e.zextOrTrunc(bits, e.getI64Type()));
    }
    if (words.empty())
      words.push_back(e.i64(0));
    return SimCalls::spill(e, words);
  }
  void checkRank(Emitter &e, Value rank, Value numRanks, StringRef function) override {
    sim.call(e, "check_rank", {sim.self(e), rank, numRanks, sim.text(e, function), sim.site(e)});
  }

  //===--- OpenSHMEM: one thread calls for all ----------------------------------------------------------------------===//

  void checkPeer(Emitter &e, Value world, Value pe, StringRef function) override {
    sim.call(e, "shmem_peer", {sim.self(e), world, pe, sim.text(e, function), sim.site(e)});
  }
  void transfer(Emitter &e, const SymmetricTransfer &t) override {
    inFirst(e, t, [&](Emitter &inner) {
      sim.call(inner, t.isGet ? "shmem_get" : "shmem_put",
               {sim.self(inner), t.to, t.from, t.bytes, t.pe, inner.i32(t.nonblocking), sim.site(inner)});
    });
  }
  bool transferWithSignal(Emitter &e, const SymmetricTransfer &t, Value signal, Value value,
                          dist::SignalOp op) override {
    inFirst(e, t, [&](Emitter &inner) {
      sim.call(inner, "shmem_put_signal",
               {sim.self(inner), t.to, t.from, t.bytes, signal, word(inner, value), bytesOf(inner, value.getType()),
                code(inner, op), t.pe, inner.i32(t.nonblocking), sim.site(inner)});
    });
    return true;
  }
  void raiseSignal(Emitter &e, Value signal, Value value, dist::SignalOp op, Value pe) override {
    sim.call(e, "shmem_signal",
             {sim.self(e), signal, word(e, value), bytesOf(e, value.getType()), code(e, op), pe, sim.site(e)});
  }
  void raiseWord(Emitter &e, Value place, Value value, dist::SignalOp op, dist::CommScope reach, Value pe) override {
    sim.call(e, "shmem_raise",
             {sim.self(e), place, word(e, value), bytesOf(e, value.getType()), code(e, op), code(e, reach), pe,
              sim.site(e)});
  }
  Value reaches(Emitter &e, Value world, Value pe) override {
    return e.isNotZero(sim.call(e, "reaches", {sim.self(e), world, pe, sim.site(e)}));
  }
  void orderTransfers(Emitter &e, dist::OrderKind kind) override {
    sim.call(e, "shmem_order", {sim.self(e), code(e, kind), sim.site(e)});
  }

  void asyncCopy(Emitter &e, Value shared, Value global, int bytes, Value predicate, Value copies) override {
    emitIf(e, copies, {}, [&](Emitter &inner) -> SmallVector<Value> {
      sim.call(inner, "async_copy",
               {sim.self(inner), shared, global, inner.i32(bytes), predicateWord(inner, predicate), sim.site(inner)});
      return {};
    });
  }
  void asyncCommit(Emitter &e) override { sim.call(e, "async_commit", {sim.self(e), sim.site(e)}); }
  void asyncWait(Emitter &e, int pending) override {
    sim.call(e, "async_wait", {sim.self(e), e.i32(pending), sim.site(e)});
  }

  SmallVector<Value> loadMatrices(Emitter &e, ValueRange rows, int count, bool transpose) override {
    CallArrays arrays(sim, e);
    SmallVector<Value> words(rows.size() * count, e.i32(0));
    Value places = arrays.spill(rows), array = arrays.make(e.getI32Type(), static_cast<int64_t>(words.size()));
    sim.call(e, "load_matrices",
             {sim.self(e), e.i32(rows.size()), e.i32(count), e.i32(transpose), places, array, sim.site(e)});
    return arrays.reload(array, words);
  }

  void storeMatrices(Emitter &e, ValueRange rows, int count, bool transpose, ValueRange words) override {
    CallArrays arrays(sim, e);
    Value places = arrays.spill(rows), array = arrays.spill(words);
    sim.call(e, "store_matrices",
             {sim.self(e), e.i32(rows.size()), e.i32(count), e.i32(transpose), places, array, sim.site(e)});
  }

  //===--- Threads together -----------------------------------------------------------------------------------------===//

  void blockBarrier(Emitter &e) override {
    std::optional<Partition> partition = partitionAt(e);
    if (!partition)
      sim.call(e, "barrier", {sim.self(e), sim.site(e)});
    else if (partition->numWarps == 1)
      warpBarrier(e);
    else
      hopperLeaves.namedBarrier(e, e.i32(partition->barrier()), partition->numWarps * warpSize(),
                                NamedBarrierKind::Sync);
  }
  void warpBarrier(Emitter &e) override { sim.call(e, "warp_barrier", {sim.self(e), sim.site(e)}); }
  void orderLanes(Emitter &e, ValueRange later, ValueRange earlier) override {
    CallArrays arrays(sim, e);
    auto array = [&](ValueRange values) { return values.empty() ? sim.zeros(e) : arrays.spill(values); };
    sim.call(e, "order_lanes",
             {sim.self(e), array(later), e.i32(later.size()), array(earlier), e.i32(earlier.size()), sim.site(e)});
  }

  Value shuffle(Emitter &e, dist::ShuffleKind kind, Value value, Value operand, Value mask) override {
    return sim.call(e, "shuffle", {sim.self(e), code(e, kind), value, operand, laneMask(e, mask), sim.site(e)});
  }

  Value ballot(Emitter &e, Value mask, Value predicate) override {
    Value lanes = sim.call(e, "ballot", {sim.self(e), laneMask(e, mask), predicateWord(e, predicate), sim.site(e)});
    return e.zextOrTrunc(lanes, e.getI32Type());
  }

  //===--- Arithmetic -----------------------------------------------------------------------------------------------===//

  SmallVector<Value> mma(Emitter &e, const MmaDot &dot) override {
    DitronSimType type = dot.operandType.isF32() ? DITRON_SIM_TF32 : simTypeOf(dot.operandType);
    CallArrays arrays(sim, e);
    Value a = arrays.spill(dot.a), b = arrays.spill(dot.b), c = arrays.spill(dot.c);
    sim.call(e, "mma",
             {sim.self(e), e.i32(type), e.i32(dot.mTiles), e.i32(dot.nTiles), e.i32(dot.kTiles), a, b, c, sim.site(e)});
    return arrays.reload(c, dot.c);
  }

  SmallVector<Value> fmaDot(Emitter &e, const FmaDot &dot) override {
    CallArrays arrays(sim, e);
    Value a = arrays.spill(dot.a), b = arrays.spill(dot.b), c = arrays.spill(dot.c);
    sim.call(e, "fma_dot",
             {sim.self(e), e.i32(simTypeOf(dot.accumulatorType)), e.i32(dot.m), e.i32(dot.n), e.i32(dot.k), a, b, c,
              sim.site(e)});
    return arrays.reload(c, dot.c);
  }

  FailureOr<SmallVector<Value>> inlineAsm(Emitter &e, StringRef text, StringRef constraints, ValueRange operands,
                                          ArrayRef<Type> results, bool isPure) override {
    return PtxTranslator(e, *this).translate(text, constraints, operands, results);
  }

  FailureOr<SmallVector<Value>> intrinsic(Emitter &e, StringRef name, ValueRange operands,
                                          DictionaryAttr options) override {
    if (name == "shmem_value") {
      sim.call(e, "shmem_value",
               {sim.self(e), operands[0], word(e, operands[1]), bytesOf(e, operands[1].getType()), operands[2],
                sim.site(e)});
      return SmallVector<Value>();
    }
    if (name == "gdc_wait" || name == "gdc_launch_dependents")
      return SmallVector<Value>(); // kernels of a stream follow each other
    if (name == "bar_warp_sync") {
      warpBarrier(e);
      return SmallVector<Value>();
    }
    return simIntrinsic(e, sim, hopper(), name, operands, options);
  }

private:
  static void inFirst(Emitter &e, const SymmetricTransfer &transfer, llvm::function_ref<void(Emitter &)> body) {
    emitIf(e, e.isZero(transfer.index), {}, [&](Emitter &inner) -> SmallVector<Value> {
      body(inner);
      return {};
    });
  }

  /// The producer whose code this is; its threads are numbered from 0.
  static std::optional<Partition> producerAt(Emitter &e) {
    std::optional<Partition> partition = partitionAt(e);
    return partition && partition->isProducer() ? partition : std::nullopt;
  }

  DitronSimSpace spaceCode(AddressSpace space) const {
    return space == AddressSpace::Shared ? DITRON_SIM_SHARED
           : hasGenericAddresses         ? DITRON_SIM_GENERIC
                                         : DITRON_SIM_GLOBAL;
  }
  void announce(Emitter &e, Value ptr, int64_t bytes, Value predicate, Value access, DitronSimSpace space) {
    sim.call(e, "access",
             {sim.self(e), ptr, e.i32(bytes), predicateWord(e, predicate), access, e.i32(space), sim.site(e)});
  }

  template <typename Enum> static Value code(Emitter &e, Enum value) { return e.i32(static_cast<int>(value)); }
  static Value bytesOf(Emitter &e, Type type) { return e.i32(Emitter::bitWidth(memoryType(type)) / 8); }
  static Value predicateWord(Emitter &e, Value predicate) {
    return predicate ? e.zextOrTrunc(predicate, e.getI32Type()) : e.i32(1);
  }
  static Value laneMask(Emitter &e, Value mask) {
    return mask ? e.zextOrTrunc(mask, e.getI64Type()) : e.i64(0xffffffff);
  }
  /// A value as a zero-extended bit pattern, and back.
  static Value word(Emitter &e, Value value) { return e.zextOrTrunc(e.toBits(value), e.getI64Type()); }
  static Value fromWord(Emitter &e, Value bits, Type type) {
    return e.fromBits(e.zextOrTrunc(bits, e.getIntegerType(Emitter::bitWidth(type))), type);
  }

  int capability; ///< Of the NVIDIA architecture whose units are there: 80 or 90.
  SimCalls sim;
  SimHopper hopperLeaves{sim};
};

} // namespace

static std::string simTargetName(int capability) {
  return capability >= 90 ? fmt::format("sim:sm_{}a", capability) : fmt::format("sim:sm_{}", capability);
}

void registerSimTarget() {
  registerTarget("sim", [](StringRef name) -> Expected<std::unique_ptr<TargetInfo>> {
    for (int capability : {80, 90})
      if (name == simTargetName(capability) || (name == "sim" && capability == 80))
        return std::unique_ptr<TargetInfo>(std::make_unique<SimTarget>(capability));
    return unsupported(fmt::format("unknown simulated target '{}'; known: {} (also called sim) and {}", name.str(),
                                   simTargetName(80), simTargetName(90)));
  });
}

} // namespace ditron::target
