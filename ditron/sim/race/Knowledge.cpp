//===- Knowledge.cpp - What is known to have happened -------------------------------------------------------------===//
#include "ditron/sim/race/Knowledge.h"

#include <algorithm>

namespace ditron::sim::race {

namespace {
uint64_t nextSerial() {
  static thread_local uint64_t last = 0;
  return ++last;
}
} // namespace

Knowledge::Knowledge(std::vector<Known> sorted) : serial(nextSerial()), known(std::move(sorted)) {}

std::vector<Known>::const_iterator Knowledge::from(Key key) const {
  return std::lower_bound(known.begin(), known.end(), key,
                          [](const Known &entry, Key wanted) { return entry.key < wanted; });
}

uint64_t Knowledge::upTo(Key key) const {
  auto it = from(key);
  return it != known.end() && it->key == key ? it->upTo : 0;
}

bool Knowledge::hasLaneOf(uint32_t warp) const {
  auto it = from(Key::lane(warp, 0));
  return it != known.end() && it->key < Key::lane(warp + 1, 0);
}

KnowledgeRef Joiner::merge(const Knowledge &a, const Knowledge &b) {
  std::vector<Known> all;
  all.reserve(a.entries().size() + b.entries().size());
  auto right = b.entries().begin();
  bool addsNothing = true;
  for (const Known &left : a.entries()) {
    for (; right != b.entries().end() && right->key < left.key; ++right) {
      all.push_back(*right);
      addsNothing = false;
    }
    all.push_back(left);
    if (right != b.entries().end() && right->key == left.key) {
      if (right->upTo > left.upTo) {
        all.back().upTo = right->upTo;
        addsNothing = false;
      }
      ++right;
    }
  }
  addsNothing &= right == b.entries().end();
  if (addsNothing)
    return nullptr;
  all.insert(all.end(), right, b.entries().end());
  auto joined = std::make_shared<Knowledge>(std::move(all));
  if (joined->entries().size() < pruneAt)
    return joined;
  std::vector<Known> needed;
  std::copy_if(joined->entries().begin(), joined->entries().end(), std::back_inserter(needed),
               [&](const Known &entry) { return !isImplied(*joined, entry); });
  // What cannot be dropped now is not looked at again with every join.
  pruneAt = std::max<size_t>(64, 2 * needed.size());
  return std::make_shared<Knowledge>(std::move(needed));
}

KnowledgeRef Joiner::join(const KnowledgeRef &a, const KnowledgeRef &b) {
  if (!b || a == b)
    return a;
  if (!a)
    return b;
  Done &last = done[(a->serial * 31 + b->serial) % kept];
  if (last.a == a && last.b == b)
    return last.result;
  KnowledgeRef result = merge(*a, *b);
  if (!result)
    result = a;
  last = {a, b, result};
  return result;
}

KnowledgeRef Joiner::with(const KnowledgeRef &a, std::vector<Known> more) {
  std::sort(more.begin(), more.end(),
            [](const Known &x, const Known &y) { return x.key != y.key ? x.key < y.key : x.upTo > y.upTo; });
  more.erase(std::unique(more.begin(), more.end(), [](const Known &x, const Known &y) { return x.key == y.key; }),
             more.end());
  auto added = std::make_shared<const Knowledge>(std::move(more));
  if (!a)
    return added;
  KnowledgeRef result = merge(*a, *added);
  return result ? result : a;
}

} // namespace ditron::sim::race
