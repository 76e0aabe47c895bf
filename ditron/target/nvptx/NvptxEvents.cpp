//===- NvptxEvents.cpp - NVIDIA leaves: what blocks did when, for traces ----------------------------------------------------===//
//
// With the module attribute dgpu::noteEventsAttrName a block is noted when it returns, a wait when it has ended, and a signal when it has been
// raised, each by one thread, in the rank's ring (abi/EventRing.h). Who notes something takes a number by an atomic operation, the
// answer of which takes most of a microsecond, so
//  - a wait takes its number while it waits: in the first turn that was in vain. One that is satisfied at once is not noted;
//  - a signal is noted after it has been raised, with the time from before that;
//  - the start of a block is kept in the thread's local memory, which takes no register;
//  - of launches of very many blocks, which are short then, only some are noted.
// The other warps of the block go on meanwhile. All of it is inlined: a call costs the kernel more than the code does, by the registers
// that must be kept for it (docs/gpu-hangs.md has the figures).
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/nvptx/NvptxEvents.h"

#include "ditron/abi/EventRing.h"
#include "ditron/abi/WorldView.h"
#include "ditron/dialect/dgpu/DiscardableAttrs.h"
#include "ditron/target/nvptx/NvptxTargetInfo.h"
#include "ditron/target/nvptx/NvptxWait.h"
#include "ditron/target/nvptx/PtxAsm.h"

#include <fmt/format.h>

using namespace mlir;
using LLVM::ICmpPredicate;

namespace ditron::target {

/// Functions of the module:
///   claim(world) -> number                                                       0: there is no ring
///   record(world, number, what, line, begin, end, address, value)                writes the event, unless the number is 0
static constexpr llvm::StringLiteral claimName = "ditron_event_claim", recordName = "ditron_event_record";

static_assert(int(dist::SignalOp::Set) == DITRON_SIGNAL_SET && int(dist::SignalOp::Add) == DITRON_SIGNAL_ADD);

static Value ringOf(Emitter &e, Value world) {
  return LLVM::LoadOp::create(e, e.getI64Type(), e.addBytes(world, int64_t(DITRON_WORLD_EVENT_RING) * 8),
                              /*alignment=*/8);
}

//===--- The functions --------------------------------------------------------------------------------------------------===//

namespace {
class EventBodies {
public:
  EventBodies(Emitter &e, uint32_t kernel) : e(e), kernel(kernel) {}

  void writeClaim(LLVM::LLVMFuncOp function) {
    begin(function);
    Value ring = ringOf(e, function.getArgument(0));
    leaveIf(function, e.isZero(ring), e.i64(0));
    PtxAsm code(e);
    std::string number = code.output(e.getI64Type()), at = code.input(ring);
    static_assert(offsetof(DitronEventRing, claimed) == 0);
    Value old = code.emit(fmt::format("atom.relaxed.gpu.global.add.u64 {}, [{}], 1;", number, at))[0];
    LLVM::ReturnOp::create(e, e.add(old, e.i64(1)));
  }

  void writeRecord(LLVM::LLVMFuncOp function) {
    begin(function);
    Value number = function.getArgument(1);
    leaveIf(function, e.isZero(number), Value());
    Value place = e.bitAnd(e.sub(number, e.i64(1)), e.i64(DITRON_RING_EVENTS - 1));
    Value offset = e.add(e.mul(place, e.i64(sizeof(DitronEvent))), e.i64(offsetof(DitronEventRing, events)));
    Value at = LLVM::IntToPtrOp::create(e, LLVM::LLVMPointerType::get(e.getContext(), 1),
                                        e.add(ringOf(e, function.getArgument(0)), offset));
    auto pack = [&](StringRef low, StringRef high) { return e.bitOr(special(low), e.shl(special(high), 16)); };
    PtxAsm grid(e);
    std::string launch = grid.output(e.getI64Type());
    Value launchNumber = grid.emit(fmt::format("mov.u64 {}, %gridid;", launch))[0];
    // In the order of the struct, for whole vectors of 16 bytes.
    const Value words[] = {e.zextOrTrunc(number, e.getI32Type()),
                           function.getArgument(2),
                           e.i32(static_cast<int32_t>(kernel)),
                           function.getArgument(3),
                           special("ctaid.x"),
                           pack("ctaid.y", "ctaid.z"),
                           pack("tid.x", "smid"),
                           e.zextOrTrunc(launchNumber, e.getI32Type())};
    static_assert(offsetof(DitronEvent, launch) == 28 && offsetof(DitronEvent, begin) == 32);
    int64_t byte = 0;
    for (Value word : words) {
      LLVM::StoreOp::create(e, word, e.addBytes(at, byte), /*alignment=*/byte % 16 == 0 ? 16 : 4);
      byte += 4;
    }
    for (Value word : function.getArguments().drop_front(4)) {
      LLVM::StoreOp::create(e, word, e.addBytes(at, byte), /*alignment=*/byte % 16 == 0 ? 16 : 8);
      byte += 8;
    }
    LLVM::ReturnOp::create(e, ValueRange());
  }

private:
  void begin(LLVM::LLVMFuncOp function) { e.setInsertionPointToStart(function.addEntryBlock(e)); }
  void leaveIf(LLVM::LLVMFuncOp function, Value condition, Value result) {
    Block *leave = function.addBlock(), *next = function.addBlock();
    LLVM::CondBrOp::create(e, condition, leave, next);
    e.setInsertionPointToStart(leave);
    LLVM::ReturnOp::create(e, result ? ValueRange(result) : ValueRange());
    e.setInsertionPointToStart(next);
  }
  Value special(StringRef name) {
    if (name == "smid") { // no intrinsic that may be called twice gives it
      PtxAsm code(e);
      std::string sm = code.output(e.getI32Type());
      return code.emit(fmt::format("mov.u32 {}, %smid;", sm))[0];
    }
    return callIntrinsic(e, fmt::format("llvm.nvvm.read.ptx.sreg.{}", name.str()), e.getI32Type(), {});
  }

  Emitter &e;
  const uint32_t kernel;
};
} // namespace

void defineEvents(ModuleOp module) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  Emitter e(module.getLoc(), builder);
  EventBodies bodies(e, kernelHash(module));
  Type i32 = e.getI32Type(), i64 = e.getI64Type(), ptr = e.pointerType(),
       none = LLVM::LLVMVoidType::get(e.getContext());
  auto declare = [&](StringRef name, Type result, ArrayRef<Type> parameters) {
    e.setInsertionPointToEnd(module.getBody());
    auto function =
        LLVM::LLVMFuncOp::create(e, name, LLVM::LLVMFunctionType::get(result, parameters), LLVM::Linkage::Internal);
    function.setAlwaysInline(true);
    return function;
  };
  bodies.writeClaim(declare(claimName, i64, {ptr}));
  bodies.writeRecord(declare(recordName, none, {ptr, i64, i32, i32, i64, i64, i64, i64}));
}

//===--- Waits and signals ----------------------------------------------------------------------------------------------===//

Value claimEvent(Emitter &e) {
  return LLVM::CallOp::create(e, e.getI64Type(), claimName, ValueRange{standInWorldView(e)}).getResult();
}

static void record(Emitter &e, Value number, DitronEventKind kind, int operation, Value begin, Value end, Value address,
                   Value value) {
  Value what = e.i32(kind | operation << 8), line = e.i32(placeOf(e.getLoc()).first);
  LLVM::CallOp::create(e, TypeRange(), recordName,
                       ValueRange{standInWorldView(e), number, what, line, begin, end, address, value});
}

void recordWait(Emitter &e, Value number, Value begin, Value address, Value wanted, int64_t compare) {
  record(e, number, DITRON_EVENT_WAIT, static_cast<int>(compare), begin, nanoseconds(e), address, wanted);
}

void NvptxTargetInfo::noteSignal(Emitter &e, Value signal, Value value, dist::SignalOp op) {
  if (!notesEvents)
    return;
  Value now = nanoseconds(e);
  record(e, claimEvent(e), DITRON_EVENT_SIGNAL, static_cast<int>(op), now, now, e.toBits(signal),
         e.sextOrTrunc(value, e.getI64Type()));
}

//===--- Blocks ---------------------------------------------------------------------------------------------------------===//

/// Whether this thread notes its block (i1): the first thread, of all blocks of a launch of up to `wholeLaunch`, of one in so many of a
/// larger one that half as many to all of wholeLaunch are noted. Blocks that are so many are short, and would take the ring for themselves.
static Value notesBlock(Emitter &e) {
  static_assert(DITRON_WHOLE_LAUNCH == 1 << 11);
  auto special = [&](StringRef name) {
    return callIntrinsic(e, fmt::format("llvm.nvvm.read.ptx.sreg.{}", name.str()), e.getI32Type(), {});
  };
  Value columns = special("nctaid.x"), rows = special("nctaid.y");
  Value block = e.add(special("ctaid.x"), e.mul(columns, e.add(special("ctaid.y"), e.mul(rows, special("ctaid.z")))));
  Value blocks = e.mul(columns, e.mul(rows, special("nctaid.z")));
  Value size = LLVM::LShrOp::create(e, e.sub(blocks, e.i32(1)), e.i32(11));
  Value zeros = LLVM::CountLeadingZerosOp::create(e, e.getI32Type(), size, /*is_zero_poison=*/false);
  // A shift by the width is no number, hence in 64 bits.
  Value skipped =
      e.zextOrTrunc(LLVM::LShrOp::create(e, e.i64(0xffffffff), e.zextOrTrunc(zeros, e.getI64Type())), e.getI32Type());
  return e.isZero(e.bitOr(special("tid.x"), e.bitAnd(block, skipped)));
}

void noteBlocks(LLVM::LLVMFuncOp kernel) {
  SmallVector<LLVM::ReturnOp> returns;
  kernel.walk([&](LLVM::ReturnOp op) { returns.push_back(op); });
  OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
  Emitter e(kernel.getLoc(), builder);
  Value start = LLVM::AllocaOp::create(e, e.pointerType(), e.getI64Type(), e.i64(1), /*alignment=*/8);
  PtxAsm clock(e);
  std::string now = clock.output(e.getI64Type()), notes = clock.guard(notesBlock(e));
  Value begin = clock.emit(fmt::format("mov.u64 {0}, 0; {1}mov.u64 {0}, %globaltimer;", now, notes))[0];
  LLVM::StoreOp::create(e, begin, start, /*alignment=*/8, /*isVolatile=*/true);
  for (LLVM::ReturnOp op : returns) {
    Block *before = op->getBlock(), *after = before->splitBlock(op), *noting = kernel.addBlock();
    e.setInsertionPointToEnd(before);
    begin = LLVM::LoadOp::create(e, e.getI64Type(), start, /*alignment=*/8, /*isVolatile=*/true);
    LLVM::CondBrOp::create(e, e.isZero(begin), after, noting);
    e.setInsertionPointToStart(noting);
    record(e, claimEvent(e), DITRON_EVENT_BLOCK, 0, begin, nanoseconds(e), e.i64(0), e.i64(0));
    LLVM::BrOp::create(e, ValueRange(), after);
  }
}

} // namespace ditron::target
