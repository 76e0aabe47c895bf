//===- NvptxLastingWait.cpp - NVIDIA leaves: what a wait does that lasts ----------------------------------------------------===//
//
// Bodies of the functions of NvptxWait.h. They run seldom, so what counts is that they are small for the loops around them: one
// call, no pointer into the caller's frame.
//
// Where the limit, the report and the board are: abi/WorldView.h; what they hold: abi/WaitReport.h, abi/WaitBoard.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/nvptx/NvptxWait.h"

#include "ditron/abi/WaitBoard.h"
#include "ditron/abi/WorldView.h"
#include "ditron/target/nvptx/NvptxTargetInfo.h"
#include "ditron/target/nvptx/PtxAsm.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <fmt/format.h>

using namespace mlir;
using LLVM::ICmpPredicate;

namespace ditron::target {

static constexpr llvm::StringLiteral publishName = "ditron_wait_publish";
/// A slot whose wait has not looked for so long is free: a loop of the kernel's own does not say when it ends.
static constexpr int64_t forgottenNanoseconds = 2'000'000'000;
/// Slots that a wait tries before it goes on unpublished, until its next visit.
static constexpr int64_t slotsTried = 64;

Value nanoseconds(Emitter &e) { return callIntrinsic(e, "llvm.nvvm.read.ptx.sreg.globaltimer", e.getI64Type(), {}); }

namespace {

/// What visit and publish are given, in this order.
enum Parameter { World, Slot, Start, Address, Seen, Wanted, Line, Column, Comparison, Bytes, Kind };

/// Writes one of the functions: straight tests that return early.
class LastingWaitBody {
public:
  LastingWaitBody(Emitter &e, LLVM::LLVMFuncOp function, uint32_t kernel)
      : e(e), function(function), kernel(kernel), global(LLVM::LLVMPointerType::get(e.getContext(), 1)) {
    e.setInsertionPointToStart(function.addEntryBlock(e));
  }

  void writeVisit(bool isBounded) {
    if (!isBounded) {
      give(publish());
      return;
    }
    Value report = loadWord(DITRON_WORLD_WAIT_REPORT);
    returnIf(e.isZero(report), e.i32(0));
    Value place = LLVM::IntToPtrOp::create(e, global, report);
    // Once one wait has run out of time all give up, so that the kernel drains.
    returnIf(e.isNotZero(loadRelaxed(e.getI32Type(), place)), e.i32(waitGivesUp));
    Value slot = publish();
    // Who waits for an mbarrier mostly waits for another warp that waits for a signal: that wait must be the first to give up.
    Value limit = loadWord(DITRON_WORLD_WAIT_LIMIT);
    limit = e.select(e.compare(ICmpPredicate::eq, in(Kind), e.i32(DITRON_WAIT_MBARRIER)), e.add(limit, limit), limit);
    returnIf(e.compare(ICmpPredicate::slt, e.sub(nanoseconds(e), in(Start)), limit), slot);
    static_assert(offsetof(DitronWaitReport, state) == 0);
    returnIf(e.isNotZero(exchange(place, e.i32(DITRON_WAIT_NONE), DITRON_WAIT_WRITING)), e.i32(waitGivesUp));
    store(place, offsetof(DitronWaitReport, rank), e.zextOrTrunc(loadWord(DITRON_WORLD_RANK), e.getI32Type()));
    storeWait<DitronWaitReport>(place);
    store(place, offsetof(DitronWaitReport, seen), in(Seen));
    publishState(place, DITRON_WAIT_COMPLETE);
    give(e.i32(waitGivesUp));
  }

  void writePublish() {
    Value slots = loadWord(DITRON_WORLD_WAIT_SLOTS);
    returnIf(e.isZero(slots), e.i32(0));
    // Warps that wait for each other inside of a block are the consequence of a wait, not its cause.
    returnIf(e.compare(ICmpPredicate::eq, in(Kind), e.i32(DITRON_WAIT_MBARRIER)), e.i32(0));
    Value base = LLVM::IntToPtrOp::create(e, global, slots), now = nanoseconds(e);
    writeRefresh(base, now);
    returnIf(e.bitXor(isFirstOfItsWarp(), e.i1(true)), e.i32(0));
    auto [place, number] = writeClaim(base, now);
    static_assert(offsetof(DitronWaitSlot, state) == 0);
    storeWait<DitronWaitSlot>(place);
    PtxAsm launch(e);
    std::string grid = launch.output(e.getI64Type());
    store(place, offsetof(DitronWaitSlot, launch), launch.emit(fmt::format("mov.u64 {}, %gridid;", grid))[0]);
    PtxAsm multiprocessor(e);
    std::string sm = multiprocessor.output(e.getI32Type());
    store(place, offsetof(DitronWaitSlot, sm), multiprocessor.emit(fmt::format("mov.u32 {}, %smid;", sm))[0]);
    store(place, offsetof(DitronWaitSlot, since), in(Start));
    store(place, offsetof(DitronWaitSlot, seen), in(Seen));
    store(place, offsetof(DitronWaitSlot, lastLooked), now);
    publishState(place, DITRON_SLOT_WAITING);
    give(e.add(number, e.i32(1)));
  }

  /// (world, slot).
  void writeLeave() {
    Value slots = loadWord(DITRON_WORLD_WAIT_SLOTS);
    Value place = slotAt(LLVM::IntToPtrOp::create(e, global, slots), e.sub(in(Slot), e.i32(1)));
    PtxAsm code(e);
    std::string to = code.input(place);
    code.emit(fmt::format("st.relaxed.sys.global.b32 [{}], {};", to, int(DITRON_SLOT_FREE)));
    LLVM::ReturnOp::create(e, ValueRange());
  }

private:
  Value in(Parameter parameter) { return function.getArgument(parameter); }
  /// A word of the world view.
  Value loadWord(int word) {
    return LLVM::LoadOp::create(e, e.getI64Type(), e.addBytes(in(World), int64_t(word) * 8), /*alignment=*/8);
  }
  void store(Value base, int64_t offset, Value value) {
    LLVM::StoreOp::create(e, value, e.addBytes(base, offset), /*alignment=*/4, /*isVolatile=*/true);
  }
  void give(Value slot) { LLVM::ReturnOp::create(e, slot); }
  void returnIf(Value condition, Value slot) {
    Block *leave = function.addBlock(), *next = function.addBlock();
    LLVM::CondBrOp::create(e, condition, leave, next);
    e.setInsertionPointToStart(leave);
    give(slot);
    e.setInsertionPointToStart(next);
  }
  Value publish() { return LLVM::CallOp::create(e, e.getI32Type(), publishName, function.getArguments()).getResult(); }
  Value loadRelaxed(Type type, Value place) {
    PtxAsm code(e);
    std::string result = code.output(type), from = code.input(place);
    return code.emit(fmt::format("ld.relaxed.sys.global.b{} {}, [{}];", type.getIntOrFloatBitWidth(), result, from))[0];
  }
  /// Sets a state to another if it is what it should be; gives what it was.
  Value exchange(Value place, Value expected, int state) {
    PtxAsm code(e);
    std::string old = code.output(e.getI32Type()), at = code.input(place), was = code.input(expected);
    return code.emit(fmt::format("atom.relaxed.sys.global.cas.b32 {}, [{}], {}, {};", old, at, was, state))[0];
  }
  void publishState(Value place, int state) {
    PtxAsm code(e);
    std::string to = code.input(place);
    code.emit(fmt::format("fence.acq_rel.sys; st.release.sys.global.b32 [{}], {};", to, state));
  }
  Value slotAt(Value base, Value number) {
    return e.addBytes(base, e.mul(e.zextOrTrunc(number, e.getI64Type()), e.i64(sizeof(DitronWaitSlot))));
  }
  Value special(llvm::StringRef name) {
    return callIntrinsic(e, fmt::format("llvm.nvvm.read.ptx.sreg.{}", name.str()), e.getI32Type(), {});
  }

  /// What a report and a slot have in common.
  template <typename Record> void storeWait(Value place) {
    const std::pair<const char *, size_t> identity[] = {{"ctaid.x", offsetof(Record, block)},
                                                        {"ctaid.y", offsetof(Record, block) + 4},
                                                        {"ctaid.z", offsetof(Record, block) + 8},
                                                        {"tid.x", offsetof(Record, thread)}};
    for (auto [name, offset] : identity)
      store(place, offset, special(name));
    store(place, offsetof(Record, line), in(Line));
    store(place, offsetof(Record, column), in(Column));
    store(place, offsetof(Record, compare), in(Comparison));
    store(place, offsetof(Record, wordBytes), in(Bytes));
    store(place, offsetof(Record, kind), in(Kind));
    store(place, offsetof(Record, kernel), e.i32(static_cast<int32_t>(kernel)));
    store(place, offsetof(Record, address), in(Address));
    store(place, offsetof(Record, wanted), in(Wanted));
  }

  /// Of a wait that has a slot: what it sees now.
  void writeRefresh(Value base, Value now) {
    Block *refresh = function.addBlock(), *next = function.addBlock();
    LLVM::CondBrOp::create(e, e.compare(ICmpPredicate::sgt, in(Slot), e.i32(0)), refresh, next);
    e.setInsertionPointToStart(refresh);
    Value place = slotAt(base, e.sub(in(Slot), e.i32(1)));
    store(place, offsetof(DitronWaitSlot, seen), in(Seen));
    store(place, offsetof(DitronWaitSlot, lastLooked), now);
    give(in(Slot));
    e.setInsertionPointToStart(next);
  }

  /// Whether no earlier lane that is here now waits for the same word.
  Value isFirstOfItsWarp() {
    PtxAsm code(e);
    std::string first = code.output(e.getI32Type()), address = code.input(in(Address));
    return e.isZero(code.emit(fmt::format("{{\n.reg .b32 here, same, before;\nactivemask.b32 here;\n"
                                          "match.any.sync.b64 same, {}, here;\nmov.u32 before, %lanemask_lt;\n"
                                          "and.b32 {}, same, before;\n}}",
                                          address, first))[0]);
  }

  /// Finds a free slot and takes it; returns from the function when there is none. The slot and its number.
  std::pair<Value, Value> writeClaim(Value base, Value now) {
    Type i32 = e.getI32Type();
    Value spread =
        e.add(e.add(special("ctaid.x"), e.mul(special("ctaid.y"), e.i32(257))), e.mul(special("tid.x"), e.i32(61)));
    Value mask = e.zextOrTrunc(loadWord(DITRON_WORLD_WAIT_SLOT_MASK), i32);
    Block *head = function.addBlock(), *look = function.addBlock(), *take = function.addBlock(),
          *next = function.addBlock(), *full = function.addBlock(), *taken = function.addBlock();
    Value tried = head->addArgument(i32, e.getLoc());
    LLVM::BrOp::create(e, ValueRange{e.i32(0)}, head);
    e.setInsertionPointToStart(head);
    LLVM::CondBrOp::create(e, e.compare(ICmpPredicate::slt, tried, e.i32(slotsTried)), look, full);
    e.setInsertionPointToStart(full);
    give(e.i32(0));
    e.setInsertionPointToStart(look);
    Value number = e.bitAnd(e.add(spread, tried), mask), place = slotAt(base, number);
    Value state = loadRelaxed(i32, place);
    Value looked = loadRelaxed(e.getI64Type(), e.addBytes(place, offsetof(DitronWaitSlot, lastLooked)));
    Value isForgotten = e.bitAnd(e.compare(ICmpPredicate::eq, state, e.i32(DITRON_SLOT_WAITING)),
                                 e.compare(ICmpPredicate::sgt, e.sub(now, looked), e.i64(forgottenNanoseconds)));
    LLVM::CondBrOp::create(e, e.bitOr(e.isZero(state), isForgotten), take, next);
    e.setInsertionPointToStart(take);
    Value old = exchange(place, state, DITRON_SLOT_WRITING);
    LLVM::CondBrOp::create(e, e.compare(ICmpPredicate::eq, old, state), taken, next);
    e.setInsertionPointToStart(next);
    LLVM::BrOp::create(e, ValueRange{e.add(tried, e.i32(1))}, head);
    e.setInsertionPointToStart(taken);
    return {place, number};
  }

  Emitter &e;
  LLVM::LLVMFuncOp function;
  const uint32_t kernel;
  Type global;
};
} // namespace

uint32_t kernelHash(ModuleOp module) {
  uint32_t hash = 0;
  for (auto function : module.getOps<func::FuncOp>()) {
    hash = 2166136261u;
    for (unsigned char byte : function.getSymName().bytes())
      hash = (hash ^ byte) * 16777619u;
  }
  return hash;
}

void defineLastingWaits(ModuleOp module, bool isBounded) {
  const uint32_t kernel = kernelHash(module);
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  Emitter e(module.getLoc(), builder);
  Type i32 = e.getI32Type(), i64 = e.getI64Type(), ptr = e.pointerType();
  LLVM::LLVMFuncOp::create(e, worldName, LLVM::LLVMFunctionType::get(ptr, {}));
  auto define = [&](StringRef name, Type result, ArrayRef<Type> parameters) {
    e.setInsertionPointToEnd(module.getBody());
    auto function =
        LLVM::LLVMFuncOp::create(e, name, LLVM::LLVMFunctionType::get(result, parameters), LLVM::Linkage::Internal);
    function.setNoInline(true); // seldom called, and long
    return LastingWaitBody(e, function, kernel);
  };
  const Type wait[] = {ptr, i32, i64, i64, i64, i64, i32, i32, i32, i32, i32};
  define(publishName, i32, wait).writePublish();
  define(visitName, i32, wait).writeVisit(isBounded);
  define(leaveName, LLVM::LLVMVoidType::get(e.getContext()), {ptr, i32}).writeLeave();
}

} // namespace ditron::target
