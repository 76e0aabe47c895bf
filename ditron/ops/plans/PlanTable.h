//===- PlanTable.h - Tables that say how an operator is carried out -------------------------------------------*- C++ -*-===//
//
// A table is text, a row in a line, for all operators alike (docs/tuner.md):
//
//   # operator   gpu     ranks  dtype  sizes                     : plan
//   all_reduce   *       4      *      bytes<=131072             : packets 64 16
//   gemm         H200    1      bf16   m~8192 n~1376 k~4096      : descriptors 128x128x64 warps 8 stages 5 group 8  # 152.8 us
//   gemm_ar      *       <=4    *      m<=32                     : one_shot
//
//   gpu      a part of the device's name, with _ for blanks, or * for all
//   ranks    a number, <=N for up to so many, or * for all
//   dtype    of the operands, or * for all
//   sizes    m<=32: up to 32; m=33..64: from 33 to 64; m~8192: within an eighth of 8192; those that do not stand there are anything
//   plan     the operator's words, as `ditron bench OPERATOR --plan` takes them
//
// Of the rows that fit, those of the user's table go before the library's; then one for a named GPU before one for all, a number of
// ranks before a range before all, a type before all, one that names more sizes before one that names fewer, the nearest sizes
// before others, and the first before the next.
// "Nearest": the sum of |log2(size / the row's)| is least, where the row's is 32, 64 and 8192 above.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_PLANS_PLANTABLE_H
#define DITRON_OPS_PLANS_PLANTABLE_H

#include "ditron/support/DataType.h"
#include "ditron/support/Status.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ditron::runtime {
class World;
}

namespace ditron::ops {

/// A size of a row: "m<=32", "m=33..64", "m~8192".
struct PlanSize {
  std::string name;
  int64_t value = 0;
  bool isNear = false; ///< Else `value` is the most.
  int64_t least = 1;   ///< Where it is the most.

  bool fits(int64_t size) const;
  std::string text() const;
  bool operator==(const PlanSize &) const = default;
};

struct PlanRow {
  std::string op;                ///< Of plannedOperators().
  std::string gpu;               ///< Empty: all.
  std::optional<uint32_t> ranks; ///< None: all.
  bool isMostRanks = false;      ///< `ranks` or fewer.
  std::optional<DataType> dtype; ///< None: all.
  std::vector<PlanSize> sizes;
  std::string plan;
  std::string comment; ///< Behind the #.
  uint32_t line = 0;   ///< Of the file, from 1.

  /// Whether both are for the same operator, machine, type and sizes.
  bool hasKeyOf(const PlanRow &other) const;
  /// As it stands in a table, without the comment.
  std::string text() const;
};

/// What a table may say of an operator.
struct PlannedOperator {
  std::string name;
  std::vector<std::string> sizes; ///< That its rows may name.
  /// Refuses a plan that the operator does not have on so many ranks and nodes; none: nodes as the plan is for.
  Status (*verify)(std::string_view op, std::string_view plan, uint32_t numRanks, std::optional<uint32_t> numNodes);
  bool isSearched = true; ///< `ditron tune` looks for its plans.
};
const std::vector<PlannedOperator> &plannedOperators();

struct PlanTable {
  std::string file; ///< For messages.
  std::vector<PlanRow> rows;

  /// Errors are "FILE:LINE:COLUMN: message", the line, and a caret.
  static Expected<PlanTable> parse(std::string_view text, std::string_view file);
  static Expected<PlanTable> read(const std::string &path);
  /// In columns. parse(text()) has equal rows.
  std::string text() const;
};

struct EmbeddedPlans {
  std::string_view path, text; ///< Empty when there is no such table.
};
/// The file NAME.plans; defined by generated code.
EmbeddedPlans embeddedPlans(std::string_view name);
/// All tables of this library as one.
Expected<PlanTable> libraryPlans();

/// Sizes of a call. One that is not given fits every row.
using PlanSizes = std::vector<std::pair<std::string_view, int64_t>>;

struct PlanKey {
  std::string op;
  std::string gpu; ///< The device's name.
  uint32_t numRanks = 1;
  DataType dtype = DataType::BF16;
  uint32_t numNodes = 1;
};

/// The rows of the tables for one operator on one machine. Copies share them.
class PlanChoice {
public:
  PlanChoice() = default;
  /// From the user's table (DITRON_PLANS), if there is one, and the library's.
  static Expected<PlanChoice> create(PlanKey key);
  /// For the GPU of the world's first rank in this process, unless another name is given.
  static Expected<PlanChoice> create(runtime::World &world, std::string_view op, DataType dtype,
                                     std::string_view gpu = {});
  /// Of an operator of one GPU, whatever the number of ranks.
  static Expected<PlanChoice> ofOneGpu(runtime::World &world, std::string_view op, DataType dtype,
                                       std::string_view gpu = {});
  /// From these tables; the first go before the others.
  static PlanChoice of(const PlanKey &key, const std::vector<PlanTable> &tables);

  /// Null where no row fits. `givenOnly`: rows that ask for a size which is not given do not.
  const PlanRow *find(const PlanSizes &sizes, bool givenOnly = false) const;
  /// Ascending: as the size `name` grows and the `others` stay, find() changes its mind only behind one of these.
  std::vector<int64_t> limitsOf(std::string_view name, const PlanSizes &others = {}) const;

private:
  struct Entry {
    PlanRow row;
    size_t table; ///< From 0, the user's first.
    size_t place; ///< Among all rows, as they are written.

    bool isAsSpecificAs(const Entry &other) const;
  };
  std::shared_ptr<const std::vector<Entry>> entries; ///< That may fit, those that go before others first.
};

} // namespace ditron::ops
#endif // DITRON_OPS_PLANS_PLANTABLE_H
