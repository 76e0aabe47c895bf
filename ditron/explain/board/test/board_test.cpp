//===- board_test.cpp - Boards of waits, written here as a GPU writes them, and read ------------------------------===//

#include "ditron/abi/Compare.h"
#include "ditron/explain/board/BoardReport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace ditron::explain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

class Boards : public testing::Test {
protected:
  void SetUp() override {
    folder = fmt::format("{}ditron-boards-{}-{}", testing::TempDir(), getpid(),
                         testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::unique_ptr<WaitBoard> make(uint32_t rank) {
    Expected<std::unique_ptr<WaitBoard>> board = WaitBoard::create({rank, 3, "NVIDIA H200"}, folder);
    EXPECT_TRUE(board.isOk()) << board.status().message();
    return std::move(board).value();
  }
  size_t files() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
  }
  BoardReading read() {
    Expected<BoardReading> reading = readBoards({static_cast<uint32_t>(getpid())}, 20ms, folder);
    EXPECT_TRUE(reading.isOk()) << reading.status().message();
    return *reading;
  }

  std::string folder;
};

/// Publishes a wait for the word, as a GPU does.
DitronWaitSlot &publish(WaitBoard &board, uint64_t number, uint64_t address, DitronWaitKind kind = DITRON_WAIT_SIGNAL) {
  DitronWaitSlot &slot = board.slots()[number];
  slot.state = DITRON_SLOT_WRITING;
  slot.kernel = 77;
  slot.block[0] = 4;
  slot.thread = 31;
  slot.line = 12;
  slot.column = 5;
  slot.compare = DITRON_COMPARE_GE;
  slot.wordBytes = 8;
  slot.kind = kind;
  slot.address = address;
  slot.wanted = 3;
  slot.seen = 2;
  slot.launch = 9;
  slot.since = 1'000'000'000;
  slot.lastLooked = 3'500'000'000;
  std::atomic_ref(slot.state).store(DITRON_SLOT_WAITING, std::memory_order_release);
  return slot;
}

TEST_F(Boards, NameTheWordAndTheKernel) {
  auto board = make(1);
  board->setNumRanks(4);
  board->addMemory(0x1000, 64, 8, "symmetric", "ready\tor\nnot");
  board->addMemory(0x1f00, 64, 4, "device", "freed soon");
  board->removeMemory(0x1f00);
  board->addHeap(0, 0x901000, 0x1000);
  board->addHeap(1, 0x1000, 0x1000);
  board->addKernel(77, "consumer", "gemm.py");
  publish(*board, 0, 0x1018);
  publish(*board, 5, 0x90101c);
  publish(*board, 9, 0x1f00).block[0] = 6;
  publish(*board, 2000, 0x5550000).block[0] = 7;
  const BoardReading reading = read();
  ASSERT_EQ(reading.boards.size(), 1u);
  EXPECT_EQ(reading.boards[0].gpuName, "NVIDIA H200");
  EXPECT_EQ(reading.boards[0].gpu, 3u);
  EXPECT_EQ(reading.boards[0].numRanks, 4u);
  EXPECT_EQ(reading.boards[0].slotsTaken, 4u);
  EXPECT_THAT(reading.boards[0].kernels, ElementsAre("consumer"));
  ASSERT_EQ(reading.waits.size(), 4u);
  const PublishedWait &own = reading.waits[0], &remote = reading.waits[1], &old = reading.waits[2],
                      &wild = reading.waits[3];
  EXPECT_EQ(own.kernel, "consumer");
  EXPECT_EQ(own.sourceFile, "gemm.py");
  EXPECT_EQ(own.memory, "ready or not");
  EXPECT_EQ(own.element, 3u);
  EXPECT_EQ(own.homeRank, 1u);
  EXPECT_EQ(own.block[0], 4u);
  EXPECT_EQ(own.wanted, 3);
  EXPECT_EQ(own.seen, 2);
  EXPECT_DOUBLE_EQ(own.seconds, 2.5);
  EXPECT_TRUE(own.stands) << "nobody looked at the word while it was watched";
  EXPECT_EQ(remote.homeRank, 0u);
  EXPECT_EQ(remote.memory, "ready or not");
  EXPECT_EQ(remote.element, 3u);
  EXPECT_EQ(remote.restBytes, 4u);
  EXPECT_EQ(old.homeRank, 1u) << "within its heap";
  EXPECT_EQ(old.memory, "");
  EXPECT_FALSE(wild.homeRank.has_value());
}

TEST_F(Boards, ALoopThatNoLongerLooksIsOver) {
  auto board = make(0);
  publish(*board, 1, 0x10, DITRON_WAIT_LOOP);
  DitronWaitSlot &live = publish(*board, 2, 0x20, DITRON_WAIT_LOOP);
  live.wordBytes = 4;
  live.seen = 0xffffffff;
  std::atomic<bool> done = false;
  std::thread looks([&] {
    while (!done) {
      std::atomic_ref(live.lastLooked).fetch_add(1'000'000);
      std::this_thread::sleep_for(1ms);
    }
  });
  const BoardReading reading = read();
  done = true;
  looks.join();
  ASSERT_EQ(reading.waits.size(), 1u);
  EXPECT_EQ(reading.waits[0].address, 0x20u);
  EXPECT_EQ(reading.waits[0].seen, -1);
  EXPECT_FALSE(reading.waits[0].stands);
}

TEST_F(Boards, WhatIsTakenBackIsNotRead) {
  auto board = make(0);
  publish(*board, 7, 0x10).state = DITRON_SLOT_FREE;
  publish(*board, 8, 0x10).state = DITRON_SLOT_WRITING;
  EXPECT_THAT(read().waits, IsEmpty());
}

TEST_F(Boards, ManyAllocationsDoNotFillTheTable) {
  auto board = make(0);
  const std::string name(100, 'x');
  for (uint64_t i = 0; i < 20'000; ++i) {
    board->addMemory(0x1000 * (i + 1), 0x100, 8, "device", name);
    if (i >= 100)
      board->removeMemory(0x1000 * (i - 99));
  }
  board->addMemory(0x10, 0x10, 8, "device", "last");
  publish(*board, 0, 0x18).thread = 0;
  publish(*board, 1, 0x1000 * 19'990).thread = 1;
  publish(*board, 2, 0x1000 * 19'000).thread = 2;
  const std::vector<PublishedWait> waits = read().waits;
  ASSERT_EQ(waits.size(), 3u);
  EXPECT_EQ(waits[0].memory, "last");
  EXPECT_EQ(waits[1].memory, name);
  EXPECT_EQ(waits[2].memory, "") << "has been freed";
}

TEST_F(Boards, OfAProcessThatIsGoneAreRemoved) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto board = make(2);
    board->addMemory(0x100, 0x100, 8, "device", "of the child");
    publish(*board, 3, 0x140);
    (void)!write(ready[1], "x", 1);
    pause();
    _exit(0);
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_THAT(processesWithBoards(folder), ElementsAre(static_cast<uint32_t>(child)));
  Expected<BoardReading> reading = readBoards(descendants(static_cast<uint32_t>(getpid())), 1ms, folder);
  ASSERT_TRUE(reading.isOk()) << reading.status().message();
  ASSERT_EQ(reading->waits.size(), 1u);
  EXPECT_EQ(reading->waits[0].memory, "of the child");
  EXPECT_EQ(reading->waits[0].element, 8u);
  EXPECT_EQ(reading->waits[0].pid, static_cast<uint32_t>(child));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(files(), 1u);
  EXPECT_THAT(readBoards({static_cast<uint32_t>(child)}, 1ms, folder).status().message(),
              HasSubstr("has published no waits"));
  EXPECT_EQ(files(), 0u);
  close(ready[0]);
  close(ready[1]);
}

TEST_F(Boards, GoWithTheirOwner) {
  {
    auto first = make(0), second = make(0);
    EXPECT_NE(first->path(), second->path());
    EXPECT_EQ(files(), 2u);
    // A fork of the owner is not the owner.
    const pid_t child = fork();
    if (child == 0) {
      first.reset();
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    EXPECT_EQ(files(), 2u);
    second->abandon();
    EXPECT_EQ(files(), 1u);
    EXPECT_EQ(removeStaleBoards(folder), 0u);
  }
  EXPECT_EQ(files(), 0u);
}

TEST_F(Boards, WhatIsNoBoardIsPassedOver) {
  auto board = make(0);
  publish(*board, 0, 0x10);
  const std::string name = fmt::format("{}/ditron-{}-{}-", folder, geteuid(), getpid());
  std::ofstream(name + "1-0") << "short";
  std::ofstream(name + "2-0") << std::string(10'000, 'z');
  std::ofstream(folder + "/ditron-nobody") << "x";
  // Claims more slots than it has.
  std::filesystem::copy_file(board->path(), name + "3-0");
  {
    std::fstream file(name + "3-0", std::ios::in | std::ios::out | std::ios::binary);
    const uint64_t slots = 1ull << 60;
    file.seekp(offsetof(DitronBoardHead, slots));
    file.write(reinterpret_cast<const char *>(&slots), sizeof(slots));
  }
  EXPECT_EQ(read().boards.size(), 1u);
}

TEST_F(Boards, WithoutAFolderAreAnError) {
  EXPECT_THAT(WaitBoard::create({}, folder + "/none").status().message(), HasSubstr("cannot make the board of waits"));
}

//===--- As a report ---------------------------------------------------------------------------------------------------===//

PublishedWait published(uint32_t rank, uint32_t block, uint32_t thread) {
  PublishedWait wait;
  wait.rank = rank;
  wait.pid = 100 + rank;
  wait.kernel = "consumer";
  wait.sourceFile = "gemm.py";
  wait.line = 12;
  wait.column = 5;
  wait.block = {block, 0, 0};
  wait.thread = thread;
  wait.compare = DITRON_COMPARE_GE;
  wait.wanted = 3;
  wait.seen = 2;
  wait.seconds = 0.25;
  wait.homeRank = rank;
  wait.memory = "ready";
  wait.element = 4;
  return wait;
}

BoardFacts facts(uint32_t rank, std::vector<std::string> kernels) {
  BoardFacts board;
  board.rank = rank;
  board.pid = 100 + rank;
  board.gpu = rank;
  board.gpuName = "NVIDIA H200";
  board.kernels = std::move(kernels);
  return board;
}

TEST(BoardReport, HasTheFormOfTheSimulators) {
  BoardReading reading;
  reading.boards = {facts(0, {"consumer"}), facts(1, {"consumer"}), facts(2, {})};
  reading.waits = {published(0, 4, 0), published(0, 6, 0), published(0, 6, 32)};
  EXPECT_EQ(textOf(reportOf(reading)),
            "3 ranks of 3 processes\n"
            "waiting:\n"
            "  rank 0, kernel consumer at gemm.py:12:5, 2 blocks ((4,0,0) to (6,0,0)), threads 0, 32\n"
            "    waits for ready[4] on rank 0: has 2, wants >= 3; for 250 ms\n"
            "what the ranks are doing:\n"
            "  rank 0:\n"
            "    process 100, GPU 0 (NVIDIA H200)\n"
            "    2 blocks wait\n"
            "  rank 1:\n"
            "    process 101, GPU 1 (NVIDIA H200)\n"
            "    no block waits: what others wait for is this rank's to send, unless its kernels have ended\n"
            "  rank 2:\n"
            "    process 102, GPU 2 (NVIDIA H200)\n"
            "    has loaded no kernel yet");
  const nlohmann::json json = nlohmann::json::parse(jsonOf(reportOf(reading)));
  EXPECT_EQ(json["kind"], "moment");
  EXPECT_FALSE(json.contains("virtual_time_us"));
  ASSERT_EQ(json["waits"].size(), 1u);
  const nlohmann::json &wait = json["waits"][0];
  EXPECT_EQ(wait["process"], 100);
  EXPECT_EQ(wait["who"], "kernel consumer");
  EXPECT_EQ(wait["line"], 12);
  EXPECT_EQ(wait["block_count"], 2);
  EXPECT_EQ(wait["word"], "ready[4]");
  EXPECT_EQ(wait["word_rank"], 0);
  EXPECT_EQ(wait["has"], 2);
  EXPECT_EQ(wait["wants"], ">= 3");
  EXPECT_EQ(wait["lasted_s"], 0.25);
  EXPECT_THAT(dotOf(reportOf(reading)), HasSubstr("n0 -> n1 [label=\"has 2, wants >= 3\"]"));
}

TEST(BoardReport, EqualWaitsOfManyRanksAreOne) {
  std::vector<PublishedWait> waits;
  for (uint32_t rank = 0; rank < 8; ++rank)
    waits.push_back(published(rank, 0, 0));
  EXPECT_EQ(
      textOf(waitsOf(waits)),
      "  ranks 0..7, kernel consumer at gemm.py:12:5, block (0,0,0), thread 0\n"
      "    waits for ready[4] on rank 0, each of the others for that of its own rank: has 2, wants >= 3; for 250 ms");
}

TEST(BoardReport, WhatIsNotKnownIsNotSaid) {
  PublishedWait unnamed = published(0, 0, 0), barrier = published(1, 0, 0), loop = published(2, 0, 0);
  unnamed.kernel.clear();
  unnamed.homeRank.reset();
  unnamed.address = 0x5550000;
  unnamed.stands = true;
  barrier.kind = DITRON_WAIT_MBARRIER;
  barrier.address = 0x420;
  barrier.seconds = 0;
  loop.kind = DITRON_WAIT_LOOP;
  EXPECT_EQ(
      textOf(waitsOf({unnamed, barrier, loop})),
      "  rank 0, a kernel at line 12, column 5, block (0,0,0), thread 0\n"
      "    waits for 0x5550000, memory without a name: has 2, wants >= 3; for 250 ms; it has stopped looking (a "
      "stopped "
      "GPU, or a kernel that was ended)\n"
      "  rank 1, kernel consumer at gemm.py:12:5, block (0,0,0), thread 0\n"
      "    waits for an mbarrier at shared address 1056 (of another warp of its block, which fetches or frees a tile): "
      "wants the end of the phase of parity 3\n"
      "  rank 2, kernel consumer at gemm.py:12:5, block (0,0,0), thread 0\n"
      "    waits for ready[4] on rank 2: has 2, polls it in a loop until it changes; for 250 ms");
}

TEST(BoardReport, OfNobodySaysWhoWouldBeSeen) {
  BoardReading reading;
  reading.boards = {facts(0, {"consumer"})};
  EXPECT_THAT(textOf(reportOf(reading)),
              testing::AllOf(HasSubstr("1 rank of process 100\nwaiting:\n  no block has been waiting for long (only"),
                             HasSubstr("DITRON_PUBLISH_WAITS=1")));
}

} // namespace
} // namespace ditron::explain
