//===- DistinctPlaces.h - Tiles of pointers that do not meet themselves -----------------------------------------*- C++ -*-===//
//
// Two questions about the pointers of one access, for whoever wants to know whether it can collide with itself.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_DISTINCTPLACES_H
#define DITRON_TRANSFORMS_DISTINCTPLACES_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace ditron::analysis {
class AxisInfoAnalysis;
}

namespace ditron::transforms {

/// Whether each address belongs to one lane only: the elements follow each other in memory, and none is held by two lanes.
bool isOneLanePerAddress(mlir::Value pointers, const analysis::AxisInfoAnalysis &axes);

/// Whether elements that follow each other in memory lie beyond those of all earlier turns of the loop: from turn to turn the
/// pointers go on in one direction by at least as many elements as the tile has, by a constant step of the loop's variable or of
/// the pointers themselves. As everywhere in the analyses, index arithmetic does not overflow.
///
///   for k in range(a, b, 128): p = x + row * stride + k + arange(0, 128)         128 elements, 128 on in each turn
bool advancesWith(mlir::Value pointers, mlir::scf::ForOp loop);

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_DISTINCTPLACES_H
