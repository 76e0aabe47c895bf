//===- Options.cpp - What to compile, and how ---------------------------------------------------------------------===//
//
// Checks of the options, their cache key, and the table of stage times.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/compiler/Options.h"

#include "ditron/support/InputFile.h"
#include "ditron/support/TargetName.h"

#include <bit>
#include <fmt/format.h>

namespace ditron::compiler {

Expected<KernelSource> KernelSource::read(const std::string &path) {
  DITRON_ASSIGN_OR_RETURN(std::string text, readKernelFile(path));
  return KernelSource{path, std::move(text), {}, {}};
}

Status CompileOptions::check() const {
  DITRON_ASSIGN_OR_RETURN(TargetName name, parseTargetName(target));
  const uint32_t mostWarps = 1024 / name.warpSize;
  if (!std::has_single_bit(numWarps) || numWarps > mostWarps)
    return invalidArgument(
        fmt::format("num_warps is {}: it must be a power of 2 from 1 to {}", numWarps, mostWarps));
  if (numStages < 1 || numStages > 16)
    return invalidArgument(fmt::format("num_stages is {}; accepted are 1 to 16", numStages));
  if (residentBlocks && (*residentBlocks < 1 || *residentBlocks > 32))
    return invalidArgument(fmt::format("{} blocks on a multiprocessor; accepted are 1 to 32", *residentBlocks));
  return Status::ok();
}

std::string CompileOptions::key() const {
  Expected<TargetName> name = parseTargetName(target);
  return fmt::format("{};warps={};stages={};{}{}{}", name.isOk() ? name->text : target, numWarps, numStages,
                     residentBlocks ? fmt::format("resident={};", *residentBlocks) : "", debug ? "debug;" : "",
                     knobs.codeKey());
}

double CompileReport::totalMilliseconds() const {
  double total = 0;
  for (const StageTime &time : times)
    total += time.milliseconds;
  return total;
}

std::string_view toString(Phase phase) {
  switch (phase) {
  case Phase::Cache: return "cache";
  case Phase::Frontend: return "frontend";
  case Phase::Passes: return "passes";
  case Phase::Llvm: return "LLVM";
  case Phase::Assembler: return "assembler";
  case Phase::Load: return "load";
  }
  return "";
}

std::string CompileReport::timesText() const {
  std::string text;
  for (Phase phase : {Phase::Cache, Phase::Frontend, Phase::Passes, Phase::Llvm, Phase::Assembler, Phase::Load}) {
    std::string stages;
    double sum = 0;
    for (const StageTime &time : times) {
      if (time.phase != phase)
        continue;
      sum += time.milliseconds;
      stages += fmt::format("{:>10.2f} ms    {}\n", time.milliseconds, time.name);
    }
    if (!stages.empty())
      text += fmt::format("{:>10.2f} ms  {}\n{}", sum, toString(phase), stages);
  }
  return text + fmt::format("{:>10.2f} ms  total{}\n", totalMilliseconds(), isFromCache ? " (cache hit)" : "");
}

} // namespace ditron::compiler
