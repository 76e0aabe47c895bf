//===- PlanTable.cpp - Reading, writing and searching tables of plans -----------------------------------------------------===//
#include "ditron/ops/plans/PlanTable.h"

#include "ditron/ops/plans/PlanWords.h"
#include "ditron/runtime/World.h"
#include "ditron/support/InputFile.h"
#include "ditron/support/Knobs.h"
#include "ditron/support/Suggest.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <tuple>

namespace ditron::ops {

namespace {

constexpr std::string_view blanks = " \t\r";
/// "m~8192" is within an eighth of it.
constexpr int64_t nearShare = 8;
constexpr uint64_t mostTableBytes = uint64_t(16) << 20;

/// A word and where it stands in its line.
struct Word {
  std::string_view text;
  size_t column; ///< From 0.
};

std::vector<Word> wordsOf(std::string_view line) {
  std::vector<Word> words;
  for (size_t at = 0; (at = line.find_first_not_of(blanks, at)) != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(blanks, at), line.size());
    words.push_back({line.substr(at, end - at), at});
    at = end;
  }
  return words;
}

std::string withoutBlanks(std::string name) {
  std::ranges::replace(name, ' ', '_');
  return name;
}

std::string ranksText(const PlanRow &row) {
  return row.ranks ? fmt::format("{}{}", row.isMostRanks ? "<=" : "", *row.ranks) : "*";
}
std::string sizesText(const PlanRow &row) {
  std::vector<std::string> texts;
  for (const PlanSize &size : row.sizes)
    texts.push_back(size.text());
  return fmt::format("{}", fmt::join(texts, " "));
}
std::string_view dtypeText(const PlanRow &row) { return row.dtype ? ditron::toString(*row.dtype) : "*"; }
std::string_view gpuText(const PlanRow &row) { return row.gpu.empty() ? std::string_view("*") : row.gpu; }

/// One line of a table.
class RowReader {
public:
  RowReader(std::string_view file, std::string_view line, uint32_t number) : file(file), line(line), number(number) {}

  /// None for a line without a row.
  Expected<std::optional<PlanRow>> read() {
    const size_t mark = std::min(line.find('#'), line.size());
    const std::string_view code = line.substr(0, mark);
    const std::vector<Word> all = wordsOf(code);
    if (all.empty())
      return std::optional<PlanRow>();
    PlanRow row;
    row.line = number;
    if (mark < line.size())
      row.comment = trimmed(line.substr(mark + 1));
    const auto colon = std::ranges::find(all, ":", &Word::text);
    if (colon == all.end())
      return wrong(all.back().column + all.back().text.size(),
                   "a ':' and a plan are missing: a row is 'OPERATOR GPU RANKS DTYPE SIZES : PLAN'");
    const std::vector<Word> key(all.begin(), colon), plan(colon + 1, all.end());
    if (key.size() < 4)
      return wrong(
          colon->column,
          fmt::format("{} words before the ':'; at least 4 are accepted: OPERATOR GPU RANKS DTYPE", key.size()));
    DITRON_RETURN_IF_ERROR(readKey(key, row));
    for (size_t i = 4; i < key.size(); ++i)
      DITRON_RETURN_IF_ERROR(readSize(key[i], row));
    if (plan.empty())
      return wrong(colon->column + 1, "the plan is missing");
    for (const Word &word : plan)
      row.plan += (row.plan.empty() ? "" : " ") + std::string(word.text);
    // A row for any number of ranks may be one that some numbers of them cannot have.
    if (Status status = op->verify(row.op, row.plan, row.ranks && !row.isMostRanks ? *row.ranks : 1, std::nullopt);
        !status.isOk())
      return wrong(plan.front().column, std::string(status.message()));
    return std::optional(std::move(row));
  }

private:
  static std::string trimmed(std::string_view text) {
    const size_t begin = text.find_first_not_of(blanks);
    return begin == std::string_view::npos ? ""
                                           : std::string(text.substr(begin, text.find_last_not_of(blanks) - begin + 1));
  }

  Status wrong(size_t column, const std::string &what) const {
    return invalidArgument(
        fmt::format("{}:{}:{}: {}\n{}\n{:>{}}", file, number, column + 1, what, line, "^", column + 1));
  }

  Status readKey(const std::vector<Word> &key, PlanRow &row) {
    row.op = key[0].text;
    std::vector<std::string> names;
    for (const PlannedOperator &each : plannedOperators()) {
      names.push_back(each.name);
      if (each.name == row.op)
        op = &each;
    }
    if (!op)
      return wrong(key[0].column, fmt::format("there is no operator '{}'{}; there are {}", row.op,
                                              didYouMean(row.op, names), fmt::join(names, ", ")));
    if (key[1].text != "*")
      row.gpu = key[1].text;
    std::string_view ranks = key[2].text;
    row.isMostRanks = ranks.starts_with("<=");
    if (row.isMostRanks)
      ranks.remove_prefix(2);
    if (row.isMostRanks || ranks != "*") {
      row.ranks = parseWhole<uint32_t>(ranks);
      if (row.ranks.value_or(0) == 0)
        return wrong(key[2].column, fmt::format("'{}' ranks; a number from 1, <=N or * is accepted", key[2].text));
    }
    if (key[3].text != "*") {
      Expected<DataType> type = parseDataTypeOrError(key[3].text);
      if (!type.isOk())
        return wrong(key[3].column, std::string(type.status().message()) + "; or * for all");
      row.dtype = *type;
    }
    return Status::ok();
  }

  Status readSize(const Word &word, PlanRow &row) {
    const size_t mark = word.text.find_first_of("<>=~");
    const std::string name(word.text.substr(0, mark));
    if (std::ranges::find(op->sizes, name) == op->sizes.end())
      return wrong(word.column, fmt::format("'{}': {} has no size '{}'{}; it has {}", word.text, row.op, name,
                                            didYouMean(name, op->sizes), fmt::join(op->sizes, ", ")));
    if (std::ranges::any_of(row.sizes, [&](const PlanSize &size) { return size.name == name; }))
      return wrong(word.column, fmt::format("the size {} is given twice", name));
    std::string_view rest = mark == std::string_view::npos ? "" : word.text.substr(mark);
    PlanSize size{.name = name, .isNear = rest.starts_with("~")};
    std::optional<int64_t> least = 1, value;
    if (size.isNear) {
      value = parseWhole<int64_t>(rest.substr(1));
    } else if (rest.starts_with("<=")) {
      value = parseWhole<int64_t>(rest.substr(2));
    } else if (const size_t dots = rest.find(".."); rest.starts_with("=") && dots != std::string_view::npos) {
      least = parseWhole<int64_t>(rest.substr(1, dots - 1));
      value = parseWhole<int64_t>(rest.substr(dots + 2));
    }
    if (!value || !least || *least < 1 || *value < *least)
      return wrong(word.column,
                   fmt::format("'{}' is no size; {}<=N, {}=LEAST..MOST and {}~N with numbers from 1 are accepted",
                               word.text, name, name, name));
    size.least = *least;
    size.value = *value;
    row.sizes.push_back(std::move(size));
    return Status::ok();
  }

  std::string_view file, line;
  uint32_t number;
  const PlannedOperator *op = nullptr;
};

/// What goes before what, for one key: smaller first.
auto precedence(const PlanRow &row) {
  const uint32_t anyRanks = std::numeric_limits<uint32_t>::max();
  const uint32_t ranks = !row.ranks ? anyRanks : row.isMostRanks ? *row.ranks : 0;
  return std::tuple(-static_cast<int64_t>(row.gpu.size()), ranks, row.dtype ? 0 : 1,
                    -static_cast<int64_t>(row.sizes.size()));
}

double distance(const PlanRow &row, const PlanSizes &sizes) {
  double sum = 0;
  for (const PlanSize &own : row.sizes)
    for (const auto &[name, size] : sizes)
      if (name == own.name)
        sum += std::abs(std::log2(static_cast<double>(std::max<int64_t>(size, 1)) / static_cast<double>(own.value)));
  return sum;
}

bool fits(const PlanRow &row, const PlanSizes &sizes) {
  return std::ranges::all_of(row.sizes, [&](const PlanSize &own) {
    return std::ranges::all_of(sizes,
                               [&](const auto &size) { return size.first != own.name || own.fits(size.second); });
  });
}

} // namespace

bool PlanSize::fits(int64_t size) const {
  return isNear ? std::abs(size - value) <= value / nearShare : size >= least && size <= value;
}

std::string PlanSize::text() const {
  return least > 1 ? fmt::format("{}={}..{}", name, least, value)
                   : fmt::format("{}{}{}", name, isNear ? "~" : "<=", value);
}

bool PlanRow::hasKeyOf(const PlanRow &other) const {
  return op == other.op && gpu == other.gpu && ranks == other.ranks && isMostRanks == other.isMostRanks &&
         dtype == other.dtype && sizes == other.sizes;
}

std::string PlanRow::text() const {
  return fmt::format("{} {} {} {} {}{}: {}", op, gpuText(*this), ranksText(*this), dtypeText(*this), sizesText(*this),
                     sizes.empty() ? "" : " ", plan);
}

Expected<PlanTable> PlanTable::parse(std::string_view text, std::string_view file) {
  PlanTable table;
  table.file = file;
  uint32_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    DITRON_ASSIGN_OR_RETURN(std::optional<PlanRow> row,
                            RowReader(file, text.substr(begin, end - begin), ++number).read());
    if (row)
      table.rows.push_back(*std::move(row));
    begin = end + 1;
  }
  return table;
}

Expected<PlanTable> PlanTable::read(const std::string &path) {
  DITRON_ASSIGN_OR_RETURN(const std::string text, readWholeFile(path, "table of plans", mostTableBytes));
  return parse(text, path);
}

std::string PlanTable::text() const {
  size_t op = 0, gpu = 0, ranks = 0, dtype = 0, sizes = 0, plan = 0;
  for (const PlanRow &row : rows) {
    op = std::max(op, row.op.size());
    gpu = std::max(gpu, gpuText(row).size());
    ranks = std::max(ranks, ranksText(row).size());
    dtype = std::max(dtype, dtypeText(row).size());
    sizes = std::max(sizes, sizesText(row).size());
    plan = std::max(plan, row.plan.size());
  }
  std::string text;
  for (const PlanRow &row : rows) {
    text += fmt::format("{:<{}}  {:<{}}  {:<{}}  {:<{}}  {:<{}} : ", row.op, op, gpuText(row), gpu, ranksText(row),
                        ranks, dtypeText(row), dtype, sizesText(row), sizes);
    text += row.comment.empty() ? row.plan : fmt::format("{:<{}}  # {}", row.plan, plan, row.comment);
    text += '\n';
  }
  return text;
}

Expected<PlanTable> libraryPlans() {
  PlanTable all;
  all.file = "the library's plans";
  for (std::string_view name : {"collectives", "expert_parallel", "gemm", "tensor_parallel"}) {
    const EmbeddedPlans embedded = embeddedPlans(name);
    DITRON_ASSIGN_OR_RETURN(PlanTable table, PlanTable::parse(embedded.text, embedded.path));
    std::ranges::move(table.rows, std::back_inserter(all.rows));
  }
  return all;
}

Expected<PlanChoice> PlanChoice::create(PlanKey key) {
  std::vector<PlanTable> tables;
  DITRON_ASSIGN_OR_RETURN(const Knobs knobs, Knobs::fromEnvironment());
  if (!knobs.plans.empty()) {
    Expected<PlanTable> own = PlanTable::read(knobs.plans);
    if (!own.isOk())
      return own.status().withContext("DITRON_PLANS");
    tables.push_back(std::move(own).value());
  }
  DITRON_ASSIGN_OR_RETURN(PlanTable library, libraryPlans());
  tables.push_back(std::move(library));
  return of(key, tables);
}

Expected<PlanChoice> PlanChoice::create(runtime::World &world, std::string_view op, DataType dtype,
                                        std::string_view gpu) {
  return create({.op = std::string(op),
                 .gpu = gpu.empty() ? world.rank(world.localRanks().front()).attributes().name : std::string(gpu),
                 .numRanks = world.numRanks(),
                 .dtype = dtype,
                 .numNodes = world.numNodes()});
}

Expected<PlanChoice> PlanChoice::ofOneGpu(runtime::World &world, std::string_view op, DataType dtype,
                                          std::string_view gpu) {
  return create({.op = std::string(op),
                 .gpu = gpu.empty() ? world.rank(world.localRanks().front()).attributes().name : std::string(gpu),
                 .numRanks = 1,
                 .dtype = dtype});
}

bool PlanChoice::Entry::isAsSpecificAs(const Entry &other) const {
  return table == other.table && precedence(row) == precedence(other.row);
}

PlanChoice PlanChoice::of(const PlanKey &key, const std::vector<PlanTable> &tables) {
  const auto op = std::ranges::find(plannedOperators(), key.op, &PlannedOperator::name);
  const std::string gpu = withoutBlanks(key.gpu);
  auto chosen = std::make_shared<std::vector<Entry>>();
  for (size_t table = 0; table < tables.size(); ++table)
    for (const PlanRow &row : tables[table].rows)
      if (row.op == key.op && gpu.find(row.gpu) != std::string::npos &&
          (!row.ranks || *row.ranks == key.numRanks || (row.isMostRanks && key.numRanks < *row.ranks)) &&
          (!row.dtype || *row.dtype == key.dtype) && op->verify(row.op, row.plan, key.numRanks, key.numNodes).isOk())
        chosen->push_back({row, table, chosen->size()});
  std::ranges::sort(*chosen, {},
                    [](const Entry &entry) { return std::tuple(entry.table, precedence(entry.row), entry.place); });
  PlanChoice choice;
  choice.entries = std::move(chosen);
  return choice;
}

const PlanRow *PlanChoice::find(const PlanSizes &sizes, bool givenOnly) const {
  const auto isGiven = [&](const PlanSize &own) {
    return std::ranges::any_of(sizes, [&](const auto &size) { return size.first == own.name; });
  };
  if (!entries)
    return nullptr;
  const Entry *best = nullptr;
  double leastDistance = 0;
  for (const Entry &entry : *entries) {
    if (best && !entry.isAsSpecificAs(*best))
      break;
    if (!fits(entry.row, sizes) || (givenOnly && !std::ranges::all_of(entry.row.sizes, isGiven)))
      continue;
    const double own = distance(entry.row, sizes);
    if (!best || own < leastDistance) {
      best = &entry;
      leastDistance = own;
    }
  }
  return best ? &best->row : nullptr;
}

std::vector<int64_t> PlanChoice::limitsOf(std::string_view name, const PlanSizes &others) const {
  std::set<int64_t> limits;
  struct Point {
    int64_t value;
    double distance; ///< Of the other sizes.
  };
  std::vector<Point> points;
  std::vector<double> constants; // distances of rows that do not have the size
  for (const Entry &entry : entries ? *entries : std::vector<Entry>()) {
    if (!fits(entry.row, others))
      continue;
    const double otherDistance = distance(entry.row, others);
    const auto size = std::ranges::find(entry.row.sizes, name, &PlanSize::name);
    if (size == entry.row.sizes.end()) {
      constants.push_back(otherDistance);
      continue;
    }
    const int64_t reach = size->isNear ? size->value / nearShare : 0;
    limits.insert(size->value + reach);
    limits.insert((size->isNear ? size->value - reach : size->least) - 1);
    points.push_back({size->value, otherDistance});
  }
  // Where the distances of two rows are equal, the nearer one changes.
  const auto addEqual = [&](double logarithm) {
    if (logarithm < 0 || logarithm > 62)
      return;
    const auto size = static_cast<int64_t>(std::floor(std::exp2(logarithm)));
    for (const int64_t each : {size - 1, size, size + 1}) // whatever way it is rounded
      limits.insert(each);
  };
  for (const Point &low : points) {
    const double lowLogarithm = std::log2(static_cast<double>(low.value));
    for (const Point &high : points)
      if (low.value < high.value)
        addEqual((lowLogarithm + std::log2(static_cast<double>(high.value)) + high.distance - low.distance) / 2);
    for (const double constant : constants)
      for (const double sign : {-1.0, 1.0})
        addEqual(lowLogarithm + sign * (constant - low.distance));
  }
  limits.erase(limits.begin(), limits.lower_bound(1));
  return {limits.begin(), limits.end()};
}

} // namespace ditron::ops
