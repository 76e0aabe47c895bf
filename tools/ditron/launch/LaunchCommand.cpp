//===- LaunchCommand.cpp - ditron launch --------------------------------------------------------------------------===//
//
// Starts a program once for each rank on this machine, with the environment variables that torchrun sets and a random job
// name, so that World::fromEnvironment and torch.distributed find their rank. The first process that fails ends the others: politely at first, for
// good a few seconds later. Its exit code is ours. What the processes have started themselves ends too: a program that a script
// of the user's runs would otherwise go on waiting, on its GPU, for ranks that are gone.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "base/Command.h"

#include "ditron/runtime/bootstrap/Rendezvous.h"
#include "ditron/support/ToolProcess.h"
#include "ditron/values/TextPieces.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace ditron::tool {

namespace {

using Clock = std::chrono::steady_clock;

struct LaunchArguments {
  uint32_t processes = 0;
  double timeLimit = 0;
  std::vector<std::string> program;
};

struct Process {
  pid_t id = -1;
  uint32_t rank = 0;
  bool running = true;
  int status = 0;
};

/// Set by the handler of SIGINT, SIGTERM and SIGHUP.
volatile std::sig_atomic_t interruption = 0;

constexpr auto grace = std::chrono::seconds(3);

std::string describeEnd(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("was ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("returned {}", WEXITSTATUS(status));
}

/// The parent of a process, of /proc/ID/stat: "ID (NAME) STATE PARENT ...", where NAME may hold anything.
pid_t parentOf(pid_t id) {
  std::ifstream file(fmt::format("/proc/{}/stat", id));
  std::string line, state;
  std::getline(file, line, '\0');
  const size_t name = line.rfind(')');
  std::istringstream rest(name == std::string::npos ? "" : line.substr(name + 1));
  pid_t parent = -1;
  rest >> state >> parent;
  return state == "Z" ? -1 : parent;
}

/// The processes that descend from this one and are of its session: one of a session of its own is a daemon, which stays.
std::vector<pid_t> descendants() {
  std::multimap<pid_t, pid_t> children;
  std::error_code ignored;
  for (const auto &entry : std::filesystem::directory_iterator("/proc", ignored))
    if (const auto id = values::wholeNumber<pid_t>(entry.path().filename().string()))
      children.emplace(parentOf(*id), *id);
  std::vector<pid_t> found = {getpid()};
  for (size_t next = 0; next < found.size(); ++next)
    for (auto [child, end] = children.equal_range(found[next]); child != end; ++child)
      if (getsid(child->second) == getsid(0))
        found.push_back(child->second);
  found.erase(found.begin());
  return found;
}

/// A TCP port of this machine that nobody listens on now; the kernel does not give it to the next who asks at once.
Expected<uint16_t> findFreePort() {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool found = descriptor >= 0 && bind(descriptor, reinterpret_cast<sockaddr *>(&address), size) == 0 &&
                     getsockname(descriptor, reinterpret_cast<sockaddr *>(&address), &size) == 0;
  const int reason = errno;
  if (descriptor >= 0)
    close(descriptor);
  if (!found)
    return Status(StatusCode::ResourceExhausted,
                  fmt::format("no free port for MASTER_PORT: {}; set MASTER_PORT to one", std::strerror(reason)));
  return ntohs(address.sin_port);
}

/// Where the ranks' processes meet; what the user has set stays.
Status setMeetingPoint() {
  setenv("MASTER_ADDR", "127.0.0.1", 0);
  if (getenv("MASTER_PORT"))
    return Status::ok();
  DITRON_ASSIGN_OR_RETURN(const uint16_t port, findFreePort());
  setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
  return Status::ok();
}

/// In the child, between fork and exec: becomes the program, or returns the reason why not.
int becomeProgram(const LaunchArguments &arguments, uint32_t rank, const std::string &job) {
  // A launcher that is killed takes its processes with it.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  ToolProcess::restoreForChild();
  const std::string rankText = std::to_string(rank), sizeText = std::to_string(arguments.processes);
  setenv("RANK", rankText.c_str(), 1);
  setenv("LOCAL_RANK", rankText.c_str(), 1);
  setenv("WORLD_SIZE", sizeText.c_str(), 1);
  setenv("LOCAL_WORLD_SIZE", sizeText.c_str(), 1);
  setenv("DITRON_JOB_ID", job.c_str(), 1);
  std::vector<char *> words;
  for (const std::string &word : arguments.program)
    words.push_back(const_cast<char *>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  return errno;
}

class Job {
public:
  explicit Job(const LaunchArguments &arguments) : arguments(arguments), name(bootstrap::randomName(16)) {}

  Status start() {
    for (uint32_t rank = 0; rank < arguments.processes; ++rank) {
      const pid_t id = fork();
      if (id < 0) {
        end(SIGKILL);
        return Status(StatusCode::ResourceExhausted,
                      fmt::format("cannot start rank {}: {}", rank, std::strerror(errno)));
      }
      if (id == 0) {
        const int reason = becomeProgram(arguments, rank, name);
        fmt::print(stderr, "ditron launch: cannot run '{}': {}\n", arguments.program.front(), std::strerror(reason));
        _exit(127);
      }
      processes.push_back({id, rank});
    }
    return Status::ok();
  }

  /// Waits for all; the exit code is that of the first process that failed.
  int wait() {
    const auto begin = Clock::now();
    int code = 0;
    std::optional<Clock::time_point> endingSince;
    auto fail = [&](int value, const std::string &why) {
      if (!why.empty())
        fmt::print(stderr, "ditron launch: {}\n", why);
      if (code == 0)
        code = value;
      if (!endingSince) {
        endingSince = Clock::now();
        end(SIGTERM);
      }
    };
    while (numRunning() > 0 || (endingSince && !descendants().empty())) {
      collect([&](const Process &process) {
        const bool failed = !WIFEXITED(process.status) || WEXITSTATUS(process.status) != 0;
        if (failed && !endingSince)
          fail(WIFEXITED(process.status) ? WEXITSTATUS(process.status) : 128 + WTERMSIG(process.status),
               fmt::format("rank {} {}; ending the others", process.rank, describeEnd(process.status)));
      });
      if (interruption && !endingSince)
        fail(128 + static_cast<int>(interruption), "");
      const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      if (arguments.timeLimit > 0 && seconds > arguments.timeLimit && !endingSince)
        fail(124, fmt::format("not done within {:g} s; still running: {}", arguments.timeLimit, runningRanks()));
      if (endingSince && Clock::now() - *endingSince > grace)
        end(SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return code;
  }

private:
  uint32_t numRunning() const {
    return static_cast<uint32_t>(
        std::count_if(processes.begin(), processes.end(), [](const Process &process) { return process.running; }));
  }
  std::string runningRanks() const {
    std::string text;
    for (const Process &process : processes)
      if (process.running)
        text += fmt::format("{}rank {}", text.empty() ? "" : ", ", process.rank);
    return text;
  }
  template <typename Callback> void collect(Callback ended) {
    int status = 0;
    // Those whose parent has ended are this process's children too.
    for (pid_t id; (id = waitpid(-1, &status, WNOHANG)) > 0;)
      for (Process &process : processes)
        if (process.running && process.id == id) {
          process.running = false;
          process.status = status;
          ended(process);
        }
  }
  void end(int signal) {
    for (pid_t id : descendants())
      kill(id, signal);
  }

  const LaunchArguments &arguments;
  std::string name;
  std::vector<Process> processes;
};

/// What the program is: everything behind "--", or from the first word that is no option of ours.
Expected<std::vector<std::string>> programOf(std::vector<std::string> words, const CLI::App &command) {
  if (!words.empty() && words.front() == programMark) {
    words.erase(words.begin());
    return words;
  }
  if (!words.empty() && words.front().starts_with("-"))
    return invalidArgument(fmt::format("unknown option '{}' of ditron launch{}; write -- before a program that is called so", words.front(),
                                       meantOption(command, words.front())));
  std::ranges::replace(words, std::string(programMark), std::string("--"));
  return words;
}

/// The exit code of the job.
Expected<int> runLaunch(const LaunchArguments &arguments) {
  if (arguments.program.empty())
    return invalidArgument("no program to run; write `ditron launch -n 8 PROGRAM ARGS`");
  if (arguments.processes < 1 || arguments.processes > 128)
    return invalidArgument("the number of ranks is missing; write -n N before the program, from 1 to 128");
  DITRON_RETURN_IF_ERROR(setMeetingPoint());
  Job job(arguments);
  prctl(PR_SET_CHILD_SUBREAPER, 1); // or what a rank has started would be out of sight when the rank ends
  for (int number : {SIGINT, SIGTERM, SIGHUP})
    if (std::signal(number, [](int signal) { interruption = signal; }) == SIG_IGN)
      std::signal(number, SIG_IGN); // as with nohup
  DITRON_RETURN_IF_ERROR(job.start());
  return job.wait();
}

} // namespace

void addLaunchCommand(CLI::App &app, CommandContext &context) {
  CLI::App *command = app.add_subcommand("launch", "Start a program once for each rank on this machine");
  auto arguments = std::make_shared<LaunchArguments>();
  command->add_option("-n,--processes", arguments->processes, "How many ranks")
      ->check(integerBetween(1, 128)); // required, which is said after an unknown option
  command->add_option("--time-limit", arguments->timeLimit, "End everything after this time; 0 for no limit")
      ->check(secondsFromZero())
      ->type_name("SECONDS");
  command->prefix_command(); // everything from the first word that is no option of ours is the program
  command->footer(
      "Usage: ditron launch -n N [--] PROGRAM ARGS...\n"
      "Each process gets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun sets\n"
      "them: 127.0.0.1 and a free port, unless the environment has them. The exit code is that of the first process that\n"
      "fails, 124 when the time limit passes. Simulated ranks need no launch: `ditron run --ranks N` has them all.");
  command->callback([&context, arguments, command] {
    Expected<std::vector<std::string>> program = programOf(command->remaining(), *command);
    if (!program.isOk())
      return context.finish(program.status());
    arguments->program = std::move(*program);
    const Expected<int> code = runLaunch(*arguments);
    context.finish(code.status());
    if (code.isOk())
      context.exitCode = *code;
  });
}

} // namespace ditron::tool
