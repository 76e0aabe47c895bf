//===- TupleText.h - Tuples of kernel arguments as text -------------------------------------------------*- C++ -*-===//
//
// A tuple is written as in Python, its elements as arguments by themselves are: (@x.npy, 3, zeros:fp32[4]); (1,) has one
// element, ((1, 2), @x.npy) a tuple in it, and (x=3, y=@x.npy) is a named tuple.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_VALUES_TUPLETEXT_H
#define DITRON_VALUES_TUPLETEXT_H

#include "ditron/support/Status.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ditron::values {

/// An element that is no tuple: where it is ("t.0", "t.x.1"), and its text.
struct TupleLeaf {
  std::string path, text;
};

/// The pieces between the commas outside of brackets and quotes, without the spaces around them; nullopt if brackets or quotes
/// are not closed.
std::optional<std::vector<std::string_view>> splitAtCommas(std::string_view text);

/// True for what begins as a tuple.
bool isTupleText(std::string_view text);

/// The elements of a tuple, inner ones taken apart; a text that is no tuple is one leaf. `name` is the parameter.
Expected<std::vector<TupleLeaf>> parseTupleText(std::string_view name, std::string_view text);

} // namespace ditron::values
#endif // DITRON_VALUES_TUPLETEXT_H
