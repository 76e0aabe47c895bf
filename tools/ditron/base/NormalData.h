//===- NormalData.h - Large random operands in a short time ---------------------------------------------------*- C++ -*-===//
//
// Speed depends on the data: multiplying zeros takes less power, hence less time, than multiplying noise. Operands of gigabytes
// are filled by repeating a table of normally distributed values whose length is a prime number, so that no row of a matrix is
// like another; the host knows every element without having them all.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_NORMALDATA_H
#define DITRON_TOOLS_DITRON_NORMALDATA_H

#include "ditron/runtime/Buffer.h"

#include <vector>

namespace ditron::tool {

class NormalData {
public:
  /// int8: with a deviation of 40.
  NormalData(DataType type, uint64_t seed);

  /// Fills the buffer, beginning at a place of the table that `salt` says: other salts give other data.
  Status fill(runtime::Buffer &buffer, uint64_t salt) const;
  /// Element `index` of a buffer filled with `salt`, as it was rounded.
  float at(uint64_t salt, uint64_t index) const { return values[(salt * saltStep + index) % values.size()]; }

private:
  static constexpr uint64_t saltStep = 1000003;
  DataType type;
  std::vector<float> values;    ///< Rounded to the type.
  std::vector<std::byte> bytes; ///< The same in the type.
};

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_NORMALDATA_H
