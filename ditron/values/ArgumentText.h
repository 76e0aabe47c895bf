//===- ArgumentText.h - Kernel arguments as text --------------------------------------------------------*- C++ -*-===//
//
// The values of --arg and --memory, as they are on one rank (RankText.h) and, of tuples, by element (TupleText.h).
//
//   3   2.5   true   None   i64:7   scalar@n.npy         scalars: LiteralText.h
//   ptr:x   ptr:x[2,0]   ptr:x@3                addresses of arrays: AddressText.h
//   @x.npy                                      array from a file
//   bf16@x.npy                                  words of the file seen as bf16 (also fp16, fp8e5, fp8e4nv); a file of
//                                               floats is rounded to the type
//   zeros:fp32[128,64]   ones:   full(2.5):     array of zeros, of ones, of a value,
//   arange:   arange(10):   arange(10,2):       0, 1, 2, ...; 10, 11, ...; 10, 12, ...,
//   rand:   rand(7):bf16[128,64]                of reproducible numbers, floats in [-1, 1), integers in [-8, 8) or [0, 16)
//   i32:[1,2,3]   fp32:[[1,2],[3,4]]            array of these elements
//   [ptr:x, ptr:y]   u64:[ptr:x@*]              array of addresses, i64 unless it is said to be u64; of all ranks' copies
//   symm:@x.npy   symm:zeros:fp32[128]          the same on the symmetric heap
//   desc[64,32]@x.npy   desc[64,32]:zeros:bf16[100,70]    a descriptor of the array for tiles of 64 x 32; desc[64,32,nan] pads
//                                               with NaN; symm: stands after the colon
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_VALUES_ARGUMENTTEXT_H
#define DITRON_VALUES_ARGUMENTTEXT_H

#include "ditron/values/ArrayText.h"

namespace ditron::values {

using ArgumentText = std::variant<runtime::Argument, ArrayText, AddressText>;

/// `name` is the parameter, `numRanks` what ptr:x@* is expanded to.
Expected<ArgumentText> parseArgumentText(std::string_view name, std::string_view text, uint32_t numRanks = 1);

} // namespace ditron::values
#endif // DITRON_VALUES_ARGUMENTTEXT_H
