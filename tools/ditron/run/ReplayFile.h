//===- ReplayFile.h - A failed run, to be repeated ------------------------------------------------------*- C++ -*-===//
//
// What `ditron run --explore` writes and `ditron replay` reads: the words of the command line, the schedule, and the hashes of the
// kernel files, since another program may fail in another way. A JSON object:
//
//   {"ditron_replay": 1, "command": ["run", "ring.py:ring", ...], "schedule": {"seed": 7, "late_stores": 0.5},
//    "files": {"ring.py": "<SHA-256>"}, "failure": "the first line of the report"}
//
// Where what went wrong is that results depend on the schedule, "reference" is the one that they are compared with.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_REPLAYFILE_H
#define DITRON_TOOLS_DITRON_REPLAYFILE_H

#include "ditron/compiler/Options.h"
#include "ditron/sim/explore/Schedule.h"

#include <map>

namespace ditron::tool {

struct Replay {
  std::vector<std::string> command;
  sim::Schedule schedule;
  std::optional<sim::Schedule> reference;
  std::map<std::string, std::string> files; ///< Path -> SHA-256 of the text.
  std::string failure;
};

void addFile(Replay &replay, const std::string &path, std::string_view text);
/// Adds the kernel file and what it imports.
void addFiles(Replay &replay, const compiler::KernelSource &source);
Status writeReplay(const Replay &replay, const std::string &path);
/// Refuses what is no such file, and one whose kernel files have changed.
Expected<Replay> readReplay(const std::string &path);
/// The words without those that belong to an exploration.
std::vector<std::string> wordsToReplay(const std::vector<std::string> &words);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_REPLAYFILE_H
