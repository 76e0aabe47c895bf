//===- HostRun.h - One host code of a run ---------------------------------------------------------------*- C++ -*-===//
//
// Does the steps of a host declaration on one rank.
//
// A graph keeps the values that its operations had when they were captured. While it captures, host code notes every value that came
// from a variable, and every address; a replay finds each again as a launch would now. When one differs, the graph would do something
// else than the program says, and the replay is an error that names both values.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_PROGRAM_HOSTRUN_H
#define DITRON_PROGRAM_HOSTRUN_H

#include "ditron/program/RunState.h"
#include "ditron/program/Scope.h"

#include <set>

namespace ditron::program {

class HostRun {
public:
  HostRun(Run::State &state, const HostDeclaration &host, uint32_t rank);

  Status run();

private:
  Status runSteps(const std::vector<Step> &steps);
  Status runStep(const Step &step);

  Status perform(const Step &step, const LaunchStep &launch);
  Status perform(const Step &step, const CallStep &call);
  Status performCollective(const Step &step, const CallStep &call, ops::Collective &op);
  Status perform(const Step &step, const CopyStep &copy);
  Status perform(const Step &step, const MemsetStep &memset);
  Status perform(const Step &step, const SignalStep &signal);
  Status perform(const Step &step, const RecordStep &record);
  Status perform(const Step &step, const WaitStep &wait);
  Status perform(const Step &step, const SynchronizeStep &synchronize);
  Status perform(const Step &step, const BarrierStep &barrier);
  Status perform(const Step &step, const CaptureStep &capture);
  Status perform(const Step &step, const ReplayStep &replay);
  Status perform(const Step &step, const AllocateStep &allocate);
  Status perform(const Step &step, const FreeStep &free);
  Status perform(const Step &step, const WriteStep &write);
  Status perform(const Step &step, const ReadStep &read);
  Status perform(const Step &step, const SetStep &set);
  Status perform(const Step &step, const RepeatStep &repeat);
  Status perform(const Step &step, const ExpectStep &expect);
  Status perform(const Step &step, const PrintStep &print);
  Status perform(const Step &step, const SaveStep &save);

  //===- Values ---------------------------------------------------------------------------------------------------===//

  /// The text with its {expressions} replaced; `what` is said of it when a graph keeps it.
  Expected<std::string> text(const Text &text, const std::string &what);
  Expected<int64_t> number(const Text &text, const std::string &what);
  Expected<Part> part(const Text &text, const std::string &what);
  /// A part of one element.
  Expected<Part> word(const Text &text, const std::string &what);
  /// What `value` means for a part: an array of its type and shape; a number fills it.
  Expected<NpyArray> valueFor(const Part &part, const Text &value, std::string *written = nullptr);
  /// Notes that a captured operation holds the buffer's address.
  void noteAddress(const LocalArray &array, const std::string &what, const Place &place);
  void noteBaked(BakedValue::Kind kind, std::string what, const Place &place, std::string name, std::string value);
  /// What a kept value would be now; none when there is no telling.
  std::optional<std::string> valueNow(const BakedValue &baked) const;

  //===- Launches -------------------------------------------------------------------------------------------------===//

  /// The values of a launch, by parameter.
  Expected<runtime::CallArguments> bind(const LaunchStep &launch, const jit::KernelFunction &function,
                                        values::IntegerNames &integers, const Place &place);
  Status addGiven(const std::string &name, const Text &value, bool isConstexpr, const std::string &kernel,
                  runtime::CallArguments &call);

  //===- Memory ---------------------------------------------------------------------------------------------------===//

  /// All ranks make this call, in the same order: waits for them.
  Status meetAll(const Step &step, const std::string &what);
  /// An error when something may still use the array.
  Status checkUnused(const LocalArray &array) const;

  Run::State &state;
  const HostDeclaration &host;
  const uint32_t rank;
  runtime::World &world;
  Scope scope;
  std::vector<BakedValue> *capturing = nullptr; ///< What the open capture keeps.
  std::set<std::string> decided;                ///< Variables that the captured steps have set themselves.
  std::vector<std::string> counters;            ///< Of the loops that are under way.
};

} // namespace ditron::program
#endif // DITRON_PROGRAM_HOSTRUN_H
