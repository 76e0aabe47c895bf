//===- Evaluator.cpp - The entry function ------------------------------------------------------------------------------===//
//
// Builds the kernel's func.func, binds its parameters to arguments or compile-time values, and runs its body.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"
#include "ditron/frontend/Iterators.h"

#include "ditron/frontend/builtins/Descriptors.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <fmt/format.h>

namespace ditron::frontend {

Evaluator::Evaluator(mlir::MLIRContext &context, Modules &modules, const ModuleScope &globals, const ImportOptions &options,
                   DiagnosticEngine &diagnostics)
    : emit(context, diagnostics), options(options), globals(globals), modules(modules), library(diagnostics) {
  emit.checksOverflow = options.debug;
}

Evaluator::~Evaluator() {
  for (const auto &environment : environments)
    environment->names.clear();
  for (const LangValue &value : made) {
    if (const auto *list = value.getIf<ListValue>())
      list->elements->clear();
    else if (value.isDict())
      value.items().clear();
    else if (value.instance())
      value.instance()->attributes.clear();
    else if (value.iterator())
      value.iterator()->clear();
  }
  while (!made.empty())
    made.pop_back();
}

LangValue Evaluator::argumentValue(const ArgumentSpec &spec, const std::string &name,
                                  llvm::function_ref<LangValue(const RunTimeParameter &)> take) {
  if (spec.isGlobal())
    return globalArgument(spec.globalName);
  if (spec.isConstexpr()) {
    const auto *type = std::get_if<LangType>(&*spec.constexprValue);
    return type ? LangValue(*type) : LangValue(std::get<ConstValue>(*spec.constexprValue));
  }
  if (spec.isTuple()) {
    std::vector<LangValue> elements;
    for (const ArgumentSpec &element : *spec.elements)
      elements.push_back(argumentValue(element, name, take));
    bool isNamed = !elements.empty() &&
                   llvm::all_of(*spec.elements, [](const ArgumentSpec &element) { return !element.name.empty(); });
    if (!isNamed)
      return LangValue::tuple(std::move(elements));
    auto cls = std::make_shared<ClassInfo>();
    cls->name = name;
    cls->isNamedTuple = true;
    for (const ArgumentSpec &element : *spec.elements)
      cls->fields.push_back({element.name, {}, nullptr, nullptr, nullptr});
    return LangValue(TupleValue{std::make_shared<const std::vector<LangValue>>(std::move(elements)), std::move(cls)});
  }
  std::vector<LangValue> values;
  for (const RunTimeParameter &each : runTimeParameters(spec, name))
    values.push_back(take(each));
  if (!spec.isDescriptor)
    return values.front();
  DescriptorValue descriptor;
  descriptor.tile = spec.type;
  descriptor.fillsNan = spec.fillsNan;
  descriptor.base = values.front();
  descriptor.sizes.assign(values.begin() + 1, values.begin() + 1 + spec.type.rank());
  descriptor.strides.assign(values.begin() + 1 + spec.type.rank(), values.end());
  return emitDescriptor(emit, std::move(descriptor));
}

LangValue Evaluator::globalArgument(llvm::StringRef name) {
  const SourceRange range = frame().function->headerRange;
  auto binding = findGlobal(scope(), name);
  if (!binding)
    return emit.fail(range, fmt::format("the signature gives the name '@{}', which the kernel's file does not define", name.str()));
  binding->value.isWrapped = true; // as an argument that the caller gives
  return readGlobal(intern(name), *binding, range);
}

LangValue Evaluator::asNamedTuple(const LangValue &value, std::shared_ptr<const ClassInfo> cls, SourceRange range) {
  if (!cls || !cls->isNamedTuple)
    return value;
  if (cls->fields.size() != value.elements().size())
    return emit.fail(range, fmt::format("class '{}' has {} fields, but the argument is a tuple of {}", cls->name,
                                        cls->fields.size(), value.elements().size()));
  std::vector<LangValue> elements = value.elements();
  for (auto [element, field] : llvm::zip(elements, cls->fields))
    if (element.isTuple())
      element = asNamedTuple(element, annotatedClass(field.annotation, field.names), range);
  return LangValue(TupleValue{std::make_shared<const std::vector<LangValue>>(std::move(elements)), std::move(cls)});
}

void Evaluator::importEntry(mlir::ModuleOp module, const FunctionValue &entry, llvm::StringRef name,
                           llvm::ArrayRef<const ArgumentSpec *> arguments) {
  const ast::FunctionDef *kernel = entry.node;
  Emitter::At at(emit, kernel->headerRange);
  auto names = entry.environment ? entry.environment : entry.scope->environment;
  emit.builder.setInsertionPointToEnd(module.getBody());
  llvm::SmallVector<mlir::Type> types;
  llvm::SmallVector<mlir::Location> locations;
  for (auto [param, spec] : llvm::zip(kernel->params, arguments)) {
    if (!spec)
      continue;
    for (const RunTimeParameter &each : runTimeParameters(*spec, param.name.text.str())) {
      types.push_back(emit.ir(each.type));
      locations.push_back(mlir::NameLoc::get(emit.builder.getStringAttr(each.name), emit.locationOf(param.range)));
    }
  }
  auto function = mlir::func::FuncOp::create(emit.builder, emit.location(), name,
                                             emit.builder.getFunctionType(types, {}));
  function->setAttr("tile.kernel", emit.builder.getUnitAttr());
  mlir::Block *block = emit.builder.createBlock(&function.getBody(), {}, types, locations);

  frames.push_back(std::make_unique<Frame>());
  frame().function = kernel;
  frame().scope = entry.scope;
  frame().closure = entry.environment;
  frame().isEntry = true;
  unsigned next = 0;
  auto take = [&](const RunTimeParameter &parameter) {
    if (parameter.divisibility > 1)
      function.setArgAttr(next, "tile.divisibility", emit.builder.getI64IntegerAttr(parameter.divisibility));
    return LangValue::tensor(block->getArgument(next++), parameter.type);
  };
  emit.builder.setInsertionPointToEnd(block);
  for (auto [param, spec] : llvm::zip(kernel->params, arguments)) {
    Variable variable;
    variable.range = param.range;
    variable.isConstexpr = isConstexprParam(param);
    variable.value =
        spec ? argumentValue(*spec, param.name.text.str(), take) : toKernel(defaultOf(entry, param), param.range);
    if (spec && spec->isTuple())
      variable.value = asNamedTuple(variable.value, annotatedClass(param.annotation, names), param.range);
    frame().locals[param.name.text] = std::move(variable);
  }
  runBody(kernel->body, nullptr);
  frames.pop_back();
  emit.builder.setInsertionPointToEnd(block);
  mlir::func::ReturnOp::create(emit.builder, emit.location());
}

} // namespace ditron::frontend
