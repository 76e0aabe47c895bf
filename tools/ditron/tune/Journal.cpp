//===- Journal.cpp - What has been measured, a line each ------------------------------------------------------------------===//
#include "tune/Tuner.h"

#include "ditron/support/InputFile.h"
#include "ditron/support/OutputFile.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

namespace ditron::tool {

namespace {

constexpr std::string_view unit = " us", failed = "failed: ";
constexpr uint64_t mostBytes = uint64_t(64) << 20;

/// None where the comment is neither.
std::optional<TrialResult> readResult(std::string_view comment) {
  TrialResult result;
  if (comment.starts_with(failed)) {
    result.failure = comment.substr(failed.size());
    return result;
  }
  double microseconds = 0;
  const auto [end, error] = std::from_chars(comment.data(), comment.data() + comment.size(), microseconds);
  if (error != std::errc() || std::string_view(end, comment.data() + comment.size()) != unit || !(microseconds > 0))
    return std::nullopt;
  result.microseconds = microseconds;
  return result;
}

} // namespace

Expected<Journal> Journal::open(const std::string &path, const std::string &version, bool startOver) {
  Journal journal;
  const auto fail = [&](int error) {
    return invalidArgument(fmt::format("--out: cannot write '{}': {}", path, std::strerror(error)));
  };
  journal.descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (journal.descriptor < 0)
    return fail(errno);
  const Lock lock = journal.lock();
  const std::string head = fmt::format("# ditron tune, {}\n", version);
  DITRON_ASSIGN_OR_RETURN(std::string text, readWholeFile(path, "journal of ditron tune", mostBytes));
  text.resize(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
  if (startOver || !text.starts_with(head))
    text.clear();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    // A line that makes no sense, say one in the middle of which a disk was full, is measured again.
    if (auto table = ops::PlanTable::parse(std::string_view(text).substr(begin, end - begin), path);
        table.isOk() && table->rows.size() == 1)
      if (const std::optional<TrialResult> result = readResult(table->rows.front().comment))
        journal.results.insert_or_assign(table->rows.front().text(), *result);
    begin = end + 1;
  }
  // The file stays the same one: other runs may be adding to it.
  if (ftruncate(journal.descriptor, static_cast<off_t>(text.size())) != 0)
    return fail(errno);
  if (text.empty())
    if (const int error = writeAll(journal.descriptor, head); error != 0)
      return fail(error);
  return journal;
}

Journal::Lock::Lock(int descriptor) : descriptor(descriptor) {
  while (flock(descriptor, LOCK_EX) != 0 && errno == EINTR)
    ;
}
Journal::Lock::~Lock() { flock(descriptor, LOCK_UN); }

Journal::Journal(Journal &&other) noexcept
    : results(std::move(other.results)), descriptor(std::exchange(other.descriptor, -1)) {}

Journal::~Journal() {
  if (descriptor >= 0)
    close(descriptor);
}

const TrialResult *Journal::find(const ops::PlanRow &row) const {
  const auto found = results.find(row.text());
  return found == results.end() ? nullptr : &found->second;
}

std::vector<std::pair<std::string, TrialResult>> Journal::plansOf(const ops::PlanRow &row) const {
  ops::PlanRow key = row;
  key.plan.clear();
  const std::string head = key.text(); // of all of them: the plan stands last
  std::vector<std::pair<std::string, TrialResult>> plans;
  for (auto each = results.lower_bound(head); each != results.end() && each->first.starts_with(head); ++each)
    plans.emplace_back(each->first.substr(head.size()), each->second);
  return plans;
}

Status Journal::add(const ops::PlanRow &row, const TrialResult &result) {
  ops::PlanRow line = row;
  line.comment = result.microseconds ? fmt::format("{:.6g}{}", *result.microseconds, unit)
                                     : fmt::format("{}{}", failed, result.failure);
  const Lock alone = lock();
  // One write: an interruption leaves a line or a beginning of one.
  if (const int error = writeAll(descriptor, fmt::format("{}  # {}\n", line.text(), line.comment)); error != 0)
    return Status(StatusCode::ResourceExhausted,
                  fmt::format("the journal cannot be written: {}", std::strerror(error)));
  results.insert_or_assign(row.text(), result);
  return Status::ok();
}

} // namespace ditron::tool
