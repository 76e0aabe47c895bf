//===- AddressText.cpp - Addresses of arrays as text --------------------------------------------------------------===//
#include "ditron/values/AddressText.h"

#include "ditron/values/LiteralText.h"
#include "ditron/values/TextPieces.h"

#include <fmt/format.h>

namespace ditron::values {

Expected<AddressText> parseAddressText(std::string_view name, std::string_view text) {
  constexpr std::string_view form = "an address is written ptr:x, ptr:x[2,0] for an element, ptr:x@3 for rank 3's copy";
  AddressText address;
  std::string_view rest = text.substr(addressMark.size());
  if (const size_t at = rest.rfind('@'); at != std::string_view::npos) {
    address.rank = wholeNumber<uint32_t>(rest.substr(at + 1));
    if (!address.rank)
      return badArgument(name, text, fmt::format("'{}' is no rank; {}", rest.substr(at + 1), form));
    rest = rest.substr(0, at);
  }
  if (const size_t open = rest.find('['); open != std::string_view::npos) {
    if (!rest.ends_with(']'))
      return badArgument(name, text, fmt::format("the index has no closing ']'; {}", form));
    std::string_view items = rest.substr(open + 1, rest.size() - open - 2);
    while (true) {
      const size_t comma = std::min(items.find(','), items.size());
      std::string_view item = items.substr(0, comma);
      while (item.starts_with(' '))
        item.remove_prefix(1);
      const std::optional<int64_t> value = wholeNumber<int64_t>(item);
      if (!value || *value < 0)
        return badArgument(name, text, fmt::format("'{}' is no index from 0; {}", item, form));
      address.index.push_back(*value);
      if (comma == items.size())
        break;
      items.remove_prefix(comma + 1);
    }
    rest = rest.substr(0, open);
  }
  if (rest.empty())
    return badArgument(name, text, fmt::format("the array's name is missing; {}", form));
  address.array = rest;
  return address;
}

} // namespace ditron::values
