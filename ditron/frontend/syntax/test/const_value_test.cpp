//===- const_value_test.cpp - Compile-time scalars against CPython ------------------------------------------------===//
//
// ConstCases.inc holds expressions and CPython's results. Each is parsed by our parser and folded by the small
// evaluator below, which only dispatches to the functions under test.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "SyntaxTesting.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace ditron::frontend {
namespace {

struct Case {
  const char *expression;
  bool fails;
  const char *expected;
};

const Case cases[] = {
#define CASE(expression, value) {expression, false, value},
#define FAILS(expression, message) {expression, true, message},
#include "ConstCases.inc"
};

Expected<ConstValue> fold(const ast::Expr *node);

Expected<ConstValue> foldCall(const ast::Call *call) {
  llvm::StringRef name = llvm::cast<ast::Name>(call->callee)->id;
  DITRON_ASSIGN_OR_RETURN(ConstValue first, fold(call->args[0]));
  if (name == "float")
    return toFloat(first);
  if (name == "len")
    return length(first);
  if (call->args.size() == 1)
    return toInt(first);
  DITRON_ASSIGN_OR_RETURN(ConstValue second, fold(call->args[1]));
  if (name == "int")
    return toInt(first, static_cast<int>(*second.toInt64()));
  DITRON_ASSIGN_OR_RETURN(std::string text, format(first, second.getString()));
  return ConstValue::string(std::move(text));
}

Expected<ConstValue> fold(const ast::Expr *node) {
  if (auto *constant = llvm::dyn_cast<ast::Constant>(node))
    return *constant->value;
  if (auto *operation = llvm::dyn_cast<ast::UnaryOp>(node)) {
    DITRON_ASSIGN_OR_RETURN(ConstValue operand, fold(operation->operand));
    return unary(operation->op, operand);
  }
  if (auto *operation = llvm::dyn_cast<ast::BinOp>(node)) {
    DITRON_ASSIGN_OR_RETURN(ConstValue left, fold(operation->left));
    DITRON_ASSIGN_OR_RETURN(ConstValue right, fold(operation->right));
    return binary(operation->op, left, right);
  }
  if (auto *comparison = llvm::dyn_cast<ast::Compare>(node)) {
    DITRON_ASSIGN_OR_RETURN(ConstValue left, fold(comparison->left));
    DITRON_ASSIGN_OR_RETURN(ConstValue right, fold(comparison->comparators[0]));
    return compare(comparison->ops[0], left, right);
  }
  return foldCall(llvm::cast<ast::Call>(node));
}

TEST(ConstValue, AgreesWithCPython) {
  size_t values = 0, failures = 0;
  for (const Case &expected : cases) {
    Parsed parsed(expected.expression);
    ASSERT_FALSE(parsed.diagnostics.hasErrors()) << expected.expression << "\n" << parsed.messages();
    Expected<ConstValue> result = fold(parsed.expression());
    if (expected.fails) {
      ++failures;
      EXPECT_FALSE(result.isOk()) << expected.expression << " gave " << result->repr();
      EXPECT_EQ(result.status().message(), expected.expected) << expected.expression;
    } else {
      ++values;
      EXPECT_TRUE(result.isOk()) << expected.expression << ": " << result.status().message();
      if (result.isOk()) {
        EXPECT_EQ(result->repr(), expected.expected) << expected.expression;
      }
    }
  }
  EXPECT_GT(values, 1500u);
  EXPECT_GT(failures, 500u);
}

ConstValue integer(int64_t value) { return ConstValue::integer(value); }

TEST(ConstValue, TruthValues) {
  EXPECT_FALSE(ConstValue::none().isTrue());
  EXPECT_TRUE(ConstValue::ellipsis().isTrue());
  EXPECT_FALSE(integer(0).isTrue());
  EXPECT_TRUE(integer(-1).isTrue());
  EXPECT_FALSE(ConstValue::floating(-0.0).isTrue());
  EXPECT_TRUE(ConstValue::floating(std::nan("")).isTrue());
  EXPECT_FALSE(ConstValue::string("").isTrue());
  EXPECT_TRUE(ConstValue::string("0").isTrue());
  EXPECT_FALSE(ConstValue::boolean(false).isTrue());
}

TEST(ConstValue, IdentityKeepsTypesApart) {
  EXPECT_FALSE(integer(1).identical(ConstValue::boolean(true)));
  EXPECT_FALSE(integer(1).identical(ConstValue::floating(1.0)));
  EXPECT_FALSE(ConstValue::floating(0.0).identical(ConstValue::floating(-0.0)));
  EXPECT_TRUE(ConstValue::floating(std::nan("")).identical(ConstValue::floating(std::nan(""))));
  EXPECT_EQ(ConstValue::floating(std::nan("1")).hash(), ConstValue::floating(std::nan("2")).hash());
  EXPECT_FALSE(ConstValue::string("a").identical(ConstValue::bytes("a")));
  EXPECT_TRUE(integer(5).identical(integer(5)));
  EXPECT_EQ(integer(5).hash(), integer(5).hash());
  EXPECT_NE(integer(1).hash(), ConstValue::boolean(true).hash());
  EXPECT_TRUE(compare(CompareOp::Is, ConstValue::none(), ConstValue::none())->getBool());
  EXPECT_TRUE(compare(CompareOp::IsNot, integer(0), ConstValue::none())->getBool());
  EXPECT_TRUE(compare(CompareOp::Eq, ConstValue::none(), ConstValue::none())->getBool());
}

TEST(ConstValue, LimitsEndInMessages) {
  std::string tooLarge = "integer result too large: compile-time integers have at most 65536 bits";
  EXPECT_EQ(binary(BinaryOp::LShift, integer(1), integer(INT64_MAX)).status().message(), tooLarge);
  EXPECT_EQ(binary(BinaryOp::Pow, integer(10), integer(INT64_MAX)).status().message(), tooLarge);
  EXPECT_TRUE(binary(BinaryOp::Pow, integer(-1), integer(INT64_MAX)).isOk());
  ConstValue wide = *binary(BinaryOp::LShift, integer(1), integer(65535));
  EXPECT_EQ(binary(BinaryOp::Mult, wide, wide).status().message(), tooLarge);
  EXPECT_EQ(binary(BinaryOp::Add, wide, wide).status().message(), tooLarge);
  EXPECT_TRUE(binary(BinaryOp::Sub, wide, wide)->getInt().isZero());
  EXPECT_EQ(wide.repr().substr(0, 4), "0x80"); // more digits than Python prints
  EXPECT_FALSE(binary(BinaryOp::Mult, ConstValue::string("ab"), integer(INT64_MAX)).isOk());
  EXPECT_EQ(binary(BinaryOp::Mult, ConstValue::string("ab"), integer(-3))->getString(), "");
  EXPECT_FALSE(format(integer(1), "999999999999d").isOk());
  EXPECT_EQ(binary(BinaryOp::Mod, ConstValue::string("%d"), integer(1)).status().code(), StatusCode::Unsupported);
  EXPECT_FALSE(binary(BinaryOp::Pow, integer(-8), ConstValue::floating(0.5)).isOk());
}

TEST(BigInt, WidthsAndConversions) {
  EXPECT_TRUE(BigInt(-128).fitsSigned(8));
  EXPECT_FALSE(BigInt(128).fitsSigned(8));
  EXPECT_TRUE(BigInt(255).fitsUnsigned(8));
  EXPECT_FALSE(BigInt(-1).fitsUnsigned(64));
  EXPECT_EQ(BigInt(0).bitLength(), 0u);
  EXPECT_EQ(BigInt(-8).bitLength(), 4u);
  EXPECT_EQ(BigInt::fromUnsigned(UINT64_MAX).toString(), "18446744073709551615");
  EXPECT_EQ(BigInt::fromUnsigned(UINT64_MAX).toUint64(), UINT64_MAX);
  EXPECT_FALSE(BigInt::fromUnsigned(UINT64_MAX).toInt64());
  EXPECT_EQ(BigInt(INT64_MIN).toInt64(), INT64_MIN);
  EXPECT_EQ((-BigInt(INT64_MIN)).toString(), "9223372036854775808");
  EXPECT_EQ(BigInt(-1).toAPInt(8), llvm::APInt(8, 255));
  EXPECT_EQ(BigInt::fromDouble(-1e20)->toString(), "-100000000000000000000");
  EXPECT_EQ(BigInt::fromDouble(-2.9)->toString(), "-2");
  EXPECT_FALSE(BigInt::fromDouble(std::numeric_limits<double>::infinity()));
  EXPECT_EQ(BigInt::fromDigits("ff", 16), BigInt(255));
  EXPECT_FALSE(BigInt::fromDigits("12a", 10));
  EXPECT_FALSE(BigInt::fromDigits(std::string(5000, '9'), 10));
  EXPECT_TRUE(BigInt(-3) < BigInt(2));
}

} // namespace
} // namespace ditron::frontend
