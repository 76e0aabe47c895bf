//===- RandomProgram.cpp - Random kernels with their expected results, for tests ------------------------------------------===//
//
// See RandomProgram.h. Each operation writes its line of IR and computes its result on arrays.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "RandomProgram.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>

namespace ditron::transforms::test {

//===------------------------------------------------------------------------------------------------------------------===//
// Arrays
//===------------------------------------------------------------------------------------------------------------------===//

static int64_t sizeOf(const Shape &shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
}

static int32_t wrap(int64_t value) { return static_cast<int32_t>(static_cast<uint32_t>(value)); }

/// An array whose element at each multi-index is `element(index)`.
static Array generate(const Shape &shape, const std::function<int32_t(const Shape &)> &element) {
  Array array{shape, {}};
  Shape index(shape.size(), 0);
  for (int64_t i = 0; i < sizeOf(shape); ++i) {
    array.data.push_back(element(index));
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d])
        break;
      index[d] = 0;
    }
  }
  return array;
}

static int32_t at(const Array &array, const Shape &index) {
  int64_t linear = 0;
  for (size_t d = 0; d < index.size(); ++d)
    linear = linear * array.shape[d] + index[d];
  return array.data[linear];
}

static Array combine(const Array &a, const Array &b, const std::function<int32_t(int32_t, int32_t)> &operation) {
  Array result = a;
  std::transform(a.data.begin(), a.data.end(), b.data.begin(), result.data.begin(), operation);
  return result;
}

static Array permuted(const Array &array, const std::vector<int> &order) {
  Shape shape;
  for (int d : order)
    shape.push_back(array.shape[d]);
  return generate(shape, [&](const Shape &index) {
    Shape source(index.size());
    for (size_t d = 0; d < order.size(); ++d)
      source[order[d]] = index[d];
    return at(array, source);
  });
}

/// Calls `visit(result index without the axis, elements along the axis)`.
static Array alongAxis(const Array &array, size_t axis,
                       const std::function<int32_t(const std::vector<int32_t> &)> &fold) {
  Shape shape = array.shape;
  int64_t length = shape[axis];
  shape.erase(shape.begin() + axis);
  return generate(shape, [&](const Shape &index) {
    std::vector<int32_t> elements;
    Shape source = index;
    source.insert(source.begin() + axis, 0);
    for (int64_t i = 0; i < length; ++i) {
      source[axis] = i;
      elements.push_back(at(array, source));
    }
    return fold(elements);
  });
}

static int32_t sumOf(const std::vector<int32_t> &elements) {
  int64_t sum = 0;
  for (int32_t element : elements)
    sum += element;
  return wrap(sum);
}
static int32_t maximumOf(const std::vector<int32_t> &elements) {
  return *std::max_element(elements.begin(), elements.end());
}

static Array dotOf(const Array &a, const Array &b, const Array &c) {
  return generate(c.shape, [&](const Shape &index) {
    int64_t sum = at(c, index);
    for (int64_t k = 0; k < a.shape[1]; ++k)
      sum += int64_t(int8_t(at(a, {index[0], k}))) * int8_t(at(b, {k, index[1]}));
    return wrap(sum);
  });
}

//===------------------------------------------------------------------------------------------------------------------===//
// Text
//===------------------------------------------------------------------------------------------------------------------===//

static std::string type(const Shape &shape, std::string_view element = "i32") {
  return shape.empty() ? std::string(element) : fmt::format("tensor<{}x{}>", fmt::join(shape, "x"), element);
}
static std::string pointerType(const Shape &shape) { return type(shape, "!tile.ptr<i32>"); }

std::string RandomProgram::scalar(int32_t value) {
  std::string name = fresh();
  line(fmt::format("{} = arith.constant {} : i32", name, value));
  return name;
}

std::string RandomProgram::splat(int32_t value, const Shape &shape) {
  std::string name = fresh();
  line(fmt::format("{} = arith.constant dense<{}> : {}", name, value, type(shape)));
  return name;
}

std::string RandomProgram::region(const std::string &operation) {
  int id = next++;
  return fmt::format(
      "{{\n    ^bb0(%a{0}: i32, %b{0}: i32):\n      %m{0} = arith.{1} %a{0}, %b{0} : i32\n      tile.yield %m{0} : "
      "i32\n    }}",
      id, operation);
}

std::string RandomProgram::text() const {
  std::string attribute = aligned ? " {tile.divisibility = 16 : i64}" : "";
  return fmt::format(
      "module attributes {{dgpu.target = \"sim:sm_80\", dgpu.num_warps = {} : i32, dgpu.threads_per_warp = 32 : i32, "
      "dgpu.num_stages = 3 : i32}} {{\n  func.func @kernel(%x: !tile.ptr<i32>{}, %y: !tile.ptr<i32>{}) attributes "
      "{{tile.kernel}} {{\n    %unknown0 = tile.program_id 1\n{}    return\n  }}\n}}\n",
      numWarps, attribute, attribute, body);
}

//===------------------------------------------------------------------------------------------------------------------===//
// Building blocks
//===------------------------------------------------------------------------------------------------------------------===//

Shape RandomProgram::randomShape() {
  int rank = std::vector<int>{1, 1, 2, 2, 2, 3}[pick(0, 5)];
  if (rank == 1)
    return {int64_t(1) << pick(0, 10)};
  Shape shape;
  for (int d = 0; d < rank; ++d)
    shape.push_back(int64_t(1) << pick(0, rank == 2 ? 6 : 4));
  return shape;
}

std::vector<int> RandomProgram::randomOrder(size_t rank) {
  std::vector<int> order(rank);
  std::iota(order.rbegin(), order.rend(), 0);
  if (chance(0.35))
    std::shuffle(order.begin(), order.end(), random);
  return order;
}

const Value *RandomProgram::choose(const std::function<bool(const Array &)> &condition) {
  std::vector<const Value *> fitting;
  for (const Value &value : values)
    if (condition(value.array))
      fitting.push_back(&value);
  return fitting.empty() ? nullptr : fitting[pick(0, static_cast<int>(fitting.size()) - 1)];
}

const Value *RandomProgram::chooseLike(const Array &array) {
  return choose([&](const Array &other) { return other.shape == array.shape; });
}

const Value &RandomProgram::add(std::string name, Array array) {
  values.push_back({std::move(name), std::move(array)});
  return values.back();
}

Value RandomProgram::expandAndBroadcast(Value value, size_t axis, const Shape &shape) {
  Shape current = value.array.shape;
  auto expand = [&](size_t position) {
    Shape expanded = current;
    expanded.insert(expanded.begin() + position, 1);
    std::string name = fresh();
    line(fmt::format("{} = tile.expand_dims {} axis {} : {} -> {}", name, value.name, position, type(current),
                     type(expanded)));
    value.name = name;
    current = expanded;
  };
  for (size_t d = 0; d < axis; ++d)
    expand(0);
  while (current.size() < shape.size())
    expand(current.size());
  if (current != shape) {
    std::string name = fresh();
    line(fmt::format("{} = tile.broadcast {} : {} -> {}", name, value.name, type(current), type(shape)));
    value.name = name;
  }
  value.array = generate(shape, [&](const Shape &index) { return value.array.data[index[axis]]; });
  return value;
}

Value RandomProgram::indices(const Shape &shape, const std::vector<int> &order) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (int d : order) {
    strides[d] = stride;
    stride *= shape[d];
  }
  Value sum;
  for (size_t d = 0; d < shape.size(); ++d) {
    std::string range = fresh(), scaled = fresh();
    line(fmt::format("{} = tile.arange 0, {} : {}", range, shape[d], type({shape[d]})));
    line(fmt::format("{} = arith.muli {}, {} : {}", scaled, range, splat(static_cast<int32_t>(strides[d]), {shape[d]}),
                     type({shape[d]})));
    Array part = generate({shape[d]}, [&](const Shape &index) { return wrap(index[0] * strides[d]); });
    Value spread = expandAndBroadcast({scaled, part}, d, shape);
    if (d == 0) {
      sum = spread;
      continue;
    }
    std::string name = fresh();
    line(fmt::format("{} = arith.addi {}, {} : {}", name, sum.name, spread.name, type(shape)));
    sum = {name, combine(sum.array, spread.array, [](int32_t a, int32_t b) { return a + b; })};
  }
  return sum;
}

std::string RandomProgram::pointers(const std::string &base, int64_t word, const Value &index) {
  const Shape &shape = index.array.shape;
  std::string start = fresh(), starts = fresh(), result = fresh();
  line(fmt::format("{} = tile.addptr {}, {} : !tile.ptr<i32>, i32", start, base, scalar(static_cast<int32_t>(word))));
  line(fmt::format("{} = tile.splat {} : !tile.ptr<i32> -> {}", starts, start, pointerType(shape)));
  line(fmt::format("{} = tile.addptr {}, {} : {}, {}", result, starts, index.name, pointerType(shape), type(shape)));
  return result;
}

void RandomProgram::store(const Value &value) {
  const Shape &shape = value.array.shape;
  int64_t word = (outputWords + 3) / 4 * 4;
  outputWords = word + sizeOf(shape);
  Expectation expectation{value.name, {}, value.array.data};
  if (shape.empty()) {
    std::string place = fresh();
    line(fmt::format("{} = tile.addptr %y, {} : !tile.ptr<i32>, i32", place, scalar(static_cast<int32_t>(word))));
    line(fmt::format("tile.store {}, {} : !tile.ptr<i32>, i32", place, value.name));
    expectation.places = {word};
  } else {
    Value index = indices(shape, randomOrder(shape.size()));
    line(fmt::format("tile.store {}, {} : {}, {}", pointers("%y", word, index), value.name, pointerType(shape),
                     type(shape)));
    for (int32_t offset : index.array.data)
      expectation.places.push_back(word + offset);
  }
  expectations.push_back(std::move(expectation));
}

//===------------------------------------------------------------------------------------------------------------------===//
// Operations
//===------------------------------------------------------------------------------------------------------------------===//

void RandomProgram::load(Shape shape) {
  Value index = indices(shape, randomOrder(shape.size()));
  int word = 4 * pick(0, 200);
  std::string places = pointers("%x", word, index), name = fresh();
  if (chance(0.6)) {
    line(fmt::format("{} = tile.load {} : {} -> {}", name, places, pointerType(shape), type(shape)));
    for (int32_t &element : index.array.data)
      element = input[word + element];
  } else {
    int limit = pick(0, static_cast<int>(sizeOf(shape)));
    std::string mask = fresh();
    line(fmt::format("{} = arith.cmpi slt, {}, {} : {}", mask, index.name, splat(limit, shape), type(shape)));
    line(fmt::format("{} = tile.load {} mask {} : {} mask {} -> {}", name, places, mask, pointerType(shape),
                     type(shape, "i1"), type(shape)));
    for (int32_t &element : index.array.data)
      element = element < limit ? input[word + element] : 0;
  }
  add(name, std::move(index.array));
}

void RandomProgram::binary() {
  const Value *a = choose([](const Array &array) { return !array.shape.empty(); });
  const Value *b = chooseLike(a->array);
  struct Operation {
    const char *name;
    int32_t (*apply)(int32_t, int32_t);
  };
  static const Operation operations[] = {{"addi", [](int32_t a, int32_t b) { return wrap(int64_t(a) + b); }},
                                         {"subi", [](int32_t a, int32_t b) { return wrap(int64_t(a) - b); }},
                                         {"muli", [](int32_t a, int32_t b) { return wrap(int64_t(a) * b); }},
                                         {"xori", [](int32_t a, int32_t b) { return a ^ b; }},
                                         {"maxsi", [](int32_t a, int32_t b) { return std::max(a, b); }}};
  const Operation &operation = operations[pick(0, 4)];
  std::string name = fresh();
  line(fmt::format("{} = arith.{} {}, {} : {}", name, operation.name, a->name, b->name, type(a->array.shape)));
  add(name, combine(a->array, b->array, operation.apply));
}

void RandomProgram::transpose() {
  const Value *source = choose([](const Array &array) { return array.shape.size() >= 2; });
  if (!source)
    return;
  std::vector<int> order(source->array.shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  Array result = permuted(source->array, order);
  std::string name = fresh();
  line(fmt::format("{} = tile.trans {} [{}] : {} -> {}", name, source->name, fmt::join(order, ", "),
                   type(source->array.shape), type(result.shape)));
  add(name, std::move(result));
}

void RandomProgram::reshape() {
  const Value *source = choose([](const Array &array) { return !array.shape.empty(); });
  Shape shape{sizeOf(source->array.shape)};
  for (int cuts = pick(0, 2); cuts > 0; --cuts) {
    int64_t part = std::min(shape.back(), int64_t(1) << pick(0, 6));
    shape.back() /= part;
    shape.insert(shape.begin(), part);
  }
  if (shape == source->array.shape)
    return;
  std::string name = fresh();
  line(fmt::format("{} = tile.reshape {} : {} -> {}", name, source->name, type(source->array.shape), type(shape)));
  add(name, {shape, source->array.data});
}

void RandomProgram::broadcast() {
  const Value *source = choose([](const Array &array) { return array.shape.size() == 1 && array.data.size() <= 128; });
  if (!source)
    return;
  Shape shape{source->array.shape[0]};
  size_t axis = pick(0, 1);
  shape.insert(shape.begin() + (1 - axis), int64_t(1) << pick(0, 5));
  Value result = expandAndBroadcast(*source, axis, shape);
  add(result.name, std::move(result.array));
}

void RandomProgram::reduce() {
  const Value *source = choose([](const Array &array) { return array.data.size() > 1; });
  if (!source)
    return;
  size_t axis = pick(0, static_cast<int>(source->array.shape.size()) - 1);
  bool sum = chance(0.5);
  Array result = alongAxis(source->array, axis, sum ? sumOf : maximumOf);
  std::string name = fresh();
  line(fmt::format("{} = tile.reduce({}) axis {} {} : ({}) -> {}", name, source->name, axis,
                   region(sum ? "addi" : "maxsi"), type(source->array.shape), type(result.shape)));
  add(name, std::move(result));
}

void RandomProgram::argmax() {
  const Value *source = choose([](const Array &array) { return array.data.size() > 1; });
  if (!source)
    return;
  const Array array = source->array;
  size_t axis = pick(0, static_cast<int>(array.shape.size()) - 1);
  std::string range = fresh(), name = fresh(), sourceName = source->name;
  line(fmt::format("{} = tile.arange 0, {} : {}", range, array.shape[axis], type({array.shape[axis]})));
  Array count = generate({array.shape[axis]}, [](const Shape &index) { return wrap(index[0]); });
  Value positions = expandAndBroadcast({range, count}, axis, array.shape);
  Array best = alongAxis(array, axis, maximumOf);
  Array where = alongAxis(array, axis, [](const std::vector<int32_t> &elements) {
    return static_cast<int32_t>(std::max_element(elements.begin(), elements.end()) - elements.begin());
  });
  line(fmt::format(
      "{0}:2 = tile.reduce({1}, {2}) axis {3} {{\n    ^bb0(%a{4}: i32, %i{4}: i32, %b{4}: i32, %j{4}: i32):\n"
      "      %g{4} = arith.cmpi sge, %a{4}, %b{4} : i32\n      %m{4} = arith.select %g{4}, %a{4}, %b{4} : i32\n"
      "      %k{4} = arith.select %g{4}, %i{4}, %j{4} : i32\n      tile.yield %m{4}, %k{4} : i32, i32\n    }} : ({5}, "
      "{5}) "
      "-> ({6}, {6})",
      name, sourceName, positions.name, axis, next++, type(array.shape), type(best.shape)));
  add(name + "#0", std::move(best));
  add(name + "#1", std::move(where));
}

void RandomProgram::scan() {
  const Value *source = choose([](const Array &array) { return array.data.size() > 1; });
  if (!source)
    return;
  const Array &array = source->array;
  size_t axis = pick(0, static_cast<int>(array.shape.size()) - 1);
  bool sum = chance(0.5);
  Array result = generate(array.shape, [&](const Shape &index) {
    std::vector<int32_t> elements;
    Shape place = index;
    for (place[axis] = 0; place[axis] <= index[axis]; ++place[axis])
      elements.push_back(at(array, place));
    return sum ? sumOf(elements) : maximumOf(elements);
  });
  std::string name = fresh();
  line(fmt::format("{} = tile.scan({}) axis {} {} : ({}) -> {}", name, source->name, axis,
                   region(sum ? "addi" : "maxsi"), type(array.shape), type(array.shape)));
  add(name, std::move(result));
}

void RandomProgram::pairUp() {
  const Value *a = choose([](const Array &array) { return array.shape.size() < 4; });
  if (!a)
    return;
  const Value *b = chooseLike(a->array);
  Array result = a->array;
  result.shape.push_back(2);
  result.data.clear();
  for (size_t i = 0; i < a->array.data.size(); ++i)
    result.data.insert(result.data.end(), {a->array.data[i], b->array.data[i]});
  std::string name = fresh();
  std::string half = a->array.shape.empty() ? "i32" : type(a->array.shape);
  line(fmt::format("{} = tile.join {}, {} : {} -> {}", name, a->name, b->name, half, type(result.shape)));
  add(name, std::move(result));
}

void RandomProgram::splitPairs() {
  const Value *source = choose([](const Array &array) { return !array.shape.empty() && array.shape.back() >= 2; });
  if (!source)
    return;
  Array left, right;
  left.shape = source->array.shape;
  left.shape.back() /= 2;
  Shape pairs = left.shape;
  pairs.push_back(2);
  if (pairs == Shape{1, 2}) { // two elements give scalars
    left.shape.clear();
    pairs = {2};
  }
  for (size_t i = 0; i < source->array.data.size(); i += 2) {
    left.data.push_back(source->array.data[i]);
    right.data.push_back(source->array.data[i + 1]);
  }
  right.shape = left.shape;
  std::string from = source->name, name = fresh();
  if (pairs != source->array.shape) {
    from = fresh();
    line(fmt::format("{} = tile.reshape {} : {} -> {}", from, source->name, type(source->array.shape), type(pairs)));
  }
  line(fmt::format("{}:2 = tile.split {} : {} -> {}", name, from, type(pairs),
                   left.shape.empty() ? "i32" : type(left.shape)));
  add(name + "#0", std::move(left));
  add(name + "#1", std::move(right));
}

void RandomProgram::gather() {
  const Value *source = choose([](const Array &array) { return !array.shape.empty(); });
  const Value *numbers = chooseLike(source->array);
  const Shape &shape = source->array.shape;
  size_t axis = pick(0, static_cast<int>(shape.size()) - 1);
  int32_t mask = static_cast<int32_t>(shape[axis]) - 1;
  std::string index = fresh(), name = fresh();
  line(fmt::format("{} = arith.andi {}, {} : {}", index, numbers->name, splat(mask, shape), type(shape)));
  line(fmt::format("{} = tile.gather {}[{}] axis {} : {}, {} -> {}", name, source->name, index, axis, type(shape),
                   type(shape), type(shape)));
  add(name, generate(shape, [&](const Shape &place) {
        Shape from = place;
        from[axis] = at(numbers->array, place) & mask;
        return at(source->array, from);
      }));
}

void RandomProgram::exchange() {
  const Value *source = choose([](const Array &array) { return !array.shape.empty(); });
  const Shape shape = source->array.shape;
  size_t axis = pick(0, static_cast<int>(shape.size()) - 1);
  int mask = pick(0, static_cast<int>(shape[axis]) - 1);
  Shape thin(shape.size(), 1);
  thin[axis] = shape[axis];
  std::string line0 = fresh(), placed = fresh(), positions = fresh(), index = fresh(), name = fresh();
  line(fmt::format("{} = tile.arange 0, {} : {}", line0, shape[axis], type({shape[axis]})));
  line(fmt::format("{} = tile.reshape {} : {} -> {}", placed, line0, type({shape[axis]}), type(thin)));
  line(fmt::format("{} = tile.broadcast {} : {} -> {}", positions, placed, type(thin), type(shape)));
  line(fmt::format("{} = arith.xori {}, {} : {}", index, positions, splat(mask, shape), type(shape)));
  line(fmt::format("{} = tile.gather {}[{}] axis {} {{tile.exchange_mask = {} : i32}} : {}, {} -> {}", name, source->name,
                   index, axis, mask, type(shape), type(shape), type(shape)));
  Array result = generate(shape, [&](const Shape &place) {
    Shape from = place;
    from[axis] ^= mask;
    return at(source->array, from);
  });
  add(name, std::move(result));
}

void RandomProgram::network() {
  const Value *source = choose([](const Array &array) { return !array.shape.empty() && array.shape.back() > 1; });
  const Shape shape = source->array.shape;
  const int64_t row = shape.back();
  int levels = 0;
  while (int64_t(1) << levels < row)
    ++levels;
  const int first = pick(1, levels), last = pick(first, levels), direction = pick(0, 2);
  static constexpr std::string_view words[] = {"alternating", "ascending", "descending"};
  std::string name = fresh();
  line(fmt::format("{} = tile.bitonic {} stages {} to {} {} : {}", name, source->name, first, last, words[direction], type(shape)));
  Array result = source->array;
  for (int stage = first; stage <= last; ++stage)
    for (int64_t distance = int64_t(1) << stage >> 1; distance > 0; distance /= 2)
      for (size_t i = 0; i < result.data.size(); ++i) {
        const int64_t position = static_cast<int64_t>(i) % row;
        const bool descends = stage == last && direction != 0 ? direction == 2 : (position >> stage & 1) != 0;
        auto &low = result.data[i];
        if ((position & distance) == 0)
          if (auto &high = result.data[i + distance]; descends ? low < high : low > high)
            std::swap(low, high);
      }
  add(name, std::move(result));
}

void RandomProgram::select() {
  const Value *a = choose([](const Array &array) { return !array.shape.empty(); });
  const Value *b = chooseLike(a->array), *c = chooseLike(a->array);
  std::string mask = fresh(), name = fresh(), tensor = type(a->array.shape);
  line(fmt::format("{} = arith.cmpi slt, {}, {} : {}", mask, a->name, b->name, tensor));
  line(fmt::format("{} = arith.select {}, {}, {} : {}, {}", name, mask, c->name, a->name, type(a->array.shape, "i1"),
                   tensor));
  Array result = a->array;
  for (size_t i = 0; i < result.data.size(); ++i)
    if (a->array.data[i] < b->array.data[i])
      result.data[i] = c->array.data[i];
  add(name, std::move(result));
}

void RandomProgram::splatScalar() {
  const Value *source = choose([](const Array &array) { return array.shape.empty(); });
  if (!source)
    return;
  Shape shape = randomShape();
  std::string name = fresh();
  int32_t element = source->array.data[0];
  line(fmt::format("{} = tile.splat {} : i32 -> {}", name, source->name, type(shape)));
  add(name, generate(shape, [&](const Shape &) { return element; }));
}

void RandomProgram::dot() {
  int64_t m = 1 << pick(3, 6), n = 1 << pick(3, 6), k = 1 << pick(4, 6);
  load({m, k});
  Value a = values.back();
  load({k, n});
  Value b = values.back();
  const Value *chosen = chooseLike({{m, n}, {}});
  Value c = chosen ? *chosen : Value{splat(0, {m, n}), generate({m, n}, [](const Shape &) { return 0; })};
  std::string narrowA = fresh(), narrowB = fresh(), name = fresh();
  line(fmt::format("{} = arith.trunci {} : {} to {}", narrowA, a.name, type({m, k}), type({m, k}, "i8")));
  line(fmt::format("{} = arith.trunci {} : {} to {}", narrowB, b.name, type({k, n}), type({k, n}, "i8")));
  line(fmt::format("{} = tile.dot {}, {}, {} : {}, {} -> {}", name, narrowA, narrowB, c.name, type({m, k}, "i8"),
                   type({k, n}, "i8"), type({m, n})));
  add(name, dotOf(a.array, b.array, c.array));
}

void RandomProgram::loop() {
  // a, b = a + b, broadcast(max(b, axis)) ^ w, a few times.
  const Value first = *choose([](const Array &array) { return !array.shape.empty(); });
  const Value second = *chooseLike(first.array), mixed = *chooseLike(first.array);
  const Shape shape = first.array.shape;
  Shape small = shape;
  size_t axis = pick(0, static_cast<int>(shape.size()) - 1);
  small.erase(small.begin() + axis);
  int trips = pick(0, 3), id = next++;
  std::string zero = scalar(0), one = scalar(1), end = scalar(trips), name = fresh(), tensor = type(shape);
  line(fmt::format(
      "{0}:2 = scf.for %iv{1} = {2} to {3} step {4} iter_args(%p{1} = {5}, %q{1} = {6}) -> ({7}, {7}) : i32 {{", name,
      id, zero, end, one, first.name, second.name, tensor));
  std::string sum = fresh(), most = fresh(), spread = fresh(), result = fresh();
  line(fmt::format("{0} = arith.addi %p{1}, %q{1} : {2}", sum, id, tensor));
  line(fmt::format("{} = tile.reduce(%q{}) axis {} {} : ({}) -> {}", most, id, axis, region("maxsi"), tensor,
                   type(small)));
  if (small.empty()) {
    line(fmt::format("{} = tile.splat {} : i32 -> {}", spread, most, tensor));
  } else {
    Shape expanded = shape;
    expanded[axis] = 1;
    std::string middle = fresh();
    line(fmt::format("{} = tile.expand_dims {} axis {} : {} -> {}", middle, most, axis, type(small), type(expanded)));
    line(fmt::format("{} = tile.broadcast {} : {} -> {}", spread, middle, type(expanded), tensor));
  }
  line(fmt::format("{} = arith.xori {}, {} : {}", result, spread, mixed.name, tensor));
  line(fmt::format("scf.yield {}, {} : {}, {}", sum, result, tensor, tensor));
  line("}");
  Array a = first.array, b = second.array;
  for (int trip = 0; trip < trips; ++trip) {
    Array maxima = alongAxis(b, axis, maximumOf);
    a = combine(a, b, [](int32_t x, int32_t y) { return wrap(int64_t(x) + y); });
    b = generate(shape, [&](const Shape &index) {
      Shape place = index;
      place.erase(place.begin() + axis);
      return at(maxima, place) ^ at(mixed.array, index);
    });
  }
  add(name + "#0", std::move(a));
  add(name + "#1", std::move(b));
}

void RandomProgram::branch() {
  const Value pattern = *choose([](const Array &array) { return !array.shape.empty(); });
  bool taken = chance(0.5);
  std::string condition = fresh(), name = fresh(), tensor = type(pattern.array.shape);
  // %unknown0 is zero, which the compiler cannot know.
  line(fmt::format("{} = arith.cmpi slt, %unknown0, {} : i32", condition, scalar(taken ? 1 : 0)));
  std::vector<Value> outside = values;
  line(fmt::format("{} = scf.if {} -> ({}) {{", name, condition, tensor));
  Array result;
  for (bool side : {true, false}) {
    for (int i = 0; i < 3; ++i)
      step(/*nested=*/true);
    const Value *chosen = chooseLike(pattern.array);
    line(fmt::format("scf.yield {} : {}", chosen->name, tensor));
    if (side == taken)
      result = chosen->array;
    values = outside;
    line(side ? "} else {" : "}");
  }
  add(name, std::move(result));
}

void RandomProgram::atomic() {
  const Value source = *choose([](const Array &array) { return !array.shape.empty(); });
  const Shape &shape = source.array.shape;
  int64_t word = (outputWords + 3) / 4 * 4;
  outputWords = word + sizeOf(shape);
  Value index = indices(shape, randomOrder(shape.size()));
  std::string places = pointers("%y", word, index), name = fresh();
  line(fmt::format("{} = tile.atomic_rmw add relaxed gpu {}, {} : {}, {} -> {}", name, places, source.name,
                   pointerType(shape), type(shape), type(shape)));
  Expectation expectation{name, {}, source.array.data};
  for (size_t i = 0; i < index.array.data.size(); ++i) {
    expectation.places.push_back(word + index.array.data[i]);
    expectation.values[i] = wrap(int64_t(source.array.data[i]) - 1);
  }
  expectations.push_back(std::move(expectation));
  add(name, generate(shape, [](const Shape &) { return -1; }));
}

void RandomProgram::gemm() {
  int64_t m = 1 << pick(4, 6), n = 1 << pick(3, 6), k = 1 << pick(5, 6);
  int trips = pick(0, 6), stages = pick(0, 4), id = next++;
  bool movingPointers = chance(0.5);
  struct Operand {
    Shape inMemory; ///< Transposed after the load if it is not the shape of the operand.
    bool transposed;
    Value index;
    int word, advance, limit; ///< limit < 0: not masked.
    std::string pointers, step;
  };
  auto makeOperand = [&](Shape shape) {
    Operand operand;
    operand.transposed = chance(0.3);
    operand.inMemory = operand.transposed ? Shape{shape[1], shape[0]} : shape;
    operand.index = indices(operand.inMemory, randomOrder(2));
    operand.word = 4 * pick(0, 50);
    operand.advance = std::vector<int>{4, 8, 64, 7, 0}[pick(0, 4)];
    operand.limit = chance(0.5) ? pick(0, static_cast<int>(sizeOf(shape)) * std::max(trips, 1)) : -1;
    operand.pointers = pointers("%x", operand.word, operand.index);
    operand.step = splat(operand.advance, operand.inMemory);
    return operand;
  };
  Operand operands[] = {makeOperand({m, k}), makeOperand({k, n})};
  const Value *chosen = chooseLike({{m, n}, {}});
  Value c = chosen ? *chosen : Value{splat(0, {m, n}), generate({m, n}, [](const Shape &) { return 0; })};

  std::string zero = scalar(0), one = scalar(1), end = fresh(), name = fresh();
  line(fmt::format("{} = arith.addi %unknown0, {} : i32", end, scalar(trips)));
  std::string args = fmt::format("%acc{} = {}", id, c.name), types = type({m, n});
  if (movingPointers)
    for (int i = 0; i < 2; ++i) {
      args += fmt::format(", %ptr{}_{} = {}", i, id, operands[i].pointers);
      types += ", " + pointerType(operands[i].inMemory);
    }
  line(fmt::format("{}:{} = scf.for %iv{} = {} to {} step {} iter_args({}) -> ({}) : i32 {{", name,
                   movingPointers ? 3 : 1, id, zero, end, one, args, types));
  std::vector<std::string> narrow, moved;
  for (int i = 0; i < 2; ++i) {
    const Operand &operand = operands[i];
    std::string tensor = type(operand.inMemory), pointer = pointerType(operand.inMemory), mask, places;
    if (movingPointers) {
      places = fmt::format("%ptr{}_{}", i, id);
    } else {
      std::string offset = fresh(), offsets = fresh();
      places = fresh();
      line(fmt::format("{} = arith.muli %iv{}, {} : i32", offset, id, scalar(operand.advance)));
      line(fmt::format("{} = tile.splat {} : i32 -> {}", offsets, offset, tensor));
      line(fmt::format("{} = tile.addptr {}, {} : {}, {}", places, operand.pointers, offsets, pointer, tensor));
    }
    std::string loaded = fresh(), cast = fresh();
    if (operand.limit < 0) {
      line(fmt::format("{} = tile.load {} : {} -> {}", loaded, places, pointer, tensor));
    } else {
      std::string done = fresh(), left = fresh(), lefts = fresh(), inside = fresh();
      line(fmt::format("{} = arith.muli %iv{}, {} : i32", done, id,
                       scalar(static_cast<int32_t>(sizeOf(operand.inMemory)))));
      line(fmt::format("{} = arith.subi {}, {} : i32", left, scalar(operand.limit), done));
      line(fmt::format("{} = tile.splat {} : i32 -> {}", lefts, left, tensor));
      line(fmt::format("{} = arith.cmpi slt, {}, {} : {}", inside, operand.index.name, lefts, tensor));
      line(fmt::format("{} = tile.load {} mask {} : {} mask {} -> {}", loaded, places, inside, pointer,
                       type(operand.inMemory, "i1"), tensor));
    }
    line(fmt::format("{} = arith.trunci {} : {} to {}", cast, loaded, tensor, type(operand.inMemory, "i8")));
    if (operand.transposed) {
      std::string straight = fresh();
      line(fmt::format("{} = tile.trans {} [1, 0] : {} -> {}", straight, cast, type(operand.inMemory, "i8"),
                       type({operand.inMemory[1], operand.inMemory[0]}, "i8")));
      cast = straight;
    }
    narrow.push_back(cast);
    if (movingPointers) {
      moved.push_back(fresh());
      line(fmt::format("{} = tile.addptr {}, {} : {}, {}", moved.back(), places, operand.step, pointer, tensor));
    }
  }
  std::string dot = fresh();
  line(fmt::format("{} = tile.dot {}, {}, %acc{} : {}, {} -> {}", dot, narrow[0], narrow[1], id, type({m, k}, "i8"),
                   type({k, n}, "i8"), type({m, n})));
  line(fmt::format("scf.yield {} : {}", movingPointers ? fmt::format("{}, {}, {}", dot, moved[0], moved[1]) : dot,
                   types));
  line(stages == 0 ? "}" : fmt::format("}} {{tile.num_stages = {} : i32}}", stages));

  Array result = c.array;
  for (int trip = 0; trip < trips; ++trip) {
    Array tiles[2];
    for (int i = 0; i < 2; ++i) {
      const Operand &operand = operands[i];
      tiles[i] = operand.index.array;
      for (int32_t &element : tiles[i].data) {
        bool inside = operand.limit < 0 || element < operand.limit - trip * sizeOf(operand.inMemory);
        element = inside ? input[operand.word + element + trip * operand.advance] : 0;
      }
      if (operand.transposed)
        tiles[i] = permuted(tiles[i], {1, 0});
    }
    result = dotOf(tiles[0], tiles[1], result);
  }
  add(movingPointers ? name + "#0" : name, std::move(result));
}

void RandomProgram::step(bool nested) {
  switch (pick(0, nested ? 17 : 22)) {
  case 0: return load(randomShape());
  case 1:
  case 2: return binary();
  case 3: return transpose();
  case 4: return reshape();
  case 5: return broadcast();
  case 6: return reduce();
  case 7: return argmax();
  case 8: return scan();
  case 9: return select();
  case 10: return splatScalar();
  case 11: return dot();
  case 12: return pairUp();
  case 13: return splitPairs();
  case 14: return gather();
  case 15: return exchange();
  case 16: return network();
  case 17: return loop();
  case 18: return branch();
  case 19: return atomic();
  default: return gemm();
  }
}

RandomProgram::RandomProgram(uint32_t seed) : random(seed) {
  numWarps = 1 << pick(0, 3);
  aligned = chance(0.5);
  for (int i = 0; i < 1 << 14; ++i)
    input.push_back(pick(-100, 100));
  load(randomShape());
  load({int64_t(1) << pick(0, 6), int64_t(1) << pick(0, 6)});
  for (int steps = pick(4, 14); steps > 0; --steps)
    step(/*nested=*/false);
  std::vector<Value> results{values.back()};
  for (int i = 0; i < 4; ++i)
    results.push_back(values[pick(0, static_cast<int>(values.size()) - 1)]);
  for (const Value &value : results)
    store(value);
}

} // namespace ditron::transforms::test
