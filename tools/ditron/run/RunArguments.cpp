//===- RunArguments.cpp - Values of parameters on every rank ------------------------------------------------------===//
#include "run/RunArguments.h"

#include "ditron/values/LiteralText.h"
#include "ditron/values/RankText.h"
#include "ditron/values/TupleText.h"

#include <fmt/format.h>

namespace ditron::tool {

using runtime::Argument;

namespace {

/// A value, or an element of a tuple, that is read but not yet made.
struct ReadLeaf {
  std::string path;
  values::ArgumentText value;
};

/// What a parameter is on one rank.
Expected<std::vector<ReadLeaf>> readOnRank(ParameterKind kind, const std::string &name, const std::string &text,
                                           uint32_t rank, uint32_t numRanks) {
  DITRON_ASSIGN_OR_RETURN(const std::string own, values::textForRank(name, text, rank, numRanks));
  DITRON_ASSIGN_OR_RETURN(const std::vector<values::TupleLeaf> leaves, values::parseTupleText(name, own));
  std::vector<ReadLeaf> read;
  for (const values::TupleLeaf &leaf : leaves) {
    DITRON_ASSIGN_OR_RETURN(const std::string spec, values::textForRank(leaf.path, leaf.text, rank, numRanks));
    const bool isQuoted = leaf.path != name && (spec.starts_with('"') || spec.starts_with('\''));
    values::ArgumentText value;
    if (kind == ParameterKind::Constexpr || isQuoted) {
      DITRON_ASSIGN_OR_RETURN(value, values::parseConstexprText(leaf.path, spec));
    } else {
      DITRON_ASSIGN_OR_RETURN(value, values::parseArgumentText(leaf.path, spec, numRanks));
    }
    if (kind == ParameterKind::Memory && !std::holds_alternative<values::ArrayText>(value))
      return invalidArgument(
          fmt::format("--memory {}='{}': an array is expected, such as zeros:fp32[128] or @x.npy", name, text));
    read.push_back({leaf.path, std::move(value)});
  }
  return read;
}

/// The values of one leaf on all ranks: what is an array on one rank is an array on all.
Expected<std::vector<Argument>> makeLeaf(RunArrays &arrays, const std::vector<std::vector<ReadLeaf>> &read,
                                         size_t leaf) {
  const std::string &path = read[0][leaf].path;
  std::vector<Argument> values;
  std::vector<values::ArrayText> texts;
  for (uint32_t rank = 0; rank < read.size(); ++rank) {
    const values::ArgumentText &value = read[rank][leaf].value;
    if (const auto *array = std::get_if<values::ArrayText>(&value)) {
      texts.push_back(*array);
    } else if (const auto *address = std::get_if<values::AddressText>(&value)) {
      DITRON_ASSIGN_OR_RETURN(const runtime::Pointer pointer, arrays.addressOf(*address, rank));
      values.emplace_back(pointer);
    } else {
      values.push_back(std::get<Argument>(value));
    }
  }
  if (texts.empty())
    return values;
  if (!values.empty())
    return invalidArgument(
        fmt::format("argument {}: it is an array on some ranks and none on others; accepted are arrays for all "
                    "ranks or for none",
                    path));
  DITRON_ASSIGN_OR_RETURN(const RunArray *array, arrays.add(path, texts));
  for (uint32_t rank = 0; rank < read.size(); ++rank)
    values.push_back(array->argument(rank));
  return values;
}

} // namespace

bool mentionsAddress(std::string_view text) { return text.find(values::addressMark) != std::string_view::npos; }

Expected<BoundParameter> bindParameter(RunArrays &arrays, uint32_t numRanks, ParameterKind kind,
                                       const std::string &name, const std::string &text) {
  std::vector<std::vector<ReadLeaf>> read;
  for (uint32_t rank = 0; rank < numRanks; ++rank) {
    DITRON_ASSIGN_OR_RETURN(std::vector<ReadLeaf> own, readOnRank(kind, name, text, rank, numRanks));
    const bool isLikeFirst = read.empty() || std::ranges::equal(own, read[0], {}, &ReadLeaf::path, &ReadLeaf::path);
    if (!isLikeFirst)
      return invalidArgument(
          fmt::format("argument {}: the tuple of rank {} has other elements than that of rank 0", name, rank));
    read.push_back(std::move(own));
  }
  BoundParameter bound;
  bound.name = name;
  bound.perRank.resize(numRanks);
  for (size_t leaf = 0; leaf < read[0].size(); ++leaf) {
    DITRON_ASSIGN_OR_RETURN(std::vector<Argument> values, makeLeaf(arrays, read, leaf));
    for (uint32_t rank = 0; rank < numRanks; ++rank)
      bound.perRank[rank].emplace_back(read[0][leaf].path, std::move(values[rank]));
  }
  return bound;
}

void addIntegers(values::IntegerNames &names, const std::vector<BoundParameter::Leaf> &leaves) {
  for (const auto &[path, value] : leaves)
    if (value.is<int64_t>())
      names[path] = value.get<int64_t>();
}

} // namespace ditron::tool
