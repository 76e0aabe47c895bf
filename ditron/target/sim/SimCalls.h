//===- SimCalls.h - Calls of the simulator's C interface --------------------------------------------------*- C++ -*-===//
//
// Declares the functions of abi/Simulator.h in a module, emits calls of them, and makes the constants that name places in the
// kernel's source.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_SIM_SIMCALLS_H
#define DITRON_TARGET_SIM_SIMCALLS_H

#include "ditron/target/common/Emitter.h"

#include "llvm/ADT/StringMap.h"

#include <map>
#include <string>
#include <tuple>

namespace ditron::target {

/// A place in a kernel's source.
struct SourcePlace {
  std::string file;
  unsigned line = 0, column = 0;
};
/// Where an operation is written: for inlined code the innermost position, that is the line in the called function.
SourcePlace sourcePlaceOf(mlir::Location location);

class SimCalls {
public:
  /// Declares all functions in the module.
  void declare(mlir::ModuleOp module);

  /// Calls a function of the interface by its name without the prefix `ditron_sim_`. Returns null for a void function.
  mlir::Value call(Emitter &e, llvm::StringRef function, mlir::ValueRange arguments);
  /// The calling thread, and a field of its DitronSimThread. None changes while a kernel runs: they are read once, at the
  /// entry of the function.
  mlir::Value self(Emitter &e);
  mlir::Value field(Emitter &e, size_t offset, mlir::Type type);
  /// The address of an array in shared memory, marked as such for Origins.h.
  mlir::Value sharedArray(Emitter &e, mlir::Value address, int64_t offset, int64_t bytes);
  /// The address of the DitronSimSite for the emitter's location.
  mlir::Value site(Emitter &e);
  /// The address of a text.
  mlir::Value text(Emitter &e, llvm::StringRef text) { return addressOf(e, stringConstant(e, text.str())); }
  /// The address of 16 bytes of zeros to load from, or of 16 bytes that nobody reads, to store to, in place of an access
  /// that is predicated off.
  mlir::Value zeros(Emitter &e);
  mlir::Value sink(Emitter &e);

  /// Writes values of one type into an array on the stack, and reads as many as there are in `like` from one.
  static mlir::Value spill(Emitter &e, mlir::ValueRange values);
  static llvm::SmallVector<mlir::Value> reload(Emitter &e, mlir::Value array, mlir::ValueRange like);

private:
  friend class CallArrays;

  /// A value computed once per function, at its entry.
  mlir::Value atEntry(Emitter &e, int64_t key, llvm::function_ref<mlir::Value(Emitter &)> create);
  mlir::Value addressOf(Emitter &e, llvm::StringRef global);
  std::string stringConstant(Emitter &e, const std::string &text);

  static constexpr int64_t selfKey = -1; ///< Other keys are offsets of fields.

  mlir::ModuleOp module;
  std::map<std::pair<mlir::Operation *, int64_t>, mlir::Value> entryValues;
  std::map<std::pair<mlir::Operation *, int64_t>, llvm::SmallVector<mlir::Value>> unusedArrays; ///< By function and bytes.
  llvm::StringMap<mlir::LLVM::LLVMFunctionType> functions;
  std::map<std::tuple<std::string, unsigned, unsigned>, std::string> sites; ///< Place to the name of its constant.
  std::map<std::string, std::string> strings;                               ///< Text to the name of its constant.
};

/// Arrays on the stack for one call of the engine, which does not keep their addresses. Once this is destroyed, later calls of the
/// same function use them again: the stack of a kernel of a thousand calls is that of one.
class CallArrays {
public:
  CallArrays(SimCalls &sim, Emitter &e);
  ~CallArrays();
  CallArrays(const CallArrays &) = delete;
  CallArrays &operator=(const CallArrays &) = delete;

  /// An array of `count` elements, not initialised, and one with these values.
  mlir::Value make(mlir::Type element, int64_t count);
  mlir::Value spill(mlir::ValueRange values);
  llvm::SmallVector<mlir::Value> reload(mlir::Value array, mlir::ValueRange like) { return SimCalls::reload(e, array, like); }

private:
  SimCalls &sim;
  Emitter &e;
  mlir::Operation *function;
  llvm::SmallVector<std::pair<int64_t, mlir::Value>, 3> taken; ///< With their bytes.
};

} // namespace ditron::target

#endif // DITRON_TARGET_SIM_SIMCALLS_H
