//===- LayoutPicture.h - Layouts drawn -------------------------------------------------------------------*- C++ -*-===//
//
// A register layout: a cell for each element with the place that holds it, warp.lane:register as in its table; the colour is the
// lane's, darker for later warps. A layout of shared memory: a line for each 128 bytes, that is, once over all 32 banks, with the
// element at each place; the colour is that of the element's row.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_LAYOUTPICTURE_H
#define DITRON_TOOLS_DITRON_LAYOUTPICTURE_H

#include "ditron/layout/SharedLayout.h"

namespace ditron::tool {

/// The most elements that are drawn.
inline constexpr int64_t mostDrawnElements = 4096;

std::string layoutSvg(const layout::DistributedLayout &layout);
std::string layoutSvg(const layout::SharedLayout &layout);
/// The same as characters; register layouts have toTable for it.
std::string layoutTable(const layout::SharedLayout &layout);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_LAYOUTPICTURE_H
