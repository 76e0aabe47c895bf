//===- entry_test.cpp - Hashes, and entries as bytes --------------------------------------------------------------------===//
#include "ditron/cache/Entry.h"
#include "ditron/cache/Sha256.h"

#include <gmock/gmock.h>
#include <random>

using namespace ditron;
using namespace ditron::cache;
using testing::HasSubstr;

TEST(Sha256, KnownHashes) { // of FIPS 180-4's examples
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesAreAsGoodAsTheWhole) {
  std::string text;
  for (int i = 0; i < 300; ++i)
    text += static_cast<char>(i * 7);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    Sha256 hash;
    hash.add(std::string_view(text).substr(0, cut));
    hash.add(std::string_view(text).substr(cut));
    ASSERT_EQ(hash.finish(), sha256(text)) << cut;
  }
}

static Entry sampleEntry() {
  Entry entry;
  entry.key = sha256("sample");
  entry.compiler = "ditron 0.1.0";
  entry.signature = "*bf16:16, i32";
  entry.options = "cuda:sm_90a;warps=8";
  entry.messages = "a.py:3:1: warning: slow\n";
  Artifact &artifact = entry.artifact;
  artifact.kernel = artifact.entrySymbol = "gemm";
  artifact.target = "cuda:sm_90a";
  artifact.sourceFile = "a.py";
  artifact.parameters = {{"x", "*bf16", 8, 16}, {"n", "i32", 4, 1}};
  artifact.tensorMaps = {{0, {{1, 0}, {-1, 4096}}, {{-1, 4096}, {-1, 1}}, {128, 64}, 128, "bf16", true}};
  artifact.numWarps = 8;
  artifact.launchWarps = 9;
  artifact.sharedBytes = 200000;
  artifact.loopsOverPrograms = true;
  artifact.codeKind = ArtifactCode::Ptx;
  artifact.code = std::string("code\0with\nzeros", 15);
  return entry;
}

TEST(Entry, ReadsWhatItWrote) {
  const Entry entry = sampleEntry();
  Expected<Entry> read = readEntry(writeEntry(entry));
  ASSERT_TRUE(read.isOk()) << read.status().message();
  EXPECT_EQ(read->key, entry.key);
  EXPECT_EQ(read->compiler, entry.compiler);
  EXPECT_EQ(read->signature, entry.signature);
  EXPECT_EQ(read->options, entry.options);
  EXPECT_EQ(read->messages, entry.messages);
  EXPECT_EQ(read->printed, "");
  EXPECT_EQ(read->artifact.kernel, "gemm");
  ASSERT_EQ(read->artifact.parameters.size(), 2u);
  EXPECT_EQ(read->artifact.parameters[1].name, "n");
  EXPECT_EQ(read->artifact.parameters[0].divisibility, 16u);
  EXPECT_EQ(read->artifact.tensorMaps, entry.artifact.tensorMaps);
  EXPECT_EQ(read->artifact.launchWarps, 9u);
  EXPECT_EQ(read->artifact.sharedBytes, 200000u);
  EXPECT_TRUE(read->artifact.loopsOverPrograms);
  EXPECT_EQ(read->artifact.codeKind, ArtifactCode::Ptx);
  EXPECT_EQ(read->artifact.code, entry.artifact.code);
  EXPECT_EQ(writeEntry(*read), writeEntry(entry));
}

TEST(Entry, SaysWhatIsWrong) {
  const std::string good = writeEntry(sampleEntry());
  EXPECT_THAT(readEntry("").status().message(), HasSubstr("empty"));
  EXPECT_THAT(readEntry("\x7f"
                        "ELF\n")
                  .status()
                  .message(),
              HasSubstr("not an entry"));
  std::string other = good;
  other.replace(0, 15, "ditron-kernel 7");
  EXPECT_THAT(readEntry(other).status().message(), HasSubstr("of version 7 of the format; this program reads 2"));
  std::string changed = good;
  changed[changed.find("gemm")] = 'G';
  EXPECT_THAT(readEntry(changed).status().message(), HasSubstr("do not match their hash"));
  EXPECT_THAT(readEntry(good.substr(0, good.size() / 2)).status().message(), HasSubstr("cut short"));
}

TEST(Entry, EveryCutAndEveryFlippedByteIsNoticed) {
  const std::string good = writeEntry(sampleEntry());
  for (size_t size = 0; size < good.size(); ++size)
    ASSERT_FALSE(readEntry(good.substr(0, size)).isOk()) << size;
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 1;
    ASSERT_FALSE(readEntry(bad).isOk()) << i;
  }
  EXPECT_FALSE(readEntry(good + "x").isOk());
}

/// With the right hash, since only then the fields are looked at.
static std::string withHash(const std::string &body) { return body + "sha256 " + sha256(body) + "\n"; }

TEST(Entry, HostileFieldsDoNoHarm) {
  const std::string good = writeEntry(sampleEntry());
  const std::string body = good.substr(0, good.size() - 72);
  ASSERT_EQ(withHash(body), good);
  EXPECT_THAT(readEntry(withHash(body + "more 1\nx\n")).status().message(), HasSubstr("more than an entry"));
  auto replaced = [&](const std::string &from, const std::string &to) {
    std::string text = body;
    EXPECT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
    return readEntry(withHash(text)).status().message();
  };
  EXPECT_THAT(replaced("key 64\n", "key 18446744073709551615\n"), HasSubstr("malformed at the field 'key'"));
  EXPECT_THAT(replaced("key 64\n", "key -1\n"), HasSubstr("malformed at the field 'key'"));
  EXPECT_THAT(replaced("parameters 1\n2\n", "parameters 10\n2000000000\n"),
              HasSubstr("malformed at the field 'parameter'"));
  EXPECT_THAT(replaced("code-kind 1\n1\n", "code-kind 1\n9\n"), HasSubstr("unknown kind"));
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string text = body;
    for (int change = 0; change < 3; ++change)
      text[16 + random() % (text.size() - 16)] = "0123456789 \n\xff"[random() % 13];
    (void)readEntry(withHash(text)); // whatever it says
  }
}
