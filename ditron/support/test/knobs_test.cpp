//===- knobs_test.cpp - Environment variables and name suggestions ------------------------------------------------===//
#include "ditron/support/Knobs.h"
#include "ditron/support/Suggest.h"

#include <gmock/gmock.h>

using namespace ditron;
using testing::HasSubstr;

TEST(Suggest, distance) {
  EXPECT_EQ(editDistance("", "abc"), 3u);
  EXPECT_EQ(editDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(editDistance("ab", "ba"), 1u);
  EXPECT_EQ(editDistance("NumWarps", "numwarps"), 0u);
}

TEST(Suggest, nearest) {
  const std::vector<std::string> names = {"num_warps", "num_stages", "grid"};
  EXPECT_EQ(nearestName("num_wraps", names), "num_warps");
  EXPECT_EQ(nearestName("gird", names), "grid");
  EXPECT_EQ(nearestName("colour", names), std::nullopt);
  EXPECT_EQ(didYouMean("num_stage", names), "; did you mean 'num_stages'?");
  EXPECT_EQ(didYouMean("x", names), "");
}

static Expected<Knobs> parse(std::vector<const char *> entries) { return Knobs::parse(entries); }

TEST(Knobs, defaultsAndValues) {
  Expected<Knobs> none = parse({"PATH=/bin", "HOME=/"});
  ASSERT_TRUE(none.isOk());
  EXPECT_TRUE(none->dumpKernel.empty());
  EXPECT_EQ(none->optLevel, 2);
  Expected<Knobs> set = parse({"DITRON_DUMP=gemm", "DITRON_OPT_LEVEL=3", "DITRON_TIMING=yes", "DITRON_VERIFY=0"});
  ASSERT_TRUE(set.isOk()) << set.status().message();
  EXPECT_EQ(set->dumpKernel, "gemm");
  EXPECT_EQ(set->optLevel, 3);
  EXPECT_TRUE(set->timing);
  EXPECT_FALSE(set->verifyPasses);
}

TEST(Knobs, errors) {
  EXPECT_THAT(parse({"DITRON_DMUP=gemm"}).status().message(),
              HasSubstr("DITRON_DMUP is not one of Ditron's; did you mean 'DITRON_DUMP'?"));
  EXPECT_THAT(parse({"DITRON_TIMING=perhaps"}).status().message(), HasSubstr("expected 1 or 0"));
  EXPECT_THAT(parse({"DITRON_OPT_LEVEL=fast"}).status().message(), HasSubstr("expected an integer"));
  EXPECT_THAT(parse({"DITRON_OPT_LEVEL=9"}).status().message(), HasSubstr("expected 0 to 3"));
}

TEST(Knobs, onlyCodeKnobsAreInTheKey) {
  const std::string plain = parse({})->codeKey();
  EXPECT_EQ(parse({"DITRON_DUMP=x"})->codeKey(), plain);
  EXPECT_NE(parse({"DITRON_OPT_LEVEL=0"})->codeKey(), plain);
}

TEST(Knobs, folderOfTheCache) {
  EXPECT_EQ(parse({"HOME=/home/me"})->cacheDir, "/home/me/.cache/ditron");
  EXPECT_EQ(parse({"XDG_CACHE_HOME=/var/cache/me", "HOME=/home/me"})->cacheDir, "/var/cache/me/ditron");
  EXPECT_EQ(parse({"XDG_CACHE_HOME=relative", "HOME=/home/me"})->cacheDir, "/home/me/.cache/ditron");
  EXPECT_EQ(parse({"HOME=/home/me", "DITRON_CACHE_DIR=/scratch"})->cacheDir, "/scratch");
  EXPECT_TRUE(parse({"HOME=/home/me"})->usesCache());
  EXPECT_FALSE(parse({"HOME=/home/me", "DITRON_CACHE=0"})->usesCache());
  EXPECT_FALSE(parse({})->usesCache());
  EXPECT_FALSE(Knobs().usesCache());
  EXPECT_THAT(parse({"DITRON_CACHE_MB=0"}).status().message(), HasSubstr("expected at least 1"));
}

TEST(Knobs, everyRowHasHelp) {
  for (const KnobInfo &info : knobTable()) {
    EXPECT_TRUE(info.name.starts_with("DITRON_"));
    EXPECT_FALSE(info.help.empty()) << info.name;
  }
}
