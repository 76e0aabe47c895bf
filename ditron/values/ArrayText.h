//===- ArrayText.h - Arrays as text ---------------------------------------------------------------------*- C++ -*-===//
//
// An array argument that has not been made yet, and how its elements come about: read from a file, generated, or listed.
// Its text forms are in ArgumentText.h.
//
// The numbers of rand: depend on the data seed, the name and the rank; those of rand(S): on S alone, so that all ranks get the
// same, and so do two arguments. {rank} in S makes them differ.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_VALUES_ARRAYTEXT_H
#define DITRON_VALUES_ARRAYTEXT_H

#include "ditron/values/AddressText.h"

#include "ditron/runtime/Argument.h"
#include "ditron/support/Npy.h"

namespace ditron::values {

struct ArrayText {
  enum class Source { File, Zeros, Ones, Full, Arange, Random, List };
  using Element = std::variant<runtime::Argument, AddressText>;

  Source source = Source::Zeros;
  bool symmetric = false;
  std::string path;             ///< Of a file, with {rank} in it.
  std::optional<DataType> type; ///< Always set but for files read as they are.
  std::vector<int64_t> shape;   ///< Not of files.
  std::vector<runtime::Argument> parameters; ///< full(VALUE), arange(FIRST, STEP), rand(SEED).
  std::vector<Element> elements;             ///< Of a list, row-major.
  std::vector<int64_t> block;   ///< Not empty: the argument is a tensor descriptor for tiles of this shape.
  bool fillNan = false;         ///< Of a descriptor: its padding.

  /// Whether it can be made only when other arrays have their places.
  bool hasAddresses() const;
  /// Refuses an array of which this machine cannot hold so many copies. Files are asked for when they are read.
  Status checkMemory(uint64_t copies, std::string_view name) const;
  /// The array for one rank. `seed` makes random numbers; `name` is the parameter.
  Expected<NpyArray> make(uint32_t rank, uint64_t seed, std::string_view name, const AddressLookup &lookup = {}) const;
};

/// GENERATOR:TYPE[SHAPE], where `word` is what stands before the colon: zeros, rand(7), arange(10,2).
Expected<ArrayText> parseGenerator(std::string_view name, std::string_view text, std::string_view word,
                                   std::string_view rest);
/// [1,2,3] or [[1,2],[3,4]] of a type. `numRanks` is what ptr:x@* is expanded to.
Expected<ArrayText> parseList(std::string_view name, std::string_view text, DataType type, uint32_t numRanks);
/// Whether the text before a colon names a generator, with or without parameters.
bool isGenerator(std::string_view word);
/// Their names.
std::vector<std::string> generatorNames();
/// The sizes between brackets: "128,64".
Expected<std::vector<int64_t>> parseShape(std::string_view name, std::string_view text, std::string_view sizes);

/// The array's values in another type. Words (u2, u1, i2, i1 files) are seen as the float type of their width; floats
/// are rounded to it; anything else must be of that type already. Floats that are too large for it are an error or, when there is
/// somewhere to say so, become infinite with a text about it in `overflow`.
Expected<NpyArray> interpretArray(NpyArray array, DataType type, std::string_view name, std::string *overflow = nullptr);

} // namespace ditron::values
#endif // DITRON_VALUES_ARRAYTEXT_H
