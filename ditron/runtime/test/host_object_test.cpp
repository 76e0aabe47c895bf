//===- host_object_test.cpp - Mapping compiled code --------------------------------------------------------------------===//
//
// The objects come from the C compiler (host_object_*.c); HOST_OBJECT_FOLDER and the names are set by CMake.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/sim/HostObject.h"

#include "ditron/support/InputFile.h"

#include <cstddef>
#include <cstring>
#include <elf.h>
#include <gmock/gmock.h>
#include <random>

using namespace ditron;
using namespace ditron::runtime;
using testing::HasSubstr;

namespace {

std::string objectOf(const char *path) {
  Expected<std::string> bytes = readWholeFile(path, "object", 1 << 20);
  EXPECT_TRUE(bytes.isOk()) << bytes.status().message();
  return bytes.isOk() ? *bytes : "";
}

const std::string &code() {
  static const std::string bytes = objectOf(HOST_OBJECT_CODE);
  return bytes;
}

double callEntry(const ModuleImage &image, double value, int which) {
  double numbers[2] = {value, 3.0};
  void *arguments[] = {numbers, &which};
  image.hostEntry(arguments);
  return numbers[0];
}

/// Replaces part of the header.
template <typename T> std::string with(size_t offset, T value) {
  std::string bytes = code();
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
  return bytes;
}

std::string errorOf(const std::string &object, std::string_view entry = "entry") {
  Expected<ModuleImage> image = loadHostObject(object, entry);
  return image.isOk() ? "loaded" : image.status().message();
}

} // namespace

TEST(HostObject, codeRunsWithItsConstantsItsDataAndFunctionsFromElsewhere) {
  Expected<ModuleImage> image = loadHostObject(code(), "entry");
  ASSERT_TRUE(image.isOk()) << image.status().message();
  EXPECT_DOUBLE_EQ(callEntry(*image, 27.0, 0), 3.0 + 1.0 + 8.0 + 1000 + 0 + 0.5);
  EXPECT_DOUBLE_EQ(callEntry(*image, -7.0, 1), 7.0 + 2.5 + 8.0 + 1000 + 1 + 0.5);
  EXPECT_DOUBLE_EQ(callEntry(*image, 8.0, 2), 2.0 - 3.0 + 8.0 + 1000 + 2 + 0.5);
}

TEST(HostObject, eachImageHasDataOfItsOwn) {
  Expected<ModuleImage> first = loadHostObject(code(), "entry"), second = loadHostObject(code(), "entry");
  ASSERT_TRUE(first.isOk() && second.isOk());
  EXPECT_DOUBLE_EQ(callEntry(*first, 0.0, 0), 1009.5);
  EXPECT_DOUBLE_EQ(callEntry(*first, 0.0, 0), 1010.5);
  EXPECT_DOUBLE_EQ(callEntry(*second, 0.0, 0), 1009.5);
}

TEST(HostObject, codeStaysMappedAsLongAsItsOwner) {
  Expected<ModuleImage> image = loadHostObject(code(), "entry");
  ASSERT_TRUE(image.isOk());
  ModuleImage kept = *image;
  image = ModuleImage();
  EXPECT_DOUBLE_EQ(callEntry(kept, 0.0, 0), 1009.5);
}

TEST(HostObject, writingToCodeOrConstantsFaults) {
  Expected<ModuleImage> image = loadHostObject(code(), "entry");
  ASSERT_TRUE(image.isOk());
  EXPECT_DEATH(*reinterpret_cast<volatile char *>(image->hostEntry) = 0, "");
}

TEST(HostObject, otherMachinesAndOtherFilesAreRefusedByName) {
  EXPECT_THAT(errorOf("this is not an object file"), HasSubstr("it is no ELF file"));
  EXPECT_THAT(errorOf(""), HasSubstr("it is no ELF file"));
  EXPECT_THAT(errorOf(with<uint16_t>(offsetof(Elf64_Ehdr, e_machine), EM_AARCH64)),
              HasSubstr("the code is for aarch64; simulated targets run on x86-64"));
  EXPECT_THAT(errorOf(with<uint16_t>(offsetof(Elf64_Ehdr, e_type), ET_DYN)), HasSubstr("no relocatable object"));
  EXPECT_THAT(errorOf(code(), "other"), HasSubstr("no entry 'other'"));
}

TEST(HostObject, aFunctionThatNobodyHasIsNamed) {
  EXPECT_THAT(errorOf(objectOf(HOST_OBJECT_MISSING)), HasSubstr("the code calls 'nobody_has_this', which neither"));
}

TEST(HostObject, anArtifactThatDoesNotLinkNamesItsKernel) {
  Artifact artifact;
  artifact.kernel = "broken";
  artifact.entrySymbol = "broken__entry";
  artifact.code = "this is not an object file";
  EXPECT_THAT(makeImage(artifact).status().message(), HasSubstr("cannot link kernel 'broken'"));
}

TEST(HostObject, everyTruncationIsAnErrorOrLoads) {
  for (size_t size = 0; size < code().size(); ++size)
    if (Expected<ModuleImage> image = loadHostObject(std::string_view(code()).substr(0, size), "entry"); image.isOk())
      EXPECT_GT(size, code().size() / 2); // what is cut off may be names of sections, which nobody reads
}

TEST(HostObject, changedBytesAreAnErrorOrLoad) {
  std::mt19937_64 random(20261123);
  size_t loaded = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = code();
    for (int change = 0, changes = 1 + random() % 4; change < changes; ++change) {
      // Most of them in the headers and tables, which are at the ends.
      const size_t end = bytes.size();
      const size_t place = random() % 3 == 0 ? random() % end : random() % 2 ? random() % 64 : end - 1 - random() % std::min<size_t>(end, 2048);
      bytes[place] = random() % 2 ? static_cast<char>(random()) : static_cast<char>(bytes[place] ^ (1 << random() % 8));
    }
    loaded += loadHostObject(bytes, "entry").isOk();
  }
  EXPECT_GT(loaded, 0u); // the code itself may be anything
  EXPECT_LT(loaded, 20000u);
}
