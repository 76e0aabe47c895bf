//===- BoardReport.h - Published waits as a report -----------------------------------------------------------*- C++ -*-===//
//
// What GPUs publish, in the form in which the simulator reports its deadlocks (explain/waits). Waits of one kernel at one line for one
// word are one entry.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_EXPLAIN_BOARD_BOARDREPORT_H
#define DITRON_EXPLAIN_BOARD_BOARDREPORT_H

#include "ditron/explain/board/BoardReader.h"
#include "ditron/explain/waits/WaitReport.h"

namespace ditron::explain {

/// "ready[3] on rank 1", or its address.
std::string wordText(const PublishedWait &wait);
/// Grouped, by rank and place.
std::vector<Wait> waitsOf(const std::vector<PublishedWait> &waits);
/// Who publishes, who waits, and which ranks do not. Its kind is "moment".
WaitReport reportOf(const BoardReading &reading);

} // namespace ditron::explain

#endif // DITRON_EXPLAIN_BOARD_BOARDREPORT_H
