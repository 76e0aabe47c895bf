//===- ApiTest.h - What the tests of the C interface share: errors, arguments, a context of two simulated ranks -----===//
#pragma once

#include <ditron/ditron.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ditron::api::test {

inline ditron_error_t lastError() {
  ditron_error_t error;
  DITRON_INIT(error);
  ditron_last_error(&error);
  return error;
}

inline std::string lastMessage() { return lastError().message; }

#define EXPECT_DONE(call) EXPECT_EQ((call), DITRON_OK) << lastMessage()
#define ASSERT_DONE(call) ASSERT_EQ((call), DITRON_OK) << lastMessage()

inline ditron_argument_t pointer(void *address, ditron_dtype_t dtype) {
  ditron_argument_t argument = {};
  argument.kind = DITRON_ARGUMENT_POINTER;
  argument.dtype = dtype;
  argument.value.pointer = address;
  return argument;
}

inline ditron_argument_t integer(int64_t value, const char *name = nullptr) {
  ditron_argument_t argument = {};
  argument.name = name;
  argument.kind = DITRON_ARGUMENT_INT;
  argument.value.integer = value;
  return argument;
}

inline ditron_launch_t launchOf(uint32_t blocks) {
  ditron_launch_t launch;
  DITRON_INIT(launch);
  launch.grid[0] = blocks;
  launch.grid[1] = launch.grid[2] = 1;
  return launch;
}

class Api : public testing::Test {
protected:
  void SetUp() override {
    ditron_context_options_t options;
    DITRON_INIT(options);
    options.target = "sim:sm_80";
    options.ranks = 2;
    ASSERT_DONE(ditron_context_create(&options, &context));
    ASSERT_DONE(ditron_stream_create(context, 0, "work", &stream));
  }
  void TearDown() override {
    ditron_kernel_destroy(kernel);
    ditron_stream_destroy(stream);
    ditron_context_destroy(context);
  }

  void load(const char *text, const char *name) {
    ditron_source_t source;
    DITRON_INIT(source);
    source.path = "add.py";
    source.text = text;
    ASSERT_DONE(ditron_kernel_load(context, &source, name, &kernel));
  }
  ditron_memory_h adopt(std::vector<float> &values, const char *name) {
    ditron_memory_h memory = nullptr;
    EXPECT_DONE(ditron_memory_adopt(context, 0, values.data(), values.size() * sizeof(float), name, &memory));
    return memory;
  }

  ditron_context_h context = nullptr;
  ditron_stream_h stream = nullptr;
  ditron_kernel_h kernel = nullptr;
};

} // namespace ditron::api::test
