//===- Fault.cpp - Accesses of memory that is not there -----------------------------------------------------------===//
#include "ditron/sim/memory/Fault.h"

#include "ditron/sim/engine/Engine.h"

#include <fmt/format.h>

#include <csignal>
#include <cstring>
#include <memory>
#include <mutex>
#include <ucontext.h>

namespace ditron::sim {

namespace {

constexpr size_t signalStackBytes = 64 << 10;
constexpr int faultSignals[] = {SIGSEGV, SIGBUS};

struct sigaction previous[std::size(faultSignals)];

/// Where a fiber goes on after a fault, on the top of its stack.
[[noreturn]] void afterFault(Thread *thread, const char *address) {
  Block &block = *thread->block;
  const char *stackEnd = thread->stack.top - thread->stack.bytes;
  constexpr ptrdiff_t guardBytes = 4096;
  if (address < stackEnd && address >= stackEnd - guardBytes)
    block.failThread(*thread, StatusCode::ResourceExhausted,
                     fmt::format("the thread's stack of {} is used up", byteCount(thread->stack.bytes)),
                     thread->accessSite);
  if (block.checked)
    block.failThread(*thread, StatusCode::Internal,
                     fmt::format("the simulator itself touched {}, which is no memory; {}",
                                 block.engine.memory.placeText(address),
                                 block.engine.memory.describeNearest(address, 1)),
                     thread->accessSite);
  block.failThread(
      *thread, StatusCode::OutOfBounds,
      fmt::format("an access at or after this line, at {}, met no memory: {}; run with bounds checks to see which",
                  block.engine.memory.placeText(address), block.engine.memory.describeNearest(address, 1)),
      thread->accessSite);
}

void handle(int number, siginfo_t *info, void *context) {
  auto *thread = static_cast<Thread *>(ditron_sim_self());
  const size_t which = number == SIGBUS;
  if (!thread || thread->faulted) {
    // Nothing of ours: back to what was there before, under which the instruction faults again.
    sigaction(number, &previous[which], nullptr);
    return;
  }
  thread->faulted = true;
  auto &registers = static_cast<ucontext_t *>(context)->uc_mcontext;
  const auto top = reinterpret_cast<uintptr_t>(thread->stack.top) & ~uintptr_t(15);
#if defined(__x86_64__)
  registers.gregs[REG_RSP] = static_cast<greg_t>(top - 64 - 8); // as after a call
  registers.gregs[REG_RIP] = reinterpret_cast<greg_t>(&afterFault);
  registers.gregs[REG_RDI] = reinterpret_cast<greg_t>(thread);
  registers.gregs[REG_RSI] = reinterpret_cast<greg_t>(info->si_addr);
  registers.gregs[REG_EFL] &= ~greg_t(0x400); // the direction of string instructions
#elif defined(__aarch64__)
  registers.sp = top - 64;
  registers.pc = reinterpret_cast<uintptr_t>(&afterFault);
  registers.regs[0] = reinterpret_cast<uintptr_t>(thread);
  registers.regs[1] = reinterpret_cast<uintptr_t>(info->si_addr);
#else
  (void)top;
  (void)registers;
  sigaction(number, &previous[which], nullptr);
#endif
}

/// A stack for the signals of one operating-system thread: that of a fiber may be what has overflowed.
class SignalStack {
public:
  SignalStack() {
    stack_t old = {};
    if (sigaltstack(nullptr, &old) != 0 || !(old.ss_flags & SS_DISABLE))
      return; // somebody has one already
    memory = std::make_unique<char[]>(signalStackBytes);
    stack_t own = {};
    own.ss_sp = memory.get();
    own.ss_size = signalStackBytes;
    sigaltstack(&own, nullptr);
  }
  ~SignalStack() {
    if (!memory)
      return;
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }

private:
  std::unique_ptr<char[]> memory;
};

} // namespace

void prepareForFaults() {
  thread_local SignalStack stack;
  (void)stack;
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < std::size(faultSignals); ++i)
      sigaction(faultSignals[i], &action, &previous[i]);
  });
}

} // namespace ditron::sim
