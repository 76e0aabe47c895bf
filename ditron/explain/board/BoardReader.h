//===- BoardReader.h - What the boards of a process say ----------------------------------------------------*- C++ -*-===//
//
// Reads boards (WaitBoard.h) from any process of the same user, while their owners run, and gives words and kernels their names.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_EXPLAIN_BOARD_BOARDREADER_H
#define DITRON_EXPLAIN_BOARD_BOARDREADER_H

#include "ditron/explain/board/WaitBoard.h"

#include <array>
#include <chrono>
#include <optional>
#include <vector>

namespace ditron::explain {

/// A wait that a GPU has published, in names.
struct PublishedWait {
  uint32_t rank = 0;
  uint32_t pid = 0;
  uint32_t kernelHash = 0;
  std::string kernel;     ///< Empty when it is not known.
  std::string sourceFile; ///< The same.
  uint32_t line = 0, column = 0;
  std::array<uint32_t, 3> block = {0, 0, 0};
  uint32_t thread = 0, sm = 0;
  uint64_t launch = 0; ///< The GPU's number of the launch.
  DitronWaitKind kind = DITRON_WAIT_SIGNAL;
  uint32_t compare = 0; ///< DitronCompare.
  int64_t wanted = 0, seen = 0;
  uint64_t sinceNanoseconds = 0; ///< By the GPU's clock.
  double seconds = 0;  ///< How long it had lasted when it last looked.
  bool stands = false; ///< It did not look at its word while we watched: its GPU is stopped, or has given it up.
  // The word.
  uint64_t address = 0;
  uint32_t wordBytes = 0;
  std::optional<uint32_t> homeRank; ///< None: in memory that nobody has named.
  std::string memory;               ///< Empty when it has no name.
  uint64_t element = 0;             ///< Index into that array,
  uint32_t restBytes = 0;           ///< and bytes beyond it.
};

struct BoardFacts {
  std::string path;
  uint32_t pid = 0, rank = 0, numRanks = 0, gpu = 0;
  std::string gpuName;
  uint64_t slots = 0, slotsTaken = 0;
  std::vector<std::string> kernels; ///< That have been loaded there.
};

struct BoardReading {
  std::vector<BoardFacts> boards;   ///< By rank.
  std::vector<PublishedWait> waits; ///< By rank, kernel, block and thread.
};

/// Reads all boards of the processes, twice, `watched` apart: a loop of a kernel's own does not say when it ends, but it looks no more.
/// An error when none of the processes has one.
Expected<BoardReading> readBoards(const std::vector<uint32_t> &pids,
                                  std::chrono::milliseconds watched = std::chrono::milliseconds(100),
                                  std::string_view folder = boardFolder);
/// The process and all that descend from it: the ranks of a launcher.
std::vector<uint32_t> descendants(uint32_t pid);
/// The processes of this user that have boards.
std::vector<uint32_t> processesWithBoards(std::string_view folder = boardFolder);
/// What the board of this process's own rank says now, waits that have been given up too.
std::vector<PublishedWait> readBoard(const WaitBoard &board);

} // namespace ditron::explain

#endif // DITRON_EXPLAIN_BOARD_BOARDREADER_H
