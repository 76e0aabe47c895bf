//===- lane_order_test.cpp - Loads, stores and atomics take effect operation by operation -----------------------------===//
//
// Lanes of a warp go through a tile operation together, and a warp's operations take effect in program order
// (docs/memory-model.md). Random programs load, store and count through permuted indices, so that elements pass from lane to lane;
// an interpreter does one whole operation after the other. Blocks have one warp: which of several warps has an element may differ from
// operation to operation, with the layouts, and between warps nothing is ordered but by barriers.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>

#include <numeric>

namespace ditron::e2e {
namespace {

constexpr int bufferCount = 3;
constexpr int tableCount = 4;

/// What a program is made for.
struct Setting {
  DataType type;
  int elements;
  int columns; ///< 0: one dimension.
};

int64_t wrap(DataType type, int64_t value) {
  switch (type) {
  case DataType::I8: return static_cast<int8_t>(value);
  case DataType::I16: return static_cast<int16_t>(value);
  case DataType::I32: return static_cast<int32_t>(value);
  default: return value;
  }
}

using Tile = std::vector<int64_t>;

/// What the interpreter works on.
struct Memory {
  std::vector<Tile> buffers;
  std::vector<Tile> values; ///< Variables of the program.
};

/// Kernel text and, statement by statement, what it does. `turn` is the number of the loop's turn.
class Program {
public:
  using Step = std::function<void(Memory &, int64_t turn)>;

  Program(const Setting &setting, uint64_t seed) : setting(setting), state(seed * 6151 + 7) {
    for (int table = 0; table < tableCount; ++table)
      tables.push_back(makeTable());
    emitHead();
    const int statements = 6 + below(8);
    for (int i = 0; i < statements; ++i)
      below(5) == 0 ? addLoop() : add(body, steps, "    ", /*isLoop=*/false);
  }

  std::string text() const {
    std::string kernel = "@triton.jit\ndef program(";
    for (int i = 0; i < bufferCount; ++i)
      kernel += fmt::format("b{}, ", i);
    return kernel + "t_ptr, turns, N: tl.constexpr):\n" + head + body;
  }
  void interpret(Memory &memory) const {
    for (const Step &step : steps)
      step(memory, 0);
  }

  Setting setting;
  std::vector<std::vector<int32_t>> tables;
  static constexpr int turns = 3;

private:
  int below(int limit) { return static_cast<int>(randomIntegers(1, state++, 0, limit - 1)[0]); }

  std::vector<int32_t> makeTable() {
    std::vector<int32_t> table(setting.elements);
    std::iota(table.begin(), table.end(), 0);
    for (size_t i = table.size(); i > 1; --i)
      std::swap(table[i - 1], table[below(static_cast<int>(i))]);
    return table;
  }

  void emitHead() {
    if (setting.columns)
      head = fmt::format("    i = tl.arange(0, {0})[:, None] * {1} + tl.arange(0, {1})[None, :]\n",
                         setting.elements / setting.columns, setting.columns);
    else
      head = "    i = tl.arange(0, N)\n";
    for (int table = 0; table < tableCount; ++table)
      head += fmt::format("    p{0} = tl.load(t_ptr + {0} * N + i)\n", table);
    head += "    turn = 0\n";
    for (int variable = 0; variable < 2; ++variable) {
      const int buffer = below(bufferCount);
      body += fmt::format("    v{} = tl.load(b{} + p0)\n", variable, buffer);
      steps.push_back([=, table = tables[0]](Memory &memory, int64_t) {
        for (size_t i = 0; i < table.size(); ++i)
          memory.values[variable][i] = memory.buffers[buffer][table[i]];
      });
    }
  }

  /// Indices that name each element once: text and, for an element and a turn, the number.
  struct Index {
    std::string text;
    std::function<int64_t(int64_t element, int64_t turn)> at;
  };
  Index permutation(bool isLoop) {
    const int64_t n = setting.elements, flip = below(32);
    Index index;
    const int kind = below(5);
    if (kind == 0 || kind == 4) {
      const int number = below(tableCount);
      index = {fmt::format("p{}", number), [table = tables[number]](int64_t i, int64_t) { return int64_t(table[i]); }};
    } else if (kind == 1) {
      index = {"i", [](int64_t i, int64_t) { return i; }};
    } else if (kind == 2) {
      index = {"(N - 1 - i)", [n](int64_t i, int64_t) { return n - 1 - i; }};
    } else {
      const int64_t factor = 2 * below(16) + 1;
      index = {fmt::format("(i * {} % N)", factor), [=](int64_t i, int64_t) { return i * factor % n; }};
    }
    if (isLoop && below(2))
      return {fmt::format("({} ^ (turn * 5 % 32))", index.text),
              [at = index.at](int64_t i, int64_t turn) { return at(i, turn) ^ (turn * 5 % 32); }};
    if (isLoop && below(2)) // tile after tile, or overlapping ones
      return further(index);
    if (below(2))
      return {fmt::format("({} ^ {})", index.text, flip),
              [at = index.at, flip](int64_t i, int64_t turn) { return at(i, turn) ^ flip; }};
    return index;
  }

  /// From turn to turn further on.
  Index further(const Index &index) {
    const int64_t n = setting.elements, step = below(2) ? n : n / 2;
    return {fmt::format("(turn * {} + {})", step, index.text),
            [at = index.at, step](int64_t i, int64_t turn) { return turn * step + at(i, turn); }};
  }

  struct Mask {
    std::string text;
    std::function<bool(int64_t element)> at;
  };
  Mask mask() {
    const int modulus = 2 + below(5), rest = below(modulus);
    if (below(2))
      return {"", [](int64_t) { return true; }};
    return {fmt::format(", mask=i % {} != {}", modulus, rest), [=](int64_t i) { return i % modulus != rest; }};
  }

  void add(std::string &out, std::vector<Step> &into, const std::string &indent, bool isLoop) {
    const int kind = below(7);
    if (kind < 2)
      addLoad(out, into, indent, isLoop);
    else if (kind < 5)
      addStore(out, into, indent, isLoop);
    else if (kind == 5)
      addAtomic(out, into, indent, isLoop);
    else
      addScalar(out, into, indent);
  }

  void addLoad(std::string &out, std::vector<Step> &into, const std::string &indent, bool isLoop) {
    const int buffer = below(bufferCount), variable = below(2), other = below(100);
    Index index = permutation(isLoop);
    Mask lanes = mask();
    const bool spreads = below(3) == 0; // several elements read one place
    if (spreads)
      index = {fmt::format("({} // 2)", index.text),
               [at = index.at](int64_t i, int64_t turn) { return at(i, turn) / 2; }};
    out += fmt::format("{}v{} = tl.load(b{} + {}{}{})\n", indent, variable, buffer, index.text, lanes.text,
                       lanes.text.empty() ? "" : fmt::format(", other={}", other));
    into.push_back([=, type = setting.type](Memory &memory, int64_t turn) {
      Tile loaded(memory.values[variable].size());
      for (size_t i = 0; i < loaded.size(); ++i)
        loaded[i] = lanes.at(i) ? memory.buffers[buffer][index.at(i, turn)] : wrap(type, other);
      memory.values[variable] = loaded;
    });
  }

  void addStore(std::string &out, std::vector<Step> &into, const std::string &indent, bool isLoop) {
    const int buffer = below(bufferCount), variable = below(2), addend = below(50);
    const Index index = permutation(isLoop);
    const Mask lanes = mask();
    out += fmt::format("{}tl.store(b{} + {}, v{} + {}{})\n", indent, buffer, index.text, variable, addend, lanes.text);
    into.push_back([=, type = setting.type](Memory &memory, int64_t turn) {
      for (size_t i = 0; i < memory.values[variable].size(); ++i)
        if (lanes.at(i))
          memory.buffers[buffer][index.at(i, turn)] = wrap(type, memory.values[variable][i] + addend);
    });
  }

  void addAtomic(std::string &out, std::vector<Step> &into, const std::string &indent, bool isLoop) {
    if (setting.type != DataType::I32 && setting.type != DataType::I64 && setting.type != DataType::F32)
      return;
    const int buffer = below(bufferCount), variable = below(2), addend = below(50);
    const Index index = permutation(isLoop);
    const Mask lanes = mask();
    const bool isUsed = lanes.text.empty() && below(2) != 0;
    out += fmt::format("{}{}tl.atomic_add(b{} + {}, v{} * 0 + {}{}, sem=\"relaxed\")\n", indent,
                       isUsed ? fmt::format("v{} = ", variable) : "", buffer, index.text, variable, addend, lanes.text);
    into.push_back([=, type = setting.type](Memory &memory, int64_t turn) {
      for (size_t i = 0; i < memory.values[variable].size(); ++i) {
        if (!lanes.at(i))
          continue;
        int64_t &word = memory.buffers[buffer][index.at(i, turn)];
        if (isUsed)
          memory.values[variable][i] = word;
        word = wrap(type, word + addend);
      }
    });
  }

  /// Reads one element and writes another, or the same.
  void addScalar(std::string &out, std::vector<Step> &into, const std::string &indent) {
    const int from = below(bufferCount), to = below(bufferCount), source = below(setting.elements),
              target = below(2) ? source : below(setting.elements);
    out += fmt::format("{}tl.store(b{} + {}, tl.load(b{} + {}) + 1)\n", indent, to, target, from, source);
    into.push_back([=, type = setting.type](Memory &memory, int64_t) {
      memory.buffers[to][target] = wrap(type, memory.buffers[from][source] + 1);
    });
  }

  void addLoop() {
    std::vector<Step> inside, sometimes;
    body += "    for turn in range(turns):\n";
    const int statements = 1 + below(4);
    for (int i = 0; i < statements; ++i)
      add(body, inside, "        ", /*isLoop=*/true);
    body += "        if turn % 2 == 1:\n";
    add(body, sometimes, "            ", /*isLoop=*/true);
    body += "            v0 = v0 + 1\n";
    sometimes.push_back([type = setting.type](Memory &memory, int64_t) {
      for (int64_t &value : memory.values[0])
        value = wrap(type, value + 1);
    });
    steps.push_back([=](Memory &memory, int64_t) {
      for (int64_t turn = 0; turn < turns; ++turn) {
        for (const Step &step : inside)
          step(memory, turn);
        for (const Step &step : sometimes)
          if (turn % 2 == 1)
            step(memory, turn);
      }
    });
  }

  uint64_t state;
  std::string head, body;
  std::vector<Step> steps;
};

class LaneOrder : public KernelTest {
protected:
  template <typename T> void check(const Program &program, uint64_t seed) {
    const int n = program.setting.elements;
    Memory memory{{}, std::vector<Tile>(2, Tile(n))};
    for (int buffer = 0; buffer < bufferCount; ++buffer)
      memory.buffers.push_back(randomIntegers(n * Program::turns, seed * 10 + buffer, -50, 50));
    std::vector<Tile> before = memory.buffers;
    program.interpret(memory);
    std::vector<int32_t> table;
    for (const auto &each : program.tables)
      table.insert(table.end(), each.begin(), each.end());
    // Simulated, every schedule gives the same.
    for (uint64_t schedule = 0; schedule < (isSimulated() ? 4 : 1); ++schedule) {
      start(1, seeded(schedule));
      std::vector<Buffer> buffers;
      std::vector<Argument> arguments;
      for (int buffer = 0; buffer < bufferCount; ++buffer)
        buffers.push_back(put(convertAll<T>(before[buffer])));
      arguments.insert(arguments.end(), buffers.begin(), buffers.end());
      const Buffer permutations = put(table); // an argument does not own its buffer
      arguments.push_back(permutations);
      arguments.push_back(int32_t(Program::turns));
      ASSERT_OK(run(program.text(), "program", {.numWarps = 1}, {arguments, {{"N", n}}}));
      for (int buffer = 0; buffer < bufferCount; ++buffer)
        expectSame(get<T>(buffers[buffer]), convertAll<T>(memory.buffers[buffer]),
                   fmt::format("buffer {} of program {}, schedule {}", buffer, seed, schedule));
      if (HasFailure())
        FAIL() << program.text();
    }
  }
};

class RandomLaneOrder : public LaneOrder, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Programs, RandomLaneOrder, testing::Range(0, 60));

TEST_P(RandomLaneOrder, IsThatOfTheProgram) {
  const auto seed = static_cast<uint64_t>(GetParam());
  const auto choose = [&](int limit, int salt) {
    return static_cast<size_t>(randomIntegers(1, seed * 31 + salt, 0, limit - 1)[0]);
  };
  const DataType types[] = {DataType::I32, DataType::F32, DataType::I8, DataType::I16, DataType::I64};
  Setting setting{types[choose(5, 1)], 0, 0};
  setting.elements = 32 << choose(5, 3); // 1 to 16 elements a thread
  if (choose(2, 4))
    setting.columns = 1 << choose(6, 5);
  const Program program(setting, seed);
  switch (setting.type) {
  case DataType::I8: return check<int8_t>(program, seed);
  case DataType::I16: return check<int16_t>(program, seed);
  case DataType::I64: return check<int64_t>(program, seed);
  case DataType::F32: return check<float>(program, seed);
  default: return check<int32_t>(program, seed);
  }
}

/// One kernel through two pointers into one buffer, and each of several schedules.
TEST_F(LaneOrder, ShiftThroughTwoArguments) {
  const char *text = R"(
@triton.jit
def shift(x_ptr, y_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y_ptr + i, tl.load(x_ptr + i))
    tl.store(y_ptr + i, tl.load(x_ptr + i) + 100)
)";
  for (uint64_t schedule = 0; schedule < 4; ++schedule) {
    start(1, seeded(schedule));
    std::vector<int32_t> values(65);
    std::iota(values.begin(), values.end(), 0);
    Buffer x = put(values);
    ASSERT_OK(run(text, "shift", {.numWarps = 1}, {{x, x.pointer() + 1}, {{"N", 64}}}));
    std::vector<int32_t> expected(65, 0);
    for (int i = 1; i < 65; ++i)
      expected[i] = std::max(0, i - 2) + 100;
    expectSame(get<int32_t>(x), expected, fmt::format("schedule {}", schedule));
  }
}

TEST_F(LaneOrder, PointersThatChangePlacesInALoop) {
  const char *text = R"(
@triton.jit
def turns(x_ptr, y_ptr, count, N: tl.constexpr):
    i = tl.arange(0, N)
    for turn in range(count):
        tl.store(y_ptr + i, tl.load(x_ptr + N - 1 - i) + 1)
        x_ptr, y_ptr = y_ptr, x_ptr
)";
  for (uint64_t schedule = 0; schedule < 4; ++schedule) {
    start(1, seeded(schedule));
    std::vector<int32_t> values(64);
    std::iota(values.begin(), values.end(), 0);
    Buffer x = put(values), y = zeros(DataType::I32, 64);
    ASSERT_OK(run(text, "turns", {.numWarps = 1}, {{x, y, int32_t(5)}, {{"N", 64}}}));
    std::vector<int32_t> expected(64);
    for (int i = 0; i < 64; ++i)
      expected[i] = 63 - i + 5;
    expectSame(get<int32_t>(y), expected, fmt::format("schedule {}", schedule));
  }
}

/// A tile operation after code of single threads, and before.
TEST_F(LaneOrder, TilesAroundDivergentThreads) {
  const char *text = R"(
@triton.jit
def around(x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    thread = tid(0)
    tl.store(x_ptr + N - 1 - i, i)
    if thread < 16:
        st(x_ptr + thread, 1000 + ld(x_ptr + thread))
    tl.store(x_ptr + i, tl.load(x_ptr + (i ^ 1)))
)";
  for (uint64_t schedule = 0; schedule < 4; ++schedule) {
    start(1, seeded(schedule));
    Buffer x = zeros(DataType::I32, 64);
    ASSERT_OK(run(text, "around", {.numWarps = 1}, {{x}, {{"N", 64}}}));
    std::vector<int32_t> expected(64);
    for (int i = 0; i < 64; ++i)
      expected[i] = 63 - (i ^ 1) + ((i ^ 1) < 16 ? 1000 : 0);
    expectSame(get<int32_t>(x), expected, fmt::format("schedule {}", schedule));
  }
}

/// Other seeds let threads run in another order; the same seed in the same.
TEST_F(LaneOrder, IsDrawnFromTheSeed) {
  if (!isSimulated())
    GTEST_SKIP() << "a GPU's schedule is its own";
  const char *text = R"(
@triton.jit
def arrive(out_ptr, counter_ptr):
    st(out_ptr + tid(0), atomic_add(counter_ptr, 1))
)";
  std::set<std::vector<int32_t>> orders;
  for (uint64_t schedule : {0, 1, 2, 3, 4, 5, 0, 3}) {
    start(1, seeded(schedule));
    Buffer out = zeros(DataType::I32, 128), counter = zeros(DataType::I32, 1);
    ASSERT_OK(run(text, "arrive", {}, {{out, counter}, {}}));
    orders.insert(get<int32_t>(out));
  }
  EXPECT_GT(orders.size(), 3u);
  EXPECT_LE(orders.size(), 6u);
}

} // namespace
} // namespace ditron::e2e
