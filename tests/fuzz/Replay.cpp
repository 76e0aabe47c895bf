//===- Replay.cpp - The corpus without the fuzzer -----------------------------------------------------------------------===//
//
// Tries every file of the folders and files on the command line, so that ordinary builds keep what fuzzing has found.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "tests/fuzz/FrontendFuzz.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

int main(int argc, char **argv) {
  size_t count = 0;
  auto replay = [&](const std::filesystem::path &path) {
    std::ifstream stream(path, std::ios::binary);
    std::fprintf(stderr, "%s\n", path.c_str());
    ditron::fuzz::tryText({std::istreambuf_iterator<char>(stream), {}});
    ++count;
  };
  for (int i = 1; i < argc; ++i) {
    std::filesystem::path path = argv[i];
    if (!std::filesystem::is_directory(path))
      replay(path);
    else
      for (const auto &entry : std::filesystem::directory_iterator(path))
        replay(entry.path());
  }
  std::printf("%zu files tried\n", count);
  // A corpus that was not found is no corpus that passed.
  return count ? 0 : 1;
}
