//===- CaseFile.h - Files of conformance cases ----------------------------------------------------------------*- C++ -*-===//
//
// A `.cases` file holds kernels and the cases that run them, both as text, so that a case is added without C++. README.md
// describes the format. Reference data too large for text lies beside it in a `.ref` file, compressed.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TESTS_CONFORMANCE_CASEFILE_H
#define DITRON_TESTS_CONFORMANCE_CASEFILE_H

#include "ditron/support/DataType.h"

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

namespace ditron::conformance {

/// A case as the file has it, with the text of its kernel after substitution.
struct Case {
  std::string name;       ///< "area/what", unique.
  std::string kernelText; ///< With the imports in front.
  uint32_t defLine = 1;   ///< Line of the kernel's `def`, from 1.
  std::string entry = "kernel";
  nlohmann::json fields;
  std::shared_ptr<const std::vector<std::byte>> references; ///< Of the file; null if it has none.
  std::filesystem::path folder;                             ///< Where files that the case names are.

  std::string area() const { return name.substr(0, name.find('/')); }
  bool isSlow() const { return fields.value("slow", false); }
};

/// Reads one file. Errors name the file and the line.
Expected<std::vector<Case>> readCases(const std::filesystem::path &path);
/// Reads every `.cases` file of a folder, in the order of their names; names of cases must be unique.
Expected<std::vector<Case>> readCaseFolder(const std::filesystem::path &folder);

} // namespace ditron::conformance
#endif // DITRON_TESTS_CONFORMANCE_CASEFILE_H
