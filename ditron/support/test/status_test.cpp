//===- status_test.cpp - The error type ---------------------------------------------------------------------------===//
#include "ditron/support/Status.h"

#include <gtest/gtest.h>

using namespace ditron;

static Expected<int> half(int value) {
  if (value % 2)
    return invalidArgument("odd");
  return value / 2;
}

static Expected<int> quarter(int value) {
  DITRON_ASSIGN_OR_RETURN(int once, half(value));
  DITRON_ASSIGN_OR_RETURN(int twice, half(once));
  return twice;
}

static Status check(int value) {
  DITRON_RETURN_IF_ERROR(half(value).status().withContext("check"));
  return Status::ok();
}

TEST(Status, okIsPointerSized) {
  Status ok = Status::ok();
  EXPECT_TRUE(ok.isOk());
  EXPECT_EQ(ok.code(), StatusCode::Ok);
  EXPECT_EQ(ok.message(), "");
  EXPECT_TRUE(ok.withContext("anything").isOk());
}

TEST(Status, contextGoesInFront) {
  EXPECT_TRUE(check(4).isOk());
  Status error = check(3);
  EXPECT_EQ(error.code(), StatusCode::InvalidArgument);
  EXPECT_EQ(error.message(), "check: odd");
  EXPECT_EQ(toString(error.code()), "invalid argument");
}

TEST(Status, expected) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_FALSE(quarter(6).isOk());
  EXPECT_EQ(quarter(6).status().message(), "odd");
}
