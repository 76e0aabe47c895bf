//===- LiveWaits.cpp - What running kernels wait for -----------------------------------------------------------------===//
#include "explain/LiveWaits.h"

#include "ditron/explain/board/BoardReport.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::tool {

namespace {

Status noBoards(uint32_t pid) {
  if (kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH)
    return Status(StatusCode::NotFound, fmt::format("--pid {}: there is no such process", pid));
  const std::vector<uint32_t> others = explain::processesWithBoards();
  const std::string accepted =
      others.empty() ? "; no process of this user does" : fmt::format("; these do: {}", fmt::join(others, ", "));
  return Status(
      StatusCode::NotFound,
      fmt::format("--pid {}: neither the process nor one that it has started holds ranks on GPUs{}", pid, accepted));
}

} // namespace

Status explainProcess(uint32_t pid, LiveWaitsForm form) {
  Expected<explain::BoardReading> reading = explain::readBoards(explain::descendants(pid));
  if (!reading.isOk())
    return noBoards(pid);
  const explain::WaitReport report = explain::reportOf(*reading);
  const std::string text = form == LiveWaitsForm::Json  ? explain::jsonOf(report)
                           : form == LiveWaitsForm::Dot ? explain::dotOf(report)
                                                        : explain::textOf(report) + "\n";
  std::fputs(text.c_str(), stdout);
  return Status::ok();
}

} // namespace ditron::tool
