//===- DoctorCommand.cpp - ditron doctor --------------------------------------------------------------------------===//
//
// Looks at everything that Ditron's GPU backend depends on and says of each thing whether it is ok, forces a slower path, or
// cannot be used, and what would fix it. Works without a GPU. What might hang runs in child processes (this program again,
// with --probe) that are ended when their time is up.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "base/Command.h"
#include "doctor/DoctorReport.h"

#include "ditron/runtime/TargetChoice.h"
#include "ditron/runtime/cuda/PeerProbe.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ditron::tool {

namespace {

struct DoctorArguments {
  std::string probe; ///< "FROM,TO", in a child.
  double timeLimit = 30;
  bool json = false;
  bool noProbe = false;
};

struct ProbeOutcome {
  bool passed = false;
  std::string text;
};

/// Runs `ditron doctor --probe FROM,TO` and takes what it prints. A child that does not answer in time is killed; a killed
/// process whose GPU hangs may stay as a zombie of the kernel's, so nobody waits for it longer than a moment.
ProbeOutcome probeInChild(int from, int to, double timeLimit) {
  int pipes[2];
  if (pipe(pipes) != 0)
    return {false, std::strerror(errno)};
  const std::string pair = fmt::format("{},{}", from, to);
  const pid_t child = fork();
  if (child < 0)
    return {false, fmt::format("cannot start a process: {}", std::strerror(errno))};
  if (child == 0) {
    dup2(pipes[1], STDOUT_FILENO);
    close(pipes[0]);
    close(pipes[1]);
    execl("/proc/self/exe", "ditron", "doctor", "--probe", pair.c_str(), static_cast<char *>(nullptr));
    _exit(127);
  }
  close(pipes[1]);
  std::string text;
  using Clock = std::chrono::steady_clock;
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeLimit));
  bool ended = false;
  while (!ended) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd waiting = {pipes[0], POLLIN, 0};
    if (left <= 0 || poll(&waiting, 1, static_cast<int>(left)) == 0)
      break;
    char buffer[4096];
    const ssize_t got = read(pipes[0], buffer, sizeof(buffer));
    if (got <= 0 && errno != EINTR)
      ended = true;
    else if (got > 0)
      text.append(buffer, static_cast<size_t>(got));
  }
  close(pipes[0]);
  int status = 0;
  if (!ended) {
    kill(child, SIGKILL);
    for (int i = 0; i < 100 && waitpid(child, &status, WNOHANG) == 0; ++i)
      usleep(10000);
    return {false, fmt::format("no answer within {:g} seconds", timeLimit)};
  }
  waitpid(child, &status, 0);
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  if (WIFSIGNALED(status))
    return {false, fmt::format("the probe was ended by signal {}", WTERMSIG(status))};
  return {WEXITSTATUS(status) == 0, text};
}

/// The child's side.
Status runProbe(const std::string &pair, CommandContext &context) {
  int from = 0, to = 0;
  if (std::sscanf(pair.c_str(), "%d,%d", &from, &to) != 2)
    return invalidArgument(fmt::format("--probe '{}': write FROM,TO", pair));
  DITRON_ASSIGN_OR_RETURN(std::shared_ptr<const cuda::CudaDriver> driver, cuda::CudaDriver::open());
  const Expected<cuda::PeerProbeResult> result = cuda::probePeers(driver, from, to);
  if (result.isOk())
    fmt::print("{:.0f} GB/s by the copy engine\n", result->copyGigabytesPerSecond);
  else
    fmt::print("{}\n", result.status().message());
  std::fflush(stdout);
  // A GPU that hangs must not hold the process up at its end.
  std::_Exit(result.isOk() ? ExitDone : ExitKernelFailed);
}

void examineGpu(DoctorReport &report, const cuda::CudaDriver &driver, int ordinal) {
  const std::string subject = fmt::format("GPU {}", ordinal);
  char name[128] = {}, bus[64] = {};
  driver.deviceGetName(name, sizeof(name) - 1, ordinal);
  driver.deviceGetPciBusId(bus, sizeof(bus) - 1, ordinal);
  size_t bytes = 0;
  driver.deviceTotalMem(&bytes, ordinal);
  auto ask = [&](cuda::Attribute attribute) { return driver.attribute(attribute, ordinal); };
  const int major = ask(cuda::Attribute::ComputeCapabilityMajor), minor = ask(cuda::Attribute::ComputeCapabilityMinor);
  const Expected<TargetName> target = runtime::cudaTargetFor(major, minor);
  const std::string what =
      fmt::format("{} at {}, {:.0f} GiB, {} SMs, compute capability {}.{}", name, bus,
                  static_cast<double>(bytes) / (1 << 30), ask(cuda::Attribute::MultiprocessorCount), major, minor);
  if (!target.isOk()) {
    report.add(subject, Verdict::NotUsable, what + ": " + target.status().message());
    return;
  }
  const bool native = target->architecture == fmt::format("sm_{}{}", major, minor) ||
                      target->architecture == fmt::format("sm_{}{}a", major, minor);
  report.add(subject, native ? Verdict::Ok : Verdict::Slower,
             fmt::format("{}, target {}{}", what, target->text,
                         native ? "" : ": code of an older architecture, which the driver translates"));
  const int shared = ask(cuda::Attribute::MaxSharedMemoryPerBlockOptin);
  report.add(subject + " shared memory", Verdict::Ok, fmt::format("{} KiB for a block", shared >> 10));
  if (!ask(cuda::Attribute::VirtualMemoryManagementSupported))
    report.add(subject + " mapping", Verdict::NotUsable, "no virtual memory management: heaps cannot be mapped",
               "bare metal or a hypervisor that passes it through; vGPU profiles often do not");
  else if (!ask(cuda::Attribute::HandleTypePosixFileDescriptorSupported))
    report.add(subject + " mapping", Verdict::Slower, "memory cannot be given to other processes by file descriptor",
               "drive all GPUs from one process");
  if (ask(cuda::Attribute::ComputeMode) == 3 /* exclusive process */)
    report.add(subject + " mode", Verdict::Slower, "exclusive: one process at a time", "nvidia-smi -c 0");
  // Asked, never tried: creating a multicast object needs the fabric manager's consent and can disturb other users.
  report.add(subject + " multicast", ask(cuda::Attribute::MulticastSupported) ? Verdict::Ok : Verdict::Slower,
             ask(cuda::Attribute::MulticastSupported) ? "the GPU and the switch offer it; not tried"
                                                      : "not offered: reductions over the switch go by peer loads");
}

void examinePeers(DoctorReport &report, const cuda::CudaDriver &driver, const DoctorArguments &arguments) {
  const int count = driver.deviceCount();
  for (int from = 0; from < count; ++from)
    for (int to = 0; to < count; ++to) {
      if (from == to)
        continue;
      const std::string subject = fmt::format("GPU {} to {}", from, to);
      int can = 0;
      if (driver.deviceCanAccessPeer(&can, from, to) != cuda::success || !can) {
        report.add(subject, Verdict::NotUsable, "the driver offers no peer access",
                   "see `nvidia-smi topo -m`; consumer GPUs have none, and an IOMMU or ACS can forbid it");
        continue;
      }
      if (arguments.noProbe) {
        report.add(subject, Verdict::Ok, "the driver offers peer access; not tried");
        continue;
      }
      const ProbeOutcome outcome = probeInChild(from, to, arguments.timeLimit);
      if (outcome.passed)
        report.add(subject, Verdict::Ok,
                   fmt::format("stores, loads, atomics, copies and signals verified, {}", outcome.text));
      else
        report.add(
            subject, Verdict::NotUsable, fmt::format("peer access was tried and failed: {}", outcome.text),
            "disable ACS/IOMMU for the GPUs' root ports (or pass them through together); look into dmesg for Xid");
    }
}

void examineGpus(DoctorReport &report, const DoctorArguments &arguments) {
  const Expected<std::shared_ptr<const cuda::CudaDriver>> opened = cuda::CudaDriver::open();
  if (!opened.isOk()) {
    report.add("NVIDIA driver", Verdict::NotUsable, opened.status().message(),
               "install the driver (in a container: run it with --gpus all); the simulator needs none of it");
    return;
  }
  const cuda::CudaDriver &driver = **opened;
  report.add("NVIDIA driver", Verdict::Ok,
             fmt::format("speaks CUDA {}.{}", driver.version() / 1000, driver.version() % 1000 / 10));
  const char *visible = std::getenv("CUDA_VISIBLE_DEVICES");
  report.add(
      "visible GPUs", driver.deviceCount() ? Verdict::Ok : Verdict::NotUsable,
      fmt::format("{}{}", driver.deviceCount(), visible ? fmt::format(" (CUDA_VISIBLE_DEVICES={})", visible) : ""),
      driver.deviceCount() ? "" : "unset CUDA_VISIBLE_DEVICES, or see nvidia-smi");
  for (int ordinal = 0; ordinal < driver.deviceCount(); ++ordinal)
    examineGpu(report, driver, ordinal);
  examinePeers(report, driver, arguments);
}

Status runDoctor(const DoctorArguments &arguments, CommandContext &context) {
  if (!arguments.probe.empty())
    return runProbe(arguments.probe, context);
  DoctorReport report;
  report.add("simulator", Verdict::Ok, "needs nothing: --target sim");
  examineGpus(report, arguments);
  examineHost(report);
  examineKernelCache(report, context.knobs);
  fmt::print("{}", arguments.json ? report.json() + "\n" : report.text());
  return Status::ok();
}

} // namespace

void addDoctorCommand(CLI::App &app, CommandContext &context) {
  CLI::App *command =
      app.add_subcommand("doctor", "Say what of this machine Ditron can use, and what would fix the rest");
  auto arguments = std::make_shared<DoctorArguments>();
  command->add_flag("--json", arguments->json, "As JSON");
  command->add_flag("--no-probe", arguments->noProbe, "Do not try transfers between GPUs, only ask the driver");
  command->add_option("--time-limit", arguments->timeLimit, "Of one trial of a pair of GPUs")
      ->type_name("SECONDS")
      ->capture_default_str();
  command->add_option("--probe", arguments->probe, "Only this pair of GPUs, in this process")
      ->type_name("FROM,TO")
      ->group("");
  command->footer("Each line says ok, slower path or not usable. The exit code is 0 whatever is found.");
  command->callback([arguments, &context] { context.finish(runDoctor(*arguments, context)); });
}

} // namespace ditron::tool
