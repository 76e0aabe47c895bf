//===- AllocateShared.cpp - Places in shared memory -----------------------------------------------------------------------===//
//
// Gives every buffer and every operation with scratch memory its byte offset, reusing the bytes of what is no longer alive. How
// much scratch memory an operation needs is asked from analysis/Scratch.h, as its lowering does.
//
// What a kernel reserves itself (dist.shared_alloc) is its for the whole kernel.
//
// 1. Number all operations in program order. A buffer lives from its allocation to its last use (to the end of the loop, if it is
//    used in a loop that does not contain the allocation; to the wait that completes its copies or multiplies; if tensor stores read
//    it, to the end of the kernel); scratch memory lives at its operation only, mbarriers live as long as the kernel.
// 2. Largest first: give each the lowest aligned offset that overlaps no living neighbour. Scratch memory of operations in one
//    block gets different bytes while the kernel stays below 32 KiB: each has a barrier inside, which then also orders the
//    others, and barrier insertion needs fewer.
// 3. Write offset_bytes on the operations and dgpu.shared_bytes on the module; refuse programs that need more than the limit,
//    naming the largest contributors. Report each layout conversion with its class and plan.
//
// Example: a loop with two rings of 24 KiB and a convert_layout of 16 KiB after it: the rings die at the wait after the loop, so
// the conversion gets offset 0 and the kernel needs 48 KiB.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/analysis/CheckLayouts.h"
#include "ditron/analysis/ResourceLimit.h"
#include "ditron/analysis/Scratch.h"
#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/transforms/tensor_copies/TensorMaps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_ALLOCATESHARED
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

constexpr int64_t scratchAlignment = 16;
constexpr int64_t mbarrierAlignment = 8;
/// Up to this much shared memory, saving barriers is worth more than saving bytes.
constexpr int64_t spreadLimit = 32 * 1024;

/// Bytes that one operation wants, while operations first..last (in program order, both included) run.
struct Request {
  Operation *op;
  int64_t bytes, alignment;
  int first, last;
  int64_t offset = -1;
  bool largerThan(const Request &other) const {
    return bytes != other.bytes ? bytes > other.bytes : first < other.first;
  }
  bool isScratch() const { return !isa<dgpu::BufferAllocOp, dgpu::MbarrierAllocOp, dist::SharedAllocOp>(op); }
  bool sameBlockScratch(const Request &other) const {
    return isScratch() && other.isScratch() && op->getBlock() == other.op->getBlock();
  }
  bool livesWith(const Request &other) const { return first <= other.last && other.first <= last; }
  /// What the bytes are for, in words that the author of a kernel knows; a number of bytes follows.
  StringRef purpose() const {
    if (isa<dgpu::BufferAllocOp, dgpu::MbarrierAllocOp>(op))
      return "tiles in shared memory need";
    if (isa<dist::SharedAllocOp>(op))
      return "shared memory that the kernel reserves itself needs";
    if (isa<tile::ReduceOp>(op))
      return "a reduction across warps needs";
    if (isa<tile::ScanOp>(op))
      return "a scan across warps needs";
    if (isa<tile::GatherOp>(op))
      return "tl.gather and what is made of it (tl.flip) need";
    if (isa<tile::BitonicOp>(op))
      return "sorting across warps needs";
    if (isa<tile::HistogramOp>(op))
      return "the bins of tl.histogram need";
    if (!isa<dgpu::ConvertLayoutOp>(op))
      return "handing on the old value of an atomic operation needs";
    bool feedsDot = llvm::any_of(op->getUsers(), [](Operation *user) { return isa<tile::DotOp>(user); });
    return feedsDot ? "dealing out an operand of tl.dot to the threads needs" : "moving a tile between threads needs";
  }
};

/// Places the requests of one kernel.
class SharedAllocation {
public:
  explicit SharedAllocation(func::FuncOp kernel) : kernel(kernel) {
    int next = 0;
    // An operation with regions starts before and ends after them.
    number(kernel, next);
  }

  /// Returns the bytes needed in all.
  int64_t run() {
    kernel.walk([&](Operation *op) {
      if (auto buffer = dyn_cast<dgpu::BufferAllocOp>(op))
        requests.push_back({op, buffer.getType().getBytes(), bufferAlignment, starts[op], lastUse(buffer)});
      else if (auto bars = dyn_cast<dgpu::MbarrierAllocOp>(op)) // initialised at entry, touched by nothing else
        requests.push_back({op, bars.getType().getBytes(), mbarrierAlignment, starts[kernel], ends[kernel]});
      else if (auto own = dyn_cast<dist::SharedAllocOp>(op)) // its pointer may go anywhere
        requests.push_back({op, static_cast<int64_t>(own.getBytes()), static_cast<int64_t>(own.getAlignment()), starts[kernel], ends[kernel]});
      else if (int64_t bytes = analysis::scratchBytes(op))
        requests.push_back({op, bytes, scratchAlignment, starts[op], ends[op]});
      if (isa<dgpu::ConvertLayoutOp>(op))
        remark::missed(op->getLoc(), remark::RemarkOpts::name("convert_layout").category("dgpu-allocate-shared"))
            << "layout conversion, " + analysis::convertPlanOf(op).describe();
    });
    int64_t total = place(/*spreadScratch=*/false);
    const int64_t accepted = std::max(total, spreadLimit);
    if (largestSpread() <= accepted) {
      const int64_t spread = place(/*spreadScratch=*/true);
      total = spread <= accepted ? spread : place(/*spreadScratch=*/false);
    }
    Builder builder(kernel.getContext());
    for (const Request &request : requests)
      request.op->setAttr(dgpu::offsetBytesAttrName, builder.getI64IntegerAttr(request.offset));
    return total;
  }

  /// The requests that explain the most, for the user.
  void describe(InFlightDiagnostic &diagnostic) const {
    SmallVector<const Request *> largest;
    for (const Request &request : requests)
      largest.push_back(&request);
    llvm::sort(largest, [](const Request *a, const Request *b) { return a->largerThan(*b); });
    llvm::DenseSet<std::tuple<Location, StringRef, int64_t>>
        told; // equal ones, such as both operands of a dot, are one note
    for (const Request *request : largest)
      if (StringRef purpose = request->purpose();
          told.size() < 4 && told.insert({request->op->getLoc(), purpose, request->bytes}).second)
        diagnostic.attachNote(request->op->getLoc()) << purpose << " " << request->bytes << " bytes here";
  }

private:
  void number(Operation *op, int &next) {
    starts[op] = next++;
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Operation &inner : block)
          number(&inner, next);
    ends[op] = op->getNumRegions() == 0 ? starts[op] : next++;
  }

  int lastUse(dgpu::BufferAllocOp buffer) {
    int last = starts[buffer];
    bool stored = false;
    Operation *lastCopy = nullptr, *lastMultiply = nullptr; // in the buffer's block, that leave what they started in flight
    const auto keepLast = [](Operation *&last, Operation *top) {
      if (!last || last->isBeforeInBlock(top))
        last = top;
    };
    SmallVector<Operation *> users(buffer->getUsers());
    while (!users.empty()) {
      Operation *user = users.pop_back_val();
      if (isa<dgpu::BufferPermuteOp>(user))
        users.append(user->user_begin(), user->user_end());
      stored |= isa<dgpu::TmaStoreOp>(user);
      // In a loop the next iteration may use the buffer again; in the block of the allocation this is the outermost loop.
      // Partitions run side by side: what one of them uses is taken until both end.
      Operation *top = buffer->getBlock()->findAncestorOpInBlock(*user);
      last = std::max(last, ends[top]);
      if (isa<dgpu::AsyncCopyOp>(user))
        keepLast(lastCopy, top);
      if (auto dot = dyn_cast<dgpu::WarpgroupDotOp>(user); dot && !isWaitedForAtOnce(dot))
        keepLast(lastMultiply, top);
    }
    // What is in flight touches the bytes until it was waited for.
    if (lastCopy)
      last = std::max(last, endOfWait<dgpu::AsyncWaitOp>(lastCopy));
    if (lastMultiply)
      last = std::max(last, endOfWait<dgpu::WarpgroupWaitOp>(lastMultiply));
    return stored ? ends[kernel] : last;
  }

  static bool isWaitedForAtOnce(dgpu::WarpgroupDotOp dot) {
    return llvm::any_of(dot->getUsers(), [&](Operation *user) {
      auto wait = dyn_cast<dgpu::WarpgroupWaitOp>(user);
      return wait && wait.getPending() == 0 && wait->getBlock() == dot->getBlock();
    });
  }

  /// The end of the first complete wait of a kind behind `op` in its block, or of the kernel. A partition waits for what it
  /// started.
  template <typename WaitOp> int endOfWait(Operation *op) {
    if (isa<dgpu::WarpSpecializeOp>(op))
      return ends[op];
    while ((op = op->getNextNode()))
      if (auto wait = dyn_cast<WaitOp>(op); wait && wait.getPending() == 0)
        return ends[op];
    return ends[kernel];
  }

  /// What the scratch memory of one block needs at least when all of it gets different bytes. A bound that is cheap: placing
  /// thousands of operations side by side is not.
  int64_t largestSpread() const {
    llvm::DenseMap<Block *, int64_t> sums;
    int64_t largest = 0;
    for (const Request &request : requests)
      if (request.isScratch())
        largest = std::max(largest, sums[request.op->getBlock()] += request.bytes);
    return largest;
  }

  /// Chooses all offsets; returns the bytes needed. Deterministic: a second call with the same argument gives the same.
  int64_t place(bool spreadScratch) {
    int64_t total = 0;
    SmallVector<Request *> order;
    for (Request &request : requests)
      order.push_back(&request);
    llvm::sort(order, [](Request *a, Request *b) { return a->largerThan(*b); });
    SmallVector<Request *> placed;
    for (Request *request : order) {
      // Neighbours by offset: the first gap that is large enough is the lowest.
      SmallVector<Request *> neighbours;
      llvm::copy_if(placed, std::back_inserter(neighbours), [&](Request *other) {
        return request->livesWith(*other) || (spreadScratch && request->sameBlockScratch(*other));
      });
      llvm::sort(neighbours, [](Request *a, Request *b) { return a->offset < b->offset; });
      int64_t offset = 0;
      for (Request *other : neighbours) {
        if (offset + request->bytes <= other->offset)
          break;
        offset =
            std::max(offset, static_cast<int64_t>(llvm::alignTo(other->offset + other->bytes, request->alignment)));
      }
      request->offset = offset;
      placed.push_back(request);
      total = std::max(total, offset + request->bytes);
    }
    return total;
  }

  func::FuncOp kernel;
  llvm::DenseMap<Operation *, int> starts, ends;
  SmallVector<Request> requests;
};

class AllocateSharedPass : public impl::AllocateSharedBase<AllocateSharedPass> {
public:
  using Base::Base;

private:
  void runOnOperation() override {
    if (failed(analysis::checkLayouts(getOperation(), "dgpu-allocate-shared")))
      return signalPassFailure();
    int64_t total = 0;
    for (auto kernel : getOperation().getOps<func::FuncOp>()) {
      if (kernel.isExternal())
        continue;
      SharedAllocation allocation(kernel);
      int64_t bytes = allocation.run();
      if (bytes > limitBytes) {
        auto diagnostic = kernel.emitError() << "the kernel needs " << bytes
                                             << " bytes of shared memory, the target has " << limitBytes.getValue()
                                             << " bytes for a block; use smaller tiles or fewer stages (num_stages)";
        analysis::markResourceLimit(diagnostic);
        allocation.describe(diagnostic);
        return signalPassFailure();
      }
      remark::analysis(kernel.getLoc(), remark::RemarkOpts::name("shared").category("dgpu-allocate-shared"))
          << llvm::formatv("{0} bytes of shared memory", bytes).str();
      total = std::max(total, bytes);
    }
    getOperation()->setAttr(dgpu::sharedBytesAttrName, Builder(&getContext()).getI64IntegerAttr(total));
  }
};

} // namespace
} // namespace ditron::transforms
