//===- signature_test.cpp - Signatures read, print and refuse -----------------------------------------------------------===//
//
// The text form of kernel signatures: every kind of item, and the message of every mistake.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ditron::frontend {
namespace {

using testing::HasSubstr;

std::string roundTrip(llvm::StringRef text) {
  auto signature = parseSignature(text);
  return signature.isOk() ? signature->str() : "error: " + signature.status().message();
}

TEST(Signature, RoundTrips) {
  for (const char *text :
       {"", "i32", "*bf16:16, *bf16, i32:16, i32, constexpr BLOCK=64", "**fp32, *kfp16", "x=*u8, y=i64:8",
        "constexpr A=True, constexpr B=None, constexpr C=-3, constexpr D=2.5",
        "constexpr KIND=\"a, b\", constexpr T=fp16", "constexpr F=@gelu, (i32, constexpr @sizes)", "i1, i8, i16, i64, u8, u16, u32, u64, fp8e5, fp8e4nv, fp64"})
    EXPECT_EQ(roundTrip(text), text);
}

TEST(Signature, DescriptorsOfTheHost) {
  for (const char *text : {"tensordesc<bf16[128,64]>", "tensordesc<fp32[16],nan>", "a=tensordesc<i8[1,2,4,8,16]>:16, i32",
                           "tensordesc<fp16[64,64]>:16:8, constexpr B=\"a<b\"", "tensordesc<bf16[64,64]>:1:16"})
    EXPECT_EQ(roundTrip(text), text);
  EXPECT_EQ(roundTrip("tensordesc< float16 [ 64 , 32 ] , zero > : 16"), "tensordesc<fp16[64,32]>:16");
  auto signature = parseSignature("tensordesc<bf16[128,64],nan>:16:32");
  ASSERT_TRUE(signature.isOk());
  const ArgumentSpec &spec = signature->arguments[0];
  EXPECT_TRUE(spec.isDescriptor && spec.fillsNan);
  const std::vector<RunTimeParameter> parameters = runTimeParameters(spec, "x");
  ASSERT_EQ(parameters.size(), 4u);
  EXPECT_EQ(parameters[0].name, "x");
  EXPECT_EQ(parameters[0].type.signatureText(), "*bf16");
  EXPECT_EQ(parameters[0].divisibility, 16u);
  EXPECT_EQ(parameters[1].name, "x.shape.0");
  EXPECT_EQ(parameters[1].divisibility, 1u);
  EXPECT_EQ(parameters[2].name, "x.shape.1");
  EXPECT_EQ(parameters[2].type.signatureText(), "i32");
  EXPECT_EQ(parameters[2].divisibility, 32u);
  EXPECT_EQ(parameters[3].name, "x.stride.0");
  EXPECT_EQ(parameters[3].type.signatureText(), "i64");
  EXPECT_EQ(parameters[3].divisibility, 8u); // 16 bytes
  EXPECT_THAT(roundTrip("tensordesc<bf16[128,60]>"), HasSubstr("'60' is no power of two"));
  EXPECT_THAT(roundTrip("tensordesc<bf17[64]>"), HasSubstr("'bf17' is no element type"));
  EXPECT_THAT(roundTrip("tensordesc<bf16[64>"), HasSubstr("no closing ']'"));
  EXPECT_THAT(roundTrip("tensordesc<bf16[64,4]>"), HasSubstr("its last dimension has 8 bytes, at least 16 are needed"));
  EXPECT_THAT(roundTrip("tensordesc<i8[64],nan>"), HasSubstr("have no NaN"));
  EXPECT_THAT(roundTrip("tensordesc<bf16[64]>:3"), HasSubstr("'3' is no power of two"));
}

TEST(Signature, Tuples) {
  auto signature = parseSignature("(i32:16, 3, (*fp32,)), o=(x=i64, constexpr y=2), constexpr T=(1, 'a')");
  ASSERT_TRUE(signature.isOk()) << signature.status().message();
  ASSERT_EQ(signature->arguments.size(), 3u);
  const ArgumentSpec &first = signature->arguments[0];
  ASSERT_TRUE(first.isTuple() && first.elements->size() == 3);
  const std::vector<RunTimeParameter> parameters = runTimeParameters(first, "t");
  ASSERT_EQ(parameters.size(), 2u);
  EXPECT_EQ(parameters[0].name, "t.0");
  EXPECT_EQ(parameters[0].divisibility, 16u);
  EXPECT_EQ(parameters[1].name, "t.2.0");
  EXPECT_EQ(runTimeParameters(signature->arguments[1], "o").front().name, "o.x");
  EXPECT_TRUE(runTimeParameters(signature->arguments[2], "T").empty());
  auto again = parseSignature(signature->str());
  ASSERT_TRUE(again.isOk()) << again.status().message();
  EXPECT_EQ(*again, *signature);
  EXPECT_FALSE(parseSignature("(i32, *fp32").isOk());
}

TEST(Signature, NormalisesSpelling) {
  EXPECT_EQ(roundTrip("*float32 , int32"), "*fp32, i32");
  EXPECT_EQ(roundTrip("constexpr K='it\\'s'"), "constexpr K=\"it's\"");
  EXPECT_EQ(roundTrip("constexpr N=0x10"), "constexpr N=16");
  EXPECT_EQ(roundTrip("64, True"), "constexpr 64, constexpr True");
  EXPECT_EQ(roundTrip("constexpr T=tl.float16"), "constexpr T=fp16");
  EXPECT_EQ(roundTrip("u1"), "i1");
}

TEST(Signature, TypesKeepSignAndDivisor) {
  auto signature = parseSignature("*u32:32, u64");
  ASSERT_TRUE(signature.isOk());
  EXPECT_TRUE(signature->arguments[0].type.isPointer());
  EXPECT_TRUE(signature->arguments[0].type.pointee().isUnsigned());
  EXPECT_EQ(signature->arguments[0].divisibility, 32u);
  EXPECT_EQ(signature->arguments[1].type.bitWidth(), 64u);
}

TEST(Signature, RefusesMistakes) {
  EXPECT_THAT(roundTrip("i32, , i32"), HasSubstr("signature item 2 is empty"));
  EXPECT_THAT(roundTrip("*bf17"), HasSubstr("'*bf17' is not a type"));
  EXPECT_THAT(roundTrip("*fp32, i33"), HasSubstr("signature item 2: 'i33' is not a type; types are i1 i8"));
  EXPECT_THAT(roundTrip("i32:3"), HasSubstr("power of two"));
  EXPECT_THAT(roundTrip("fp32:16"), HasSubstr("only pointers and integers have a divisor"));
  EXPECT_THAT(roundTrip("constexpr"), HasSubstr("write constexpr NAME=VALUE"));
  EXPECT_THAT(roundTrip("constexpr B=what"), HasSubstr("'what' is not a compile-time value"));
  EXPECT_THAT(roundTrip("constexpr B=\"open"), HasSubstr("no closing"));
  EXPECT_THAT(roundTrip("constexpr B=\"a\\q\""), HasSubstr("unknown escape"));
  EXPECT_THAT(roundTrip("constexpr B="), HasSubstr("write constexpr NAME=VALUE"));
  EXPECT_THAT(roundTrip("x="), HasSubstr("parameter 'x' has no type or value"));
  EXPECT_FALSE(parseConstexpr("").isOk());
  EXPECT_THAT(roundTrip("x=i32, x=i64"), HasSubstr("'x' is given twice"));
}

TEST(Signature, ConstexprEqualityIsExact) {
  auto one = parseSignature("constexpr A=1"), yes = parseSignature("constexpr A=True"),
       real = parseSignature("constexpr A=1.0");
  EXPECT_FALSE(*one == *yes);
  EXPECT_FALSE(*one == *real);
  EXPECT_TRUE(*one == *parseSignature("constexpr A=1"));
}

} // namespace
} // namespace ditron::frontend
