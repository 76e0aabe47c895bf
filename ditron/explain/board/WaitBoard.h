//===- WaitBoard.h - A rank's board of waits, as its process keeps it --------------------------------------*- C++ -*-===//
//
// The file of abi/WaitBoard.h. It lies in /dev/shm as ditron-UID-PID-RANK-NUMBER, for its user's eyes only. The process that made it holds
// a lock on it for as long as it lives: a file that can be locked belongs to nobody, and whoever comes next removes it. (Process numbers
// would not do: containers may share /dev/shm and not their numbers.)
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_EXPLAIN_BOARD_WAITBOARD_H
#define DITRON_EXPLAIN_BOARD_WAITBOARD_H

#include "ditron/abi/WaitBoard.h"
#include "ditron/support/Status.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace ditron::explain {

/// Where boards lie unless a test says otherwise.
inline constexpr std::string_view boardFolder = "/dev/shm";

/// Whose waits a board shows.
struct BoardOwner {
  uint32_t rank = 0;
  uint32_t gpu = 0; ///< By the driver's numbers.
  std::string gpuName;
};

class WaitBoard {
public:
  /// Makes the file. Removes those of processes that are gone.
  static Expected<std::unique_ptr<WaitBoard>> create(const BoardOwner &owner, std::string_view folder = boardFolder);
  /// Removes the file.
  ~WaitBoard();
  WaitBoard(const WaitBoard &) = delete;
  WaitBoard &operator=(const WaitBoard &) = delete;

  const std::string &path() const { return pathText; }
  DitronWaitSlot *slots() const;
  uint64_t slotsBytes() const { return head().slots * sizeof(DitronWaitSlot); }

  /// The memory at an address, so that words in it have names. `kind` is a word of the table's.
  void addMemory(uint64_t address, uint64_t bytes, uint32_t elementBytes, std::string_view kind, std::string_view name);
  void removeMemory(uint64_t address);
  /// Where this process addresses the symmetric heap of a rank.
  void addHeap(uint32_t rank, uint64_t base, uint64_t bytes);
  /// `hash` stands for the kernel's entry symbol in slots.
  void addKernel(uint32_t hash, std::string_view name, std::string_view sourceFile);
  void setNumRanks(uint32_t count) { head().numRanks = count; }

  /// Work of a GPU may go on writing: the file goes, the memory stays for good.
  void abandon();

private:
  WaitBoard() = default;
  DitronBoardHead &head() const { return *static_cast<DitronBoardHead *>(mapping); }
  /// Replaces the record of that key, and writes it down.
  void record(std::string key, std::string line);
  void append(std::string_view line);
  /// Writes the table anew, without what has been replaced or removed.
  void rewrite();

  std::string pathText;
  int file = -1;
  int owner = 0; ///< The process that made the file: a fork of it must not remove it.
  void *mapping = nullptr;
  size_t mappedBytes = 0;
  std::mutex mutex;
  std::map<std::string, std::string> records; ///< What the table says, by key.
};

/// Removes the boards of this user's processes that are gone; gives their number.
size_t removeStaleBoards(std::string_view folder = boardFolder);

} // namespace ditron::explain

#endif // DITRON_EXPLAIN_BOARD_WAITBOARD_H
