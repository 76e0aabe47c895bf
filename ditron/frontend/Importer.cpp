//===- Importer.cpp - The entry function ------------------------------------------------------------------------------===//
//
// Builds the kernel's func.func, binds its parameters to arguments or compile-time values, and runs its body.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Importer.h"

#include "ditron/frontend/Descriptors.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <fmt/format.h>

namespace ditron::frontend {

LangValue Importer::argumentValue(const ArgumentSpec &spec, const std::string &name,
                                  llvm::function_ref<LangValue(const RunTimeParameter &)> take) {
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

std::shared_ptr<const ClassInfo> Importer::annotatedClass(const ast::Expr *annotation, const ModuleScope *scope,
                                                          SourceRange range) {
  ImportedName definition = scope && annotation ? definitionOf(*scope, annotation) : ImportedName();
  if (!definition.binding || definition.binding->kind != GlobalBinding::Kind::Class ||
      !isKernelClass(definition.binding->classDef, definition.scope))
    return nullptr;
  return classOf(definition.binding->classDef, definition.scope, range);
}

LangValue Importer::asNamedTuple(const LangValue &value, std::shared_ptr<const ClassInfo> cls, SourceRange range) {
  if (!cls || !cls->isNamedTuple)
    return value;
  if (cls->fields.size() != value.elements().size())
    return emit.fail(range, fmt::format("class '{}' has {} fields, but the argument is a tuple of {}", cls->name,
                                        cls->fields.size(), value.elements().size()));
  std::vector<LangValue> elements = value.elements();
  for (auto [element, field] : llvm::zip(elements, cls->fields))
    if (element.isTuple())
      element = asNamedTuple(element, annotatedClass(field.annotation, field.scope, range), range);
  return LangValue(TupleValue{std::make_shared<const std::vector<LangValue>>(std::move(elements)), std::move(cls)});
}

void Importer::importEntry(mlir::ModuleOp module, const ast::FunctionDef *kernel,
                           llvm::ArrayRef<const ArgumentSpec *> arguments) {
  Emitter::At at(emit, kernel->headerRange);
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
  auto function = mlir::func::FuncOp::create(emit.builder, emit.location(), kernel->name.text,
                                             emit.builder.getFunctionType(types, {}));
  function->setAttr("tile.kernel", emit.builder.getUnitAttr());
  mlir::Block *block = emit.builder.createBlock(&function.getBody(), {}, types, locations);

  frames.push_back(std::make_unique<Frame>());
  frame().function = kernel;
  frame().scope = &globals;
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
        spec ? argumentValue(*spec, param.name.text.str(), take) : evaluateAtModuleLevel(param.defaultValue, &globals);
    if (spec && spec->isTuple())
      variable.value = asNamedTuple(variable.value, annotatedClass(param.annotation, &globals, param.range), param.range);
    frame().locals[param.name.text] = std::move(variable);
  }
  runBody(kernel->body, nullptr);
  frames.pop_back();
  emit.builder.setInsertionPointToEnd(block);
  mlir::func::ReturnOp::create(emit.builder, emit.location());
}

} // namespace ditron::frontend
