//===- Reader.h - From JSON to a checked program --------------------------------------------------------*- C++ -*-===//
#ifndef DITRON_PROGRAM_READER_H
#define DITRON_PROGRAM_READER_H

#include "ditron/program/Program.h"

namespace ditron::program {

/// What the command line says in place of the file.
struct ReadOptions {
  std::optional<uint32_t> ranks, ranksPerNode; ///< In place of the file's.
};

/// Reads a run file. Every error names the line and column, the value and what is accepted, unknown names the nearest one.
Expected<Program> readProgram(const std::string &path, const ReadOptions &options = {});
/// The same of a text that is called `name` in errors; kernel files are looked for in `folder`.
Expected<Program> parseProgram(std::string name, std::string text, std::string folder, const ReadOptions &options = {});

} // namespace ditron::program
#endif // DITRON_PROGRAM_READER_H
