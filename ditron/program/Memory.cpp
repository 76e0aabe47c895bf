//===- Memory.cpp - The buffers of a program ----------------------------------------------------------------------===//
#include "ditron/program/Memory.h"

#include "ditron/support/Suggest.h"
#include "ditron/values/RankText.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::program {

std::string_view toString(BufferKind kind) {
  switch (kind) {
  case BufferKind::Device: return "device";
  case BufferKind::Symmetric: return "symmetric";
  case BufferKind::Host: return "host";
  }
  return "";
}

runtime::Argument LocalArray::argument() const {
  if (block.empty())
    return pointer;
  return runtime::TensorDescriptor{pointer, shape, {}, block, fillNan};
}

Memory::Memory(runtime::World &world, uint64_t dataSeed) : world(world), dataSeed(dataSeed) {}
Memory::~Memory() = default;

Expected<Memory::Value> Memory::readValue(const std::string &name, std::string text, uint32_t rank) const {
  Value value;
  DITRON_ASSIGN_OR_RETURN(text, values::textForRank(name, text, rank, world.numRanks()));
  const bool isHost = text.starts_with(hostMark);
  const std::string rest = isHost ? text.substr(hostMark.size()) : text;
  DITRON_ASSIGN_OR_RETURN(values::ArgumentText parsed, values::parseArgumentText(name, rest, world.numRanks()));
  auto *array = std::get_if<values::ArrayText>(&parsed);
  if (!array)
    return invalidArgument(fmt::format(
        "buffer {}='{}': an array is expected, such as zeros:fp32[128], symm:zeros:i64[4] or @x.npy", name, text));
  if (isHost && array->symmetric)
    return invalidArgument(fmt::format("buffer {}='{}': memory is symmetric or of the host, not both", name, text));
  value.kind = isHost ? BufferKind::Host : array->symmetric ? BufferKind::Symmetric : BufferKind::Device;
  value.text = std::move(*array);
  return value;
}

Status Memory::allocate(const std::string &name, const Value &value, uint32_t rank, const Place &place) {
  auto lookup = [&](const values::AddressText &address) { return addressOf(address, rank); };
  DITRON_ASSIGN_OR_RETURN(const NpyArray data, value.text.make(rank, dataSeed, name, lookup));
  const uint64_t count = static_cast<uint64_t>(data.elementCount());
  LocalArray array{name, rank, value.kind, {}, data.shape, value.text.block, value.text.fillNan};
  OnRank own;
  runtime::SymmetricBuffer symmetric;
  const std::shared_ptr<runtime::Device> device = world.rank(rank).device();
  switch (value.kind) {
  case BufferKind::Symmetric: {
    DITRON_ASSIGN_OR_RETURN(symmetric, world.allocateSymmetric(data.type, count, name));
    array.pointer = symmetric.on(rank);
    break;
  }
  case BufferKind::Device:
  case BufferKind::Host: {
    const runtime::MemoryKind kind =
        value.kind == BufferKind::Host ? runtime::MemoryKind::HostPinned : runtime::MemoryKind::Device;
    DITRON_ASSIGN_OR_RETURN(void *address, device->allocate(count * sizeOf(data.type), name, sizeOf(data.type), kind));
    own.owner = std::shared_ptr<void>(address, [device](void *memory) { (void)device->free(memory); });
    array.pointer = {address, data.type};
    break;
  }
  }
  // What is made of zeros is there already: nothing is written that others could wait for.
  if (value.text.source != values::ArrayText::Source::Zeros)
    DITRON_RETURN_IF_ERROR(device->upload(array.pointer.address, data.data.data(), data.data.size()));
  own.array = std::move(array);
  std::lock_guard lock(mutex);
  Buffer &buffer = buffers[name];
  buffer.ranks.resize(world.numRanks());
  if (buffer.ranks[rank].array)
    return invalidArgument(fmt::format("buffer '{}' is allocated already", name));
  buffer.ranks[rank] = std::move(own);
  if (symmetric.isValid())
    buffer.symmetric = std::move(symmetric);
  return Status::ok();
}

Status Memory::declare(const BufferDeclaration &buffer, const std::vector<std::string> &perRank) {
  std::vector<Value> all;
  for (uint32_t rank = 0; rank < perRank.size(); ++rank) {
    DITRON_ASSIGN_OR_RETURN(Value value, readValue(buffer.name, perRank[rank], rank));
    if (rank > 0 && value.kind != all[0].kind)
      return invalidArgument(fmt::format("buffer {} is in {} memory on rank 0 but in {} memory on rank {}", buffer.name,
                                         toString(all[0].kind), toString(value.kind), rank));
    if (rank > 0 && value.kind == BufferKind::Symmetric && value.text.shape != all[0].text.shape)
      return invalidArgument(
          fmt::format("buffer {}: symmetric arrays have one shape, but it is {} on rank 0 and {} on rank {}",
                      buffer.name, shapeToString(all[0].text.shape), shapeToString(value.text.shape), rank));
    all.push_back(std::move(value));
  }
  DITRON_RETURN_IF_ERROR(all[0].text.checkMemory(all.size() * (world.machine() ? 2 : 1), buffer.name));
  if (all[0].kind != BufferKind::Symmetric) {
    for (uint32_t rank = 0; rank < all.size(); ++rank)
      DITRON_RETURN_IF_ERROR(allocate(buffer.name, all[rank], rank, buffer.value.place));
    return Status::ok();
  }
  // One allocation for all ranks, outside of host code.
  std::vector<NpyArray> data;
  for (uint32_t rank = 0; rank < all.size(); ++rank) {
    auto lookup = [&](const values::AddressText &address) { return addressOf(address, rank); };
    Expected<NpyArray> own = all[rank].text.make(rank, dataSeed, buffer.name, lookup);
    if (!own.isOk())
      return own.status();
    if (rank > 0 && own->type != data.front().type)
      return invalidArgument(fmt::format("buffer {}: elements are {} on rank 0 but {} on rank {}", buffer.name,
                                         toString(data[0].type), toString(own->type), rank));
    data.push_back(std::move(*own));
  }
  DITRON_ASSIGN_OR_RETURN(
      runtime::SymmetricBuffer symmetric,
      world.allocateSymmetric(data[0].type, static_cast<uint64_t>(data[0].elementCount()), buffer.name));
  Buffer &made = buffers[buffer.name];
  made.ranks.resize(world.numRanks());
  made.symmetric = symmetric;
  for (uint32_t rank = 0; rank < all.size(); ++rank) {
    DITRON_RETURN_IF_ERROR(symmetric.upload(rank, data[rank].data.data(), data[rank].data.size()));
    made.ranks[rank].array = LocalArray{
        buffer.name,           rank, BufferKind::Symmetric, symmetric.on(rank), data[rank].shape, all[rank].text.block,
        all[rank].text.fillNan};
  }
  return Status::ok();
}

void Memory::free(const std::string &name, uint32_t rank, const Place &place) {
  OnRank freed;
  runtime::SymmetricBuffer symmetric;
  std::lock_guard lock(mutex);
  Buffer &buffer = buffers[name];
  freed = std::move(buffer.ranks[rank]);
  buffer.ranks[rank] = {nullptr, std::nullopt, place};
  if (std::ranges::none_of(buffer.ranks, [](const OnRank &each) { return each.array.has_value(); }))
    std::swap(symmetric, buffer.symmetric);
}

bool Memory::has(const std::string &name) const {
  std::lock_guard lock(mutex);
  return buffers.contains(name);
}

Expected<LocalArray> Memory::find(const std::string &name, uint32_t rank) const {
  if (rank >= world.numRanks())
    return invalidArgument(fmt::format(
        "{}@{}: there {}, 0 to {}", name, rank,
        world.numRanks() == 1 ? "is 1 rank" : fmt::format("are {} ranks", world.numRanks()), world.numRanks() - 1));
  std::lock_guard lock(mutex);
  const auto found = buffers.find(name);
  if (found != buffers.end() && found->second.ranks[rank].array)
    return *found->second.ranks[rank].array;
  if (found != buffers.end() && found->second.ranks[rank].freed)
    return Status(StatusCode::OutOfBounds, fmt::format("use after free: buffer '{}' of rank {} was freed at line {}",
                                                       name, rank, found->second.ranks[rank].freed->line));
  std::vector<std::string> names;
  for (const auto &[each, buffer] : buffers)
    names.push_back(each);
  return invalidArgument(found != buffers.end()
                             ? fmt::format("buffer '{}' is not allocated on rank {}", name, rank)
                             : fmt::format("buffer '{}' is not allocated here{}; buffers are {}", name,
                                           didYouMean(name, names),
                                           names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

Expected<Part> Memory::part(std::string_view text, uint32_t rank) const {
  DITRON_ASSIGN_OR_RETURN(const values::SliceText slice, values::parseSliceText(text, ""));
  Part part;
  const uint32_t place = slice.rank.value_or(rank);
  DITRON_ASSIGN_OR_RETURN(part.array, find(slice.name, place));
  values::SliceText own = slice;
  own.rank.reset();
  DITRON_RETURN_IF_ERROR(values::checkSlice(own, {part.array.shape}, ""));
  part.text = fmt::format("{}{} on rank {}", slice.name, slice.brackets, place);
  part.shape = values::shapeOf(slice, part.array.shape);
  part.runs = values::runsOf(slice, part.array.shape);
  part.elements = elementCount(part.shape);
  return part;
}

Expected<runtime::Pointer> Memory::addressOf(const values::AddressText &address, uint32_t rank) const {
  const uint32_t place = address.rank.value_or(rank);
  DITRON_ASSIGN_OR_RETURN(const LocalArray array, find(address.array, place));
  if (place != rank && array.kind == BufferKind::Device)
    return invalidArgument(fmt::format(
        "address ptr:{}@{} on rank {}: other ranks see only symmetric arrays and those of the host; write symm: "
        "before {}'s value",
        address.array, place, rank, address.array));
  int64_t offset = 0;
  if (!address.index.empty() && address.index.size() != array.shape.size())
    return invalidArgument(
        fmt::format("address ptr:{}[{}]: an index has one number for each dimension of the array's shape {}",
                    address.array, fmt::join(address.index, ","), shapeToString(array.shape)));
  for (size_t axis = 0; axis < address.index.size(); ++axis) {
    if (address.index[axis] >= array.shape[axis])
      return invalidArgument(
          fmt::format("address ptr:{}[{}]: index {} of dimension {} is outside of the array's shape {}", address.array,
                      fmt::join(address.index, ","), address.index[axis], axis, shapeToString(array.shape)));
    offset = offset * array.shape[axis] + address.index[axis];
  }
  return array.pointer + offset;
}

Expected<NpyArray> Memory::download(const Part &part) const {
  const size_t size = sizeOf(part.array.pointer.type);
  NpyArray data{part.array.pointer.type, part.shape, std::vector<std::byte>(static_cast<size_t>(part.elements) * size)};
  std::byte *to = data.data.data();
  for (const values::ElementRun &run : part.runs) {
    const uint64_t bytes = static_cast<uint64_t>(run.count) * size;
    DITRON_RETURN_IF_ERROR(
        world.rank(part.array.rank).device()->download(to, (part.array.pointer + run.first).address, bytes));
    to += bytes;
  }
  return data;
}

Status Memory::upload(const Part &part, const NpyArray &data) const {
  const std::byte *from = data.data.data();
  for (const values::ElementRun &run : part.runs) {
    const uint64_t bytes = static_cast<uint64_t>(run.count) * sizeOf(part.array.pointer.type);
    DITRON_RETURN_IF_ERROR(
        world.rank(part.array.rank).device()->upload((part.array.pointer + run.first).address, from, bytes));
    from += bytes;
  }
  return Status::ok();
}

} // namespace ditron::program
