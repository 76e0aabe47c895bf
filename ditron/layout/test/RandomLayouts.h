//===- RandomLayouts.h - Layouts for property tests ---------------------------------------------------------*- C++ -*-===//
//
// Reproducible random register layouts, with copies and scattered bits, and the enumeration of all layouts of a small machine.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_LAYOUT_TEST_RANDOMLAYOUTS_H
#define DITRON_LAYOUT_TEST_RANDOMLAYOUTS_H

#include "ditron/layout/LinearLayout.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace ditron::layout {

class RandomLayouts {
public:
  explicit RandomLayouts(uint32_t seed) : random(seed) {}

  int below(int limit) { return static_cast<int>(random() % static_cast<uint32_t>(limit)); }

  Shape shape() {
    static const Shape shapes[] = {{64}, {8, 16}, {16, 8}, {4, 4, 8}, {2, 64}, {32, 4}, {16, 1}, {1, 32}, {8, 1, 4}};
    return shapes[below(std::size(shapes))];
  }

  /// Any layout of the shape: each lane and warp bit owns a random tensor bit or holds copies.
  DistributedLayout layout(const Shape &shape, int laneBits, int warpBits, int percentOwned = 70) {
    std::vector<int> bits(DistributedLayout(shape, {}, {}, {}).numTensorBits());
    std::iota(bits.begin(), bits.end(), 0);
    std::shuffle(bits.begin(), bits.end(), random);
    auto draw = [&](int count) {
      std::vector<int> bases;
      for (int i = 0; i < count; ++i) {
        if (bits.empty() || below(100) >= percentOwned) {
          bases.push_back(zeroBasis);
          continue;
        }
        bases.push_back(bits.back());
        bits.pop_back();
      }
      return bases;
    };
    std::vector<int> lanes = draw(laneBits), warps = draw(warpBits);
    return DistributedLayout(shape, bits, std::move(lanes), std::move(warps));
  }

  std::mt19937 random;
};

/// Every layout of 2^tensorBits elements on the given machine.
inline std::vector<DistributedLayout> allLayouts(int tensorBits, int laneBits, int warpBits) {
  std::vector<DistributedLayout> result;
  std::vector<int> chosen;
  auto extend = [&](auto &self) -> void {
    if (static_cast<int>(chosen.size()) == laneBits + warpBits) {
      std::vector<int> regs;
      for (int bit = 0; bit < tensorBits; ++bit)
        if (std::find(chosen.begin(), chosen.end(), bit) == chosen.end())
          regs.push_back(bit);
      result.emplace_back(Shape{int64_t(1) << tensorBits}, regs,
                          std::vector<int>(chosen.begin(), chosen.begin() + laneBits),
                          std::vector<int>(chosen.begin() + laneBits, chosen.end()));
      return;
    }
    for (int basis = zeroBasis; basis < tensorBits; ++basis)
      if (basis == zeroBasis || std::find(chosen.begin(), chosen.end(), basis) == chosen.end()) {
        chosen.push_back(basis);
        self(self);
        chosen.pop_back();
      }
  };
  extend(extend);
  return result;
}

} // namespace ditron::layout

#endif // DITRON_LAYOUT_TEST_RANDOMLAYOUTS_H
