//===- TileProgram.h - IR text of small kernels with any layouts, for tests -------------------------------*- C++ -*-===//
//
// Builds kernels of the form: load tiles whose elements lie in memory in row-major order, compute, store tiles likewise. The
// layout of every tile is free: its addresses come from an arange of the same bits, reshaped. So one operation can be tested
// under any pair of layouts.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_SIM_TEST_TILEPROGRAM_H
#define DITRON_TARGET_SIM_TEST_TILEPROGRAM_H

#include "ditron/layout/LinearLayout.h"

#include <random>
#include <string>

namespace ditron::target::test {

class TileProgram {
public:
  explicit TileProgram(int numWarps) : numWarps(numWarps) {}

  /// The text of a layout attribute and of a tensor type.
  static std::string attribute(const layout::DistributedLayout &layout);
  static std::string tensor(const layout::DistributedLayout &layout, const std::string &element);

  /// Adds an array parameter; returns its name.
  std::string array(const std::string &element);
  /// Loads a whole tile from an array, in row-major order; returns the value's name.
  std::string load(const std::string &array, const layout::DistributedLayout &layout, const std::string &element);
  void store(const std::string &array, const std::string &value, const layout::DistributedLayout &layout,
             const std::string &element);
  /// The row-major index of each element of a tile: `name` is a tensor of i32.
  std::string indices(const layout::DistributedLayout &layout);
  /// Adds a line of IR.
  void line(const std::string &text) { body += "    " + text + "\n"; }
  /// A new value name.
  std::string fresh() { return "%v" + std::to_string(next++); }

  std::string text() const;

private:
  int numWarps;
  int next = 0;
  std::string parameters, body;
};

/// A random layout: every tensor bit goes to a random machine bit; lanes (5 bits) and warps that get none hold copies.
layout::DistributedLayout randomLayout(std::mt19937 &random, const layout::Shape &shape, int warpBits);

} // namespace ditron::target::test

#endif // DITRON_TARGET_SIM_TEST_TILEPROGRAM_H
