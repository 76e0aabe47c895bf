//===- WaitReport.h - Who waits for what, and who could end it ----------------------------------------------*- C++ -*-===//
//
// What a run that does not go on looks like: of a deadlock, of a run that was ended by its time limit or by Ctrl-C, or of the moment in
// which somebody asked (SIGUSR1). Whoever knows fills it in (the simulator, or a reader of what GPUs publish); here it becomes text, a
// wait-for graph in the DOT language, or JSON.
//
//     deadlock at virtual time 6.985 us: nothing can run and nothing is in flight
//     waiting:
//       ranks 0..7, kernel k at k.py:8:11, block (0,0,0), thread 0
//         waits for flag[0] on rank 0, each of the others for that of its own rank: has 0, wants >= 1; never written
//         could still raise it: kernel k on ranks 0..7, which waits itself
//     what the ranks are doing:
//       ...
//
// Equal waits of many ranks are one entry of the text; the other forms keep every wait by itself.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_EXPLAIN_WAITS_WAITREPORT_H
#define DITRON_EXPLAIN_WAITS_WAITREPORT_H

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ditron::explain {

/// Who could end a wait.
struct Raiser {
  uint32_t rank = 0;
  std::string who;   ///< "kernel k", "stream comm", "host code".
  std::string state; ///< "waits itself", "2 blocks not started".
};

/// Threads of one kernel at one line, a stream, or host code, which wait for one thing.
struct Wait {
  uint32_t rank = 0;
  std::string who;  ///< "kernel k", "stream comm, signal wait".
  std::string file; ///< Of the kernel's source; empty where it is not known.
  uint32_t line = 0, column = 0;
  std::string blocks; ///< "block (0,0,0)", "blocks 0..7"; empty for streams and host code.
  uint64_t blockCount = 0;
  std::set<uint64_t> threads;
  std::optional<double> sinceMicroseconds; ///< Of the first of them, in virtual time.
  // Of GPUs.
  std::optional<uint32_t> process;
  double lastedSeconds = 0; ///< The longest of them; 0: not known.
  bool stands = false;      ///< None of them looks at the word any more.
  // The word.
  std::string word;                 ///< "flag[3]".
  std::string role;                 ///< What the word is for, where that is known.
  std::optional<uint32_t> wordRank; ///< Whose memory holds it; none for shared memory and the host's.
  std::optional<int64_t> has;       ///< None where no value says anything, as of an mbarrier.
  std::string wants;                ///< ">= 1"; empty for threads that poll.
  uint64_t attempts = 0;     ///< Of threads that poll and do not sleep, since it runs in a circle that is not closed.
  bool acts = false;         ///< They do more than read between two attempts.
  std::string lastWritten;   ///< "last written by rank 0, ..." or "never written"; empty where it is not known.
  std::string inSameBlock;   ///< What other threads of the first block do.
  bool knowsRaisers = false; ///< Whether `raisers` are all that could.
  bool onlyItself = false;   ///< Of a kernel that could, all threads that are left wait for this word.
  std::optional<uint32_t> onlyRank; ///< The one rank that raises the word, by its role.
  std::vector<Raiser> raisers;
};

struct RankActivity {
  uint32_t rank = 0;
  std::vector<std::string> lines; ///< Of its streams, its host code, its kernels; none: idle.
};

struct WaitReport {
  std::string kind; ///< "deadlock", "time limit", "interruption", "moment".
  std::string headline;
  std::optional<double> microseconds; ///< Virtual time; none on GPUs.
  std::vector<Wait> waits;
  std::string noWaits; ///< Said when there are none.
  std::vector<RankActivity> ranks;
};

/// "0, 2..5, 9".
std::string rangesText(const std::set<uint64_t> &values);

/// Lines are separated and not ended by a newline.
std::string textOf(const WaitReport &report);
/// The entries of "waiting:" alone.
std::string textOf(const std::vector<Wait> &waits);
/// Nodes are those who wait, words, and those who could raise them; edges lead from who waits to what would end it.
std::string dotOf(const WaitReport &report);
std::string jsonOf(const WaitReport &report);

} // namespace ditron::explain

#endif // DITRON_EXPLAIN_WAITS_WAITREPORT_H
