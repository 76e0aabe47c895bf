//===- BoardReader.cpp - What the boards of a process say -----------------------------------------------------------===//
//
// Nothing here trusts the file: its owner may be older, may write while we read, and may have died half-way.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/explain/board/BoardReader.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <set>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <tuple>
#include <unistd.h>

namespace ditron::explain {

namespace {

struct Memory {
  uint64_t bytes = 0;
  uint32_t elementBytes = 1;
  std::string kind, name;
};
struct Heap {
  uint64_t base = 0, bytes = 0;
};
struct KernelName {
  std::string name, sourceFile;
};

/// The table of one board.
struct Table {
  std::map<uint64_t, Memory> memory; ///< By address.
  std::map<uint32_t, Heap> heaps;    ///< By rank.
  std::map<uint32_t, KernelName> kernels;
};

/// A file that somebody else writes.
class MappedBoard {
public:
  static std::optional<MappedBoard> open(const std::string &path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
      return std::nullopt;
    struct stat facts = {};
    void *mapping = MAP_FAILED;
    if (fstat(file, &facts) == 0 && facts.st_size >= DITRON_BOARD_HEAD_BYTES)
      mapping = mmap(nullptr, static_cast<size_t>(facts.st_size), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapping == MAP_FAILED)
      return std::nullopt;
    MappedBoard board;
    board.mapping =
        std::shared_ptr<const char>(static_cast<const char *>(mapping), [bytes = facts.st_size](const char *at) {
          munmap(const_cast<char *>(at), static_cast<size_t>(bytes));
        });
    board.path = path;
    const DitronBoardHead &head = board.head();
    const auto bytes = static_cast<uint64_t>(facts.st_size);
    if (head.magic != DITRON_BOARD_MAGIC || head.version != DITRON_BOARD_VERSION || head.slotsOffset > bytes ||
        head.slots > (bytes - head.slotsOffset) / sizeof(DitronWaitSlot) || head.tableOffset > bytes ||
        head.tableBytes > bytes - head.tableOffset)
      return std::nullopt;
    return board;
  }

  /// The board of this very process.
  static MappedBoard of(const WaitBoard &board) {
    MappedBoard mapped;
    mapped.mapping = std::shared_ptr<const char>(
        std::shared_ptr<const char>(), reinterpret_cast<const char *>(board.slots()) - DITRON_BOARD_HEAD_BYTES);
    mapped.path = board.path();
    return mapped;
  }

  const DitronBoardHead &head() const { return *reinterpret_cast<const DitronBoardHead *>(mapping.get()); }

  /// The slots that are taken, by number; each as it was at one moment.
  std::map<uint64_t, DitronWaitSlot> slots() const {
    std::map<uint64_t, DitronWaitSlot> taken;
    const auto *first = reinterpret_cast<const DitronWaitSlot *>(mapping.get() + head().slotsOffset);
    for (uint64_t number = 0; number < head().slots; ++number)
      for (int attempt = 0; attempt < 4; ++attempt) {
        const DitronWaitSlot before = copyOf(first[number]), after = copyOf(first[number]);
        if (before.state != DITRON_SLOT_WAITING)
          break;
        if (sameWait(before, after)) {
          taken[number] = after;
          break;
        }
      }
    return taken;
  }

  std::string tableText() const {
    for (int attempt = 0; attempt < 100; ++attempt) {
      const uint64_t generation = read(head().generation);
      const uint64_t used = std::min(read(head().tableUsed), head().tableBytes);
      std::string text(mapping.get() + head().tableOffset, used);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (generation % 2 == 0 && read(head().generation) == generation)
        return text;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return {};
  }

  static bool sameWait(const DitronWaitSlot &a, const DitronWaitSlot &b) {
    return a.state == b.state && a.launch == b.launch && a.since == b.since && a.address == b.address &&
           a.thread == b.thread && std::equal(a.block, a.block + 3, b.block) && a.line == b.line &&
           a.kernel == b.kernel;
  }

  std::string path;

private:
  static uint64_t read(const uint64_t &word) {
    return std::atomic_ref(const_cast<uint64_t &>(word)).load(std::memory_order_acquire);
  }
  static DitronWaitSlot copyOf(const DitronWaitSlot &slot) {
    DitronWaitSlot copy;
    const auto *from = reinterpret_cast<const volatile uint64_t *>(&slot);
    auto *to = reinterpret_cast<uint64_t *>(&copy);
    for (size_t i = 0; i < sizeof(copy) / sizeof(uint64_t); ++i)
      to[i] = from[i];
    std::atomic_thread_fence(std::memory_order_acquire);
    return copy;
  }

  std::shared_ptr<const char> mapping;
};

/// The fields of a line of the table; numbers that are none are 0.
class Fields {
public:
  explicit Fields(std::string_view line) : rest(line) {}
  std::string text() {
    const size_t end = std::min(rest.find('\t'), rest.size());
    std::string field(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return field;
  }
  uint64_t number() {
    const std::string digits = text();
    uint64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  }

private:
  std::string_view rest;
};

Table parseTable(std::string_view text) {
  Table table;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    if (end == std::string_view::npos)
      break;
    Fields line(text.substr(at, end - at));
    at = end + 1;
    const std::string what = line.text();
    if (what == "memory") {
      const uint64_t address = line.number();
      Memory &memory = table.memory[address];
      memory.bytes = line.number();
      memory.elementBytes = static_cast<uint32_t>(std::max<uint64_t>(line.number(), 1));
      memory.kind = line.text();
      memory.name = line.text();
    } else if (what == "freed") {
      table.memory.erase(line.number());
    } else if (what == "heap") {
      Heap &heap = table.heaps[static_cast<uint32_t>(line.number())];
      heap.base = line.number();
      heap.bytes = line.number();
    } else if (what == "kernel") {
      KernelName &kernel = table.kernels[static_cast<uint32_t>(line.number())];
      kernel.name = line.text();
      kernel.sourceFile = line.text();
    }
  }
  return table;
}

const std::pair<const uint64_t, Memory> *memoryAt(const Table &table, uint64_t address) {
  auto next = table.memory.upper_bound(address);
  if (next == table.memory.begin())
    return nullptr;
  const auto &found = *std::prev(next);
  return address - found.first < found.second.bytes ? &found : nullptr;
}

/// Names the word. Symmetric memory of another rank is called as this rank's at the same place.
void nameWord(PublishedWait &wait, const Table &table, uint32_t ownRank) {
  uint64_t address = wait.address;
  uint32_t home = ownRank;
  auto own = table.heaps.find(ownRank);
  for (const auto &[rank, heap] : table.heaps)
    if (rank != ownRank && address - heap.base < heap.bytes && own != table.heaps.end()) {
      home = rank;
      address = address - heap.base + own->second.base;
    }
  const auto *memory = memoryAt(table, address);
  const bool isInOwnHeap = own != table.heaps.end() && address - own->second.base < own->second.bytes;
  if (!memory && home == ownRank && !isInOwnHeap)
    return;
  wait.homeRank = home;
  if (!memory)
    return;
  const uint64_t offset = address - memory->first;
  wait.memory = memory->second.name;
  wait.element = offset / memory->second.elementBytes;
  wait.restBytes = static_cast<uint32_t>(offset % memory->second.elementBytes);
}

PublishedWait describe(const DitronWaitSlot &slot, const Table &table, const DitronBoardHead &head) {
  PublishedWait wait;
  wait.rank = head.rank;
  wait.pid = head.pid;
  wait.kernelHash = slot.kernel;
  // A process with one kernel needs no number for it.
  auto kernel = table.kernels.find(slot.kernel);
  if (kernel == table.kernels.end() && table.kernels.size() == 1)
    kernel = table.kernels.begin();
  if (kernel != table.kernels.end()) {
    wait.kernel = kernel->second.name;
    wait.sourceFile = kernel->second.sourceFile;
  }
  wait.line = slot.line;
  wait.column = slot.column;
  std::copy_n(slot.block, 3, wait.block.begin());
  wait.thread = slot.thread;
  wait.sm = slot.sm;
  wait.launch = slot.launch;
  wait.kind = slot.kind == DITRON_WAIT_LOOP ? DITRON_WAIT_LOOP : DITRON_WAIT_SIGNAL;
  wait.compare = slot.compare;
  wait.wanted = static_cast<int64_t>(slot.wanted);
  // A loop's word comes without its sign.
  wait.seen = wait.kind == DITRON_WAIT_LOOP && slot.wordBytes == 4 ? static_cast<int32_t>(slot.seen)
                                                                   : static_cast<int64_t>(slot.seen);
  wait.sinceNanoseconds = slot.since;
  wait.seconds = slot.lastLooked > slot.since ? static_cast<double>(slot.lastLooked - slot.since) * 1e-9 : 0;
  wait.address = slot.address;
  wait.wordBytes = slot.wordBytes;
  nameWord(wait, table, head.rank);
  return wait;
}

/// The process in the name of a board of this user, or 0.
uint32_t pidOf(const std::filesystem::path &path) {
  const std::string name = path.filename().string(), prefix = fmt::format("ditron-{}-", geteuid());
  uint32_t pid = 0;
  if (name.starts_with(prefix))
    std::from_chars(name.data() + prefix.size(), name.data() + name.size(), pid);
  return pid;
}

template <typename Visit> void forEachBoard(std::string_view folder, Visit visit) {
  std::error_code ignored;
  for (const std::filesystem::directory_entry &entry : std::filesystem::directory_iterator(folder, ignored))
    if (const uint32_t pid = pidOf(entry.path()))
      visit(pid, entry.path().string());
}

BoardFacts factsOf(const MappedBoard &board, const Table &table, uint64_t slotsTaken) {
  const DitronBoardHead &head = board.head();
  BoardFacts facts{board.path, head.pid, head.rank, head.numRanks, head.gpu, {}, head.slots, slotsTaken, {}};
  facts.gpuName.assign(head.name, strnlen(head.name, sizeof(head.name)));
  for (const auto &[hash, kernel] : table.kernels)
    facts.kernels.push_back(kernel.name);
  return facts;
}

void sortWaits(std::vector<PublishedWait> &waits) {
  std::sort(waits.begin(), waits.end(), [](const PublishedWait &a, const PublishedWait &b) {
    return std::tie(a.rank, a.pid, a.kernel, a.line, a.launch, a.block[2], a.block[1], a.block[0], a.thread) <
           std::tie(b.rank, b.pid, b.kernel, b.line, b.launch, b.block[2], b.block[1], b.block[0], b.thread);
  });
}

} // namespace

Expected<BoardReading> readBoards(const std::vector<uint32_t> &pids, std::chrono::milliseconds watched,
                                  std::string_view folder) {
  removeStaleBoards(folder);
  std::vector<MappedBoard> boards;
  forEachBoard(folder, [&](uint32_t pid, const std::string &path) {
    if (std::find(pids.begin(), pids.end(), pid) != pids.end())
      if (std::optional<MappedBoard> board = MappedBoard::open(path))
        boards.push_back(std::move(*board));
  });
  if (boards.empty())
    return Status(StatusCode::NotFound,
                  fmt::format("process {} has published no waits in {}", pids.empty() ? 0 : pids.front(), folder));
  std::sort(boards.begin(), boards.end(), [](const MappedBoard &a, const MappedBoard &b) {
    return std::pair(a.head().rank, a.path) < std::pair(b.head().rank, b.path);
  });
  std::vector<std::map<uint64_t, DitronWaitSlot>> before;
  for (const MappedBoard &board : boards)
    before.push_back(board.slots());
  std::this_thread::sleep_for(watched);
  BoardReading reading;
  for (size_t i = 0; i < boards.size(); ++i) {
    const Table table = parseTable(boards[i].tableText());
    const std::map<uint64_t, DitronWaitSlot> now = boards[i].slots();
    reading.boards.push_back(factsOf(boards[i], table, now.size()));
    for (const auto &[number, slot] : now) {
      auto earlier = before[i].find(number);
      // What began while we watched may end as soon.
      if (earlier == before[i].end() || !MappedBoard::sameWait(earlier->second, slot))
        continue;
      const bool stands = earlier->second.lastLooked == slot.lastLooked;
      if (stands && slot.kind == DITRON_WAIT_LOOP)
        continue;
      reading.waits.push_back(describe(slot, table, boards[i].head()));
      reading.waits.back().stands = stands;
    }
  }
  sortWaits(reading.waits);
  return reading;
}

std::vector<PublishedWait> readBoard(const WaitBoard &board) {
  const MappedBoard mapped = MappedBoard::of(board);
  const Table table = parseTable(mapped.tableText());
  std::vector<PublishedWait> waits;
  for (const auto &[number, slot] : mapped.slots())
    waits.push_back(describe(slot, table, mapped.head()));
  sortWaits(waits);
  return waits;
}

std::vector<uint32_t> processesWithBoards(std::string_view folder) {
  removeStaleBoards(folder);
  std::set<uint32_t> pids;
  forEachBoard(folder, [&](uint32_t pid, const std::string &) { pids.insert(pid); });
  return {pids.begin(), pids.end()};
}

std::vector<uint32_t> descendants(uint32_t pid) {
  std::vector<uint32_t> all = {pid};
  for (size_t next = 0; next < all.size(); ++next) {
    std::error_code ignored;
    for (const auto &task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", all[next]), ignored)) {
      std::ifstream children(task.path() / "children");
      for (uint32_t child; children >> child;)
        if (std::find(all.begin(), all.end(), child) == all.end())
          all.push_back(child);
    }
  }
  return all;
}

} // namespace ditron::explain
