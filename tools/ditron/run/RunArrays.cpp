//===- RunArrays.cpp - The memory of a run ------------------------------------------------------------------------===//
#include "run/RunArrays.h"

#include "ditron/support/Suggest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::tool {

runtime::Argument RunArray::argument(uint32_t rank) const {
  if (block.empty())
    return on(rank);
  return runtime::TensorDescriptor{on(rank), shapes[rank], {}, block, fillNan};
}

Expected<NpyArray> RunArray::download(uint32_t rank) const {
  NpyArray array{type, shapes[rank], {}};
  array.data.resize(static_cast<size_t>(array.elementCount()) * sizeOf(type));
  DITRON_RETURN_IF_ERROR(symmetric.isValid() ? symmetric.download(rank, array.data.data(), array.data.size())
                                             : buffers[rank].download(array.data.data(), array.data.size()));
  return array;
}

namespace {

/// Arrays of one argument differ between ranks in their values and, unless symmetric, their sizes.
Status checkAgreement(const std::string &name, const std::vector<NpyArray> &data, const std::vector<values::ArrayText> &texts) {
  for (size_t rank = 1; rank < data.size(); ++rank) {
    if (data[rank].type != data[0].type)
      return invalidArgument(fmt::format("argument {}: elements are {} on rank 0 but {} on rank {}", name,
                                         toString(data[0].type), toString(data[rank].type), rank));
    if (texts[rank].symmetric != texts[0].symmetric)
      return invalidArgument(fmt::format("argument {}: the array is symmetric on rank {} but not on rank {}; write symm: for all "
                                         "ranks or none",
                                         name, texts[0].symmetric ? 0 : rank, texts[0].symmetric ? rank : 0));
    if (texts[0].symmetric && data[rank].shape != data[0].shape)
      return invalidArgument(
          fmt::format("argument {}: symmetric arrays have one shape, but it is {} on rank 0 and {} on rank {}", name,
                      shapeToString(data[0].shape), shapeToString(data[rank].shape), rank));
    if (texts[rank].block != texts[0].block || texts[rank].fillNan != texts[0].fillNan)
      return invalidArgument(fmt::format("argument {}: the tiles of a tensor descriptor are the same on all ranks, but those of "
                                         "rank {} differ from rank 0's",
                                         name, rank));
  }
  return Status::ok();
}

} // namespace

Expected<const RunArray *> RunArrays::add(const std::string &name, const std::vector<values::ArrayText> &perRank) {
  if (find(name))
    return invalidArgument(fmt::format("argument {}: there is an array of this name already; later kernels get it when {} is left "
                                       "out; another array needs another name: --memory OTHER=... and --arg {}=ptr:OTHER",
                                       name, name, name));
  // Each array is there twice for a while: as data, and on the simulated GPU.
  DITRON_RETURN_IF_ERROR(perRank.front().checkMemory(perRank.size() * (world.machine() ? 2 : 1), name));
  std::vector<NpyArray> data;
  for (uint32_t rank = 0; rank < perRank.size(); ++rank) {
    auto lookup = [&](const values::AddressText &address) { return addressOf(address, rank); };
    Expected<NpyArray> array = perRank[rank].make(rank, dataSeed, name, lookup);
    if (!array.isOk())
      return array.status();
    data.push_back(std::move(*array));
  }
  DITRON_RETURN_IF_ERROR(checkAgreement(name, data, perRank));
  RunArray array;
  array.name = name;
  array.type = data.front().type;
  array.block = perRank.front().block;
  array.fillNan = perRank.front().fillNan;
  if (perRank.front().symmetric) {
    DITRON_ASSIGN_OR_RETURN(array.symmetric, world.allocateSymmetric(array.type, data.front().elementCount(), name));
  }
  for (uint32_t rank = 0; rank < data.size(); ++rank) {
    array.shapes.push_back(data[rank].shape);
    if (array.symmetric.isValid()) {
      DITRON_RETURN_IF_ERROR(array.symmetric.upload(rank, data[rank].data.data(), data[rank].data.size()));
      continue;
    }
    DITRON_ASSIGN_OR_RETURN(runtime::Buffer buffer, world.rank(rank).allocate(array.type, data[rank].elementCount(), name));
    DITRON_RETURN_IF_ERROR(buffer.upload(data[rank].data.data(), data[rank].data.size()));
    array.buffers.push_back(std::move(buffer));
  }
  return &arrays.emplace_back(std::move(array));
}

const RunArray *RunArrays::find(std::string_view name) const {
  for (const RunArray &array : arrays)
    if (array.name == name)
      return &array;
  return nullptr;
}

Expected<const RunArray *> RunArrays::require(std::string_view option, const std::string &name) const {
  if (const RunArray *array = find(name))
    return array;
  std::vector<std::string> names;
  for (const RunArray &array : arrays)
    names.push_back(array.name);
  return invalidArgument(fmt::format("{} {}: no array argument has this name{}; arrays are {}", option, name,
                                     didYouMean(name, names),
                                     names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

Expected<runtime::Pointer> RunArrays::addressOf(const values::AddressText &address, uint32_t rank) const {
  DITRON_ASSIGN_OR_RETURN(const RunArray *array, require("address of", address.array));
  const uint32_t place = address.rank.value_or(rank);
  if (place >= world.numRanks())
    return invalidArgument(fmt::format("address ptr:{}@{}: there {}, 0 to {}", address.array, place,
                                       world.numRanks() == 1 ? "is 1 rank" : fmt::format("are {} ranks", world.numRanks()),
                                       world.numRanks() - 1));
  if (place != rank && !array->symmetric.isValid())
    return invalidArgument(fmt::format("address ptr:{}@{} on rank {}: other ranks see only symmetric arrays; write symm: before {}'s "
                                       "value",
                                       address.array, place, rank, address.array));
  const std::vector<int64_t> &shape = array->shapes[place];
  if (!address.index.empty() && address.index.size() != shape.size())
    return invalidArgument(fmt::format("address ptr:{}[{}]: an index has one number for each dimension of the array's shape {}",
                                       address.array, fmt::join(address.index, ","), shapeToString(shape)));
  int64_t offset = 0;
  for (size_t axis = 0; axis < address.index.size(); ++axis) {
    if (address.index[axis] >= shape[axis])
      return invalidArgument(fmt::format("address ptr:{}[{}]: index {} of dimension {} is outside of the array's shape {}",
                                         address.array, fmt::join(address.index, ","), address.index[axis], axis,
                                         shapeToString(shape)));
    offset = offset * shape[axis] + address.index[axis];
  }
  return array->on(place) + offset;
}

} // namespace ditron::tool
