//===- Print.cpp - Prints and assertions of kernels -------------------------------------------------------------------===//
//
// Formats as C's printf, from 64-bit words instead of variable arguments.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/abi/Simulator.h"
#include "ditron/sim/engine/Block.h"

#include <bit>
#include <cstdio>
#include <cstring>
#include <string>

namespace ditron::sim {
namespace {

/// One conversion at a time goes to snprintf, with the type of argument that it takes.
std::string formatWords(const char *format, const uint64_t *values) {
  std::string text;
  for (const char *at = format; *at != 0;) {
    if (*at != '%') {
      text += *at++;
      continue;
    }
    if (at[1] == '%') {
      text += '%';
      at += 2;
      continue;
    }
    const char *end = at + 1 + std::strcspn(at + 1, "duxfap");
    if (*end == 0)
      break;
    std::string conversion(at, end + 1);
    at = end + 1;
    char piece[400];
    const uint64_t value = *values++;
    const bool isWide = conversion.find("ll") != std::string::npos;
    if (conversion.back() == 'f' || conversion.back() == 'a')
      std::snprintf(piece, sizeof piece, conversion.c_str(), std::bit_cast<double>(value));
    else if (conversion.back() == 'p')
      std::snprintf(piece, sizeof piece, conversion.c_str(), reinterpret_cast<void *>(value));
    else if (isWide)
      std::snprintf(piece, sizeof piece, conversion.c_str(), static_cast<unsigned long long>(value));
    else
      std::snprintf(piece, sizeof piece, conversion.c_str(), static_cast<unsigned>(value));
    text += piece;
  }
  return text;
}

} // namespace
} // namespace ditron::sim

using namespace ditron;
using namespace ditron::sim;

void ditron_sim_print(DitronSimThread *self, const char *format, const uint64_t *values) {
  asThread(self);
  const std::string text = formatWords(format, values);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void ditron_sim_assertion_failed(DitronSimThread *self, const char *format, const uint64_t *values,
                                 const DitronSimSite *site) {
  Thread &thread = asThread(self);
  thread.block->failThread(thread, StatusCode::InvalidArgument, "assertion failed: " + formatWords(format, values), site);
}
