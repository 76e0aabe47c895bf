//===- misuse_test.cpp - Distributed operators that are called wrongly --------------------------------------------===//
//
// Over all operators of OperatorUnderContract.h: ranks that die, do not come, or call with other sizes or in another order; memory
// that is gone, too small, misaligned or of another rank; ranks and streams that are not the operator's; captures without prepare.
// Each ends in an error that says what is wrong and whose doing it is, and leaves nobody waiting.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "contracts/OperatorUnderContract.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class OperatorMisuse : public KernelTest, public testing::WithParamInterface<ContractEntry> {
protected:
  static constexpr uint32_t ranks = 3;
  /// The call whose every rank has work to do.
  const CallSizes &sizes() const { return GetParam().typical[2]; }

  void SetUp() override {
    if (!isSimulated())
      GTEST_SKIP() << "on a GPU some of these end the process's context";
    start(ranks, seeded(31));
    make(world());
  }
  void start(uint32_t count, WorldOptions options) {
    makeNodes(GetParam(), options);
    KernelTest::start(count, options);
  }
  void make(World &in) {
    ContractChoice choice;
    choice.dtype = GetParam().dtypes.front();
    for (const CallSizes &each : GetParam().typical)
      choice.most = {std::max(choice.most.m, each.m), std::max(choice.most.n, each.n), std::max(choice.most.k, each.k)};
    auto made = GetParam().make(in, choice);
    ASSERT_OK(made);
    op = std::move(made).value();
    call = makeCall(in, sizes());
  }
  std::unique_ptr<ContractCall> makeCall(World &in, const CallSizes &of) {
    auto made = ContractCall::create(in, *op, of);
    EXPECT_OK(made);
    EXPECT_OK(made->upload(0));
    return std::make_unique<ContractCall>(std::move(made).value());
  }
  /// Everybody calls; rank `wrong` with what `change` makes of the addresses.
  template <typename Change> Status callAll(uint32_t wrong, const Change &change) {
    for (uint32_t r = 0; r < ranks; ++r) {
      std::vector<Pointer> addresses = call->addresses(r);
      if (r == wrong)
        change(addresses);
      DITRON_RETURN_IF_ERROR(op->enqueue(rank(r), rank(r).stream(), addresses, sizes()));
    }
    return world().synchronize();
  }
  Status oneCall(uint32_t r) { return call->enqueue(*op, rank(r), rank(r).stream()); }
  /// The operator has taken no harm.
  void expectItStillWorks() {
    for (uint32_t r = 0; r < ranks; ++r)
      ASSERT_OK(oneCall(r));
    ASSERT_OK(world().synchronize());
    call->check("afterwards");
  }

  std::unique_ptr<OperatorUnderContract> op;
  std::unique_ptr<ContractCall> call;
};

INSTANTIATE_TEST_SUITE_P(All, OperatorMisuse, testing::ValuesIn(operatorsUnderContract()),
                         [](const auto &info) { return info.param.name; });

/// Rank 1's kernel dies in the middle of a call: all ranks end, with an error that names it.
TEST_P(OperatorMisuse, FreedMemory) {
  const Status status = callAll(1, [&](std::vector<Pointer> &addresses) {
    Buffer gone = zeros(addresses.back().type, 1 << 20, "freed operand", 1);
    addresses.back() = gone;
  });
  EXPECT_EQ(status.code(), StatusCode::OutOfBounds) << status.message();
  if (const std::string &name = GetParam().name;
      name == "gemm_all_reduce_two_shot" || name == "gemm_all_reduce_pushed") {
    const std::string_view copy = name == "gemm_all_reduce_pushed" ? "sums_fetch" : "ar_fetch";
    // The result is the destination of copies, which are looked at before anything is enqueued: rank 1 can still make its call.
    EXPECT_THAT(status.message(), AllOf(HasSubstr(fmt::format("destination of copy {}", copy)),
                                        HasSubstr("of rank 1 are freed memory"), HasSubstr("freed operand")));
    for (uint32_t r : {1u, 2u})
      ASSERT_OK(oneCall(r));
    ASSERT_OK(world().synchronize());
    call->check("after the refusal");
    return;
  }
  EXPECT_THAT(status.message(), AllOf(HasSubstr("rank 1"), HasSubstr("use after free"), HasSubstr("freed operand")));
  EXPECT_EQ(oneCall(0).message(), status.message()) << "the run stays ended";
}

TEST_P(OperatorMisuse, MemoryThatIsTooSmall) {
  const std::vector<Pointer> own = call->addresses(1);
  for (size_t operand : {size_t{0}, own.size() - 1}) {
    if (operand > 0) {
      start(ranks, seeded(32));
      make(world());
    }
    Buffer small;
    const uint32_t wrong = operand == 0 ? 0 : 1; // what is broadcast is read by rank 0 only
    const Status status = callAll(wrong, [&](std::vector<Pointer> &addresses) {
      small = zeros(addresses[operand].type, 3, "small operand", wrong);
      addresses[operand] = small;
    });
    EXPECT_EQ(status.code(), StatusCode::OutOfBounds) << status.message();
    EXPECT_THAT(status.message(), AllOf(HasSubstr(fmt::format("rank {}", wrong)), HasSubstr("small operand")))
        << "operand " << operand;
  }
}

TEST_P(OperatorMisuse, MemoryOfAnotherRank) {
  const Status status =
      callAll(1, [&](std::vector<Pointer> &addresses) { addresses.back() = call->addresses(2).back(); });
  EXPECT_EQ(status.code(), StatusCode::OutOfBounds) << status.message();
  EXPECT_THAT(status.message(), AllOf(HasSubstr("rank 1"), HasSubstr("rank 2")));
}

/// Found by the host, before anything is enqueued anywhere.
TEST_P(OperatorMisuse, AddressesThatCannotBe) {
  const std::vector<Pointer> right = call->addresses(0);
  for (size_t operand = 0; operand < right.size(); ++operand) {
    std::vector<Pointer> addresses = right;
    const auto refused = [&](Pointer pointer) {
      addresses[operand] = pointer;
      const Status status = op->enqueue(rank(0), rank(0).stream(), addresses, sizes());
      EXPECT_EQ(status.code(), StatusCode::InvalidArgument) << "operand " << operand << ": " << status.message();
      return status.message();
    };
    EXPECT_THAT(refused({nullptr, right[operand].type}), HasSubstr("null"));
    EXPECT_THAT(refused(right[operand].as(DataType::I64)),
                AllOf(HasSubstr("i64"), HasSubstr(toString(right[operand].type))));
    EXPECT_THAT(refused({static_cast<std::byte *>(right[operand].address) + 1, right[operand].type}),
                HasSubstr("multiple of"));
  }
  expectItStillWorks();
}

TEST_P(OperatorMisuse, CaptureWithoutPrepare) {
  ASSERT_OK(rank(0).stream().beginCapture());
  const Status status = oneCall(0);
  EXPECT_EQ(status.code(), StatusCode::InvalidArgument) << status.message();
  EXPECT_THAT(status.message(), AllOf(HasSubstr("prepare"), HasSubstr(std::to_string(sizes().m))));
  EXPECT_THAT(status.message(), testing::Not(HasSubstr("of ,")));
  (void)rank(0).stream().endCapture();
  expectItStillWorks();
}

/// Of a world that the operator was not made for, with a number that its own world has or not.
TEST_P(OperatorMisuse, RanksOfAnotherWorld) {
  auto group = world().group({2, 1});
  ASSERT_OK(group);
  make(**group);
  for (uint32_t r : {2u, 1u}) {
    const Status status = op->enqueue(rank(r), rank(r).stream(), call->addresses(0), sizes());
    EXPECT_EQ(status.code(), StatusCode::InvalidArgument) << status.message();
    EXPECT_THAT(status.message(), AllOf(HasSubstr("another world"), HasSubstr(fmt::format("rank {}", r))));
    EXPECT_THAT(op->prepare(rank(r), sizes()).message(), HasSubstr("another world"));
  }
  call.reset();
  op.reset();
}

TEST_P(OperatorMisuse, StreamsOfAnotherRank) {
  const Status status = call->enqueue(*op, rank(0), rank(1).stream());
  EXPECT_EQ(status.code(), StatusCode::InvalidArgument) << status.message();
  EXPECT_THAT(status.message(), AllOf(HasSubstr("rank 0"), HasSubstr("rank 1")));
  expectItStillWorks();
}

/// A stream belongs to a device: that of the world is as good as the group's own.
TEST_P(OperatorMisuse, StreamsOfTheWorldServeItsGroups) {
  auto group = world().group({2, 1});
  ASSERT_OK(group);
  make(**group);
  for (uint32_t r : {0u, 1u})
    ASSERT_OK(call->enqueue(*op, (*group)->rank(r), rank(2 - r).stream()));
  ASSERT_OK(world().synchronize());
  call->check("on the world's streams");
  call.reset();
  op.reset();
}

TEST_P(OperatorMisuse, ARankThatDoesNotCall) {
  for (uint32_t r : {0u, 2u})
    ASSERT_OK(oneCall(r));
  const Status status = world().synchronize();
  EXPECT_EQ(status.code(), StatusCode::Deadlock) << status.message();
  EXPECT_THAT(status.message(), HasSubstr("rank 1:\n    idle"));
}

/// Rank 1's host code ends with an error instead of its call.
TEST_P(OperatorMisuse, AHostThatGivesUp) {
  const Status status = world().runRanks([&](Rank &me) -> Status {
    if (me.id() == 1)
      return invalidArgument("rank 1 has run out of tokens");
    DITRON_RETURN_IF_ERROR(oneCall(me.id()));
    return me.stream().synchronize();
  });
  EXPECT_FALSE(status.isOk());
  EXPECT_THAT(status.message(), HasSubstr("rank 1 has run out of tokens"));
}

/// Either somebody waits for ever, which the simulator explains, or somebody says what is wrong; never a result that is wrong.
TEST_P(OperatorMisuse, OtherSizes) {
  if (GetParam().sizesMayDiffer)
    GTEST_SKIP() << "ranks may differ in sizes";
  for (const CallSizes &other : {GetParam().typical[0], GetParam().typical[1]}) {
    start(ranks, seeded(33));
    make(world());
    std::unique_ptr<ContractCall> otherCall = makeCall(world(), other);
    for (uint32_t r = 0; r < ranks; ++r)
      ASSERT_OK((r == 1 ? *otherCall : *call).enqueue(*op, rank(r), rank(r).stream()));
    const Status status = world().synchronize();
    EXPECT_FALSE(status.isOk()) << GetParam().name << ": rank 1 had " << other.text() << " where the others had "
                                << sizes().text();
  }
}

TEST_P(OperatorMisuse, AnotherOrder) {
  if (GetParam().sizesMayDiffer)
    GTEST_SKIP() << "ranks may differ in sizes";
  std::unique_ptr<ContractCall> otherCall = makeCall(world(), GetParam().typical[1]);
  for (uint32_t r = 0; r < ranks; ++r) {
    ASSERT_OK((r == 1 ? *otherCall : *call).enqueue(*op, rank(r), rank(r).stream()));
    ASSERT_OK((r == 1 ? *call : *otherCall).enqueue(*op, rank(r), rank(r).stream()));
  }
  const Status status = world().synchronize();
  EXPECT_FALSE(status.isOk()) << GetParam().name;
}

/// On one stream each.
TEST_P(OperatorMisuse, OperatorsInAnotherOrder) {
  std::unique_ptr<OperatorUnderContract> first = std::move(op);
  std::unique_ptr<ContractCall> firstCall = std::move(call);
  make(world());
  for (uint32_t r = 0; r < ranks; ++r) {
    if (r != 1)
      ASSERT_OK(firstCall->enqueue(*first, rank(r), rank(r).stream()));
    ASSERT_OK(oneCall(r));
    if (r == 1)
      ASSERT_OK(firstCall->enqueue(*first, rank(r), rank(r).stream()));
  }
  const Status status = world().synchronize();
  EXPECT_EQ(status.code(), StatusCode::Deadlock) << status.message();
  EXPECT_THAT(status.message(), AllOf(HasSubstr("waits for"), HasSubstr("rank 1")));
}

} // namespace
} // namespace ditron::e2e
