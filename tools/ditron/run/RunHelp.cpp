//===- RunHelp.cpp - What `ditron run --help` says below the options ----------------------------------------------===//
#include "run/RunCommand.h"

namespace ditron::tool {

const char *const runHelp = R"(SPEC, the value of an argument:
  3   -0x10   2.5   true   None     literals
  i64:7   fp32:1.5                  literals of a given type
  scalar@n.npy   scalar@n.txt       the one element of an array, of its type; or a literal that is alone in a file
  @x.npy                            an array from a file
  bf16@x.npy                        words of a file seen as bf16 (or fp16, fp8e5, fp8e4nv); floats are rounded to it
  zeros:fp32[128,64]                an array of zeros; also ones:, full(2.5):, arange:, arange(FIRST,STEP): and rand:
  rand(7):fp32[128]                 random numbers of seed 7, the same on all ranks; rand: differs by rank and name
  i32:[1,2,3]  fp32:[[1,2],[3,4]]   an array of these elements
  symm:@x.npy  symm:zeros:i64[8]    an array at one offset of every rank's symmetric heap
  desc[64,32]@x.npy                 a tensor descriptor of the array, for tiles of 64 x 32; [64,32,nan] pads with NaN
  desc[64,32]:zeros:bf16[100,70]    the same of any array
  ptr:x   ptr:x[2,0]   ptr:x@3      where another array lies, one of its elements, rank 3's copy of a symmetric one
  [ptr:x,ptr:y]   [ptr:x@*]         an array of such addresses (i64, or u64:[...]); of all ranks' copies
  (@x.npy, 3, zeros:fp32[4])        a tuple; (x=3, y=@x.npy) a named one, ((1, 2), 3) one in another; its arrays are
                                    called t.0, t.x in --out, --print and --expect
Each rank has its own value where SPEC contains {rank}, which is the rank's number, as in @x{rank}.npy or full({rank}):i32[4],
and where it is per-rank:A,B,C, a SPEC for each rank (per-rank:[A,B,C] within a tuple). --constexpr takes both as well; the
ranks then run different variants.

Types: i1 i8 i16 i32 i64 u8 u16 u32 u64 fp8e5 fp8e4nv fp16 bf16 fp32 fp64

Several kernels: --then FILE.py:KERNEL begins the next one, which every rank launches behind the one before. --grid,
--constexpr, --num-warps, --num-stages, --config and --barrier are those of the kernel they follow. Values of --arg serve later
kernels with a parameter of that name too, until they are given anew. --memory NAME=SPEC is an array that no parameter is
called after: pass it as --arg p=ptr:NAME.

Results: --print x[0:4,-1]@1 prints a part of x on rank 1: for each axis an index or
BEGIN:END:STEP, from 0 or, negative, from the end, with steps from 1; axes that are left out are whole. --expect out=want{rank}.npy compares; instead of a
file it takes any array above, or ptr:OTHER for what another array holds after the run. Elements may differ by
ABSOLUTE + RELATIVE * |expected| of --tolerance, by default not at all.

Exit codes: 0 done; 1 the command line, a file or the kernel's source is wrong; 2 the kernel failed while running
(deadlock, access out of bounds); 3 not enough memory; 4 a bug of Ditron; 5 a result is not the expected one.)";

} // namespace ditron::tool
