//===- OutputFile.cpp - Files that are whole or not there ---------------------------------------------------------===//
//
// See OutputFile.h. Temporary files with a name are kept in a table of fixed size, which a signal handler may read.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/support/OutputFile.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fcntl.h>
#include <fmt/format.h>
#include <map>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace ditron {

namespace {

namespace fs = std::filesystem;

constexpr size_t bufferBytes = size_t(1) << 20;

std::atomic<uint64_t> counter = 0;
std::array<std::atomic<char *>, 4096> unfinished = {};

void remember(const std::string &file) {
  char *copy = strdup(file.c_str());
  for (std::atomic<char *> &slot : unfinished)
    if (char *expected = nullptr; copy && slot.compare_exchange_strong(expected, copy))
      return;
  std::free(copy); // too many at once: a process that is killed then leaves this one
}

void forget(const std::string &file) {
  for (std::atomic<char *> &slot : unfinished)
    if (char *name = slot.load(); name && file == name && slot.compare_exchange_strong(name, nullptr)) {
      std::free(name);
      return;
    }
}

/// Where a path leads, links followed, also when nothing is there yet.
fs::path followLinks(fs::path path) {
  std::error_code error;
  for (int hops = 0; hops < 40 && fs::is_symlink(path, error); ++hops) {
    fs::path next = fs::read_symlink(path, error);
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  return path;
}

StatusCode codeOf(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG || error == ENOMEM || error == EMFILE || error == ENFILE
             ? StatusCode::ResourceExhausted
             : StatusCode::InvalidArgument;
}

/// A name in a folder that no other temporary file of ours has.
std::string temporaryName(const std::string &folder) {
  return fmt::format("{}/.ditron-{}-{}.part", folder, ::getpid(), counter++);
}

} // namespace

int writeAll(int descriptor, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return count < 0 ? errno : EIO;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return 0;
}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : path(std::move(other.path)), target(std::move(other.target)), folder(std::move(other.folder)),
      temporary(std::move(other.temporary)), buffer(std::move(other.buffer)),
      descriptor(std::exchange(other.descriptor, -1)), isDirect(other.isDirect) {
  other.temporary.clear();
}

OutputFile::~OutputFile() {
  if (descriptor >= 0)
    ::close(descriptor);
  if (!temporary.empty()) {
    ::unlink(temporary.c_str());
    forget(temporary);
  }
}

Status OutputFile::fail(std::string_view what, int error) const {
  return {codeOf(error), fmt::format("cannot {} '{}': {}", what, path, std::strerror(error))};
}

Expected<OutputFile> OutputFile::create(const std::string &path) {
  OutputFile file;
  file.path = path;
  if (path.empty() || path.find('\0') != std::string::npos)
    return invalidArgument("cannot write a file without a name");
  file.target = followLinks(path).string();
  const size_t slash = file.target.rfind('/');
  file.folder = slash == std::string::npos ? "." : slash == 0 ? "/" : file.target.substr(0, slash);
  struct stat status = {};
  const bool exists = ::stat(file.target.c_str(), &status) == 0;
  if (!exists && errno != ENOENT)
    return file.fail("write", errno);
  if (exists && S_ISDIR(status.st_mode))
    return file.fail("write", EISDIR);
  if (exists && !S_ISREG(status.st_mode)) {
    // A pipe that nobody reads is an error, not a wait without end.
    file.isDirect = true;
    file.descriptor = ::open(file.target.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (file.descriptor < 0)
      return file.fail("write", errno);
    ::fcntl(file.descriptor, F_SETFL, 0);
    return file;
  }
  if (file.target.back() == '/')
    return file.fail("write", EISDIR);
  // Renaming would replace what may not be written.
  if (exists && ::access(file.target.c_str(), W_OK) != 0)
    return file.fail("write", errno);
  file.descriptor = ::open(file.folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (file.descriptor < 0 || ::access("/proc/self/fd", X_OK) != 0) {
    if (file.descriptor >= 0)
      ::close(file.descriptor);
    const std::string name = temporaryName(file.folder);
    file.descriptor = ::open(name.c_str(), O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, 0666);
    if (file.descriptor < 0 && exists)
      return file.fail(fmt::format("make a file in '{}' to replace", file.folder), errno);
    if (file.descriptor < 0)
      return file.fail("write", errno);
    file.temporary = name;
    remember(name);
  }
  if (exists) {
    // What it belonged to and who may read it stay as they were, as far as this user may say so.
    if (status.st_uid != ::geteuid() || status.st_gid != ::getegid())
      (void)!::fchown(file.descriptor, status.st_uid, status.st_gid);
    ::fchmod(file.descriptor, status.st_mode & 07777);
  }
  return file;
}

Status OutputFile::flush() {
  const int error = writeAll(descriptor, buffer);
  buffer.clear();
  return error ? fail("write all of", error) : Status::ok();
}

Status OutputFile::write(std::string_view text) {
  if (buffer.size() + text.size() < bufferBytes) {
    buffer += text;
    return Status::ok();
  }
  DITRON_RETURN_IF_ERROR(flush());
  const int error = writeAll(descriptor, text);
  return error ? fail("write all of", error) : Status::ok();
}

Status OutputFile::write(std::span<const std::byte> bytes) {
  return write(std::string_view(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
}

/// Gives the file without a name one in its folder.
Status OutputFile::nameUnnamed() {
  const std::string from = fmt::format("/proc/self/fd/{}", descriptor);
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::string name = temporaryName(folder);
    if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      remember(name);
      temporary = std::move(name);
      return Status::ok();
    }
    if (errno != EEXIST)
      return fail("write", errno);
  }
  return fail("write", EEXIST);
}

Status OutputFile::complete() {
  if (descriptor < 0)
    return Status::ok();
  DITRON_RETURN_IF_ERROR(flush());
  if (!isDirect && temporary.empty())
    DITRON_RETURN_IF_ERROR(nameUnnamed());
  // Some file systems say only now that there was no room.
  if (::close(std::exchange(descriptor, -1)) != 0)
    return fail("write all of", errno);
  return Status::ok();
}

/// Writes what the temporary file holds into the file that is there; only here can the old one be lost and no new one
/// be whole. 0, or the error's number.
static int refill(const std::string &target, const std::string &temporary) {
  const int from = ::open(temporary.c_str(), O_RDONLY | O_CLOEXEC);
  const int into = ::open(target.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  int error = from < 0 || into < 0 ? errno : 0;
  std::vector<char> piece(bufferBytes);
  while (!error) {
    const ssize_t got = ::read(from, piece.data(), piece.size());
    if (got <= 0) {
      error = got < 0 ? errno : 0;
      break;
    }
    error = writeAll(into, std::string_view(piece.data(), static_cast<size_t>(got)));
  }
  if (from >= 0)
    ::close(from);
  if (into >= 0 && ::close(into) != 0 && !error)
    error = errno;
  return error;
}

Status OutputFile::commit() {
  if (descriptor >= 0 && !isDirect && temporary.empty()) {
    // A name that is free needs no detour.
    DITRON_RETURN_IF_ERROR(flush());
    const std::string from = fmt::format("/proc/self/fd/{}", descriptor);
    if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, target.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      ::close(std::exchange(descriptor, -1));
      return Status::ok();
    }
  }
  DITRON_RETURN_IF_ERROR(complete());
  if (isDirect)
    return Status::ok();
  if (::rename(temporary.c_str(), target.c_str()) != 0) {
    // A file that is a mount point, as containers have them, cannot be replaced.
    if (errno != EBUSY)
      return fail("replace", errno);
    if (const int error = refill(target, temporary))
      return fail("write all of", error);
    ::unlink(temporary.c_str());
  }
  forget(temporary);
  temporary.clear();
  return Status::ok();
}

Status writeWholeFile(const std::string &path, std::string_view text) {
  DITRON_ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(path));
  DITRON_RETURN_IF_ERROR(file.write(text));
  return file.commit();
}

Status writePrivateFile(const std::string &path, std::string_view text) {
  const int descriptor = ::open(path.c_str(), O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, 0600);
  if (descriptor < 0)
    return {codeOf(errno), fmt::format("cannot write '{}': {}", path, std::strerror(errno))};
  int error = writeAll(descriptor, text);
  if (::close(descriptor) != 0 && !error)
    error = errno;
  if (!error)
    return Status::ok();
  ::unlink(path.c_str());
  return {codeOf(error), fmt::format("cannot write all of '{}': {}", path, std::strerror(error))};
}

Status checkDistinctFiles(std::span<const NamedFile> files) {
  std::map<std::string, const NamedFile *> seen;
  for (const NamedFile &file : files) {
    std::error_code error;
    const fs::path followed = followLinks(file.path);
    struct stat status = {};
    const bool exists = ::stat(followed.c_str(), &status) == 0;
    if (exists && !S_ISREG(status.st_mode))
      continue; // /dev/null takes any number
    const std::string key = exists ? fmt::format("{}:{}", status.st_dev, status.st_ino)
                                   : fs::weakly_canonical(fs::absolute(followed, error), error).string();
    const auto [other, isNew] = seen.try_emplace(key, &file);
    if (isNew || (file.isRead && other->second->isRead))
      continue;
    return invalidArgument(fmt::format("{} and {} are the same file, '{}'; nothing was run", other->second->what, file.what,
                                       file.path));
  }
  return Status::ok();
}

void removeUnfinishedFiles() noexcept {
  for (std::atomic<char *> &slot : unfinished)
    if (const char *name = slot.load())
      ::unlink(name);
}

} // namespace ditron
