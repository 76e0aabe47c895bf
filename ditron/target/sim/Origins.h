//===- Origins.h - What the addresses of accesses are made from -------------------------------------------*- C++ -*-===//
//
// A kernel's pointer leads into what it was made from: the array that an argument points to, or an array in shared memory. Where every way to
// an access's address begins at one of these, the access's site says so (DitronSimOrigin), and the simulator reports an access that has left
// it, wherever it has got to.
//
// Done on optimised LLVM IR: there aggregates of pointers have become single ones, functions are inlined, and what is left are additions,
// choices and loops. Addresses that are loaded, made from integers, or come from two arguments have no origin.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_SIM_ORIGINS_H
#define DITRON_TARGET_SIM_ORIGINS_H

namespace llvm {
class Module;
} // namespace llvm

namespace ditron::target {

/// A function that gives its first argument, the address of an array in shared memory; then follow its offset there, its bytes, and the
/// line that asks for it.
inline constexpr char sharedArrayName[] = "ditron_kernel_shared_array";

/// Gives sites their origins, and takes out the calls that mark arrays in shared memory.
void nameOrigins(llvm::Module &module);

} // namespace ditron::target

#endif // DITRON_TARGET_SIM_ORIGINS_H
