//===- groups_test.cpp - Groups of ranks through the C interface ------------------------------------------------------===//
#include "ditron/api/test/ApiTest.h"

namespace ditron::api::test {
namespace {

using testing::HasSubstr;

TEST(ApiGroup, TwoGroupsComputeApartFromEachOther) {
  ditron_context_options_t options;
  DITRON_INIT(options);
  options.target = "sim:sm_80";
  options.ranks = 4;
  ditron_context_h whole = nullptr;
  ASSERT_DONE(ditron_context_create(&options, &whole));
  const uint32_t members[2][2] = {{2, 0}, {1, 3}};
  ditron_context_h groups[2] = {};
  std::vector<ditron_stream_h> streams;
  std::vector<ditron_kernel_h> kernels;
  ditron_memory_h words[2] = {};
  // Every rank writes its number in the group, and the group's size, into its neighbour's memory.
  ditron_source_t source;
  DITRON_INIT(source);
  source.path = "neighbour.py";
  source.text =
      "import triton\nimport triton.language as tl\nimport triton_dist.language as dl\n\n@triton.jit\ndef tell(X):\n"
      "    rank = dl.rank()\n    size = dl.num_ranks()\n"
      "    tl.store(dl.symm_at(X, (rank + 1) % size), rank * 10 + size)\n";
  for (int group = 0; group < 2; ++group) {
    ASSERT_DONE(ditron_context_group(whole, members[group], 2, &groups[group]));
    EXPECT_EQ(ditron_context_ranks(groups[group]), 2u);
    ASSERT_DONE(ditron_memory_allocate_symmetric(groups[group], 8, "words", &words[group]));
    ditron_kernel_h kernel = nullptr;
    ASSERT_DONE(ditron_kernel_load(groups[group], &source, "tell", &kernel));
    kernels.push_back(kernel);
    for (uint32_t rank = 0; rank < 2; ++rank) {
      ditron_stream_h stream = nullptr;
      ASSERT_DONE(ditron_stream_create(groups[group], rank, "group", &stream));
      streams.push_back(stream);
      const ditron_launch_t launch = launchOf(1);
      const ditron_argument_t argument = pointer(ditron_memory_address(words[group], rank), DITRON_I64);
      ASSERT_DONE(ditron_kernel_launch(kernel, stream, &launch, &argument, 1));
    }
  }
  ASSERT_DONE(ditron_context_synchronize(whole));
  for (int group = 0; group < 2; ++group)
    for (uint32_t rank = 0; rank < 2; ++rank) {
      int64_t word = 0;
      ASSERT_DONE(ditron_memory_download(words[group], rank, 0, &word, 8));
      EXPECT_EQ(word, (1 - rank) * 10 + 2) << "group " << group << ", rank " << rank;
    }
  ditron_context_h wrong = nullptr;
  const uint32_t twice[] = {1, 1}, absent[] = {1, 4};
  EXPECT_EQ(ditron_context_group(whole, twice, 2, &wrong), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(lastMessage(), HasSubstr("group of ranks 1, 1: 1 is there twice"));
  EXPECT_EQ(ditron_context_group(whole, absent, 2, &wrong), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(lastMessage(), HasSubstr("4 does not exist; ranks are 0 to 3"));
  EXPECT_EQ(ditron_context_group(whole, absent, 0, &wrong), DITRON_INVALID_ARGUMENT);
  uint32_t own[2] = {};
  EXPECT_EQ(ditron_memory_adopt(groups[0], 2, own, sizeof(own), "words", &words[0]), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(lastMessage(), HasSubstr("rank 2 does not exist; accepted are 0 to 1"));
  ditron_context_destroy(whole); // groups keep what they need
  for (int group = 0; group < 2; ++group) {
    EXPECT_DONE(ditron_context_synchronize(groups[group]));
    ditron_memory_destroy(words[group]);
    ditron_context_destroy(groups[group]);
  }
  for (ditron_kernel_h kernel : kernels)
    ditron_kernel_destroy(kernel);
  for (ditron_stream_h stream : streams)
    ditron_stream_destroy(stream);
}

} // namespace
} // namespace ditron::api::test
