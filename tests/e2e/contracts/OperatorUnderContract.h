//===- OperatorUnderContract.h - What the contract tests know of an operator -------------------------------*- C++ -*-===//
//
// Every distributed operator keeps the same contracts (DESIGN section 5): calls of all sizes follow each other, are captured and
// replayed, run beside other operators, and give the reference's bits whatever the interleaving. The tests of the contracts
// (contracts_test.cpp, shapes_test.cpp, misuse_test.cpp) go over the table operatorsUnderContract(): a new
// operator, or a new form of one, joins them all by one entry.
//
//   entry.make(world, choice) ─▶ OperatorUnderContract: operands of given sizes, prepare, enqueue, what must come out
//   ContractCall              ─▶ memory of one call on all ranks, with sets of data, guards around it, and what it must hold after
//
// Data are small integers, every sum of which is exact, so that the reference has the operator's bits whatever order it adds in.
// One set in four is of fractions, whose first result, where the reference rounds otherwise, is compared with a tolerance and must then
// come back bit by bit; and of integers from the whole range of types that have no fractions.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TESTS_E2E_OPERATORUNDERCONTRACT_H
#define DITRON_TESTS_E2E_OPERATORUNDERCONTRACT_H

#include "KernelTest.h"

#include <functional>
#include <random>

namespace ditron::e2e {

/// Rows, columns and depth of a product, as its operator means them; `m` alone, elements, of a collective.
struct CallSizes {
  int64_t m = 1, n = 1, k = 1;

  bool operator==(const CallSizes &) const = default;
  std::string text() const;
};

/// What a call reads or writes on one rank.
struct ContractOperand {
  std::string name;
  DataType type = DataType::BF16;
  int64_t elements = 0;
  bool isResult = false;
  /// In place: the memory is that of the operand of this number, from an element on.
  std::optional<std::pair<size_t, int64_t>> inside = std::nullopt;
  /// Of results: |actual - expected| <= tolerance * (|expected| + root mean square of all). 0: bit by bit.
  double tolerance = 0;
  /// What may differ besides, absolutely: of results that may all be zero but for roundings.
  double absoluteTolerance = 0;
};

/// Values of each operand of one rank.
using RankValues = std::vector<std::vector<double>>;

class OperatorUnderContract {
public:
  virtual ~OperatorUnderContract() = default;
  /// In the order in which enqueue takes their addresses.
  virtual std::vector<ContractOperand> operands(const CallSizes &sizes, uint32_t rank) const = 0;
  virtual Status prepare(Rank &rank, const CallSizes &sizes) = 0;
  virtual Status enqueue(Rank &rank, runtime::Stream &stream, const std::vector<Pointer> &operands,
                         const CallSizes &sizes) = 0;
  /// Sets the results among values[rank][operand] to what they must be. `integers`: all values are small integers.
  virtual void compute(const CallSizes &sizes, std::vector<RankValues> &values) const = 0;
  /// What may differ from the reference in the last place when data are fractions: a tolerance as of ContractOperand, 0 if nothing may.
  virtual double fractionTolerance() const = 0;
  /// An AllReduce of some kind: results have the same bits everywhere.
  virtual bool givesAllRanksTheSame() const { return false; }
  /// For messages: form, plan, tile.
  virtual std::string describe() const = 0;
};

/// What an operator is made for.
struct ContractChoice {
  DataType dtype = DataType::BF16;
  CallSizes most = {}; ///< No call is larger in any direction.
  /// Draws what else is free: plans, tiles, orders, in place or not. 0: the same plain choice each time.
  uint64_t draw = 0;
  uint32_t concurrentCalls = 2; ///< Operators at once on streams that nothing orders.
};

struct ContractEntry {
  std::string name; ///< Part of the tests' names.
  std::vector<DataType> dtypes;
  CallSizes most = {
      .m = 4097, .n = 4097, .k = 4097}; ///< What it takes at most in any direction; 1 where a size has no meaning.
  /// Three kinds of call of one operator: few, some and many rows or elements.
  std::array<CallSizes, 3> typical;
  bool anyAlignment = true;  ///< Addresses need be multiples of an element only; else of 16 bytes.
  int64_t rowBytes = 1;      ///< Rows of `n` elements are multiples of so many bytes.
  bool fixedColumns = false; ///< `n` is the operator's, not the call's.
  bool fixedDepth = false;   ///< `k` is.
  /// Ranks may differ in sizes, so that calls in another order on one of them are calls, too, with other operands.
  bool sizesMayDiffer = false;
  bool isBetweenNodes = false; ///< Runs on several nodes only; the others on one.
  std::function<Expected<std::unique_ptr<OperatorUnderContract>>(World &, const ContractChoice &)> make;
};
void PrintTo(const ContractEntry &entry, std::ostream *stream);

const std::vector<ContractEntry> &operatorsUnderContract();
/// The entry and those that run in a world with it: `distance` entries behind it, in a circle.
const ContractEntry &companionOf(const ContractEntry &entry, size_t distance);
/// Makes nodes of so many ranks each where the entry needs them. Groups of any ranks are on several nodes where each has a node of its own.
void makeNodes(const ContractEntry &entry, WorldOptions &options, uint32_t ranksPerNode = 1);

/// The memory of one call on all ranks of a world.
class ContractCall {
public:
  /// `offset`: of all addresses, in elements, behind a multiple of 16 bytes.
  static Expected<ContractCall> create(World &world, const OperatorUnderContract &op, const CallSizes &sizes,
                                       int64_t offset = 0);

  const CallSizes &sizes() const { return sizesValue; }
  /// Data set `set` everywhere, and something else where results will be. Nothing may be running that uses the memory.
  Status upload(uint64_t set);
  Status enqueue(OperatorUnderContract &op, Rank &rank, runtime::Stream &stream) const {
    return op.enqueue(rank, stream, addresses(rank.id()), sizesValue);
  }
  /// Results are right, operands as they were, and nothing around either was touched.
  void check(const std::string &what);

  std::vector<Pointer> addresses(uint32_t rank) const;
  Buffer &buffer(uint32_t rank, size_t operand) { return memory[rank][operand]; }
  /// What an address of an operand is that has memory of its own.
  bool ownsMemory(uint32_t rank, size_t operand) const { return !operands[rank][operand].inside; }

private:
  using Images = std::vector<std::vector<std::vector<std::byte>>>; ///< [rank][operand]: its whole buffer
  struct Set {
    Images before, after;
    bool isFrozen = true; ///< `after` is bit by bit; else the next result becomes it.
    std::vector<RankValues> expected;
  };
  const Set &set(uint64_t number);
  void freeze(Set &set, const Images &actual, const std::string &what) const;
  double toleranceOf(const ContractOperand &operand, uint64_t number) const;

  World *world = nullptr;
  const OperatorUnderContract *op = nullptr;
  CallSizes sizesValue;
  int64_t offset = 0;
  std::vector<std::vector<ContractOperand>> operands;
  std::vector<std::vector<Buffer>> memory;
  std::map<uint64_t, Set> sets;
  uint64_t uploaded = 0;
};

} // namespace ditron::e2e
#endif // DITRON_TESTS_E2E_OPERATORUNDERCONTRACT_H
