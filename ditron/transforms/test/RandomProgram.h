//===- RandomProgram.h - Random kernels with their expected results, for tests ------------------------------*- C++ -*-===//
//
// Builds kernels from random operations on i32 tensors, without layouts, and computes beside each operation what it must give.
// Integers wrap around, so every result is exact whatever the order of evaluation. The kernel reads `x` (words of
// RandomProgram::input) and writes `y`, which holds -1 everywhere at the start.
//
// What occurs: loads and stores in any order of dimensions, masked or not, aligned or not; arithmetic, select, shape changes,
// reductions with one and two operands, scans, int8 dots, loops and branches that carry tensors, atomics whose result is used,
// and GEMM loops with moving pointers or addresses from the induction variable, casts, transposes, masks and num_stages.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_TEST_RANDOMPROGRAM_H
#define DITRON_TRANSFORMS_TEST_RANDOMPROGRAM_H

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace ditron::transforms::test {

using Shape = std::vector<int64_t>;

/// A dense row-major array; rank 0 is a scalar.
struct Array {
  Shape shape;
  std::vector<int32_t> data;
};

/// A value of the program: its name and what it holds.
struct Value {
  std::string name;
  Array array;
};

/// What a store leaves in `y`: word places[i] holds values[i].
struct Expectation {
  std::string name;
  std::vector<int64_t> places;
  std::vector<int32_t> values;
};

class RandomProgram {
public:
  explicit RandomProgram(uint32_t seed);

  std::string text() const;
  int numWarps;
  std::vector<int32_t> input;
  int64_t outputWords = 0;
  std::vector<Expectation> expectations;

private:
  // Randomness.
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); }
  bool chance(double probability) { return std::uniform_real_distribution<>(0, 1)(random) < probability; }
  Shape randomShape();
  std::vector<int> randomOrder(size_t rank);
  /// A random value that satisfies the condition, or null.
  const Value *choose(const std::function<bool(const Array &)> &condition);
  const Value *chooseLike(const Array &array);

  // Text.
  std::string fresh() { return "%v" + std::to_string(next++); }
  void line(const std::string &text) { body += "    " + text + "\n"; }
  std::string scalar(int32_t value);
  std::string splat(int32_t value, const Shape &shape);
  /// The combine region of a reduction or scan.
  std::string region(const std::string &operation);

  // Building blocks.
  /// The linear index of each element when `order` lists the dimensions fastest first.
  Value indices(const Shape &shape, const std::vector<int> &order);
  /// `base[word ...]` as a tensor of pointers.
  std::string pointers(const std::string &base, int64_t word, const Value &index);
  Value expandAndBroadcast(Value value, size_t axis, const Shape &shape);
  const Value &add(std::string name, Array array);
  void store(const Value &value);

  // Operations; each does nothing when there is no fitting value.
  void load(Shape shape);
  void binary();
  void transpose();
  void reshape();
  void broadcast();
  void reduce();
  void argmax();
  void scan();
  void pairUp();
  void splitPairs();
  void gather();
  void exchange();
  void network();
  void select();
  void splatScalar();
  void dot();
  void loop();
  void branch();
  void atomic();
  void gemm();
  void step(bool nested);

  std::mt19937 random;
  int next = 0;
  bool aligned;
  std::string body;
  std::vector<Value> values;
};

} // namespace ditron::transforms::test

#endif // DITRON_TRANSFORMS_TEST_RANDOMPROGRAM_H
