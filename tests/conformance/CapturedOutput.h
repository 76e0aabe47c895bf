//===- CapturedOutput.h - What kernels print ----------------------------------------------------------------------*- C++ -*-===//
//
// Takes the process's standard output for a while: simulated kernels write there, and so does a GPU's driver.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TESTS_CONFORMANCE_CAPTUREDOUTPUT_H
#define DITRON_TESTS_CONFORMANCE_CAPTUREDOUTPUT_H

#include <string>
#include <vector>

namespace ditron::conformance {

class CapturedOutput {
public:
  CapturedOutput();
  ~CapturedOutput() { finish(); }
  CapturedOutput(const CapturedOutput &) = delete;
  CapturedOutput &operator=(const CapturedOutput &) = delete;

  /// Gives standard output back; what was written meanwhile.
  std::string finish();

private:
  int file = -1;  ///< In memory.
  int saved = -1; ///< Standard output as it was.
};

/// The lines of a text that are not empty.
std::vector<std::string> linesOf(const std::string &text);

} // namespace ditron::conformance
#endif // DITRON_TESTS_CONFORMANCE_CAPTUREDOUTPUT_H
