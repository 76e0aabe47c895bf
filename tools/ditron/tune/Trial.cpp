//===- Trial.cpp - One measurement, in a process of its own ---------------------------------------------------------------===//
#include "tune/Trial.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ditron::tool {

namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  int read = -1, write = -1;

  bool open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      return false;
    read = ends[0];
    write = ends[1];
    return true;
  }
  void closeWrite() {
    if (write >= 0)
      close(write);
    write = -1;
  }
  ~Pipe() {
    closeWrite();
    if (read >= 0)
      close(read);
  }
};

struct Ended {
  int status = 0;
  bool tookTooLong = false;
  std::string out, err;
};

/// What has come; false at the end of the pipe.
bool drain(int descriptor, std::string &text) {
  std::array<char, 4096> buffer{};
  const ssize_t count = read(descriptor, buffer.data(), buffer.size());
  if (count > 0)
    text.append(buffer.data(), static_cast<size_t>(count));
  return count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN));
}

Expected<Ended> runProcess(const std::vector<std::string> &words, double limitSeconds) {
  Pipe out, err;
  if (!out.open() || !err.open())
    return Status(StatusCode::ResourceExhausted, fmt::format("a trial needs two pipes: {}", std::strerror(errno)));
  std::vector<char *> argv;
  for (const std::string &word : words)
    argv.push_back(const_cast<char *>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0)
    return Status(StatusCode::ResourceExhausted, fmt::format("a trial needs a process: {}", std::strerror(errno)));
  if (child == 0) {
    // Whatever ends the tuner ends the trial.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
      _exit(127);
    dup2(out.write, STDOUT_FILENO);
    dup2(err.write, STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  out.closeWrite();
  err.closeWrite();
  Ended ended;
  const auto end = Clock::now() + std::chrono::duration<double>(limitSeconds);
  bool hasOut = true, hasErr = true;
  while (hasOut || hasErr) {
    const double left = std::chrono::duration<double>(end - Clock::now()).count();
    if (left <= 0) {
      ended.tookTooLong = true;
      break;
    }
    std::array<pollfd, 2> waits = {{{hasOut ? out.read : -1, POLLIN, 0}, {hasErr ? err.read : -1, POLLIN, 0}}};
    if (poll(waits.data(), waits.size(), static_cast<int>(std::min(left, 1.0) * 1000) + 1) < 0 && errno != EINTR)
      break;
    if (waits[0].revents)
      hasOut = drain(out.read, ended.out);
    if (waits[1].revents)
      hasErr = drain(err.read, ended.err);
  }
  // One that has closed its streams may still go on; and a killed one may be held up by a driver, but not this one.
  constexpr double patience = 10;
  if (ended.tookTooLong)
    kill(child, SIGKILL);
  while (waitpid(child, &ended.status, WNOHANG) == 0) {
    if (!ended.tookTooLong && Clock::now() >= end) {
      ended.tookTooLong = true;
      kill(child, SIGKILL);
    }
    if (ended.tookTooLong && Clock::now() >= end + std::chrono::duration<double>(patience))
      break;
    usleep(2000);
  }
  return ended;
}

/// The line that says what was wrong.
std::string errorLine(const std::string &text) {
  std::string last;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (line.find("error: ") != std::string::npos)
      return line.substr(line.find("error: ") + 7);
    if (!line.empty())
      last = line;
    begin = end + 1;
  }
  return last;
}

/// Of the report of `ditron bench`, whose operators have each their own words.
std::optional<double> timeOf(const nlohmann::json &report, const TuneProblem &problem) {
  const auto positive = [](const nlohmann::json &value) {
    return value.is_number() && value.get<double>() > 0 ? std::optional(value.get<double>()) : std::nullopt;
  };
  const auto first = [&](const nlohmann::json &in, std::initializer_list<const char *> names) -> std::optional<double> {
    for (const char *name : names)
      if (in.contains(name))
        if (const std::optional<double> value = positive(in.at(name)))
          return value;
    return std::nullopt;
  };
  if (problem.isGrouped()) {
    const nlohmann::json &row = report.at("rows").at(0), &form = row.at(problem.isGathered() ? "gathered" : "rows");
    return positive(form.at("us"));
  }
  if (problem.comparesPlans()) {
    const nlohmann::json &row = report.at("rows").at(0);
    return row.contains("plans") ? positive(row.at("plans").at(0).at("median_microseconds")) : std::nullopt;
  }
  if (problem.isCollective())
    return first(report.at("rows").at(0), {"graph_us", "simulated_us", "microseconds", "simulated_microseconds"});
  return first(report, {"graph_microseconds", "simulated_microseconds"});
}

/// What the report of a benchmark of one plan says of it, where there is a report.
std::optional<std::string> failureOf(const std::string &text) {
  const nlohmann::json report = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const nlohmann::json::json_pointer error("/rows/0/failed/0/error");
  return report.is_discarded() || !report.contains(error) ? std::nullopt
                                                          : std::optional(report.at(error).get<std::string>());
}

std::string oneLine(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  std::ranges::replace(text, '#', ' ');
  constexpr size_t most = 200;
  return text.size() > most ? text.substr(0, most) + "..." : text;
}

} // namespace

std::vector<std::string> trialWords(const TuneProblem &problem, const std::vector<std::string> &plans,
                                    const TrialOptions &options) {
  const std::string bench = problem.isGrouped() ? "grouped_gemm" : problem.isAttention() ? "attention" : problem.op;
  std::vector<std::string> words = {
      options.program, "bench", bench, "--target", options.target, "--dtype", std::string(toString(problem.dtype))};
  const auto add = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
  for (const std::string &plan : plans)
    add({"--plan", plan});
  add({"--json", "-"});
  if (problem.isGrouped())
    add({"--shape", fmt::format("{}x{}x{}x{}x{}", problem.m, problem.n, problem.k, problem.experts, problem.topK),
         "--form", problem.isGathered() ? "gathered" : "rows"}); // always checked, as attention is
  else if (problem.isAttention())
    add({"--shape",
         fmt::format("{}x{}x{}x{}x{}", problem.batch, problem.heads, problem.kvHeads, problem.queries, problem.dim)});
  else if (problem.op == "gemm")
    add({"--shape", fmt::format("{}x{}x{}", problem.m, problem.n, problem.k), "--peer", "none"}); // always checked
  else if (problem.isRmsNorm())
    add({"--ranks", fmt::to_string(problem.ranks), "--rows", fmt::to_string(problem.rowsOfNorm()), "--columns",
         fmt::to_string(problem.columns)}); // always checked
  else if (problem.isCollective())
    add({"--ranks", fmt::to_string(problem.ranks), "--bytes", fmt::to_string(problem.bytes), "--check"});
  else
    add({"--ranks", fmt::to_string(problem.ranks), "--m", fmt::to_string(problem.m), "--n", fmt::to_string(problem.n),
         "--k", fmt::to_string(problem.k), "--check"});
  if (problem.isAttention() && !problem.isCausal())
    add({"--no-causal"});
  add({"--quiet"});
  if (!options.plant.empty())
    add({"--plant", options.plant});
  return words;
}

TrialResult runTrial(const TuneProblem &problem, const std::string &plan, const TrialOptions &options) {
  TrialResult result;
  const Expected<Ended> ended = runProcess(trialWords(problem, {plan}, options), options.limitSeconds);
  if (!ended.isOk()) {
    result.failure = ended.status().message();
  } else if (ended->tookTooLong) {
    result.failure = fmt::format("not done after {:g} s", options.limitSeconds);
  } else if (WIFSIGNALED(ended->status)) {
    result.failure =
        fmt::format("ended by signal {} ({})", WTERMSIG(ended->status), strsignal(WTERMSIG(ended->status)));
  } else if (WEXITSTATUS(ended->status) != 0) {
    result.failure = failureOf(ended->out).value_or(errorLine(ended->err));
  } else {
    const nlohmann::json report = nlohmann::json::parse(ended->out, nullptr, /*allow_exceptions=*/false);
    if (!report.is_discarded())
      result.microseconds = timeOf(report, problem);
    if (!result.microseconds)
      result.failure = "the report has no time";
  }
  if (!result.microseconds && result.failure.empty())
    result.failure = fmt::format("returned {}", WEXITSTATUS(ended->status));
  result.failure = oneLine(result.failure);
  return result;
}

std::map<std::string, double> timesOfPlans(const std::string &text) {
  std::map<std::string, double> times;
  const nlohmann::json report = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const nlohmann::json::json_pointer plans("/rows/0/plans");
  if (report.is_discarded() || !report.contains(plans))
    return times;
  for (const nlohmann::json &plan : report.at(plans))
    if (const nlohmann::json &time = plan.at("median_microseconds"); time.is_number() && time.get<double>() > 0)
      times.emplace(plan.at("name").get<std::string>(), time.get<double>());
  return times;
}

std::map<std::string, double> runTurns(const TuneProblem &problem, const std::vector<std::string> &plans,
                                       const TrialOptions &options) {
  std::vector<std::string> words = trialWords(problem, plans, options);
  words.insert(words.end(), {"--rounds", "7", "--milliseconds", "100"});
  const Expected<Ended> ended = runProcess(words, options.limitSeconds * static_cast<double>(plans.size()));
  const bool isDone =
      ended.isOk() && !ended->tookTooLong && WIFEXITED(ended->status) && WEXITSTATUS(ended->status) == 0;
  return isDone ? timesOfPlans(ended->out) : std::map<std::string, double>();
}

} // namespace ditron::tool
