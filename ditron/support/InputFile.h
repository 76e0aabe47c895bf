//===- InputFile.h - Reading files of which one cannot know what they are ----------------------------------*- C++ -*-===//
//
// A path from a command line can name a folder, a pipe that nobody writes to, or a device that never ends. All of these must end
// in an error: reading stops at a limit, and waits for a pipe only so long.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SUPPORT_INPUTFILE_H
#define DITRON_SUPPORT_INPUTFILE_H

#include "ditron/support/Status.h"

#include <cstdint>

namespace ditron {

/// Reads a file in pieces.
class InputFile {
public:
  /// `what` stands before the path in errors: "kernel file".
  static Expected<InputFile> open(const std::string &path, std::string_view what);
  /// What comes from standard input, however long a person takes to write it.
  static InputFile standardInput();
  InputFile(InputFile &&other) noexcept;
  InputFile &operator=(InputFile &&other) = delete;
  ~InputFile();

  /// Reads up to so many bytes; fewer only at the end of the file.
  Expected<uint64_t> read(void *bytes, uint64_t count);
  /// The size of a regular file; UINT64_MAX for pipes and devices, which have none.
  uint64_t size() const { return bytes; }
  /// For errors: "kernel file 'x.py'".
  const std::string &described() const { return name; }

private:
  InputFile() = default;
  Status fail(int error) const;

  std::string name;
  int descriptor = -1;
  uint64_t bytes = UINT64_MAX;
  bool isPipe = false;
};

/// The whole of a file that has at most `mostBytes`.
Expected<std::string> readWholeFile(const std::string &path, std::string_view what, uint64_t mostBytes);
/// The rest of one.
Expected<std::string> readToEnd(InputFile &file, uint64_t mostBytes);

/// The largest source of kernels that is accepted; keeps every offset inside 32 bits with room to spare.
inline constexpr uint64_t maxSourceBytes = uint64_t(64) << 20;
Expected<std::string> readKernelFile(const std::string &path);

} // namespace ditron
#endif // DITRON_SUPPORT_INPUTFILE_H
