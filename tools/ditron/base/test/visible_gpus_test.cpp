//===- visible_gpus_test.cpp - Which GPUs the driver is to see --------------------------------------------------------===//
#include "base/VisibleGpus.h"

#include <cstdlib>
#include <gtest/gtest.h>

using namespace ditron::tool;

namespace {

TEST(VisibleGpus, TheFirstOfThoseThatAreSeen) {
  EXPECT_EQ(firstGpus(std::nullopt, 1), "0");
  EXPECT_EQ(firstGpus(std::nullopt, 3), "0,1,2");
  EXPECT_EQ(firstGpus("5,GPU-8932f937,2", 2), "5,GPU-8932f937");
  EXPECT_EQ(firstGpus("5,2", 1), "5");
  EXPECT_EQ(firstGpus("5,2", 2), "5,2");
  EXPECT_EQ(firstGpus("5,2", 9), "5,2");
  EXPECT_EQ(firstGpus("", 2), ""); // none
}

TEST(VisibleGpus, OnlyOfRealOnesAndOutsideOfJobs) {
  setenv("CUDA_VISIBLE_DEVICES", "3,1", 1);
  seeOnlyGpusOf("sim:sm_80", 1);
  EXPECT_STREQ(std::getenv("CUDA_VISIBLE_DEVICES"), "3,1");
  setenv("RANK", "0", 1);
  setenv("WORLD_SIZE", "2", 1);
  seeOnlyGpusOf("cuda", 1);
  EXPECT_STREQ(std::getenv("CUDA_VISIBLE_DEVICES"), "3,1");
  unsetenv("RANK");
  unsetenv("WORLD_SIZE");
  seeOnlyGpusOf("cuda:sm_90a", 1);
  EXPECT_STREQ(std::getenv("CUDA_VISIBLE_DEVICES"), "3");
  unsetenv("CUDA_VISIBLE_DEVICES");
}

} // namespace
