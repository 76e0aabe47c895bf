//===- KernelStore.h - The folder of compiled kernels --------------------------------------------------------*- C++ -*-===//
//
// A folder of files KEY.kernel, one for each Entry. Any number of processes may use it at once without locks: an entry is
// written under a name of its own and renamed, so that a reader sees all of it or nothing, and two processes that compile the
// same kernel write the same. Whatever is wrong with a file makes it a miss, never an error: the kernel is compiled again and
// the file replaced. Entries are not flushed to the disk; one that a crash of the machine cuts short fails its hash.
//
// A cache entry is code that will run in this process. So the folder must belong to the user and be writable by nobody else;
// the descriptor that was checked is the one that all files are opened through.
//
// When the entries take more than the limit, those go first that were used longest ago: a hit renews the file's time.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_CACHE_KERNELSTORE_H
#define DITRON_CACHE_KERNELSTORE_H

#include "ditron/cache/Entry.h"

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

namespace ditron::cache {

/// One file of the folder.
struct StoredFile {
  std::string name;
  uint64_t bytes = 0;
  std::chrono::system_clock::time_point usedAt;
  bool isTemporary = false; ///< Being written, or left by a process that died while writing.
};

struct PruneResult {
  uint64_t removedFiles = 0, removedBytes = 0;
  uint64_t keptFiles = 0, keptBytes = 0;
};

class KernelStore {
public:
  /// Opens the folder, and makes it when it is not there. Fails when it cannot be made or others may write to it.
  static Expected<std::unique_ptr<KernelStore>> open(const std::string &folder, uint64_t limitBytes);
  /// The same for a folder that exists; NotFound when it does not.
  static Expected<std::unique_ptr<KernelStore>> openExisting(const std::string &folder, uint64_t limitBytes);
  ~KernelStore();
  KernelStore(const KernelStore &) = delete;
  KernelStore &operator=(const KernelStore &) = delete;

  const std::string &folder() const { return path; }
  uint64_t limitBytes() const { return limit; }

  /// The entry of the key, or nothing.
  std::optional<Entry> find(const std::string &key);
  /// Writes the entry, then prunes if the limit is passed. Fails for example on a full disk.
  Status keep(const Entry &entry);

  /// All files of the cache, the most recently used first. Files with other names are not ours and left out.
  Expected<std::vector<StoredFile>> list() const;
  /// Reads one of them; the error says what is wrong with it.
  Expected<Entry> read(const StoredFile &file) const;
  /// Removes the least recently used entries until the rest takes at most this much, and what dead processes left behind.
  Expected<PruneResult> prune(uint64_t mostBytes);
  Status remove(const StoredFile &file);

private:
  KernelStore(std::string path, int descriptor, uint64_t limit)
      : path(std::move(path)), descriptor(descriptor), limit(limit) {}
  std::optional<std::string> readBytes(const std::string &name, bool renew) const;

  const std::string path;
  const int descriptor; ///< Of the folder.
  const uint64_t limit;
};

} // namespace ditron::cache

#endif // DITRON_CACHE_KERNELSTORE_H
