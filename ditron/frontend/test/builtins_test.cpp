//===- builtins_test.cpp - The table of functions is well-formed ----------------------------------------------------------===//
//
// Reads every row of Builtins.def: parameters parse, documentation exists, no name occurs twice in a module.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Builtins.h"
#include "ditron/frontend/Import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

namespace ditron::frontend {
namespace {

struct Row {
  unsigned modules;
  const char *name, *parameters, *doc;
};

constexpr Row rows[] = {
#define DITRON_FUNCTION(modules, name, parameters, handler, doc) {modules, name, parameters, doc},
#include "ditron/frontend/Builtins.def"
};

TEST(Builtins, RowsAreDocumentedAndUnique) {
  std::set<std::pair<unsigned, std::string>> seen;
  for (const Row &row : rows) {
    EXPECT_NE(std::string(row.doc), "") << row.name;
    for (unsigned bit = 1; bit <= ModuleMember; bit <<= 1)
      if (row.modules & bit)
        EXPECT_TRUE(seen.insert({bit, row.name}).second) << row.name;
  }
}

TEST(Builtins, ParametersParse) {
  for (const Row &row : rows) {
    unsigned bit = row.modules & -row.modules;
    const Builtin *builtin = findBuiltin(static_cast<BuiltinModule>(bit), row.name);
    ASSERT_NE(builtin, nullptr) << row.name;
    std::string printed;
    for (const BuiltinParam &param : builtin->params) {
      EXPECT_TRUE(llvm::StringRef(row.parameters).contains(param.name)) << row.name;
      EXPECT_EQ(param.name.find_first_of(" :=*"), std::string::npos) << row.name << ": " << param.name;
    }
    bool hasColon = llvm::StringRef(row.parameters).contains(": ");
    bool hasRule = llvm::any_of(builtin->params, [](const BuiltinParam &p) { return p.rule != ParamRule::Any; });
    EXPECT_EQ(hasColon, hasRule) << row.name;
  }
}

TEST(Builtins, ModulesAreFoundByName) {
  EXPECT_EQ(findModule("triton.language"), ModuleTile);
  EXPECT_EQ(findModule("triton.language.extra.libdevice"), ModuleDevice);
  EXPECT_EQ(findModule("triton_dist.language.extra.libshmem_device"), ModuleShmem);
  EXPECT_EQ(findModule("triton_dist.language.extra.language_extra"), ModuleThread);
  EXPECT_EQ(findModule("triton_dist.language.extra.cuda.language_extra"), ModuleThread);
  EXPECT_EQ(findModule("ditron.language"), ModuleDist);
  EXPECT_EQ(findModule("torch"), std::nullopt);
  EXPECT_EQ(findModule("triton.languages"), std::nullopt);
}

TEST(Builtins, NearestNames) {
  EXPECT_EQ(nearestName(ModuleTile, "aragne"), "arange");
  EXPECT_EQ(nearestName(ModuleTile, "flaot32"), "float32");
  EXPECT_EQ(nearestName(ModuleTile, "completely_different"), "");
}

TEST(Builtins, TableAsMarkdown) {
  std::string text = listLanguage();
  EXPECT_THAT(text,
              testing::HasSubstr("| `program_id(axis: int)` | index of this program along a grid axis (0, 1 or 2) |"));
}

} // namespace
} // namespace ditron::frontend
