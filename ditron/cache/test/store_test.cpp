//===- store_test.cpp - The folder of compiled kernels ------------------------------------------------------------------===//
#include "ditron/cache/KernelStore.h"
#include "ditron/cache/Sha256.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ditron;
using namespace ditron::cache;
using testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

constexpr uint64_t plenty = 1 << 30;

class Store : public testing::Test {
protected:
  void SetUp() override {
    base = fs::path(testing::TempDir()) / ("ditron-store-" + std::to_string(getpid()));
    fs::remove_all(base);
    fs::create_directories(base);
  }
  void TearDown() override { fs::remove_all(base); }

  std::string folder() const { return (base / "a" / "cache").string(); }
  std::unique_ptr<KernelStore> open(uint64_t limit = plenty) const {
    Expected<std::unique_ptr<KernelStore>> store = KernelStore::open(folder(), limit);
    EXPECT_TRUE(store.isOk()) << store.status().message();
    return std::move(store).value();
  }
  fs::path fileOf(const std::string &key) const { return fs::path(folder()) / (key + ".kernel"); }

  fs::path base;
};

Entry entryOf(const std::string &name, size_t codeBytes = 100) {
  Entry entry;
  entry.key = sha256(name);
  entry.artifact.kernel = name;
  entry.artifact.code = std::string(codeBytes, 'c');
  return entry;
}

void setAge(const fs::path &file, int minutes) {
  fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::minutes(minutes));
}

TEST_F(Store, FindsWhatItKept) {
  auto store = open();
  EXPECT_FALSE(store->find(sha256("x")));
  ASSERT_TRUE(store->keep(entryOf("x")).isOk());
  std::optional<Entry> found = open()->find(sha256("x"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->artifact.kernel, "x");
  EXPECT_FALSE(store->find("../x"));
  struct stat status;
  ASSERT_EQ(stat(folder().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(stat(fileOf(sha256("x")).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(Store, WrongFilesAreMissesAndReplaced) {
  auto store = open();
  const std::string key = sha256("x");
  ASSERT_TRUE(store->keep(entryOf("x")).isOk());
  fs::resize_file(fileOf(key), fs::file_size(fileOf(key)) / 2); // torn
  EXPECT_FALSE(store->find(key));
  EXPECT_THAT(store->read(store->list()->front()).status().message(), HasSubstr("cut short"));
  ASSERT_TRUE(store->keep(entryOf("x")).isOk());
  EXPECT_TRUE(store->find(key));

  ASSERT_TRUE(store->keep(entryOf("y")).isOk());
  fs::copy_file(fileOf(sha256("y")), fileOf(key), fs::copy_options::overwrite_existing); // foreign
  EXPECT_FALSE(store->find(key));
  fs::remove(fileOf(sha256("y")));
  EXPECT_THAT(store->read(store->list()->front()).status().message(), HasSubstr("another key"));

  fs::remove(fileOf(key));
  fs::create_symlink("/etc/passwd", fileOf(key));
  EXPECT_FALSE(store->find(key));
  fs::remove(fileOf(key));
  ASSERT_EQ(mkfifo(fileOf(key).c_str(), 0600), 0); // must not wait for a writer
  EXPECT_FALSE(store->find(key));
  ASSERT_TRUE(store->keep(entryOf("x")).isOk());
  EXPECT_TRUE(store->find(key));
}

TEST_F(Store, FoldersOthersMayWriteToAreRefused) {
  (void)open();
  for (fs::perms added : {fs::perms::group_write, fs::perms::others_write}) {
    fs::permissions(folder(), fs::perms::owner_all | added);
    EXPECT_THAT(KernelStore::open(folder(), plenty).status().message(), HasSubstr("chmod go-w"));
  }
  fs::permissions(folder(), fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  EXPECT_TRUE(KernelStore::open(folder(), plenty).isOk());
  if (geteuid() == 0) { // only root can give a folder away
    ASSERT_EQ(chown(folder().c_str(), 12345, 12345), 0);
    EXPECT_THAT(KernelStore::open(folder(), plenty).status().message(), HasSubstr("belongs to user 12345"));
  }
  std::ofstream(base / "file") << "x";
  EXPECT_THAT(KernelStore::open(base / "file", plenty).status().message(), HasSubstr("cannot open the folder"));
  EXPECT_EQ(KernelStore::openExisting(base / "nowhere", plenty).status().code(), StatusCode::NotFound);
}

TEST_F(Store, LeastRecentlyUsedGoFirst) {
  auto store = open();
  int age = 100;
  for (const char *name : {"a", "b", "c", "d"}) {
    ASSERT_TRUE(store->keep(entryOf(name, 10000)).isOk());
    setAge(fileOf(sha256(name)), age -= 10);
  }
  EXPECT_TRUE(store->find(sha256("a"))); // makes it the youngest
  const uint64_t two = 2 * store->list()->front().bytes;
  Expected<PruneResult> result = store->prune(two);
  ASSERT_TRUE(result.isOk());
  EXPECT_EQ(result->removedFiles, 2u);
  EXPECT_EQ(result->keptBytes, two);
  EXPECT_TRUE(store->find(sha256("a")));
  EXPECT_TRUE(store->find(sha256("d")));
  EXPECT_FALSE(store->find(sha256("b")));
  EXPECT_FALSE(store->find(sha256("c")));
}

TEST_F(Store, StaysBelowItsLimit) {
  auto store = open(50000);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(store->keep(entryOf("k" + std::to_string(i), 10000)).isOk());
    setAge(fileOf(sha256("k" + std::to_string(i))), 60 - i);
    uint64_t total = 0;
    const std::vector<StoredFile> files = store->list().value();
    for (const StoredFile &file : files)
      total += file.bytes;
    EXPECT_LE(total, 50000u);
  }
  EXPECT_TRUE(store->find(sha256("k19")));
  EXPECT_FALSE(store->find(sha256("k0")));
}

TEST_F(Store, LeftoversOfDeadWritersGo) {
  auto store = open();
  std::ofstream(fs::path(folder()) / ".writing-1-0-abc") << "half";
  std::ofstream(fs::path(folder()) / ".writing-2-0-abc") << "now";
  setAge(fs::path(folder()) / ".writing-1-0-abc", 120);
  std::ofstream(fs::path(folder()) / "notes.txt") << "not ours";
  ASSERT_EQ(store->list()->size(), 2u);
  EXPECT_EQ(store->prune(0)->removedFiles, 1u);
  EXPECT_TRUE(fs::exists(fs::path(folder()) / ".writing-2-0-abc"));
  EXPECT_TRUE(fs::exists(fs::path(folder()) / "notes.txt"));
}

/// Processes that write, read and prune the same entries at once: every reader sees whole entries or none.
TEST_F(Store, ManyProcessesAtOnce) {
  (void)open();
  std::vector<pid_t> children;
  for (int process = 0; process < 4; ++process) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Expected<std::unique_ptr<KernelStore>> store = KernelStore::open(folder(), 200000);
      bool isGood = store.isOk();
      for (int round = 0; round < 100 && isGood; ++round) {
        const std::string name = "k" + std::to_string(round % 7);
        isGood &= (*store)->keep(entryOf(name, 30000)).isOk();
        const std::string other = "k" + std::to_string((round + process) % 7);
        if (std::optional<Entry> found = (*store)->find(sha256(other)))
          isGood &= found->artifact.kernel == other && found->artifact.code.size() == 30000;
        const std::vector<StoredFile> files = (*store)->list().value();
        for (const StoredFile &file : files) { // one that is gone by now cannot be read; all others are whole
          Expected<Entry> entry = (*store)->read(file);
          isGood &= file.isTemporary || entry.isOk() || entry.status().message() == "cannot be read as a file";
        }
        if (round % 10 == process)
          isGood &= (*store)->prune(100000).isOk();
      }
      _exit(isGood ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  const std::vector<StoredFile> files = open()->list().value();
  for (const StoredFile &file : files)
    EXPECT_TRUE(!file.isTemporary && open()->read(file).isOk()) << file.name;
}

} // namespace
