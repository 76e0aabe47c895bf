//===- ArgumentText.cpp - Kernel arguments as text ----------------------------------------------------------------===//
//
// Which of the forms a text has; the forms' own files read them.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/values/ArgumentText.h"

#include "ditron/values/LiteralText.h"

#include "ditron/support/Suggest.h"

#include <algorithm>
#include <fmt/format.h>

namespace ditron::values {

using runtime::Argument;

namespace {

constexpr std::string_view acceptedForms = "accepted are a literal (3, 2.5, true, None, i64:7, fp32:1.5), "
                                           "scalar@n.npy, @x.npy, bf16@x.npy, zeros:fp32[128,64] (also "
                                           "ones, full(2.5), arange, rand), i32:[1,2,3], an address (ptr:x, "
                                           "ptr:x[2,0], ptr:x@3) or a list of them, symm: before an "
                                           "array, and desc[64,32]: before all for a tensor descriptor";

/// desc[SIZES]REST or desc[SIZES,nan]REST, where REST describes an array, with a colon before it unless it begins with '@'.
Expected<ArgumentText> parseDescriptorText(std::string_view name, std::string_view text) {
  const size_t close = text.find(']');
  if (close == std::string_view::npos)
    return badArgument(name, text, "the tile's shape has no closing ']'; write desc[64,32]@x.npy");
  std::string_view block = text.substr(5, close - 5), rest = text.substr(close + 1);
  const bool fillNan = block.ends_with(",nan");
  if (fillNan)
    block.remove_suffix(4);
  DITRON_ASSIGN_OR_RETURN(std::vector<int64_t> shape, parseShape(name, text, block));
  if (rest.starts_with(':'))
    rest.remove_prefix(1);
  else if (!rest.starts_with('@'))
    return badArgument(name, text,
                       "an array is missing after ']'; write desc[64,32]@x.npy or desc[64,32]:zeros:bf16[100,70]");
  DITRON_ASSIGN_OR_RETURN(ArgumentText described, parseArgumentText(name, rest));
  auto *array = std::get_if<ArrayText>(&described);
  if (!array || !array->block.empty())
    return badArgument(name, text, "a tensor descriptor describes an array; write desc[64,32]@x.npy");
  array->block = std::move(shape);
  array->fillNan = fillNan;
  return described;
}

/// @x.npy or TYPE@x.npy.
Expected<ArrayText> parseFile(std::string_view name, std::string_view text, std::string_view rest, size_t at) {
  ArrayText array;
  array.source = ArrayText::Source::File;
  if (at > 0) {
    Expected<DataType> type = parseDataTypeOrError(rest.substr(0, at));
    if (!type.isOk())
      return badArgument(name, text, type.status().message());
    array.type = *type;
  }
  array.path = rest.substr(at + 1);
  if (array.path.empty())
    return badArgument(name, text, "a file name is missing after '@'");
  return array;
}

/// What has a word before a colon: a generator, or a type before a list.
Expected<ArrayText> parseNamedArray(std::string_view name, std::string_view text, std::string_view rest, size_t colon,
                                    uint32_t numRanks) {
  const std::string_view word = rest.substr(0, colon), value = rest.substr(colon + 1);
  if (word == "per-rank")
    return badArgument(name, text, "per-rank: goes in front of everything else, as in per-rank:symm:@a.npy,symm:@b.npy");
  if (isGenerator(word))
    return parseGenerator(name, text, word, value);
  if (std::optional<DataType> type = parseDataType(word); type && value.starts_with('['))
    return parseList(name, value, *type, numRanks);
  std::vector<std::string> known = dataTypeNames();
  std::ranges::copy(generatorNames(), std::back_inserter(known));
  known.emplace_back("symm");
  return badArgument(name, text, fmt::format("'{}' is not known{}; {}", word, didYouMean(word, known), acceptedForms));
}

} // namespace

Expected<ArgumentText> parseArgumentText(std::string_view name, std::string_view text, uint32_t numRanks) {
  if (text.starts_with("desc["))
    return parseDescriptorText(name, text);
  if (text.starts_with(addressMark)) {
    DITRON_ASSIGN_OR_RETURN(AddressText address, parseAddressText(name, text));
    return ArgumentText(std::move(address));
  }
  if (text.starts_with(scalarMark)) {
    DITRON_ASSIGN_OR_RETURN(Argument scalar, readScalar(name, text));
    return ArgumentText(std::move(scalar));
  }
  const bool symmetric = text.starts_with("symm:");
  const std::string_view rest = text.substr(symmetric ? 5 : 0);
  auto asArray = [&](Expected<ArrayText> array) -> Expected<ArgumentText> {
    if (!array.isOk())
      return array.status();
    array->symmetric = symmetric;
    return ArgumentText(std::move(*array));
  };
  if (rest.starts_with('['))
    return asArray(parseList(name, rest, DataType::I64, numRanks));
  // A type has no colon, and a path after '@' may have one.
  const size_t at = rest.find('@'), colon = rest.find(':');
  if (at != std::string_view::npos && (colon == std::string_view::npos || at < colon))
    return asArray(parseFile(name, text, rest, at));
  if (colon != std::string_view::npos) {
    const bool isTypedLiteral =
        !symmetric && parseDataType(rest.substr(0, colon)) && !rest.substr(colon + 1).starts_with('[');
    if (!isTypedLiteral)
      return asArray(parseNamedArray(name, text, rest, colon, numRanks));
    DITRON_ASSIGN_OR_RETURN(Argument literal, parseTypedLiteral(name, text, colon));
    return ArgumentText(std::move(literal));
  }
  if (symmetric)
    return badArgument(name, text, "symm: takes an array, as in symm:@x.npy or symm:zeros:fp32[128,64]");
  DITRON_ASSIGN_OR_RETURN(std::optional<Argument> literal, parseScalar(name, text));
  if (literal)
    return ArgumentText(std::move(*literal));
  return badArgument(name, text, acceptedForms);
}

} // namespace ditron::values
