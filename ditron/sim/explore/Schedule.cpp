//===- Schedule.cpp - What a run leaves to chance ---------------------------------------------------------------------===//

#include "ditron/sim/explore/Schedule.h"

#include "ditron/sim/engine/Scheduler.h"
#include "ditron/support/Suggest.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tuple>

namespace ditron::sim {

namespace {

using Json = nlohmann::ordered_json;

template <typename T> struct Knob {
  const char *name;
  T Schedule::*member;
  double least, most;
};

/// All but the seed, in the order in which they are taken away.
constexpr auto knobs() {
  constexpr double most = 1e9;
  return std::make_tuple(Knob<bool>{"by_priority", &Schedule::byPriority, 0, 1},
                         Knob<uint32_t>{"priority_changes", &Schedule::priorityChanges, 0, 64},
                         Knob<uint64_t>{"expected_steps", &Schedule::expectedSteps, 1, 1e15},
                         Knob<bool>{"stops_at_barriers", &Schedule::stopsAtBarriers, 0, 1},
                         Knob<uint32_t>{"busy_sms", &Schedule::busySms, 0, 4096},
                         Knob<int32_t>{"slow_rank", &Schedule::slowRank, -1, 1e6},
                         Knob<double>{"slow_factor", &Schedule::slowFactor, 1, 1e6},
                         Knob<double>{"block_start_ns", &Schedule::blockStartNs, 0, most},
                         Knob<double>{"late_copies", &Schedule::lateCopies, 0, 1},
                         Knob<bool>{"shuffled_copies", &Schedule::shuffledCopies, 0, 1},
                         Knob<double>{"late_wakes", &Schedule::lateWakes, 0, 1},
                         Knob<double>{"host_start_ns", &Schedule::hostStartNs, 0, most},
                         Knob<double>{"rank_start_ns", &Schedule::rankStartNs, 0, most},
                         Knob<double>{"thread_switches", &Schedule::threadSwitches, 0, 1},
                         Knob<bool>{"shuffled_warps", &Schedule::shuffledWarps, 0, 1},
                         Knob<double>{"late_stores", &Schedule::lateStores, 0, 1});
}

template <typename Visit> void forEachKnob(Visit visit) {
  std::apply([&](const auto &...knob) { (visit(knob), ...); }, knobs());
}

template <typename T> Status read(const Knob<T> &knob, const Json &value, Schedule &schedule) {
  const Status wrong = invalidArgument(fmt::format(
      "schedule: {} is {}; accepted is {}", knob.name, value.dump(),
      std::is_same_v<T, bool> ? "true or false" : fmt::format("a number from {} to {}", knob.least, knob.most)));
  if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_boolean())
      return wrong;
  } else if (!value.is_number() || (std::is_integral_v<T> && !value.is_number_integer()) ||
             value.get<double>() < knob.least || value.get<double>() > knob.most) {
    return wrong;
  }
  schedule.*knob.member = value.get<T>();
  return Status::ok();
}

} // namespace

Schedule Schedule::draw(uint64_t number, uint32_t ranks, uint32_t smsPerRank) {
  Schedule schedule;
  schedule.seed = number;
  if (number == 0)
    return schedule;
  Random random(~number * 0x9e3779b97f4a7c15ULL);
  const auto oneIn = [&](uint64_t count) { return random.below(count) == 0; };
  const auto oneOf = [&](std::initializer_list<double> values) { return values.begin()[random.below(values.size())]; };
  schedule.shuffledWarps = schedule.shuffledCopies = true;
  if (ranks > 1)
    schedule.rankStartNs = oneOf({0, 5'000, 50'000});
  schedule.hostStartNs = oneOf({5'000, 50'000});
  schedule.blockStartNs = oneOf({0, 500, 5'000});
  schedule.threadSwitches = oneOf({0.0625, 0.25});
  schedule.lateStores = oneOf({0.25, 0.5});
  schedule.lateWakes = oneOf({0, 0.1, 0.5});
  schedule.lateCopies = oneOf({0, 0.3});
  schedule.stopsAtBarriers = oneIn(2);
  if (oneIn(4) && smsPerRank > 1)
    schedule.busySms = static_cast<uint32_t>(1 + random.below(smsPerRank - 1));
  if (oneIn(3) && ranks > 1) {
    schedule.slowRank = static_cast<int32_t>(random.below(ranks));
    schedule.slowFactor = oneOf({2, 8});
  }
  if (oneIn(3)) {
    schedule.byPriority = true;
    schedule.priorityChanges = static_cast<uint32_t>(random.below(4));
    schedule.expectedSteps = uint64_t(16) << random.below(10);
  }
  return schedule;
}

std::string Schedule::toJson() const {
  const Schedule plain;
  Json object = {{"seed", seed}};
  forEachKnob([&](const auto &knob) {
    if (this->*knob.member != plain.*knob.member)
      object[knob.name] = this->*knob.member;
  });
  return object.dump();
}

Expected<Schedule> Schedule::fromJson(std::string_view text) {
  const Json object = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object())
    return invalidArgument("schedule: not a JSON object");
  Schedule schedule;
  for (const auto &[name, value] : object.items()) {
    std::vector<std::string> names = {"seed"};
    Status result = Status::ok();
    bool known = name == "seed";
    if (known) {
      if (!value.is_number_unsigned())
        return invalidArgument(fmt::format("schedule: seed is {}; accepted is an integer from 0", value.dump()));
      schedule.seed = value.get<uint64_t>();
    }
    forEachKnob([&](const auto &knob) {
      names.push_back(knob.name);
      if (name != knob.name)
        return;
      known = true;
      result = read(knob, value, schedule);
    });
    if (!known)
      return invalidArgument(fmt::format("schedule: '{}' is no part of it{}", name, didYouMean(name, names)));
    DITRON_RETURN_IF_ERROR(result);
  }
  return schedule;
}

std::vector<std::string> Schedule::drawnKnobs() const {
  const Schedule plain;
  std::vector<std::string> names;
  forEachKnob([&](const auto &knob) {
    if (this->*knob.member != plain.*knob.member)
      names.push_back(knob.name);
  });
  return names;
}

Schedule Schedule::without(std::string_view name) const {
  const Schedule plain;
  Schedule result = *this;
  forEachKnob([&](const auto &knob) {
    if (name == knob.name)
      result.*knob.member = plain.*knob.member;
  });
  if (name == "priority_changes" && priorityChanges > 0)
    result.priorityChanges = priorityChanges - 1;
  if (name == "slow_rank")
    result.slowFactor = plain.slowFactor;
  if (name == "by_priority") {
    result.priorityChanges = plain.priorityChanges;
    result.expectedSteps = plain.expectedSteps;
  }
  return result;
}

} // namespace ditron::sim
