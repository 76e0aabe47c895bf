//===- KernelStore.cpp - The folder of compiled kernels -----------------------------------------------------------------===//
//
// Files are opened relative to the folder's descriptor and never through symbolic links.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/cache/KernelStore.h"

#include "ditron/cache/Sha256.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ditron::cache {

namespace {

constexpr std::string_view entrySuffix = ".kernel";
constexpr std::string_view temporaryPrefix = ".writing-";
/// Larger than any kernel: a file of this size is none.
constexpr uint64_t mostEntryBytes = 256 << 20;
/// A file that has been in writing for longer belongs to a process that died.
constexpr std::chrono::hours abandonedAfter(1);

std::string errnoText() { return std::strerror(errno); }

class FileDescriptor {
public:
  explicit FileDescriptor(int value) : value(value) {}
  ~FileDescriptor() { close(); }
  FileDescriptor(const FileDescriptor &) = delete;
  FileDescriptor &operator=(const FileDescriptor &) = delete;

  bool isOpen() const { return value >= 0; }
  int get() const { return value; }
  int release() { return std::exchange(value, -1); }
  /// False when what was written did not reach the file system.
  bool close() { return value < 0 || ::close(release()) == 0; }

private:
  int value;
};

/// Ok, or why code from this folder must not be run.
Status checkOwnership(int folder, const std::string &path) {
  struct stat status;
  if (fstat(folder, &status) != 0)
    return unsupported(fmt::format("cannot look at '{}': {}", path, errnoText()));
  if (status.st_uid != geteuid())
    return unsupported(
        fmt::format("'{}' belongs to user {}, not to user {} who runs this program", path, status.st_uid, geteuid()));
  if (status.st_mode & (S_IWGRP | S_IWOTH))
    return unsupported(fmt::format("others than its owner can write to '{0}'; `chmod go-w {0}` changes that", path));
  return Status::ok();
}

bool writeAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

/// Keys become file names: nothing but hexadecimal digits may be one.
bool isKey(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

} // namespace

Expected<std::unique_ptr<KernelStore>> KernelStore::open(const std::string &folder, uint64_t limitBytes) {
  if (std::error_code error; !std::filesystem::exists(folder, error)) {
    // The folders above may be shared; ours is private from the start.
    std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), error);
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
      return unsupported(fmt::format("cannot make the folder '{}': {}", folder, errnoText()));
  }
  return openExisting(folder, limitBytes);
}

Expected<std::unique_ptr<KernelStore>> KernelStore::openExisting(const std::string &folder, uint64_t limitBytes) {
  FileDescriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor.isOpen() && errno == ENOENT)
    return notFound(fmt::format("there is no folder '{}'", folder));
  if (!descriptor.isOpen())
    return unsupported(fmt::format("cannot open the folder '{}': {}", folder, errnoText()));
  DITRON_RETURN_IF_ERROR(checkOwnership(descriptor.get(), folder));
  return std::unique_ptr<KernelStore>(new KernelStore(folder, descriptor.release(), limitBytes));
}

KernelStore::~KernelStore() { ::close(descriptor); }

std::optional<std::string> KernelStore::readBytes(const std::string &name, bool renew) const {
  FileDescriptor file(openat(descriptor, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status;
  if (!file.isOpen() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size < 0 ||
      static_cast<uint64_t>(status.st_size) > mostEntryBytes)
    return std::nullopt;
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::read(file.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      break;
    done += static_cast<size_t>(count);
  }
  bytes.resize(done);
  if (renew) // a cache that cannot be written to is still good for reading
    (void)futimens(file.get(), nullptr);
  return bytes;
}

std::optional<Entry> KernelStore::find(const std::string &key) {
  if (!isKey(key))
    return std::nullopt;
  std::optional<std::string> bytes = readBytes(key + std::string(entrySuffix), /*renew=*/true);
  if (!bytes)
    return std::nullopt;
  Expected<Entry> entry = readEntry(*bytes);
  if (!entry.isOk() || entry->key != key)
    return std::nullopt;
  return std::move(entry).value();
}

Status KernelStore::keep(const Entry &entry) {
  if (!isKey(entry.key))
    return internalError(fmt::format("'{}' is no key of a cache", entry.key));
  static std::atomic<uint64_t> counter;
  const std::string temporary =
      fmt::format("{}{}-{}-{}", temporaryPrefix, getpid(), counter++, entry.key.substr(0, 16));
  const std::string name = entry.key + std::string(entrySuffix);
  FileDescriptor file(
      openat(descriptor, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.isOpen())
    return unsupported(fmt::format("cannot write into '{}': {}", path, errnoText()));
  const bool isWritten = writeAll(file.get(), writeEntry(entry));
  if (!isWritten || !file.close() || renameat(descriptor, temporary.c_str(), descriptor, name.c_str()) != 0) {
    const Status failure = unsupported(fmt::format("cannot write '{}/{}': {}", path, name, errnoText()));
    (void)unlinkat(descriptor, temporary.c_str(), 0);
    return failure;
  }
  Expected<std::vector<StoredFile>> files = list();
  uint64_t total = 0;
  if (files.isOk())
    for (const StoredFile &each : *files)
      total += each.bytes;
  // Somewhat below the limit, so that not every new entry has to make room.
  return total > limit ? prune(limit - limit / 8).status() : Status::ok();
}

Expected<std::vector<StoredFile>> KernelStore::list() const {
  FileDescriptor copy(openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR *folder = copy.isOpen() ? fdopendir(copy.get()) : nullptr;
  if (!folder)
    return unsupported(fmt::format("cannot list '{}': {}", path, errnoText()));
  copy.release();
  std::vector<StoredFile> files;
  while (const dirent *each = readdir(folder)) {
    StoredFile file;
    file.name = each->d_name;
    file.isTemporary = file.name.starts_with(temporaryPrefix);
    const bool isEntry =
        file.name.ends_with(entrySuffix) && isKey(file.name.substr(0, file.name.size() - entrySuffix.size()));
    struct stat status;
    // Another process may have removed it since.
    if ((!isEntry && !file.isTemporary) || fstatat(descriptor, each->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        S_ISDIR(status.st_mode))
      continue;
    file.bytes = static_cast<uint64_t>(status.st_size);
    file.usedAt = std::chrono::system_clock::time_point(std::chrono::duration_cast<std::chrono::system_clock::duration>(
        std::chrono::seconds(status.st_mtim.tv_sec) + std::chrono::nanoseconds(status.st_mtim.tv_nsec)));
    files.push_back(std::move(file));
  }
  closedir(folder);
  std::sort(files.begin(), files.end(), [](const StoredFile &a, const StoredFile &b) {
    return a.usedAt != b.usedAt ? a.usedAt > b.usedAt : a.name < b.name;
  });
  return files;
}

Expected<Entry> KernelStore::read(const StoredFile &file) const {
  std::optional<std::string> bytes = readBytes(file.name, /*renew=*/false);
  if (!bytes)
    return invalidArgument("cannot be read as a file");
  DITRON_ASSIGN_OR_RETURN(Entry entry, readEntry(*bytes));
  if (entry.key + std::string(entrySuffix) != file.name)
    return invalidArgument("foreign: it holds the entry of another key");
  return entry;
}

Expected<PruneResult> KernelStore::prune(uint64_t mostBytes) {
  DITRON_ASSIGN_OR_RETURN(std::vector<StoredFile> files, list());
  PruneResult result;
  const auto now = std::chrono::system_clock::now();
  bool isFull = false; // from the first that has no room on, all older ones go
  for (const StoredFile &file : files) {
    isFull |= !file.isTemporary && result.keptBytes + file.bytes > mostBytes;
    if (!(file.isTemporary ? now - file.usedAt > abandonedAfter : isFull)) {
      ++result.keptFiles;
      result.keptBytes += file.bytes;
      continue;
    }
    DITRON_RETURN_IF_ERROR(remove(file));
    ++result.removedFiles;
    result.removedBytes += file.bytes;
  }
  return result;
}

Status KernelStore::remove(const StoredFile &file) {
  if (unlinkat(descriptor, file.name.c_str(), 0) != 0 && errno != ENOENT)
    return unsupported(fmt::format("cannot remove '{}/{}': {}", path, file.name, errnoText()));
  return Status::ok();
}

} // namespace ditron::cache
