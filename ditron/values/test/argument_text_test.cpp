//===- argument_text_test.cpp - Kernel arguments as text ----------------------------------------------------------===//
#include "ditron/values/ArgumentText.h"
#include "ditron/values/LiteralText.h"
#include "ditron/values/RankText.h"
#include "ditron/values/OutputText.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>

using namespace ditron;
using namespace ditron::values;
using runtime::Argument;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

Argument scalar(std::string_view text) {
  Expected<ArgumentText> parsed = parseArgumentText("x", text);
  EXPECT_TRUE(parsed.isOk()) << parsed.status().message();
  return parsed.isOk() ? std::get<Argument>(*parsed) : Argument();
}

ArrayText array(std::string_view text) {
  Expected<ArgumentText> parsed = parseArgumentText("x", text);
  EXPECT_TRUE(parsed.isOk()) << parsed.status().message();
  return parsed.isOk() ? std::get<ArrayText>(*parsed) : ArrayText();
}

std::string errorOf(std::string_view text) {
  Expected<ArgumentText> parsed = parseArgumentText("x", text);
  EXPECT_FALSE(parsed.isOk()) << text;
  return parsed.isOk() ? "" : parsed.status().message();
}

std::vector<float> floatsOf(const NpyArray &array) {
  return toFloats(array.type, array.data.data(), static_cast<size_t>(array.elementCount()));
}

} // namespace

TEST(ArgumentText, literals) {
  EXPECT_EQ(scalar("3").get<int64_t>(), 3);
  EXPECT_EQ(scalar("-0x10").get<int64_t>(), -16);
  EXPECT_EQ(scalar("-9223372036854775808").get<int64_t>(), INT64_MIN);
  EXPECT_EQ(scalar("18446744073709551615").get<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(scalar("2.5").get<double>(), 2.5);
  EXPECT_EQ(scalar("-1e-3").get<double>(), -1e-3);
  EXPECT_TRUE(std::isinf(scalar("-inf").get<double>()));
  EXPECT_EQ(scalar("true").get<bool>(), true);
  EXPECT_EQ(scalar("False").get<bool>(), false);
  EXPECT_TRUE(scalar("None").is<runtime::None>());
}

TEST(ArgumentText, typedLiterals) {
  EXPECT_EQ(scalar("i64:7").forcedType(), DataType::I64);
  EXPECT_EQ(scalar("i64:7").get<int64_t>(), 7);
  EXPECT_EQ(scalar("fp32:1.5").forcedType(), DataType::F32);
  EXPECT_EQ(scalar("fp64:2").forcedType(), DataType::F64);
  EXPECT_EQ(scalar("i1:true").get<bool>(), true);
  EXPECT_THAT(errorOf("18446744073709551616"), HasSubstr("the integer does not fit into 64 bits"));
  EXPECT_THAT(errorOf("-9223372036854775809"), HasSubstr("the integer does not fit into 64 bits"));
  EXPECT_THAT(errorOf("0x10000000000000000"), HasSubstr("the integer does not fit into 64 bits"));
  EXPECT_THAT(errorOf("i64:99999999999999999999"), HasSubstr("the integer does not fit into 64 bits"));
  EXPECT_EQ(scalar("1e20").get<double>(), 1e20);
  EXPECT_THAT(errorOf("i32:1.5"), HasSubstr("'1.5' is no literal of type i32"));
  EXPECT_THAT(errorOf("i1:1"), HasSubstr("no literal of type i1"));
}

TEST(ArgumentText, arrays) {
  ArrayText zeros = array("zeros:fp32[128,64]");
  EXPECT_EQ(zeros.source, ArrayText::Source::Zeros);
  EXPECT_EQ(zeros.type, DataType::F32);
  EXPECT_THAT(zeros.shape, ElementsAre(128, 64));
  EXPECT_FALSE(zeros.symmetric);
  EXPECT_TRUE(array("symm:zeros:i64[8]").symmetric);
  ArrayText file = array("symm:bf16@data/x:{rank}.npy");
  EXPECT_EQ(file.source, ArrayText::Source::File);
  EXPECT_EQ(file.type, DataType::BF16);
  EXPECT_EQ(pathForRank(file.path, 12), "data/x:12.npy");
  EXPECT_FALSE(array("@x.npy").type);
}

TEST(ArgumentText, descriptors) {
  ArrayText file = array("desc[64, 32]@x.npy");
  EXPECT_THAT(file.block, ElementsAre(64, 32));
  EXPECT_EQ(file.path, "x.npy");
  EXPECT_FALSE(file.fillNan);
  ArrayText zeros = array("desc[8,64,nan]:symm:zeros:bf16[100,70]");
  EXPECT_THAT(zeros.block, ElementsAre(8, 64));
  EXPECT_THAT(zeros.shape, ElementsAre(100, 70));
  EXPECT_TRUE(zeros.fillNan);
  EXPECT_TRUE(zeros.symmetric);
  EXPECT_EQ(array("desc[16]:bf16@x.npy").type, DataType::BF16);
  EXPECT_TRUE(array("@x.npy").block.empty());
  EXPECT_THAT(errorOf("desc[64,32"), HasSubstr("no closing ']'"));
  EXPECT_THAT(errorOf("desc[64,x]@x.npy"), HasSubstr("'x' is no size"));
  EXPECT_THAT(errorOf("desc[64]"), HasSubstr("an array is missing after ']'"));
  EXPECT_THAT(errorOf("desc[64]:3"), HasSubstr("a tensor descriptor describes an array"));
}

TEST(ArgumentText, errorsNameTheValueAndWhatIsAccepted) {
  EXPECT_THAT(errorOf("zeroes:fp32[4]"),
              AllOf(HasSubstr("argument x='zeroes:fp32[4]'"), HasSubstr("did you mean 'zeros'")));
  EXPECT_THAT(errorOf("zeros:float[4]"), AllOf(HasSubstr("argument x="), HasSubstr("accepted are i1")));
  EXPECT_THAT(errorOf("zeros:fp32"), HasSubstr("as in zeros:fp32[128,64]"));
  EXPECT_THAT(errorOf("zeros:fp32[4,]"), HasSubstr("'' is no size"));
  EXPECT_THAT(errorOf("zeros:fp32[-4]"), HasSubstr("'-4' is no size"));
  EXPECT_THAT(errorOf("bf61@x.npy"), HasSubstr("did you mean 'bf16'"));
  EXPECT_THAT(errorOf("@"), HasSubstr("file name is missing"));
  EXPECT_THAT(errorOf("symm:3"), HasSubstr("symm: takes an array"));
  EXPECT_THAT(errorOf("hello"), HasSubstr("accepted are a literal"));
  EXPECT_THAT(errorOf(""), HasSubstr("accepted are a literal"));
  EXPECT_THAT(errorOf("99999999999999999999x"), HasSubstr("accepted are a literal"));
}

TEST(ArgumentText, generators) {
  EXPECT_THAT(floatsOf(*array("arange:bf16[2,2]").make(0, 0, "x")), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(floatsOf(*array("ones:i8[3]").make(0, 0, "x")), ElementsAre(1, 1, 1));
  ArrayText random = array("rand:fp32[1000]");
  NpyArray first = *random.make(0, 7, "x");
  EXPECT_EQ(first.data, random.make(0, 7, "x")->data);
  EXPECT_NE(first.data, random.make(1, 7, "x")->data);
  EXPECT_NE(first.data, random.make(0, 8, "x")->data);
  EXPECT_NE(first.data, random.make(0, 7, "y")->data);
  double sum = 0;
  for (float value : floatsOf(first)) {
    EXPECT_GE(value, -1);
    EXPECT_LT(value, 1);
    sum += value;
  }
  EXPECT_LT(std::fabs(sum / 1000), 0.1);
  EXPECT_FALSE(array("zeros:fp32[1099511627776,1099511627776]").make(0, 0, "x").isOk());
}

TEST(ArgumentText, generatorsWithValues) {
  EXPECT_THAT(floatsOf(*array("full(2.5):bf16[2]").make(0, 0, "x")), ElementsAre(2.5f, 2.5f));
  EXPECT_THAT(floatsOf(*array("arange(10,-2):i32[3]").make(0, 0, "x")), ElementsAre(10, 8, 6));
  NpyArray wide = *array("arange(9007199254740993):i64[2]").make(0, 0, "x");
  int64_t second = 0;
  std::memcpy(&second, wide.data.data() + 8, sizeof second);
  EXPECT_EQ(second, 9007199254740994);
  EXPECT_EQ(array("rand(7):fp32[9]").make(0, 1, "x")->data, array("rand(7):fp32[9]").make(3, 2, "y")->data);
  EXPECT_NE(array("rand(7):fp32[9]").make(0, 1, "x")->data, array("rand(8):fp32[9]").make(0, 1, "x")->data);
  EXPECT_THAT(errorOf("full:fp32[2]"), HasSubstr("'full' has 0 values in parentheses; write full(2.5):fp32[128,64]"));
  EXPECT_THAT(errorOf("zeros(1):fp32[2]"), HasSubstr("'zeros(1)' has 1 value in parentheses"));
  EXPECT_THAT(errorOf("rand(-1):fp32[2]"), HasSubstr("the seed -1 is outside of u64; accepted are 0 to 18446744073709551615"));
  EXPECT_THAT(errorOf("arange(x):i32[2]"), HasSubstr("'x' is no number"));
  EXPECT_THAT(errorOf("full(1.5):i32[2]"), HasSubstr("no value of type i32"));
}

TEST(ArgumentText, elementsOutsideOfTheirTypeAreRefused) {
  auto madeOf = [](const char *text) { return array(text).make(0, 0, "x").status().message(); };
  EXPECT_EQ(madeOf("arange(250,1):u8[10]"), "argument x: element 6 of arange: 256 is outside of u8; accepted are 0 to 255");
  EXPECT_EQ(madeOf("arange(2147483640):i32[10]"),
            "argument x: element 8 of arange: 2147483648 is outside of i32; accepted are -2147483648 to 2147483647");
  EXPECT_EQ(madeOf("arange:i1[4]"), "argument x: element 2 of arange: 2 is outside of i1; accepted are true and false");
  EXPECT_EQ(madeOf("arange(65500,10):fp16[5]"),
            "argument x: element 2 of arange: 65520 is outside of fp16; accepted are -65504 to 65504");
  EXPECT_EQ(madeOf("arange(9223372036854775807):i64[2]"), "argument x: element 1 of arange: 9223372036854775808 is outside of i64; "
                                                          "accepted are -9223372036854775808 to 9223372036854775807");
  EXPECT_EQ(madeOf("arange(18446744073709551615):u64[2]"),
            "argument x: element 1 of arange: a number of more than 64 bits is outside of u64; accepted are 0 to 18446744073709551615");
  EXPECT_THAT(errorOf("full(1e10):fp16[2]"), HasSubstr("1e+10 is outside of fp16; accepted are -65504 to 65504"));
  EXPECT_THAT(errorOf("full(500):fp8e4nv[2]"), HasSubstr("500 is outside of fp8e4nv; accepted are -448 to 448"));
  EXPECT_THAT(errorOf("full(70000):fp8e5[2]"), HasSubstr("outside of fp8e5; accepted are -57344 to 57344"));
  EXPECT_THAT(errorOf("full(1e300):fp32[2]"), HasSubstr("1e+300 is outside of fp32"));
  EXPECT_THAT(errorOf("1e39"), HasSubstr("1e+39 is outside of fp32; accepted are -3.40282347e+38 to 3.40282347e+38; a float "
                                         "without a type is fp32; write fp64:1e39"));
  for (const char *text : {"1e999", "-1e999", "fp64:1e999", "fp32:1e999", "fp64:[1e999]", "full(-1e999):fp64[2]"})
    EXPECT_THAT(errorOf(text), HasSubstr("1e999 is outside of fp64; accepted are -1.79769313e+308 to 1.79769313e+308")) << text;
  EXPECT_THAT(errorOf("i64:[99999999999999999999]"), HasSubstr("the integer does not fit into 64 bits"));
  EXPECT_THAT(errorOf("full(1):i1[2]"), HasSubstr("accepted are true and false"));
  EXPECT_THAT(errorOf("i8:300"), HasSubstr("300 is outside of i8; accepted are -128 to 127"));
  EXPECT_THAT(errorOf("zeros:fp32[99999999999999999999]"), HasSubstr("write integers from 0 to 9223372036854775807"));
  EXPECT_THAT(errorOf("symm:per-rank:zeros:i32[1],zeros:i32[1]"), HasSubstr("per-rank: goes in front of everything else"));
  // What rounds to the largest value is that value, and infinities are meant.
  EXPECT_EQ(madeOf("full(65519):fp16[1]"), "");
  EXPECT_EQ(madeOf("full(-inf):fp16[1]"), "");
  EXPECT_EQ(madeOf("full(1.7976931348623157e308):fp64[1]"), "");
  EXPECT_EQ(madeOf("arange(18446744073709551610):u64[6]"), "");
}

TEST(ArgumentText, lists) {
  EXPECT_THAT(floatsOf(*array("fp32:[[1,2.5],[3,-4]]").make(0, 0, "x")), ElementsAre(1, 2.5f, 3, -4));
  EXPECT_THAT(array("fp32:[[1,2.5],[3,-4]]").shape, ElementsAre(2, 2));
  EXPECT_THAT(array("i8:[]").shape, ElementsAre(0));
  EXPECT_TRUE(array("symm:u8:[1,255]").symmetric);
  EXPECT_EQ(array("[ptr:x,ptr:y[1,2]]").type, DataType::I64);
  EXPECT_TRUE(array("[ptr:x,ptr:y[1,2]]").hasAddresses());
  EXPECT_EQ(std::get<ArrayText>(*parseArgumentText("x", "u64:[0,ptr:x@*]", 3)).elements.size(), 4u);
  EXPECT_THAT(errorOf("u8:[256]"), HasSubstr("256 is outside of u8; accepted are 0 to 255"));
  EXPECT_THAT(errorOf("u64:[-1]"), HasSubstr("-1 is outside of u64"));
  EXPECT_THAT(errorOf("i8:[1,[2]]"), HasSubstr("'2' stands beside a list"));
  EXPECT_THAT(errorOf("i8:[[2],1]"), HasSubstr("'1' stands beside a list"));
  EXPECT_THAT(errorOf("i8:[1"), HasSubstr("is no list"));
  EXPECT_THAT(errorOf("i8:[a]"), HasSubstr("'a' is no element of a list"));
  EXPECT_THAT(errorOf("fp32:[ptr:x]"), HasSubstr("an address does not fit into fp32; accepted are i64 and u64"));
}

TEST(ArgumentText, addresses) {
  AddressText address = std::get<AddressText>(*parseArgumentText("p", "ptr:x.0[2,0]@3"));
  EXPECT_EQ(address.array, "x.0");
  EXPECT_THAT(address.index, ElementsAre(2, 0));
  EXPECT_EQ(address.rank, 3u);
  EXPECT_THAT(errorOf("ptr:"), HasSubstr("the array's name is missing"));
  EXPECT_THAT(errorOf("ptr:x[-1]"), HasSubstr("'-1' is no index from 0"));
  EXPECT_THAT(errorOf("ptr:x@one"), HasSubstr("'one' is no rank"));
}

TEST(RankText, valuesOfRanks) {
  EXPECT_EQ(*textForRank("x", "per-rank:1,(2,3),\"a,b\"", 1, 3), "(2,3)");
  EXPECT_EQ(*textForRank("x", "per-rank:[4,5]", 1, 2), "5");
  EXPECT_EQ(*textForRank("x", "@x{rank}/{rank}.npy", 12, 16), "@x12/12.npy");
  EXPECT_THAT(textForRank("x", "per-rank:1,2", 0, 3).status().message(), HasSubstr("2 values are given, but there are 3 ranks"));
  EXPECT_THAT(textForRank("x", "per-rank:1,,2", 1, 3).status().message(), HasSubstr("the value of rank 1 is ''"));
  EXPECT_THAT(textForRank("x", "per-rank:(1,2", 0, 2).status().message(), HasSubstr("not closed"));
}

TEST(ArgumentText, filesPerRankAndAsBf16) {
  const std::string folder = testing::TempDir();
  const std::vector<float> values = {1.0f, -2.5f};
  for (uint32_t rank : {0, 1}) {
    std::vector<float> scaled = {values[0] * (rank + 1), values[1] * (rank + 1)};
    std::vector<std::byte> floats = fromFloats(DataType::F32, scaled.data(), 2);
    std::vector<std::byte> brains = fromFloats(DataType::BF16, scaled.data(), 2);
    ASSERT_TRUE(
        writeNpy(folder + fmt::format("/ditron_f{}.npy", rank), DataType::F32, std::vector<int64_t>{2}, floats).isOk());
    ASSERT_TRUE(writeNpy(folder + fmt::format("/ditron_b{}.npy", rank), DataType::BF16, std::vector<int64_t>{2}, brains)
                    .isOk());
  }
  EXPECT_THAT(floatsOf(*array("@" + folder + "/ditron_f{rank}.npy").make(1, 0, "x")), ElementsAre(2.0f, -5.0f));
  for (const char *file : {"/ditron_f1.npy", "/ditron_b{rank}.npy"}) {
    NpyArray words = *array("bf16@" + folder + file).make(1, 0, "x");
    EXPECT_EQ(words.type, DataType::BF16);
    EXPECT_THAT(floatsOf(words), ElementsAre(2.0f, -5.0f));
  }
  Expected<NpyArray> wrong = array("i32@" + folder + "/ditron_f0.npy").make(0, 0, "x");
  EXPECT_THAT(wrong.status().message(), HasSubstr("elements of type fp32, which cannot be read as i32"));
  EXPECT_THAT(array("@" + folder + "/ditron_f{rank}.npy").make(2, 0, "x").status().message(),
              HasSubstr("ditron_f2.npy"));
  for (uint32_t rank : {0, 1})
    for (char kind : {'f', 'b'})
      std::filesystem::remove(folder + fmt::format("/ditron_{}{}.npy", kind, rank));
}

TEST(ArgumentText, constexprs) {
  EXPECT_EQ(parseConstexprText("B", "64")->get<int64_t>(), 64);
  EXPECT_EQ(parseConstexprText("B", "True")->get<bool>(), true);
  EXPECT_EQ(parseConstexprText("B", "true")->get<bool>(), true);
  EXPECT_EQ(parseConstexprText("B", "\"gelu\"")->get<std::string>(), "gelu");
  EXPECT_EQ(parseConstexprText("B", "fp16")->get<DataType>(), DataType::F16);
  EXPECT_EQ(parseConstexprText("B", "tl.bfloat16")->get<DataType>(), DataType::BF16);
  EXPECT_TRUE(parseConstexprText("B", "None")->is<runtime::None>());
  EXPECT_THAT(parseConstexprText("B", "99999999999999999999999").status().message(), HasSubstr("64 bits"));
  EXPECT_THAT(parseConstexprText("B", "gelu").status().message(), HasSubstr("constexpr B"));
}

TEST(ArgumentText, outputs) {
  EXPECT_EQ(parseOutputText("y", "out_{rank}.npy")->path, "out_{rank}.npy");
  EXPECT_EQ(parseOutputText("y", "fp32@y.npy")->type, DataType::F32);
  EXPECT_FALSE(parseOutputText("y", "fp23@y.npy").isOk());
  EXPECT_FALSE(parseOutputText("y", "").isOk());
}
