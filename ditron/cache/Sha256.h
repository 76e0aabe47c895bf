//===- Sha256.h - SHA-256 of bytes ---------------------------------------------------------------------------*- C++ -*-===//
//
// The hash function of FIPS 180-4, for keys and integrity of cache entries: kernels are looked up by it, so that two that
// differ must not meet. The whole input is hashed at once or in pieces.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_CACHE_SHA256_H
#define DITRON_CACHE_SHA256_H

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace ditron::cache {

class Sha256 {
public:
  void add(std::string_view bytes);
  /// The hash of everything added, as 64 hexadecimal digits. The object is spent afterwards.
  std::string finish();

private:
  void addBlock(const unsigned char *block);

  std::array<uint32_t, 8> state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> pending = {};
  size_t pendingBytes = 0;
  uint64_t totalBytes = 0;
};

/// The hash of one string.
std::string sha256(std::string_view bytes);

} // namespace ditron::cache

#endif // DITRON_CACHE_SHA256_H
