//===- datatype_test.cpp - Element types: names and value conversions ---------------------------------------------===//
#include "ditron/support/DataType.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace ditron;

TEST(DataType, namesRoundTrip) {
  for (const std::string &name : dataTypeNames()) {
    std::optional<DataType> type = parseDataType(name);
    ASSERT_TRUE(type) << name;
    if (name != "u1" && name != "bool") {
      EXPECT_EQ(toString(*type), name);
    }
  }
  EXPECT_EQ(parseDataType("u1"), DataType::I1);
  EXPECT_FALSE(parseDataType("float32"));
  Expected<DataType> bad = parseDataTypeOrError("pf16");
  ASSERT_FALSE(bad.isOk());
  EXPECT_NE(bad.status().message().find("did you mean 'fp16'"), std::string::npos) << bad.status().message();
}

TEST(DataType, sizes) {
  EXPECT_EQ(sizeOf(DataType::I1), 1u);
  EXPECT_EQ(sizeOf(DataType::BF16), 2u);
  EXPECT_EQ(sizeOf(DataType::F8E4NV), 1u);
  EXPECT_EQ(sizeOf(DataType::U64), 8u);
  EXPECT_TRUE(isFloat(DataType::F8E5));
  EXPECT_TRUE(isInteger(DataType::I1));
  EXPECT_FALSE(isSignedInteger(DataType::U32));
}

// Every bit pattern that is a number must survive decode and encode.
TEST(DataType, patternsSurvive) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    float half = halfToFloat(static_cast<uint16_t>(bits));
    if (!std::isnan(half)) {
      ASSERT_EQ(floatToHalf(half), bits);
    } else {
      ASSERT_TRUE(std::isnan(halfToFloat(floatToHalf(half))));
    }
    float brain = bfloat16ToFloat(static_cast<uint16_t>(bits));
    if (!std::isnan(brain)) {
      ASSERT_EQ(floatToBfloat16(brain), bits);
    } else {
      ASSERT_TRUE(std::isnan(bfloat16ToFloat(floatToBfloat16(brain))));
    }
  }
  for (uint32_t bits = 0; bits < 256; ++bits) {
    float e5 = float8E5ToFloat(static_cast<uint8_t>(bits)), e4 = float8E4NVToFloat(static_cast<uint8_t>(bits));
    if (!std::isnan(e5)) {
      ASSERT_EQ(floatToFloat8E5(e5), bits);
    }
    if (!std::isnan(e4)) {
      ASSERT_EQ(floatToFloat8E4NV(e4), bits);
    }
  }
}

#ifdef __FLT16_MANT_DIG__
// The compiler's own conversion is an independent witness for fp16.
TEST(DataType, halfAgreesWithTheCompiler) {
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    float value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isnan(value))
      continue;
    ASSERT_EQ(floatToHalf(value), std::bit_cast<uint16_t>(static_cast<_Float16>(value))) << value;
  }
}
#endif

TEST(DataType, tiesToEven) {
  EXPECT_EQ(floatToBfloat16(1.0f + 1.0f / 256), 0x3f80); // half way down to even
  EXPECT_EQ(floatToBfloat16(1.0f + 3.0f / 256), 0x3f82); // half way up to even
  EXPECT_EQ(floatToBfloat16(1.0f + 1.5f / 256), 0x3f81);
  EXPECT_EQ(floatToHalf(65519.0f), 0x7bff);
  EXPECT_EQ(floatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(floatToHalf(std::ldexp(1.0f, -25)), 0x0000); // half of the smallest subnormal ties to zero
  EXPECT_EQ(floatToHalf(std::ldexp(1.5f, -25)), 0x0001);
  EXPECT_EQ(floatToFloat8E4NV(1000.0f), 0x7e); // saturates: no infinity
  EXPECT_EQ(float8E4NVToFloat(0x7e), 448.0f);
  EXPECT_EQ(floatToFloat8E5(1e6f), 0x7c);
  EXPECT_EQ(floatToBfloat16(3.4e38f), 0x7f80);
}

TEST(DataType, elements) {
  unsigned char storage[8] = {};
  for (DataType type : {DataType::I8, DataType::I16, DataType::I32, DataType::I64, DataType::F16, DataType::BF16,
                        DataType::F32, DataType::F64, DataType::F8E5, DataType::F8E4NV}) {
    storeElement(type, storage, -3.0);
    EXPECT_EQ(loadElement(type, storage), -3.0) << toString(type);
  }
  storeElement(DataType::U8, storage, 300.0);
  EXPECT_EQ(loadElement(DataType::U8, storage), 255.0);
  storeElement(DataType::I1, storage, 0.5);
  EXPECT_EQ(storage[0], 1);
  storeElement(DataType::I64, storage, 1e30);
  EXPECT_EQ(std::bit_cast<int64_t>(storage), std::numeric_limits<int64_t>::max());
  std::vector<float> values = {0.f, 1.f, -2.5f};
  for (DataType type : {DataType::BF16, DataType::F16, DataType::F32})
    EXPECT_EQ(toFloats(type, fromFloats(type, values.data(), 3).data(), 3), values);
}
