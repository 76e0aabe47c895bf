//===- Passes.td - Passes between import and lowering ------------------------------------------------------*- tablegen -*-===//
#ifndef DITRON_TRANSFORMS_PASSES_TD
#define DITRON_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def LowerWorld : Pass<"dist-lower-world", "::mlir::ModuleOp"> {
  let summary = "gives kernels their world view and lowers rank, num_ranks and symm_at to it";
  let description = [{
    1. Append one last argument `!tile.ptr<i64>` to every func with the attribute `tile.kernel`, used or not: the world view
       [rank, num_ranks, base of rank 0, base of rank 1, ...].
    2. Read word 0 and word 1 at the top of the kernel when dist.rank or dist.num_ranks occur; replace those by the words as i32.
    3. dist.symm_at(p, r) becomes p - base(own rank) + base(r) on addresses. The own base is read once at the top, base(r) where
       the op stands. Heap bases are aligned, which is said with tile.hint so that vector accesses survive.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::ditron::tile::TileDialect"];
}

def ApplyHints : Pass<"tile-apply-hints", "::mlir::ModuleOp"> {
  let summary = "what is promised of a value holds for all that comes behind";
  let description = [{
    In Triton `tl.multiple_of(x, 16)` says something of x itself, and its result may be left alone:

        tl.multiple_of(a_ptrs, [16, 16])              %h = tile.hint %p {divisibility = ...}
        a = tl.load(a_ptrs)                           %a = tile.load %h                       (it was %p)

    Uses of a hint's operand that the hint dominates become uses of its result. Before dead code goes.
  }];
}

def MergeCounters : Pass<"tile-merge-counters", "::mlir::ModuleOp"> {
  let summary = "numbers that a loop carries and that are its counter become it";
  let description = [{
    A number that begins with the loop's lower bound and grows by its step is the counter; one that begins a step earlier is the counter once the step
    has been added. So a persistent product that counts its tiles a second time for what it stores (Triton's tutorial 09) is seen to store the rows that it
    has loaded:

        for tile in range(start, tiles, 132):         tile_c = start - 132 before the loop
            tile_c += 132                              uses of this sum become uses of tile

    Only where both steps are the same number, and a step earlier only if that is a constant.
  }];
}

def SumsToDots : Pass<"tile-sums-to-dots", "::mlir::ModuleOp"> {
  let summary = "sums of products of two broadcasts become dots";
  let description = [{
    1. A sum of fp32 over one dimension of a product of two broadcasts, where each factor has a dimension that the other lacks.
    2. If the dot pays: with b batches, p rows, q columns, depth k and T threads, and r = b p q / T,
       r k > 64 or r >= 2 sqrt(r) + b (p + q) / T.
    3. A dot of [batch, rows, summed] and [batch, summed, columns] with the precision ieee.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::ditron::tile::TileDialect"];
}

def DecomposeDots : Pass<"tile-decompose-dots", "::mlir::ModuleOp"> {
  let summary = "rewrites dots that no instruction does as they stand";
  let description = [{
    Before every pass that chooses instructions for dots; needs dgpu.num_warps.
    1. A batch of one becomes a plain product.
    2. fp32 operands with precision tf32x3, bf16x3 or bf16x6 are split into pieces of few bits, and the products of pieces that matter
       are added, the smallest first. Tiles too small for tensor cores are multiplied in fp32.
    3. Dots of multiply-adds whose operands would take too many registers of a thread are cut along K.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::ditron::tile::TileDialect"];
}

def WidenBlocks : Pass<"dgpu-widen-blocks", "::mlir::ModuleOp"> {
  let summary = "blocks get a second warpgroup where one has no registers for the sums of a loop";
  let description = [{
    On modules with dgpu.wgmma and four warps, before anything depends on their number.
    1. The sums that a loop's dots carry, and the largest one beside them, would take more than 240 registers of each thread.
    2. Every dot that one warpgroup can do, two can: it has 128 rows. No operation of dist shows threads or warps.
    3. dgpu.num_warps becomes 8, and the launch has as many.
  }];
}

def AgreeOnLoads : Pass<"tile-agree-on-loads", "::mlir::ModuleOp"> {
  let summary = "a word that others change is one value of the block";
  let description = [{
    A volatile load of a scalar that all threads of the block reach, at one address, becomes one of a tile of one element, which is loaded once, and not
    by each thread for itself at another time. Loads of loops that do nothing but test memory stay, and so do those of pointers.
  }];
  let dependentDialects = ["::ditron::tile::TileDialect"];
}

def OrderReductions : Pass<"tile-order-reductions", "::mlir::ModuleOp"> {
  let summary = "reductions that must keep the order of their elements get the ordering inner_tree";
  let description = [{
    A reduction without an ordering is free to combine what is nearest first, which asks of its region that it commutes. The region is
    tried on some dozen pairs of small numbers, equal ones among them, by constant folding; when two operands give something else
    the other way round, the reduction gets `inner_tree`, which keeps the order. Regions that cannot be folded are taken at their
    word, as in Triton.
  }];
  let options = [
    Option<"strict", "strict", "bool", /*default=*/"false", "give inner_tree to all reductions that have no ordering">
  ];
  let dependentDialects = ["::ditron::tile::TileDialect"];
}

def WidenTurns : Pass<"dgpu-widen-turns", "::mlir::ModuleOp"> {
  let summary = "several turns of a loop over tiles become one with longer tiles";
  let description = [{
    On modules with dgpu.wgmma, before layouts. A dot of warpgroups with 16 or 32 columns reads its other operand from shared memory as often as
    one with 64, and a turn costs its synchronisation whatever the tiles' extent.
    1. Innermost loops that only load tiles, compute element by element, and carry sums of dots and what moves on by a fixed amount in each turn.
    2. From the sums' operands backward every tile must follow the turns along one dimension of extent B: its row r in turn t is row
       t B + r of one long tile. Tiles that do not vary along the dimension, nor from turn to turn, do so too.
    3. f turns become one with tiles of extent f B: the largest power of two with f B <= 64, as far as registers suffice and, if the number of
       turns is known, for which it is a multiple of f.
    4. The old loop does the turns that are left over, if their number is not known; it takes no ring of its own.
    The sums get the same addends in the same order: nothing is rounded otherwise.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect", "::ditron::tile::TileDialect"];
}

def DescribeTiles : Pass<"dgpu-describe-tiles", "::mlir::ModuleOp"> {
  let summary = "tiles of dots that come through pointers become tiles of descriptors, for a producer warp to fetch";
  let description = [{
    On modules with dgpu.wgmma and dgpu.tma, before layouts. Kernels with plain pointers get the rings that those with descriptors have.
    1. Candidates: loads without mask of matrices that dots alone use, whose elements lie at
       base + offset + t * perTurn + i * coefficients[0] + j * coefficients[1] in turn t of the innermost loop around (analysis/AffineTiles.h): the base is an
       argument of the kernel, one coefficient is 1, the other one a number or an argument. If the first one is 1, the tile is described as it
       lies, and transposed. Tiles of fp32 stay: the copy engine and threads round ties to tf32 in different ways.
    2. The descriptor has the sizes [2^31 - 1, 2^20, rows, columns] and the strides [u << 20, u, stride, 1], with u elements in 16 bytes: a window that
       stands where the tile begins, at any multiple of 16 bytes behind the base. Nothing lies outside of it.
    3. Offset and perTurn are proved to be multiples of 16 bytes, and not to be negative where arguments and loaded values are not. The loop carries
       the place as an i64.
    4. Rows that something else than a dot uses, in the bodies of loops that have such tiles, likewise.
    5. A load stays as it is unless dgpu-specialize-warps would have the tile fetched, and all loads do if it would fetch none for a loop,
       or if its rings would have one slot where the author wants more.
  }];
  let options = [Option<"limitBytes", "limit-bytes", "int64_t", /*default=*/"232448",
                        "shared memory that one block may use (sm_90: 227 KiB)">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect", "::ditron::tile::TileDialect"];
}

def JoinLoops : Pass<"dgpu-join-loops", "::mlir::ModuleOp"> {
  let summary = "two loops over tiles alike become one, with a branch for what differs";
  let description = [{
    On modules with dgpu.wgmma and dgpu.tma, before layouts: so that what dgpu-delay-dots keeps in flight does not end with the first of two
    loops, of which one masks its tiles and one does not.
    1. Neighbours in a block with several dots and loads of descriptors each, as many and of the same types, of which the second one begins
       with what the first one has carried. Scalars that it begins with otherwise are chosen in its first turn.
    2. Operations of the bodies match, from loads, dots and yielded values backward, if they are alike and their operands match; what an
       operand that does not match stands for is yielded by the branch.
    3. An operation between two values of the branch belongs to the branch, a product stays with the sum that it goes into, and what is computed
       from the branch's tiles alone goes with them.
    4. Loops stay two if a load or dot does not match, if their bodies have other effects, or if something happens between them.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def LoopOverPrograms : Pass<"dgpu-loop-over-programs", "::mlir::ModuleOp"> {
  let summary = "blocks that stay run one program of the launch after the other";
  let description = [{
    On modules with dgpu.wgmma and dgpu.tma, before layouts. The body of a kernel goes into a loop over the programs that the block takes; the
    launch has as many blocks as the GPU holds at once, or programs if those are fewer. What the grid was is in three arguments with
    the attribute dgpu.num_programs (0, 1, 2 for x, y, z), behind the parameters: what launches the kernel sees to it.
    1. Kernels in which a producer warp fetches tiles for a loop of dots (dgpu-specialize-warps, which comes next).
    2. Not those whose programs may see each other, or wait: anything but loads, stores and what has no effects is left alone, as are kernels
       that ask for the size of the launch, volatile loads, clusters, and kernels the turns of whose loops depend on the program in a way that
       cannot be told.
    3. Where the turns of the kernel's loops grow or fall with the program's id along an axis, ids along it come from both ends by turns,
       the one with more work first, and blocks take two of them together. Else the order is that of the launch.
    4. Scalars and descriptors that are the same for all programs stay in front of the loop.
  }];
  let options = [Option<"limitBytes", "limit-bytes", "int64_t", /*default=*/"232448",
                        "shared memory that one block may use (sm_90: 227 KiB)">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def SpecializeWarps : Pass<"dgpu-specialize-warps", "::mlir::ModuleOp"> {
  let summary = "a producer warp fetches the tiles of dots through rings in shared memory";
  let description = [{
    On modules with dgpu.wgmma and dgpu.tma, before layouts.
    1. Candidates: descriptor loads that only feed dots that warpgroups can do, whose descriptor can become a tensor map and whose
       offsets and control flow a producer can compute from scalars, waits included.
    2. Loads of one block that meet in a dot share a ring of num_stages slots with mbarriers `full` and `empty`; fewer slots when
       shared memory does not suffice.
    3. The body becomes the consumer of a dgpu.warp_specialize with dgpu.warpgroup_dot, a pruned copy of it the producer with
       dgpu.tma_load. Dots that only accumulate stay in flight during the next iteration.
    4. Registers go from the producer to the consumer. Where blocks stay and a consumer of one warpgroup computes between its dots, two blocks
       share a multiprocessor if rings of two slots fit: dgpu.resident_blocks = 2 of the module, and each divides half of the registers.
    Loads that stay are reported; a loop with tile.warp_specialize that stays is warned about.
  }];
  let options = [
    Option<"limitBytes", "limit-bytes", "int64_t", /*default=*/"232448",
           "shared memory that one block may use (sm_90: 227 KiB)">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect", "::mlir::ub::UBDialect",
                           "::ditron::dgpu::DgpuDialect"];
}

def DelayDots : Pass<"dgpu-delay-dots", "::mlir::ModuleOp"> {
  let summary = "a dot that consumes another one's result runs beside the next turn of the loop";
  let description = [{
    On loops of consumers whose last dot takes an A that was computed from another dot of the turn, and whose result is only carried.
    1. The last dot, with the wait for its tile and the release, moves into the next turn, behind the start of that turn's first dot; its
       operands are carried instead of its result.
    2. What depends on its result goes to the end of the turn, behind a wait for it.
    3. The producer's copies for it move behind those of the next turn.
    4. The first turn without it stands before the loop, the last one's dot behind it.
    The order of sums stays. Loops of several dots that are left alone are reported with the reason.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect", "::ditron::dgpu::DgpuDialect"];
}

def LateWaits : Pass<"dgpu-late-waits", "::mlir::ModuleOp"> {
  let summary = "dots of a consumer are waited for where their results are used";
  let description = [{
    A wait for one dot goes down to the first use of the dot's result, where other dots are started in between: these then run beside it, and
    beside what the threads compute. It leaves as many more dots in flight as it passes; releases of tiles go with it.

    ```mlir
    %s0 = dgpu.warpgroup_dot %k, %q, ...             %s0 = dgpu.warpgroup_dot %k, %q, ...
    %s = dgpu.warpgroup_wait 0, %s0         ->       %d0 = dgpu.warpgroup_dot %v, %g, ...
    %d0 = dgpu.warpgroup_dot %v, %g, ...             %s = dgpu.warpgroup_wait 1, %s0
    ```
  }];
  let dependentDialects = ["::ditron::dgpu::DgpuDialect"];
}

def TakeTurns : Pass<"dgpu-take-turns", "::mlir::ModuleOp"> {
  let summary = "warpgroups of a consumer multiply and compute by turns";
  let description = [{
    On consumers of several warpgroups, in loops that start several dots before they wait for the first and compute with its result.
    1. dgpu.take_turn before the first dot, dgpu.pass_turn behind the last one that is started together with it.
    2. The last warpgroup passes the first turn on at the partition's beginning; the first one takes the last turn at its end.
  }];
  let dependentDialects = ["::ditron::dgpu::DgpuDialect"];
}

def TensorStores : Pass<"dgpu-tensor-stores", "::mlir::ModuleOp"> {
  let summary = "descriptor stores become tensor stores from shared memory";
  let description = [{
    On modules with dgpu.tma, before layouts. The tile goes to a buffer, fence and barrier follow, thread 0 starts the store. The
    buffer is waited for when it is written again; completion before operations that tell others about the data or access the same
    object; reads before the end of the kernel.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::ditron::dgpu::DgpuDialect"];
}

def WarpgroupDots : Pass<"dgpu-warpgroup-dots", "::mlir::ModuleOp"> {
  let summary = "dots of ordinary kernels become warpgroup dots";
  let description = [{
    On modules with dgpu.wgmma, before layouts. Operands that are loaded beside the dot or known before its loop go to shared memory, the latter
    once for all loops that follow (dgpu-pipeline-loops makes a ring of asynchronous copies of the former); another A is read from registers; dots
    with another B stay.
  }];
  let options = [
    Option<"limitBytes", "limit-bytes", "int64_t", /*default=*/"232448",
           "shared memory that one block may use (sm_90: 227 KiB)">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::ditron::dgpu::DgpuDialect"];
}

def LowerDescriptors : Pass<"tile-lower-descriptors", "::mlir::ModuleOp"> {
  let summary = "loads and stores through tensor descriptors become pointers and masks";
  let description = [{
    For every descriptor load and store that no earlier pass has given to the tensor copy engine:
    1. The tile's first element is found in 64 bits, offsets inside of the tile in 32 bits.
    2. A mask excludes what lies outside of the tensor, unless that is known to be nothing; loads give zero or NaN there.
    3. What does not change in the loops around is computed before them.
    4. Behind a store whose tensor may be accessed later stands a block barrier, as behind a tensor copy.
    Then descriptors are removed.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::ditron::tile::TileDialect", "::ditron::dist::DistDialect"];
}

def AssignLayouts : Pass<"dgpu-assign-layouts", "::mlir::ModuleOp"> {
  let summary = "gives every tensor a register layout";
  let description = [{
    1. Anchors. Dots get tensor core fragments (or multiply-add layouts), loads, stores and atomics get coalesced layouts:
       dimensions ordered by contiguity, vectors as wide as contiguity, alignment and 16 bytes allow, the same width for all
       accesses of one shape and order.
    2. Forward: from dot results, then from loads by bytes, an undecided value takes the layout that its operand implies, through
       loops and branches. Broadcasts wait: they are better decided by their users.
    3. Small stores without a decided layout of their own take the layout of their value.
    4. Backward: from the operands of dots, stores and loads and of every decided operation, an undecided value takes the layout
       that its user asks for.
    5. The rest in program order: what the operands imply, or a row-major tile.
    6. Set the types; where an operand's layout is not the one its user needs, insert dgpu.convert_layout.
    Each step leaves decided values alone, so that every supported program ends with valid layouts; only their cost depends on
    the order.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::ditron::dgpu::DgpuDialect"];
}

def RemoveConversions : Pass<"dgpu-remove-conversions", "::mlir::ModuleOp"> {
  let summary = "removes layout conversions or makes them cheaper";
  let description = [{
    Until nothing changes:
    1. Fold conversions of conversions and conversions to the own layout; merge equal ones.
    2. Convert the narrow side of a cast: convert(extend(x)) becomes extend(convert(x)), truncate(convert(x)) becomes
       convert(truncate(x)).
    3. Rematerialise: when all operations that lead to the converted value are cheap (ranges, splats, constants, arithmetic,
       shape changes), compute them again in the wanted layout if that costs less than the conversion. Operations that nobody
       else uses cost nothing: they move. A row that is loaded beside dots of warpgroups, and that only the conversion uses, is loaded in
       the wanted layout, by several threads.
    4. Hoist conversions of loop-invariant values out of loops, beside dots of warpgroups with the cheap operations that lead to them.
    Conversions that stay are reported by dgpu-allocate-shared: pipelining still replaces some.
  }];
  let dependentDialects = ["::ditron::dgpu::DgpuDialect"];
}

def KeepOperands : Pass<"dgpu-keep-operands", "::mlir::ModuleOp"> {
  let summary = "wide operands that outlive a loop stay in shared memory";
  let description = [{
    After layouts. An operand of a dot that is computed before the dot's loop and takes 96 registers of each thread or more, and not more than a quarter of
    shared memory, is stored to a buffer before the loop and read where the dot stands. Others, and those of warpgroup dots, stay as they are.
  }];
  let options = [Option<"limitBytes", "limit-bytes", "int64_t", /*default=*/"232448",
                        "shared memory that one block may use (sm_90: 227 KiB)">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::ditron::dgpu::DgpuDialect"];
}

def PipelineLoops : Pass<"dgpu-pipeline-loops", "::mlir::ModuleOp"> {
  let summary = "loads that feed dots run ahead of the loop through shared memory";
  let description = [{
    For each innermost scf.for with S = num_stages > 1 (attribute tile.num_stages, else dgpu.num_stages of the module):
    1. Candidates: tensor loads in the body whose value reaches a dot operand through casts, transposes and layout conversions,
       whose addresses can be computed ahead, of other loads too, and which copy at least 4 contiguous bytes per thread.
       Refused, with a remark, when the body writes memory, waits, signals or synchronises.
    2. Each candidate gets a ring of S tiles in shared memory, swizzled for the reader.
    3. Before the loop: start the copies of iterations 0 .. S-2, each masked by "iteration exists"; one group per iteration.
    4. In the loop, first: wait until at most S-2 groups are pending, start the copies of iteration i+S-1 into slot (i+S-1) mod S.
       The load becomes a buffer_load from slot i mod S, directly in the layout that the dot wants.
    5. Loop-carried values that addresses depend on get a twin that runs S-1 iterations ahead; values computed from the induction
       variable are recomputed for the later iteration. Twins that are left without use disappear.
    6. After the loop: wait for all groups.
    7. What is computed from loads before the loop, and used in or behind it only, is computed behind the copies of step 3, and stored to the buffers
       of warpgroup dots there.
    A load that is only stored to the buffer of a warpgroup dot is copied to a ring in that buffer's layout; such dots are started
    before the iteration's copies, and run into the next iteration when they only accumulate. Where a turn computes between its dots, copies stand
    behind the first dot, and rows that are loaded for the computation get rings as well.

    Loops without dots are pipelined if the author says num_stages of them: all loads of tensors, each into a ring from which a thread reads what it has copied,
    with as many slots as fit. Stores to other arguments than those that are read may stand in such a loop.
  }];
  let options = [Option<"limitBytes", "limit-bytes", "int64_t", /*default=*/"232448",
                        "shared memory that one block may use (sm_90: 227 KiB)">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::ditron::dgpu::DgpuDialect"];
}

def EarlyCopies : Pass<"dgpu-early-copies", "::mlir::ModuleOp"> {
  let summary = "the first copies of a loop start before the loop in front of it";
  let description = [{
    After pipelining. Of two loops with rings of their own, one after the other, the first copies of the second start with the last group of those of the
    first, if nothing in between writes global memory, their addresses need nothing of the first loop, and shared memory has room for both rings without
    fewer blocks on a multiprocessor.
  }];
  let options = [Option<"limitBytes", "limit-bytes", "int64_t", /*default=*/"232448",
                        "shared memory that one block may use (sm_90: 227 KiB)">];
  let dependentDialects = ["::ditron::dgpu::DgpuDialect"];
}

def EarlyDots : Pass<"dgpu-early-dots", "::mlir::ModuleOp"> {
  let summary = "dots of loops with asynchronous copies start as soon as their operands are there";
  let description = [{
    After pipelining, on loops of functions with several warpgroup dots. A dot of which all operands are known at the turn's first dot starts behind
    that one, unless the sums of the turn would take more than 200 registers of each thread; waits then go down to the uses of their
    results, as dgpu-late-waits does in consumers.
  }];
  let dependentDialects = ["::ditron::dgpu::DgpuDialect"];
}

def LoadOperands : Pass<"dgpu-load-operands", "::mlir::ModuleOp"> {
  let summary = "operands that a loop does not change are read to registers once, where dots wait for shared memory";
  let description = [{
    After dgpu-early-dots, on loops of functions. A warpgroup dot of fewer than 64 columns reads its operands from shared memory for longer than it
    multiplies. Its A is loaded to registers in front of the loop if
    1. the loop does not change it, and the dot is waited for in its turn;
    2. what a turn has in registers (sums of all dots, their operands in registers, tensors of numbers from before the loop), with the operands loaded so
       far and this one, is at most most-registers of each thread, and no fewer blocks reside on a multiprocessor. The order is that of the dots.
  }];
  let options = [Option<"mostRegisters", "most-registers", "int64_t", /*default=*/"216",
                        "registers of a thread for tensors of a turn; of 255 that it can have, the others are for "
                        "addresses and what is computed">,
                 Option<"limitBytes", "limit-bytes", "int64_t", /*default=*/"232448",
                        "shared memory that one block may use (sm_90: 227 KiB)">];
  let dependentDialects = ["::ditron::dgpu::DgpuDialect"];
}

def SplitTensorStores : Pass<"dgpu-split-tensor-stores", "::mlir::ModuleOp"> {
  let summary = "each warpgroup stores the rows that it holds";
  let description = [{
    After layouts. Where every 64 rows of a staged tile are held by one warpgroup, barriers around the staging buffer become barriers of
    warpgroups and the first thread of each warpgroup copies its rows, so that no warpgroup waits for another.
  }];
  let dependentDialects = ["::ditron::dgpu::DgpuDialect"];
}

def AllocateShared : Pass<"dgpu-allocate-shared", "::mlir::ModuleOp"> {
  let summary = "places buffers and scratch memory in shared memory";
  let description = [{
    1. Number all operations in program order. A buffer lives from its allocation to its last use (to the end of the loop, if
       it is used in a loop that does not contain the allocation; to the wait that completes its copies); scratch memory lives at
       its operation only.
    2. Largest first: give each the lowest aligned offset that overlaps no living neighbour. Scratch memory of operations in one
       block gets different bytes while the kernel stays below 32 KiB: each has a barrier inside, which then also orders the
       others, and barrier insertion needs fewer.
    3. Write offset_bytes on the operations and dgpu.shared_bytes on the module; refuse programs that need more than the limit,
       naming the largest contributors. Report each layout conversion with its class and plan.
  }];
  let options = [
    Option<"limitBytes", "limit-bytes", "int64_t", /*default=*/"166912",
           "shared memory that one block may use (sm_80: 163 KiB)">
  ];
}

def InsertBarriers : Pass<"dgpu-insert-barriers", "::mlir::ModuleOp"> {
  let summary = "puts block barriers where threads would race on shared memory";
  let description = [{
    Forward analysis over byte ranges that were read or written since the last block barrier.
    1. A read of a range that was written, or a write of one that was read or written, needs a barrier before it.
    2. Operations with scratch memory write, have a barrier inside, and read: afterwards only their own reads are pending. With a
       warp-level barrier inside both stay pending.
    3. An asynchronous copy conflicts like a write with earlier reads and writes; its own write counts from the next async_wait
       on. Ring buffers promise that no copy in flight goes to a slot that is read.
    4. A warpgroup dot reads, and reads on until it was waited for. Tensor copies and producers are ordered by mbarriers and by
       tma_store_wait, and not looked at.
    5. Branches are joined by union; loops are repeated until nothing new arrives on the back edge.
    6. dgpu.barrier, dist.sync_threads and dist.notify clear the state.
  }];
  let dependentDialects = ["::ditron::dgpu::DgpuDialect"];
}

def LateCopies : Pass<"dgpu-late-copies", "::mlir::ModuleOp"> {
  let summary = "the copies of a turn that computes between its dots start in front of its last wait";
  let description = [{
    After dgpu-insert-barriers, on loops of functions whose turns wait for warpgroup dots more than once. The copies of a later turn stand in front of the
    first of these waits; they move to the last one, with their commit, if everything in between that reads one of their rings reads another slot. Not where
    the next turn waits for them, nor in kernels of which several blocks reside on a multiprocessor.
  }];
  let options = [Option<"limitBytes", "limit-bytes", "int64_t", /*default=*/"232448",
                        "shared memory that one block may use (sm_90: 227 KiB)">];
}

def OrderCopies : Pass<"dgpu-order-copies", "::mlir::ModuleOp"> {
  let summary = "puts block barriers where a store would overtake other warps' loads of copies";
  let description = [{
    Where several warps hold copies of an element each loads its own, and one thread stores. Forward analysis over such loads since the
    last block barrier: a store or atomic of the same object gets a dgpu.barrier before it.
    1. Not for what only goes, element by element, into stores of the same layout: each thread that stores has loaded its copy itself.
    2. Not for two places at different constant distances from one argument. Two arguments are taken for two objects.
    3. A branch or loop that only some threads take has its barrier in front of it.
    4. Branches are joined by union; loops are repeated until nothing new arrives on the back edge.
  }];
  let dependentDialects = ["::ditron::dgpu::DgpuDialect"];
}

def OrderLanes : Pass<"dgpu-order-lanes", "::mlir::ModuleOp"> {
  let summary = "says where the lanes of a warp must have done their accesses of global memory";
  let description = [{
    Forward analysis over the accesses of global memory since the lanes of a warp last met. Lanes go through a tile operation
    together: a dgpu.order_lanes comes
    1. before a write of what may have been read or written, and before a read of what may have been written, since then;
    2. not for accesses that both are of single threads (the thread level), or both of the block's first thread, or both through
       the same pointers, which give each address to one lane;
    3. with the arguments behind the pointers as operands if those differ: then it holds only if they point into one object;
    4. before a branch or loop that only some threads take, for all of its accesses, never inside.
    Barriers and exchanges between lanes clear the state. Branches are joined, loops repeated until nothing new arrives.
  }];
  let dependentDialects = ["::ditron::dgpu::DgpuDialect"];
}

def AnnotateAccesses : Pass<"dgpu-annotate-accesses", "::mlir::ModuleOp"> {
  let summary = "says how each access of memory is made";
  let description = [{
    After layouts, before the lowering takes tensors apart.
    1. Tensor loads, tensor stores and asynchronous copies get `dgpu.vector_axis` and `dgpu.vector_elems`: along the dimension whose
       neighbours one thread holds, as many elements as are contiguous and aligned, have one value of the mask and fit the widest
       access; the dimension that allows most.
    2. Accesses through pointers that come from dist.shared_alloc, through arithmetic, branches and loops, get `dgpu.generic`.
    3. Scalar stores that only some threads reach or whose address differs between threads, and such assertions, get
       `dist.per_thread`: the work of every thread that gets there. Others are the work of the block's first thread.
    4. The load of an scf.while that carries nothing and does nothing else gets `dist.spin`: only memory ends that loop.
    An access without the first two attributes is made element by element.
  }];
  let options = [Option<"maxVectorBytes", "max-vector-bytes", "int64_t", /*default=*/"16",
                        "widest access of one thread">];
}

def GuardEffects : Pass<"dgpu-guard-effects", "::mlir::ModuleOp"> {
  let summary = "side effects of regions on scalars happen once for each application";
  let description = [{
    Threads that hold copies of an element all compute what the region of a reduction, scan or map makes of it. Each operation with an
    effect in such a region is put under `scf.if` with the condition dgpu.performs and gets `dist.per_thread`; where its results are
    used, the other threads get zeros, and later what the performing thread got.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect", "::ditron::dgpu::DgpuDialect"];
}

def BindTensorMaps : Pass<"dgpu-bind-tensor-maps", "::mlir::ModuleOp"> {
  let summary = "tensor copies learn the boxes of their maps, and kernels begin with a prefetch of each map";
  let description = [{
    1. dgpu.tma_load and dgpu.tma_store get `box` and `swizzle_bytes` of their map, from the attribute dgpu.tensor_map of the kernel's
       argument. A copy by another map is an error.
    2. Every function prefetches its maps at its entry (dgpu.tma_prefetch).
  }];
  let dependentDialects = ["::ditron::dgpu::DgpuDialect"];
}

def SinkTailWork : Pass<"dgpu-sink-tail-work", "::mlir::ModuleOp"> {
  let summary = "scalar work that is needed only behind a loop of warpgroup dots is done under its last multiply";
  let description = [{
    1. Loops with a warpgroup dot that are followed by `warpgroup_wait 0`, with only pure operations in between.
    2. Pure operations on scalars before such a loop, in its block, of which only what comes behind it makes use, move between loop
       and wait.
    3. A loop that is all of a branch with results: the operations before the branch are computed in both of its arms, in the first
       behind the loop, and become results of the branch.
  }];
}

def SkipFactors : Pass<"dgpu-skip-factors", "::mlir::ModuleOp"> {
  let summary = "warps skip products of sums with factors that are all one";
  let description = [{
    Products in a loop of a tile that a warpgroup_wait gives with a row or column that is broadcast become dgpu.scale, where the factors are powers of
    `a - max(a, ...)` (exp, exp2), which are one wherever the maximum stands; behind selects and branches one way with such a maximum is enough. Of a
    thread's factors there are at most two (16 rows of a warp), and at least eight registers make use of each. Nothing is rounded otherwise.

    ```mlir
    %m = arith.maxnumf %before, %rows                                   %m = arith.maxnumf %before, %rows
    %d = arith.subf %before, %m                                         %d = arith.subf %before, %m
    %f = math.exp2 %d                                         ->        %f = math.exp2 %d
    %w = tile.broadcast %f (of dimensions)                              %w = tile.broadcast %f
    %t = arith.mulf %s, %w                                              %t = dgpu.scale %s, %w
    ```
  }];
  let dependentDialects = ["::ditron::dgpu::DgpuDialect"];
}

def OrderArrivals : Pass<"dgpu-order-arrivals", "::mlir::ModuleOp"> {
  let summary = "lanes meet before an arrival that gives free what they have read by loads";
  let description = [{
    In consumers (dgpu.warp_specialize) that read buffers by dgpu.buffer_load every dgpu.mbarrier_arrive gets `after_loads`. Reads by
    warpgroup dots are complete for the whole warp when it has waited for them; a lane's own loads are not. So do those of producers, whose
    lanes have each waited for their own copies.
  }];
}

def VerifyImport : Pass<"tile-verify-import", "::mlir::ModuleOp"> {
  let summary = "phase contract: imported kernels consist of what the passes know, and say where it comes from";
  let description = [{
    Only operations of tile, dist, arith, math, scf, func and ub, each with a location: messages of later stages then name a line.
  }];
}

def VerifyLayouts : Pass<"dgpu-verify-layouts", "::mlir::ModuleOp"> {
  let summary = "phase contract: every tensor has a layout that fits the kernel";
  let description = [{
    Every tensor value has a #dgpu.layout with the shape of the tensor and the lane and warp bits of the module, and every
    operation relates the layouts of its operands and results as its lowering expects.
  }];
}

def VerifyAllocation : Pass<"dgpu-verify-allocation", "::mlir::ModuleOp"> {
  let summary = "phase contract: every operation that needs shared memory has its place";
  let description = [{
    Every buffer and every operation with scratch memory has offset_bytes, inside dgpu.shared_bytes.
  }];
}

def VerifyPreparation : Pass<"dgpu-verify-preparation", "::mlir::ModuleOp"> {
  let summary = "phase contract: the lowering finds what it believes";
  let description = [{
    Every access of a tensor says how wide it is (dgpu-annotate-accesses), every tensor copy the box and the swizzle of its map
    (dgpu-bind-tensor-maps), every effect in the region of a reduction, scan or map is that of the performing thread
    (dgpu-guard-effects), and partitions ask for no more registers than their block begins with.
  }];
}
#endif
