//===- verifier_test.cpp - What the compiler says about threads, signals and waits ----------------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

class Verifier : public KernelTest {
protected:
  Status compile(std::string_view body, const jit::CallArguments &arguments) {
    return launch(fmt::format("\n@triton.jit\ndef kernel({}", body), "kernel", {}, arguments);
  }
  /// The message is a compile error with a caret, and has these parts in this order.
  void expectRefused(std::string_view body, const std::vector<std::string> &parts) {
    SymmetricBuffer words = symmetric(DataType::I32, 64, "words");
    Buffer data = zeros(DataType::F32, 256);
    Status status = compile(body, {{words.on(0), data, 1}, {}});
    EXPECT_EQ(status.code(), StatusCode::CompileError) << body;
    size_t at = 0;
    for (const std::string &part : parts) {
      size_t found = status.message().find(part, at);
      ASSERT_NE(found, std::string::npos) << part << "\nis not (or not there) in\n" << status.message();
      at = found + 1;
    }
    EXPECT_NE(status.message().find("^~"), std::string::npos);
  }
  void expectAccepted(std::string_view body) {
    SymmetricBuffer words = symmetric(DataType::I32, 64, "words");
    Buffer data = zeros(DataType::F32, 256);
    EXPECT_OK(compile(body, {{words.on(0), data, 1}, {}}));
    EXPECT_OK(world().synchronize());
  }
};

TEST_F(Verifier, BlockOperationsOfSomeThreads) {
  expectRefused(R"(words, data, n):
    thread = tid(0)
    if thread == n:
        __syncthreads()
)",
                {"kernel.py:", "error: all threads of the block perform __syncthreads together, but only some of them arrive here",
                 "        __syncthreads()\n        ^~", "note: because this condition differs between threads", "if thread == n:",
                 "note: it depends on tid", "thread = tid(0)"});
  expectRefused(R"(words, data, n):
    for i in range(laneid(), 64, 32):
        tl.store(data + tl.arange(0, 64), 1.0)
)",
                {"error: all threads of the block perform tl.store of a block together", "because this condition differs between threads"});
  expectRefused(R"(words, data, n):
    x = tl.load(data + tl.arange(0, 64))
    if tid(0) < 16:
        x = x + 1
    tl.store(data + tl.arange(0, 64), x)
)",
                {"error: only some threads of the block come through here, but a tile gets another value", "if tid(0) < 16:"});
  expectAccepted(R"(words, data, n):
    thread = tid(0)
    value = 0
    if thread == 0:
        value = tl.load(words)
        st(words + 1, value + n)
    __syncthreads()
    tl.store(data + tl.arange(0, 64), 1.0)
)");
}

TEST_F(Verifier, ScopesTowardsOtherRanks) {
  expectRefused(R"(words, data, n):
    peer = dl.symm_at(words, n - 1)
    for i in range(0, 4):
        if tid(0) == 0:
            st(peer + i, 1, scope="gpu", semantic="release")
)",
                {"error: this store releases at scope 'gpu' through a pointer to another rank; another GPU is only reached at scope 'sys'",
                 "st(peer + i, 1", "note: the pointer comes from here", "peer = dl.symm_at(words, n - 1)"});
  expectRefused(R"(words, data, n):
    place = words
    if tl.load(words) > 5:
        place = dl.symm_at(words, n)
    tl.atomic_add(place, 1)
)",
                {"error: this atomic operation works at scope 'gpu' through a pointer to another rank", "note: the pointer comes from here"});
  expectAccepted(R"(words, data, n):
    peer = dl.symm_at(words, n - 1)
    if tid(0) == 0:
        st(peer, ld(peer + 1), scope="sys", semantic="release")
        st(peer + 1, 1)
    tl.atomic_add(peer + 2, 1, sem="release", scope="sys")
    atomic_add(dl.symm_at(words, dl.rank()), 1, scope="gpu", semantic="acq_rel")
)");
}

TEST_F(Verifier, OwnersOfSignals) {
  expectRefused(R"(words, data, n):
    pid = tl.program_id(0)
    tl.store(data + pid, 1.0)
    dl.notify(words + 3, n - 1, signal=1, sig_op="set", comm_scope="inter_node")
)",
                {"error: every block of the grid sets this signal word", "dl.notify(words + 3", "note: the grid has several blocks", "tl.program_id(0)"});
  expectRefused(R"(words, data, n):
    pid = tl.program_id(0)
    if pid == 0:
        dl.notify(words + 3, n - 1, signal=1, sig_op="set")
    elif pid == 1:
        dl.notify(words + 2 + 1, n - 1, signal=2, sig_op="set")
)",
                {"error: a signal word that is set has one owner, but another block sets this one too", "signal=2", "note: here", "signal=1"});
  expectAccepted(R"(words, data, n):
    pid = tl.program_id(0)
    tl.store(data + pid, 1.0)
    dl.notify(words + pid, n - 1, signal=1, sig_op="set")
    dl.notify(words + 8, n - 1, signal=1, sig_op="add")
    if pid == 0:
        dl.notify(words + 9, n - 1, signal=1, sig_op="set")
    if atomic_add(words + 10, 1) == num_threads() - 1:
        st(words + 11, 1, scope="sys", semantic="release")
)");
}

TEST_F(Verifier, TokensOfWaits) {
  expectRefused(R"(words, data, n):
    token = dl.wait(words, 1, "gpu", "acquire", waitValue=0)
    x = tl.load(data + tl.arange(0, 64))
    tl.store(data + 64 + tl.arange(0, 64), x)
)",
                {"error: the token of this wait is never consumed", "token = dl.wait(words", "note: the load is here", "tl.load(data"});
  expectRefused(R"(words, data, n):
    token = dl.wait(words, 1, "gpu", "acquire", waitValue=0)
    ready = dl.consume_token(data, token)
    tl.store(data + 64, tl.load(data))
)",
                {"error: the token of this wait is never consumed", "note: the load is here", "note: the result of this consume_token is not used",
                 "ready = dl.consume_token(data, token)"});
  expectAccepted(R"(words, data, n):
    dl.wait(words, 1, "gpu", "acquire", waitValue=0)
    tl.store(data + 64, tl.load(data))
    token = dl.wait(words, 1, "gpu", "acquire", waitValue=0)
    __syncthreads()
    tl.store(data + 65, tl.load(data + 1))
    token = dl.wait(words, 1, "gpu", "acquire", waitValue=0)
    ready = dl.consume_token(data, token)
    tl.store(data + 66, tl.load(ready + 2))
    token = dl.wait(words, 1, "gpu", "acquire", waitValue=0)
)");
}

} // namespace
} // namespace ditron::e2e
