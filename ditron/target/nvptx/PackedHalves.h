//===- PackedHalves.h - Two 16-bit floats in one word -----------------------------------------------------*- C++ -*-===//
//
// Kernels that keep pairs of 16-bit floats in 32-bit words put them together with shifts. The backend does not see that such a
// word is a vector of two floats, and converts each float by an instruction of its own, at a quarter of the rate of the one
// that converts both and packs them.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_NVPTX_PACKEDHALVES_H
#define DITRON_TARGET_NVPTX_PACKEDHALVES_H

namespace llvm {
class Module;
}

namespace ditron::target {

/// Rewrites  bits(a) | bits(b) << 16  to the vector <a, b>.
void formPackedHalves(llvm::Module &module);

/// Two 16-bit values that control flow carries side by side, and that are only used as one word, are carried as that word: they take
/// one register instead of two, and are packed where they are made, by the conversion that makes them. Runs before the optimiser.
void carryPackedHalves(llvm::Module &module);

} // namespace ditron::target

#endif // DITRON_TARGET_NVPTX_PACKEDHALVES_H
