//===- package_file_test.cpp - The bytes of a package -------------------------------------------------------------------===//
#include "SamplePackage.h"

#include "ditron/package/PackageFile.h"
#include "ditron/package/PackageProvider.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <random>

using namespace ditron;
using namespace ditron::package;
using testing::HasSubstr;

namespace {

std::string errorOf(std::string_view bytes) {
  const Expected<Package> package = readPackage(bytes);
  return package.isOk() ? "it is a package" : package.status().message();
}

/// With the hash of what the bytes are now.
std::string rehashed(std::string bytes) {
  const std::string digits = cache::sha256(std::string_view(bytes).substr(0, bytes.size() - hashBytes));
  for (size_t i = 0; i < hashBytes; ++i)
    bytes[bytes.size() - hashBytes + i] = static_cast<char>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
  return bytes;
}

/// A value that what is read from the bytes can be used for without running it.
void useAll(const Package &package) {
  EXPECT_TRUE(readPackage(writePackage(package)).isOk());
  for (const char *target : {"cuda:sm_90a", "sim"}) {
    Expected<std::unique_ptr<PackageProvider>> provider = PackageProvider::create({{"p", package}}, {.target = target});
    ASSERT_TRUE(provider.isOk());
    alignas(64) static int words[16];
    const runtime::Pointer out = {words, DataType::I32};
    const runtime::CallArguments call = {{out, 1, 64}, {}};
    Expected<runtime::Specialisation> variant = (*provider)->specialise({"sample.py", "", "", "sample"}, call, {});
    if (variant.isOk())
      (void)variant->kernel.pack(variant->arguments).status();
  }
}

} // namespace

TEST(PackageFile, whatIsWrittenIsRead) {
  const Package package = richPackage();
  const std::string bytes = writePackage(package);
  Expected<Package> read = readPackage(bytes);
  ASSERT_TRUE(read.isOk()) << read.status().message();
  EXPECT_EQ(writePackage(*read), bytes);
  EXPECT_EQ(read->compiler, "ditron 0.0.0, for tests");
  const Variant &rich = read->kernels.at(0).variants.at(1);
  EXPECT_EQ(rich.items.at(1).block, (std::vector<uint32_t>{128, 64}));
  EXPECT_TRUE(isSameValue(rich.items.at(4).value, ~uint64_t(0)));
  EXPECT_EQ(rich.items.at(5).value.get<std::string>(), "a \"text\"\n");
  EXPECT_EQ(rich.artifact.tensorMaps.at(0), package.kernels[0].variants[1].artifact.tensorMaps[0]);
  EXPECT_EQ(read->plans.at(0).workspaceBytes, 4096u);
}

TEST(PackageFile, theBytesAreThoseOfTheDocument) {
  Package package;
  package.compiler = "abc";
  const std::string bytes = writePackage(package);
  const std::string expected = std::string("DITRONPK") + std::string("\3\0\0\0\0\0\0\0", 8) + // magic, version 3, zero
                               std::string("\x4b\0\0\0\0\0\0\0", 8) +                         // 75 bytes
                               std::string("\3\0\0\0abc", 7) + std::string(12, '\0'); // compiler, three empty lists
  ASSERT_EQ(bytes.size(), 75u);
  EXPECT_EQ(bytes.substr(0, expected.size()), expected);
  EXPECT_EQ(rehashed(bytes), bytes);
}

TEST(PackageFile, whatIsNoPackageIsSaid) {
  const std::string bytes = writePackage(richPackage());
  EXPECT_EQ(errorOf(""), "it is empty");
  EXPECT_EQ(errorOf("import triton"), "it is no package of Ditron");
  EXPECT_THAT(errorOf(bytes.substr(0, 40)), HasSubstr("less than the smallest"));
  EXPECT_THAT(errorOf(bytes + "x"), HasSubstr("cut short or appended to"));
  std::string other = bytes;
  other[8] = 4;
  EXPECT_THAT(errorOf(rehashed(other)), HasSubstr("version 4 of the format; this program reads 3"));
  other = bytes;
  other[bytes.size() / 2] ^= 1;
  EXPECT_THAT(errorOf(other), HasSubstr("do not match its hash"));
}

TEST(PackageFile, everyTruncationIsAnErrorWithTheHashRepairedToo) {
  const std::string bytes = writePackage(richPackage());
  for (size_t size = 0; size < bytes.size(); ++size) {
    std::string cut = bytes.substr(0, size);
    EXPECT_FALSE(readPackage(cut).isOk()) << size;
    if (size < headerBytes + hashBytes)
      continue;
    for (size_t i = 0; i < 8; ++i)
      cut[16 + i] = static_cast<char>(size >> 8 * i);
    EXPECT_THAT(errorOf(rehashed(cut)), HasSubstr("malformed")) << size;
  }
}

TEST(PackageFile, everyChangedByteIsFound) {
  const std::string bytes = writePackage(richPackage());
  for (size_t place = 0; place < bytes.size(); ++place) {
    std::string changed = bytes;
    changed[place] ^= 0x10;
    EXPECT_FALSE(readPackage(changed).isOk()) << place;
  }
}

TEST(PackageFile, contentsThatContradictThemselvesAreRefused) {
  auto errorWith = [](auto change) {
    Package package = richPackage();
    change(package.kernels[0].variants[1], package);
    return errorOf(writePackage(package));
  };
  EXPECT_EQ(errorWith([](Variant &, Package &) {}), "it is a package");
  EXPECT_THAT(errorWith([](Variant &v, Package &) { v.artifact.tensorMaps[0].base = 5; }), HasSubstr("a tensor map"));
  EXPECT_THAT(errorWith([](Variant &v, Package &) { v.artifact.tensorMaps[0].sizes[0].parameter = 7; }), HasSubstr("parameter 7"));
  EXPECT_THAT(errorWith([](Variant &v, Package &) { v.artifact.tensorMaps[0].sizes[0].parameter = 0; }), HasSubstr("no integer"));
  EXPECT_THAT(errorWith([](Variant &v, Package &) { v.artifact.parameters[0].bytes = 4; }), HasSubstr("has 4 bytes"));
  EXPECT_THAT(errorWith([](Variant &, Package &p) { p.kernels[0].variants[0].artifact.parameters.pop_back(); }), HasSubstr("is not what the code takes"));
  EXPECT_THAT(errorWith([](Variant &v, Package &) { v.artifact.numWarps = 3; }), HasSubstr("3 warps"));
  EXPECT_THAT(errorWith([](Variant &v, Package &) { v.artifact.target = "cuda:sm_12"; }), HasSubstr("unknown target"));
  EXPECT_THAT(errorWith([](Variant &v, Package &) { v.codes.clear(); }), HasSubstr("no code"));
  EXPECT_THAT(errorWith([](Variant &v, Package &) { v.codes[0].kind = ArtifactCode::HostObject; }), HasSubstr("cannot have"));
  EXPECT_THAT(errorWith([](Variant &v, Package &) { v.codes[0].kind = ArtifactCode::Cubin; }), HasSubstr("no ELF file"));
  EXPECT_THAT(errorWith([](Variant &v, Package &) { v.items[0].path = "other"; }), HasSubstr("'other' is no parameter"));
  EXPECT_THAT(errorWith([](Variant &v, Package &) { v.items[0].type = "*fp7"; }), HasSubstr("'*fp7'"));
  EXPECT_THAT(errorWith([](Variant &v, Package &) { v.items[0].divisibility = 0; }), HasSubstr("a multiple of 0"));
  EXPECT_THAT(errorWith([](Variant &, Package &p) { p.kernels.push_back(p.kernels[0]); }), HasSubstr("is there twice"));
  EXPECT_THAT(errorWith([](Variant &, Package &p) { p.kernels[0].source.hash = "abc"; }), HasSubstr("hash"));
}

TEST(PackageFile, aHundredThousandMutationsWithTheHashRepairedAreErrorsOrPackages) {
  std::vector<std::string> seeds = {writePackage(richPackage()), writePackage(samplePackage({sampleVariant("sim:sm_80", "i32"), sampleVariant("sim:sm_80", "")}))};
  std::mt19937_64 random(20261123);
  size_t read = 0;
  for (int round = 0; round < 100000; ++round) {
    std::string bytes = seeds[random() % seeds.size()];
    for (int change = 0, changes = 1 + random() % 3; change < changes; ++change) {
      const size_t place = headerBytes + random() % (bytes.size() - headerBytes - hashBytes);
      switch (random() % 4) {
      case 0: bytes[place] = static_cast<char>(random()); break;
      case 1: bytes[place] = static_cast<char>(bytes[place] ^ (1 << random() % 8)); break;
      case 2: bytes[place] = "\0\1\x7f\xff"[random() % 4]; break;
      default: // a piece of it elsewhere
        std::copy_n(bytes.begin() + headerBytes + random() % (bytes.size() - headerBytes - hashBytes - 8), 8,
                    bytes.begin() + std::min(place, bytes.size() - hashBytes - 8));
      }
    }
    if (Expected<Package> package = readPackage(rehashed(std::move(bytes))); package.isOk()) {
      ++read;
      if (read % 16 == 0)
        useAll(*package);
    }
  }
  RecordProperty("packages", static_cast<int>(read));
  EXPECT_GT(read, 1000u); // texts may be anything
  EXPECT_LT(read, 99000u);
}

TEST(PackageFile, filesAreSavedAndLoadedAndNamedInErrors) {
  const std::string path = testing::TempDir() + "/package_file_test.ditron";
  ASSERT_TRUE(savePackage(path, richPackage()).isOk());
  Expected<Package> loaded = loadPackage(path);
  ASSERT_TRUE(loaded.isOk()) << loaded.status().message();
  EXPECT_EQ(writePackage(*loaded), writePackage(richPackage()));
  std::filesystem::resize_file(path, 100);
  EXPECT_THAT(loadPackage(path).status().message(), HasSubstr("package '" + path + "': it has 100 bytes and should have"));
  std::filesystem::remove(path);
  EXPECT_THAT(loadPackage(path).status().message(), HasSubstr(path));
}
