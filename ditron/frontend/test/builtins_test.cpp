//===- builtins_test.cpp - The table of functions is well-formed ----------------------------------------------------------===//
//
// What the stubs' reader cannot know: words of types exist, the library has what stubs say it has; and look-up by name.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/builtins/Builtins.h"
#include "ditron/frontend/Import.h"
#include "ditron/frontend/Library.h"
#include "ditron/frontend/syntax/AstPrinter.h"
#include "ditron/frontend/syntax/Parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ditron::frontend {
namespace {

TEST(Builtins, TypesExist) {
  for (const BuiltinConstant &constant : builtinConstants()) {
    const bool isValue = constant.kind != BuiltinConstant::Annotation && constant.kind != BuiltinConstant::Refused;
    EXPECT_EQ(findBuiltinConstant(constant.module, constant.name).has_value(), isValue) << constant.name.str();
  }
  EXPECT_EQ(findBuiltinConstant(ModuleTile, "TRITON_MAX_TENSOR_NUMEL")->constant().toInt64(), maxBlockElements);
}

/// The parameters' names of a function or of a class's __init__ or fields in library/*.py.
std::optional<std::vector<std::string>> parametersInLibrary(const ast::Module &module, llvm::StringRef name) {
  std::vector<std::string> names;
  for (const ast::Stmt *stmt : module.body) {
    if (const auto *function = llvm::dyn_cast<ast::FunctionDef>(stmt); function && function->name.text == name) {
      for (const ast::Param &param : function->params)
        names.push_back(param.name.text.str());
      return names;
    }
    const auto *cls = llvm::dyn_cast<ast::ClassDef>(stmt);
    if (!cls || cls->name.text != name)
      continue;
    for (const ast::Stmt *member : cls->body)
      if (const auto *field = llvm::dyn_cast<ast::AnnAssign>(member))
        names.push_back(unparse(field->target));
    return names;
  }
  return std::nullopt;
}

TEST(Builtins, LibraryHasWhatStubsDeclare) {
  for (const Builtin &row : declaredBuiltins()) {
    if (row.libraryFile.empty())
      continue;
    SourceManager sources;
    DiagnosticEngine diagnostics(sources);
    LibrarySource source = librarySource(row.libraryFile);
    auto id = sources.add(std::string(source.path), std::string(source.text));
    ASSERT_TRUE(id.isOk());
    auto module = parseModule(sources.file(*id), diagnostics);
    auto names = parametersInLibrary(*module, row.name);
    ASSERT_TRUE(names.has_value()) << row.name.str() << " is not in library/" << row.libraryFile.str() << ".py";
    if (row.params.empty())
      continue; // a class that is not meant to be called
    std::vector<std::string> declared;
    for (const BuiltinParam &param : row.params)
      declared.push_back(param.name.str());
    EXPECT_EQ(declared, *names) << row.name.str();
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
  EXPECT_THAT(
      text, testing::HasSubstr("| `program_id(axis: int) -> tensor` | index of this program along a grid axis (0, 1 or 2) |"));
}

} // namespace
} // namespace ditron::frontend
