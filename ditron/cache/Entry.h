//===- Entry.h - One compiled kernel as a file ---------------------------------------------------------------*- C++ -*-===//
//
// Everything about one compiled kernel in one file, so that code and description can never be of two compilations. The bytes:
//
//   ditron-kernel 1                 what this is, and the version of the format
//   key 64                          a field: its name and how many bytes follow
//   9f86d0...
//   ...
//   code 18432
//   <bytes>
//   sha256 <64 digits>              of all bytes before this line
//
// The fields and their order are those of writeEntry; a change of them is a new version of the format. Readers take the bytes
// as hostile: every length is checked against what is there, and nothing is believed before the hash is right.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_CACHE_ENTRY_H
#define DITRON_CACHE_ENTRY_H

#include "ditron/support/Artifact.h"
#include "ditron/support/Status.h"

#include <string_view>

namespace ditron::cache {

struct Entry {
  std::string key;       ///< 64 hexadecimal digits; see Key.h.
  std::string compiler;  ///< Version and build that made it.
  std::string signature; ///< Of the variant.
  std::string options;   ///< CompileOptions::key.
  std::string messages;  ///< Warnings, which a user of the entry sees again.
  std::string printed;   ///< Output of tl.static_print, likewise.
  Artifact artifact;
};

/// The bytes of the file.
std::string writeEntry(const Entry &entry);

/// The entry in the bytes, or InvalidArgument with what is wrong with them: no entry of ours, another version of the format,
/// cut short, damaged.
Expected<Entry> readEntry(std::string_view bytes);

} // namespace ditron::cache

#endif // DITRON_CACHE_ENTRY_H
