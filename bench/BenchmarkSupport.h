//===- BenchmarkSupport.h - Errors inside benchmarks --------------------------------------------------------*- C++ -*-===//
//
// A benchmark whose set-up or run fails must say so and stop: a figure of a failed run would be worse than none.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_BENCH_BENCHMARKSUPPORT_H
#define DITRON_BENCH_BENCHMARKSUPPORT_H

#include "ditron/support/Status.h"

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>

namespace ditron::bench {

inline void require(const Status &status) {
  if (status.isOk())
    return;
  std::fprintf(stderr, "%s: %s\n", std::string(toString(status.code())).c_str(), status.message().c_str());
  std::exit(1);
}

template <typename T> T require(Expected<T> expected) {
  require(expected.status());
  return std::move(expected).value();
}

} // namespace ditron::bench
#endif // DITRON_BENCH_BENCHMARKSUPPORT_H
