//===- SortElements.h - The elements of one thread in a sorting network -------------------------------------*- C++ -*-===//
//
// A network replaces a thread's elements many times, in pairs or in groups of consecutive registers. Up to a number that
// registers can hold the elements are SSA values, and each replacement is straight code. More of them are an array on the
// thread's stack, and a replacement is a loop over it: the code of a step is then a few instructions however many elements
// there are. Code generators take more than linear time for long blocks, and would spill so many values anyway.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_COMMON_SORTELEMENTS_H
#define DITRON_TARGET_COMMON_SORTELEMENTS_H

#include "ditron/target/common/Emitter.h"

namespace ditron::target {

/// A truth value that may be known while code is emitted.
struct Flag {
  std::optional<bool> known;
  mlir::Value value; ///< An i1, when it is not known.
};

/// The number of a register: `offset`, or the sum of a multiple of `unit` that is known when the code runs and an offset below.
struct RegisterNumber {
  int offset = 0;
  mlir::Value base; ///< i32, or null.
  int unit = 1;
  Flag bit(Emitter &e, int position) const;
};

class SortElements {
public:
  using Values = llvm::SmallVector<mlir::Value>;
  /// The elements that take the places of two, the first being that of the lower register.
  using PairBody =
      llvm::function_ref<std::pair<mlir::Value, mlir::Value>(Emitter &, RegisterNumber low, mlir::Value, mlir::Value)>;
  /// The elements that take the places of some from register `first` on.
  using GroupBody = llvm::function_ref<Values(Emitter &, RegisterNumber first, mlir::ValueRange)>;

  /// More than `registerWords` words of 32 bits become an array.
  SortElements(Emitter &e, mlir::ValueRange initial, int registerWords);

  int size() const { return count; }
  bool isArray() const { return array != nullptr; }
  /// Replaces the pairs of elements whose register numbers differ in a bit.
  void forPairs(Emitter &e, int bit, PairBody body);
  /// Replaces all elements, `groupSize` (a power of two) at a time.
  void forGroups(Emitter &e, int groupSize, GroupBody body);
  /// Emits `body` as a loop over the integers first .. last, which it gets as an i32.
  void loop(Emitter &e, int first, int last, llvm::function_ref<void(Emitter &, mlir::Value)> body);
  /// Emits `body` under a condition that is the same in all threads.
  void when(Emitter &e, mlir::Value condition, llvm::function_ref<void(Emitter &)> body);
  /// The elements as they are now.
  Values values(Emitter &e);

private:
  mlir::Value load(Emitter &e, mlir::Value index);
  void store(Emitter &e, mlir::Value index, mlir::Value value);
  mlir::Value address(Emitter &e, mlir::Value index);

  int count;
  mlir::Type type;
  Values current;    ///< Not of an array.
  mlir::Value array; ///< Its address.
};

} // namespace ditron::target

#endif // DITRON_TARGET_COMMON_SORTELEMENTS_H
