//===- InputFile.cpp - Reading files of which one cannot know what they are -----------------------------------------===//
#include "ditron/support/InputFile.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ditron {

namespace {
/// A pipe that is silent for longer is taken for one that nobody writes to.
constexpr int pipePatienceSeconds = 30;
constexpr uint64_t pieceBytes = uint64_t(1) << 16;
} // namespace

InputFile::InputFile(InputFile &&other) noexcept
    : name(std::move(other.name)), descriptor(std::exchange(other.descriptor, -1)), bytes(other.bytes),
      isPipe(other.isPipe) {}

InputFile::~InputFile() {
  if (descriptor >= 0)
    ::close(descriptor);
}

Status InputFile::fail(int error) const {
  return {error == ENOENT ? StatusCode::NotFound : StatusCode::InvalidArgument,
          fmt::format("cannot read {}: {}", name, std::strerror(error))};
}

Expected<InputFile> InputFile::open(const std::string &path, std::string_view what) {
  InputFile file;
  file.name = what.empty() ? fmt::format("'{}'", path) : fmt::format("{} '{}'", what, path);
  // Opening a pipe would otherwise wait for its writer.
  file.descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  struct stat status = {};
  if (file.descriptor < 0 || ::fstat(file.descriptor, &status) != 0)
    return file.fail(errno);
  if (S_ISDIR(status.st_mode))
    return invalidArgument(fmt::format("cannot read {}: it is a directory", file.name));
  if (S_ISREG(status.st_mode) && status.st_size > 0)
    file.bytes = static_cast<uint64_t>(status.st_size); // files of /proc say 0
  file.isPipe = S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode);
  return file;
}

Expected<uint64_t> InputFile::read(void *to, uint64_t count) {
  uint64_t done = 0;
  while (done < count) {
    if (isPipe) {
      pollfd wanted = {descriptor, POLLIN, 0};
      const int ready = ::poll(&wanted, 1, pipePatienceSeconds * 1000);
      if (ready == 0)
        return invalidArgument(fmt::format("cannot read {}: it gave nothing for {} seconds", name, pipePatienceSeconds));
      if (ready < 0 && errno != EINTR)
        return fail(errno);
    }
    const ssize_t got = ::read(descriptor, static_cast<char *>(to) + done, count - done);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (got < 0)
      return fail(errno);
    if (got == 0)
      break;
    done += static_cast<uint64_t>(got);
  }
  return done;
}

InputFile InputFile::standardInput() {
  InputFile file;
  file.name = "standard input";
  file.descriptor = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
  return file;
}

Expected<std::string> readToEnd(InputFile &file, uint64_t mostBytes) {
  const std::string tooLarge =
      fmt::format("cannot read {}: it has more than the {} bytes that are accepted", file.described(), mostBytes);
  if (file.size() != UINT64_MAX && file.size() > mostBytes)
    return invalidArgument(tooLarge);
  std::string text;
  while (true) {
    const size_t before = text.size();
    text.resize(before + pieceBytes);
    DITRON_ASSIGN_OR_RETURN(const uint64_t got, file.read(text.data() + before, pieceBytes));
    text.resize(before + got);
    if (text.size() > mostBytes)
      return invalidArgument(tooLarge);
    if (got < pieceBytes)
      return text;
  }
}

Expected<std::string> readWholeFile(const std::string &path, std::string_view what, uint64_t mostBytes) {
  DITRON_ASSIGN_OR_RETURN(InputFile file, InputFile::open(path, what));
  return readToEnd(file, mostBytes);
}

Expected<std::string> readKernelFile(const std::string &path) {
  return readWholeFile(path, "kernel file", maxSourceBytes);
}

} // namespace ditron
