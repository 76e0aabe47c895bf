//===- FrontendFuzz.h - What is tried on every text of the fuzzer -------------------------------------------*- C++ -*-===//
//
// A text is taken for a kernel file: it is parsed, its kernels are listed, and each is imported for a signature guessed from
// the names of its parameters. Whatever the text, that must end soon, in IR that the verifier accepts or in messages about
// the text; a crash, a hang, unbounded memory, invalid IR or a failure without a message is a bug.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TESTS_FUZZ_FRONTENDFUZZ_H
#define DITRON_TESTS_FUZZ_FRONTENDFUZZ_H

#include <string>

namespace ditron::fuzz {

/// Texts beyond this size are not tried: they cost time and find nothing that shorter ones do not.
inline constexpr size_t maxTextBytes = 1 << 16;

/// Tries a text; ends the process with a message on standard error if the frontend misbehaves.
void tryText(std::string text);

} // namespace ditron::fuzz
#endif // DITRON_TESTS_FUZZ_FRONTENDFUZZ_H
