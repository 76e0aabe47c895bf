//===- NvptxWait.cpp - NVIDIA leaves: waiting for a signal ------------------------------------------------------------------===//
//
// A wait is a loop around a load with acquire semantics. With the module attribute dgpu::publishWaitsAttrName a wait that lasts says
// what it waits for, so that others can read it (`ditron explain`). With dgpu::boundWaitsAttrName it also gives up at a time: the first wait
// that lasts longer than the limit writes a report for the host, and from then on all waits end, so that the kernel drains instead
// of hanging. Results are then garbage; the runtime must look at the report. A spin loop that the kernel itself wrote cannot be
// ended from within its load: there the thread reports and traps. Its age is the time in which the load has been repeated without
// a pause.
//
// A wait that is satisfied at once costs nothing but the code; one that polls reads the GPU's clock after each load, and calls a function
// only when it has lasted for patienceNanoseconds, and then each visitNanoseconds (NvptxLastingWait.cpp).
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/nvptx/NvptxWait.h"

#include "ditron/abi/Compare.h"
#include "ditron/abi/WaitReport.h"
#include "ditron/dialect/dgpu/DiscardableAttrs.h"
#include "ditron/target/nvptx/NvptxEvents.h"
#include "ditron/target/nvptx/NvptxTargetInfo.h"
#include "ditron/target/nvptx/PtxAsm.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <fmt/format.h>

using namespace mlir;
using LLVM::ICmpPredicate;

namespace ditron::target {

/// Loads of a loop that are further apart than this are not one wait.
static constexpr int64_t longestPauseNanoseconds = 100'000;

static_assert(int(dist::Compare::EQ) == DITRON_COMPARE_EQ && int(dist::Compare::NE) == DITRON_COMPARE_NE &&
              int(dist::Compare::GT) == DITRON_COMPARE_GT && int(dist::Compare::LE) == DITRON_COMPARE_LE &&
              int(dist::Compare::LT) == DITRON_COMPARE_LT && int(dist::Compare::GE) == DITRON_COMPARE_GE);

static ICmpPredicate predicateOf(dist::Compare compare) {
  switch (compare) {
  case dist::Compare::EQ:
    return ICmpPredicate::eq;
  case dist::Compare::NE:
    return ICmpPredicate::ne;
  case dist::Compare::GT:
    return ICmpPredicate::sgt;
  case dist::Compare::LE:
    return ICmpPredicate::sle;
  case dist::Compare::LT:
    return ICmpPredicate::slt;
  case dist::Compare::GE:
    return ICmpPredicate::sge;
  }
  return ICmpPredicate::eq;
}

std::pair<int64_t, int64_t> placeOf(Location loc) {
  std::pair<int64_t, int64_t> place{0, 0};
  loc->walk([&](Location one) {
    auto file = dyn_cast<FileLineColRange>(one);
    if (!file)
      return WalkResult::advance();
    place = {file.getStartLine(), file.getStartColumn()};
    return WalkResult::interrupt();
  });
  return place;
}

void resolveWorldView(LLVM::LLVMFuncOp kernel) {
  SmallVector<LLVM::CallOp> calls;
  kernel.walk([&](LLVM::CallOp call) {
    if (call.getCallee() == worldName)
      calls.push_back(call);
  });
  for (LLVM::CallOp call : calls) {
    call.getResult().replaceAllUsesWith(kernel.getArguments().back());
    call.erase();
  }
  if (auto declaration = kernel->getParentOfType<ModuleOp>().lookupSymbol<LLVM::LLVMFuncOp>(worldName))
    if (SymbolTable::symbolKnownUseEmpty(declaration, kernel->getParentOfType<ModuleOp>()))
      declaration.erase();
}

//===--- The age of a wait ----------------------------------------------------------------------------------------------===//

namespace {
/// What a wait waits for, as visit is told.
struct Wanted {
  Value address, seen, value;
  int64_t compare = 0, bytes = 0;
  DitronWaitKind kind = DITRON_WAIT_SIGNAL;
};

/// What a wait carries from turn to turn: when it began and when it is to visit next (0 both: it has not waited yet), its slot, and the
/// number by which it will be noted.
struct Age {
  static constexpr unsigned count = 4;
  Value start, next, slot, number;

  static SmallVector<Type> types(Emitter &e) {
    return {e.getI64Type(), e.getI64Type(), e.getI32Type(), e.getI64Type()};
  }
  static Age unborn(Emitter &e) { return {e.i64(0), e.i64(0), e.i32(0), e.i64(0)}; }
  static Age of(ValueRange values) { return {values[0], values[1], values[2], values[3]}; }
  SmallVector<Value> values() const { return {start, next, slot, number}; }
};
} // namespace

Value standInWorldView(Emitter &e) {
  return LLVM::CallOp::create(e, e.pointerType(), worldName, ValueRange()).getResult();
}

static Value visit(Emitter &e, const Age &age, const Wanted &wanted) {
  auto [line, column] = placeOf(e.getLoc());
  return LLVM::CallOp::create(e, e.getI32Type(), visitName,
                              ValueRange{standInWorldView(e), age.slot, age.start, wanted.address, wanted.seen,
                                         wanted.value, e.i32(line), e.i32(column), e.i32(wanted.compare),
                                         e.i32(wanted.bytes), e.i32(wanted.kind)})
      .getResult();
}

/// Visits when the time has come; the wait is older then, and its slot may say that it gives up.
static Age visitIfDue(Emitter &e, const Age &age, Value now, const Wanted &wanted) {
  auto due =
      scf::IfOp::create(e, TypeRange{e.getI64Type(), e.getI32Type()}, e.compare(ICmpPredicate::sge, now, age.next),
                        /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(e);
  e.setInsertionPointToStart(due.thenBlock());
  Value slot = visit(e, age, wanted);
  scf::YieldOp::create(e, ValueRange{e.add(now, e.i64(visitNanoseconds)), slot});
  e.setInsertionPointToStart(due.elseBlock());
  scf::YieldOp::create(e, ValueRange{age.next, age.slot});
  return {age.start, due.getResult(0), due.getResult(1), age.number};
}

/// The number by which a wait will be noted: it takes one in its first turn.
static Value claimOnce(Emitter &e, Value isFirst, Value number) {
  auto claim = scf::IfOp::create(e, TypeRange{e.getI64Type()}, isFirst, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(e);
  e.setInsertionPointToStart(claim.thenBlock());
  scf::YieldOp::create(e, claimEvent(e));
  e.setInsertionPointToStart(claim.elseBlock());
  scf::YieldOp::create(e, number);
  return claim.getResult(0);
}

/// At the end of a turn that was (`again`) or was not in vain: whether there is another, and the wait's age then.
static std::pair<Value, Age> endTurn(Emitter &e, Value again, const Age &age, const Wanted &wanted, bool isNoted) {
  SmallVector<Type> types{e.getI1Type()};
  types.append(Age::types(e));
  auto check = scf::IfOp::create(e, types, again, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(e);
    e.setInsertionPointToStart(check.thenBlock());
    Value now = nanoseconds(e), isFirst = e.isZero(age.start);
    const Age born{e.select(isFirst, now, age.start),
                   e.select(isFirst, e.add(now, e.i64(patienceNanoseconds)), age.next), age.slot,
                   isNoted ? claimOnce(e, isFirst, age.number) : age.number};
    const Age older = visitIfDue(e, born, now, wanted);
    scf::YieldOp::create(e, ValueRange{e.compare(ICmpPredicate::ne, older.slot, e.i32(waitGivesUp)), older.start,
                                       older.next, older.slot, older.number});
    e.setInsertionPointToStart(check.elseBlock());
    scf::YieldOp::create(e, ValueRange{e.i1(false), age.start, age.next, age.slot, age.number});
  }
  return {check.getResult(0), Age::of(check.getResults().drop_front())};
}

static void leaveIf(Emitter &e, Value condition, Value slot) {
  auto published = scf::IfOp::create(e, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(e);
  e.setInsertionPointToStart(published.thenBlock());
  LLVM::CallOp::create(e, TypeRange(), leaveName, ValueRange{standInWorldView(e), slot});
}

/// A wait that has given up stays on the board: the report of the time-out shows it.
static void leave(Emitter &e, Value slot) { leaveIf(e, e.compare(ICmpPredicate::sgt, slot, e.i32(0)), slot); }

//===--- Waits ----------------------------------------------------------------------------------------------------------===//

void NvptxTargetInfo::checkSpin(Emitter &e, Value ptr, Value seen) {
  // Four words that become registers: the last load's time and the age.
  Value state = e.allocaAtEntry(e.getI64Type(), 4, /*alignment=*/8);
  auto word = [&](int number) { return e.addBytes(state, 8 * number); };
  auto load = [&](int number) -> Value {
    return LLVM::LoadOp::create(e, e.getI64Type(), word(number), /*alignment=*/8);
  };
  auto store = [&](int number, Value value) { LLVM::StoreOp::create(e, value, word(number), /*alignment=*/8); };
  {
    OpBuilder::InsertionGuard guard(e);
    e.setInsertionPointAfterValue(state);
    for (int number = 0; number < 4; ++number)
      store(number, e.i64(0));
  }
  Value now = nanoseconds(e);
  Value begins = e.compare(ICmpPredicate::ugt, e.sub(now, load(0)), e.i64(longestPauseNanoseconds));
  Value oldSlot = e.zextOrTrunc(load(3), e.getI32Type());
  leaveIf(e, e.bitAnd(begins, e.compare(ICmpPredicate::sgt, oldSlot, e.i32(0))), oldSlot);
  const Age age{e.select(begins, now, load(1)), e.select(begins, e.add(now, e.i64(patienceNanoseconds)), load(2)),
                e.select(begins, e.i32(0), oldSlot), e.i64(0)};
  const Wanted wanted{e.toBits(ptr),
                      e.zextOrTrunc(e.toBits(seen), e.getI64Type()),
                      e.i64(0),
                      0,
                      Emitter::bitWidth(seen.getType()) / 8,
                      DITRON_WAIT_LOOP};
  const Age older = visitIfDue(e, age, now, wanted);
  store(0, now);
  store(1, older.start);
  store(2, older.next);
  store(3, e.zextOrTrunc(older.slot, e.getI64Type()));
  if (!boundsWaits)
    return;
  auto expired =
      scf::IfOp::create(e, e.compare(ICmpPredicate::eq, older.slot, e.i32(waitGivesUp)), /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(e);
  e.setInsertionPointToStart(expired.thenBlock());
  LLVM::Trap::create(e);
}

/// A loop that carries a wait's age. `poll` writes a turn: whether another is needed, what it waits for, and the value seen (null: the
/// wait has none). Gives that value. `ended`, if there is one, writes what is done with the age at last.
static Value waitLoop(Emitter &e, Type valueType,
                      llvm::function_ref<std::pair<Value, Wanted>(Emitter &e, Value &seen)> poll,
                      llvm::function_ref<void(const Age &age)> ended = nullptr) {
  SmallVector<Type> results = Age::types(e);
  if (valueType)
    results.push_back(valueType);
  auto loop = scf::WhileOp::create(e, results, Age::unborn(e).values());
  OpBuilder::InsertionGuard guard(e);
  const SmallVector<Location> places(Age::count, e.getLoc());
  Block *turn = e.createBlock(&loop.getBefore(), {}, Age::types(e), places);
  Value seen;
  auto [again, wanted] = poll(e, seen);
  auto [goOn, age] = endTurn(e, again, Age::of(turn->getArguments()), wanted, /*isNoted=*/static_cast<bool>(ended));
  SmallVector<Value> values = age.values();
  if (seen)
    values.push_back(seen);
  scf::ConditionOp::create(e, goOn, values);
  Block *after = e.createBlock(&loop.getAfter(), {}, results, SmallVector<Location>(results.size(), e.getLoc()));
  scf::YieldOp::create(e, after->getArguments().take_front(Age::count));
  e.setInsertionPointAfter(loop);
  const Age last = Age::of(loop.getResults().take_front(Age::count));
  leave(e, last.slot);
  if (ended)
    ended(last);
  return valueType ? Value(loop.getResult(Age::count)) : Value();
}

void waitForMbarrier(Emitter &e, Value bar, Value parity) {
  waitLoop(e, Type(), [&](Emitter &e, Value &) {
    PtxAsm code(e);
    std::string done = code.output(e.getI32Type()), at = code.input(inAddressSpace(e, bar, AddressSpace::Shared)),
                phase = code.input(parity);
    Value again = e.isZero(code.emit(fmt::format("{{\n.reg .pred done;\n"
                                                 "mbarrier.try_wait.parity.shared::cta.b64 done, [{}], {};\n"
                                                 "selp.b32 {}, 1, 0, done;\n}}",
                                                 at, phase, done))[0]);
    return std::pair(
        again, Wanted{e.toBits(bar), e.i64(0), e.zextOrTrunc(parity, e.getI64Type()), 0, 8, DITRON_WAIT_MBARRIER});
  });
}

Value NvptxTargetInfo::waitUntil(Emitter &e, Value ptr, dist::Compare compare, Value value, tile::MemoryOrder order,
                                 tile::MemoryScope scope) {
  const Type type = value.getType();
  auto poll = [&](Emitter &e, Value &seen) {
    seen = orderedLoad(e, type, ptr, order, scope, /*spin=*/false);
    Value again = e.bitXor(e.compare(predicateOf(compare), seen, value), e.i1(true));
    const Type i64 = e.getI64Type();
    return std::pair(again, Wanted{e.toBits(ptr), e.sextOrTrunc(seen, i64), e.sextOrTrunc(value, i64),
                                   static_cast<int>(compare), Emitter::bitWidth(type) / 8, DITRON_WAIT_SIGNAL});
  };
  if (notesEvents)
    return waitLoop(e, type, poll, [&](const Age &age) {
      auto noted = scf::IfOp::create(e, e.isNotZero(age.number), /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(e);
      e.setInsertionPointToStart(noted.thenBlock());
      recordWait(e, age.number, age.start, e.toBits(ptr), e.sextOrTrunc(value, e.getI64Type()),
                 static_cast<int64_t>(compare));
    });
  if (publishesWaits)
    return waitLoop(e, type, poll);
  auto loop = scf::WhileOp::create(e, TypeRange(type), ValueRange());
  OpBuilder::InsertionGuard guard(e);
  e.createBlock(&loop.getBefore());
  Value seen = orderedLoad(e, type, ptr, order, scope, /*spin=*/false);
  scf::ConditionOp::create(e, e.bitXor(e.compare(predicateOf(compare), seen, value), e.i1(true)), seen);
  e.createBlock(&loop.getAfter(), {}, type, e.getLoc());
  scf::YieldOp::create(e);
  return loop.getResult(0);
}

} // namespace ditron::target
