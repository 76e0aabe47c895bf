//===- Polling.cpp - Threads that read words over and over ----------------------------------------------------------===//
#include "ditron/sim/memory/Polling.h"

#include "ditron/sim/engine/Block.h"
#include "ditron/sim/engine/KernelState.h"

#include <algorithm>
#include <utility>

namespace ditron::sim {

namespace {
/// A read that comes back unchanged this often may be a polling loop.
constexpr uint64_t patience = 3;
/// Words of one loop; one that reads more is not noticed.
constexpr uint32_t maxWords = 256;
} // namespace

PolledWord &Polling::find(const void *address, uint32_t bytes, bool &isNew) {
  auto matches = [&](uint32_t at) { return words[at].waiter.address == address && words[at].waiter.bytes == bytes; };
  // Loops read their words in turn.
  isNew = false;
  if (count)
    for (uint32_t step = 0, at = position; step < count; ++step) {
      at = at + 1 < count ? at + 1 : 0;
      if (matches(at)) {
        position = at;
        return words[at];
      }
    }
  isNew = true;
  if (count == maxWords)
    count = 0;
  if (count == words.size())
    words.emplace_back();
  position = count++;
  return words[position];
}

uint64_t Polling::repeatsOf(const void *address) const {
  for (const PolledWord &word : *this)
    if (word.waiter.address == address)
      return word.repeats;
  return 0;
}

void Polling::noteRecent(const Thread &thread, const PolledRead &read) {
  RecentRead *place = &recent.front();
  for (RecentRead &one : recent) {
    if (one.waiter.address == read.address && one.site == read.site) {
      place = &one;
      break;
    }
    if (one.lastRead < place->lastRead)
      place = &one;
  }
  const SimTime now = thread.block->clock;
  if (place->waiter.address != read.address || place->site != read.site) {
    *place = {};
    place->waiter.address = read.address;
    place->waiter.bytes = read.bytes;
    place->waiter.began = now;
    place->site = read.site;
  }
  ++place->times;
  place->lastRead = reads + 1;
  place->last = now;
}

PollStep Polling::noteRead(Thread &thread, const PolledRead &read) {
  noteRecent(thread, read);
  bool isNew = false;
  PolledWord *word = &find(read.address, read.bytes, isNew);
  if (!isNew && word->value != read.value) {
    forget(); // what it waits for has moved
    thread.block->resumeSleepers();
    word = &find(read.address, read.bytes, isNew);
  }
  if (isNew)
    begin(*word, thread, read);
  word->site = read.site;
  word->lastRead = ++reads;
  const bool timePasses = std::exchange(word->timesRead, timesRead) != timesRead;
  const uint64_t enough = read.isKnownLoop ? 1 : patience;
  const uint64_t repeats = isNew ? 0 : ++word->repeats;
  const PollStep again = repeats < enough ? PollStep::GoOn : PollStep::LetOthersAct;
  if (repeats + 1 < enough || timePasses)
    return again;
  const uint64_t moment = repeats + 2 - enough; // from 1 on
  if (!word->hasSlept && !looksAt(moment))
    return again;
  const uint64_t state = stateOfKernel(thread, read.frame);
  if (moment > 1 && state == word->state) {
    dropOthers();
    words[position].hasSlept = true;
    return areUnchanged() ? PollStep::Sleep : again;
  }
  if (word->hasSlept || keepsStateOf(moment)) {
    word->state = state;
    word->stateAt = reads;
  }
  word->hasSlept = false;
  return again;
}

void Polling::dropOthers() {
  const uint64_t since = words[position].stateAt;
  std::swap(words[0], words[position]);
  position = 0;
  count = static_cast<uint32_t>(std::partition(words.begin(), words.begin() + count,
                                               [&](const PolledWord &word) { return word.lastRead >= since; }) -
                                words.begin());
}

bool Polling::areUnchanged() const {
  return std::all_of(begin(), end(), [](const PolledWord &word) {
    return loadSigned(word.waiter.address, word.waiter.bytes) == signExtended(word.value, word.waiter.bytes);
  });
}

void Polling::begin(PolledWord &word, const Thread &thread, const PolledRead &read) {
  word = {};
  word.waiter.address = read.address;
  word.waiter.bytes = read.bytes;
  word.waiter.began = thread.block->clock;
  word.value = read.value;
  word.timesRead = timesRead;
}

void Polling::sleep(Thread &thread, WatchTable &watches) {
  for (uint32_t i = 0; i < count; ++i) {
    Waiter &waiter = words[i].waiter;
    waiter.kind = Waiter::Kind::Poll;
    waiter.compare = Compare::NotEqual;
    waiter.value = signExtended(words[i].value, waiter.bytes);
    waiter.since = thread.block->clock;
    waiter.thread = &thread;
    watches.add(waiter);
  }
}

void Polling::wake(WatchTable &watches) {
  for (uint32_t i = 0; i < count; ++i)
    watches.remove(words[i].waiter);
}

PollOutcome poll(Thread &thread, const PolledRead &read) {
  Block &block = *thread.block;
  PollOutcome outcome;
  const PollStep step = thread.polling.noteRead(thread, read);
  if (step == PollStep::GoOn)
    return outcome;
  outcome.othersActed = true;
  if (step == PollStep::LetOthersAct) {
    block.letOthersAct(thread);
    return outcome;
  }
  outcome.slept = true;
  outcome.since = block.clock;
  thread.site = read.site;
  thread.state = ThreadState::WaitingWord;
  thread.frame = read.frame;
  block.parkOnPolledWords(thread);
  thread.frame = nullptr;
  return outcome;
}

} // namespace ditron::sim
