//===- NvptxWait.cpp - NVIDIA leaves: waiting for a signal ------------------------------------------------------------------===//
//
// A wait is a loop around a load with acquire semantics. In test mode (module attribute boundWaitsAttrName) every turn also
// asks `ditron_wait_expired` whether it is time to give up: the first wait that lasts longer than the limit writes a report
// for the host, and from then on all waits end, so that the kernel drains instead of hanging. Results are then garbage; the
// runtime must look at the report. A spin loop that the kernel itself wrote cannot be ended from within its load: there the
// thread reports and traps. Its age is the time in which the load has been repeated without a pause.
//
// Where the limit and the report are: abi/WorldView.h; what a report says: abi/WaitReport.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/nvptx/NvptxTargetInfo.h"

#include "ditron/abi/Compare.h"
#include "ditron/abi/WaitReport.h"
#include "ditron/abi/WorldView.h"
#include "ditron/target/nvptx/PtxAsm.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <fmt/format.h>

using namespace mlir;
using LLVM::ICmpPredicate;

namespace ditron::target {

static constexpr llvm::StringLiteral expiredName = "ditron_wait_expired", spinName = "ditron_spin_expired",
                                     worldName = "ditron_world_view";
/// Loads of a loop that are further apart than this are not one wait.
static constexpr int64_t longestPauseNanoseconds = 100'000;
/// A younger wait does not look whether it should give up.
static constexpr int64_t patienceNanoseconds = 50'000;

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

static Value nanoseconds(Emitter &e) {
  return callIntrinsic(e, "llvm.nvvm.read.ptx.sreg.globaltimer", e.getI64Type(), {});
}

//===--- The test of a wait's age ---------------------------------------------------------------------------------------===//

namespace {
/// Writes the body of ditron_wait_expired: straight tests that return early.
class WaitLimitBody {
public:
  WaitLimitBody(Emitter &e, LLVM::LLVMFuncOp function) : e(e), function(function) {
    e.setInsertionPointToStart(function.addEntryBlock(e));
  }

  /// (world, start, address, seen, wanted, line, column, comparison, bytes, kind) -> whether to give up.
  void writeWait(uint32_t kernel) {
    ValueRange in = function.getArguments();
    Value world = in[0], start = in[1], address = in[2], seen = in[3], wanted = in[4];
    Value report = loadWord(world, DITRON_WORLD_WAIT_REPORT);
    returnIf(e.isZero(report), false);
    // The report lies in the host's memory: thousands of threads that look at it all the time would fill the way there.
    Value lasted = e.sub(nanoseconds(e), start);
    returnIf(e.compare(ICmpPredicate::slt, lasted, e.i64(patienceNanoseconds)), false);
    PtxAsm rest(e);
    rest.emit("nanosleep.u32 20000;");
    Value place = LLVM::IntToPtrOp::create(e, LLVM::LLVMPointerType::get(e.getContext(), 1), report);
    PtxAsm poll(e);
    std::string state = poll.output(e.getI32Type()), from = poll.input(place);
    returnIf(e.isNotZero(poll.emit(fmt::format("ld.relaxed.sys.global.b32 {}, [{}];", state, from))[0]), true);
    // Who waits for an mbarrier mostly waits for another warp that waits for a signal: that wait must be the first to give up.
    Value limit = loadWord(world, DITRON_WORLD_WAIT_LIMIT);
    limit = e.select(e.compare(ICmpPredicate::eq, in[9], e.i32(DITRON_WAIT_MBARRIER)), e.add(limit, limit), limit);
    returnIf(e.compare(ICmpPredicate::slt, lasted, limit), false);
    PtxAsm claim(e);
    std::string old = claim.output(e.getI32Type()), word = claim.input(place);
    static_assert(offsetof(DitronWaitReport, state) == 0);
    Value owner = claim.emit(fmt::format("atom.relaxed.sys.global.cas.b32 {}, [{}], {}, {};", old, word, int(DITRON_WAIT_NONE),
                                         int(DITRON_WAIT_WRITING)))[0];
    returnIf(e.isNotZero(owner), true);
    store(place, offsetof(DitronWaitReport, rank), e.zextOrTrunc(loadWord(world, DITRON_WORLD_RANK), e.getI32Type()));
    const std::pair<const char *, size_t> identity[] = {{"ctaid.x", offsetof(DitronWaitReport, block)},
                                                        {"ctaid.y", offsetof(DitronWaitReport, block) + 4},
                                                        {"ctaid.z", offsetof(DitronWaitReport, block) + 8},
                                                        {"tid.x", offsetof(DitronWaitReport, thread)}};
    for (auto [name, offset] : identity)
      store(place, offset, callIntrinsic(e, fmt::format("llvm.nvvm.read.ptx.sreg.{}", name), e.getI32Type(), {}));
    store(place, offsetof(DitronWaitReport, line), in[5]);
    store(place, offsetof(DitronWaitReport, column), in[6]);
    store(place, offsetof(DitronWaitReport, compare), in[7]);
    store(place, offsetof(DitronWaitReport, wordBytes), in[8]);
    store(place, offsetof(DitronWaitReport, kind), in[9]);
    store(place, offsetof(DitronWaitReport, kernel), e.i32(static_cast<int32_t>(kernel)));
    store(place, offsetof(DitronWaitReport, address), address);
    store(place, offsetof(DitronWaitReport, seen), seen);
    store(place, offsetof(DitronWaitReport, wanted), wanted);
    PtxAsm publish(e);
    std::string to = publish.input(place);
    publish.emit(fmt::format("fence.acq_rel.sys; st.release.sys.global.b32 [{}], {};", to, int(DITRON_WAIT_COMPLETE)));
    LLVM::ReturnOp::create(e, e.i1(true));
  }

  /// (world, ages, address, seen, line, column, bytes): ages are two words, when the loop began and when it last loaded.
  void writeSpin() {
    ValueRange in = function.getArguments();
    Value ages = in[1], now = nanoseconds(e);
    Value pause = e.sub(now, load(ages, 8, e.getI64Type()));
    Value begins = e.compare(ICmpPredicate::ugt, pause, e.i64(longestPauseNanoseconds));
    Value start = e.select(begins, now, load(ages, 0, e.getI64Type()));
    LLVM::StoreOp::create(e, start, ages, /*alignment=*/8);
    LLVM::StoreOp::create(e, now, e.addBytes(ages, 8), /*alignment=*/8);
    Value expired = LLVM::CallOp::create(e, e.getI1Type(), expiredName,
                                         ValueRange{in[0], start, in[2], in[3], e.i64(0), in[4], in[5], e.i32(0), in[6],
                                                    e.i32(DITRON_WAIT_LOOP)})
                        .getResult();
    Block *stop = function.addBlock(), *goOn = function.addBlock();
    LLVM::CondBrOp::create(e, expired, stop, goOn);
    e.setInsertionPointToStart(stop);
    LLVM::Trap::create(e);
    LLVM::UnreachableOp::create(e);
    e.setInsertionPointToStart(goOn);
    LLVM::ReturnOp::create(e, ValueRange());
  }

private:
  /// A word of the world view.
  Value loadWord(Value world, int word) { return load(world, int64_t(word) * 8, e.getI64Type()); }
  Value load(Value base, int64_t offset, Type type) {
    return LLVM::LoadOp::create(e, type, e.addBytes(base, offset), /*alignment=*/8);
  }
  void store(Value base, int64_t offset, Value value) {
    LLVM::StoreOp::create(e, value, e.addBytes(base, offset), /*alignment=*/4, /*isVolatile=*/true);
  }
  void returnIf(Value condition, bool result) {
    Block *leave = function.addBlock(), *next = function.addBlock();
    LLVM::CondBrOp::create(e, condition, leave, next);
    e.setInsertionPointToStart(leave);
    LLVM::ReturnOp::create(e, e.i1(result));
    e.setInsertionPointToStart(next);
  }

  Emitter &e;
  LLVM::LLVMFuncOp function;
};
} // namespace

/// 32-bit FNV-1a, by which the host finds the kernel of a report.
static uint32_t nameHash(StringRef name) {
  uint32_t hash = 2166136261u;
  for (unsigned char byte : name.bytes())
    hash = (hash ^ byte) * 16777619u;
  return hash;
}

void defineWaitLimit(ModuleOp module) {
  uint32_t kernel = 0;
  for (auto function : module.getOps<func::FuncOp>())
    kernel = nameHash(function.getSymName());
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  Emitter e(module.getLoc(), builder);
  Type i1 = e.getI1Type(), i32 = e.getI32Type(), i64 = e.getI64Type(), ptr = e.pointerType();
  Type none = LLVM::LLVMVoidType::get(e.getContext());
  LLVM::LLVMFuncOp::create(e, worldName, LLVM::LLVMFunctionType::get(ptr, {}));
  auto define = [&](StringRef name, Type result, ArrayRef<Type> parameters) {
    OpBuilder::InsertionGuard guard(e);
    auto function = LLVM::LLVMFuncOp::create(e, name, LLVM::LLVMFunctionType::get(result, parameters),
                                             LLVM::Linkage::Internal);
    function.setNoInline(true); // rarely entered past its first tests, and long
    return function;
  };
  WaitLimitBody(e, define(expiredName, i1, {ptr, i64, i64, i64, i64, i32, i32, i32, i32, i32})).writeWait(kernel);
  e.setInsertionPointToEnd(module.getBody());
  WaitLimitBody(e, define(spinName, none, {ptr, ptr, i64, i64, i32, i32, i32})).writeSpin();
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

//===--- The wait -------------------------------------------------------------------------------------------------------===//

/// Line and column of the kernel's source that a location leads to; zero when unknown.
static std::pair<int64_t, int64_t> placeOf(Location loc) {
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

void NvptxTargetInfo::checkSpin(Emitter &e, Value ptr, Value seen) {
  Value ages = e.allocaAtEntry(e.getI64Type(), 2, /*alignment=*/8);
  {
    OpBuilder::InsertionGuard guard(e);
    e.setInsertionPointAfterValue(ages);
    for (int word = 0; word < 2; ++word)
      LLVM::StoreOp::create(e, e.i64(0), e.addBytes(ages, 8 * word), /*alignment=*/8);
  }
  auto [line, column] = placeOf(e.getLoc());
  Value world = LLVM::CallOp::create(e, e.pointerType(), worldName, ValueRange()).getResult();
  LLVM::CallOp::create(e, TypeRange(), spinName,
                       ValueRange{world, ages, e.toBits(ptr), e.zextOrTrunc(e.toBits(seen), e.getI64Type()),
                                  e.i32(line), e.i32(column), e.i32(Emitter::bitWidth(seen.getType()) / 8)});
}

void waitForMbarrier(Emitter &e, Value bar, Value parity) {
  Value world = LLVM::CallOp::create(e, e.pointerType(), worldName, ValueRange()).getResult();
  Value start = nanoseconds(e);
  auto [line, column] = placeOf(e.getLoc());
  auto loop = scf::WhileOp::create(e, TypeRange(), ValueRange());
  OpBuilder::InsertionGuard guard(e);
  e.createBlock(&loop.getBefore());
  PtxAsm code(e);
  std::string done = code.output(e.getI32Type()), at = code.input(inAddressSpace(e, bar, AddressSpace::Shared)),
              phase = code.input(parity);
  Value again = e.isZero(code.emit(fmt::format("{{\n.reg .pred done;\n"
                                               "mbarrier.try_wait.parity.shared::cta.b64 done, [{}], {};\n"
                                               "selp.b32 {}, 1, 0, done;\n}}",
                                               at, phase, done))[0]);
  auto check = scf::IfOp::create(e, e.getI1Type(), again, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard inner(e);
    e.setInsertionPointToStart(check.thenBlock());
    Value expired = LLVM::CallOp::create(e, e.getI1Type(), expiredName,
                                         ValueRange{world, start, e.toBits(bar), e.i64(0),
                                                    e.zextOrTrunc(parity, e.getI64Type()), e.i32(line), e.i32(column),
                                                    e.i32(0), e.i32(8), e.i32(2)})
                        .getResult();
    scf::YieldOp::create(e, e.bitXor(expired, e.i1(true)));
    e.setInsertionPointToStart(check.elseBlock());
    scf::YieldOp::create(e, e.i1(false));
  }
  scf::ConditionOp::create(e, check.getResult(0), ValueRange());
  e.createBlock(&loop.getAfter());
  scf::YieldOp::create(e);
}

Value NvptxTargetInfo::waitUntil(Emitter &e, Value ptr, dist::Compare compare, Value value, tile::MemoryOrder order,
                                 tile::MemoryScope scope) {
  Value start = boundsWaits ? nanoseconds(e) : Value();
  auto loop = scf::WhileOp::create(e, TypeRange(value.getType()), ValueRange());
  OpBuilder::InsertionGuard guard(e);
  e.createBlock(&loop.getBefore());
  Value seen = orderedLoad(e, value.getType(), ptr, order, scope, /*spin=*/false);
  Value again = e.bitXor(e.compare(predicateOf(compare), seen, value), e.i1(true));
  if (boundsWaits) {
    auto [line, column] = placeOf(e.getLoc());
    Type i64 = e.getI64Type();
    // Only a wait that is not satisfied asks for its age.
    auto check = scf::IfOp::create(e, e.getI1Type(), again, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard inner(e);
    e.setInsertionPointToStart(check.thenBlock());
    Value world = LLVM::CallOp::create(e, e.pointerType(), worldName, ValueRange()).getResult();
    Value expired =
        LLVM::CallOp::create(e, e.getI1Type(), expiredName,
                             ValueRange{world, start, e.toBits(ptr), e.sextOrTrunc(seen, i64),
                                        e.sextOrTrunc(value, i64), e.i32(line), e.i32(column),
                                        e.i32(static_cast<int>(compare)),
                                        e.i32(Emitter::bitWidth(value.getType()) / 8), e.i32(0)})
            .getResult();
    scf::YieldOp::create(e, e.bitXor(expired, e.i1(true)));
    e.setInsertionPointToStart(check.elseBlock());
    scf::YieldOp::create(e, e.i1(false));
    again = check.getResult(0);
  }
  e.setInsertionPointToEnd(&loop.getBefore().front());
  scf::ConditionOp::create(e, again, seen);
  e.createBlock(&loop.getAfter(), {}, value.getType(), e.getLoc());
  scf::YieldOp::create(e);
  return loop.getResult(0);
}

} // namespace ditron::target
