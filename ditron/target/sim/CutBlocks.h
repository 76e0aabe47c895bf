//===- CutBlocks.h - Long straight code becomes several functions -------------------------------------------*- C++ -*-===//
//
// LLVM's code generator takes time quadratic in the length of a function's straight code, whichever scheduler and register
// allocator are chosen (LargeCode.h). A function of 60,000 instructions in one basic block is therefore cut into parts of up to a
// thousand, each a function of its own that the block calls in turn:
//
//     entry:                            entry:
//       %x = load ptr %p                  call @kernel.part.0(ptr %p, ptr %results)
//       ...  800 instructions             %y = load i32, ptr %results
//       %y = add i32 %x, 1          =>    call @kernel.part.1(ptr %p, i32 %y)
//       ...  800 instructions             ret void
//       store i32 %y, ptr %p
//       ret void
//
// A part takes as arguments what was computed before it; of what it computes and others use, it returns one value, and several
// through an array on the caller's stack.
//
// Where to cut: where the fewest values are alive, within a window of some hundred instructions. Never where more than
// `mostLiveValues` are: to pass them would cost as much as it saves; chains of dots on large tiles stay whole, and slow. Nor between
// a multiplication and the addition that it may be fused with, which would change results in the last bit.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_SIM_CUTBLOCKS_H
#define DITRON_TARGET_SIM_CUTBLOCKS_H

#include <cstddef>

namespace llvm {
class Function;
class Module;
} // namespace llvm

namespace ditron::target {

/// Instructions of a basic block above which it is long. The GEMM kernels have 500; a block of 1950 instructions, of which 260 are
/// selects by the same condition, took LLVM's default scheduler 8 s, and one of 900 instructions 0.5 s.
inline constexpr size_t longBlock = 1000;

/// Cuts the long basic blocks of all functions; to be called on optimised code, right before code is generated.
void cutLongBlocks(llvm::Module &module);

/// Whether a function is a part of another: its frame lies on the stack together with that of its only caller.
bool isPartOfFunction(const llvm::Function &function);

} // namespace ditron::target

#endif // DITRON_TARGET_SIM_CUTBLOCKS_H
