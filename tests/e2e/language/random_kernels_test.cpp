//===- random_kernels_test.cpp - Random straight-line kernels against an interpreter ----------------------------------===//
//
// Makes kernels of random statements over blocks of all types and of several shapes, so that types, layouts and conversions
// between them meet in combinations that nobody writes down, and interprets the same statements element by element. All
// variables are stored and compared exactly.
//
// What would make exact comparison impossible is left out: products of floats (which may be fused with a sum) and sums of
// floats along an axis. Where the language leaves a result undefined, the element and all that follows from it is not compared.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"
#include "language/ScalarModel.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

using Element = std::optional<Scalar>; ///< None: undefined.

struct Block {
  DataType type;
  std::vector<int> shape;
  std::vector<Element> elements; ///< Row-major.
};

/// An elementwise function of two blocks; shapes are equal or one dimension of 1 is repeated.
template <typename Function> Block combine(DataType type, const Block &a, const Block &b, Function function) {
  Block result{type, {}, {}};
  for (size_t d = 0; d < a.shape.size(); ++d)
    result.shape.push_back(std::max(a.shape[d], b.shape[d]));
  const int columns = result.shape.back(), rows = result.shape.size() == 2 ? result.shape[0] : 1;
  auto at = [](const Block &block, int row, int column) -> const Element & {
    const int width = block.shape.back(), height = block.shape.size() == 2 ? block.shape[0] : 1;
    return block.elements[(height == 1 ? 0 : row) * width + (width == 1 ? 0 : column)];
  };
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column) {
      const Element &x = at(a, row, column), &y = at(b, row, column);
      result.elements.push_back(x && y ? function(*x, *y) : Element());
    }
  return result;
}

class Generator {
public:
  explicit Generator(uint64_t seed) : state(seed * 7919 + 13) {}

  int below(int limit) { return static_cast<int>(randomIntegers(1, state++, 0, limit - 1)[0]); }

  /// Appends a variable; its statement is `v<index> = <text>`.
  void add(Block block, const std::string &text, std::string_view indent = "    ") {
    body += fmt::format("{}v{} = {}\n", indent, variables.size(), text);
    body += fmt::format("{}tl.static_assert(v{}.dtype == {}, \"{}\")\n", indent, variables.size(),
                        languageName(block.type), text);
    variables.push_back(std::move(block));
  }
  void addStatement();

  std::vector<Block> variables;
  std::string body;

private:
  bool addBinary(int a, int b);
  void addCast(int a);
  void addWhere(int a, int b);
  void addExtreme(int a, int b);
  void addShape(int a);
  void addReduction(int a);
  void addScan(int a);
  void addBranch(int a);

  uint64_t state;
};

bool compatible(const Block &a, const Block &b) {
  if (a.shape.size() != b.shape.size())
    return false;
  for (size_t d = 0; d < a.shape.size(); ++d)
    if (a.shape[d] != b.shape[d] && a.shape[d] != 1 && b.shape[d] != 1)
      return false;
  return true;
}

bool Generator::addBinary(int a, int b) {
  const char *const operators[] = {"+", "-", "*", "//", "%", "&", "|", "^", ">>", "==", "<", ">=", "/"};
  const std::string op = operators[below(std::size(operators))];
  const Block &left = variables[a], &right = variables[b];
  std::optional<DataType> type = resultType(op, left.type, right.type);
  const bool floats = isFloat(left.type) || isFloat(right.type);
  if (!type || !compatible(left, right) || (floats && (op == "*" || op == "/" || op == "%")) ||
      (op == ">>" && left.type == DataType::I1))
    return false;
  add(combine(*type, left, right, [&](const Scalar &x, const Scalar &y) { return evaluate(op, x, y); }),
      fmt::format("v{} {} v{}", a, op, b));
  return true;
}

void Generator::addCast(int a) {
  const DataType types[] = {DataType::I1,  DataType::I8,  DataType::I32,  DataType::I64, DataType::U8, DataType::U16,
                            DataType::U32, DataType::F16, DataType::BF16, DataType::F32, DataType::F64};
  const DataType type = types[below(std::size(types))];
  Block result{type, variables[a].shape, {}};
  for (const Element &each : variables[a].elements)
    result.elements.push_back(each ? convert(*each, type) : Element());
  add(std::move(result), fmt::format("v{}.to({})", a, languageName(type)));
}

/// `where` with a condition made from the left operand.
void Generator::addWhere(int a, int b) {
  const Block &left = variables[a], &right = variables[b];
  std::optional<DataType> type = resultType("+", left.type, right.type);
  if (!compatible(left, right) || !type)
    return;
  add(combine(*type, left, right,
              [&](const Scalar &x, const Scalar &y) { return convert(evaluate("<", x, y)->bits ? y : x, *type); }),
      fmt::format("tl.where(v{0} < v{1}, v{1}, v{0})", a, b));
}

void Generator::addExtreme(int a, int b) {
  const Block &left = variables[a], &right = variables[b];
  std::optional<DataType> type = resultType("+", left.type, right.type);
  if (!compatible(left, right) || !type || *type == DataType::I1)
    return;
  const DataType wide = *type == DataType::BF16 ? DataType::F32 : *type;
  const bool maximum = below(2);
  add(combine(wide, left, right,
              [&](const Scalar &x, const Scalar &y) -> Element {
                Element p = convert(x, wide), q = convert(y, wide);
                if (!p || !q)
                  return {};
                if (isFloat(wide) && std::isnan(p->real))
                  return q;
                if (isFloat(wide) && std::isnan(q->real))
                  return p;
                return (evaluate("<", *p, *q)->bits != 0) == maximum ? q : p;
              }),
      fmt::format("tl.{}(v{}, v{})", maximum ? "maximum" : "minimum", a, b));
}

void Generator::addShape(int a) {
  const Block source = variables[a];
  Block result = source;
  if (source.shape.size() == 1) {
    const int count = source.shape[0];
    if (below(2)) {
      const bool asRow = below(2);
      result.shape = asRow ? std::vector<int>{1, count} : std::vector<int>{count, 1};
      add(result, fmt::format("v{}{}", a, asRow ? "[None, :]" : "[:, None]"));
    } else {
      const int rows = 1 << below(std::countr_zero(unsigned(count)) + 1);
      result.shape = {rows, count / rows};
      add(result, fmt::format("tl.reshape(v{}, ({}, {}))", a, rows, count / rows));
    }
    return;
  }
  const int rows = source.shape[0], columns = source.shape[1];
  if (below(3) == 0) {
    result.shape = {rows * columns};
    add(result, fmt::format("tl.reshape(v{}, [{}])", a, rows * columns));
    return;
  }
  result.shape = {columns, rows};
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column)
      result.elements[column * rows + row] = source.elements[row * columns + column];
  add(result, fmt::format("tl.trans(v{})", a));
}

/// The elements of `block` along `axis` at a place of the other dimension.
std::vector<int> line(const Block &block, int axis, int place) {
  std::vector<int> indices;
  for (int i = 0; i < block.shape[axis]; ++i)
    indices.push_back(block.shape.size() == 1 ? i
                      : axis == 1             ? place * block.shape[1] + i
                                              : i * block.shape[1] + place);
  return indices;
}

void Generator::addReduction(int a) {
  const Block &source = variables[a];
  if (source.shape.size() != 2)
    return;
  const int axis = below(2);
  const bool narrow = widthOf(source.type) < 32;
  const bool sum = !isFloat(source.type) && below(2);
  // Sums widen narrow integers of either signedness to 32 bits, extremes to int32 and narrow floats to fp32.
  DataType type = source.type;
  if (narrow)
    type = isFloat(source.type) ? DataType::F32 : sum && !isSignedInteger(source.type) ? DataType::U32 : DataType::I32;
  const bool maximum = below(2);
  Block result{type, {source.shape[1 - axis]}, {}};
  for (int place = 0; place < source.shape[1 - axis]; ++place) {
    Element total;
    bool first = true;
    for (int index : line(source, axis, place)) {
      const Element &each = source.elements[index];
      Element wide = each ? convert(*each, type) : Element();
      if (first)
        total = wide;
      else if (!wide || !total)
        total = std::nullopt;
      else if (sum)
        total = evaluate("+", *total, *wide);
      else if (isFloat(type) && std::isnan(total->real))
        total = wide;
      else if (!(isFloat(type) && std::isnan(wide->real)) && (evaluate("<", *total, *wide)->bits != 0) == maximum)
        total = wide;
      first = false;
    }
    result.elements.push_back(total);
  }
  add(std::move(result), fmt::format("tl.{}(v{}, axis={})", sum ? "sum" : maximum ? "max" : "min", a, axis));
}

void Generator::addScan(int a) {
  const Block &source = variables[a];
  if (isFloat(source.type))
    return;
  const int axis = below(static_cast<int>(source.shape.size()));
  const bool reverse = below(2);
  DataType type = source.type;
  if (widthOf(type) < 32)
    type = isSignedInteger(type) ? DataType::I32 : DataType::U32;
  Block result{type, source.shape, std::vector<Element>(source.elements.size())};
  const int places = source.shape.size() == 1 ? 1 : source.shape[1 - axis];
  for (int place = 0; place < places; ++place) {
    std::vector<int> indices = line(source, axis, place);
    if (reverse)
      std::reverse(indices.begin(), indices.end());
    Element total = Scalar::integer(type, 0);
    for (int index : indices) {
      const Element &each = source.elements[index];
      total = each && total ? evaluate("+", *total, *convert(*each, type)) : Element();
      result.elements[index] = total;
    }
  }
  add(std::move(result), fmt::format("tl.cumsum(v{}, axis={}{})", a, axis, reverse ? ", reverse=True" : ""));
}

/// A run-time loop that runs three times, or a run-time branch; `three` is a parameter of the kernel.
void Generator::addBranch(int a) {
  Block result = variables[a];
  if (isFloat(result.type) || result.type == DataType::I1)
    return;
  const size_t index = variables.size();
  if (below(2)) {
    for (int turn = 0; turn < 3; ++turn)
      for (Element &each : result.elements)
        each = each ? evaluate("^", *evaluate("+", *each, *each), Scalar::integer(result.type, turn + 1)) : Element();
    add(std::move(result), fmt::format("v{} + 0", a));
    body +=
        fmt::format("    for turn in range(three):\n        v{0} = (v{0} + v{0}) ^ (turn + 1).to(v{0}.dtype)\n", index);
    return;
  }
  for (Element &each : result.elements)
    each = each ? evaluate("-", *each, Scalar::integer(result.type, 3)) : Element();
  add(std::move(result), fmt::format("v{} + 0", a));
  body += fmt::format(
      "    if three == 3:\n        v{0} = v{0} - three.to(v{0}.dtype)\n    else:\n        v{0} = v{0} * 2\n", index);
}

void Generator::addStatement() {
  const int count = static_cast<int>(variables.size()), a = below(count);
  // A partner with which the operand can be combined, when there is one among a few tries.
  int b = below(count);
  for (int tries = 0; tries < 8 && !compatible(variables[a], variables[b]); ++tries)
    b = below(count);
  switch (below(10)) {
  case 0: return addCast(a);
  case 1: return addWhere(a, b);
  case 2: return addExtreme(a, b);
  case 3:
  case 4: return addShape(a);
  case 5: return addReduction(a);
  case 6: return addScan(a);
  case 7: return addBranch(a);
  default: addBinary(a, b);
  }
}

class RandomKernels : public KernelTest, public testing::WithParamInterface<int> {};

TEST_P(RandomKernels, AgreeWithTheInterpreter) {
  Generator generator(GetParam());
  const int rows = 1 << generator.below(6), columns = 1 << generator.below(7);
  const DataType inputs[] = {DataType::I32, DataType::F32, DataType::I8, DataType::F16};
  std::vector<Argument> arguments = {3};
  std::vector<Buffer> buffers;
  std::string parameters = "three";
  generator.body =
      fmt::format("    at = tl.arange(0, {0})[:, None] * {1} + tl.arange(0, {1})[None, :]\n", rows, columns);
  for (DataType type : inputs) {
    std::vector<int64_t> random =
        randomIntegers(rows * columns, GetParam() * 10 + generator.variables.size(), -100, 100);
    Block block{type, {rows, columns}, {}};
    std::vector<Scalar> values;
    for (int64_t each : random) {
      values.push_back(isFloat(type) ? Scalar::floating(type, each / 4.0) : Scalar::integer(type, each));
      block.elements.push_back(values.back());
    }
    std::vector<std::byte> bytes = toMemory(type, values);
    buffers.push_back(zeros(type, values.size(), "in"));
    ASSERT_OK(buffers.back().upload(bytes.data(), bytes.size()));
    parameters += fmt::format(", in{}_ptr", generator.variables.size());
    generator.add(std::move(block), fmt::format("tl.load(in{}_ptr + at)", generator.variables.size()));
  }
  while (generator.variables.size() < 24)
    generator.addStatement();

  for (size_t v = 0; v < generator.variables.size(); ++v) {
    const Block &block = generator.variables[v];
    parameters += fmt::format(", out{}_ptr", v);
    const std::string place = block.shape.size() == 1
                                  ? fmt::format("tl.arange(0, {})", block.shape[0])
                                  : fmt::format("tl.arange(0, {0})[:, None] * {1} + tl.arange(0, {1})[None, :]",
                                                block.shape[0], block.shape[1]);
    generator.body += fmt::format("    tl.store(out{0}_ptr + {1}, v{0})\n", v, place);
    buffers.push_back(zeros(block.type, block.elements.size(), "out"));
  }
  for (const Buffer &buffer : buffers)
    arguments.push_back(buffer);
  const std::string text = fmt::format("@triton.jit\ndef random_kernel({}):\n{}", parameters, generator.body);
  const uint32_t warps = 1u << generator.below(4);
  SCOPED_TRACE(text);
  ASSERT_OK(run(text, "random_kernel", {.numWarps = warps}, {arguments, {}}));

  for (size_t v = 0; v < generator.variables.size(); ++v) {
    const Block &block = generator.variables[v];
    const Buffer &buffer = buffers[std::size(inputs) + v];
    std::vector<std::byte> bytes(buffer.bytes());
    ASSERT_OK(buffer.download(bytes.data(), bytes.size()));
    std::vector<Scalar> actual = fromMemory(block.type, bytes);
    for (size_t i = 0; i < actual.size(); ++i)
      ASSERT_TRUE(!block.elements[i] || areClose(actual[i], *block.elements[i], isSimulated() ? 0 : 16))
          << "v" << v << "[" << i << "] is " << actual[i].text() << ", expected " << block.elements[i]->text() << ", "
          << warps << " warps";
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomKernels, testing::Range(1, 81));

} // namespace
} // namespace ditron::e2e
