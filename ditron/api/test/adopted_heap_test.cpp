//===- adopted_heap_test.cpp - Symmetric memory of the caller's, through the C interface -------------------------------===//
#include "ditron/api/test/ApiTest.h"

#include <cstring>
#include <memory>

namespace ditron::api::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char *tellSource =
    "import triton\nimport triton.language as tl\nimport triton_dist.language as dl\n\n@triton.jit\ndef tell(X):\n"
    "    rank = dl.rank()\n    size = dl.num_ranks()\n"
    "    tl.store(dl.symm_at(X, (rank + 1) % size), rank * 10 + size)\n";

/// Two pieces of host memory at no common distance from anything, as PyTorch's symmetric memory would be.
class ApiAdoptedHeap : public Api {
protected:
  static constexpr uint64_t bytes = 1 << 16, reserved = 1000;

  void SetUp() override {
    Api::SetUp();
    for (int rank : {0, 1}) {
      pieces[rank] = std::make_unique<char[]>(bytes + 4096);
      std::memset(pieces[rank].get(), 0x55, bytes + 4096);
      addresses[rank] = pieces[rank].get() + (64 - reinterpret_cast<uintptr_t>(pieces[rank].get()) % 64) + rank * 1024;
    }
    DITRON_INIT(heap);
    heap.addresses = addresses;
    heap.count = 2;
    heap.bytes = bytes;
    heap.reserved_bytes = reserved;
    heap.name = "torch buffer";
  }
  int64_t &word(uint32_t rank, uint64_t offset) {
    return *reinterpret_cast<int64_t *>(static_cast<char *>(addresses[rank]) + offset);
  }
  /// Every rank of the context tells its neighbour, in the neighbour's copy of the word that is `own` on each.
  void tell(ditron_context_h of, void *const own[2]) {
    ditron_source_t source;
    DITRON_INIT(source);
    source.path = "tell.py";
    source.text = tellSource;
    ditron_kernel_h kernel = nullptr;
    ASSERT_DONE(ditron_kernel_load(of, &source, "tell", &kernel));
    for (uint32_t rank = 0; rank < 2; ++rank) {
      ditron_stream_h stream = nullptr;
      ASSERT_DONE(ditron_stream_create(of, rank, "tell", &stream));
      const ditron_launch_t launch = launchOf(1);
      const ditron_argument_t argument = pointer(own[rank], DITRON_I64);
      EXPECT_DONE(ditron_kernel_launch(kernel, stream, &launch, &argument, 1));
      ditron_stream_destroy(stream);
    }
    ditron_kernel_destroy(kernel);
  }

  std::unique_ptr<char[]> pieces[2];
  void *addresses[2] = {};
  ditron_symmetric_heap_t heap;
};

TEST_F(ApiAdoptedHeap, KernelsReachPeersInTheCallersOwnDataAndInWhatIsCutOffBehindIt) {
  ditron_context_h adopted = nullptr;
  ASSERT_DONE(ditron_context_adopt_symmetric(context, &heap, &adopted));
  EXPECT_EQ(ditron_context_ranks(adopted), 2u);
  ditron_memory_h words = nullptr;
  ASSERT_DONE(ditron_memory_allocate_symmetric(adopted, 64, "words", &words));
  const auto offsetOn = [&](uint32_t rank) {
    return static_cast<char *>(ditron_memory_address(words, rank)) - static_cast<char *>(addresses[rank]);
  };
  EXPECT_GE(offsetOn(0), static_cast<int64_t>(reserved));
  EXPECT_EQ(offsetOn(0), offsetOn(1));
  for (uint32_t rank : {0, 1})
    EXPECT_EQ(word(rank, offsetOn(rank)), 0); // cleared
  void *const cut[2] = {ditron_memory_address(words, 0), ditron_memory_address(words, 1)};
  void *const data[2] = {&word(0, 8), &word(1, 8)};
  tell(adopted, data);
  tell(adopted, cut);
  ASSERT_DONE(ditron_context_synchronize(context));
  for (uint32_t rank : {0, 1}) {
    const int64_t told = (1 - rank) * 10 + 2;
    EXPECT_EQ(word(rank, 8), told);
    EXPECT_EQ(word(rank, offsetOn(rank)), told);
    EXPECT_EQ(word(rank, 0), 0x5555555555555555); // the caller's
    EXPECT_EQ(word(rank, 16), 0x5555555555555555);
  }
  ditron_memory_destroy(words);
  ditron_context_destroy(adopted);
}

TEST_F(ApiAdoptedHeap, TheContextsOwnSymmetricMemoryStaysWhatItWas) {
  ditron_context_h adopted = nullptr;
  ASSERT_DONE(ditron_context_adopt_symmetric(context, &heap, &adopted));
  ditron_memory_h own = nullptr;
  ASSERT_DONE(ditron_memory_allocate_symmetric(context, 64, "own", &own));
  void *const places[2] = {ditron_memory_address(own, 0), ditron_memory_address(own, 1)};
  void *const data[2] = {&word(0, 8), &word(1, 8)};
  tell(context, places);
  tell(adopted, data);
  ASSERT_DONE(ditron_context_synchronize(context));
  for (uint32_t rank : {0, 1}) {
    int64_t told = 0;
    ASSERT_DONE(ditron_memory_download(own, rank, 0, &told, 8));
    EXPECT_EQ(told, (1 - rank) * 10 + 2);
    EXPECT_EQ(word(rank, 8), told);
  }
  // An address of the one memory means nothing in the other: on simulated ranks that is an error.
  tell(adopted, places);
  EXPECT_EQ(ditron_context_synchronize(context), DITRON_OUT_OF_BOUNDS);
  EXPECT_THAT(lastMessage(), HasSubstr("tell.py:9"));
  ditron_memory_destroy(own);
  ditron_context_destroy(adopted);
}

TEST_F(ApiAdoptedHeap, PiecesAreGivenBackWithTheLastOfWhatWasMadeFromThem) {
  ditron_context_h adopted = nullptr, again = nullptr;
  ASSERT_DONE(ditron_context_adopt_symmetric(context, &heap, &adopted));
  ditron_memory_h words = nullptr;
  ASSERT_DONE(ditron_memory_allocate_symmetric(adopted, 64, "words", &words));
  ditron_context_destroy(adopted);
  EXPECT_NE(ditron_memory_address(words, 1), nullptr);
  ditron_memory_destroy(words);
  // A larger range around the first one can be adopted only when that has been given back.
  heap.bytes += 1024;
  ASSERT_DONE(ditron_context_adopt_symmetric(context, &heap, &again));
  ditron_context_destroy(again);
}

TEST_F(ApiAdoptedHeap, WhatCannotBeAHeapIsNamed) {
  ditron_context_h adopted = nullptr;
  const auto refused = [&] { return ditron_context_adopt_symmetric(context, &heap, &adopted); };
  heap.count = 1;
  EXPECT_EQ(refused(), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(lastMessage(), HasSubstr("torch buffer: 1 addresses for 2 ranks"));
  heap.count = 2;
  void *const first = addresses[0], *const second = addresses[1];
  addresses[1] = static_cast<char *>(second) + 8;
  EXPECT_EQ(refused(), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(lastMessage(), AllOf(HasSubstr("the part of rank 1"), HasSubstr("behind a multiple of 16")));
  addresses[1] = nullptr;
  EXPECT_EQ(refused(), DITRON_INVALID_ARGUMENT);
  addresses[1] = static_cast<char *>(first) + 512;
  EXPECT_EQ(refused(), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(lastMessage(), HasSubstr("the parts of ranks 0 and 1 overlap"));
  addresses[1] = second;
  heap.reserved_bytes = bytes + 1;
  EXPECT_EQ(refused(), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(lastMessage(), HasSubstr("65536 bytes, of which 65537 are reserved"));
  heap.reserved_bytes = bytes; // no room for the words of the barriers
  EXPECT_EQ(refused(), DITRON_RESOURCE_EXHAUSTED);
  EXPECT_THAT(lastMessage(), AllOf(HasSubstr("team barriers"), HasSubstr("torch buffer has 65536 per rank")));
  heap.reserved_bytes = reserved;
  ASSERT_DONE(refused()); // nothing of the refused ones is left
  ditron_memory_h words = nullptr;
  EXPECT_EQ(ditron_memory_allocate_symmetric(adopted, bytes, "words", &words), DITRON_RESOURCE_EXHAUSTED);
  EXPECT_THAT(lastMessage(), HasSubstr("cannot allocate 'words': 65536 bytes"));
  ditron_context_destroy(adopted);
  EXPECT_EQ(ditron_context_adopt_symmetric(context, nullptr, &adopted), DITRON_INVALID_ARGUMENT);
}

} // namespace
} // namespace ditron::api::test
