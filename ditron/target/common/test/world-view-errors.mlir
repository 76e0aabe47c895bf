// Kernels that nobody told where they run.
// RUN: ditron-opt %s --ditron-to-llvm=target=sim --split-input-file --verify-diagnostics

func.func @other(%team: i32) -> i32 {
  // expected-error @below {{needs the world view as the kernel's last argument; run dist-lower-world first}}
  // expected-error @below {{failed to legalize operation 'dist.team_rank'}}
  %r = dist.team_rank %team
  return %r : i32
}

// -----

func.func @nothing() {
  %team = arith.constant 0 : i32
  // expected-error @below {{needs the world view as the kernel's last argument; run dist-lower-world first}}
  // expected-error @below {{failed to legalize operation 'dist.team_size'}}
  %r = dist.team_size %team
  return
}
