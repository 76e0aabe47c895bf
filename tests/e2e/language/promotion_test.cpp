//===- promotion_test.cpp - Operators and casts over all pairs of types -----------------------------------------------===//
//
// For each pair of element types one kernel applies every operator that the language allows for the pair to 256 pairs of
// values; result types (checked while compiling, with tl.static_assert) and values come from ScalarModel.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"
#include "language/ScalarModel.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

const DataType allTypes[] = {DataType::I1,  DataType::I8,  DataType::I16, DataType::I32, DataType::I64,
                             DataType::U8,  DataType::U16, DataType::U32, DataType::U64, DataType::BF16,
                             DataType::F16, DataType::F32, DataType::F64};
const char *const operators[] = {"+",  "-",  "*",  "/",  "//", "%",  "&", "|", "^",
                                 "<<", ">>", "==", "!=", "<",  "<=", ">", ">="};

/// Every value of one list with every value of the other.
std::pair<std::vector<Scalar>, std::vector<Scalar>> allPairs(DataType left, DataType right) {
  std::vector<Scalar> a, b;
  for (const Scalar &x : interestingValues(left))
    for (const Scalar &y : interestingValues(right)) {
      a.push_back(x);
      b.push_back(y);
    }
  return {a, b};
}

class Promotion : public KernelTest, public testing::WithParamInterface<DataType> {
protected:
  Buffer putScalars(DataType type, const std::vector<Scalar> &values, std::string_view name) {
    Buffer buffer = zeros(type, values.size(), name);
    std::vector<std::byte> bytes = toMemory(type, values);
    EXPECT_OK(buffer.upload(bytes.data(), bytes.size()));
    return buffer;
  }
  std::vector<Scalar> getScalars(const Buffer &buffer) {
    std::vector<std::byte> bytes(buffer.bytes());
    EXPECT_OK(buffer.download(bytes.data(), bytes.size()));
    return fromMemory(buffer.type(), bytes);
  }
  void checkPair(DataType left, DataType right);
};

void Promotion::checkPair(DataType left, DataType right) {
  auto [a, b] = allPairs(left, right);
  Buffer x = putScalars(left, a, "x"), y = putScalars(right, b, "y");

  // Divisors of zero are among the values: the result is undefined then, but the program must go on.
  std::string parameters, body;
  std::vector<Buffer> outputs;
  std::vector<std::string> applied;
  std::vector<Argument> arguments = {x, y};
  for (std::string op : operators) {
    std::optional<DataType> type = resultType(op, left, right);
    if (!type || (op == "<<" && left == DataType::I1) || (op == ">>" && left == DataType::I1))
      continue;
    const size_t index = applied.size();
    parameters += fmt::format("o{}_ptr, ", index);
    body += fmt::format("    r{0} = x {1} y\n    tl.static_assert(r{0}.dtype == {2}, \"x {1} y\")\n"
                        "    tl.store(o{0}_ptr + i, r{0})\n",
                        index, op, languageName(*type));
    applied.push_back(op);
    outputs.push_back(zeros(*type, a.size(), "o" + std::to_string(index)));
  }
  for (const Buffer &output : outputs)
    arguments.push_back(output);
  arguments.push_back(static_cast<int64_t>(a.size()));
  std::string text =
      fmt::format("@triton.jit\ndef operators(x_ptr, y_ptr, {}N: tl.constexpr):\n    i = tl.arange(0, N)\n"
                  "    x = tl.load(x_ptr + i)\n    y = tl.load(y_ptr + i)\n{}",
                  parameters, body);
  ASSERT_OK(run(text, "operators", {}, {arguments, {}}));
  for (size_t k = 0; k < applied.size(); ++k) {
    std::vector<Scalar> actual = getScalars(outputs[k]);
    size_t wrong = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      std::optional<Scalar> expected = evaluate(applied[k], a[i], b[i]);
      const uint32_t steps = !isSimulated() && applied[k] == "/" ? 2 : 0;
      if (expected && !areClose(actual[i], *expected, steps) && ++wrong <= 3)
        ADD_FAILURE() << toString(left) << " " << a[i].text() << " " << applied[k] << " " << toString(right) << " "
                      << b[i].text() << " gives " << actual[i].text() << ", expected " << expected->text() << " ("
                      << toString(expected->type) << ")";
    }
    EXPECT_EQ(wrong, 0u) << toString(left) << " " << applied[k] << " " << toString(right);
  }
}

TEST_P(Promotion, OperatorsWithEveryOtherType) {
  for (DataType right : allTypes) {
    SCOPED_TRACE(fmt::format("{} with {}", toString(GetParam()), toString(right)));
    checkPair(GetParam(), right);
    if (HasFatalFailure())
      return;
  }
}

TEST_P(Promotion, RefusedCombinationsAreCompileErrors) {
  const DataType left = GetParam();
  for (DataType right : {DataType::I32, DataType::U32, DataType::F32}) {
    for (std::string op : {"//", "%", "&", "<<"}) {
      if (resultType(op, left, right))
        continue;
      Buffer x = zeros(left, 16, "x"), y = zeros(right, 16, "y"), out = zeros(DataType::F32, 16);
      std::string text =
          fmt::format("@triton.jit\ndef refused(x_ptr, y_ptr, out_ptr):\n    i = tl.arange(0, 16)\n"
                      "    x = tl.load(x_ptr + i)\n    y = tl.load(y_ptr + i)\n    tl.store(out_ptr + i, x {} y)\n",
                      op);
      Status status = run(text, "refused", {}, {{x, y, out}, {}});
      EXPECT_EQ(status.code(), StatusCode::CompileError) << toString(left) << " " << op << " " << toString(right);
      EXPECT_THAT(status.message(), testing::HasSubstr(fmt::format("kernel.py:{}:", prologueLines() + 6)));
    }
  }
}

TEST_P(Promotion, CastsToEveryOtherType) {
  const DataType from = GetParam();
  std::vector<Scalar> values = interestingValues(from);
  Buffer x = putScalars(from, values, "x");
  std::string parameters, body;
  std::vector<Buffer> outputs;
  std::vector<Argument> arguments = {x};
  for (DataType to : allTypes) {
    const size_t index = outputs.size();
    parameters += fmt::format(", o{}_ptr", index);
    body +=
        fmt::format("    r{0} = x.to({1})\n    tl.static_assert(r{0}.dtype == {1})\n    tl.store(o{0}_ptr + i, r{0})\n",
                    index, languageName(to));
    outputs.push_back(zeros(to, values.size(), "o" + std::to_string(index)));
  }
  for (const Buffer &output : outputs)
    arguments.push_back(output);
  std::string text =
      fmt::format("@triton.jit\ndef casts(x_ptr{}):\n    i = tl.arange(0, {})\n    x = tl.load(x_ptr + i)\n{}",
                  parameters, values.size(), body);
  ASSERT_OK(run(text, "casts", {.numWarps = 1}, {arguments, {}}));
  for (size_t k = 0; k < outputs.size(); ++k) {
    std::vector<Scalar> actual = getScalars(outputs[k]);
    for (size_t i = 0; i < values.size(); ++i)
      if (std::optional<Scalar> expected = convert(values[i], allTypes[k]))
        EXPECT_TRUE(actual[i] == *expected)
            << toString(from) << " " << values[i].text() << " to " << toString(allTypes[k]) << " gives "
            << actual[i].text() << ", expected " << expected->text();
  }
}

std::string typeName(const testing::TestParamInfo<DataType> &info) { return std::string(toString(info.param)); }
INSTANTIATE_TEST_SUITE_P(Types, Promotion, testing::ValuesIn(allTypes), typeName);

} // namespace
} // namespace ditron::e2e
