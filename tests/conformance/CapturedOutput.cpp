//===- CapturedOutput.cpp - What kernels print --------------------------------------------------------------------------===//
//
// File descriptor 1 is replaced by a file in memory, so that writers which do not use stdio are seen as well.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "CapturedOutput.h"

#include <cstdio>
#include <sstream>
#include <sys/mman.h>
#include <unistd.h>

namespace ditron::conformance {

CapturedOutput::CapturedOutput() {
  std::fflush(stdout);
  file = memfd_create("stdout", MFD_CLOEXEC);
  saved = dup(STDOUT_FILENO);
  if (file >= 0)
    dup2(file, STDOUT_FILENO);
}

std::string CapturedOutput::finish() {
  if (saved < 0)
    return "";
  std::fflush(stdout);
  dup2(saved, STDOUT_FILENO);
  close(saved);
  saved = -1;
  std::string text;
  char chunk[4096];
  lseek(file, 0, SEEK_SET);
  for (ssize_t got; (got = read(file, chunk, sizeof(chunk))) > 0;)
    text.append(chunk, static_cast<size_t>(got));
  close(file);
  return text;
}

std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (!line.empty())
      lines.push_back(line);
  return lines;
}

} // namespace ditron::conformance
