//===- AstDump.cpp - Prints the syntax trees of kernel files ------------------------------------------------------===//
//
// ditron-ast-dump [--ranges] FILE...: the trees on standard output, the diagnostics on standard error; 1 after errors.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/syntax/AstPrinter.h"
#include "ditron/frontend/syntax/Parser.h"

#include <cstdio>
#include <cstring>

using namespace ditron::frontend;

int main(int argc, char **argv) {
  bool failed = false, ranges = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--ranges") == 0) {
      ranges = true;
      continue;
    }
    SourceManager sources;
    DiagnosticEngine diagnostics(sources);
    auto id = sources.load(argv[i]);
    if (!id.isOk()) {
      std::fprintf(stderr, "error: %s\n", id.status().message().c_str());
      failed = true;
      continue;
    }
    auto module = parseModule(sources.file(*id), diagnostics);
    std::string tree = dump(*module, {ranges ? &sources : nullptr});
    std::fwrite(tree.data(), 1, tree.size(), stdout);
    std::string messages = diagnostics.renderAll();
    std::fwrite(messages.data(), 1, messages.size(), stderr);
    failed |= diagnostics.hasErrors();
  }
  return failed ? 1 : 0;
}
