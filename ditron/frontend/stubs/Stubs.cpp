//===- Stubs.cpp - The declaration of the language, read ---------------------------------------------------------------===//
//
// One pass over the statements of each file, then names that modules take from each other.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/stubs/Stubs.h"

#include "ditron/frontend/syntax/AstPrinter.h"
#include "ditron/frontend/syntax/Parser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <fmt/format.h>
#include <set>

namespace ditron::frontend {
namespace {

constexpr llvm::StringLiteral parameterWords[] = {
    "any",       "num", "tensor", "block", "ptr", "int", "bool", "str", "dtype", "shape", "const", "fn", "tensor_descriptor",
    "block_ptr", "mem"};
constexpr llvm::StringLiteral resultWords[] = {"None", "tuple", "vector", "smem", "float"};

/// program_id -> programId.
std::string lowerCamel(llvm::StringRef name) {
  std::string result;
  bool isUpper = false;
  for (char c : name) {
    if (c != '_')
      result += isUpper ? llvm::toUpper(c) : c;
    isUpper = c == '_' && !result.empty();
  }
  return result;
}

/// Lines of a docstring joined to one.
std::string joinLines(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> lines;
  text.split(lines, '\n');
  std::string result;
  for (llvm::StringRef line : lines)
    if (!line.trim().empty())
      result += (result.empty() ? "" : " ") + line.trim().str();
  return result;
}

const ConstValue *constantOf(const ast::Expr *expr) {
  const auto *constant = llvm::dyn_cast_or_null<ast::Constant>(expr);
  return constant ? constant->value : nullptr;
}

/// The docstring that a statement is; null if it is none.
const ConstValue *docstring(const ast::Stmt *stmt) {
  const auto *expression = llvm::dyn_cast_or_null<ast::ExprStmt>(stmt);
  const ConstValue *value = expression ? constantOf(expression->value) : nullptr;
  return value && value->isStr() ? value : nullptr;
}

std::string docOf(ast::StmtList body) {
  const ConstValue *text = body.empty() ? nullptr : docstring(body.front());
  return text ? joinLines(text->getString()) : "";
}

/// Reads the statements of one file.
class Reader {
public:
  Reader(Stubs &stubs, DiagnosticEngine &diagnostics, std::string module)
      : stubs(stubs), diagnostics(diagnostics), module(std::move(module)) {}

  void readModule(ast::StmtList body);

  struct Import {
    std::string module, name;
    SourceRange range;
  };
  std::vector<Import> imports;

private:
  void error(SourceRange range, std::string message) { diagnostics.error(range, std::move(message)); }

  void readStatement(const ast::Stmt *stmt, const ast::Stmt *next);
  void readImport(const ast::ImportFrom *stmt);
  void readDeclaration(const ast::AnnAssign *stmt, const ast::Stmt *next, const std::string &owner);
  void readAlias(const ast::Assign *stmt, const ast::Stmt *next);
  void readClass(const ast::ClassDef *stmt);
  /// True for a class that is called: its only member is __init__.
  bool addClass(const ast::ClassDef *stmt);
  void readFunction(const ast::FunctionDef *stmt, const std::string &owner);
  void readAttribute(const ast::Stmt *stmt, const std::string &owner);
  bool checkResult(const ast::Expr *word);
  void readDecorators(ast::ExprList decorators, StubFunction &function);
  void readHandler(const ast::Call *call, StubFunction &function);
  std::optional<StubFixedValue> fixedValue(const ast::Expr *expr);
  std::optional<StubParam> readParam(const ast::Param &param);
  bool readWord(const ast::Expr *annotation, StubParam &param);
  void readDefault(const ast::Param &param, StubParam &result);
  void readParams(llvm::ArrayRef<ast::Param> params, StubFunction &function);
  void add(StubFunction function);

  Stubs &stubs;
  DiagnosticEngine &diagnostics;
  std::string module;
};

void Reader::readModule(ast::StmtList body) {
  for (auto [index, stmt] : llvm::enumerate(body))
    readStatement(stmt, index + 1 < body.size() ? body[index + 1] : nullptr);
}

void Reader::readStatement(const ast::Stmt *stmt, const ast::Stmt *next) {
  if (docstring(stmt))
    return; // of the module, or of the statement before
  if (const auto *import = llvm::dyn_cast<ast::ImportFrom>(stmt))
    return readImport(import);
  if (const auto *declaration = llvm::dyn_cast<ast::AnnAssign>(stmt))
    return readDeclaration(declaration, next, module);
  if (const auto *alias = llvm::dyn_cast<ast::Assign>(stmt))
    return readAlias(alias, next);
  if (const auto *cls = llvm::dyn_cast<ast::ClassDef>(stmt))
    return readClass(cls);
  if (const auto *function = llvm::dyn_cast<ast::FunctionDef>(stmt))
    return readFunction(function, module);
  error(stmt->range, "a stub holds imports, declarations, functions and classes only");
}

void Reader::readImport(const ast::ImportFrom *stmt) {
  if (stmt->level != 1)
    return error(stmt->range, "stubs import each other: from . import x, from .x import y");
  for (const ast::Alias &alias : stmt->names) {
    if (stmt->module.text.empty())
      stubs.submodules.push_back({module, alias.boundName().str(), alias.name.text.str()});
    else if (alias.asName.text.empty())
      imports.push_back({stmt->module.text.str(), alias.name.text.str(), alias.name.range});
    else
      error(alias.asName.range, "a name is taken under its own name");
  }
}

void Reader::readDeclaration(const ast::AnnAssign *stmt, const ast::Stmt *next, const std::string &owner) {
  StubConstant constant;
  const auto *name = llvm::dyn_cast<ast::Name>(stmt->target);
  if (!name)
    return error(stmt->target->range, "only names are declared");
  constant.module = owner;
  constant.name = name->id.str();
  if (const ConstValue *text = docstring(next))
    constant.doc = joinLines(text->getString());
  const std::string word = unparse(stmt->annotation);
  const auto *call = llvm::dyn_cast_or_null<ast::Call>(stmt->value);
  if (call && call->args.size() == 1 && unparse(call->callee) == "refused" && constantOf(call->args[0])) {
    constant.kind = StubConstant::Kind::Refused;
    constant.doc = constantOf(call->args[0])->str();
  } else if (call && call->args.size() == 1 && unparse(call->callee) == "pointer_type" && word == "dtype") {
    constant.kind = StubConstant::Kind::PointerType;
    constant.pointee = unparse(call->args[0]);
  } else if (word == "int" && constantOf(stmt->value) && constantOf(stmt->value)->toInt64()) {
    constant.kind = StubConstant::Kind::Number;
    constant.number = *constantOf(stmt->value)->toInt64();
  } else if ((word == "dtype" || word == "annotation") && !stmt->value) {
    constant.kind = word == "dtype" ? StubConstant::Kind::Type : StubConstant::Kind::Annotation;
  } else {
    return error(stmt->range, "a declaration is `x: dtype`, `x: dtype = pointer_type(y)`, `x: int = 7`, `x: annotation` or `x: "
                              "dtype = refused(\"why\")`");
  }
  stubs.constants.push_back(std::move(constant));
}

void Reader::readAlias(const ast::Assign *stmt, const ast::Stmt *next) {
  const auto *name = stmt->targets.size() == 1 ? llvm::dyn_cast<ast::Name>(stmt->targets[0]) : nullptr;
  const auto *target = llvm::dyn_cast<ast::Name>(stmt->value);
  if (!name || !target)
    return error(stmt->range, "another name of a function is `name = function`");
  auto known =
      llvm::find_if(stubs.functions, [&](const StubFunction &each) { return each.owner == module && each.name == target->id; });
  if (known == stubs.functions.end())
    return error(target->range, fmt::format("this stub has no function '{}' above", target->id.str()));
  StubFunction copy = *known;
  copy.name = name->id.str();
  copy.range = name->range;
  const ConstValue *text = docstring(next);
  copy.doc = text ? joinLines(text->getString()) : "the same as " + target->id.str();
  add(std::move(copy));
}

void Reader::readClass(const ast::ClassDef *stmt) {
  const bool isEnumeration = stmt->bases.size() == 1 && unparse(stmt->bases[0]) == "enumeration";
  const std::string owner = module + "." + stmt->name.text.str();
  if (isEnumeration)
    stubs.submodules.push_back({module, stmt->name.text.str(), owner});
  else if (addClass(stmt))
    return;
  for (auto [index, member] : llvm::enumerate(stmt->body)) {
    if (docstring(member))
      continue;
    const auto *function = llvm::dyn_cast<ast::FunctionDef>(member);
    const auto *declaration = llvm::dyn_cast<ast::AnnAssign>(member);
    if (declaration && isEnumeration)
      readDeclaration(declaration, index + 1 < stmt->body.size() ? stmt->body[index + 1] : nullptr, owner);
    else if (function && !isEnumeration && !function->name.text.starts_with("__"))
      readFunction(function, owner);
    else if (!isEnumeration && (declaration || function))
      readAttribute(member, owner);
    else
      error(member->range, "a class of a stub holds functions, attributes and operators, an enumeration numbers");
  }
}

bool Reader::addClass(const ast::ClassDef *stmt) {
  StubFunction cls;
  cls.kind = StubFunction::Kind::Class;
  cls.name = stmt->name.text.str();
  cls.owner = module;
  cls.doc = docOf(stmt->body);
  cls.handler = "classOnly";
  cls.isClass = true;
  cls.result = "any";
  cls.range = stmt->name.range;
  cls.params.push_back({"values", "any", /*isVariadic=*/true, false, std::nullopt});
  readDecorators(stmt->decorators, cls);
  const bool isLibrary = cls.kind == StubFunction::Kind::Library;
  const bool isMade = isLibrary || cls.handler != "classOnly";
  if (isMade) {
    cls.kind = isLibrary ? StubFunction::Kind::LibraryClass : StubFunction::Kind::Function;
    cls.params.clear();
    for (const ast::Stmt *member : stmt->body)
      if (const auto *function = llvm::dyn_cast<ast::FunctionDef>(member); function && function->name.text == "__init__")
        readParams(function->params.drop_front(), cls);
  }
  add(std::move(cls));
  return isMade;
}

void Reader::readFunction(const ast::FunctionDef *stmt, const std::string &owner) {
  StubFunction function;
  function.name = stmt->name.text.str();
  function.owner = owner;
  function.range = stmt->name.range;
  function.doc = docOf(stmt->body);
  function.handler = lowerCamel(function.name);
  readDecorators(stmt->decorators, function);
  if (function.kind != StubFunction::Kind::Refused)
    readParams(stmt->params, function);
  if (stmt->returns) {
    function.result = unparse(stmt->returns);
    checkResult(stmt->returns);
  } else if (function.kind == StubFunction::Kind::Function) {
    error(stmt->headerRange, "a function says what it gives: -> tensor, -> None");
  }
  add(std::move(function));
}

bool Reader::checkResult(const ast::Expr *word) {
  const std::string text = unparse(word);
  if (llvm::is_contained(parameterWords, text) || llvm::is_contained(resultWords, text))
    return true;
  error(word->range, fmt::format("'{}' is no word of stubs", text));
  return false;
}

void Reader::readAttribute(const ast::Stmt *stmt, const std::string &owner) {
  StubAttribute attribute;
  attribute.owner = owner;
  const auto *function = llvm::dyn_cast<ast::FunctionDef>(stmt);
  const auto *declaration = llvm::dyn_cast<ast::AnnAssign>(stmt);
  const ast::Expr *word = function ? function->returns : declaration->annotation;
  if (!word)
    return error(function->headerRange, "an operator says what it gives: -> tensor");
  if (!checkResult(word))
    return;
  attribute.isOperator = function != nullptr;
  attribute.name = function ? function->name.text.str() : unparse(declaration->target);
  attribute.word = unparse(word);
  if (function) {
    StubFunction signature;
    readParams(function->params, signature);
    attribute.params = std::move(signature.params);
  }
  stubs.attributes.push_back(std::move(attribute));
}

void Reader::readDecorators(ast::ExprList decorators, StubFunction &function) {
  for (const ast::Expr *decorator : decorators) {
    const auto *call = llvm::dyn_cast<ast::Call>(decorator);
    const ConstValue *argument = call && !call->args.empty() ? constantOf(call->args[0]) : nullptr;
    const std::string name = unparse(call ? call->callee : decorator);
    const std::string text = argument && argument->isStr() ? argument->getString() : "";
    if (!call && name == "member") {
      function.isMember = true;
    } else if (text.empty()) {
      error(decorator->range,
            "a decorator is @handler(\"name\"), @scope(\"block\"), @member, @library(\"file\") or @refused(\"why\")");
    } else if (name == "handler") {
      function.handler = text;
      readHandler(call, function);
    } else if (name == "scope" && (text == "block" || text == "warp")) {
      function.scope = text;
    } else if (name == "library") {
      function.kind = StubFunction::Kind::Library;
      function.libraryFile = text;
    } else if (name == "refused") {
      function.kind = StubFunction::Kind::Refused;
      function.reason = text;
    } else {
      error(decorator->range, fmt::format("unknown decorator, or a value that it does not take: {}", unparse(decorator)));
    }
  }
}

void Reader::readHandler(const ast::Call *call, StubFunction &function) {
  for (const ast::Expr *expr : call->args.drop_front()) {
    const ConstValue *value = constantOf(expr);
    function.takesList = value && value->kind() == ConstValue::Kind::Ellipsis;
    if (!function.takesList)
      error(expr->range, "values for a handler are given by keyword; `...` stands for all arguments as a list");
  }
  for (const ast::Keyword &keyword : call->keywords) {
    std::optional<StubFixedValue> value = fixedValue(keyword.value);
    if (!value)
      error(keyword.range, "a handler takes True, False, numbers, texts and C++ constants such as ScalarKind.Int32");
    else
      function.fixed.push_back({keyword.name.text.str(), value->type, value->value});
  }
}

/// A value of @handler as C++.
std::optional<StubFixedValue> Reader::fixedValue(const ast::Expr *expr) {
  if (const auto *attribute = llvm::dyn_cast<ast::Attribute>(expr)) {
    std::string type = unparse(attribute->value);
    for (size_t at; (at = type.find('.')) != std::string::npos;)
      type.replace(at, 1, "::");
    return StubFixedValue{"", type, type + "::" + attribute->attr.text.str()};
  }
  const ConstValue *value = constantOf(expr);
  if (value && value->isBool())
    return StubFixedValue{"", "bool", value->getBool() ? "true" : "false"};
  if (value && value->isInt() && value->toInt64())
    return StubFixedValue{"", "int64_t", fmt::format("{}", *value->toInt64())};
  if (value && value->isStr())
    return StubFixedValue{"", "llvm::StringRef", fmt::format("\"{}\"", value->getString())};
  return std::nullopt;
}

bool Reader::readWord(const ast::Expr *annotation, StubParam &param) {
  if (const auto *either = llvm::dyn_cast<ast::BinOp>(annotation); either && either->op == BinaryOp::BitOr) {
    const ConstValue *none = constantOf(either->right);
    if (!none || !none->isNone())
      return false;
    param.takesNone = true;
    annotation = either->left;
  }
  param.rule = unparse(annotation);
  return llvm::is_contained(parameterWords, param.rule);
}

/// Whether a default obeys the parameter's rule.
static bool fits(const ConstValue &value, const StubParam &param) {
  llvm::StringRef rule = param.rule;
  if (value.isNone())
    return param.takesNone || rule == "any" || rule == "const";
  if (value.kind() == ConstValue::Kind::Ellipsis)
    return rule == "any" || rule == "shape" || rule == "const";
  if (rule == "any" || rule == "const")
    return true;
  if (rule == "num")
    return value.isNumber();
  if (rule == "int")
    return value.isInt();
  return rule == "bool" ? value.isBool() : rule == "str" && value.isStr();
}

void Reader::readDefault(const ast::Param &param, StubParam &result) {
  if (const auto *tuple = llvm::dyn_cast<ast::Tuple>(param.defaultValue); tuple && tuple->elements.empty()) {
    result.defaultValue = ConstValue::ellipsis();
  } else if (const ConstValue *value = constantOf(param.defaultValue); value && value->kind() != ConstValue::Kind::Ellipsis) {
    result.defaultValue = *value;
  } else if (const auto *negative = llvm::dyn_cast<ast::UnaryOp>(param.defaultValue);
             negative && negative->op == frontend::UnaryOp::USub && constantOf(negative->operand)) {
    auto number = unary(frontend::UnaryOp::USub, *constantOf(negative->operand));
    if (number.isOk())
      result.defaultValue = *number;
  }
  if (!result.defaultValue)
    return error(param.defaultValue->range, "a default is None, True, False, a number, a text or ()");
  if (!fits(*result.defaultValue, result))
    error(param.defaultValue->range,
          fmt::format("a parameter of '{}' cannot have the default {}", result.rule, unparse(param.defaultValue)));
}

std::optional<StubParam> Reader::readParam(const ast::Param &param) {
  StubParam result;
  result.name = param.name.text.str();
  result.rule = "any";
  result.isVariadic = param.kind == ast::ParamKind::VarPositional;
  if (param.kind == ast::ParamKind::PositionalOnly || param.kind == ast::ParamKind::VarKeyword) {
    error(param.range, "stubs have no `/` and no `**`");
    return std::nullopt;
  }
  if (param.annotation && !readWord(param.annotation, result)) {
    error(param.annotation->range,
          fmt::format("'{}' is no word of stubs; the header of Stubs.h lists them", unparse(param.annotation)));
    return std::nullopt;
  }
  if (param.defaultValue)
    readDefault(param, result);
  // Without a word anything is taken, None too.
  result.takesNone |= result.defaultValue && result.defaultValue->isNone();
  return result;
}

void Reader::readParams(llvm::ArrayRef<ast::Param> params, StubFunction &function) {
  bool hasVariadic = false;
  for (const ast::Param &param : params) {
    std::optional<StubParam> read = readParam(param);
    if (!read)
      continue;
    hasVariadic |= read->isVariadic;
    if (param.kind == ast::ParamKind::KeywordOnly && !hasVariadic)
      error(param.range, "stubs have no `*` without a name");
    function.params.push_back(std::move(*read));
  }
}

void Reader::add(StubFunction function) {
  const bool isRefused = function.kind == StubFunction::Kind::Refused;
  if (isRefused)
    function.doc = function.reason;
  if (function.doc.empty())
    error(function.range, fmt::format("'{}' needs {}", function.name, isRefused ? "a reason" : "a docstring"));
  function.modules.assign(1, function.owner);
  if (function.isMember)
    function.modules.push_back("tl.tensor");
  stubs.functions.push_back(std::move(function));
}

} // namespace

std::string StubFunction::parameterText() const {
  std::string text;
  for (const StubParam &param : params) {
    text += (text.empty() ? "" : ", ") + std::string(param.isVariadic ? "*" : "") + param.name;
    if (param.rule != "any")
      text += ": " + param.rule;
    const bool hasNone = param.defaultValue && param.defaultValue->isNone();
    if (param.takesNone && !hasNone)
      text += param.rule == "any" ? "" : " | None";
    if (param.defaultValue)
      text += "=" + (param.defaultValue->kind() == ConstValue::Kind::Ellipsis ? std::string("()") : param.defaultValue->repr());
  }
  return text;
}

std::optional<Stubs> readStubs(const std::vector<StubFile> &files, DiagnosticEngine &diagnostics) {
  Stubs stubs;
  std::set<std::pair<std::string, std::string>> seen;
  std::vector<std::pair<std::string, Reader::Import>> imports;
  std::vector<std::unique_ptr<ast::Module>> trees;
  for (const StubFile &file : files) {
    auto id = diagnostics.sourceManager().add(file.path, file.text);
    if (!id.isOk())
      return std::nullopt;
    trees.push_back(parseModule(diagnostics.sourceManager().file(*id), diagnostics));
    Reader reader(stubs, diagnostics, file.name);
    reader.readModule(trees.back()->body);
    for (Reader::Import &import : reader.imports)
      imports.emplace_back(file.name, std::move(import));
  }
  for (const auto &[module, import] : imports) {
    auto known = llvm::find_if(
        stubs.functions, [&](const StubFunction &each) { return each.owner == import.module && each.name == import.name; });
    if (known == stubs.functions.end())
      diagnostics.error(import.range, fmt::format("{}.pyi declares no '{}'", import.module, import.name));
    else
      known->modules.push_back(module);
  }
  for (const StubFunction &function : stubs.functions)
    for (const std::string &module : function.modules)
      if (!seen.insert({module, function.name}).second)
        diagnostics.error(function.range, fmt::format("'{}' is declared twice in {}", function.name, module));
  if (diagnostics.hasErrors())
    return std::nullopt;
  return stubs;
}

} // namespace ditron::frontend
