//===- tensor_map_test.cpp - Descriptions of tensors for the copy engine ----------------------------------------------===//
#include "ditron/runtime/TensorMap.h"

#include "ditron/runtime/World.h"
#include "ditron/sim/hopper/TensorMap.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ditron::runtime {
namespace {

using testing::HasSubstr;

/// A kernel with the parameters (a: *bf16, M: i32, K: i32, stride: i64) and one map of a's [M, K] elements.
Artifact mappedKernel() {
  Artifact artifact;
  artifact.kernel = "mapped";
  artifact.target = "sim:sm_90a";
  artifact.parameters = {{"a", "*bf16", 8, 16}, {"M", "i32", 4, 1}, {"K", "i32", 4, 1}, {"stride", "i64", 8, 8}};
  ArtifactTensorMap &map = artifact.tensorMaps.emplace_back();
  map.base = 0;
  map.sizes = {{.parameter = 1}, {.parameter = 2}};
  map.strides = {{.parameter = 3}, {.value = 1}};
  map.box = {128, 64};
  map.swizzleBytes = 128;
  map.element = "bf16";
  return artifact;
}

alignas(128) std::byte memory[4096];

Expected<TensorMapDescription> describe(const Artifact &artifact, std::vector<Argument> arguments) {
  DITRON_ASSIGN_OR_RETURN(PackedArguments packed, packArguments(artifact.kernel, artifact.parameters, arguments));
  return describeTensorMap(artifact, artifact.tensorMaps.front(), packed);
}

TEST(TensorMap, CountsFromTheContiguousDimension) {
  const auto map = describe(mappedKernel(), {Pointer{memory, DataType::BF16}, 100, 70, 72});
  ASSERT_TRUE(map.isOk()) << map.status().message();
  EXPECT_EQ(map->base, memory);
  EXPECT_EQ(map->type, DataType::BF16);
  EXPECT_EQ(map->rank, 2u);
  EXPECT_EQ(map->sizes[0], 70u);
  EXPECT_EQ(map->sizes[1], 100u);
  EXPECT_EQ(map->stridesBytes[0], 2u);
  EXPECT_EQ(map->stridesBytes[1], 144u);
  EXPECT_EQ(map->box[0], 64u);
  EXPECT_EQ(map->box[1], 128u);
  EXPECT_EQ(map->swizzleBytes, 128u);
  EXPECT_FALSE(map->fillNan);
}

TEST(TensorMap, EqualDescriptionsHaveEqualHashes) {
  const Artifact artifact = mappedKernel();
  const auto first = describe(artifact, {Pointer{memory, DataType::BF16}, 100, 70, 72});
  const auto same = describe(artifact, {Pointer{memory, DataType::BF16}, 100, 70, 72});
  const auto other = describe(artifact, {Pointer{memory, DataType::BF16}, 101, 70, 72});
  EXPECT_EQ(*first, *same);
  EXPECT_EQ(TensorMapHash()(*first), TensorMapHash()(*same));
  EXPECT_FALSE(*first == *other);
  EXPECT_NE(TensorMapHash()(*first), TensorMapHash()(*other));
}

TEST(TensorMap, SizesCanHaveALeast) {
  Artifact artifact = mappedKernel();
  artifact.tensorMaps.front().sizes = {{.parameter = 1, .value = 1}, {.parameter = 2, .value = 4}};
  const Pointer base = {memory, DataType::BF16};
  for (auto [m, k, rows, columns] : {std::tuple(0, -5, 1u, 4u), std::tuple(1, 3, 1u, 4u), std::tuple(9, 70, 9u, 70u)}) {
    Expected<TensorMapDescription> map = describe(artifact, {base, m, k, 72});
    ASSERT_TRUE(map.isOk()) << map.status().message();
    EXPECT_EQ(map->sizes[1], rows);
    EXPECT_EQ(map->sizes[0], columns);
  }
}

TEST(TensorMap, RefusesWhatNoCopyEngineTakes) {
  Artifact artifact = mappedKernel();
  const Pointer base = {memory, DataType::BF16};
  EXPECT_THAT(describe(artifact, {base, 0, 70, 72}).status().message(),
              HasSubstr("the tensor at argument 'a' has size 0 in dimension 0 (argument 'M'); accepted are 1 to"));
  EXPECT_THAT(describe(artifact, {base, 8, -1, 72}).status().message(),
              HasSubstr("has size -1 in dimension 1 (argument 'K')"));
  EXPECT_THAT(describe(artifact, {base, 8, 70, -8}).status().message(),
              HasSubstr("has a stride of -8 elements in dimension 0 (argument 'stride')"));
  artifact.parameters[0].divisibility = artifact.parameters[3].divisibility = 1;
  EXPECT_THAT(describe(artifact, {base + 1, 8, 70, 72}).status().message(),
              HasSubstr("must lie at a multiple of 16 bytes"));
  EXPECT_THAT(describe(artifact, {base, 8, 70, 71}).status().message(), HasSubstr("multiples of 16 bytes"));
}

/// What the kernel below saw.
DitronSimTensorMap seenMap;
void *seenWorldView = nullptr;

TEST(TensorMap, StandsBetweenTheArgumentsAndTheWorldView) {
  Artifact artifact = mappedKernel();
  artifact.numWarps = 1;
  artifact.launchWarps = 2;
  ModuleImage image;
  image.hostEntry = [](void **arguments) {
    std::memcpy(&seenMap, arguments[4], sizeof(seenMap));
    std::memcpy(&seenWorldView, arguments[5], sizeof(seenWorldView));
  };
  auto kernel = Kernel::create(artifact, std::move(image));
  ASSERT_TRUE(kernel.isOk()) << kernel.status().message();
  EXPECT_EQ(kernel->threadsPerBlock(), 64u);
  auto world = World::local(1, "sim:sm_90a");
  ASSERT_TRUE(world.isOk()) << world.status().message();
  Rank &rank = (*world)->rank(0);
  auto buffer = rank.allocate(DataType::BF16, 100 * 72, "a");
  ASSERT_TRUE(buffer.isOk());
  Status status = rank.stream().launch(*kernel, {}, std::vector<Argument>{*buffer, 100, 70, 72});
  ASSERT_TRUE(status.isOk()) << status.message();
  status = (*world)->synchronize();
  ASSERT_TRUE(status.isOk()) << status.message();
  EXPECT_EQ(seenMap.base, buffer->address());
  EXPECT_EQ(seenMap.rank, 2u);
  EXPECT_EQ(seenMap.dims[0], 70u);
  EXPECT_EQ(seenMap.dims[1], 100u);
  EXPECT_EQ(seenMap.stridesBytes[0], 144u);
  EXPECT_EQ(seenMap.elementBytes, 2u);
  EXPECT_EQ(sim::checkTensorMap(seenMap), "");
  EXPECT_NE(seenWorldView, nullptr);
}

} // namespace
} // namespace ditron::runtime
