//===- numerics_test.cpp - Lowered operations compute what they should, under random layouts ------------------------------===//
//
// Each test runs one operation on the simulator for several random layouts (with copies in lanes and warps, axes across
// registers, lanes and warps) and compares with a plain reference. Integer data makes the comparison exact; operations that
// are not commutative prove the order of combination.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelHarness.h"
#include "TileProgram.h"

#include "ditron/layout/Builders.h"

#include <array>
#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <numeric>

using namespace ditron;
using namespace ditron::target::test;
using ditron::layout::DistributedLayout;
using ditron::layout::Shape;

namespace {

/// Distinct, order-revealing test data.
std::vector<int32_t> sampleIntegers(int64_t count) {
  std::vector<int32_t> values(count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = static_cast<int32_t>((i * 7919 + 13) % 1009 - 500);
  return values;
}

/// Runs the program on arrays; fails the test on error.
std::vector<ArrayArgument> runProgram(const TileProgram &program, int numWarps, std::vector<ArrayArgument> arrays) {
  KernelRun run;
  run.source = program.text();
  run.numWarps = numWarps;
  Status status = runKernel(run, arrays);
  EXPECT_TRUE(status.isOk()) << status.message() << "\n" << run.source;
  return arrays;
}

constexpr int rounds = 6;

TEST(SimNumerics, StoreWritesWhatLoadRead) {
  std::mt19937 random(1);
  for (int round = 0; round < rounds; ++round) {
    int warpBits = round % 3;
    DistributedLayout layout = randomLayout(random, {16, 32}, warpBits);
    SCOPED_TRACE(layout.toString());
    TileProgram program(1 << warpBits);
    std::string in = program.array("i32"), out = program.array("i32");
    std::string loaded = program.load(in, layout, "i32"), indices = program.indices(layout), sum = program.fresh();
    program.line(sum + " = arith.addi " + loaded + ", " + indices + " : " + TileProgram::tensor(layout, "i32"));
    program.store(out, sum, layout, "i32");
    std::vector<int32_t> data = sampleIntegers(512);
    auto arrays =
        runProgram(program, 1 << warpBits, {ArrayArgument::of(data), ArrayArgument::of(std::vector<int32_t>(512))});
    for (int i = 0; i < 512; ++i)
      data[i] += i;
    EXPECT_EQ(arrays[1].as<int32_t>(), data);
  }
}

TEST(SimNumerics, ConvertLayoutKeepsEveryElement) {
  const std::array<std::pair<std::string, int>, 4> elements{{{"i32", 4}, {"i16", 2}, {"i1", 1}, {"i64", 8}}};
  std::mt19937 random(2);
  for (int round = 0; round < 4 * rounds; ++round) {
    int warpBits = round % 3;
    const auto &[element, bytes] = elements[round % elements.size()];
    DistributedLayout source = randomLayout(random, {16, 16}, warpBits),
                      result = randomLayout(random, {16, 16}, warpBits);
    SCOPED_TRACE(source.toString() + " -> " + result.toString());
    TileProgram program(1 << warpBits);
    std::string in = program.array(element), out = program.array(element);
    std::string loaded = program.load(in, source, element), converted = program.fresh();
    program.line(fmt::format("{} = dgpu.convert_layout {} {{offset_bytes = 64 : i64}} : {} -> {}", converted, loaded,
                             TileProgram::tensor(source, element), TileProgram::tensor(result, element)));
    program.store(out, converted, result, element);
    ArrayArgument data = ArrayArgument::of(sampleIntegers(256 * bytes / 4));
    if (element == "i1")
      for (std::byte &value : data.bytes)
        value &= std::byte(1);
    auto arrays = runProgram(program, 1 << warpBits, {data, {std::vector<std::byte>(256 * bytes)}});
    EXPECT_EQ(arrays[1].bytes, data.bytes);
  }
}

TEST(SimNumerics, ReduceFollowsTheCanonicalOrder) {
  // f(a, b) = a * 3 - b is neither commutative nor associative: the result pins the tree.
  auto tree = [](std::vector<int32_t> values) {
    while (values.size() > 1) {
      std::vector<int32_t> next;
      for (size_t i = 0; i < values.size(); i += 2)
        next.push_back(int32_t(uint32_t(values[i]) * 3u - uint32_t(values[i + 1])));
      values = next;
    }
    return values[0];
  };
  std::mt19937 random(3);
  for (int round = 0; round < 5 * rounds; ++round) {
    int warpBits = round % 5, axis = round % 2;
    Shape shape{16, 32};
    DistributedLayout source = randomLayout(random, shape, warpBits), result = source.dropAxis(axis);
    SCOPED_TRACE(fmt::format("{} axis {}", source.toString(), axis));
    TileProgram program(1 << warpBits);
    std::string in = program.array("i32"), out = program.array("i32");
    std::string loaded = program.load(in, source, "i32"), reduced = program.fresh();
    program.line(fmt::format("{} = tile.reduce ({}) axis {} ordering inner_tree {{ ^bb0(%a: i32, %b: i32):\n"
                             "      %c = arith.constant 3 : i32\n      %m = arith.muli %a, %c : i32\n"
                             "      %s = arith.subi %m, %b : i32\n      tile.yield %s : i32\n"
                             "    }} {{offset_bytes = 0 : i64}} : ({}) -> {}",
                             reduced, loaded, axis, TileProgram::tensor(source, "i32"),
                             TileProgram::tensor(result, "i32")));
    program.store(out, reduced, result, "i32");
    std::vector<int32_t> data = sampleIntegers(512);
    int64_t kept = shape[1 - axis];
    auto arrays =
        runProgram(program, 1 << warpBits, {ArrayArgument::of(data), ArrayArgument::of(std::vector<int32_t>(kept))});
    std::vector<int32_t> expected;
    for (int64_t i = 0; i < kept; ++i) {
      std::vector<int32_t> column;
      for (int64_t j = 0; j < shape[axis]; ++j)
        column.push_back(data[axis == 1 ? i * shape[1] + j : j * shape[1] + i]);
      expected.push_back(tree(column));
    }
    EXPECT_EQ(arrays[1].as<int32_t>(), expected);
  }
}

TEST(SimNumerics, ReduceCountsEachElementOnce) {
  // (1 + a)(1 + b) - 1 modulo 2^32 is associative and commutative, and no single operation: any tree over all elements will do.
  std::mt19937 random(31);
  for (int round = 0; round < 10 * rounds; ++round) {
    int warpBits = round % 5, axis = round % 3;
    Shape shape{8, 16, 32};
    DistributedLayout source = randomLayout(random, shape, warpBits), result = source.dropAxis(axis);
    SCOPED_TRACE(fmt::format("{} axis {}", source.toString(), axis));
    TileProgram program(1 << warpBits);
    std::string in = program.array("i32"), out = program.array("i32");
    std::string loaded = program.load(in, source, "i32"), reduced = program.fresh();
    program.line(fmt::format("{} = tile.reduce ({}) axis {} {{ ^bb0(%a: i32, %b: i32):\n"
                             "      %p = arith.muli %a, %b : i32\n      %s = arith.addi %a, %b : i32\n"
                             "      %r = arith.addi %p, %s : i32\n      tile.yield %r : i32\n"
                             "    }} {{offset_bytes = 0 : i64}} : ({}) -> {}",
                             reduced, loaded, axis, TileProgram::tensor(source, "i32"),
                             TileProgram::tensor(result, "i32")));
    program.store(out, reduced, result, "i32");
    std::vector<int32_t> data = sampleIntegers(source.numElements());
    for (int32_t &value : data)
      value *= 2; // odd factors: none of them makes the product zero
    std::vector<int32_t> expected(source.numElements() / shape[axis], 0);
    int64_t stride = 1;
    for (int later = axis + 1; later < 3; ++later)
      stride *= shape[later];
    for (int64_t i = 0; i < source.numElements(); ++i) {
      int32_t &into = expected[i / (stride * shape[axis]) * stride + i % stride];
      into = static_cast<int32_t>((uint32_t(into) + 1) * (uint32_t(data[i]) + 1) - 1);
    }
    auto arrays = runProgram(program, 1 << warpBits,
                             {ArrayArgument::of(data), ArrayArgument::of(std::vector<int32_t>(expected.size()))});
    EXPECT_EQ(arrays[1].as<int32_t>(), expected);
  }
}

TEST(SimNumerics, ReduceOfRankOneGivesAScalarToEveryThread) {
  std::mt19937 random(4);
  for (int warpBits = 0; warpBits < 3; ++warpBits) {
    DistributedLayout source = randomLayout(random, {256}, warpBits);
    SCOPED_TRACE(source.toString());
    TileProgram program(1 << warpBits);
    std::string in = program.array("f32"), out = program.array("f32");
    std::string loaded = program.load(in, source, "f32"), sum = program.fresh(), all = program.fresh();
    program.line(fmt::format("{} = tile.reduce ({}) axis 0 {{ ^bb0(%a: f32, %b: f32):\n"
                             "      %s = arith.addf %a, %b : f32\n      tile.yield %s : f32\n"
                             "    }} {{offset_bytes = 0 : i64}} : ({}) -> f32",
                             sum, loaded, TileProgram::tensor(source, "f32")));
    program.line(fmt::format("{} = tile.splat {} : f32 -> {}", all, sum, TileProgram::tensor(source, "f32")));
    program.store(out, all, source, "f32");
    std::vector<float> data(256);
    std::iota(data.begin(), data.end(), 1.0f);
    auto arrays =
        runProgram(program, 1 << warpBits, {ArrayArgument::of(data), ArrayArgument::of(std::vector<float>(256))});
    EXPECT_EQ(arrays[1].as<float>(), std::vector<float>(256, 256 * 257 / 2));
  }
}

TEST(SimNumerics, ReduceOfTwoOperandsFindsTheFirstMaximum) {
  std::mt19937 random(5);
  for (int round = 0; round < rounds; ++round) {
    int warpBits = round % 3;
    DistributedLayout source = randomLayout(random, {8, 64}, warpBits), result = source.dropAxis(1);
    SCOPED_TRACE(source.toString());
    TileProgram program(1 << warpBits);
    std::string in = program.array("i32"), out = program.array("i32");
    std::string loaded = program.load(in, source, "i32"), index = program.indices(source);
    std::string type = TileProgram::tensor(source, "i32"), reducedType = TileProgram::tensor(result, "i32");
    program.line(fmt::format(
        "%best:2 = tile.reduce ({}, {}) axis 1 ordering inner_tree {{ ^bb0(%a: i32, %i: i32, %b: i32, %j: i32):\n"
        "      %keep = arith.cmpi sge, %a, %b : i32\n"
        "      %v = arith.select %keep, %a, %b : i32\n      %k = arith.select %keep, %i, %j : i32\n"
        "      tile.yield %v, %k : i32, i32\n"
        "    }} {{offset_bytes = 0 : i64}} : ({}, {}) -> ({}, {})",
        loaded, index, type, type, reducedType, reducedType));
    program.store(out, "%best#1", result, "i32");
    std::vector<int32_t> data(512);
    for (int i = 0; i < 512; ++i)
      data[i] = (i * 37) % 11; // many equal maxima
    auto arrays =
        runProgram(program, 1 << warpBits, {ArrayArgument::of(data), ArrayArgument::of(std::vector<int32_t>(8))});
    std::vector<int32_t> expected;
    for (int row = 0; row < 8; ++row)
      expected.push_back(std::max_element(data.begin() + row * 64, data.begin() + row * 64 + 64) - data.begin());
    EXPECT_EQ(arrays[1].as<int32_t>(), expected);
  }
}

TEST(SimNumerics, ScanKeepsTheOrder) {
  // The affine maps x -> a x + b, packed as a * 65536 + b modulo 2^16 each, compose associatively but not commutatively.
  auto compose = [](uint32_t f, uint32_t g) { // first f, then g
    uint32_t a = (f >> 16) * (g >> 16) & 0xffff, b = ((f & 0xffff) * (g >> 16) + (g & 0xffff)) & 0xffff;
    return a << 16 | b;
  };
  std::mt19937 random(6);
  for (int round = 0; round < 5 * rounds; ++round) {
    int warpBits = round % 5, axis = round / 5 % 2;
    bool reverse = round % 2;
    Shape shape{8, 32};
    DistributedLayout source = randomLayout(random, shape, warpBits);
    SCOPED_TRACE(fmt::format("{} axis {} reverse {}", source.toString(), axis, reverse));
    TileProgram program(1 << warpBits);
    std::string in = program.array("i32"), out = program.array("i32");
    std::string loaded = program.load(in, source, "i32"), scanned = program.fresh();
    std::string type = TileProgram::tensor(source, "i32");
    program.line(fmt::format("{} = tile.scan ({}) axis {} {{ ^bb0(%f: i32, %g: i32):\n"
                             "      %c16 = arith.constant 16 : i32\n      %low = arith.constant 65535 : i32\n"
                             "      %fa = arith.shrui %f, %c16 : i32\n      %ga = arith.shrui %g, %c16 : i32\n"
                             "      %fb = arith.andi %f, %low : i32\n      %gb = arith.andi %g, %low : i32\n"
                             "      %a = arith.muli %fa, %ga : i32\n      %ah = arith.shli %a, %c16 : i32\n"
                             "      %m = arith.muli %fb, %ga : i32\n      %s = arith.addi %m, %gb : i32\n"
                             "      %b = arith.andi %s, %low : i32\n      %r = arith.ori %ah, %b : i32\n"
                             "      tile.yield %r : i32\n"
                             "    }} {{offset_bytes = 0 : i64{}}} : ({}) -> {}",
                             scanned, loaded, axis, reverse ? ", reverse = true" : "", type, type));
    program.store(out, scanned, source, "i32");
    std::vector<int32_t> data(256);
    for (int i = 0; i < 256; ++i)
      data[i] = int32_t(uint32_t(2 * i + 3) << 16 | uint32_t(i * i + 1));
    auto arrays =
        runProgram(program, 1 << warpBits, {ArrayArgument::of(data), ArrayArgument::of(std::vector<int32_t>(256))});
    std::vector<int32_t> expected(256);
    for (int64_t line = 0; line < shape[1 - axis]; ++line) {
      auto at = [&](int64_t i) { return axis == 1 ? line * shape[1] + i : i * shape[1] + line; };
      int64_t length = shape[axis];
      for (int64_t step = 0; step < length; ++step) {
        int64_t i = reverse ? length - 1 - step : step;
        uint32_t own = uint32_t(data[at(i)]);
        uint32_t before = step == 0 ? 0 : uint32_t(expected[at(reverse ? i + 1 : i - 1)]);
        expected[at(i)] = int32_t(step == 0 ? own : compose(before, own));
      }
    }
    EXPECT_EQ(arrays[1].as<int32_t>(), expected);
  }
}

TEST(SimNumerics, TransAndBroadcastMoveNothing) {
  std::mt19937 random(7);
  for (int round = 0; round < rounds; ++round) {
    int warpBits = round % 3;
    DistributedLayout wide = randomLayout(random, {16, 32}, warpBits), narrow = wide.dropBroadcast({16, 1});
    int order[] = {1, 0};
    DistributedLayout turned = wide.permute(order);
    SCOPED_TRACE(wide.toString());
    TileProgram program(1 << warpBits);
    std::string rows = program.array("i32"), out = program.array("i32");
    std::string loaded = program.load(rows, narrow, "i32"), broad = program.fresh(), sum = program.fresh(),
                trans = program.fresh(), indices = program.indices(wide);
    program.line(fmt::format("{} = tile.broadcast {} : {} -> {}", broad, loaded, TileProgram::tensor(narrow, "i32"),
                             TileProgram::tensor(wide, "i32")));
    program.line(fmt::format("{} = arith.addi {}, {} : {}", sum, broad, indices, TileProgram::tensor(wide, "i32")));
    program.line(fmt::format("{} = tile.trans {} [1, 0] : {} -> {}", trans, sum, TileProgram::tensor(wide, "i32"),
                             TileProgram::tensor(turned, "i32")));
    program.store(out, trans, turned, "i32");
    std::vector<int32_t> data = sampleIntegers(16), expected(512);
    auto arrays =
        runProgram(program, 1 << warpBits, {ArrayArgument::of(data), ArrayArgument::of(std::vector<int32_t>(512))});
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 32; ++j)
        expected[j * 16 + i] = data[i] + i * 32 + j;
    EXPECT_EQ(arrays[1].as<int32_t>(), expected);
  }
}

TEST(SimNumerics, AtomicsHappenOncePerElement) {
  std::mt19937 random(8);
  for (int round = 0; round < 2 * rounds; ++round) {
    int warpBits = round % 3;
    DistributedLayout layout = randomLayout(random, {32}, warpBits);
    SCOPED_TRACE(layout.toString());
    TileProgram program(1 << warpBits);
    std::string words = program.array("i32"), out = program.array("i32");
    std::string type = TileProgram::tensor(layout, "i32"), pointers = TileProgram::tensor(layout, "!tile.ptr<i32>");
    std::string indices = program.indices(layout), bases = program.fresh(), ptr = program.fresh(),
                old = program.fresh();
    program.line(fmt::format("{} = tile.splat {} : !tile.ptr<i32> -> {}", bases, words, pointers));
    program.line(fmt::format("{} = tile.addptr {}, {} : {}, {}", ptr, bases, indices, pointers, type));
    program.line(fmt::format("{} = tile.atomic_rmw add relaxed gpu {}, {} {{offset_bytes = 0 : i64}} : {}, {} -> {}",
                             old, ptr, indices, pointers, type, type));
    program.store(out, old, layout, "i32");
    std::vector<int32_t> data = sampleIntegers(32), expected = data;
    auto arrays =
        runProgram(program, 1 << warpBits, {ArrayArgument::of(data), ArrayArgument::of(std::vector<int32_t>(32))});
    for (int i = 0; i < 32; ++i)
      expected[i] += i;
    EXPECT_EQ(arrays[0].as<int32_t>(), expected);
    EXPECT_EQ(arrays[1].as<int32_t>(), data);
  }
}

/// Bit patterns of small integers, which all 16-bit formats represent.
uint16_t patternOf(const std::string &element, float value) {
  if (element == "bf16")
    return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
  return std::bit_cast<uint16_t>(static_cast<_Float16>(value));
}

/// Runs c = a * b + c with integers as data and returns whether it is exact.
void checkDot(const std::string &element, const layout::DotLayouts &layouts, const layout::DotShape &shape,
              int numWarps, const std::string &attributes) {
  SCOPED_TRACE(fmt::format("{} {}x{}x{}", element, shape.m, shape.n, shape.k));
  std::string sumType = element == "i8" ? "i32" : "f32";
  TileProgram program(numWarps);
  std::string a = program.array(element), b = program.array(element), c = program.array(sumType);
  std::string loadedA = program.load(a, layouts.a, element), loadedB = program.load(b, layouts.b, element),
              loadedC = program.load(c, layouts.c, sumType), dot = program.fresh();
  program.line(fmt::format("{} = tile.dot {}, {}, {} {} : {}, {} -> {}", dot, loadedA, loadedB, loadedC, attributes,
                           TileProgram::tensor(layouts.a, element), TileProgram::tensor(layouts.b, element),
                           TileProgram::tensor(layouts.c, sumType)));
  program.store(c, dot, layouts.c, sumType);

  auto valueA = [](int64_t i) { return int(i * 5 % 7) - 3; };
  auto valueB = [](int64_t i) { return int(i * 3 % 5) - 2; };
  auto arrayOf = [&](int64_t count, auto value) {
    std::vector<uint16_t> halves;
    std::vector<float> floats;
    std::vector<int8_t> bytes;
    for (int64_t i = 0; i < count; ++i) {
      halves.push_back(patternOf(element, value(i)));
      floats.push_back(value(i));
      bytes.push_back(value(i));
    }
    return element == "f32"  ? ArrayArgument::of(floats)
           : element == "i8" ? ArrayArgument::of(bytes)
                             : ArrayArgument::of(halves);
  };
  std::vector<int32_t> integers(shape.m * shape.n, 2);
  std::vector<float> floats(shape.m * shape.n, 2);
  auto arrays = runProgram(program, numWarps,
                           {arrayOf(shape.m * shape.k, valueA), arrayOf(shape.k * shape.n, valueB),
                            sumType == "i32" ? ArrayArgument::of(integers) : ArrayArgument::of(floats)});
  for (int64_t m = 0; m < shape.m; ++m)
    for (int64_t n = 0; n < shape.n; ++n) {
      int sum = 2;
      for (int64_t k = 0; k < shape.k; ++k)
        sum += valueA(m * shape.k + k) * valueB(k * shape.n + n);
      integers[m * shape.n + n] = sum;
      floats[m * shape.n + n] = sum;
    }
  if (sumType == "i32")
    EXPECT_EQ(arrays[2].as<int32_t>(), integers);
  else
    EXPECT_EQ(arrays[2].as<float>(), floats);
}

TEST(SimNumerics, DotOnTensorCores) {
  struct Case {
    std::string element;
    layout::MmaKind kind;
  };
  for (const Case &one : {Case{"f16", layout::MmaKind::M16N8K16B16}, Case{"bf16", layout::MmaKind::M16N8K16B16},
                          Case{"f32", layout::MmaKind::M16N8K8TF32}, Case{"i8", layout::MmaKind::M16N8K32B8}})
    for (int numWarps : {1, 4}) {
      layout::DotShape shape{32, 32, 64};
      auto layouts = layout::mmaLayouts(one.kind, shape, layout::chooseWarpGrid(one.kind, shape, numWarps));
      ASSERT_TRUE(layouts.isOk()) << layouts.status().message();
      checkDot(one.element, *layouts, shape, numWarps, "");
    }
}

TEST(SimNumerics, DotWithMultiplyAdds) {
  for (int numWarps : {1, 4}) {
    layout::DotShape shape{32, 16, 8};
    layout::DotLayouts layouts = layout::fmaLayouts(shape, 32, numWarps);
    checkDot("f32", layouts, shape, numWarps, "{precision = #tile.precision<ieee>}");
    checkDot("bf16", layouts, shape, numWarps, "");
  }
}

TEST(SimNumerics, BuffersKeepTilesInTheirSlots) {
  std::mt19937 random(9);
  for (int round = 0; round < rounds; ++round) {
    int warpBits = round % 3;
    DistributedLayout source = randomLayout(random, {8, 64}, warpBits),
                      result = randomLayout(random, {8, 64}, warpBits);
    int order[] = {1, 0};
    layout::SharedLayout shared = layout::swizzledShared({8, 64}, order, 16, 128);
    SCOPED_TRACE(source.toString() + " -> " + result.toString());
    TileProgram program(1 << warpBits);
    std::string in = program.array("f16"), out = program.array("f16");
    std::string loaded = program.load(in, source, "f16"), doubled = program.fresh();
    std::string type = TileProgram::tensor(source, "f16"), resultType = TileProgram::tensor(result, "f16");
    std::string buffer = fmt::format("!dgpu.buffer<3 x 8x64 x f16, #dgpu.shared<{}>>", shared.toString());
    program.line(fmt::format("{} = arith.addf {}, {} : {}", doubled, loaded, loaded, type));
    program.line("%one = arith.constant 1 : i32");
    program.line("%two = arith.constant 2 : i32");
    program.line("%buffer = dgpu.buffer_alloc {offset_bytes = 256 : i64} : " + buffer);
    program.line(fmt::format("dgpu.buffer_store {}, %buffer[%two] : {}, {}", loaded, type, buffer));
    program.line(fmt::format("dgpu.buffer_store {}, %buffer[%one] : {}, {}", doubled, type, buffer));
    program.line("dgpu.barrier");
    program.line(fmt::format("%read = dgpu.buffer_load %buffer[%two] : {} -> {}", buffer, resultType));
    program.store(out, "%read", result, "f16");
    std::vector<uint16_t> data(512);
    for (int i = 0; i < 512; ++i)
      data[i] = patternOf("f16", float(i));
    auto arrays =
        runProgram(program, 1 << warpBits, {ArrayArgument::of(data), ArrayArgument::of(std::vector<uint16_t>(512))});
    EXPECT_EQ(arrays[1].as<uint16_t>(), data);
  }
}

TEST(SimNumerics, AsyncCopiesFillASlotAndZeroWhatIsMasked) {
  int order[] = {1, 0};
  DistributedLayout source = layout::tile({32, 64}, order, 8, 32, 4);
  // Also with copies: a tile that is too small for the threads.
  DistributedLayout small = layout::tile({8, 64}, order, 8, 32, 4);
  for (const DistributedLayout &layout : {source, small}) {
    SCOPED_TRACE(layout.toString());
    layout::SharedLayout shared = layout::swizzledShared(layout.shape(), order, 16, 128);
    TileProgram program(4);
    std::string in = program.array("bf16"), out = program.array("bf16");
    int rows = static_cast<int>(layout.shape()[0]);
    std::string buffer = fmt::format("!dgpu.buffer<2 x {}x64 x bf16, #dgpu.shared<{}>>", rows, shared.toString());
    std::string type = TileProgram::tensor(layout, "bf16"), pointers = TileProgram::tensor(layout, "!tile.ptr<bf16>"),
                integers = TileProgram::tensor(layout, "i32"), bools = TileProgram::tensor(layout, "i1");
    std::string indices = program.indices(layout);
    program.line(fmt::format("%limit = arith.constant dense<256> : {}", integers));
    program.line(fmt::format("%mask = arith.cmpi slt, {}, %limit : {}", indices, integers));
    program.line(fmt::format("%bases = tile.splat {} : !tile.ptr<bf16> -> {}", in, pointers));
    program.line(fmt::format("%ptr = tile.addptr %bases, {} : {}, {}", indices, pointers, integers));
    program.line("%one = arith.constant 1 : i32");
    program.line("%buffer = dgpu.buffer_alloc {offset_bytes = 0 : i64} : " + buffer);
    program.line(
        fmt::format("dgpu.async_copy %ptr to %buffer[%one] mask %mask : {}, {} mask {}", pointers, buffer, bools));
    program.line("dgpu.async_commit");
    program.line("dgpu.async_wait 0");
    program.line("dgpu.barrier");
    program.line(fmt::format("%read = dgpu.buffer_load %buffer[%one] : {} -> {}", buffer, type));
    program.store(out, "%read", layout, "bf16");
    std::vector<uint16_t> data(rows * 64), expected(rows * 64);
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = static_cast<uint16_t>(i + 1);
    std::copy(data.begin(), data.begin() + 256, expected.begin());
    auto arrays =
        runProgram(program, 4, {ArrayArgument::of(data), ArrayArgument::of(std::vector<uint16_t>(rows * 64))});
    EXPECT_EQ(arrays[1].as<uint16_t>(), expected);
  }
}

TEST(SimNumerics, AsyncCopiesOfOddPiecesGoThroughRegisters) {
  // Rows are 33 elements apart: nothing wider than one f16 is aligned, which no asynchronous copy can do.
  int order[] = {1, 0};
  DistributedLayout layout = layout::tile({16, 32}, order, 2, 32, 2), flat = layout.reshape({512});
  layout::SharedLayout shared = layout::swizzledShared(layout.shape(), order, 16, 64);
  TileProgram program(2);
  std::string in = program.array("f16"), out = program.array("f16");
  std::string buffer = fmt::format("!dgpu.buffer<1 x 16x32 x f16, #dgpu.shared<{}>>", shared.toString());
  std::string type = TileProgram::tensor(layout, "f16"), pointers = TileProgram::tensor(layout, "!tile.ptr<f16>"),
              integers = TileProgram::tensor(layout, "i32");
  std::string indices = program.indices(layout);
  program.line(fmt::format("%c32 = arith.constant dense<32> : {}", integers));
  program.line(fmt::format("%row = arith.divsi {}, %c32 : {}", indices, integers));
  program.line(fmt::format("%offset = arith.addi {}, %row : {}", indices, integers));
  program.line(fmt::format("%bases = tile.splat {} : !tile.ptr<f16> -> {}", in, pointers));
  program.line(fmt::format("%ptr = tile.addptr %bases, %offset : {}, {}", pointers, integers));
  program.line("%c0 = arith.constant 0 : i32");
  program.line("%buffer = dgpu.buffer_alloc {offset_bytes = 0 : i64} : " + buffer);
  program.line(fmt::format("dgpu.async_copy %ptr to %buffer[%c0] : {}, {}", pointers, buffer));
  program.line("dgpu.async_commit");
  program.line("dgpu.async_wait 0");
  program.line("dgpu.barrier");
  program.line(fmt::format("%read = dgpu.buffer_load %buffer[%c0] : {} -> {}", buffer, type));
  program.store(out, "%read", layout, "f16");
  std::vector<uint16_t> data(16 * 33), expected;
  std::iota(data.begin(), data.end(), uint16_t(1));
  for (int i = 0; i < 16; ++i)
    expected.insert(expected.end(), data.begin() + i * 33, data.begin() + i * 33 + 32);
  auto arrays = runProgram(program, 2, {ArrayArgument::of(data), ArrayArgument::of(std::vector<uint16_t>(512))});
  EXPECT_EQ(arrays[1].as<uint16_t>(), expected);
}

TEST(SimNumerics, MathFunctions) {
  int order[] = {0};
  DistributedLayout layout = layout::tile({64}, order, 2, 32, 1);
  struct Function {
    const char *op;
    double (*reference)(double);
  };
  const Function functions[] = {
      {"exp", [](double x) { return std::exp(x); }},     {"exp2", [](double x) { return std::exp2(x); }},
      {"log", [](double x) { return std::log(x); }},     {"log2", [](double x) { return std::log2(x); }},
      {"sqrt", [](double x) { return std::sqrt(x); }},   {"rsqrt", [](double x) { return 1 / std::sqrt(x); }},
      {"sin", [](double x) { return std::sin(x); }},     {"cos", [](double x) { return std::cos(x); }},
      {"tanh", [](double x) { return std::tanh(x); }},   {"erf", [](double x) { return std::erf(x); }},
      {"floor", [](double x) { return std::floor(x); }}, {"absf", [](double x) { return std::fabs(x); }},
  };
  for (const std::string element : {"f32", "f16", "bf16"})
    for (const Function &function : functions) {
      SCOPED_TRACE(element + " " + function.op);
      TileProgram program(1);
      std::string in = program.array("f32"), out = program.array("f32");
      std::string loaded = program.load(in, layout, "f32"), full = TileProgram::tensor(layout, "f32"),
                  type = TileProgram::tensor(layout, element);
      if (element == "f32") {
        program.line(fmt::format("%w = math.{} {} : {}", function.op, loaded, full));
      } else {
        program.line(fmt::format("%x = arith.truncf {} : {} to {}", loaded, full, type));
        program.line(fmt::format("%y = math.{} %x : {}", function.op, type));
        program.line(fmt::format("%w = arith.extf %y : {} to {}", type, full));
      }
      program.store(out, "%w", layout, "f32");
      std::vector<float> data(64);
      for (int i = 0; i < 64; ++i)
        data[i] = (i + 1) / 16.0f; // exact in all formats
      auto arrays = runProgram(program, 1, {ArrayArgument::of(data), ArrayArgument::of(std::vector<float>(64))});
      double tolerance = element == "f32" ? 2e-6 : element == "f16" ? 1e-3 : 8e-3;
      std::vector<float> results = arrays[1].as<float>();
      for (int i = 0; i < 64; ++i) {
        double expected = function.reference(data[i]);
        EXPECT_NEAR(results[i], expected, tolerance * std::max(1.0, std::fabs(expected)));
      }
    }
}

TEST(SimNumerics, DivisionNeverStopsTheProgram) {
  int order[] = {0};
  DistributedLayout layout = layout::tile({64}, order, 2, 32, 1);
  std::string type = TileProgram::tensor(layout, "i32");
  TileProgram program(1);
  std::string a = program.array("i32"), b = program.array("i32"), quotients = program.array("i32"),
              remainders = program.array("i32");
  std::string x = program.load(a, layout, "i32"), y = program.load(b, layout, "i32");
  program.line(fmt::format("%q = arith.divsi {}, {} : {}", x, y, type));
  program.line(fmt::format("%r = arith.remsi {}, {} : {}", x, y, type));
  program.line(fmt::format("%s = tile.load {} : !tile.ptr<i32> -> i32", b)); // 0: a scalar division by zero
  program.line("%t = arith.divui %s, %s : i32");
  program.line(fmt::format("tile.store {}, %t : !tile.ptr<i32>, i32", a));
  program.store(quotients, "%q", layout, "i32");
  program.store(remainders, "%r", layout, "i32");
  std::vector<int32_t> dividends(64), divisors(64);
  for (int i = 0; i < 64; ++i) {
    dividends[i] = i % 2 ? INT32_MIN : 1000 + i;
    divisors[i] = i % 8 - 1 - (i == 0 ? -1 : 0);
  }
  auto arrays = runProgram(program, 1,
                           {ArrayArgument::of(dividends), ArrayArgument::of(divisors),
                            ArrayArgument::of(std::vector<int32_t>(64)), ArrayArgument::of(std::vector<int32_t>(64))});
  for (int i = 0; i < 64; ++i) {
    if (divisors[i] == 0)
      continue;
    EXPECT_EQ(arrays[2].as<int32_t>()[i], int32_t(int64_t(dividends[i]) / divisors[i])) << i;
    EXPECT_EQ(arrays[3].as<int32_t>()[i], int32_t(int64_t(dividends[i]) % divisors[i])) << i;
  }
}

TEST(SimNumerics, BranchesAndWhileLoopsCarryTiles) {
  int order[] = {0};
  DistributedLayout layout = layout::tile({64}, order, 2, 32, 1);
  std::string type = TileProgram::tensor(layout, "i32");
  TileProgram program(1);
  std::string out = program.array("i32"), indices = program.indices(layout);
  program.line("%c0 = arith.constant 0 : i32");
  program.line("%c1 = arith.constant 1 : i32");
  program.line("%c4 = arith.constant 4 : i32");
  program.line(fmt::format("%twice = arith.constant dense<2> : {}", type));
  // Doubles the tile while the counter is below 4; skips odd counters by a branch.
  program.line(
      fmt::format("%k, %tile = scf.while (%a = %c0, %t = {}) : (i32, {}) -> (i32, {}) {{", indices, type, type));
  program.line("%go = arith.cmpi slt, %a, %c4 : i32");
  program.line(fmt::format("scf.condition(%go) %a, %t : i32, {} }} do {{ ^bb0(%a: i32, %t: {}):", type, type));
  program.line("%bit = arith.andi %a, %c1 : i32");
  program.line("%odd = arith.cmpi eq, %bit, %c1 : i32");
  program.line(fmt::format("%u = scf.if %odd -> ({}) {{ scf.yield %t : {} }} else {{", type, type));
  program.line(fmt::format("%d = arith.muli %t, %twice : {}", type));
  program.line(fmt::format("scf.yield %d : {} }}", type));
  program.line("%b = arith.addi %a, %c1 : i32");
  program.line(fmt::format("scf.yield %b, %u : i32, {} }}", type));
  program.store(out, "%tile", layout, "i32");
  auto arrays = runProgram(program, 1, {ArrayArgument::of(std::vector<int32_t>(64))});
  std::vector<int32_t> expected;
  for (int i = 0; i < 64; ++i)
    expected.push_back(4 * i);
  EXPECT_EQ(arrays[0].as<int32_t>(), expected);
}

TEST(SimNumerics, MasksKeepMemoryUntouchedAndGiveOther) {
  int order[] = {0};
  DistributedLayout layout = layout::tile({512}, order, 4, 32, 2);
  TileProgram program(2);
  std::string in = program.array("f32"), out = program.array("f32");
  std::string integers = TileProgram::tensor(layout, "i32"), floats = TileProgram::tensor(layout, "f32"),
              bools = TileProgram::tensor(layout, "i1"), pointers = TileProgram::tensor(layout, "!tile.ptr<f32>");
  std::string indices = program.indices(layout);
  // 304 is a multiple of the access width; the array ends there, so a masked access that touched memory would be reported.
  program.line(fmt::format("%limit = arith.constant dense<304> : {}", integers));
  program.line(fmt::format("%mask = arith.cmpi slt, {}, %limit : {}", indices, integers));
  program.line(fmt::format("%other = arith.constant dense<-1.0> : {}", floats));
  program.line(fmt::format("%inBases = tile.splat {} : !tile.ptr<f32> -> {}", in, pointers));
  program.line(fmt::format("%inPtr = tile.addptr %inBases, {} : {}, {}", indices, pointers, integers));
  program.line(fmt::format("%x = tile.load %inPtr mask %mask other %other : {} mask {} other {} -> {}", pointers, bools,
                           floats, floats));
  program.store(out, "%x", layout, "f32");
  program.line(fmt::format("tile.store %inPtr, %other mask %mask : {}, {} mask {}", pointers, floats, bools));
  std::vector<float> data(304), expected(512, -1.0f);
  std::iota(data.begin(), data.end(), 5.0f);
  std::copy(data.begin(), data.end(), expected.begin());
  auto arrays = runProgram(program, 2, {ArrayArgument::of(data), ArrayArgument::of(std::vector<float>(512))});
  EXPECT_EQ(arrays[1].as<float>(), expected);
  EXPECT_EQ(arrays[0].as<float>(), std::vector<float>(304, -1.0f));
}

TEST(SimNumerics, HugeBasicBlocksKeepTheirPredicates) {
  // 256 elements per thread, each with a mask of its own: the code generator schedules such blocks differently.
  int order[] = {0};
  DistributedLayout layout = layout::tile({8192}, order, 1, 32, 1);
  TileProgram program(1);
  std::string in = program.array("i32"), out = program.array("i32");
  std::string integers = TileProgram::tensor(layout, "i32"), bools = TileProgram::tensor(layout, "i1"),
              pointers = TileProgram::tensor(layout, "!tile.ptr<i32>");
  std::string loaded = program.load(in, layout, "i32"), indices = program.indices(layout);
  program.line(fmt::format("%seven = arith.constant dense<7> : {}", integers));
  program.line(fmt::format("%three = arith.constant dense<3> : {}", integers));
  program.line(fmt::format("%phase = arith.remsi {}, %seven : {}", indices, integers));
  program.line(fmt::format("%mask = arith.cmpi slt, %phase, %three : {}", integers));
  program.line(fmt::format("%bigger = arith.cmpi sgt, {}, %phase : {}", loaded, integers));
  program.line(fmt::format("%value = arith.select %bigger, {}, %phase : {}, {}", loaded, bools, integers));
  program.line(fmt::format("%bases = tile.splat {} : !tile.ptr<i32> -> {}", out, pointers));
  program.line(fmt::format("%ptr = tile.addptr %bases, {} : {}, {}", indices, pointers, integers));
  program.line(fmt::format("tile.store %ptr, %value mask %mask : {}, {} mask {}", pointers, integers, bools));
  std::vector<int32_t> data = sampleIntegers(8192), expected(8192, -1);
  for (int i = 0; i < 8192; ++i)
    if (i % 7 < 3)
      expected[i] = std::max(data[i], i % 7);
  auto arrays = runProgram(program, 1, {ArrayArgument::of(data), ArrayArgument::of(std::vector<int32_t>(8192, -1))});
  EXPECT_EQ(arrays[1].as<int32_t>(), expected);
}

/// Rounds to bf16 as the hardware does: nearest, ties to even.
float roundToBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}

TEST(SimNumerics, Bf16IsComputedInF32AndRounded) {
  int order[] = {0};
  DistributedLayout layout = layout::tile({256}, order, 2, 32, 1);
  TileProgram program(1);
  std::string in = program.array("f32"), out = program.array("bf16"), wide = program.array("f32");
  std::string loaded = program.load(in, layout, "f32"), half = TileProgram::tensor(layout, "bf16"),
              full = TileProgram::tensor(layout, "f32");
  program.line(fmt::format("%h = arith.truncf {} : {} to {}", loaded, full, half));
  program.line(fmt::format("%third = arith.constant dense<0.333984375> : {}", half));
  program.line(fmt::format("%p = arith.mulf %h, %third : {}", half));
  program.line(fmt::format("%w = arith.extf %p : {} to {}", half, full));
  program.store(out, "%h", layout, "bf16");
  program.store(wide, "%w", layout, "f32");
  std::vector<float> data(256), products;
  std::vector<uint16_t> rounded;
  for (int i = 0; i < 256; ++i) {
    data[i] = std::ldexp(1.0f + i / 256.0f + i * 1e-4f, i % 40 - 20) * (i % 3 ? 1 : -1);
    rounded.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(roundToBf16(data[i])) >> 16));
    products.push_back(roundToBf16(roundToBf16(data[i]) * 0.333984375f));
  }
  auto arrays = runProgram(program, 1,
                           {ArrayArgument::of(data), ArrayArgument::of(std::vector<uint16_t>(256)),
                            ArrayArgument::of(std::vector<float>(256))});
  EXPECT_EQ(arrays[1].as<uint16_t>(), rounded);
  EXPECT_EQ(arrays[2].as<float>(), products);
}

/// The value of an 8-bit float pattern, straight from the definition of the format.
float valueOf8(uint8_t pattern, int mantissaBits, int bias) {
  int exponent = (pattern & 0x7f) >> mantissaBits, mantissa = pattern & ((1 << mantissaBits) - 1);
  float scale = std::ldexp(1.0f, -mantissaBits);
  float magnitude =
      exponent == 0 ? std::ldexp(mantissa * scale, 1 - bias) : std::ldexp(1.0f + mantissa * scale, exponent - bias);
  return pattern & 0x80 ? -magnitude : magnitude;
}

TEST(SimNumerics, EightBitFloatsRoundTripAndRoundToNearestEven) {
  struct Format {
    const char *name;
    int mantissaBits, bias;
    uint8_t maxFinite;
  };
  for (const Format &format : {Format{"f8E4M3FN", 3, 7, 0x7e}, Format{"f8E5M2", 2, 15, 0x7b}}) {
    SCOPED_TRACE(format.name);
    int order[] = {0};
    DistributedLayout layout = layout::tile({1024}, order, 4, 32, 4);
    TileProgram program(4);
    std::string in = program.array("f32"), out = program.array(format.name), back = program.array("f32");
    std::string loaded = program.load(in, layout, "f32"), small = TileProgram::tensor(layout, format.name),
                full = TileProgram::tensor(layout, "f32");
    program.line(fmt::format("%s = arith.truncf {} : {} to {}", loaded, full, small));
    program.line(fmt::format("%w = arith.extf %s : {} to {}", small, full));
    program.store(out, "%s", layout, format.name);
    program.store(back, "%w", layout, "f32");
    // All finite patterns' values, the midpoints to their neighbours, and values that saturate.
    std::vector<float> data;
    std::vector<uint8_t> expected;
    for (int pattern = 0; pattern <= format.maxFinite; ++pattern) {
      float value = valueOf8(pattern, format.mantissaBits, format.bias);
      data.push_back(value);
      expected.push_back(static_cast<uint8_t>(pattern));
      data.push_back(-value);
      expected.push_back(static_cast<uint8_t>(pattern | 0x80));
      if (pattern == format.maxFinite)
        break;
      float next = valueOf8(pattern + 1, format.mantissaBits, format.bias), middle = (value + next) / 2;
      data.push_back(middle);
      expected.push_back(static_cast<uint8_t>(pattern + (pattern & 1)));
      data.push_back(std::nextafter(middle, 1e9f));
      expected.push_back(static_cast<uint8_t>(pattern + 1));
    }
    while (data.size() < 1024) {
      data.push_back(1e9f);
      expected.push_back(format.maxFinite);
    }
    auto arrays = runProgram(program, 4,
                             {ArrayArgument::of(data), ArrayArgument::of(std::vector<uint8_t>(1024)),
                              ArrayArgument::of(std::vector<float>(1024))});
    EXPECT_EQ(arrays[1].as<uint8_t>(), expected);
    std::vector<float> values;
    for (uint8_t pattern : expected)
      values.push_back(valueOf8(pattern, format.mantissaBits, format.bias));
    EXPECT_EQ(arrays[2].as<float>(), values);
  }
}

TEST(SimNumerics, LoopsCarryTilesAndScalarStoresHappenOnce) {
  int order[] = {0};
  DistributedLayout layout = layout::tile({128}, order, 2, 32, 2);
  TileProgram program(2);
  std::string out = program.array("i32"), counter = program.array("i32");
  std::string type = TileProgram::tensor(layout, "i32"), indices = program.indices(layout);
  program.line("%c0 = arith.constant 0 : i32");
  program.line("%c1 = arith.constant 1 : i32");
  program.line("%c5 = arith.constant 5 : i32");
  program.line(fmt::format("%zero = arith.constant dense<0> : {}", type));
  program.line(fmt::format(
      "%sum, %last = scf.for %i = %c0 to %c5 step %c1 iter_args(%acc = %zero, %k = %c1) -> ({}, i32) : i32 {{", type));
  program.line(fmt::format("%is = tile.splat %i : i32 -> {}", type));
  program.line(fmt::format("%term = arith.muli %is, {} : {}", indices, type));
  program.line(fmt::format("%next = arith.addi %acc, %term : {}", type));
  program.line("%old = tile.atomic_rmw add acq_rel gpu " + counter +
               ", %i {offset_bytes = 0 : i64} : !tile.ptr<i32>, i32 -> i32");
  program.line("%k2 = arith.addi %k, %old : i32");
  program.line(fmt::format("scf.yield %next, %k2 : {}, i32 }}", type));
  program.line(fmt::format("%lasts = tile.splat %last : i32 -> {}", type));
  program.line(fmt::format("%all = arith.addi %sum, %lasts : {}", type));
  program.store(out, "%all", layout, "i32");
  auto arrays = runProgram(program, 2,
                           {ArrayArgument::of(std::vector<int32_t>(128)), ArrayArgument::of(std::vector<int32_t>(1))});
  // Old counter values are 0, 0, 1, 3, 6: each thread must see them all.
  std::vector<int32_t> expected;
  for (int i = 0; i < 128; ++i)
    expected.push_back(10 * i + 1 + 10);
  EXPECT_EQ(arrays[0].as<int32_t>(), expected);
  EXPECT_EQ(arrays[1].as<int32_t>(), std::vector<int32_t>{10});
}

TEST(SimNumerics, SignalsAndThreadLevel) {
  // Every thread adds to a word and stores its ballot bits; the block notifies itself and waits for it.
  TileProgram program(2);
  std::string words = program.array("i32"), flags = program.array("i64");
  program.line("%c0 = arith.constant 0 : i32");
  program.line("%c1 = arith.constant 1 : i32");
  program.line("%c2 = arith.constant 2 : i32");
  program.line("%c64 = arith.constant 64 : i32");
  program.line("%all = arith.constant -1 : i32");
  program.line("%seven = arith.constant 7 : i64");
  program.line("%tid = dist.thread_id 0");
  program.line("%lane = dist.lane_id");
  program.line(fmt::format("%slot = tile.addptr {}, %tid : !tile.ptr<i32>, i32", words));
  program.line("%other = dist.shuffle xor %all, %tid, %c1 : i32");
  program.line("%bit = arith.andi %lane, %c1 : i32");
  program.line("%isOdd = arith.cmpi eq, %bit, %c1 : i32");
  program.line("%ballot = dist.ballot %all, %isOdd");
  program.line("dist.st relaxed gpu %slot, %other : !tile.ptr<i32>, i32");
  program.line("dist.sync_threads");
  program.line(fmt::format("%total = tile.addptr {}, %c64 : !tile.ptr<i32>, i32", words));
  program.line("%old = dist.thread_atomic_rmw add relaxed gpu %total, %c2 : !tile.ptr<i32>, i32 -> i32");
  program.line("%after = arith.addi %c64, %c1 : i32");
  program.line(fmt::format("%ballotSlot = tile.addptr {}, %after : !tile.ptr<i32>, i32", words));
  program.line("tile.store %ballotSlot, %ballot : !tile.ptr<i32>, i32");
  program.line(fmt::format("dist.notify set intra_node {}, %c0, %seven : !tile.ptr<i64>, i64", flags));
  program.line(fmt::format("%token = dist.wait ge sys acquire {}, %c1, %seven : !tile.ptr<i64>, i64", flags));
  program.line("scf.while : () -> () {");
  program.line(fmt::format("%seen = dist.ld acquire sys {} : !tile.ptr<i64> -> i64", flags));
  program.line("%again = arith.cmpi ne, %seen, %seven : i64");
  program.line("scf.condition(%again) } do { scf.yield }");
  auto arrays =
      runProgram(program, 2, {ArrayArgument::of(std::vector<int32_t>(66)), ArrayArgument::of(std::vector<int64_t>(1))});
  std::vector<int32_t> expected;
  for (int i = 0; i < 64; ++i)
    expected.push_back(i ^ 1);
  expected.push_back(128);
  expected.push_back(int32_t(0xaaaaaaaa));
  EXPECT_EQ(arrays[0].as<int32_t>(), expected);
  EXPECT_EQ(arrays[1].as<int64_t>(), std::vector<int64_t>{7});
}

} // namespace
