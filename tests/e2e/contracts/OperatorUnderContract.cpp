//===- OperatorUnderContract.cpp - Memory and data of a call in the contract tests --------------------------------===//
#include "contracts/OperatorUnderContract.h"

#include <fmt/format.h>

namespace ditron::e2e {

namespace {

/// Elements behind an operand that nobody may write; what they, and results that nobody has written yet, hold.
constexpr int64_t guardElements = 24;
constexpr double untouched = 64;

bool isFractional(uint64_t set) { return set % 4 == 3; }

std::vector<double> draw(DataType type, int64_t count, bool fractions, uint64_t seed) {
  if (fractions && isFloat(type))
    return convertAll<double>(randomFloats(count, seed, -1, 1, type));
  const bool isUnsigned = isInteger(type) && !isSignedInteger(type);
  if (!fractions)
    return convertAll<double>(randomIntegers(count, seed, isUnsigned ? 0 : -2, 2));
  // Of all that the type has; of 64 bits what doubles add exactly.
  const int64_t most = int64_t{1} << (sizeOf(type) == 8 ? 49 : 8 * sizeOf(type) - (isUnsigned ? 0 : 1));
  return convertAll<double>(randomIntegers(count, seed, isUnsigned ? 0 : -most, most - 1));
}

void store(DataType type, std::vector<std::byte> &image, int64_t first, const std::vector<double> &values) {
  for (size_t i = 0; i < values.size(); ++i)
    storeElement(type, image.data() + (first + static_cast<int64_t>(i)) * static_cast<int64_t>(sizeOf(type)),
                 values[i]);
}

std::vector<double> loadAll(DataType type, const std::vector<std::byte> &image, int64_t first, int64_t count) {
  std::vector<double> values(count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = loadElement(type, image.data() + (first + i) * static_cast<int64_t>(sizeOf(type)));
  return values;
}

} // namespace

std::string CallSizes::text() const { return fmt::format("{} x {} x {}", m, n, k); }

void PrintTo(const ContractEntry &entry, std::ostream *stream) { *stream << entry.name; }

Expected<ContractCall> ContractCall::create(World &world, const OperatorUnderContract &op, const CallSizes &sizes,
                                            int64_t offset) {
  ContractCall call;
  call.world = &world;
  call.op = &op;
  call.sizesValue = sizes;
  call.offset = offset;
  for (uint32_t r = 0; r < world.numRanks(); ++r) {
    call.operands.push_back(op.operands(sizes, r));
    call.memory.emplace_back();
    for (const ContractOperand &operand : call.operands.back()) {
      Buffer buffer;
      if (!operand.inside) {
        DITRON_ASSIGN_OR_RETURN(
            buffer, world.rank(r).allocate(operand.type, offset + operand.elements + guardElements, operand.name));
      }
      call.memory.back().push_back(std::move(buffer));
    }
  }
  return call;
}

std::vector<Pointer> ContractCall::addresses(uint32_t rank) const {
  std::vector<Pointer> addresses;
  for (size_t i = 0; i < operands[rank].size(); ++i) {
    const auto &inside = operands[rank][i].inside;
    addresses.push_back(memory[rank][inside ? inside->first : i].pointer() + (offset + (inside ? inside->second : 0)));
  }
  return addresses;
}

double ContractCall::toleranceOf(const ContractOperand &operand, uint64_t number) const {
  return isFractional(number) ? std::max(operand.tolerance, op->fractionTolerance()) : operand.tolerance;
}

const ContractCall::Set &ContractCall::set(uint64_t number) {
  const auto [entry, isNew] = sets.try_emplace(number);
  Set &set = entry->second;
  if (!isNew)
    return set;
  const uint32_t ranks = world->numRanks();
  std::vector<RankValues> values(ranks);
  for (uint32_t r = 0; r < ranks; ++r)
    for (size_t i = 0; i < operands[r].size(); ++i)
      values[r].push_back(operands[r][i].isResult
                              ? std::vector<double>()
                              : draw(operands[r][i].type, operands[r][i].elements, isFractional(number),
                                     1000003 * number + 101 * r + i + static_cast<uint64_t>(sizesValue.m)));
  set.expected = values;
  op->compute(sizesValue, set.expected);
  set.before.resize(ranks);
  for (uint32_t r = 0; r < ranks; ++r) {
    for (size_t i = 0; i < operands[r].size(); ++i) {
      const Buffer &buffer = memory[r][i];
      set.before[r].emplace_back(buffer.isValid() ? buffer.bytes() : 0);
      if (buffer.isValid())
        store(buffer.type(), set.before[r][i], 0, std::vector<double>(buffer.count(), untouched));
    }
    const auto place = [&](Images &images, size_t i, const std::vector<double> &of) {
      const auto &inside = operands[r][i].inside;
      store(operands[r][i].type, images[r][inside ? inside->first : i], offset + (inside ? inside->second : 0), of);
    };
    for (size_t i = 0; i < operands[r].size(); ++i)
      if (!operands[r][i].isResult)
        place(set.before, i, values[r][i]);
    set.after.push_back(set.before[r]);
    for (size_t i = 0; i < operands[r].size(); ++i)
      if (operands[r][i].isResult) {
        place(set.after, i, set.expected[r][i]);
        set.isFrozen &= toleranceOf(operands[r][i], number) == 0;
      }
  }
  return set;
}

Status ContractCall::upload(uint64_t number) {
  const Set &given = set(number);
  uploaded = number;
  for (uint32_t r = 0; r < world->numRanks(); ++r)
    for (size_t i = 0; i < memory[r].size(); ++i)
      if (memory[r][i].isValid())
        DITRON_RETURN_IF_ERROR(memory[r][i].upload(given.before[r][i].data(), given.before[r][i].size()));
  return Status::ok();
}

/// The first results of data that sums may round differently: close to the reference, and from now on what must come out.
void ContractCall::freeze(Set &set, const Images &actual, const std::string &what) const {
  for (uint32_t r = 0; r < world->numRanks(); ++r)
    for (size_t i = 0; i < operands[r].size(); ++i) {
      const ContractOperand &operand = operands[r][i];
      const double tolerance = toleranceOf(operand, uploaded);
      if (!operand.isResult || tolerance == 0)
        continue;
      const size_t owner = operand.inside ? operand.inside->first : i;
      const int64_t first = offset + (operand.inside ? operand.inside->second : 0);
      const std::vector<double> values = loadAll(operand.type, actual[r][owner], first, operand.elements);
      const std::vector<double> &expected = set.expected[r][i];
      double squares = 0;
      for (double value : expected)
        squares += value * value;
      const double size = std::sqrt(squares / std::max<double>(1, static_cast<double>(expected.size())));
      expectClose(values, expected, tolerance, tolerance * size + operand.absoluteTolerance + 1e-30,
                  fmt::format("{}, rank {}, {}", what, r, operand.name));
      if (op->givesAllRanksTheSame()) {
        const auto &[firstOwner, firstPlace] =
            operands[0][i].inside.value_or(std::pair<size_t, int64_t>(i, int64_t{0}));
        EXPECT_TRUE(values == loadAll(operand.type, actual[0][firstOwner], offset + firstPlace, operand.elements))
            << what << ", " << operand.name << ": ranks 0 and " << r << " differ";
      }
      store(operand.type, set.after[r][owner], first, values);
    }
  set.isFrozen = true;
}

void ContractCall::check(const std::string &what) {
  Set &wanted = sets.at(uploaded);
  Images actual(world->numRanks());
  for (uint32_t r = 0; r < world->numRanks(); ++r)
    for (Buffer &buffer : memory[r]) {
      actual[r].emplace_back(buffer.isValid() ? buffer.bytes() : 0);
      if (buffer.isValid())
        EXPECT_OK(buffer.download(actual[r].back().data(), buffer.bytes()));
    }
  const std::string where = fmt::format("{}, {}, {}, data {}", what, op->describe(), sizesValue.text(), uploaded);
  if (!wanted.isFrozen)
    freeze(wanted, actual, where);
  for (uint32_t r = 0; r < world->numRanks(); ++r)
    for (size_t i = 0; i < memory[r].size(); ++i)
      if (memory[r][i].isValid() && actual[r][i] != wanted.after[r][i])
        expectSame(loadAll(memory[r][i].type(), actual[r][i], 0, static_cast<int64_t>(memory[r][i].count())),
                   loadAll(memory[r][i].type(), wanted.after[r][i], 0, static_cast<int64_t>(memory[r][i].count())),
                   fmt::format("{}, rank {}, memory of {} from element {} on", where, r, operands[r][i].name, -offset));
}

} // namespace ditron::e2e
