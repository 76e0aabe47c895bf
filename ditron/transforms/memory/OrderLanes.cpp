//===- OrderLanes.cpp - Lanes of a warp go through memory operations together ---------------------------------------------===//
//
// A tile operation on global memory is one step of a warp: all its reads come before any later write of that warp, all its
// writes before any later access. A GPU's warp issues its instructions one after the other, but a compiler that sees one thread may
// move them, and the simulator's lanes run apart from each other: dgpu.order_lanes says where both must not.
//
//     %x = tile.load %p                    reads the object of argument X
//     dgpu.order_lanes(%Y) after(%X)       <- inserted: if X and Y point into one object, a lane's store could come
//     tile.store %q, %x                       before another lane's load
//
// Forward analysis over the accesses since the lanes of a warp last met.
// 1. An order_lanes comes before a write of what may have been read or written, before a read of what may have been written.
// 2. Not for two accesses of single threads (the thread level: who wants order there says so), two of the block's first thread
//    (stores of scalars), or two through the same pointers, if these give each address to one lane.
// 3. Objects are kernel arguments (PointerObjects.h). Accesses of one object, or of pointers from anywhere, meet always. For two
//    arguments it is up to the launch: they become operands. Afterwards that pair is settled for what came before, all else is
//    as it was.
// 4. A branch or loop that only some threads take is one access of single threads, an operation whose function on scalars
//    accesses memory one of the warp: an order_lanes may stand before it, never inside.
// 5. An asynchronous copy reads when it is issued, and until it was waited for.
// 6. Barriers and exchanges between lanes clear the state: of the block, of operations with scratch memory, of reductions across
//    lanes, of atomics that release or acquire. Branches are joined by union. Loops are repeated until nothing new arrives on the
//    back edge; pointers computed inside are then other ones than in this turn, which matters unless they advance tile by tile.
//
// What is needed before an operation only grows while loops are repeated, and is put there in the end.
//
// Not told apart: parts of one object, but for tiles that follow each other in memory (DistinctPlaces.h). A loop that stores
// tiles of two dimensions to one array has an order_lanes in each turn.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"
#include "ditron/transforms/memory/DistinctPlaces.h"

#include "ditron/analysis/AxisInfo.h"
#include "ditron/analysis/CheckLayouts.h"
#include "ditron/analysis/PointerObjects.h"
#include "ditron/analysis/Scratch.h"
#include "ditron/analysis/Uniformity.h"
#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

#include <map>
#include <set>

namespace ditron::transforms {
#define GEN_PASS_DEF_ORDERLANES
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;
using analysis::ObjectSet;

namespace {

/// On whose behalf an access is done.
enum class Actor {
  Warps,       ///< A tile operation: all lanes together.
  FirstThread, ///< The scalar store or atomic of a block.
  Threads,     ///< Each thread for itself.
};

struct Access {
  bool isWrite;
  Actor actor;
  ObjectSet objects;
  /// The pointers, if each of their addresses belongs to one lane; else null.
  Value exact;

  bool operator<(const Access &other) const {
    return std::tuple(isWrite, actor, exact.getAsOpaquePointer(), objects) <
           std::tuple(other.isWrite, other.actor, other.exact.getAsOpaquePointer(), other.objects);
  }
  bool operator==(const Access &) const = default;
};

/// Pairs of arguments, the smaller number first.
using Pairs = std::set<std::pair<unsigned, unsigned>>;

/// Accesses since the last meeting, each with the pairs of objects that are settled for it.
struct Pending {
  std::map<Access, Pairs> accesses;
  std::set<Access> inFlight; ///< Reads of asynchronous copies that nobody waited for.

  void join(const Pending &other) {
    for (const auto &[access, settled] : other.accesses) {
      auto [it, isNew] = accesses.try_emplace(access, settled);
      if (!isNew)
        std::erase_if(it->second, [&](const auto &pair) { return !settled.contains(pair); });
    }
    inFlight.insert(other.inFlight.begin(), other.inFlight.end());
  }
  void add(const Access &access) { accesses[access] = {}; }
  void meet() { accesses.clear(); }
  bool operator==(const Pending &) const = default;
};

/// What must be ordered before an operation.
struct Need {
  bool always = false;
  std::set<unsigned> later, earlier; ///< Arguments, when not `always`.
};

/// Walks one kernel.
class LaneOrder {
public:
  LaneOrder(func::FuncOp kernel, const analysis::PointerObjects &objects,
            const analysis::UniformityAnalysis &uniformity, const analysis::AxisInfoAnalysis &axes)
      : kernel(kernel), objects(objects), uniformity(uniformity), axes(axes) {}

  void run() {
    Pending state;
    visit(kernel.getBody(), state);
    for (auto &[op, need] : needs)
      insert(op, need);
  }

private:
  //===----------------------------------------------------------------------------------------------------------------===//
  // Control flow
  //===----------------------------------------------------------------------------------------------------------------===//

  void visit(Region &region, Pending &state) {
    if (!region.empty())
      for (Operation &op : region.front())
        visit(&op, state);
  }

  void visit(Operation *op, Pending &state) {
    if (uniformity.ownCondition(op))
      return visitAsOne(op, state, Actor::Threads);
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      Pending otherwise = state;
      visit(branch.getThenRegion(), state);
      visit(branch.getElseRegion(), otherwise);
      state.join(otherwise);
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      // Zero iterations are possible: what enters also leaves.
      repeat(op, state, [&](Pending &inside) { visit(loop.getRegion(), inside); });
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      // The condition part runs once more than the body, and last.
      Pending leaving;
      repeat(op, state, [&](Pending &inside) {
        visit(loop.getBefore(), inside);
        leaving = inside;
        visit(loop.getAfter(), inside);
      });
      state = leaving;
    } else if (auto partitions = dyn_cast<dgpu::WarpSpecializeOp>(op)) {
      Pending producer = state;
      visit(partitions.getConsumer(), state);
      visit(partitions.getProducer(), producer);
      state.join(producer);
    } else {
      visitLeaf(op, state);
    }
  }

  /// Runs `body` until what comes back adds nothing to what enters; leaves the joined state in `state`.
  template <typename Body> static void repeat(Operation *loop, Pending &state, Body body) {
    while (true) {
      Pending inside = state;
      body(inside);
      Pending joined = state;
      joined.join(beforeNextTurn(loop, inside));
      if (joined == state)
        return;
      state = joined;
    }
  }

  /// What is pending when the next turn begins: pointers that the loop computes are others by then, unless they stay away
  /// from those of earlier turns.
  static Pending beforeNextTurn(Operation *loop, const Pending &state) {
    auto range = dyn_cast<scf::ForOp>(loop);
    auto forget = [&](Access access) {
      if (access.exact && loop->isAncestor(access.exact.getParentBlock()->getParentOp()) &&
          !(range && advancesWith(access.exact, range)))
        access.exact = Value();
      return access;
    };
    Pending next;
    for (const auto &[access, settled] : state.accesses) {
      Pending one;
      one.accesses[forget(access)] = settled;
      next.join(one);
    }
    for (const Access &access : state.inFlight)
      next.inFlight.insert(forget(access));
    return next;
  }

  /// What is not ordered inside: a branch or loop of single threads, or functions on scalars, which some thread does.
  void visitAsOne(Operation *op, Pending &state, Actor actor) {
    SmallVector<Access> accesses;
    op->walk([&](Operation *inner) {
      for (Access access : accessesOf(inner)) {
        access.actor = actor;
        access.exact = Value();
        accesses.push_back(access);
      }
    });
    order(op, accesses, state);
    if (meetsLanes(op))
      state.meet();
    for (const Access &access : accesses)
      state.add(access);
  }

  //===----------------------------------------------------------------------------------------------------------------===//
  // Operations
  //===----------------------------------------------------------------------------------------------------------------===//

  static bool releases(tile::MemoryOrder order) {
    return order == tile::MemoryOrder::Release || order == tile::MemoryOrder::AcquireRelease;
  }
  static bool acquires(tile::MemoryOrder order) {
    return order == tile::MemoryOrder::Acquire || order == tile::MemoryOrder::AcquireRelease;
  }

  void visitLeaf(Operation *op, Pending &state) {
    if (op->getNumRegions() != 0)
      return visitAsOne(op, state, Actor::Warps);
    std::optional<tile::MemoryOrder> memoryOrder;
    if (auto atomic = dyn_cast<tile::AtomicRmwOp>(op))
      memoryOrder = atomic.getOrder();
    else if (auto atomic = dyn_cast<tile::AtomicCasOp>(op))
      memoryOrder = atomic.getOrder();
    // These begin with a barrier.
    if (isa<dgpu::BarrierOp, dist::SyncThreadsOp, dist::NotifyOp>(op) || (memoryOrder && releases(*memoryOrder)))
      state.meet();
    const SmallVector<Access> accesses = accessesOf(op);
    order(op, accesses, state);
    if (auto wait = dyn_cast<dgpu::AsyncWaitOp>(op)) {
      for (const Access &access : state.inFlight)
        state.add(access);
      if (wait.getPending() == 0)
        state.inFlight.clear();
    }
    for (const Access &access : accesses) {
      state.add(access);
      if (isa<dgpu::AsyncCopyOp>(op))
        state.inFlight.insert(access);
    }
    // And these end with one, or have one behind their accesses.
    if (isa<dist::WaitOp>(op) || (memoryOrder && acquires(*memoryOrder)) || meetsLanes(op))
      state.meet();
  }

  /// Whether all lanes of each warp exchange values or wait for each other, after what the operation itself accesses unless
  /// that is done by a function on scalars.
  static bool meetsLanes(Operation *op) {
    if (auto reduce = dyn_cast<tile::ReduceOp>(op))
      return llvm::any_of(analysis::reducePlanOf(reduce).steps,
                          [](const layout::ReduceStep &step) { return step.dim != layout::MachineDim::Reg; });
    const bool mayHaveScratch = isa<dgpu::ConvertLayoutOp, tile::ScanOp, tile::GatherOp, tile::HistogramOp,
                                    tile::MapElementwiseOp, tile::AtomicRmwOp, tile::AtomicCasOp>(op);
    return mayHaveScratch && analysis::scratchBarrier(op).has_value();
  }

  //===----------------------------------------------------------------------------------------------------------------===//
  // Accesses
  //===----------------------------------------------------------------------------------------------------------------===//

  /// What one operation without regions does to global memory.
  SmallVector<Access> accessesOf(Operation *op) const {
    if (auto load = dyn_cast<tile::LoadOp>(op))
      return access(load.getPtr(), op, /*reads=*/true, /*writes=*/false);
    if (auto store = dyn_cast<tile::StoreOp>(op))
      return access(store.getPtr(), op, /*reads=*/false, /*writes=*/true);
    if (auto atomic = dyn_cast<tile::AtomicRmwOp>(op))
      return access(atomic.getPtr(), op, /*reads=*/true, /*writes=*/true);
    if (auto atomic = dyn_cast<tile::AtomicCasOp>(op))
      return access(atomic.getPtr(), op, /*reads=*/true, /*writes=*/true);
    if (auto copy = dyn_cast<dgpu::AsyncCopyOp>(op))
      return access(copy.getPtr(), op, /*reads=*/true, /*writes=*/false);
    if (auto copy = dyn_cast<dgpu::TmaLoadOp>(op))
      return access(copy.getMap(), op, /*reads=*/true, /*writes=*/false);
    if (auto copy = dyn_cast<dgpu::TmaStoreOp>(op))
      return access(copy.getMap(), op, /*reads=*/false, /*writes=*/true);
    if (auto load = dyn_cast<dist::LdOp>(op))
      return access(load.getPtr(), op, /*reads=*/true, /*writes=*/false);
    if (auto load = dyn_cast<dist::LdVectorOp>(op))
      return access(load.getPtr(), op, /*reads=*/true, /*writes=*/false);
    if (auto wait = dyn_cast<dist::WaitOp>(op))
      return access(wait.getPtr(), op, /*reads=*/true, /*writes=*/false);
    return otherAccesses(op);
  }

  /// Everything else that may touch global memory: reads and writes through all pointers that it gets.
  SmallVector<Access> otherAccesses(Operation *op) const {
    if (isMemoryEffectFree(op) || op->getNumRegions() != 0)
      return {};
    // Assembly and functions of libraries may get addresses as numbers.
    const bool mayHideAddresses = isa<tile::InlineAsmOp, tile::ExternCallOp>(op);
    SmallVector<Access> accesses;
    for (Value operand : op->getOperands())
      if (isa<tile::PointerType>(tile::elementTypeOf(operand.getType())) && !mayHideAddresses &&
          !isa<tile::PrintOp, tile::AssertOp>(op))
        accesses.append(access(operand, op, /*reads=*/true, /*writes=*/true));
    if (mayHideAddresses)
      for (bool isWrite : {false, true})
        accesses.push_back({isWrite, Actor::Warps, {.anywhere = true, .arguments = {}}, Value()});
    return accesses;
  }

  SmallVector<Access> access(Value pointer, Operation *op, bool reads, bool writes) const {
    const ObjectSet set = objects.of(pointer);
    if (!writes && isOfWorldView(set))
      return {}; // written by nobody
    const Actor actor = actorOf(pointer, op, writes);
    const Value exact = isOneLanePerAddress(pointer, axes) ? pointer : Value();
    SmallVector<Access> accesses;
    if (reads)
      accesses.push_back({false, actor, set, exact});
    if (writes)
      accesses.push_back({true, actor, set, exact});
    return accesses;
  }

  bool isOfWorldView(const ObjectSet &set) const {
    return set.arguments.size() == 1 &&
           analysis::PointerObjects::isWorldView(func::FuncOp(kernel).getArgument(set.arguments.front()));
  }

  Actor actorOf(Value pointer, Operation *op, bool writes) const {
    if (isa<dgpu::TmaLoadOp, dgpu::TmaStoreOp, dist::NotifyOp>(op))
      return Actor::FirstThread;
    if (isa<dist::WaitOp, dist::PutOp, dist::GetOp, dist::PutSignalOp, dist::CollectiveOp>(op))
      return Actor::Warps;
    if (isa<dist::DistDialect>(op->getDialect()))
      return Actor::Threads;
    if (isa<RankedTensorType>(pointer.getType()))
      return Actor::Warps;
    if (uniformity.isVarying(pointer))
      return Actor::Threads;
    return writes ? Actor::FirstThread : Actor::Warps;
  }

  //===----------------------------------------------------------------------------------------------------------------===//
  // Conflicts
  //===----------------------------------------------------------------------------------------------------------------===//

  static bool conflicts(const Access &earlier, const Access &later) {
    if (!earlier.isWrite && !later.isWrite)
      return false;
    if (earlier.actor == later.actor && earlier.actor != Actor::Warps)
      return false;
    return !(earlier.exact && earlier.exact == later.exact && earlier.actor == later.actor);
  }

  static std::pair<unsigned, unsigned> pairOf(unsigned a, unsigned b) { return std::minmax(a, b); }

  /// Adds to `need` what two accesses ask for.
  static void collect(const Access &earlier, const Pairs &settled, const Access &later, Need &need) {
    if (!conflicts(earlier, later))
      return;
    if (earlier.objects.anywhere || later.objects.anywhere) {
      need.always = true;
      return;
    }
    for (unsigned a : earlier.objects.arguments)
      for (unsigned b : later.objects.arguments) {
        if (a == b)
          need.always = true;
        else if (!settled.contains(pairOf(a, b))) {
          need.earlier.insert(a);
          need.later.insert(b);
        }
      }
  }

  /// Notes what is needed before `op`, and what holds after that.
  void order(Operation *op, ArrayRef<Access> accesses, Pending &state) {
    if (accesses.empty() || state.accesses.empty())
      return;
    Need need = needs.lookup(op);
    for (const auto &[earlier, settled] : state.accesses)
      for (const Access &later : accesses)
        collect(earlier, settled, later, need);
    if (!need.always && need.later.empty())
      return;
    needs[op] = need;
    if (need.always) {
      state.meet();
      return;
    }
    for (auto &[access, settled] : state.accesses)
      for (unsigned a : need.earlier)
        for (unsigned b : need.later)
          settled.insert(pairOf(a, b));
  }

  void insert(Operation *op, const Need &need) {
    OpBuilder builder(op);
    SmallVector<Value> later, earlier;
    if (!need.always) {
      for (unsigned number : need.later)
        later.push_back(kernel.getArgument(number));
      for (unsigned number : need.earlier)
        earlier.push_back(kernel.getArgument(number));
    }
    dgpu::OrderLanesOp::create(builder, op->getLoc(), later, earlier);
  }

  func::FuncOp kernel;
  const analysis::PointerObjects &objects;
  const analysis::UniformityAnalysis &uniformity;
  const analysis::AxisInfoAnalysis &axes;
  llvm::MapVector<Operation *, Need> needs;
};

class OrderLanesPass : public impl::OrderLanesBase<OrderLanesPass> {
  void runOnOperation() override {
    if (failed(analysis::checkLayouts(getOperation(), "dgpu-order-lanes")))
      return signalPassFailure();
    ModuleOp module = getOperation();
    const analysis::PointerObjects objects(module);
    const analysis::UniformityAnalysis uniformity(module);
    const analysis::AxisInfoAnalysis axes(module);
    for (auto kernel : module.getOps<func::FuncOp>())
      if (!kernel.isExternal())
        LaneOrder(kernel, objects, uniformity, axes).run();
  }
};

} // namespace
} // namespace ditron::transforms
