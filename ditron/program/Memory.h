//===- Memory.h - The buffers of a program --------------------------------------------------------------*- C++ -*-===//
//
// Arrays by name, each on every rank: in device, symmetric or pinned host memory. Those that the program declares are there when its
// host code begins; others come and go with steps. Host code of several threads may ask at once.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_PROGRAM_MEMORY_H
#define DITRON_PROGRAM_MEMORY_H

#include "ditron/program/Program.h"

#include "ditron/runtime/World.h"
#include "ditron/values/ArgumentText.h"
#include "ditron/values/SliceText.h"

#include <mutex>

namespace ditron::program {

enum class BufferKind { Device, Symmetric, Host };
std::string_view toString(BufferKind kind);

/// A buffer on one rank, as long as it is allocated.
struct LocalArray {
  std::string name;
  uint32_t rank = 0;
  BufferKind kind = BufferKind::Device;
  runtime::Pointer pointer;
  std::vector<int64_t> shape;
  std::vector<int64_t> block; ///< Not empty: kernels get a tensor descriptor for tiles of this shape.
  bool fillNan = false;

  /// What a kernel gets.
  runtime::Argument argument() const;
};

/// A part of a buffer on a rank.
struct Part {
  LocalArray array;
  std::string text; ///< "x[0:4] on rank 1"
  std::vector<int64_t> shape;
  std::vector<values::ElementRun> runs;
  int64_t elements = 0;
};

class Memory {
public:
  Memory(runtime::World &world, uint64_t dataSeed);
  ~Memory();

  /// What the value of a buffer is on a rank: host: taken off, the rest read.
  struct Value {
    BufferKind kind = BufferKind::Device;
    values::ArrayText text;
  };
  Expected<Value> readValue(const std::string &name, std::string text, uint32_t rank) const;

  /// Allocates and fills the buffer on a rank; symmetric memory by every rank in turn, in the same order (World::allocateSymmetric).
  Status allocate(const std::string &name, const Value &value, uint32_t rank, const Place &place);
  /// Allocates on all ranks, outside of host code.
  Status declare(const BufferDeclaration &buffer, const std::vector<std::string> &perRank);
  /// Forgets the buffer on the rank; its memory goes, that of symmetric buffers with the last rank.
  void free(const std::string &name, uint32_t rank, const Place &place);

  /// The buffer on the rank; an error when it is not allocated, which says since when.
  Expected<LocalArray> find(const std::string &name, uint32_t rank) const;
  bool has(const std::string &name) const;
  /// "x[0:4]@1", seen from a rank.
  Expected<Part> part(std::string_view text, uint32_t rank) const;
  /// What ptr:x[2]@1 means for a rank.
  Expected<runtime::Pointer> addressOf(const values::AddressText &address, uint32_t rank) const;

  /// Host access, past all streams.
  Expected<NpyArray> download(const Part &part) const;
  Status upload(const Part &part, const NpyArray &data) const;
  /// Where a part begins.
  static runtime::Pointer begin(const Part &part) {
    return part.array.pointer + (part.runs.empty() ? 0 : part.runs[0].first);
  }

  uint64_t seed() const { return dataSeed; }

private:
  struct OnRank {
    std::shared_ptr<void> owner; ///< Of device and host memory.
    std::optional<LocalArray> array;
    std::optional<Place> freed; ///< Where, when it is not there any more.
  };
  struct Buffer {
    std::vector<OnRank> ranks;
    runtime::SymmetricBuffer symmetric; ///< As long as one rank has it.
  };

  runtime::World &world;
  const uint64_t dataSeed;
  mutable std::mutex mutex;
  std::map<std::string, Buffer, std::less<>> buffers;
};

} // namespace ditron::program
#endif // DITRON_PROGRAM_MEMORY_H
