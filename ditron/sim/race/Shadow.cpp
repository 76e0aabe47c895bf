//===- Shadow.cpp - Who touched a word last -----------------------------------------------------------------------===//
#include "ditron/sim/race/Shadow.h"

#include <sys/mman.h>

namespace ditron::sim::race {

Shadow::Shadow(uint64_t memoryBytes) {
  constexpr uint64_t page = 4096;
  bytes = ((memoryBytes + wordBytes - 1) / wordBytes * sizeof(Cell) + page - 1) / page * page;
  void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  memory = mapped == MAP_FAILED ? nullptr : static_cast<Cell *>(mapped);
}

Shadow::~Shadow() {
  if (memory)
    munmap(memory, bytes);
}

} // namespace ditron::sim::race
