//===- rendezvous_test.cpp - Processes meeting on one machine -----------------------------------------------------===//
//
// Most tests play the ranks with threads, which meet over the same sockets; descriptors are memfds in the place of GPU
// memory. Those about death use real processes.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/bootstrap/Rendezvous.h"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace ditron;
using namespace ditron::bootstrap;
using testing::AllOf;
using testing::HasSubstr;

namespace {

class RendezvousTest : public testing::Test {
protected:
  void SetUp() override {
    directory = std::filesystem::temp_directory_path() / ("ditron-test-" + randomName(6));
    ASSERT_EQ(mkdir(directory.c_str(), 0700), 0);
  }
  void TearDown() override { std::filesystem::remove_all(directory); }

  RendezvousOptions options(uint32_t rank, uint32_t ranks, double limit = 20) const {
    return {.rank = rank, .numRanks = ranks, .job = "job", .directory = directory, .timeLimitSeconds = limit};
  }

  /// Joins and runs `body` for these ranks of a job of `ranks`, each on a thread; gives what each returned.
  std::vector<Status> runSome(const std::vector<uint32_t> &present, uint32_t ranks,
                              const std::function<Status(Rendezvous &)> &body, double limit = 20) {
    std::vector<Status> results(present.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < present.size(); ++i)
      threads.emplace_back([&, i] {
        auto meeting = Rendezvous::join(options(present[i], ranks, limit));
        results[i] = meeting.isOk() ? body(**meeting) : meeting.status();
      });
    for (std::thread &thread : threads)
      thread.join();
    return results;
  }
  void expectAllOk(const std::vector<Status> &results) {
    for (size_t i = 0; i < results.size(); ++i)
      EXPECT_TRUE(results[i].isOk()) << "rank " << i << ": " << results[i].message();
  }

  std::string directory;
};

TEST_F(RendezvousTest, AlonePasses) {
  expectAllOk(runSome({0}, 1, [](Rendezvous &meeting) -> Status {
    DITRON_RETURN_IF_ERROR(meeting.barrier("alone"));
    DITRON_ASSIGN_OR_RETURN(std::vector<std::string> all, meeting.allGather("alone", "me"));
    EXPECT_EQ(all, std::vector<std::string>{"me"});
    return Status::ok();
  }));
}

TEST_F(RendezvousTest, EverybodyGetsEverything) {
  expectAllOk(runSome({0, 1, 2, 3, 4}, 5, [](Rendezvous &meeting) -> Status {
    for (int round = 0; round < 20; ++round) {
      const std::string own = std::string(meeting.rank() * 100, 'x') + std::to_string(meeting.rank() + round);
      DITRON_ASSIGN_OR_RETURN(std::vector<std::string> all, meeting.allGather("names", own));
      for (uint32_t rank = 0; rank < 5; ++rank)
        EXPECT_EQ(all[rank], std::string(rank * 100, 'x') + std::to_string(rank + round));
      DITRON_RETURN_IF_ERROR(meeting.barrier("round"));
    }
    return Status::ok();
  }));
  EXPECT_TRUE(std::filesystem::is_empty(directory)); // nothing is left behind
}

TEST_F(RendezvousTest, DescriptorsShareMemory) {
  expectAllOk(runSome({0, 1, 2, 3}, 4, [](Rendezvous &meeting) -> Status {
    const Descriptor own(memfd_create("heap", MFD_CLOEXEC));
    EXPECT_EQ(ftruncate(own.get(), 4096), 0);
    DITRON_ASSIGN_OR_RETURN(std::vector<Descriptor> all, meeting.allGatherDescriptors("heaps", own.get()));
    EXPECT_EQ(all.size(), 4u);
    // Everyone writes its rank into everyone's memory.
    for (uint32_t rank = 0; rank < 4; ++rank) {
      EXPECT_TRUE(fcntl(all[rank].get(), F_GETFD) & FD_CLOEXEC);
      const char mark = static_cast<char>('a' + meeting.rank());
      EXPECT_EQ(pwrite(all[rank].get(), &mark, 1, meeting.rank()), 1);
    }
    DITRON_RETURN_IF_ERROR(meeting.barrier("written"));
    char marks[5] = {};
    EXPECT_EQ(pread(own.get(), marks, 4, 0), 4);
    EXPECT_STREQ(marks, "abcd");
    return Status::ok();
  }));
}

TEST_F(RendezvousTest, WhoIsMissingIsNamedToAll) {
  const std::vector<Status> results = runSome({0, 1, 4}, 5, [](Rendezvous &) { return Status::ok(); }, 0.5);
  for (const Status &result : results) {
    EXPECT_EQ(result.code(), StatusCode::TimeOut);
    EXPECT_THAT(result.message(), AllOf(HasSubstr("2 of 5 ranks have not arrived within 0.5 seconds: 2, 3")));
  }
}

TEST_F(RendezvousTest, WithoutRankZero) {
  const std::vector<Status> results = runSome({1}, 2, [](Rendezvous &) { return Status::ok(); }, 0.2);
  EXPECT_THAT(results[0].message(), AllOf(HasSubstr("rank 0 has not arrived"), HasSubstr(directory)));
}

TEST_F(RendezvousTest, ALateStepNamesTheRank) {
  const std::vector<Status> results = runSome(
      {0, 1, 2}, 3,
      [](Rendezvous &meeting) -> Status {
        if (meeting.rank() == 2)
          std::this_thread::sleep_for(std::chrono::milliseconds(900));
        return meeting.barrier("heaps mapped");
      },
      0.4);
  for (uint32_t rank : {0, 1})
    EXPECT_THAT(results[rank].message(),
                AllOf(HasSubstr("step 'heaps mapped'"), HasSubstr("not arrived"), HasSubstr(": 2")));
}

TEST_F(RendezvousTest, DifferentStepsAreAnError) {
  const std::vector<Status> results =
      runSome({0, 1}, 2, [](Rendezvous &meeting) { return meeting.barrier(meeting.rank() == 0 ? "first" : "second"); });
  for (const Status &result : results)
    EXPECT_THAT(result.message(), HasSubstr("rank 1 is at step 'second' while rank 0 is at 'first'"));
}

TEST_F(RendezvousTest, Disagreement) {
  const std::vector<Status> results = runSome({0, 1}, 2, [](Rendezvous &meeting) {
    return meeting.agree("allocation", meeting.rank() == 0 ? "8 bytes" : "16 bytes");
  });
  EXPECT_THAT(results[0].message(), AllOf(HasSubstr("rank 1 has 16 bytes"), HasSubstr("rank 0 has 8 bytes")));
}

TEST_F(RendezvousTest, TwoProcessesWithOneRank) {
  const std::vector<Status> results = runSome({0, 1, 1}, 3, [](Rendezvous &) { return Status::ok(); }, 2);
  EXPECT_THAT(results[0].message(), HasSubstr("that rank is there already"));
}

TEST_F(RendezvousTest, AStaleFileIsWaitedOut) {
  // What a killed job leaves: a file that leads to a socket where nobody listens.
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_TRUE(Rendezvous::join(options(0, 2)).isOk());
  });
  { // The name of the file is the rendezvous's own business: let one make it, and keep a copy.
    std::vector<std::string> names;
    std::thread first([&] { (void)Rendezvous::join({0, 2, "job", directory, 0.1}); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    for (const auto &entry : std::filesystem::directory_iterator(directory))
      if (entry.path().filename().string().starts_with("job-"))
        names.push_back(entry.path());
    first.join();
    ASSERT_EQ(names.size(), 1u);
    std::ofstream(names[0]) << directory << "/gone.sock\n0123\n";
    chmod(names[0].c_str(), 0600);
  }
  EXPECT_TRUE(Rendezvous::join(options(1, 2)).isOk());
  late.join();
}

TEST_F(RendezvousTest, FilesOthersCanReadAreNotTrusted) {
  std::thread owner([&] {
    auto meeting = Rendezvous::join(options(0, 2, 1));
    EXPECT_FALSE(meeting.isOk());
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  for (const auto &entry : std::filesystem::directory_iterator(directory)) {
    struct stat info = {};
    ASSERT_EQ(lstat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u) << entry.path();
    chmod(entry.path().c_str(), 0644);
  }
  EXPECT_FALSE(Rendezvous::join(options(1, 2, 0.3)).isOk());
  owner.join();
}

TEST_F(RendezvousTest, ADeadProcessIsAnErrorNotAHang) {
  const pid_t child = fork();
  if (child == 0) {
    auto meeting = Rendezvous::join(options(1, 2));
    _exit(meeting.isOk() ? 0 : 1); // without a word
  }
  auto meeting = Rendezvous::join(options(0, 2));
  ASSERT_TRUE(meeting.isOk()) << meeting.status().message();
  const auto begin = std::chrono::steady_clock::now();
  const Status status = (*meeting)->barrier("after");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_THAT(status.message(), HasSubstr("the process of rank 1 has ended"));
  EXPECT_EQ(status.code(), StatusCode::TimeOut); // as where a GPU waits for a process that has died
  int code = -1;
  waitpid(child, &code, 0);
  EXPECT_EQ(code, 0);
}

/// Whoever comes late hears of the rank that was missing, not of the one that told of it.
TEST_F(RendezvousTest, ALateRankHearsWhoHasEnded) {
  const auto child = [&](uint32_t rank, bool takesPart) {
    const pid_t id = fork();
    if (id == 0) {
      auto meeting = Rendezvous::join(options(rank, 3));
      if (meeting.isOk() && takesPart)
        (void)(*meeting)->barrier("after");
      _exit(0);
    }
    return id;
  };
  const pid_t first = child(0, true), last = child(2, false);
  auto meeting = Rendezvous::join(options(1, 3));
  ASSERT_TRUE(meeting.isOk()) << meeting.status().message();
  for (const pid_t id : {last, first})
    EXPECT_EQ(waitpid(id, nullptr, 0), id);
  EXPECT_THAT((*meeting)->barrier("after").message(), HasSubstr("the process of rank 2 has ended"));
}

TEST(PrivateDirectory, IsOursAlone) {
  auto path = privateDirectory();
  ASSERT_TRUE(path.isOk()) << path.status().message();
  struct stat info = {};
  ASSERT_EQ(lstat(path->c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, geteuid());
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST(RandomName, IsRandom) {
  EXPECT_EQ(randomName(16).size(), 32u);
  EXPECT_NE(randomName(16), randomName(16));
}

} // namespace
