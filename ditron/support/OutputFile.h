//===- OutputFile.h - Files that are whole or not there --------------------------------------------------*- C++ -*-===//
//
// Every file that Ditron writes goes through here. What is written lands in a temporary file of the same folder, and commit()
// renames it to the wanted name: whoever looks sees the old file or the new one, never half of it, and a run that fails loses
// nothing of an earlier one. Where the file system can, the temporary file has no name at all (O_TMPFILE), so that even a
// process that is killed leaves nothing behind.
//
// What is no regular file (/dev/null, a pipe) cannot be renamed to; it is written directly. A symbolic link stays, and what it
// points to is replaced; an existing file keeps its mode.
//
//   DITRON_ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(path));
//   DITRON_RETURN_IF_ERROR(file.write(text));
//   return file.commit();
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SUPPORT_OUTPUTFILE_H
#define DITRON_SUPPORT_OUTPUTFILE_H

#include "ditron/support/Status.h"

#include <cstddef>
#include <span>
#include <vector>

namespace ditron {

class OutputFile {
public:
  /// Makes the temporary file. Fails when the folder does not exist, or when `path` could not be written.
  static Expected<OutputFile> create(const std::string &path);
  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&other) = delete;
  /// Without a commit nothing stays.
  ~OutputFile();

  Status write(std::string_view text);
  Status write(std::span<const std::byte> bytes);
  /// Nothing more is written: what can go wrong with the disk goes wrong here. For those who write many files before the first
  /// takes its place; commit() does it otherwise.
  Status complete();
  /// Puts the file into its place.
  Status commit();

private:
  OutputFile() = default;
  Status fail(std::string_view what, int error) const;
  Status nameUnnamed();
  Status flush();

  std::string path;      ///< As the user wrote it, for messages.
  std::string target;    ///< What is replaced: the path with its links followed.
  std::string folder;    ///< Where it lies.
  std::string temporary; ///< Empty for a file without a name, and for what is written directly.
  std::string buffer;
  int descriptor = -1;
  bool isDirect = false; ///< No regular file.
};

/// All at once.
Status writeWholeFile(const std::string &path, std::string_view text);

/// Creates a file that was not there, readable by nobody else, without following links; for folders that others can write to.
/// A name that is taken is an error of code InvalidArgument whose message ends in "File exists".
Status writePrivateFile(const std::string &path, std::string_view text);

/// Refuses output files of which two are the same one, or one is a file that is read. `what` is the option, for the message.
struct NamedFile {
  std::string what, path;
  bool isRead = false; ///< An input that no output may replace, such as the kernel's source.
};
Status checkDistinctFiles(std::span<const NamedFile> files);

/// Writes all of the text; 0, or the error's number. May be called from a signal handler.
int writeAll(int descriptor, std::string_view text) noexcept;

/// Removes temporary files that have a name, for programs that end at once; may be called from a signal handler.
void removeUnfinishedFiles() noexcept;

} // namespace ditron
#endif // DITRON_SUPPORT_OUTPUTFILE_H
