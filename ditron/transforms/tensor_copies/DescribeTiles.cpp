//===- DescribeTiles.cpp - Tiles of dots that come through pointers, as tiles of descriptors ------------------------------===//
//
// A producer warp fetches tiles of tensor descriptors (dgpu-specialize-warps). What a kernel loads through pointers is mostly a tile of a
// matrix, too; here such loads become loads of descriptors, where that is the same and where the producer then fetches them. Works on tile IR, before
// loops are joined and warps are specialised.
//
//   p = a + first * stride + i[:, None] * stride + j[None, :]            becomes
//   for ... iter_args(q = p):                                              u = first * stride / 8
//     dot(load q, ...)                                                     for ... iter_args(v = u):
//     q += 32 * stride                                                       t = descriptor_load d[v >> 20, v & 0xfffff, 0, 0]
//                                                                            dot(reshape t, ...);  v += 32 * stride / 8
//   where d = descriptor of a, sizes [2^31 - 1, 2^20, rows, columns], strides [8 << 20, 8, stride, 1], tiles [1, 1, rows, columns]; elements of 16 bits
//
// The tensor that d describes is no tensor of the kernel's: nobody knows the sizes of those, and where rows end. It is a window of one tile that can
// stand at any multiple of 16 bytes behind the argument; two dimensions of offsets, since one has 32 bits. All of the window lies in the tensor, so
// nothing is padded, and exactly the tile is read.
//
// Where a mask says that an index ends, first + i < M, the window is as long as that, and the tile begins at `first` in it: what lies behind the end is
// padded with zeros, as the mask has it. Where indices wrap around, (first + i) % M or where(first + i < M, first + i, 0), what they read behind the end is
// padded as well if nobody stores what comes of it (NeededRows.h). M is an argument or a number; of 0 or less the window has one element, and the tile
// stands behind it.
//
// 1. Which loads: of matrices that dots alone use, by addresses (analysis/AffineTiles)
//      base + offset + t * perTurn + i * coefficients[0] + j * coefficients[1]       t: turns of the innermost loop around
//    where base is an argument of the kernel and divisible by 16, one coefficient is 1, and the other one a number or an argument. If it is the first
//    one that is 1, the tile is described as it lies, and transposed.
// 2. The copy engine counts offsets from the base, in 16 bytes: offset and perTurn must be multiples of that, and not negative. Proved term by term, from
//    the divisors of arguments, and with what analysis/AxisInfo.h assumes: arguments and loaded values are not negative. A negative term is made up for
//    by others where it is that of a remainder, x - x / c * c.
// 3. Rows ([N]) beside such tiles, in the body of a loop, that something else than a dot uses: [2^31 - 1, 2^20, N], likewise.
// 4. Only what the producer then fetches: tried on a copy of the kernel, with fewer loads until the plan takes all of them. A kernel stays as it is if the
//    plan has no ring in a loop, rings of one slot where the author wants more, or loses tiles of descriptors that it would fetch without.
// 5. Not fp32 tiles: the copy engine rounds them to tf32 with ties to even, threads away from zero.
//
// The address is an i64 in units of 16 bytes, which the loop carries. Sums of indices do not overflow (analysis/AxisInfo.h), so it is what the kernel's own
// arithmetic, in whatever width, gives.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/tensor_copies/DescribeTiles.h"

#include "ditron/transforms/Passes.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/transforms/loops/LoopArguments.h"
#include "ditron/transforms/tensor_copies/TileWindows.h"
#include "ditron/transforms/warps/WarpRings.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_DESCRIBETILES
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// Tries candidates on copies of a kernel.
class Trial {
public:
  Trial(func::FuncOp kernel, int warps, int64_t limitBytes) : kernel(kernel), warps(warps), limitBytes(limitBytes) {
    RingPlan plan(kernel, warps, limitBytes);
    if (plan.servesLoops())
      kernel.walk([&](tile::DescriptorLoadOp load) {
        if (plan.fetches(load))
          fetchedBefore.push_back(load);
      });
  }

  /// Takes those candidates away that would not be fetched; `reasons` says why.
  void reduce(SmallVectorImpl<size_t> &chosen, MutableArrayRef<std::string> reasons) {
    while (!chosen.empty()) {
      const size_t before = chosen.size();
      plan(chosen, reasons);
      if (chosen.size() == before)
        return;
    }
  }

private:
  void plan(SmallVectorImpl<size_t> &chosen, MutableArrayRef<std::string> reasons) {
    auto module = kernel->getParentOfType<ModuleOp>();
    OwningOpRef<ModuleOp> around = ModuleOp::create(module.getLoc());
    (*around)->setAttrs(module->getAttrDictionary());
    IRMapping mapping;
    auto copy = cast<func::FuncOp>(kernel->clone(mapping));
    around->push_back(copy);
    std::vector<WindowLoad> all = findWindows(copy, [](tile::LoadOp, StringRef) {}), some;
    for (size_t index : chosen)
      some.push_back(all[index]);
    const SmallVector<tile::DescriptorLoadOp> made = describeWindows(copy, some);
    RingPlan rings(copy, warps, limitBytes);
    const bool servesLoops = rings.servesLoops();
    const bool losesTiles = llvm::any_of(fetchedBefore, [&](tile::DescriptorLoadOp load) {
      return !rings.fetches(mapping.lookup(load.getOperation()));
    });
    const llvm::DenseSet<Operation *> described(made.begin(), made.end());
    std::string reason;
    if (losesTiles)
      reason = "tiles of descriptors would not be fetched any more";
    else if (!servesLoops)
      reason = "no tile of a loop would be fetched";
    else if (llvm::any_of(rings.rings(), [&](const Ring &ring) { return waitsInEachTurn(ring, described); }))
      reason = "rings of two slots do not fit shared memory";
    SmallVector<size_t> left;
    for (auto [index, load] : llvm::zip_equal(chosen, made)) {
      if (rings.fetches(load) && reason.empty()) {
        left.push_back(index);
        continue;
      }
      reasons[index] = rings.whyNotFetched(load);
      if (reasons[index].empty())
        reasons[index] = reason;
    }
    chosen.assign(left.begin(), left.end());
  }

  /// True for a ring of described tiles that has room for one turn only: the threads' own copies, which run ahead, are better.
  static bool waitsInEachTurn(const Ring &ring, const llvm::DenseSet<Operation *> &described) {
    auto loop = dyn_cast<scf::ForOp>(ring.block->getParentOp());
    return loop && ring.slots == 1 && pipelineStagesOf(loop) > 1 &&
           llvm::any_of(ring.dots, [&](tile::DotOp dot) { return dot->getBlock() == ring.block; }) &&
           llvm::any_of(ring.copies(), [&](Operation *load) { return described.contains(load); });
  }

  func::FuncOp kernel;
  int warps;
  int64_t limitBytes;
  SmallVector<tile::DescriptorLoadOp> fetchedBefore;
};

void describe(func::FuncOp kernel, int warps, int64_t limitBytes, bool isSilent) {
  constexpr auto options = [] { return remark::RemarkOpts::name("describe").category("dgpu-describe-tiles"); };
  const auto refuse = [&](tile::LoadOp load, StringRef reason) {
    if (!isSilent)
      remark::missed(load.getLoc(), options()) << ("the tile comes through pointers: " + reason).str();
  };
  std::vector<WindowLoad> candidates = findWindows(kernel, refuse);
  if (candidates.empty())
    return;
  SmallVector<size_t> chosen = llvm::to_vector(llvm::seq(candidates.size()));
  SmallVector<std::string> reasons(candidates.size());
  Trial(kernel, warps, limitBytes).reduce(chosen, reasons);
  std::vector<WindowLoad> described;
  for (auto [index, candidate] : llvm::enumerate(candidates)) {
    if (!llvm::is_contained(chosen, index)) {
      refuse(candidate.load, "no producer would fetch it: " + reasons[index]);
      continue;
    }
    described.push_back(candidate);
    if (!isSilent)
      remark::passed(candidate.load.getLoc(), options())
          << (candidate.isRow()        ? "the row is described, and comes with the tiles of its block"
              : candidate.isTransposed ? "the tile is described as it lies, transposed, for a producer to fetch"
                                       : "the tile is described, for a producer to fetch");
  }
  if (!described.empty())
    describeWindows(kernel, described);
}

class DescribeTilesPass : public impl::DescribeTilesBase<DescribeTilesPass> {
public:
  using Base::Base;

private:
  void runOnOperation() override { describeTiles(getOperation(), limitBytes, /*isSilent=*/false); }
};

} // namespace

void describeTiles(ModuleOp module, int64_t limitBytes, bool isSilent) {
  if (!hasProducers(module))
    return;
  for (auto kernel : module.getOps<func::FuncOp>())
    if (!kernel.isExternal() && kernel.getBody().hasOneBlock() &&
        kernel.getBody().front().getTerminator()->getNumOperands() == 0)
      describe(kernel, dgpu::numWarpsOf(module), limitBytes, isSilent);
}

} // namespace ditron::transforms
