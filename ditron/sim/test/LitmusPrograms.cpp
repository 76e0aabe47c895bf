//===- LitmusPrograms.cpp - Litmus tests of memory order --------------------------------------------------------------===//

#include "ditron/sim/test/LitmusPrograms.h"

#include <random>

namespace ditron::sim {

namespace {

constexpr uint32_t mostThreads = 4;
const DitronSimSite storeSite{"litmus.py", 1, 1}, loadSite{"litmus.py", 2, 1}, fenceSite{"litmus.py", 3, 1},
    gateSite{"litmus.py", 4, 1};

struct Role {
  std::array<LitmusAccess, 2> accesses;
  LitmusStrength strength;
  uint32_t pauses[2]; ///< Accesses of the gate before each of its own.
};
struct Roles {
  Role roles[mostThreads];
  uint32_t count = 0;
  uint32_t first = 0; ///< Role of the launch's first thread.
};

/// Results: two words per role.
void takePart(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *words = *static_cast<uint32_t **>(arguments[0]); // x and y, in cache lines of their own
  auto *gate = *static_cast<uint64_t **>(arguments[1]);
  auto *results = *static_cast<uint32_t **>(arguments[2]);
  const Roles &all = *static_cast<const Roles *>(arguments[3]);
  if (self->laneId != 0)
    return;
  const uint32_t number = all.first + self->blockId[0] + self->warpId;
  const Role &role = all.roles[number];
  ditron_sim_atomic_rmw(self, DITRON_SIM_RMW_ADD, DITRON_SIM_I64, gate, 1, 1, DITRON_SIM_RELAXED,
                        DITRON_SIM_SCOPE_SYSTEM, &gateSite);
  ditron_sim_wait_until(self, gate, 8, DITRON_SIM_GE, all.count, DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_SYSTEM,
                        &gateSite);
  for (uint32_t place = 0; place < 2; ++place) {
    const LitmusAccess &access = role.accesses[place];
    for (uint32_t pause = 0; pause < role.pauses[place]; ++pause)
      ditron_sim_ld(self, gate, 8, DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_SYSTEM, 0, &gateSite);
    if (place && role.strength.fence != DITRON_SIM_RELAXED)
      ditron_sim_fence(self, role.strength.fence, role.strength.fenceScope, &fenceSite);
    uint32_t *word = words + 64 * access.word;
    const bool isStrong = role.strength.isReleaseAcquire;
    if (access.kind == LitmusAccess::Kind::Store)
      ditron_sim_st(self, word, access.value, 4, isStrong ? DITRON_SIM_RELEASE : DITRON_SIM_RELAXED,
                    DITRON_SIM_SCOPE_SYSTEM, &storeSite);
    else if (access.kind == LitmusAccess::Kind::Load)
      results[number * 2 + place] = static_cast<uint32_t>(ditron_sim_ld(
          self, word, 4, isStrong ? DITRON_SIM_ACQUIRE : DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_SYSTEM, 0, &loadSite));
    else if (access.kind == LitmusAccess::Kind::Update)
      results[number * 2 + place] = static_cast<uint32_t>(ditron_sim_atomic_rmw(
          self, DITRON_SIM_RMW_ADD, DITRON_SIM_I32, word, access.value, 1,
          isStrong ? DITRON_SIM_ACQ_REL : DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_SYSTEM, &loadSite));
    else if (access.kind == LitmusAccess::Kind::Exchange)
      results[number * 2 + place] = static_cast<uint32_t>(
          ditron_sim_atomic_cas(self, word, 0, access.value, 4, isStrong ? DITRON_SIM_ACQ_REL : DITRON_SIM_RELAXED,
                                DITRON_SIM_SCOPE_SYSTEM, &loadSite));
  }
  // Nobody's kernel ends before all have done their part: what an ended one has stored is performed.
  ditron_sim_atomic_rmw(self, DITRON_SIM_RMW_ADD, DITRON_SIM_I64, gate, 1, 1, DITRON_SIM_RELAXED,
                        DITRON_SIM_SCOPE_SYSTEM, &gateSite);
  ditron_sim_wait_until(self, gate, 8, DITRON_SIM_GE, 2 * all.count, DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_SYSTEM,
                        &gateSite);
}

LitmusAccess store(uint8_t word, uint32_t value) { return {LitmusAccess::Kind::Store, word, value}; }
LitmusAccess update(uint8_t word, uint32_t added) { return {LitmusAccess::Kind::Update, word, added}; }
LitmusAccess exchange(uint8_t word, uint32_t value) { return {LitmusAccess::Kind::Exchange, word, value}; }
LitmusAccess load(uint8_t word) { return {LitmusAccess::Kind::Load, word, 0}; }

} // namespace

const std::vector<LitmusTest> &litmusTests() {
  constexpr uint8_t x = 0, y = 1;
  static const std::vector<LitmusTest> tests = {
      {"MP", {{store(x, 1), store(y, 1)}, {load(y), load(x)}}, {1, 0, -1, -1}},
      {"SB", {{store(x, 1), load(y)}, {store(y, 1), load(x)}}, {0, 0, -1, -1}},
      {"LB", {{load(x), store(y, 1)}, {load(y), store(x, 1)}}, {1, 1, -1, -1}},
      {"S", {{store(x, 2), store(y, 1)}, {load(y), store(x, 1)}}, {1, 2, -1}},
      {"R", {{store(x, 1), store(y, 1)}, {store(y, 2), load(x)}}, {0, -1, 2}},
      {"2+2W", {{store(x, 1), store(y, 2)}, {store(y, 1), store(x, 2)}}, {1, 1}},
      {"WRC", {{store(x, 1), {}}, {load(x), store(y, 1)}, {load(y), load(x)}}, {1, 1, 0, -1, -1}},
      {"IRIW", {{store(x, 1), {}}, {store(y, 1), {}}, {load(x), load(y)}, {load(y), load(x)}}, {1, 0, 1, 0, -1, -1}},
      {"CoRR", {{store(x, 1), {}}, {load(x), load(x)}}, {1, 0, -1, -1}},
  };
  return tests;
}

const std::vector<LitmusTest> &updateLitmusTests() {
  constexpr uint8_t x = 0, y = 1;
  static const std::vector<LitmusTest> tests = {
      {"MP", {{store(x, 1), store(y, 1)}, {update(y, 0), update(x, 0)}}, {1, 0, -1, -1}},
      {"MP", {{store(x, 1), update(y, 1)}, {load(y), update(x, 0)}}, {0, 1, 0, -1, -1}},
      {"MP", {{store(x, 1), store(y, 1)}, {exchange(y, 2), exchange(x, 0)}}, {1, 0, -1, -1}},
      {"SB", {{store(x, 1), update(y, 0)}, {store(y, 1), update(x, 0)}}, {0, 0, -1, -1}},
      {"SB", {{store(x, 1), exchange(y, 0)}, {store(y, 1), exchange(x, 0)}}, {0, 0, -1, -1}},
      {"SB", {{update(x, 1), load(y)}, {update(y, 1), load(x)}}, {0, 0, 0, 0, -1, -1}},
      {"S", {{store(x, 2), store(y, 1)}, {load(y), update(x, 1)}}, {1, 0, 2, -1}},
      {"R", {{store(x, 1), store(y, 1)}, {store(y, 2), update(x, 0)}}, {0, -1, 2}},
      {"2+2W", {{store(x, 1), store(y, 2)}, {store(y, 1), update(x, 2)}}, {0, 1, 1}},
      {"WRC", {{store(x, 1), {}}, {load(x), store(y, 1)}, {load(y), update(x, 0)}}, {1, 1, 0, -1, -1}},
      {"CoRR", {{store(x, 1), {}}, {update(x, 0), update(x, 0)}}, {1, 0, -1, -1}},
      {"CoRR", {{store(x, 1), {}}, {load(x), update(x, 0)}}, {1, 0, -1, -1}},
      {"CoRR", {{store(x, 1), {}}, {update(x, 0), load(x)}}, {1, 0, -1, -1}},
  };
  return tests;
}

std::string LitmusStrength::text() const {
  static constexpr const char *scopes[] = {"cta", "gpu", "sys"};
  std::string accesses = isReleaseAcquire ? "release, acquire" : "relaxed";
  if (fence == DITRON_SIM_RELAXED)
    return accesses;
  return accesses + (fence == DITRON_SIM_SEQ_CST ? " + fence.sc." : " + fence.acq_rel.") + scopes[fenceScope];
}

const std::vector<LitmusStrength> &litmusStrengths() {
  static const std::vector<LitmusStrength> strengths = [] {
    std::vector<LitmusStrength> result = {{false}, {true}};
    for (uint32_t fence : {DITRON_SIM_ACQ_REL, DITRON_SIM_SEQ_CST})
      for (uint32_t scope = 0; scope < 3; ++scope)
        result.push_back({false, fence, scope});
    return result;
  }();
  return strengths;
}

bool isForbidden(const LitmusTest &test, const LitmusStrength &strength, LitmusDistance distance) {
  const bool fenceReaches = strength.fenceScope >= static_cast<uint32_t>(distance);
  const bool isSequential = strength.fence == DITRON_SIM_SEQ_CST && fenceReaches;
  const bool isCausal = strength.isReleaseAcquire || (strength.fence != DITRON_SIM_RELAXED && fenceReaches);
  if (test.name == "CoRR")
    return true;
  // A store that a load reads orders the threads: release and acquire are enough.
  if (test.name == "MP" || test.name == "S" || test.name == "WRC" || test.name == "LB")
    return isCausal;
  return isSequential; // SB, R, 2+2W, IRIW
}

Expected<bool> seesWeakOutcome(const LitmusTest &test, const LitmusStrength &strength, LitmusDistance distance,
                               uint64_t seed) {
  MachineOptions options;
  options.ranks = distance == LitmusDistance::OtherRank ? static_cast<uint32_t>(test.threads.size()) : 1;
  options.smsPerRank = mostThreads;
  options.seed = seed;
  options.memoryPerRank = uint64_t(1) << 20;
  DITRON_ASSIGN_OR_RETURN(std::unique_ptr<Machine> machine, Machine::create(options));
  DITRON_ASSIGN_OR_RETURN(void *words, machine->allocate(0, 512, "words", 4, MemoryKind::Symmetric));
  DITRON_ASSIGN_OR_RETURN(void *gate, machine->allocate(0, 8, "gate", 8, MemoryKind::Symmetric));
  std::array<uint32_t, mostThreads * 2> results = {};
  Roles roles;
  std::mt19937_64 random(seed);
  const auto draw = [&] { return seed == 0 ? 0 : static_cast<uint32_t>(random() % 5 / 2); };
  roles.count = static_cast<uint32_t>(test.threads.size());
  for (uint32_t role = 0; role < roles.count; ++role)
    roles.roles[role] = {test.threads[role], strength, {draw(), draw()}};
  for (uint32_t rank = 0; rank < options.ranks; ++rank) {
    DITRON_ASSIGN_OR_RETURN(StreamId stream, machine->createStream(rank, "main"));
    LaunchDescription launch;
    launch.name = test.name;
    launch.entry = takePart;
    launch.threadsPerBlock = distance == LitmusDistance::SameBlock ? roles.count * options.warpSize : options.warpSize;
    launch.grid = {distance == LitmusDistance::SameGpu ? roles.count : 1, 1, 1};
    roles.first = rank;
    launch.arguments.add(words).add(gate).add(results.data()).add(roles);
    DITRON_RETURN_IF_ERROR(machine->launch(stream, std::move(launch)));
  }
  DITRON_RETURN_IF_ERROR(machine->synchronize());
  std::vector<int> outcome;
  for (uint32_t role = 0; role < roles.count; ++role)
    for (uint32_t place = 0; place < 2; ++place)
      if (const auto kind = test.threads[role][place].kind;
          kind != LitmusAccess::Kind::None && kind != LitmusAccess::Kind::Store)
        outcome.push_back(static_cast<int>(results[role * 2 + place]));
  for (uint32_t word = 0; word < 2; ++word)
    outcome.push_back(static_cast<int>(static_cast<uint32_t *>(words)[word * 64]));
  for (size_t i = 0; i < outcome.size(); ++i)
    if (test.weakOutcome[i] >= 0 && test.weakOutcome[i] != outcome[i])
      return false;
  return true;
}

} // namespace ditron::sim
