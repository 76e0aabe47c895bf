//===- DoctorReport.h - The lines of ditron doctor -----------------------------------------------------------*- C++ -*-===//
//
// Each line is a thing that was looked at, a verdict, what was found and, where the verdict is bad, what would change it.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_DOCTORREPORT_H
#define DITRON_TOOLS_DITRON_DOCTORREPORT_H

#include "ditron/support/Knobs.h"

#include <string>
#include <vector>

namespace ditron::tool {

enum class Verdict {
  Ok,
  Slower,    ///< Works by a slower path.
  NotUsable, ///< Does not work on this machine as it is.
};
/// "ok", "slower path", "not usable".
std::string_view toString(Verdict verdict);

struct DoctorLine {
  std::string subject;
  Verdict verdict = Verdict::Ok;
  std::string finding;
  std::string fix; ///< What would make it better; empty when nothing would.
};

class DoctorReport {
public:
  void add(DoctorLine line) { lines.push_back(std::move(line)); }
  void add(std::string subject, Verdict verdict, std::string finding, std::string fix = "") {
    add({std::move(subject), verdict, std::move(finding), std::move(fix)});
  }

  const std::vector<DoctorLine> &all() const { return lines; }
  /// The worst of all.
  Verdict worst() const;
  /// For people, aligned.
  std::string text() const;
  std::string json() const;

private:
  std::vector<DoctorLine> lines;
};

/// What the operating system grants: cgroup limits, open files, locked memory, shared memory, cache directories, the meeting
/// directory of processes.
void examineHost(DoctorReport &report);
/// The folder of compiled kernels.
void examineKernelCache(DoctorReport &report, const Knobs &knobs);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_DOCTORREPORT_H
