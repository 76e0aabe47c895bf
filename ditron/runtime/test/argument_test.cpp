//===- argument_test.cpp - Checking and packing of kernel arguments -----------------------------------------------===//
#include "ditron/runtime/Argument.h"

#include <cstring>
#include <gmock/gmock.h>

using namespace ditron;
using namespace ditron::runtime;
using testing::HasSubstr;

namespace {

template <typename T> T valueAt(const PackedArguments &packed, size_t index) {
  T value;
  std::memcpy(&value, packed.bytes.data() + packed.offsets[index], sizeof(T));
  return value;
}

Expected<PackedArguments> pack(std::vector<ArtifactParameter> parameters, std::vector<Argument> arguments) {
  return packArguments("k", parameters, arguments);
}

std::string errorOf(ArtifactParameter parameter, Argument argument) {
  Expected<PackedArguments> packed = pack({parameter}, {argument});
  EXPECT_FALSE(packed.isOk()) << argument.describe() << " for " << parameter.type;
  return packed.status().message();
}

} // namespace

TEST(Argument, packsEveryType) {
  auto *address = reinterpret_cast<void *>(0x1230);
  Expected<PackedArguments> packed = pack({{"x", "*bf16", 8, 16},
                                           {"b", "i1", 1},
                                           {"s", "i8", 1},
                                           {"n", "i32", 4},
                                           {"l", "u64", 8},
                                           {"h", "fp16", 2},
                                           {"f", "fp32", 4},
                                           {"d", "fp64", 8},
                                           {"c", "*kfp32", 8}},
                                          {Pointer{address, DataType::BF16}, true, -3, 1 << 20, ~uint64_t(0), 1.5, 2,
                                           0.1, Pointer{address, DataType::F32}});
  ASSERT_TRUE(packed.isOk()) << packed.status().message();
  EXPECT_EQ(valueAt<void *>(*packed, 0), address);
  EXPECT_EQ(valueAt<uint8_t>(*packed, 1), 1);
  EXPECT_EQ(valueAt<int8_t>(*packed, 2), -3);
  EXPECT_EQ(valueAt<int32_t>(*packed, 3), 1 << 20);
  EXPECT_EQ(valueAt<uint64_t>(*packed, 4), ~uint64_t(0));
  EXPECT_EQ(valueAt<uint16_t>(*packed, 5), 0x3e00);
  EXPECT_EQ(valueAt<float>(*packed, 6), 2.0f);
  EXPECT_EQ(valueAt<double>(*packed, 7), 0.1);
  EXPECT_EQ(packed->offsets[3] % 4, 0u);
  EXPECT_EQ(packed->offsets[4] % 8, 0u);
}

TEST(Argument, rangesOfIntegers) {
  EXPECT_TRUE(pack({{"n", "i32", 4}}, {INT32_MIN}).isOk());
  EXPECT_TRUE(pack({{"n", "u32", 4}}, {UINT32_MAX}).isOk());
  EXPECT_TRUE(pack({{"n", "i64", 8}}, {INT64_MIN}).isOk());
  EXPECT_THAT(errorOf({"n", "i32", 4}, int64_t(1) << 31), HasSubstr("integer 2147483648 does not fit into i32"));
  EXPECT_THAT(errorOf({"n", "i32", 4}, -(int64_t(1) << 31) - 1), HasSubstr("does not fit into i32"));
  EXPECT_THAT(errorOf({"n", "u8", 1}, -1), HasSubstr("integer -1 does not fit into u8"));
  EXPECT_THAT(errorOf({"n", "i64", 8}, ~uint64_t(0)), HasSubstr("does not fit into i64"));
}

TEST(Argument, errorsNameTheParameter) {
  EXPECT_EQ(errorOf({"x_ptr", "*bf16", 8}, 3.5),
            "kernel 'k', argument 'x_ptr' (number 0): expected a bf16 pointer, given float 3.5");
  EXPECT_THAT(errorOf({"x_ptr", "*bf16", 8}, Pointer{reinterpret_cast<void *>(16), DataType::F16}),
              HasSubstr("expected a bf16 pointer, given fp16 pointer"));
  EXPECT_THAT(errorOf({"n", "i32", 4}, 2.0), HasSubstr("expected i32, given float 2"));
  EXPECT_THAT(errorOf({"n", "i32", 4}, None()), HasSubstr("given None"));
  EXPECT_THAT(errorOf({"flag", "i1", 1}, 1), HasSubstr("expected i1, given integer 1"));
  EXPECT_THAT(errorOf({"s", "fp32", 4}, "fast"), HasSubstr("given string 'fast'"));
  EXPECT_THAT(errorOf({"s", "fp32", 4}, Argument::typed(DataType::F64, 1.0)), HasSubstr("float 1 of type fp64"));
}

TEST(Argument, promisesOfTheCompiledCode) {
  EXPECT_TRUE(pack({{"n", "i32", 4, 16}}, {-32}).isOk());
  EXPECT_THAT(errorOf({"n", "i32", 4, 16}, 40), HasSubstr("compiled for multiples of 16, given integer 40"));
  EXPECT_THAT(errorOf({"x", "*fp32", 8, 16}, Pointer{reinterpret_cast<void *>(0x104), DataType::F32}),
              HasSubstr("addresses that are multiples of 16"));
}

TEST(Argument, countIsChecked) {
  Expected<PackedArguments> packed = pack({{"x", "*fp32", 8}, {"n", "i32", 4}}, {3});
  ASSERT_FALSE(packed.isOk());
  EXPECT_EQ(packed.status().message(), "kernel 'k' takes 2 arguments (x: *fp32, n: i32), given 1");
}
