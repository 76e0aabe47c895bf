//===- progress_test.cpp - How much is done, what time is left ----------------------------------------------------===//
#include "base/Progress.h"

#include <gtest/gtest.h>

using ditron::tool::timeLeft;

TEST(Progress, timeLeft) {
  EXPECT_EQ(timeLeft(0, 10), "");
  EXPECT_EQ(timeLeft(1, 10), "");
  EXPECT_EQ(timeLeft(0.25, 10), "25 % done, about 30 s left");
  EXPECT_EQ(timeLeft(0.5, 120), "50 % done, about 2 min left");
  EXPECT_EQ(timeLeft(0.01, 100), "1 % done, about 2.8 h left");
}
