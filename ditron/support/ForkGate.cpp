//===- ForkGate.cpp - fork() while other threads are in the library -----------------------------------------------===//
#include "ditron/support/ForkGate.h"

#include <condition_variable>
#include <mutex>
#include <new>
#include <pthread.h>

namespace ditron {

namespace {

struct Gate {
  std::mutex mutex; ///< Held by fork() from its wait on until it is done, so that no thread enters meanwhile.
  std::condition_variable changed;
  unsigned threads = 0; ///< Inside.
};

// Never destroyed: threads may be inside, and fork() be called, while a program ends. In place, so that no guard of a static
// variable protects it.
alignas(Gate) unsigned char gateBytes[sizeof(Gate)];
Gate &gate() { return *reinterpret_cast<Gate *>(gateBytes); }

/// How many gates this thread is inside of.
thread_local unsigned depth = 0;

void enter() {
  std::lock_guard lock(gate().mutex);
  ++gate().threads;
}

void leave() {
  std::lock_guard lock(gate().mutex);
  --gate().threads;
  gate().changed.notify_all();
}

void beforeFork() {
  std::unique_lock lock(gate().mutex);
  const unsigned own = depth > 0;
  gate().changed.wait_for(lock, ForkGate::longest, [&] { return gate().threads == own; });
  lock.release();
}

void afterForkInParent() { gate().mutex.unlock(); }

void afterForkInChild() {
  new (gateBytes) Gate; // threads that are no more may wait in the old one
  gate().threads = depth > 0;
}

/// When the library is loaded, before it has threads.
const int registered = [] {
  new (gateBytes) Gate;
  return pthread_atfork(beforeFork, afterForkInParent, afterForkInChild);
}();

} // namespace

ForkGate::ForkGate() {
  if (depth++ == 0)
    enter();
}

ForkGate::~ForkGate() {
  if (--depth == 0)
    leave();
}

ForkGateOpen::ForkGateOpen() : depth(ditron::depth) {
  if (ditron::depth > 0)
    leave();
  ditron::depth = 0;
}

ForkGateOpen::~ForkGateOpen() {
  ditron::depth = depth;
  if (depth > 0)
    enter();
}

} // namespace ditron
