//===- PtxProgram.h - Pieces of PTX as statements ----------------------------------------------------------*- C++ -*-===//
//
// Reads the text of an inline assembly: straight-line PTX with local registers in braces. No meaning is given to instructions
// here, see PtxTranslator.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_SIM_PTXPROGRAM_H
#define DITRON_TARGET_SIM_PTXPROGRAM_H

#include "ditron/support/Status.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace ditron::target {

/// "$0", "r1", "%laneid" and "0x10" are names; "{a, b}" and "[a+16]" have parts.
struct PtxOperand {
  enum class Kind { Name, Vector, Address };
  Kind kind = Kind::Name;
  std::string name;           ///< Of a name, and of the register of an address.
  int64_t offset = 0;         ///< Of an address.
  std::vector<PtxOperand> parts; ///< Of a vector.
};

struct PtxStatement {
  std::string text;   ///< As written, for messages.
  std::string guard;  ///< The predicate register of "@p"; empty without one.
  bool negated = false;
  llvm::SmallVector<std::string> opcode; ///< "cvt", "rn", "f16x2", "f32"
  std::vector<PtxOperand> operands;

  bool has(llvm::StringRef modifier) const;
};

/// A ".reg" declaration and the statements before the next one keep their order by `before`: the number of statements so far.
struct PtxRegister {
  std::string name;
  unsigned bits;
  size_t before;
};

struct PtxProgram {
  std::vector<PtxRegister> registers;
  std::vector<PtxStatement> statements;
};

/// The text as statements; the message of an error says what cannot be read.
Expected<PtxProgram> readPtx(llvm::StringRef text);

} // namespace ditron::target

#endif // DITRON_TARGET_SIM_PTXPROGRAM_H
