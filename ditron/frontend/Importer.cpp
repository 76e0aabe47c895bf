//===- Importer.cpp - The entry function ------------------------------------------------------------------------------===//
//
// Builds the kernel's func.func, binds its parameters to arguments or compile-time values, and runs its body.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Importer.h"

#include "ditron/frontend/Descriptors.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ditron::frontend {

void Importer::importEntry(mlir::ModuleOp module, const ast::FunctionDef *kernel,
                           llvm::ArrayRef<ArgumentSpec> arguments) {
  Emitter::At at(emit, kernel->headerRange);
  emit.builder.setInsertionPointToEnd(module.getBody());
  llvm::SmallVector<mlir::Type> types;
  llvm::SmallVector<mlir::Location> locations;
  for (auto [param, spec] : llvm::zip(kernel->params, arguments)) {
    for (const RunTimeParameter &each : runTimeParameters(spec, param.name.text.str())) {
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
  frame().isEntry = true;
  unsigned next = 0;
  for (auto [param, spec] : llvm::zip(kernel->params, arguments)) {
    Variable variable;
    variable.range = param.range;
    variable.isConstexpr = isConstexprParam(param);
    std::vector<LangValue> values;
    for (const RunTimeParameter &each : runTimeParameters(spec, param.name.text.str())) {
      values.push_back(LangValue::tensor(block->getArgument(next), each.type));
      if (each.divisibility > 1)
        function.setArgAttr(next, "tile.divisibility", emit.builder.getI64IntegerAttr(each.divisibility));
      ++next;
    }
    if (spec.isDescriptor) {
      DescriptorValue descriptor;
      descriptor.tile = spec.type;
      descriptor.fillsNan = spec.fillsNan;
      descriptor.base = values.front();
      descriptor.sizes.assign(values.begin() + 1, values.begin() + 1 + spec.type.rank());
      descriptor.strides.assign(values.begin() + 1 + spec.type.rank(), values.end());
      emit.builder.setInsertionPointToEnd(block);
      variable.value = emitDescriptor(emit, std::move(descriptor));
    } else if (!spec.isConstexpr()) {
      variable.value = values.front();
    } else if (const auto *type = std::get_if<LangType>(&*spec.constexprValue)) {
      variable.value = LangValue(*type);
    } else {
      variable.value = LangValue(std::get<ConstValue>(*spec.constexprValue));
    }
    frame().locals[param.name.text] = std::move(variable);
  }
  runBody(kernel->body, nullptr);
  frames.pop_back();
  emit.builder.setInsertionPointToEnd(block);
  mlir::func::ReturnOp::create(emit.builder, emit.location());
}

} // namespace ditron::frontend
