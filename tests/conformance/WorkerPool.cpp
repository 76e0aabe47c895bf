//===- WorkerPool.cpp - Cases in processes of their own -----------------------------------------------------------------===//
//
// The parent hands out indices through a pipe and gets a line of JSON back for each. It never touches the compiler or a GPU
// itself, so that forking stays safe. A worker ends after some hundreds of cases, since compiled code is never freed.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "WorkerPool.h"

#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ditron::conformance {
namespace {

using Clock = std::chrono::steady_clock;
constexpr unsigned casesOfWorker = 300;

struct Worker {
  pid_t process = -1;
  int commands = -1, answers = -1, errors = -1; ///< Pipes, and the worker's standard error.
  std::string partial;                          ///< Of an answer.
  std::optional<size_t> current;
  Clock::time_point since;
  unsigned done = 0;
};

bool writeAll(int file, const void *data, size_t size) {
  for (const char *at = static_cast<const char *>(data); size > 0;) {
    const ssize_t wrote = write(file, at, size);
    if (wrote <= 0)
      return false;
    at += wrote;
    size -= static_cast<size_t>(wrote);
  }
  return true;
}

/// What a worker does: cases until the parent closes the pipe.
[[noreturn]] void work(const std::vector<Case> &cases, const std::string &target, int commands, int answers) {
  CaseRunner runner(target);
  size_t index = 0;
  while (read(commands, &index, sizeof(index)) == sizeof(index)) {
    const CaseResult result = runner.run(cases[index]);
    const nlohmann::json answer = {{"outcome", static_cast<int>(result.outcome)},
                                   {"text", result.text},
                                   {"maxUlp", result.maxUlp},
                                   {"maxError", result.maxError},
                                   {"seconds", result.seconds}};
    const std::string line = answer.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
    if (!writeAll(answers, line.data(), line.size()))
      break;
  }
  _exit(0);
}

class Pool {
public:
  Pool(const std::vector<Case> &cases, const PoolOptions &options,
       const std::function<void(size_t, const CaseResult &)> &progress)
      : cases(cases), options(options), progress(progress), results(cases.size()), workers(options.workers) {}

  std::vector<CaseResult> run() {
    signal(SIGPIPE, SIG_IGN);
    size_t next = 0;
    while (finished < cases.size()) {
      for (Worker &worker : workers)
        if (!worker.current && next < cases.size())
          give(worker, next++);
      wait();
    }
    for (Worker &worker : workers)
      stop(worker, SIGKILL);
    return std::move(results);
  }

private:
  void start(Worker &worker) {
    int commands[2], answers[2];
    if (pipe2(commands, O_CLOEXEC) != 0 || pipe2(answers, O_CLOEXEC) != 0)
      return;
    worker = Worker();
    worker.errors = memfd_create("stderr", MFD_CLOEXEC);
    worker.process = fork();
    if (worker.process == 0) {
      for (const Worker &other : workers) {
        close(other.commands);
        close(other.answers);
      }
      close(commands[1]);
      close(answers[0]);
      dup2(worker.errors, STDERR_FILENO);
      work(cases, options.target, commands[0], answers[1]);
    }
    close(commands[0]);
    close(answers[1]);
    worker.commands = commands[1];
    worker.answers = answers[0];
  }

  /// Ends a worker and gives its exit status and the end of what it wrote to standard error.
  std::string stop(Worker &worker, int signal) {
    if (worker.process <= 0)
      return "";
    if (signal)
      kill(worker.process, signal);
    int status = 0;
    waitpid(worker.process, &status, 0);
    std::string errors(2000, '\0');
    const off_t end = lseek(worker.errors, 0, SEEK_END);
    const ssize_t got = pread(worker.errors, errors.data(), errors.size(), end > 2000 ? end - 2000 : 0);
    errors.resize(got > 0 ? static_cast<size_t>(got) : 0);
    close(worker.commands);
    close(worker.answers);
    close(worker.errors);
    worker = Worker();
    for (char &c : errors)
      c = c == '\n' ? ' ' : c;
    const std::string how = WIFSIGNALED(status) ? fmt::format("signal {}", strsignal(WTERMSIG(status)))
                                                : fmt::format("exit status {}", WEXITSTATUS(status));
    return fmt::format("{}; {}", how, errors.substr(0, 400));
  }

  void give(Worker &worker, size_t index) {
    if (worker.done >= casesOfWorker)
      stop(worker, SIGKILL);
    if (worker.process <= 0)
      start(worker);
    worker.current = index;
    worker.since = Clock::now();
    writeAll(worker.commands, &index, sizeof(index));
  }

  void finish(Worker &worker, CaseResult result) {
    const size_t index = *worker.current;
    worker.current.reset();
    ++worker.done;
    // A kernel that was stopped takes the GPU's context of its whole process with it.
    if (!options.target.starts_with("sim") &&
        (result.outcome == Outcome::Failed || cases[index].fields.contains("runtimeError")))
      worker.done = casesOfWorker;
    ++finished;
    results[index] = std::move(result);
    progress(index, results[index]);
  }

  /// Until some worker has an answer, is dead or has taken too long.
  void wait() {
    std::vector<pollfd> files;
    for (const Worker &worker : workers)
      files.push_back({worker.current ? worker.answers : -1, POLLIN, 0});
    poll(files.data(), files.size(), 200);
    for (size_t i = 0; i < workers.size(); ++i) {
      Worker &worker = workers[i];
      if (!worker.current)
        continue;
      if (files[i].revents)
        receive(worker);
      else if (std::chrono::duration<double>(Clock::now() - worker.since).count() > options.limitSeconds)
        lose(worker, SIGKILL, fmt::format("no end after {:.0f} s", options.limitSeconds));
    }
  }

  void receive(Worker &worker) {
    char chunk[4096];
    const ssize_t got = read(worker.answers, chunk, sizeof(chunk));
    if (got <= 0)
      return lose(worker, 0, "crashed");
    worker.partial.append(chunk, static_cast<size_t>(got));
    const size_t end = worker.partial.find('\n');
    if (end == std::string::npos)
      return;
    const nlohmann::json answer = nlohmann::json::parse(worker.partial.substr(0, end));
    worker.partial.erase(0, end + 1);
    finish(worker, {static_cast<Outcome>(answer["outcome"].get<int>()), answer["text"], answer["maxUlp"],
                    answer["maxError"], answer["seconds"]});
  }

  void lose(Worker &worker, int signal, const std::string &what) {
    Worker lost = worker;
    const std::string how = stop(worker, signal);
    worker.current = lost.current;
    finish(worker, {Outcome::Failed, fmt::format("{}: {}", what, how)});
  }

  const std::vector<Case> &cases;
  const PoolOptions &options;
  const std::function<void(size_t, const CaseResult &)> &progress;
  std::vector<CaseResult> results;
  std::vector<Worker> workers;
  size_t finished = 0;
};

} // namespace

std::vector<CaseResult> runCases(const std::vector<Case> &cases, const PoolOptions &options,
                                 const std::function<void(size_t index, const CaseResult &)> &progress) {
  return Pool(cases, options, progress).run();
}

} // namespace ditron::conformance
