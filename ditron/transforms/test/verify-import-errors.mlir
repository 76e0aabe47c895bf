// What no importer makes.
// RUN: ditron-opt %s --tile-verify-import --split-input-file --verify-diagnostics

func.func @dialect() {
  // expected-error @below {{compiler bug: llvm.mlir.zero after import; tile, dist, arith, math, scf, func and ub are expected there}}
  %0 = llvm.mlir.zero : !llvm.ptr
  return
}

// -----

func.func @location() {
  // expected-error @unknown {{compiler bug: arith.constant does not say where in the kernel's file it comes from}}
  %0 = arith.constant 0 : i32 loc(unknown)
  return
}
