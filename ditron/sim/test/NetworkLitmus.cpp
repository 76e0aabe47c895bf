//===- NetworkLitmus.cpp - Litmus tests of puts, gets and signals between nodes ---------------------------------------===//

#include "ditron/sim/test/NetworkLitmus.h"

#include "ditron/abi/Simulator.h"
#include "ditron/sim/Machine.h"

#include <algorithm>

namespace ditron::sim {

namespace {

using Kind = NetworkAction::Kind;
constexpr uint32_t mostWords = 5, mostRanks = 4;
constexpr uint32_t stride = 64; ///< Words are in cache lines of their own.
const DitronSimSite firstSite{"litmus.py", 1, 1}, betweenSite{"litmus.py", 2, 1}, secondSite{"litmus.py", 3, 1},
    endSite{"litmus.py", 4, 1};

struct Role {
  std::array<NetworkAction, 2> actions;
  NetworkOrder order;
  uint32_t *words[mostWords]; ///< Of the ranks that have them.
  uint32_t homes[mostWords];
  uint32_t *sources;              ///< One for each action, and one for other data.
  uint32_t *results;              ///< One for each action.
  uint32_t *elsewhere[mostRanks]; ///< For the data of PutSignal.
};

void act(DitronSimThread *self, const Role &role, uint32_t place, const DitronSimSite *site) {
  const NetworkAction &action = role.actions[place];
  uint32_t *word = role.words[action.word];
  const uint32_t home = role.homes[action.word];
  switch (action.kind) {
  case Kind::None: return;
  case Kind::Put: return ditron_sim_shmem_put(self, word, role.sources + place, 4, home, /*nonblocking=*/1, site);
  case Kind::PutSignal:
    return ditron_sim_shmem_put_signal(self, role.elsewhere[home], role.sources + 2, 4, word, action.value, 4,
                                       DITRON_SIM_SIGNAL_SET, home, 1, site);
  case Kind::SignalOp: return ditron_sim_shmem_signal(self, word, action.value, 4, DITRON_SIM_SIGNAL_SET, home, site);
  case Kind::Get: return ditron_sim_shmem_get(self, role.results + place, word, 4, home, /*nonblocking=*/0, site);
  case Kind::Wait:
    ditron_sim_wait_until(self, word, 4, DITRON_SIM_EQ, action.value, DITRON_SIM_ACQUIRE, DITRON_SIM_SCOPE_SYSTEM,
                          site);
    return;
  case Kind::Load:
    role.results[place] = static_cast<uint32_t>(
        ditron_sim_ld(self, word, 4, DITRON_SIM_ACQUIRE, DITRON_SIM_SCOPE_SYSTEM, /*spin=*/0, site));
    return;
  case Kind::Store:
    ditron_sim_st(self, word, action.value, 4, DITRON_SIM_RELEASE, DITRON_SIM_SCOPE_SYSTEM, site);
    return;
  }
}

void takePart(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  const Role &role = *static_cast<const Role *>(arguments[0]);
  const auto &[first, second] = role.actions;
  const bool isPut = first.kind == Kind::Put && second.kind == Kind::Put;
  if (role.order == NetworkOrder::Signal && isPut) {
    ditron_sim_shmem_put_signal(self, role.words[first.word], role.sources, 4, role.words[second.word], second.value, 4,
                                DITRON_SIM_SIGNAL_SET, role.homes[first.word], /*nonblocking=*/1, &firstSite);
  } else {
    act(self, role, 0, &firstSite);
    if (role.order == NetworkOrder::Fence || role.order == NetworkOrder::Quiet)
      ditron_sim_shmem_order(self, role.order == NetworkOrder::Fence ? DITRON_SIM_SHMEM_FENCE : DITRON_SIM_SHMEM_QUIET,
                             &betweenSite);
    act(self, role, 1, &secondSite);
  }
  ditron_sim_shmem_order(self, DITRON_SIM_SHMEM_QUIET, &endSite); // for what is there at the end
}

NetworkAction put(uint8_t word, uint32_t value) { return {Kind::Put, word, value}; }
NetworkAction putSignal(uint8_t word, uint32_t value) { return {Kind::PutSignal, word, value}; }
NetworkAction signalOp(uint8_t word, uint32_t value) { return {Kind::SignalOp, word, value}; }
NetworkAction get(uint8_t word) { return {Kind::Get, word, 0}; }
NetworkAction waitFor(uint8_t word, uint32_t value) { return {Kind::Wait, word, value}; }
NetworkAction load(uint8_t word) { return {Kind::Load, word, 0}; }
NetworkAction store(uint8_t word, uint32_t value) { return {Kind::Store, word, value}; }

} // namespace

std::string toString(NetworkOrder order) {
  switch (order) {
  case NetworkOrder::Nothing: return "nothing between";
  case NetworkOrder::Fence: return "fence";
  case NetworkOrder::Quiet: return "quiet";
  case NetworkOrder::Signal: return "put with signal";
  }
  return "";
}

bool NetworkTest::isForbiddenBy(NetworkOrder order) const {
  return std::find(forbidding.begin(), forbidding.end(), order) != forbidding.end();
}

const std::vector<NetworkTest> &networkTests() {
  using enum NetworkOrder;
  constexpr uint8_t x = 0, y = 1, z = 2, w = 3;
  const std::vector<NetworkOrder> every = {Nothing, Fence, Quiet, Signal}, ordered = {Fence, Quiet, Signal},
                                  completed = {Quiet};
  static const std::vector<NetworkTest> tests = {
      {"MP",
       "put x, put y to one PE; there wait for y, load x",
       {1, 1},
       {{put(x, 1), put(y, 1)}, {waitFor(y, 1), load(x)}},
       {0, -1, -1},
       ordered,
       true},
      {"MP+signal",
       "put x, put z with signal y; there wait for y, load x",
       {1, 1},
       {{put(x, 1), putSignal(y, 1)}, {waitFor(y, 1), load(x)}},
       {0, -1, -1},
       {Fence, Quiet}},
      {"MP+signal_op",
       "put x, signal_op y; there wait for y, load x",
       {1, 1},
       {{put(x, 1), signalOp(y, 1)}, {waitFor(y, 1), load(x)}},
       {0, -1, -1},
       {Fence, Quiet}},
      {"SB",
       "put x, get y against put y, get x",
       {2, 3},
       {{put(x, 1), get(y)}, {put(y, 1), get(x)}, {}, {}},
       {0, 0, -1, -1},
       completed},
      {"LB",
       "get x, put y against get y, put x",
       {2, 3},
       {{get(x), put(y, 1)}, {get(y), put(x, 1)}, {}, {}},
       {1, 1, -1, -1},
       every},
      {"S",
       "put x=2, put y; there wait for y, store x=1",
       {1, 1},
       {{put(x, 2), put(y, 1)}, {waitFor(y, 1), store(x, 1)}},
       {2, -1},
       ordered,
       true},
      {"2+2W",
       "put x=1, put y=2 against put y=1, put x=2, all to one PE",
       {2, 2},
       {{put(x, 1), put(y, 2)}, {put(y, 1), put(x, 2)}, {}},
       {1, 1},
       ordered,
       true},
      {"2+2W, two PEs",
       "the same, x and y on different PEs",
       {2, 3},
       {{put(x, 1), put(y, 2)}, {put(y, 1), put(x, 2)}, {}, {}},
       {1, 1},
       completed},
      {"ISA2",
       "put x to PE 2, put y to PE 1; PE 1 waits for y, puts z to PE 2; PE 2 waits for z, loads x",
       {2, 1, 2},
       {{put(x, 1), put(y, 1)}, {waitFor(y, 1), put(z, 1)}, {waitFor(z, 1), load(x)}},
       {0, -1, -1, -1},
       completed},
      {"IRIW",
       "two PEs each signal_op to both of two others, which see them in different orders",
       {2, 3, 2, 3},
       {{signalOp(x, 1), signalOp(y, 1)},
        {signalOp(z, 1), signalOp(w, 1)},
        {waitFor(x, 1), load(z)},
        {waitFor(w, 1), load(y)}},
       {0, 0, -1, -1, -1, -1},
       {}},
      {"CoWW", "put x=1, put x=2: which stays", {1}, {{put(x, 1), put(x, 2)}, {}}, {1}, {Fence, Quiet}},
      {"CoRR", "put x against get x, get x", {1}, {{put(x, 1), {}}, {}, {get(x), get(x)}}, {1, 0, -1}, every},
  };
  return tests;
}

Expected<bool> seesWeakOutcome(const NetworkTest &test, NetworkOrder order, uint64_t seed) {
  const auto numRanks = static_cast<uint32_t>(test.threads.size()), numWords = static_cast<uint32_t>(test.homes.size());
  MachineOptions options;
  options.ranks = numRanks;
  options.ranksPerNode = 1;
  options.smsPerRank = 1;
  options.seed = seed;
  options.memoryPerRank = uint64_t(1) << 20;
  // A get reads like a plain load, which races with a put of the word, and two puts of a word race with each other.
  std::vector<bool> isPut(test.homes.size());
  for (const auto &actions : test.threads)
    for (const NetworkAction &action : actions) {
      if (action.kind == Kind::Get || (action.kind == Kind::Put && isPut[action.word]))
        options.detectRaces = false;
      if (action.kind == Kind::Put)
        isPut[action.word] = true;
    }
  DITRON_ASSIGN_OR_RETURN(std::unique_ptr<Machine> machine, Machine::create(options));
  DITRON_ASSIGN_OR_RETURN(const uint64_t at,
                          machine->allocateSymmetric(uint64_t(4) * stride * (numWords + 1), "words", 4));
  std::vector<uint32_t *> results;
  const auto wordsOf = [&](uint32_t rank) {
    return reinterpret_cast<uint32_t *>(static_cast<char *>(machine->symmetricBase(rank)) + at);
  };
  for (uint32_t rank = 0; rank < numRanks; ++rank) {
    Role role{test.threads[rank], order, {}, {}, nullptr, nullptr, {}};
    for (uint32_t word = 0; word < numWords; ++word) {
      role.words[word] = wordsOf(test.homes[word]) + uint64_t(stride) * word;
      role.homes[word] = test.homes[word];
    }
    for (uint32_t other = 0; other < numRanks; ++other)
      role.elsewhere[other] = wordsOf(other) + uint64_t(stride) * numWords;
    DITRON_ASSIGN_OR_RETURN(void *sources, machine->allocate(rank, 3 * 4, "sources", 4));
    DITRON_ASSIGN_OR_RETURN(void *read, machine->allocate(rank, 2 * 4, "results", 4));
    role.sources = static_cast<uint32_t *>(sources);
    results.push_back(role.results = static_cast<uint32_t *>(read));
    for (uint32_t place = 0; place < 2; ++place)
      role.sources[place] = test.threads[rank][place].value;
    DITRON_ASSIGN_OR_RETURN(StreamId stream, machine->createStream(rank, "main"));
    LaunchDescription launch;
    launch.name = "litmus";
    launch.entry = takePart;
    launch.threadsPerBlock = 1;
    launch.arguments.add(role);
    DITRON_RETURN_IF_ERROR(machine->launch(stream, std::move(launch)));
  }
  DITRON_RETURN_IF_ERROR(machine->synchronize());
  std::vector<int> outcome;
  for (uint32_t rank = 0; rank < numRanks; ++rank)
    for (uint32_t place = 0; place < 2; ++place)
      if (const Kind kind = test.threads[rank][place].kind; kind == Kind::Load || kind == Kind::Get)
        outcome.push_back(static_cast<int>(results[rank][place]));
  for (uint32_t word = 0; word < numWords; ++word)
    outcome.push_back(static_cast<int>(wordsOf(test.homes[word])[uint64_t(stride) * word]));
  for (size_t i = 0; i < outcome.size(); ++i)
    if (test.weakOutcome[i] >= 0 && test.weakOutcome[i] != outcome[i])
      return false;
  return true;
}

} // namespace ditron::sim
