//===- StepReader.h - Steps of host code from JSON ------------------------------------------------------*- C++ -*-===//
#ifndef DITRON_PROGRAM_STEPREADER_H
#define DITRON_PROGRAM_STEPREADER_H

#include "ditron/program/Fields.h"

namespace ditron::program {

/// What steps need to know of the file around them.
struct StepContext {
  const JsonSource *source = nullptr;
  uint32_t ranks = 1;
  std::string kernelFile; ///< Of launches that name no file; empty: each has to.
};

Expected<std::vector<Step>> readSteps(const StepContext &context, const JsonValue &list);
/// A rank, a list of ranks, or "all", which is none.
Expected<std::optional<std::set<uint32_t>>> readRanks(const StepContext &context, const JsonValue &value);

/// The name of the buffer of a part: "x[0:4]@1" is one of x.
std::string bufferOfPart(const std::string &part);

} // namespace ditron::program
#endif // DITRON_PROGRAM_STEPREADER_H
