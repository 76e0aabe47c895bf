//===- axis_soundness_test.cpp - Axis information holds of values computed by hand ----------------------*- C++ -*-===//
//
// Builds random programs of index arithmetic, computes every element of every value beside the IR, and checks that each
// fact that the analysis claims is true of the numbers. A wrong rule is a wrong vector width, so a silent miscompile:
// this is the test that finds it.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/analysis/AxisInfo.h"
#include "ditron/dialect/tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

using namespace mlir;
using namespace ditron::analysis;
namespace tile = ditron::tile;

namespace {

using Numbers = std::vector<int64_t>;

/// A value of the program and its elements in row-major order. Pointers are addresses in bytes.
struct Known {
  Value value;
  Numbers numbers;
};

/// Values must stay far from overflow, which the analysis assumes not to happen.
constexpr int64_t largest = int64_t(1) << 28;

class RandomProgram {
public:
  RandomProgram(MLIRContext &context, unsigned seed) : random(seed), builder(&context) {
    Location loc = builder.getUnknownLoc();
    module = ModuleOp::create(loc);
    builder.setInsertionPointToEnd(module->getBody());
    Type i32 = builder.getI32Type(), pointer = tile::PointerType::get(builder.getF16Type());
    function = func::FuncOp::create(builder, loc, "kernel", builder.getFunctionType({i32, i32, i32, pointer}, {}));
    builder.setInsertionPointToStart(function.addEntryBlock());
    for (unsigned index = 0; index < 4; ++index) {
      int64_t divisor = int64_t(1) << pick(0, 4);
      function.setArgAttr(index, "tile.divisibility", builder.getI64IntegerAttr(divisor));
      add(function.getArgument(index), {divisor * pick(1, 9)}); // the pointer too: an address
    }
  }

  void grow(int steps) {
    for (int step = 0; step < steps; ++step)
      addRandomOperation();
    func::ReturnOp::create(builder, builder.getUnknownLoc());
  }

  func::FuncOp getFunction() { return function; }
  ModuleOp getModule() { return *module; }
  const std::vector<Known> &values() const { return known; }

private:
  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); }
  void add(Value value, Numbers numbers) { known.push_back({value, std::move(numbers)}); }

  /// A random known value that satisfies a condition; null value if there is none.
  Known choose(const std::function<bool(const Known &)> &condition) {
    std::vector<Known> fitting;
    std::copy_if(known.begin(), known.end(), std::back_inserter(fitting), condition);
    return fitting.empty() ? Known() : fitting[pick(0, static_cast<int64_t>(fitting.size()) - 1)];
  }

  static bool isIndexTensor(const Known &value) {
    return isa<RankedTensorType>(value.value.getType()) && tile::elementTypeOf(value.value.getType()).isInteger(32);
  }

  Location loc() { return builder.getUnknownLoc(); }

  void addRandomOperation() {
    switch (pick(0, 9)) {
    case 0: return addRange();
    case 1: return addSplat();
    case 2: return addShape();
    case 3: return addPointer();
    case 4: return addSelect();
    default: return addBinary();
    }
  }

  void addRange() {
    int64_t size = int64_t(1) << pick(2, 5), start = pick(0, 2) * pick(0, 8);
    Numbers numbers;
    for (int64_t index = 0; index < size; ++index)
      numbers.push_back(start + index);
    auto type = RankedTensorType::get({size}, builder.getI32Type());
    add(tile::ArangeOp::create(builder, loc(), type, static_cast<uint32_t>(start), static_cast<uint32_t>(start + size)),
        numbers);
  }

  /// A scalar or a constant in the shape of some tensor.
  void addSplat() {
    Known shape = choose(isIndexTensor);
    if (!shape.value)
      return;
    auto type = cast<RankedTensorType>(shape.value.getType());
    if (pick(0, 1)) {
      // Mostly powers of two and their neighbours, where the rules say something; some negative.
      int64_t value = pick(0, 2) ? (int64_t(1) << pick(0, 5)) - pick(0, 4) / 4 : pick(1, 40);
      value = pick(0, 3) ? value : -value;
      auto attribute = DenseElementsAttr::get(type, builder.getI32IntegerAttr(static_cast<int32_t>(value)));
      return add(arith::ConstantOp::create(builder, loc(), attribute), Numbers(type.getNumElements(), value));
    }
    Known scalar = choose([](const Known &value) { return value.value.getType().isInteger(32); });
    add(tile::SplatOp::create(builder, loc(), type, scalar.value), Numbers(type.getNumElements(), scalar.numbers[0]));
  }

  void addShape() {
    Known source = choose([](const Known &value) { return isa<RankedTensorType>(value.value.getType()); });
    if (!source.value)
      return;
    auto type = cast<RankedTensorType>(source.value.getType());
    Type element = type.getElementType();
    SmallVector<int64_t> shape(type.getShape());
    if (shape.size() == 1 && pick(0, 2)) { // n -> n x 1 -> n x m, or m x n
      int axis = static_cast<int>(pick(0, 1));
      int64_t copies = int64_t(1) << pick(0, 4);
      SmallVector<int64_t> unit(shape), wide(shape);
      unit.insert(unit.begin() + axis, 1);
      wide.insert(wide.begin() + axis, copies);
      Value expanded =
          tile::ExpandDimsOp::create(builder, loc(), RankedTensorType::get(unit, element), source.value, axis);
      add(expanded, source.numbers);
      Numbers numbers;
      for (int64_t row = 0; row < wide[0]; ++row)
        for (int64_t col = 0; col < wide[1]; ++col)
          numbers.push_back(source.numbers[axis == 0 ? col : row]);
      return add(tile::BroadcastOp::create(builder, loc(), RankedTensorType::get(wide, element), expanded), numbers);
    }
    if (shape.size() == 2 && pick(0, 1)) {
      Numbers numbers;
      for (int64_t col = 0; col < shape[1]; ++col)
        for (int64_t row = 0; row < shape[0]; ++row)
          numbers.push_back(source.numbers[row * shape[1] + col]);
      auto result = RankedTensorType::get({shape[1], shape[0]}, element);
      return add(tile::TransOp::create(builder, loc(), result, source.value, ArrayRef<int32_t>{1, 0}), numbers);
    }
    // Any other shape with as many elements.
    int64_t rows = int64_t(1) << pick(0, 4), total = type.getNumElements();
    if (total % rows != 0)
      return;
    auto result =
        pick(0, 2) ? RankedTensorType::get({rows, total / rows}, element) : RankedTensorType::get({total}, element);
    add(tile::ReshapeOp::create(builder, loc(), result, source.value), source.numbers);
  }

  /// pointer + offsets, for splats of the pointer and for sums made before.
  void addPointer() {
    Known offsets = choose(isIndexTensor);
    if (!offsets.value)
      return;
    Type pointers = tile::withElementType(offsets.value.getType(), tile::PointerType::get(builder.getF16Type()));
    Known base = choose([&](const Known &value) { return value.value.getType() == pointers; });
    if (!base.value) {
      base.value = tile::SplatOp::create(builder, loc(), pointers, function.getArgument(3));
      base.numbers.assign(offsets.numbers.size(), known[3].numbers[0]);
      add(base.value, base.numbers);
    }
    Numbers numbers;
    for (auto [address, offset] : llvm::zip_equal(base.numbers, offsets.numbers))
      numbers.push_back(address + 2 * offset);
    add(tile::AddPtrOp::create(builder, loc(), base.value, offsets.value), numbers);
  }

  /// select(l <predicate> r, a, b), with the mask as a value of its own.
  void addSelect() {
    Known lhs = choose(isIndexTensor);
    if (!lhs.value)
      return;
    auto sameType = [&](const Known &value) { return value.value.getType() == lhs.value.getType(); };
    Known rhs = choose(sameType), yes = choose(sameType), no = choose(sameType);
    auto predicate = static_cast<arith::CmpIPredicate>(pick(0, 9));
    Numbers mask, selected;
    for (size_t index = 0; index < lhs.numbers.size(); ++index) {
      APInt l(32, lhs.numbers[index], true), r(32, rhs.numbers[index], true);
      mask.push_back(arith::applyCmpPredicate(predicate, l, r));
      selected.push_back(mask.back() ? yes.numbers[index] : no.numbers[index]);
    }
    Value condition = arith::CmpIOp::create(builder, loc(), predicate, lhs.value, rhs.value);
    add(condition, mask);
    add(arith::SelectOp::create(builder, loc(), condition, yes.value, no.value), selected);
  }

  void addBinary() {
    Known lhs = choose(isIndexTensor);
    if (!lhs.value)
      return;
    Known rhs = choose([&](const Known &value) { return value.value.getType() == lhs.value.getType(); });
    int64_t kind = pick(0, 13);
    auto all = [](const Known &value, auto condition) { return llvm::all_of(value.numbers, condition); };
    bool positiveRhs = all(rhs, [](int64_t x) { return x > 0; });
    bool smallRhs = all(rhs, [](int64_t x) { return x >= 0 && x < 8; });
    bool unsignedSafe = positiveRhs && all(lhs, [](int64_t x) { return x >= 0; });
    if ((kind >= 3 && kind <= 5 && !positiveRhs) || ((kind == 6 || kind == 7) && !unsignedSafe) ||
        ((kind == 8 || kind == 9) && !smallRhs))
      return;
    auto floorDivide = [](int64_t l, int64_t r) { return l / r - (l % r < 0); };
    const std::function<int64_t(int64_t, int64_t)> functions[] = {
        [](int64_t l, int64_t r) { return l + r; },
        [](int64_t l, int64_t r) { return l - r; },
        [](int64_t l, int64_t r) { return l * r; },
        [](int64_t l, int64_t r) { return l / r; },
        [](int64_t l, int64_t r) { return l % r; },
        floorDivide,
        [](int64_t l, int64_t r) { return l / r; },
        [](int64_t l, int64_t r) { return l % r; },
        [](int64_t l, int64_t r) { return l * (int64_t(1) << r); },
        [](int64_t l, int64_t r) { return l >> r; },
        [](int64_t l, int64_t r) { return l & r; },
        [](int64_t l, int64_t r) { return l | r; },
        [](int64_t l, int64_t r) { return l ^ r; },
        [](int64_t l, int64_t r) { return std::min(l, r); }};
    Numbers numbers;
    for (auto [l, r] : llvm::zip_equal(lhs.numbers, rhs.numbers)) {
      numbers.push_back(functions[kind](l, r));
      if (std::abs(numbers.back()) > largest)
        return;
    }
    const std::function<Value()> creators[] = {
        [&] { return create<arith::AddIOp>(lhs, rhs); },  [&] { return create<arith::SubIOp>(lhs, rhs); },
        [&] { return create<arith::MulIOp>(lhs, rhs); },  [&] { return create<arith::DivSIOp>(lhs, rhs); },
        [&] { return create<arith::RemSIOp>(lhs, rhs); }, [&] { return create<arith::FloorDivSIOp>(lhs, rhs); },
        [&] { return create<arith::DivUIOp>(lhs, rhs); }, [&] { return create<arith::RemUIOp>(lhs, rhs); },
        [&] { return create<arith::ShLIOp>(lhs, rhs); },  [&] { return create<arith::ShRSIOp>(lhs, rhs); },
        [&] { return create<arith::AndIOp>(lhs, rhs); },  [&] { return create<arith::OrIOp>(lhs, rhs); },
        [&] { return create<arith::XOrIOp>(lhs, rhs); },  [&] { return create<arith::MinSIOp>(lhs, rhs); }};
    add(creators[kind](), numbers);
  }

  template <typename OpT> Value create(const Known &lhs, const Known &rhs) {
    return OpT::create(builder, loc(), lhs.value, rhs.value);
  }

  std::mt19937 random;
  OpBuilder builder;
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
  std::vector<Known> known;
};

/// The first claim that is not true of the numbers, in words; empty if all are.
std::string falseClaim(const AxisInfo &info, const Known &known) {
  SmallVector<int64_t> shape(tile::shapeOf(known.value.getType()));
  if (shape.empty())
    shape.push_back(1);
  auto pointer = dyn_cast<tile::PointerType>(tile::elementTypeOf(known.value.getType()));
  int64_t unit = pointer ? pointer.getElementBytes() : 1;
  int64_t total = static_cast<int64_t>(known.numbers.size());
  for (int64_t element = 0; element < total; ++element) {
    int64_t number = known.numbers[element];
    if (info.constant && *info.constant != number)
      return "constant";
    if (info.nonNegative && number < 0)
      return "nonNegative";
    int64_t stride = total;
    for (int dim = 0; dim < info.rank(); ++dim) {
      stride /= shape[dim];
      int64_t position = element / stride % shape[dim];
      std::string where = " along dimension " + std::to_string(dim) + " at element " + std::to_string(element);
      if (shape[dim] % info.contiguity[dim] != 0 || shape[dim] % info.constancy[dim] != 0)
        return "run longer than the dimension" + where;
      if (position % info.contiguity[dim] == 0) {
        if (number % info.divisibility[dim] != 0)
          return "divisibility" + where;
      } else if (number != known.numbers[element - stride] + unit) {
        return "contiguity" + where;
      }
      if (position % info.constancy[dim] != 0 && number != known.numbers[element - stride])
        return "constancy" + where;
    }
  }
  return "";
}

class AxisSoundness : public ::testing::Test {
protected:
  AxisSoundness() { context.loadDialect<arith::ArithDialect, func::FuncDialect, tile::TileDialect>(); }
  MLIRContext context;
};

TEST_F(AxisSoundness, claimsHoldInRandomPrograms) {
  int64_t vectors = 0;
  for (unsigned seed = 0; seed < 12000; ++seed) {
    RandomProgram program(context, seed);
    program.grow(40);
    ASSERT_TRUE(succeeded(verify(program.getModule()))) << "seed " << seed;
    AxisInfoAnalysis analysis(program.getFunction());
    for (const Known &known : program.values()) {
      AxisInfo info = analysis.getAxisInfo(known.value);
      std::string claim = falseClaim(info, known);
      if (!claim.empty()) {
        std::string text;
        llvm::raw_string_ostream os(text);
        os << "value " << known.value << "\nclaimed ";
        info.print(os);
        os << "\nin\n" << program.getFunction();
        FAIL() << "seed " << seed << ": wrong " << claim << "\n" << text;
      }
      vectors += llvm::any_of(info.contiguity, [](int64_t run) { return run > 1; });
    }
  }
  // The programs are worth the trouble only if there is something to claim.
  EXPECT_GT(vectors, 5000);
}

TEST_F(AxisSoundness, joinIsAtMostEither) {
  AxisInfo run{{16}, {32}, {1}, std::nullopt, true}, equal{{1}, {4}, {16}, 4, false};
  AxisInfo both = AxisInfo::join(run, equal);
  EXPECT_EQ(both, (AxisInfo{{1}, {1}, {1}, std::nullopt, false}));
  EXPECT_EQ(AxisInfo::join(AxisInfo(), run), run);
  EXPECT_EQ(AxisInfo::join(run, run), run);
}

TEST(PowerOfTwoDivisor, ofAnyNumber) {
  EXPECT_EQ(powerOfTwoDivisor(24), 8);
  EXPECT_EQ(powerOfTwoDivisor(-24), 8);
  EXPECT_EQ(powerOfTwoDivisor(7), 1);
  EXPECT_EQ(powerOfTwoDivisor(0), AxisInfo::maxDivisibility);
}

} // namespace
