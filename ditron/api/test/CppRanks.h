//===- CppRanks.h - Two simulated ranks with arrays of the test's own ------------------------------------------*- C++ -*-===//
#ifndef DITRON_API_TEST_CPPRANKS_H
#define DITRON_API_TEST_CPPRANKS_H

#include <ditron/ditron.hpp>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace ditron::api::test {

inline constexpr uint32_t ranks = 2;

class CppRanks : public testing::Test {
protected:
  void SetUp() override {
    Context::Options options;
    options.target = "sim:sm_80";
    options.ranks = ranks;
    context.emplace(Context::create(options).value());
    for (uint32_t rank = 0; rank < ranks; ++rank)
      streams.push_back(context->stream(rank).value());
  }
  /// The ranks' kernels may touch the values where they lie, as long as `lent` has them.
  template <typename T> T *lend(uint32_t rank, std::vector<T> &values) {
    lent.push_back(context->adopt(rank, values.data(), values.size() * sizeof(T), "x").value());
    return values.data();
  }

  std::optional<Context> context;
  std::vector<Stream> streams;
  std::vector<Memory> lent;
};

} // namespace ditron::api::test

#endif // DITRON_API_TEST_CPPRANKS_H
