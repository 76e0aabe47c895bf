//===- ModuleLevel.cpp - The module level of files -------------------------------------------------------------------------===//
//
// A file is executed once, in order, as Python would. What fails, or depends on what only the user's machine knows (a
// package that is not here, the number of GPUs), binds its names to an unknown value that says why, and the next statement
// follows: a file also holds host code, which kernels never ask for. Nothing is guessed:
//
//   if os.environ.get("FAST") == "1": ...     the branch that Python takes: the variable is read
//   if torch.cuda.device_count() > 1: ...     both branches are executed. A name that has one value in either is that value; one
//                                             that only one branch binds is bound, for a program that reads it has taken that
//                                             branch; all others are unknown until --define settles the condition
//   try: import flash_attn ... except ...     the same, as nobody knows whether the package is installed
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"

#include "ditron/frontend/syntax/AstPrinter.h"
#include "ditron/frontend/syntax/Parser.h"
#include <filesystem>
#include <fmt/format.h>

namespace ditron::frontend {

std::unique_ptr<Frame> Evaluator::pythonFrame(std::shared_ptr<Environment> environment) {
  auto frame = std::make_unique<Frame>();
  frame->scope = environment->file;
  frame->environment = std::move(environment);
  return frame;
}

/// The name by which a file is imported: its own, behind those of the packages around it.
static std::string moduleName(const ScopeOrigin &origin) {
  namespace fs = std::filesystem;
  fs::path path(origin.path);
  std::string name = origin.isPackage ? "" : path.stem().string();
  std::error_code error;
  for (fs::path folder = path.parent_path(); fs::is_regular_file(folder / "__init__.py", error); folder = folder.parent_path())
    name = folder.filename().string() + (name.empty() ? "" : "." + name);
  return name.empty() ? path.stem().string() : name;
}

void Evaluator::executeFile(const ModuleScope &file) {
  if (file.state != ModuleScope::State::Unread)
    return;
  file.state = ModuleScope::State::Executing;
  // Whoever needs the file first is no part of its messages, nor of its limits.
  std::vector<SourceRange> callSites = std::exchange(emit.callSites, {});
  size_t outerSteps = steps;
  const ast::Expr *outerDiscarded = std::exchange(discarded, nullptr);
  frames.push_back(pythonFrame(file.environment));
  frame().isTolerant = true;
  bindName("__name__", LangValue::string(moduleName(file.origin)), SourceRange());
  bindName("__file__", LangValue::string(file.origin.path), SourceRange());
  for (const ast::Stmt *statement : file.module.body)
    if (executeTolerantly(statement) == Flow::Raised) {
      file.raised = frame().unknownCondition;
      break;
    }
  frames.pop_back();
  discarded = outerDiscarded;
  steps = outerSteps;
  emit.callSites = std::move(callSites);
  file.state = ModuleScope::State::Executed;
}

const Environment &Evaluator::namesOf(const ModuleScope &file) {
  executeFile(file);
  return *file.environment;
}

//===------------------------------------------------------------------------------------------------------------------===//
// What is not known
//===------------------------------------------------------------------------------------------------------------------===//

LangValue Evaluator::unknown(SourceRange range, std::string text) {
  if (auto defined = definedValue(text))
    return *defined;
  return LangValue(std::make_shared<const UnknownValue>(UnknownValue{range, std::move(text), {}}));
}

static LangValue failedWith(std::vector<Diagnostic> errors) {
  llvm::erase_if(errors, [](const Diagnostic &each) { return each.severity != Severity::Error; });
  UnknownValue reason;
  if (!errors.empty())
    reason.range = errors.front().range;
  reason.errors = std::move(errors);
  return LangValue(std::make_shared<const UnknownValue>(std::move(reason)));
}

Flow Evaluator::executeTolerantly(const ast::Stmt *statement) {
  steps = 0;
  LangValue reason;
  {
    Emitter::Capture capture(emit);
    Flow flow = runPython(statement);
    if (flow == Flow::Failed || capture.hasFailed()) {
      reason = failedWith(capture.takeBack());
      if (llvm::isa<ast::Raise>(statement)) {
        frame().unknownCondition = reason;
        return Flow::Raised;
      }
    } else if (flow == Flow::Unknown) {
      reason = frame().unknownCondition;
    } else {
      return flow;
    }
  }
  makeUnknown(statement, reason);
  return Flow::Next;
}

namespace {

/// The names that a statement binds, or whose objects it changes.
class BoundNames {
public:
  void visit(const ast::Node *root) {
    ast::walk(root, [&](const ast::Node *node) {
      if (const auto *function = llvm::dyn_cast<ast::FunctionDef>(node))
        return add(function->name.text, node == root);
      if (const auto *cls = llvm::dyn_cast<ast::ClassDef>(node))
        return add(cls->name.text, node == root);
      if (llvm::isa<ast::Lambda, ast::Comprehension>(node))
        return false;
      visitStatement(node);
      return true;
    });
  }
  llvm::SmallVector<llvm::StringRef> names;

private:
  bool add(llvm::StringRef name, bool = false) {
    if (!llvm::is_contained(names, name))
      names.push_back(name);
    return false; // of a function or class only the name counts
  }
  void target(const ast::Expr *target) {
    if (const auto *name = llvm::dyn_cast<ast::Name>(target))
      add(name->id);
    else if (const auto *subscript = llvm::dyn_cast<ast::Subscript>(target))
      this->target(subscript->value);
    else if (const auto *attribute = llvm::dyn_cast<ast::Attribute>(target))
      this->target(attribute->value);
    else if (const auto *starred = llvm::dyn_cast<ast::Starred>(target))
      this->target(starred->value);
    else if (const auto *tuple = llvm::dyn_cast<ast::Tuple>(target))
      llvm::for_each(tuple->elements, [&](const ast::Expr *each) { this->target(each); });
    else if (const auto *list = llvm::dyn_cast<ast::List>(target))
      llvm::for_each(list->elements, [&](const ast::Expr *each) { this->target(each); });
  }
  void visitStatement(const ast::Node *node) {
    if (const auto *assign = llvm::dyn_cast<ast::Assign>(node))
      llvm::for_each(assign->targets, [&](const ast::Expr *each) { target(each); });
    else if (const auto *annotated = llvm::dyn_cast<ast::AnnAssign>(node))
      target(annotated->target);
    else if (const auto *augmented = llvm::dyn_cast<ast::AugAssign>(node))
      target(augmented->target);
    else if (const auto *deletion = llvm::dyn_cast<ast::Delete>(node))
      llvm::for_each(deletion->targets, [&](const ast::Expr *each) { target(each); });
    else if (const auto *loop = llvm::dyn_cast<ast::For>(node))
      target(loop->target);
    else if (const auto *with = llvm::dyn_cast<ast::With>(node)) {
      for (const ast::WithItem &item : with->items)
        if (item.target)
          target(item.target);
    } else if (const auto *walrus = llvm::dyn_cast<ast::NamedExpr>(node))
      add(walrus->target.text);
    else if (const auto *import = llvm::dyn_cast<ast::Import>(node))
      llvm::for_each(import->names, [&](const ast::Alias &alias) { add(alias.boundName()); });
    else if (const auto *import = llvm::dyn_cast<ast::ImportFrom>(node))
      llvm::for_each(import->names, [&](const ast::Alias &alias) { add(alias.boundName()); });
    else if (const auto *statement = llvm::dyn_cast<ast::ExprStmt>(node)) {
      // `names.append(...)`
      const auto *call = llvm::dyn_cast<ast::Call>(statement->value);
      if (const auto *method = call ? llvm::dyn_cast<ast::Attribute>(call->callee) : nullptr)
        target(method->value);
    }
  }
};

} // namespace

void Evaluator::makeUnknown(llvm::ArrayRef<const ast::Stmt *> statements, const LangValue &reason) {
  BoundNames bound;
  llvm::for_each(statements, [&](const ast::Stmt *statement) { bound.visit(statement); });
  for (llvm::StringRef name : bound.names) {
    // A module or function does not change because a statement calls it.
    const Binding *before = frame().environment->find(name);
    bool isObject = !before || before->value.is<ListValue>() || before->value.isDict() || before->value.isConstant() ||
                    before->value.isTuple() || before->value.object() || before->value.isUnknown();
    bool isCall = statements.size() == 1 && llvm::isa<ast::ExprStmt>(statements.front());
    if (!isCall || (before && isObject))
      bindName(name, reason, statements.front()->range);
  }
}

Flow Evaluator::executeBoth(llvm::function_ref<Flow()> first, llvm::function_ref<Flow()> second,
                           const LangValue &reason) {
  Environment &environment = *frame().environment;
  const auto before = environment.names;
  // Objects that a branch changes are the same afterwards, with other contents.
  auto contentsOf = [&] {
    std::vector<std::pair<LangValue, LangValue>> contents;
    for (const auto &[name, binding] : before)
      if (const auto *list = binding.value.getIf<ListValue>())
        contents.emplace_back(binding.value, LangValue::list(*list->elements));
      else if (binding.value.isDict())
        contents.emplace_back(binding.value, LangValue::dict(binding.value.items()));
    return contents;
  };
  auto restore = [](const std::vector<std::pair<LangValue, LangValue>> &contents) {
    for (const auto &[object, content] : contents)
      if (const auto *list = object.getIf<ListValue>())
        *list->elements = *content.getIf<ListValue>()->elements;
      else
        object.items() = content.items();
  };
  const auto contentsBefore = contentsOf();
  Flow firstFlow = first();
  auto firstNames = std::move(environment.names);
  const auto contentsFirst = contentsOf();
  environment.names = before;
  restore(contentsBefore);
  Flow secondFlow = second();
  if (firstFlow == Flow::Raised && secondFlow != Flow::Raised)
    return secondFlow; // the program ended in the other one
  if (secondFlow == Flow::Raised) {
    environment.names = std::move(firstNames);
    restore(contentsFirst);
    return firstFlow;
  }
  llvm::SmallVector<llvm::StringRef> changed;
  for (auto [inFirst, inSecond] : llvm::zip_equal(contentsFirst, contentsOf()))
    if (!inFirst.second.equals(inSecond.second))
      for (const auto &[name, binding] : before)
        if (binding.value.identical(inFirst.first))
          changed.push_back(name);
  for (const auto &[name, binding] : firstNames) {
    auto other = environment.names.find(name);
    if (other == environment.names.end())
      environment.names[name] = binding;
    else if (!other->second.value.identical(binding.value) && !other->second.value.equals(binding.value))
      other->second.value = reason;
  }
  for (llvm::StringRef name : changed)
    environment.names[name].value = reason;
  return Flow::Next;
}

//===------------------------------------------------------------------------------------------------------------------===//
// What the user says, and the environment
//===------------------------------------------------------------------------------------------------------------------===//

const ast::Expr *Evaluator::parseDefinition(const std::string &name, const std::string &text) {
  DiagnosticEngine &diagnostics = emit.diagnosticEngine();
  auto id = diagnostics.sourceManager().add(fmt::format("--define {}", name), text + "\n");
  if (!id.isOk())
    return nullptr;
  definedTexts.push_back(parseModule(diagnostics.sourceManager().file(*id), diagnostics));
  ast::StmtList body = definedTexts.back()->body;
  const auto *statement = body.size() == 1 ? llvm::dyn_cast<ast::ExprStmt>(body.front()) : nullptr;
  if (!statement && !body.empty())
    emit.error(body.front()->range, "an expression is expected here");
  return statement ? statement->value : nullptr;
}

std::optional<LangValue> Evaluator::definedValue(llvm::StringRef text) {
  if (options.defines.empty())
    return std::nullopt;
  if (!defined) {
    defined.emplace();
    for (const auto &[name, value] : options.defines) {
      std::string key = name;
      if (!llvm::StringRef(name).starts_with("import "))
        if (const ast::Expr *expression = parseDefinition(name, name))
          key = unparse(expression);
      const ast::Expr *expression = parseDefinition(name, value);
      if (!expression)
        continue;
      if (auto module = findModule(unparse(expression))) { // a module of ours: triton.language.extra.libdevice
        (*defined)[key] = LangValue(ModuleValue{*module});
        continue;
      }
      auto environment = std::make_shared<Environment>();
      environment->file = &globals;
      environment->parent = std::make_shared<Environment>(); // nothing of the file
      environment->parent->file = &globals;
      LangValue result = evaluatePython(expression, environment);
      result.isWrapped = true; // kernels may read it
      if (!result.isPoison())
        (*defined)[key] = std::move(result);
    }
  }
  auto it = defined->find(text);
  return it == defined->end() ? std::nullopt : std::optional(it->second);
}

bool Evaluator::noteEnvironmentRead(llvm::StringRef name) { return modules.mentions(name); }

} // namespace ditron::frontend
