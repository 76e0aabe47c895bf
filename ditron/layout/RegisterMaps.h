//===- RegisterMaps.h - Which register becomes which, for operations that move no data ----------------------*- C++ -*-===//
//
// Operations such as trans, broadcast or join give a tensor another layout without moving data between threads: a lowering
// only renames registers. Each function here returns, for every register of the result (in its canonical order), the
// register of the source that holds the value. They are pure look-ups through DistributedLayout, so no lowering depends on
// a register order.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_LAYOUT_REGISTERMAPS_H
#define DITRON_LAYOUT_REGISTERMAPS_H

#include "ditron/layout/LinearLayout.h"

namespace ditron::layout {

/// For result = trans(source, order): source.permute(order) is the result layout.
std::vector<int> permuteRegisters(const DistributedLayout &source, std::span<const int> order);

/// True when a broadcast from `source` to `result` (same rank) is a renaming: every machine bit of the source owns the same
/// tensor bit in the result or, being a copy, a new one; `source == result.dropBroadcast(source.shape())`.
bool isFreeBroadcast(const DistributedLayout &source, const DistributedLayout &result);
/// For a free broadcast.
std::vector<int> broadcastRegisters(const DistributedLayout &source, const DistributedLayout &result);

/// One register of a joined tensor: operand 0 or 1, and the register of that operand.
struct JoinedRegister {
  int operand;
  int reg;
};
/// For result = join(a, b), both of layout `source`; source.join() is the result layout.
std::vector<JoinedRegister> joinRegisters(const DistributedLayout &source);
/// For half `which` (0 or 1) of split(source); source.split() is the result layout and must exist.
std::vector<int> splitRegisters(const DistributedLayout &source, int which);

} // namespace ditron::layout

#endif // DITRON_LAYOUT_REGISTERMAPS_H
