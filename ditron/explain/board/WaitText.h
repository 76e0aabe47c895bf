//===- WaitText.h - Published waits for people and programs -------------------------------------------------*- C++ -*-===//
//
// In the words of the simulator's report of a deadlock. Waits of one kernel at one line for one word are one entry.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_EXPLAIN_BOARD_WAITTEXT_H
#define DITRON_EXPLAIN_BOARD_WAITTEXT_H

#include "ditron/explain/board/BoardReader.h"

namespace ditron::explain {

/// "ready[3] on rank 1", or its address.
std::string wordText(const PublishedWait &wait);
/// "  rank 1, kernel k at k.py:12:5, block (4,0,0), thread 31\n    waits for ready[3] on rank 1: has 1, wants >= 2", an entry for
/// each group; lines are separated and not ended by a newline.
std::string describeWaits(const std::vector<PublishedWait> &waits);
/// What `ditron explain --pid` prints: who publishes, who waits, and which ranks do not.
std::string describeReading(const BoardReading &reading);
/// The same as a JSON object; every wait by itself.
std::string jsonOf(const BoardReading &reading);
/// The same as a graph in the DOT language: an edge from those who wait to the word.
std::string dotOf(const BoardReading &reading);

} // namespace ditron::explain

#endif // DITRON_EXPLAIN_BOARD_WAITTEXT_H
