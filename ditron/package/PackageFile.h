//===- PackageFile.h - Packages as bytes -----------------------------------------------------------------------*- C++ -*-===//
//
// Numbers are little-endian; a text is its length (u32) and its bytes; a list is its length (u32) and its elements; a bool is a
// byte, 0 or 1. docs/packages.md has the whole format, byte by byte; a change of it is a new formatVersion.
//
//   0   "DITRONPK"
//   8   u32 format version
//   12  u32 zero
//   16  u64 bytes of the whole file
//   24  the package
//   end - 32  SHA-256 of all bytes before
//
// Readers take the bytes as hostile: every length is checked against what is there before memory is asked for, every number
// against what it may be, and what was read is verified as a whole (verify() of Package.h).
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_PACKAGE_PACKAGEFILE_H
#define DITRON_PACKAGE_PACKAGEFILE_H

#include "ditron/package/Package.h"

namespace ditron::package {

inline constexpr uint32_t formatVersion = 3;
inline constexpr uint64_t headerBytes = 24, hashBytes = 32;
/// Longest file that is read.
inline constexpr uint64_t mostPackageBytes = uint64_t(4) << 30;

std::string writePackage(const Package &package);
/// The package in the bytes, or what is wrong with them.
Expected<Package> readPackage(std::string_view bytes);

Status savePackage(const std::string &path, const Package &package);
Expected<Package> loadPackage(const std::string &path);

} // namespace ditron::package
#endif // DITRON_PACKAGE_PACKAGEFILE_H
