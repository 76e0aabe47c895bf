//===- ProgramsPresent.cpp - Run files in libditron ---------------------------------------------------------------===//
//
// The work is ditron/program's.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/api/Boundary.h"
#include "ditron/program/Reader.h"
#include "ditron/program/Run.h"
#include "ditron/runtime/TargetChoice.h"
#include "ditron/sim/engine/TimeLimit.h"

#include <fmt/format.h>

using namespace ditron;
using namespace ditron::api;

struct ditron_program {
  program::Program program;
  std::unique_ptr<jit::Jit> jit; ///< Outlives the run.
  std::unique_ptr<program::Run> run;
  std::vector<std::string> mismatches;
  NpyArray latest; ///< What ditron_program_get gave last.
};

namespace {

Expected<std::unique_ptr<ditron_program>>
run(const ditron_program_options_t &options,
    const std::function<Expected<program::Program>(const program::ReadOptions &)> &read) {
  auto result = std::make_unique<ditron_program>();
  program::ReadOptions reading;
  if (options.ranks)
    reading.ranks = options.ranks;
  if (options.ranks_per_node)
    reading.ranksPerNode = options.ranks_per_node;
  DITRON_ASSIGN_OR_RETURN(result->program, read(reading));
  program::RunOptions settings;
  settings.target =
      program::targetOf(result->program, options.target ? std::optional<std::string>(options.target) : std::nullopt);
  DITRON_ASSIGN_OR_RETURN(const TargetName target, runtime::resolveTarget(settings.target));
  settings.world.sms =
      options.multiprocessors ? options.multiprocessors : result->program.sms.value_or(settings.world.sms);
  settings.world.ranksPerNode = result->program.ranksPerNode;
  settings.world.seed = options.seed;
  settings.world.timeLimitSeconds = options.time_limit_seconds;
  settings.world.checkBounds = !options.no_bounds_check;
  settings.world.checkRaces = !options.no_race_check;
  settings.dataSeed = options.data_seed;
  // The caller's function runs on the caller's stack, not on a host code's.
  std::vector<std::string> printed;
  if (options.print)
    settings.print = [&printed](const std::string &text) { printed.push_back(text); };
  DITRON_ASSIGN_OR_RETURN(const Knobs knobs, Knobs::fromEnvironment());
  DITRON_ASSIGN_OR_RETURN(result->jit, jit::Jit::create(target.text, knobs));
  DITRON_ASSIGN_OR_RETURN(result->run, program::Run::create(result->program, *result->jit, settings));
  program::Outcome outcome = result->run->execute();
  for (const std::string &text : printed)
    options.print(options.print_user, text.c_str());
  DITRON_RETURN_IF_ERROR(outcome.status);
  result->mismatches = std::move(outcome.mismatches);
  return result;
}

ditron_status_t runProgram(const ditron_program_options_t *given, ditron_program_h *program,
                           const std::function<Expected<program::Program>(const program::ReadOptions &)> &read) {
  const sim::TimeLimit::Call call; // it compiles first
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(program, "program"));
    DITRON_ASSIGN_OR_RETURN(const ditron_program_options_t options, readStruct(given, "ditron_program_options_t"));
    DITRON_ASSIGN_OR_RETURN(std::unique_ptr<ditron_program> made, run(options, read));
    *program = made.release();
    return Status::ok();
  });
}

} // namespace

extern "C" {

ditron_status_t ditron_program_run_file(const char *path, const ditron_program_options_t *options,
                                        ditron_program_h *program) {
  return runProgram(options, program, [&](const program::ReadOptions &reading) -> Expected<program::Program> {
    DITRON_RETURN_IF_ERROR(checkGiven(path, "path"));
    return program::readProgram(path, reading);
  });
}

ditron_status_t ditron_program_run_text(const char *text, const char *name, const char *folder,
                                        const ditron_program_options_t *options, ditron_program_h *program) {
  return runProgram(options, program, [&](const program::ReadOptions &reading) -> Expected<program::Program> {
    DITRON_RETURN_IF_ERROR(checkGiven(text, "text"));
    return program::parseProgram(name ? name : "<program>", text, folder ? folder : "", reading);
  });
}

void ditron_program_destroy(ditron_program_h program) { delete program; }

uint32_t ditron_program_ranks(ditron_program_h program) { return program ? program->program.ranks : 0; }

uint32_t ditron_program_mismatch_count(ditron_program_h program) {
  return program ? static_cast<uint32_t>(program->mismatches.size()) : 0;
}

const char *ditron_program_mismatch(ditron_program_h program, uint32_t index) {
  return program && index < program->mismatches.size() ? program->mismatches[index].c_str() : nullptr;
}

ditron_status_t ditron_program_get(ditron_program_h program, const char *buffer, uint32_t rank,
                                   ditron_program_array_t *array) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(program, "program"));
    DITRON_RETURN_IF_ERROR(checkGiven(buffer, "buffer"));
    DITRON_ASSIGN_OR_RETURN(program->latest, program->run->array(buffer, rank));
    const NpyArray &latest = program->latest;
    ditron_program_array_t result = {};
    result.dtype = static_cast<ditron_dtype_t>(latest.type);
    result.dimensions = static_cast<uint32_t>(latest.shape.size());
    result.shape = latest.shape.data();
    result.data = latest.data.data();
    result.bytes = latest.data.size();
    return writeStruct(array, result, "ditron_program_array_t");
  });
}

} // extern "C"
