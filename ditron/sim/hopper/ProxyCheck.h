//===- ProxyCheck.h - Ordinary and asynchronous accesses of shared memory -------------------------------*- C++ -*-===//
//
// Tensor copies and warpgroup multiplies reach shared memory through the asynchronous proxy: nothing orders them with the
// ordinary accesses of threads but fence_async and a wait. Every 16 bytes of shared memory carry a mark: who wrote them
// last by an ordinary store, and how many asynchronous reads and writes of them are in flight. An asynchronous read of an
// ordinary write needs a fence on the way from the one to the other: by the writer, and a meeting of threads after it unless reader
// and writer are of one warp; or by a thread that knows of the store, and that is the reader or is known to the reader. Ordinary
// accesses of what is in flight are errors.
//
// Who knows of whom the race detector says. Without it, and behind the writer's own fence, meetings are counted for the whole block and not
// per pair of threads: what is reported is wrong, not everything wrong is reported. Each thread's last fences are kept. Works only for blocks
// whose accesses are checked; otherwise every call does nothing.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_HOPPER_PROXYCHECK_H
#define DITRON_SIM_HOPPER_PROXYCHECK_H

#include "ditron/abi/Simulator.h"
#include "ditron/sim/race/Strand.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ditron::sim {

class Block;
struct Thread;

/// What a thread has done to let asynchronous operations see its stores.
struct ProxyFences {
  uint32_t count = 0;    ///< fence_async calls so far.
  uint64_t meetings = 0; ///< The block's meetings at the last of them.
  /// The last of them, by their number. Who made it, with what knowledge, when races are looked for.
  struct One {
    uint64_t meetings = 0;
    race::Actor actor;
    race::KnowledgeRef known;
  };
  std::array<One, 4> last;
  uint32_t numLast() const { return count < last.size() ? count : static_cast<uint32_t>(last.size()); }
};

/// Shared memory that an asynchronous operation uses, from its issue until threads know that it is done.
struct SharedUse {
  /// In the order in which reports name them.
  enum class Kind : uint8_t { TensorLoad, Multiply, TensorStore };
  Kind kind;
  bool active;
  uint32_t owner;  ///< The warpgroup or the thread.
  uint64_t number; ///< Of the use: they count up.
  const DitronSimSite *site;
  uint32_t first, end;             ///< Chunks of 16 bytes side by side.
  std::vector<uint32_t> scattered; ///< And others.
};

class ProxyCheck {
public:
  explicit ProxyCheck(Block &block) : block(block) {}

  /// Prepares for a block with that much shared memory.
  void reset(uint64_t sharedBytes);
  /// Drops everything.
  void clear();
  bool isOn() const { return !chunks.empty(); }

  //===- What threads do ------------------------------------------------------------------------------------------===//

  void noteStore(Thread &thread, const void *address, uint64_t bytes, const DitronSimSite *site);
  void noteLoad(Thread &thread, const void *address, uint64_t bytes, const DitronSimSite *site) {
    if (loadsInFlight)
      checkLoad(thread, address, bytes, site);
  }
  void fence(Thread &thread);
  /// Threads of the block have met: ordinary writes before it are ordered before what follows.
  void noteMeeting() { ++meetings; }

  //===- What asynchronous operations do; null is the use when checks are off -------------------------------------===//

  /// A tensor load, issued by the thread, will write these bytes. `what` names it in errors.
  SharedUse *beginLoad(Thread &thread, uint32_t shared, uint32_t bytes, std::string_view what,
                       const DitronSimSite *site);
  /// A tensor store will read these bytes.
  SharedUse *beginStore(Thread &thread, uint32_t shared, uint32_t bytes, std::string_view what,
                        const DitronSimSite *site);
  /// A multiply of the warpgroup will read what addRead says.
  SharedUse *beginMultiply(uint32_t warpgroup, const DitronSimSite *site);
  void addRead(SharedUse &use, Thread &thread, uint32_t chunk, std::string_view what) {
    if (chunks[chunk].site || chunks[chunk].writers)
      checkRead(thread, chunk, what, use.site);
    ++chunks[chunk].readers;
    use.scattered.push_back(chunk);
  }
  void end(SharedUse *use);
  /// Who has stored and fenced has no names any more in the race detector.
  void forgetStores();

private:
  struct Chunk {
    const DitronSimSite *site =
        nullptr;           ///< Last ordinary write that no asynchronous read has accepted; null when none.
    uint32_t fences = 0;   ///< The writer's fences then.
    uint32_t meetings = 0; ///< The block's meetings then.
    race::Moment stored;
    uint16_t thread = 0; ///< The writer.
    uint8_t readers = 0; ///< Asynchronous reads in flight.
    uint8_t writers = 0; ///< Tensor loads in flight.
  };
  SharedUse &begin(SharedUse::Kind kind, uint32_t owner, uint32_t first, uint32_t end, const DitronSimSite *site);
  void checkLoad(Thread &thread, const void *address, uint64_t bytes, const DitronSimSite *site);
  void checkRead(Thread &thread, uint32_t chunk, std::string_view what, const DitronSimSite *site);
  /// A fence of a thread other than the writer stands between the store and what the thread does now.
  bool isFencedOnTheWay(Thread &thread, const Chunk &mark);
  bool isOnTheWay(Thread &fencing, const ProxyFences::One &fence, Thread &thread, const Chunk &mark);
  [[noreturn]] void fail(Thread &thread, const std::string &what, const DitronSimSite *site);
  std::string useText(uint32_t chunk) const;

  Block &block;
  std::vector<Chunk> chunks; ///< Empty when checks are off.
  std::vector<std::unique_ptr<SharedUse>> uses;
  uint64_t usesBegun = 0;
  uint32_t loadsInFlight = 0;
  uint64_t meetings = 0;
};

} // namespace ditron::sim

#endif // DITRON_SIM_HOPPER_PROXYCHECK_H
