//===- Simulation.cpp - Events, signals and shared bandwidth in virtual time ----------------------------------------===//
#include "ditron/predict/Simulation.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace ditron::predict {

namespace {
constexpr Time never = std::numeric_limits<Time>::infinity();
/// Transfers that end within so many microseconds of each other end together: what differs is rounding.
constexpr Time together = 1e-6;
} // namespace

void Simulation::after(Time us, Action action) {
  events.push_back({clock + us, ++order, std::move(action)});
  std::push_heap(events.begin(), events.end(), later);
}

PipeId Simulation::addPipe(double bytesPerUs) {
  pipes.push_back(bytesPerUs);
  return PipeId(pipes.size() - 1);
}

void Simulation::transfer(double bytes, std::span<const PipeId> path, Action done) {
  if (bytes <= 0 || path.empty())
    return after(0, std::move(done));
  settle();
  transfers.push_back({bytes, 0, {path.begin(), path.end()}, std::move(done)});
  ratesAreOld = true;
}

SignalId Simulation::addSignal(std::string name) {
  signals.push_back({std::move(name), 0, {}});
  return SignalId(signals.size() - 1);
}

void Simulation::raise(SignalId id) {
  Signal &signal = signals[static_cast<uint32_t>(id)];
  ++signal.value;
  auto isReady = [&](const Waiter &waiter) { return waiter.count <= signal.value; };
  for (Waiter &waiter : signal.waiters)
    if (isReady(waiter))
      after(0, std::move(waiter.action));
  std::erase_if(signal.waiters, isReady);
}

void Simulation::when(SignalId id, uint64_t count, Action action) {
  Signal &signal = signals[static_cast<uint32_t>(id)];
  if (signal.value >= count)
    after(0, std::move(action));
  else
    signal.waiters.push_back({count, std::move(action)});
}

/// Bytes that have moved since the rates were last looked at.
void Simulation::settle() {
  if (const Time passed = clock - settled; passed > 0)
    for (Transfer &transfer : transfers)
      transfer.left -= transfer.rate * passed;
  settled = clock;
}

/// Max-min fairness by filling: the pipe with the least for each of its transfers fixes these; what they take is gone from the other
/// pipes; and so on.
void Simulation::shareRates() {
  settle();
  ratesAreOld = false;
  std::vector<double> left = pipes;
  std::vector<uint32_t> users(pipes.size(), 0);
  std::vector<bool> isFixed(transfers.size(), false);
  for (const Transfer &transfer : transfers)
    for (PipeId pipe : transfer.path)
      ++users[static_cast<uint32_t>(pipe)];
  for (size_t open = transfers.size(); open > 0;) {
    double least = never;
    for (size_t pipe = 0; pipe < pipes.size(); ++pipe)
      if (users[pipe] > 0)
        least = std::min(least, left[pipe] / users[pipe]);
    // The pipes of this round are decided before their shares change.
    std::vector<bool> isTight(pipes.size(), false);
    for (size_t pipe = 0; pipe < pipes.size(); ++pipe)
      isTight[pipe] = users[pipe] > 0 && left[pipe] / users[pipe] <= least * (1 + 1e-12);
    for (size_t i = 0; i < transfers.size(); ++i) {
      Transfer &transfer = transfers[i];
      const bool isHeld =
          std::ranges::any_of(transfer.path, [&](PipeId pipe) { return isTight[static_cast<uint32_t>(pipe)]; });
      if (isFixed[i] || !isHeld)
        continue;
      isFixed[i] = true;
      --open;
      transfer.rate = least;
      for (PipeId pipe : transfer.path) {
        left[static_cast<uint32_t>(pipe)] = std::max(0.0, left[static_cast<uint32_t>(pipe)] - least);
        --users[static_cast<uint32_t>(pipe)];
      }
    }
  }
}

Time Simulation::nextArrival() const {
  Time next = never;
  for (const Transfer &transfer : transfers)
    next = std::min(next, settled + std::max(0.0, transfer.left) / transfer.rate);
  return next;
}

void Simulation::finishArrived() {
  settle();
  auto hasArrived = [](const Transfer &transfer) { return transfer.left <= transfer.rate * together; };
  for (Transfer &transfer : transfers)
    if (hasArrived(transfer))
      after(0, std::move(transfer.done));
  std::erase_if(transfers, hasArrived);
  ratesAreOld = true;
}

Status Simulation::run() {
  Time arrival = never;
  while (true) {
    // New transfers of one moment begin together: rates are shared once the moment has passed.
    const Time event = events.empty() ? never : events.front().time;
    if (ratesAreOld && event > clock) {
      shareRates();
      arrival = nextArrival();
    }
    if (!ratesAreOld && arrival < event) {
      clock = std::max(clock, arrival);
      finishArrived();
      arrival = never;
      continue;
    }
    if (events.empty())
      break;
    std::pop_heap(events.begin(), events.end(), later);
    Event next = std::move(events.back());
    events.pop_back();
    clock = next.time;
    next.action();
  }
  for (const Signal &signal : signals)
    if (!signal.waiters.empty())
      return internalError(fmt::format("prediction: {} stands at {} and never reaches {}", signal.name, signal.value,
                                       signal.waiters.front().count));
  return Status::ok();
}

} // namespace ditron::predict
