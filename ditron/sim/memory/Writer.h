//===- Writer.h - Who wrote a word ----------------------------------------------------------------------*- C++ -*-===//
//
// The record that answers "who wrote this last" in deadlock reports and draws arrows in traces. It may outlive the code
// that wrote, so it holds source places by number (PlaceTable) and not as pointers into that code.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_MEMORY_WRITER_H
#define DITRON_SIM_MEMORY_WRITER_H

#include "ditron/abi/Simulator.h"
#include "ditron/sim/Machine.h"

#include <string>
#include <unordered_map>
#include <vector>

namespace ditron::sim {

struct Writer {
  enum class Kind : uint8_t {
    None,   ///< Nobody that the machine saw.
    Kernel, ///< A thread of a kernel; name is the kernel's.
    Stream, ///< A stream operation; name is the stream's.
    Copy,   ///< A copy engine; name is the copy's.
  };
  Kind kind = Kind::None;
  uint32_t rank = 0;
  uint32_t name = 0;  ///< Index into the trace's table of names.
  uint32_t track = 0; ///< Track of the trace on which the write happened.
  uint32_t block[3] = {0, 0, 0};
  uint32_t place = 0; ///< Source line of a kernel, as a number of the PlaceTable; 0 when unknown.
  SimTime time = 0;
};

/// Source places by number, copied from sites while their code is loaded.
class PlaceTable {
public:
  /// The number of the site's place; 0 for null.
  uint32_t record(const DitronSimSite *site) {
    if (!site)
      return 0;
    auto [it, isNew] = numbers.try_emplace(site, 0u);
    // Another module may have been loaded at the address of one that is gone.
    if (isNew || !places[it->second - 1].is(*site)) {
      places.push_back({site->file, site->line, site->column});
      it->second = static_cast<uint32_t>(places.size());
    }
    return it->second;
  }
  /// Whether the first place stands on a line before that of the second in one file; both are numbers that are not 0.
  bool isOnEarlierLine(uint32_t first, uint32_t second) const {
    const Place &a = places[first - 1], &b = places[second - 1];
    return a.file == b.file && a.line < b.line;
  }
  /// "file.py:3:4" of a number that is not 0.
  std::string text(uint32_t number) const {
    const Place &place = places[number - 1];
    return place.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
  }

private:
  struct Place {
    std::string file;
    uint32_t line, column;
    bool is(const DitronSimSite &site) const { return line == site.line && column == site.column && file == site.file; }
  };
  std::vector<Place> places;
  std::unordered_map<const DitronSimSite *, uint32_t> numbers;
};

} // namespace ditron::sim

#endif // DITRON_SIM_MEMORY_WRITER_H
