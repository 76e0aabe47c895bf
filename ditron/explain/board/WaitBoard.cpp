//===- WaitBoard.cpp - A rank's board of waits, as its process keeps it ---------------------------------------------===//
//
// The file is allocated in full before anybody writes to it: a full /dev/shm is then an error here and no SIGBUS later.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/explain/board/WaitBoard.h"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ditron::explain {

namespace {

constexpr size_t slotsOffset = DITRON_BOARD_HEAD_BYTES;
constexpr size_t tableOffset = slotsOffset + DITRON_BOARD_SLOTS * sizeof(DitronWaitSlot);
constexpr size_t fileBytes = tableOffset + DITRON_BOARD_TABLE_BYTES;
/// What of the table is allocated from the beginning; a process with few arrays needs no more.
constexpr size_t firstTableBytes = 64 * 1024;

std::string userPrefix() { return fmt::format("ditron-{}-", geteuid()); }

Status systemError(std::string_view what, const std::string &path) {
  return Status(StatusCode::ResourceExhausted, fmt::format("{} '{}': {}", what, path, std::strerror(errno)));
}

/// A field of the table: without its separators.
std::string field(std::string_view text) {
  std::string clean(text);
  for (char &c : clean)
    if (c == '\t' || c == '\n')
      c = ' ';
  return clean;
}

/// Opens a new file of the first number that is free, and locks it.
Expected<int> openNew(const BoardOwner &owner, std::string_view folder, std::string &path) {
  for (uint32_t number = 0;; ++number) {
    path = fmt::format("{}/{}{}-{}-{}", folder, userPrefix(), getpid(), owner.rank, number);
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 && errno == EEXIST)
      continue;
    if (file < 0)
      return systemError("cannot make the board of waits", path);
    if (flock(file, LOCK_EX | LOCK_NB) == 0)
      return file;
    close(file); // somebody who tidies up was quicker
    unlink(path.c_str());
  }
}

} // namespace

size_t removeStaleBoards(std::string_view folder) {
  size_t removed = 0;
  std::error_code ignored;
  for (const std::filesystem::directory_entry &entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (!entry.path().filename().string().starts_with(userPrefix()))
      continue;
    const int file = open(entry.path().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
      continue;
    struct stat facts = {};
    // One that is still empty is being made.
    if (fstat(file, &facts) == 0 && facts.st_size >= DITRON_BOARD_HEAD_BYTES && flock(file, LOCK_EX | LOCK_NB) == 0)
      removed += unlink(entry.path().c_str()) == 0;
    close(file);
  }
  return removed;
}

Expected<std::unique_ptr<WaitBoard>> WaitBoard::create(const BoardOwner &owner, std::string_view folder) {
  removeStaleBoards(folder);
  std::unique_ptr<WaitBoard> board(new WaitBoard());
  DITRON_ASSIGN_OR_RETURN(board->file, openNew(owner, folder, board->pathText));
  board->owner = getpid();
  if (const int error = posix_fallocate(board->file, 0, tableOffset + firstTableBytes)) {
    errno = error;
    return systemError("no room for the board of waits", board->pathText);
  }
  if (ftruncate(board->file, fileBytes) != 0)
    return systemError("cannot give its size to the board of waits", board->pathText);
  void *mapping = mmap(nullptr, fileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, board->file, 0);
  if (mapping == MAP_FAILED)
    return systemError("cannot map the board of waits", board->pathText);
  board->mapping = mapping;
  board->mappedBytes = fileBytes;
  DitronBoardHead &head = board->head();
  head.version = DITRON_BOARD_VERSION;
  head.pid = static_cast<uint32_t>(getpid());
  head.rank = owner.rank;
  head.numRanks = owner.rank + 1;
  head.gpu = owner.gpu;
  head.slotsOffset = slotsOffset;
  head.slots = DITRON_BOARD_SLOTS;
  head.tableOffset = tableOffset;
  head.tableBytes = DITRON_BOARD_TABLE_BYTES;
  std::strncpy(head.name, owner.gpuName.c_str(), sizeof(head.name) - 1);
  // Last: before, it is no board.
  std::atomic_ref(head.magic).store(DITRON_BOARD_MAGIC, std::memory_order_release);
  return board;
}

WaitBoard::~WaitBoard() {
  if (mapping)
    munmap(mapping, mappedBytes);
  if (file < 0)
    return;
  if (owner == getpid())
    unlink(pathText.c_str());
  close(file);
}

void WaitBoard::abandon() {
  mapping = nullptr;
  if (owner == getpid())
    unlink(pathText.c_str());
}

DitronWaitSlot *WaitBoard::slots() const {
  return reinterpret_cast<DitronWaitSlot *>(static_cast<char *>(mapping) + slotsOffset);
}

void WaitBoard::addMemory(uint64_t address, uint64_t bytes, uint32_t elementBytes, std::string_view kind,
                          std::string_view name) {
  record(fmt::format("memory\t{}", address),
         fmt::format("memory\t{}\t{}\t{}\t{}\t{}\n", address, bytes, elementBytes, kind, field(name)));
}

void WaitBoard::removeMemory(uint64_t address) {
  std::lock_guard lock(mutex);
  if (records.erase(fmt::format("memory\t{}", address)) && mapping)
    append(fmt::format("freed\t{}\n", address));
}

void WaitBoard::addHeap(uint32_t rank, uint64_t base, uint64_t bytes) {
  record(fmt::format("heap\t{}", rank), fmt::format("heap\t{}\t{}\t{}\n", rank, base, bytes));
}

void WaitBoard::addKernel(uint32_t hash, std::string_view name, std::string_view sourceFile) {
  record(fmt::format("kernel\t{}", hash), fmt::format("kernel\t{}\t{}\t{}\n", hash, field(name), field(sourceFile)));
}

void WaitBoard::record(std::string key, std::string line) {
  std::lock_guard lock(mutex);
  if (!mapping)
    return;
  std::string &known = records[std::move(key)];
  if (known == line)
    return;
  known = std::move(line);
  append(known);
}

void WaitBoard::append(std::string_view line) {
  DitronBoardHead &head = this->head();
  const uint64_t used = head.tableUsed;
  if (used + line.size() > head.tableBytes) {
    rewrite();
    return;
  }
  // The rest of the table is allocated when it is needed; without room the names end here.
  if (used + line.size() > firstTableBytes &&
      posix_fallocate(file, static_cast<off_t>(tableOffset + used), static_cast<off_t>(line.size())) != 0)
    return;
  std::memcpy(static_cast<char *>(mapping) + tableOffset + used, line.data(), line.size());
  std::atomic_ref(head.tableUsed).store(used + line.size(), std::memory_order_release);
}

void WaitBoard::rewrite() {
  DitronBoardHead &head = this->head();
  std::atomic_ref generation(head.generation);
  generation.fetch_add(1, std::memory_order_acq_rel);
  uint64_t used = 0;
  char *table = static_cast<char *>(mapping) + tableOffset;
  for (const auto &[key, line] : records) {
    if (used + line.size() > head.tableBytes)
      break;
    std::memcpy(table + used, line.data(), line.size());
    used += line.size();
  }
  std::atomic_ref(head.tableUsed).store(used, std::memory_order_release);
  generation.fetch_add(1, std::memory_order_acq_rel);
}

} // namespace ditron::explain
