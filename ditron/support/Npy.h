//===- Npy.h - NumPy array files ------------------------------------------------------------------------*- C++ -*-===//
//
// Reads and writes .npy files, versions 1 to 3: little-endian b1, i1-i8, u1-u8, f2, f4, f8 in C order. What NumPy
// cannot name is kept as words: bf16 and the fp8 types are written as u2 and u1 (and 2-byte or 1-byte void, as
// ml_dtypes writes them, is read as such words); the caller says what the words mean.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SUPPORT_NPY_H
#define DITRON_SUPPORT_NPY_H

#include "ditron/support/DataType.h"

#include <span>

namespace ditron {

/// An array in memory, C order.
struct NpyArray {
  DataType type = DataType::F32;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;

  int64_t elementCount() const;
};

/// Number of elements of a shape; 1 for a scalar.
int64_t elementCount(std::span<const int64_t> shape);
/// "128x64", or "scalar".
std::string shapeToString(std::span<const int64_t> shape);

/// Reads a file. Errors name the file and say what is wrong with it and what is accepted.
Expected<NpyArray> readNpy(const std::string &path);
/// Reads an array from the bytes of a file; `name` stands for the file in errors.
Expected<NpyArray> parseNpy(std::span<const std::byte> bytes, const std::string &name);

/// Writes a file (version 1, C order). `data` holds the elements of `shape`; its size is checked.
Status writeNpy(const std::string &path, DataType type, std::span<const int64_t> shape,
                std::span<const std::byte> data);
/// The bytes of such a file.
std::vector<std::byte> formatNpy(DataType type, std::span<const int64_t> shape, std::span<const std::byte> data);

} // namespace ditron
#endif // DITRON_SUPPORT_NPY_H
