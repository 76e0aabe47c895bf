//===- Knowledge.h - What is known to have happened -----------------------------------------------------*- C++ -*-===//
//
// Vector clocks in the form that GPUs need. A machine has too many threads for a number per thread in every clock, but they
// synchronise in groups: a kernel's end, a block barrier and a warp barrier tell about many threads at once. So an entry
// says one of four things, from coarse to fine:
//
//   stream s up to n      everything that the first n operations of the stream did
//   block b before p      everything that the block's threads did before its p-th block barrier
//   warp w before n       everything that the warp's lanes did before they last met, the n-th time
//   lane w.l up to e      what this lane did up to its e-th release
//
// An entry may stand there in other forms too, which go from thread to thread as the rest does:
//
//   fenced           of the ordinary accesses that it is about, asynchronous copies know as well, since a proxy fence has come in between
//                    (Detector::proxyFence)
//   sealed           a fence of the network, or a quiet, has come in between: puts and signals begun from here on come behind it
//   delivered        the transfers that were begun in it, to one PE or to all, have arrived
//
// Knowledge never changes; threads share it by pointer, and most of them hold that of their block.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_RACE_KNOWLEDGE_H
#define DITRON_SIM_RACE_KNOWLEDGE_H

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace ditron::sim::race {

enum class KeyKind : uint8_t { Stream, Block, Warp, Lane };

/// What an entry is about, as one number.
struct Key {
  uint64_t bits = 0;

  static Key stream(uint32_t id) { return {id}; }
  static Key block(uint32_t id) { return {uint64_t(1) << 62 | id}; }
  static Key warp(uint32_t id) { return {uint64_t(2) << 62 | id}; }
  static Key lane(uint32_t warp, uint32_t lane) { return {uint64_t(3) << 62 | uint64_t(warp) << 6 | lane}; }

  /// The same, for the asynchronous proxy.
  Key fenced() const { return {bits | fencedBit}; }
  bool isFenced() const { return bits & fencedBit; }
  /// The same, in front of the network.
  Key sealed() const { return {bits | sealedBit}; }
  Key unsealed() const { return {bits & ~sealedBit}; }
  bool isSealed() const { return bits & sealedBit; }
  /// Of transfers to the PE that were begun in it.
  Key delivered(uint32_t pe) const { return {bits | (uint64_t(pe) + 1) * deliveredUnit}; }
  bool isDelivered() const { return bits & deliveredBits; }
  /// In none of the other forms.
  bool isPlain() const { return !(bits & (fencedBit | sealedBit | deliveredBits)); }
  /// About something else of the same kind, in the form of this one.
  Key withForm(Key form) const { return {bits | (form.bits & (fencedBit | sealedBit | deliveredBits))}; }

  KeyKind kind() const { return static_cast<KeyKind>(bits >> 62); }
  /// The number of the stream, block or warp; of a lane its warp's.
  uint32_t id() const {
    return static_cast<uint32_t>(kind() == KeyKind::Lane ? (bits & (deliveredUnit - 1)) >> 6 : bits);
  }
  auto operator<=>(const Key &) const = default;

  static constexpr uint32_t allPes = (1u << 18) - 2;

private:
  // Above all numbers.
  static constexpr uint64_t fencedBit = uint64_t(1) << 61, sealedBit = uint64_t(1) << 60,
                            deliveredUnit = uint64_t(1) << 40,
                            deliveredBits = ((uint64_t(1) << 18) - 1) * deliveredUnit;
};

struct Known {
  Key key;
  uint64_t upTo = 0;
  bool operator==(const Known &) const = default;
};

class Knowledge {
public:
  explicit Knowledge(std::vector<Known> sorted);

  /// 0 when nothing is known.
  uint64_t upTo(Key key) const;
  /// Something is known of single lanes of the warp.
  bool hasLaneOf(uint32_t warp) const;
  const std::vector<Known> &entries() const { return known; }
  /// Never used again, unlike an address.
  const uint64_t serial;

private:
  /// The first entry of this key or a greater one.
  std::vector<Known>::const_iterator from(Key key) const;

  std::vector<Known> known;
};

/// Null knows nothing.
using KnowledgeRef = std::shared_ptr<const Knowledge>;

/// Joins knowledge. Threads of a block do the same joins one after the other, so the last results are kept.
class Joiner {
public:
  /// Whether an entry is implied by others of the same knowledge and can be dropped.
  using IsImplied = std::function<bool(const Knowledge &, const Known &)>;
  explicit Joiner(IsImplied isImplied) : isImplied(std::move(isImplied)) {}

  KnowledgeRef join(const KnowledgeRef &a, const KnowledgeRef &b);
  /// `a` and these entries, in any order of keys, which may come twice.
  KnowledgeRef with(const KnowledgeRef &a, std::vector<Known> more);

private:
  struct Done {
    KnowledgeRef a, b, result;
  };
  KnowledgeRef merge(const Knowledge &a, const Knowledge &b);

  static constexpr uint32_t kept = 256;
  const IsImplied isImplied;
  Done done[kept];
  size_t pruneAt = 64;
};

} // namespace ditron::sim::race

#endif // DITRON_SIM_RACE_KNOWLEDGE_H
