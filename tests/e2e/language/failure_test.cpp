//===- failure_test.cpp - What a user is told when something is wrong -------------------------------------------------===//
//
// Wrong kernels, wrong arguments, wrong protocols: each must end in an error that names the source line and what to look at,
// never in a crash, a hang or a wrong result.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Failure : public KernelTest {
protected:
  void SetUp() override {
    if (!isSimulated())
      GTEST_SKIP() << "the simulator's diagnostics; on a GPU some of these end the process's context";
  }
  /// "kernel.py:LINE:" for a line of the test's text, which begins with an empty line.
  static std::string at(uint32_t line) { return fmt::format("kernel.py:{}:", prologueLines() + line); }
};

const char *const copyKernel = R"(
@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, x, mask=i < n)
)";

TEST_F(Failure, LoadOutOfBounds) {
  Buffer x = zeros(DataType::F32, 200, "weights"), out = zeros(DataType::F32, 256, "out");
  Status status = run(copyKernel, "copy", {.grid = {2, 1, 1}}, {{x, out, 200}, {{"BLOCK", 128}}});
  EXPECT_EQ(status.code(), StatusCode::OutOfBounds);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr(at(5)), HasSubstr("kernel copy"), HasSubstr("rank 0"), HasSubstr("block (1,0,0)"),
                    HasSubstr("thread "), HasSubstr("load of"), HasSubstr("weights (800 bytes")));
  // The world stays ended, with the same error.
  EXPECT_EQ(world().status().message(), status.message());
}

TEST_F(Failure, StoreOutOfBoundsOnAnotherRank) {
  start(2);
  Buffer x = zeros(DataType::F32, 256, "x", 1), out = zeros(DataType::F32, 100, "results", 1);
  Status status = run(copyKernel, "copy", {.numWarps = 1}, {{x, out, 128}, {{"BLOCK", 128}}}, 1);
  EXPECT_EQ(status.code(), StatusCode::OutOfBounds);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr(at(6)), HasSubstr("rank 1"), HasSubstr("store of"), HasSubstr("results (400 bytes")));
}

TEST_F(Failure, OutOfBoundsInACalledFunctionNamesItsOwnLine) {
  const char *text = R"(
@triton.jit
def read(p, at):
    return tl.load(p + at)

@triton.jit
def outer(x_ptr, out_ptr, at):
    tl.store(out_ptr, read(x_ptr, at))
)";
  Buffer x = zeros(DataType::I32, 10, "table"), out = zeros(DataType::I32, 1, "out");
  Status status = run(text, "outer", {.numWarps = 1}, {{x, out, 10}, {}});
  EXPECT_EQ(status.code(), StatusCode::OutOfBounds);
  EXPECT_THAT(status.message(), AllOf(HasSubstr(at(4)), HasSubstr("just past the end of table (40 bytes")));
}

TEST_F(Failure, AsynchronousCopiesAreCheckedToo) {
  const char *text = R"(
@triton.jit
def product(a_ptr, b_ptr, c_ptr, steps, S: tl.constexpr):
    i = tl.arange(0, S)
    at = i[:, None] * S + i[None, :]
    acc = tl.zeros((S, S), tl.float32)
    for k in range(steps):
        a = tl.load(a_ptr + k * S * S + at)
        b = tl.load(b_ptr + k * S * S + at)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + at, acc)
)";
  Buffer a = zeros(DataType::F16, 4 * 32 * 32, "a"), b = zeros(DataType::F16, 3 * 32 * 32, "b"),
         c = zeros(DataType::F32, 32 * 32, "c");
  Status status = run(text, "product", {.numStages = 3}, {{a, b, c, 4}, {{"S", 32}}});
  EXPECT_EQ(status.code(), StatusCode::OutOfBounds);
  EXPECT_THAT(status.message(), AllOf(HasSubstr(at(9)), HasSubstr("has left b (rank 0, 6144 bytes)")));
}

TEST_F(Failure, UseAfterFree) {
  Buffer out = zeros(DataType::F32, 128, "out");
  Pointer dangling;
  {
    Buffer x = zeros(DataType::F32, 128, "temporary");
    dangling = x.pointer();
  }
  Status status = run(copyKernel, "copy", {}, {{dangling, out, 128}, {{"BLOCK", 128}}});
  EXPECT_EQ(status.code(), StatusCode::OutOfBounds);
  EXPECT_THAT(status.message(), AllOf(HasSubstr(at(5)), HasSubstr("use after free"), HasSubstr("freed temporary")));
}

TEST_F(Failure, AnotherRanksPrivateMemory) {
  start(2);
  Buffer x = zeros(DataType::F32, 128, "private", 1), out = zeros(DataType::F32, 128, "out", 0);
  Status status = run(copyKernel, "copy", {}, {{x, out, 128}, {{"BLOCK", 128}}}, 0);
  EXPECT_EQ(status.code(), StatusCode::OutOfBounds);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr(at(5)), HasSubstr("not symmetric"), HasSubstr("private"), HasSubstr("rank 1")));
}

/// The README's ring without its notify.
TEST_F(Failure, ForgottenNotifyIsADeadlockWithAReport) {
  const char *text = R"(
@triton.jit
def ring(x_ptr, inbox_ptr, signal_ptr, out_ptr, BLOCK: tl.constexpr):
    right = (dl.rank() + 1) % dl.num_ranks()
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(dl.symm_at(inbox_ptr, right) + i, x)
    if dl.rank() != 1:
        dl.notify(signal_ptr + 3, right, signal=5, sig_op="set", comm_scope="intra_node")
    token = dl.wait(signal_ptr + 3, 1, "sys", "acquire", waitValue=5)
    inbox_ptr = dl.consume_token(inbox_ptr, token)
    tl.store(out_ptr + i, x + tl.load(inbox_ptr + i))
)";
  for (uint64_t seed : {1, 2}) {
    start(4, seeded(seed));
    SymmetricBuffer inbox = symmetric(DataType::F32, 64, "inbox"), signal = symmetric(DataType::I64, 4, "ring_signal");
    std::vector<Buffer> x, out;
    for (uint32_t r = 0; r < 4; ++r) {
      x.push_back(zeros(DataType::F32, 64, "x", r));
      out.push_back(zeros(DataType::F32, 64, "out", r));
      ASSERT_OK(launch(text, "ring", {}, {{x[r], inbox.on(r), signal.on(r), out[r]}, {{"BLOCK", 64}}}, r));
    }
    Status status = world().synchronize();
    EXPECT_EQ(status.code(), StatusCode::Deadlock);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("deadlock"), HasSubstr("rank 2, kernel ring at " + at(10)), HasSubstr("block (0,0,0)"),
                      HasSubstr("waits for ring_signal[3] on rank 2: has 0, wants == 5"), HasSubstr("never written"),
                      HasSubstr("what the ranks are doing"), HasSubstr("rank 0:\n    idle")));
  }
}

TEST_F(Failure, WrongValueIsADeadlockThatTellsWhoWroteIt) {
  const char *text = R"(
@triton.jit
def confused(signal_ptr):
    dl.notify(signal_ptr, 1 - dl.rank(), signal=2, sig_op="set", comm_scope="intra_node")
    dl.wait(signal_ptr, 1, "sys", "acquire", waitValue=3)
)";
  start(2);
  SymmetricBuffer signal = symmetric(DataType::I64, 1, "flag");
  for (uint32_t r = 0; r < 2; ++r)
    ASSERT_OK(launch(text, "confused", {.numWarps = 1}, {{signal.on(r)}, {}}, r));
  Status status = world().synchronize();
  EXPECT_EQ(status.code(), StatusCode::Deadlock);
  EXPECT_THAT(
      status.message(),
      AllOf(HasSubstr("waits for flag[0] on rank 0: has 2, wants == 3; last written by rank 1, kernel confused"),
            HasSubstr("waits for flag[0] on rank 1: has 2, wants == 3; last written by rank 0, kernel confused"),
            HasSubstr(at(5))));
}

TEST_F(Failure, SpinningThreadsAreADeadlockToo) {
  const char *text = R"(
@triton.jit
def spin(flag_ptr):
    if tid(0) == 0:
        while ld(flag_ptr, scope="sys", semantic="acquire") != 1:
            pass
    __syncthreads()
)";
  Buffer flag = zeros(DataType::I32, 1, "spin_flag");
  Status status = run(text, "spin", {.numWarps = 1}, {{flag}, {}});
  EXPECT_EQ(status.code(), StatusCode::Deadlock);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("spin_flag[0]"), HasSubstr(at(5)), HasSubstr("polls")));
}

TEST_F(Failure, ArgumentsAreCheckedByName) {
  Buffer x = zeros(DataType::F32, 128, "x"), out = zeros(DataType::F32, 128, "out");
  auto message = [&](const jit::CallArguments &arguments) {
    Status status = run(copyKernel, "copy", {}, arguments);
    EXPECT_EQ(status.code(), StatusCode::InvalidArgument) << status.message();
    return status.message();
  };
  EXPECT_THAT(message({{x, out}, {{"BLOCK", 128}}}), AllOf(HasSubstr("copy"), HasSubstr("'n'")));
  EXPECT_THAT(message({{x, out, 5}, {}}), AllOf(HasSubstr("'BLOCK'"), HasSubstr("constexpr")));
  EXPECT_THAT(message({{x, out, 5}, {{"BLOKC", 128}}}), AllOf(HasSubstr("'BLOKC'"), HasSubstr("did you mean 'BLOCK'")));
  EXPECT_THAT(message({{x, out, 5, 128, 9}, {}}), HasSubstr("at most 4"));
  EXPECT_THAT(message({{x, out, 5, 128}, {{"n", 5}}}), AllOf(HasSubstr("several values"), HasSubstr("'n'")));
  EXPECT_THAT(message({{x, out, 5}, {{"BLOCK", x}}}), AllOf(HasSubstr("'BLOCK'"), HasSubstr("compile-time")));
}

TEST_F(Failure, CompiledVariantsCheckTypesAndAlignment) {
  compiler::KernelSource source{"kernel.py", std::string(kernelPrologue) + copyKernel};
  auto function = sharedJit().load(source, "copy");
  ASSERT_OK(function);
  auto kernel = sharedJit().compile(*function, "*fp32:16, *fp32, i32, constexpr BLOCK=64");
  ASSERT_OK(kernel);
  Buffer x = zeros(DataType::F32, 128, "x"), half = zeros(DataType::F16, 128, "half");
  auto message = [&](std::vector<Argument> arguments) {
    Status status = rank().stream().launch(*kernel, {}, arguments);
    EXPECT_EQ(status.code(), StatusCode::InvalidArgument) << status.message();
    return status.message();
  };
  EXPECT_THAT(message({x, half, 5}),
              AllOf(HasSubstr("'out_ptr'"), HasSubstr("expected a fp32 pointer"), HasSubstr("given fp16 pointer")));
  EXPECT_THAT(message({x.pointer() + 1, x, 5}), AllOf(HasSubstr("x_ptr"), HasSubstr("16")));
  EXPECT_THAT(message({x, x}), HasSubstr("n"));
  EXPECT_THAT(message({x, x, int64_t(1) << 40}), AllOf(HasSubstr("'n'"), HasSubstr("i32")));
  EXPECT_OK(rank().stream().launch(*kernel, {}, {x, x, 5}));
  EXPECT_OK(world().synchronize());
}

TEST_F(Failure, CompileErrorsShowTheLineAndACaret) {
  const char *text = R"(
@triton.jit
def inner(x):
    return x + x.missing

@triton.jit
def broken(x_ptr):
    tl.store(x_ptr, inner(tl.load(x_ptr)))
)";
  Buffer x = zeros(DataType::F32, 1, "x");
  Status status = run(text, "broken", {}, {{x}, {}});
  EXPECT_EQ(status.code(), StatusCode::CompileError);
  EXPECT_THAT(status.message(), AllOf(HasSubstr(at(4)), HasSubstr("    return x + x.missing\n"), HasSubstr("^"),
                                      HasSubstr("missing"), HasSubstr("called from here"), HasSubstr(at(8))));
  // The caret stands below the wrong thing.
  std::vector<std::string> lines;
  std::istringstream stream(status.message());
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  for (size_t i = 0; i + 1 < lines.size(); ++i)
    if (size_t column = lines[i].find("x.missing"); column != std::string::npos) {
      size_t caret = lines[i + 1].find('^');
      ASSERT_NE(caret, std::string::npos) << status.message();
      EXPECT_GE(caret, column) << status.message();
      EXPECT_LT(caret, column + 9) << status.message();
    }
}

/// Each mistake of the table is refused while compiling, at its line, with these words.
TEST_F(Failure, MistakesInKernels) {
  struct Mistake {
    const char *statement;
    const char *words;
  };
  const Mistake mistakes[] = {
      {"y = x_ptr + undefined_name", "undefined_name"},
      {"y = tl.arange(0, 100)", "power of 2"},
      {"y = tl.arange(0, n)", "n"},
      {"y = tl.arange(0, 16) + tl.arange(0, 32)", "16"},
      {"y = tl.dot(tl.zeros((16, 16), tl.float16), tl.zeros((32, 16), tl.float16))", "16"},
      {"y = dl.extern_call(\"lib\", \"path\", [n], {}, True)", "extern_call"},
      {"y = tl.exp(n)", "fp32"},
      {"y = tl.cumsums(tl.arange(0, 16), 0)", "cumsum"},
      {"y = n ** 2", "**"},
      {"y = tl.load(n)", "pointer"},
      {"tl.static_assert(False, \"my own words\")", "my own words"},
      {"y = tl.sum(tl.arange(0, 16), axis=3)", "axis"},
      {"for i in range(0, n):\n        return", "return"},
      {"y = tl.load(x_ptr, maks=True)", "mask"},
      {"BLOCK: tl.constexpr = n\n    y = tl.arange(0, BLOCK)", "'end'"},
      {"y = 3 if tl.arange(0, 16) > 2 else 4", "scalar"},
  };
  Buffer x = zeros(DataType::F32, 1, "x");
  for (const Mistake &mistake : mistakes) {
    std::string text =
        fmt::format("@triton.jit\ndef wrong(x_ptr, n):\n    {}\n    tl.store(x_ptr, 1)\n", mistake.statement);
    Status status = run(text, "wrong", {.numWarps = 1}, {{x, 7}, {}});
    EXPECT_EQ(status.code(), StatusCode::CompileError) << mistake.statement << "\n" << status.message();
    EXPECT_THAT(status.message(), AllOf(HasSubstr("kernel.py:"), HasSubstr("^"), HasSubstr(mistake.words)))
        << mistake.statement;
  }
}

TEST_F(Failure, TooMuchSharedMemoryIsAnErrorNotACrash) {
  const char *text = R"(
@triton.jit
def large(a_ptr, b_ptr, c_ptr, steps, S: tl.constexpr):
    i = tl.arange(0, S)
    at = i[:, None] * S + i[None, :]
    acc = tl.zeros((S, S), tl.float32)
    for k in range(steps):
        acc = tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at), acc)
    tl.store(c_ptr + at, acc)
)";
  Buffer a = zeros(DataType::F16, 256 * 256, "a"), c = zeros(DataType::F32, 256 * 256, "c");
  Status status = run(text, "large", {.numWarps = 8, .numStages = 8}, {{a, a, c, 2}, {{"S", 256}}});
  EXPECT_FALSE(status.isOk());
  EXPECT_THAT(status.message(), HasSubstr("shared memory"));
}

/// Values that do not fit registers lie on the threads' stacks: as much as there is works, more is refused.
TEST_F(Failure, LargeTilesOnOneWarpUseTheStackOrAreRefused) {
  const char *text = R"(
@triton.jit
def large(x_ptr, out_ptr, R: tl.constexpr, C: tl.constexpr):
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, x + tl.sum(x, axis=0)[None, :] + tl.sum(x, axis=1)[:, None])
)";
  const int rows = 128, columns = 256;
  std::vector<int32_t> x = convertAll<int32_t>(randomIntegers(rows * columns, 95, -100, 100)), expected(x.size());
  std::vector<int32_t> rowSums(rows), columnSums(columns);
  for (int i = 0; i < rows * columns; ++i)
    rowSums[i / columns] += x[i], columnSums[i % columns] += x[i];
  for (int i = 0; i < rows * columns; ++i)
    expected[i] = x[i] + rowSums[i / columns] + columnSums[i % columns];
  Buffer xb = put(x), out = zeros(DataType::I32, x.size());
  ASSERT_OK(run(text, "large", {.numWarps = 1}, {{xb, out}, {{"R", rows}, {"C", columns}}}));
  expectSame(get<int32_t>(out), expected);
}

//===--- Runs that do not end, tiles that no thread can hold ----------------------------------------------------------===//

TEST_F(Failure, EndlessLoopsAreEndedByTheTimeLimit) {
  const char *text = R"(
@triton.jit
def silent(x_ptr, n):
    i = n
    while i > 0:
        i = tl.maximum(i, 1)
    tl.store(x_ptr, 1)

@triton.jit
def busy(x_ptr, n):
    while n > 0:
        tl.store(x_ptr, tl.load(x_ptr) + 1)

@triton.jit
def counted(x_ptr, n):
    total = 0
    for i in range(0, 2147483647):
        for j in range(0, 2147483647):
            total = (total ^ j) * 3 + i
    tl.store(x_ptr, total)
)";
  const std::pair<const char *, uint32_t> kernels[] = {{"silent", 5}, {"busy", 11}, {"counted", 18}};
  for (auto [kernel, line] : kernels) {
    WorldOptions options;
    options.timeLimitSeconds = 0.2;
    start(2, options);
    Buffer x = zeros(DataType::I32, 1, "x", 1);
    Status status = run(text, kernel, {.numWarps = 1}, {{x, 3}, {}}, 1);
    EXPECT_EQ(status.code(), StatusCode::TimeOut);
    EXPECT_THAT(status.message(), AllOf(HasSubstr(at(line)), HasSubstr(fmt::format("kernel {}, rank 1", kernel)),
                                        HasSubstr("the time limit of 0.2 s has passed, and this loop still runs")));
  }
}

TEST_F(Failure, RanksThatDoNotExist) {
  const char *text = R"(
@triton.jit
def ask(x_ptr, peer):
    tl.store(dl.symm_at(x_ptr, peer), 1)

@triton.jit
def tell(x_ptr, peer):
    dl.notify(x_ptr, peer, signal=1, sig_op="add", comm_scope="intra_node")
)";
  for (auto [kernel, line, function] : {std::tuple("ask", 4, "symm_at"), std::tuple("tell", 8, "notify")})
    for (int peer : {2, -1, 1000000}) {
      start(2);
      SymmetricBuffer x = symmetric(DataType::I32, 4, "x");
      Status status = run(text, kernel, {.numWarps = 1}, {{x.on(0), peer}, {}});
      EXPECT_EQ(status.code(), StatusCode::OutOfBounds);
      EXPECT_THAT(status.message(), AllOf(HasSubstr(at(line)), HasSubstr("rank 0, block (0,0,0), thread 0"),
                                          HasSubstr(fmt::format("{}: rank {} is not one of 0..1", function, peer))));
    }
}

TEST_F(Failure, AccessToAnEmptyArray) {
  Buffer x = zeros(DataType::F32, 0, "nothing"), out = zeros(DataType::F32, 128, "out");
  Status status = run(copyKernel, "copy", {.numWarps = 1}, {{x, out, 128}, {{"BLOCK", 128}}});
  EXPECT_EQ(status.code(), StatusCode::OutOfBounds);
  EXPECT_THAT(status.message(), AllOf(HasSubstr(at(5)), HasSubstr("past the end of nothing (0 bytes")));
}

TEST_F(Failure, TilesThatNoThreadCanHold) {
  Buffer x = zeros(DataType::F32, 1 << 17, "x"), out = zeros(DataType::F32, 1 << 17, "out");
  Status status = run(copyKernel, "copy", {.numWarps = 4}, {{x, out, 1 << 17}, {{"BLOCK", 1 << 18}}});
  EXPECT_EQ(status.code(), StatusCode::ResourceExhausted);
  EXPECT_THAT(status.message(), AllOf(HasSubstr(at(5)),
                                      HasSubstr("the tile pointers[262144] takes 4096 registers of each "
                                                "thread, on 4 warps; at most 2048 are accepted"),
                                      HasSubstr("use smaller tiles or at least 8 warps")));
  // Half the block fits.
  EXPECT_OK(run(copyKernel, "copy", {.numWarps = 4}, {{x, out, 1 << 17}, {{"BLOCK", 1 << 17}}}));
}

} // namespace
} // namespace ditron::e2e
