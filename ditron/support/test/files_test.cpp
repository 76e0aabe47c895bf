//===- files_test.cpp - Files that are written, and files that are read -----------------------------------------------===//
#include "ditron/support/HostMemory.h"
#include "ditron/support/InputFile.h"
#include "ditron/support/Npy.h"
#include "ditron/support/OutputFile.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace ditron {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Files : public testing::Test {
protected:
  Files() {
    std::string pattern = testing::TempDir() + "ditron-files-XXXXXX";
    folder = mkdtemp(pattern.data());
  }
  ~Files() override { fs::remove_all(folder); }

  std::string at(const std::string &name) const { return (folder / name).string(); }
  void make(const std::string &name, const std::string &text) const { std::ofstream(at(name)) << text; }
  std::string read(const std::string &name) const {
    std::ifstream file(at(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  size_t count() const { return std::distance(fs::directory_iterator(folder), fs::directory_iterator()); }

  fs::path folder;
};

TEST_F(Files, NothingIsThereBeforeTheCommit) {
  make("old", "old");
  for (const char *name : {"new", "old"}) {
    Expected<OutputFile> file = OutputFile::create(at(name));
    ASSERT_TRUE(file.isOk()) << file.status().message();
    ASSERT_TRUE(file->write("text").isOk());
  }
  EXPECT_EQ(read("old"), "old");
  EXPECT_EQ(count(), 1u);
}

TEST_F(Files, ACommitReplaces) {
  make("old", "something longer than the new text");
  fs::permissions(at("old"), fs::perms::owner_read | fs::perms::owner_write);
  for (const char *name : {"new", "old"})
    ASSERT_TRUE(writeWholeFile(at(name), "text").isOk());
  EXPECT_EQ(read("new"), "text");
  EXPECT_EQ(read("old"), "text");
  EXPECT_EQ(fs::status(at("old")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(count(), 2u);
}

TEST_F(Files, LinksStay) {
  make("file", "old");
  fs::create_symlink("file", at("link"));
  fs::create_symlink("missing", at("dangling"));
  ASSERT_TRUE(writeWholeFile(at("link"), "new").isOk());
  ASSERT_TRUE(writeWholeFile(at("dangling"), "made").isOk());
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_EQ(read("file"), "new");
  EXPECT_EQ(read("missing"), "made");
}

TEST_F(Files, WhatIsNoFileIsWrittenDirectly) {
  EXPECT_TRUE(writeWholeFile("/dev/null", "text").isOk());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(writeWholeFile("/dev/full", "text").code(), StatusCode::ResourceExhausted);
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(writeWholeFile(at("pipe"), "text").isOk()); // nobody reads
}

TEST_F(Files, ProblemsNameThePath) {
  EXPECT_THAT(writeWholeFile(at("none/x"), "").message(), HasSubstr("none/x': No such file"));
  EXPECT_THAT(writeWholeFile(folder.string(), "").message(), HasSubstr("Is a directory"));
  EXPECT_THAT(writeWholeFile(at("new/"), "").message(), HasSubstr("directory"));
  EXPECT_FALSE(writeWholeFile("", "").isOk());
  EXPECT_EQ(count(), 0u);
}

TEST_F(Files, AFileThatDoesNotFitLeavesTheOldOne) {
  make("old", "old");
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    _exit(writeWholeFile(at("old"), std::string(1 << 22, 'x')).code() == StatusCode::ResourceExhausted ? 7 : 8);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(read("old"), "old");
  EXPECT_EQ(count(), 1u);
}

// As in `docker run -v $PWD/out.npy:/out.npy`: the file cannot be replaced, and what a long run computed must not be lost.
TEST_F(Files, AMountPointIsFilledAnew) {
  make("outside", "something longer than the new text");
  make("mounted", "");
  const pid_t child = fork();
  if (child == 0) {
    const bool may = unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                     mount(at("outside").c_str(), at("mounted").c_str(), nullptr, MS_BIND, nullptr) == 0;
    _exit(!may ? 9 : writeWholeFile(at("mounted"), "text").isOk() ? 7 : 8);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 9)
    GTEST_SKIP() << "this user may not mount";
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(read("outside"), "text");
  EXPECT_EQ(read("mounted"), "");
  EXPECT_EQ(count(), 2u);
}

TEST_F(Files, PrivateFilesAreNew) {
  make("victim", "precious");
  fs::create_symlink("victim", at("link"));
  fs::create_symlink("nothing", at("dangling"));
  for (const char *name : {"victim", "link", "dangling"})
    EXPECT_THAT(writePrivateFile(at(name), "text").message(), HasSubstr("File exists"));
  EXPECT_EQ(read("victim"), "precious");
  EXPECT_FALSE(fs::exists(at("nothing")));
  ASSERT_TRUE(writePrivateFile(at("new"), "text").isOk());
  EXPECT_EQ(fs::status(at("new")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(Files, TwoOutputsToOnePath) {
  make("file", "");
  fs::create_symlink("file", at("link"));
  fs::create_directory(at("sub"));
  auto check = [&](const std::string &a, const std::string &b, bool isRead = false) {
    const NamedFile files[] = {{"--out a", a, isRead}, {"--trace", b}};
    return checkDistinctFiles(files).message();
  };
  EXPECT_THAT(check(at("x"), at("x")), HasSubstr("--out a and --trace are the same file"));
  EXPECT_THAT(check(at("x"), at("sub/../x")), HasSubstr("same file"));
  EXPECT_THAT(check(at("file"), at("link")), HasSubstr("same file"));
  EXPECT_THAT(check("none.npy", "./none.npy"), HasSubstr("same file"));
  EXPECT_THAT(check(at("file"), at("file"), /*isRead=*/true), HasSubstr("same file"));
  EXPECT_EQ(check(at("x"), at("y")), "");
  EXPECT_EQ(check("/dev/null", "/dev/null"), "");
}

TEST_F(Files, ReadingEnds) {
  EXPECT_THAT(readWholeFile("/dev/zero", "kernel file", 1000).status().message(),
              HasSubstr("kernel file '/dev/zero': it has more than the 1000 bytes"));
  EXPECT_THAT(readWholeFile(folder.string(), "kernel file", 1000).status().message(), HasSubstr("directory"));
  EXPECT_EQ(readWholeFile(at("none"), "", 1000).status().code(), StatusCode::NotFound);
  EXPECT_FALSE(readNpy("/dev/zero").isOk());
  make("file", "text");
  EXPECT_EQ(*readWholeFile(at("file"), "", 4), "text");
  EXPECT_FALSE(readWholeFile(at("file"), "", 3).isOk());
  EXPECT_GT(readWholeFile("/proc/self/status", "", 1 << 20)->size(), 10u);
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(at("pipe")) << "late"; });
  EXPECT_EQ(*readWholeFile(at("pipe"), "", 100), "late");
  writer.join();
}

TEST(HostMemory, LimitsCount) {
  EXPECT_GT(availableHostMemory(), uint64_t(1) << 20);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit small = {1 << 20, 1 << 20};
    setrlimit(RLIMIT_AS, &small);
    _exit(availableHostMemory() == 0 ? 7 : 8);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(memoryText(1536), "1.5 KiB");
}

} // namespace
} // namespace ditron
