//===- Attributes.cpp - value.name ---------------------------------------------------------------------------------------===//
//
// Attributes of tensors, dtypes, modules and compile-time numbers.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/builtins/BlockPointers.h"
#include "ditron/frontend/Evaluator.h"
#include "ditron/frontend/natives/PythonNames.h"
#include "ditron/frontend/Vectors.h"

#include <fmt/format.h>

namespace ditron::frontend {
std::optional<bool> typePredicate(const LangType &type, llvm::StringRef name) {
  if (name == "is_ptr")
    return type.isPointer() && !type.isBlock();
  if (name == "is_block")
    return type.isBlock();
  if (name == "is_const")
    return type.isConstPointer();
  if (name == "is_void")
    return type.isVoid();
  if (name == "is_floating")
    return type.isFloat();
  if (name == "is_standard_floating")
    return type.isFloat() && type.bitWidth() > 8;
  if (name == "is_fp8")
    return type.isFloat() && type.bitWidth() == 8;
  if (name == "is_int")
    return type.isInt();
  if (name == "is_bool")
    return type.isBool();
  if (name == "is_int_signed")
    return type.isSigned();
  if (name == "is_int_unsigned")
    return type.isUnsigned();
  if (name.consume_front("is_"))
    if (auto kind = parseScalarKind(name))
      return type.is(*kind);
  return std::nullopt;
}

namespace {

LangValue method(const LangValue &self, llvm::StringRef name, const Builtin *builtin = nullptr) {
  return LangValue(MethodValue{builtin, name, std::make_shared<const LangValue>(self), {}, nullptr});
}

} // namespace

LangValue typeAttribute(const LangType &type, llvm::StringRef name) {
  if (name == "scalar")
    return LangValue(type.element());
  if (name == "element_ty") {
    if (type.isBlock())
      return LangValue(type.element());
    return type.isPointer() ? LangValue(type.pointee()) : LangValue::poison();
  }
  if (name == "primitive_bitwidth")
    return LangValue::integer(type.bitWidth());
  if (name == "int_bitwidth" && type.isInt())
    return LangValue::integer(type.bitWidth());
  if (name == "itemsize")
    return LangValue::integer(std::max(1u, type.bitWidth() / 8));
  if (name == "name")
    return LangValue::string(type.str());
  if (name == "shape" && type.isBlock())
    return LangValue::shape(type.shape());
  if (name == "numel" && type.isBlock())
    return LangValue::integer(type.numElements());
  if (typePredicate(type, name))
    return method(LangValue(type), name);
  return LangValue::poison();
}

LangValue Evaluator::tensorAttribute(const LangValue &tensor, llvm::StringRef name) {
  const LangType &type = tensor.type();
  if (name == "dtype")
    return LangValue(type.element());
  if (name == "type")
    return LangValue(type);
  if (name == "shape")
    return LangValue::shape(type.shape());
  if (name == "numel")
    return LangValue::integer(type.numElements());
  if (const Builtin *builtin = findBuiltin(ModuleMember, name))
    return method(tensor, builtin->name, builtin);
  return LangValue::poison();
}

LangValue Evaluator::descriptorAttribute(const LangValue &value, llvm::StringRef name) {
  const DescriptorValue &descriptor = value.descriptor();
  if (name == "shape")
    return LangValue::tuple(descriptor.sizes);
  if (name == "strides") {
    std::vector<LangValue> strides = descriptor.strides;
    strides.push_back(LangValue::integer(1));
    return LangValue::tuple(std::move(strides));
  }
  if (name == "block_shape")
    return LangValue::shape(descriptor.tile.shape());
  if (name == "block_type")
    return LangValue(descriptor.tile);
  if (name == "dtype")
    return LangValue(descriptor.tile.element());
  if (const Builtin *builtin = findBuiltin(ModuleDescriptor, name))
    return method(value, builtin->name, builtin);
  return LangValue::poison();
}

LangValue Evaluator::moduleAttribute(const ModuleValue &module, llvm::StringRef name, SourceRange range, bool reports) {
  if (auto member = memberOf(module.module, name))
    return *member;
  std::string dotted = fmt::format("{}.{}", toString(module.module).str(), name.str());
  if (frame().isPython()) {
    // The host's part of triton: triton.runtime, triton.__version__.
    if (const NativeFunction *native = findNative(dotted))
      return LangValue(NativeValue{native});
    if (auto constant = nativeConstant(*this, dotted))
      return *constant;
    if (module.module == ModuleTriton && moduleExists(dotted).value_or(false))
      return LangValue(ForeignValue{dotted, "", &scope()});
  }
  if (!reports)
    return LangValue::poison();
  // The formats of other vendors' hardware.
  if (module.module == ModuleTile && (name == "float8e4b8" || name == "float8e5b16"))
    return fail(range, fmt::format("type fp8{} not supported in this architecture. The supported fp8 dtypes are ('fp8e4b15', "
                                   "'fp8e4nv', 'fp8e5')",
                                   name.drop_front(strlen("float8")).str()),
                "AttributeError");
  std::string nearest = nearestName(module.module, name);
  return fail(range,
              fmt::format("module '{}' has no '{}'{}", toString(module.module).str(), name.str(),
                          nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)),
              "AttributeError");
}

LangValue Evaluator::constantAttribute(const LangValue &value, llvm::StringRef name) {
  if (name == "value" && (!frame().isPython() || value.isWrapped || !value.isConstant())) {
    LangValue plain = value;
    plain.isWrapped = false;
    return frame().isPython() ? plain : value;
  }
  if (name == "value" && frame().isPython() && value.isConstant())
    return value;
  if (name == "type" && value.isConstant())
    return LangValue(TupleValue{std::make_shared<const std::vector<LangValue>>(1, value), constexprTypeClass()});
  if (value.isLiteral() && name == "dtype") {
    if (auto type = emit.naturalType(value.constant()))
      return LangValue(*type);
  } else if (const NativeFunction *native = findNativeMethod(value, name)) {
    return LangValue(MethodValue{nullptr, native->shortName(), std::make_shared<const LangValue>(value), {}, native});
  } else if (value.isLiteral() && findBuiltin(ModuleMember, name) && name != "T") {
    // A parameter that is specialised to a number still has the member functions of a tensor.
    const Builtin *builtin = findBuiltin(ModuleMember, name);
    return method(value, builtin->name, builtin);
  }
  return LangValue::poison();
}

LangValue Evaluator::functionAttribute(const LangValue &value, llvm::StringRef name, SourceRange range, bool reports) {
  if (const auto *native = value.getIf<NativeValue>()) {
    // `os.environ.get`, and what nobody knows of a function.
    if (auto known = nativeAttribute(*native->function, name))
      return *known;
    return frame().isPython() && reports ? unknown(range, fmt::format("{}.{}", native->function->name.str(), name.str()))
                                         : LangValue::poison();
  }
  if (!frame().isPython())
    return LangValue::poison();
  const auto *function = value.getIf<FunctionValue>();
  if (!function)
    return name == "__name__" ? LangValue::string("<lambda>") : reports ? unknown(range, fmt::format("(lambda).{}", name.str())) : LangValue::poison();
  std::string own = function->node->name.text.str();
  if (const Binding *given = function->environment ? function->environment->find(own + ".__name__") : nullptr)
    own = given->value.display(); // by functools.wraps
  if (name == "__name__")
    return LangValue::string(own);
  if (name == "__qualname__")
    return LangValue::string((function->environment ? function->environment->qualifier : "") + own);
  if (name == "cache_clear" && function->cache)
    return LangValue(MethodValue{nullptr, "cache_clear", std::make_shared<const LangValue>(value), {}, findNative("functools.cache_clear")});
  if (name == "fn" || name == "__wrapped__")
    return value;
  return reports ? unknown(range, fmt::format("{}.{}", own, name.str())) : LangValue::poison();
}

LangValue Evaluator::attributeOf(const LangValue &value, llvm::StringRef name, SourceRange range, bool reports) {
  LangValue result;
  if (value.isUnknown() || value.isPoison())
    return value;
  if (const auto *module = value.getIf<ModuleValue>())
    return moduleAttribute(*module, name, range, reports);
  if (const auto *cls = value.getIf<ClassValue>()) {
    result = classAttribute(cls->info, name);
  } else if (isVector(value)) {
    if (name == "dtype" && !value.elements().empty())
      return LangValue(value.elements().front().type());
    if (const Builtin *builtin = findBuiltin(ModuleVector, name))
      return method(value, builtin->name, builtin);
  } else if (value.instance()) {
    const size_t errorsBefore = emit.diagnosticEngine().errorCount();
    result = objectAttribute(value, name, range);
    if (!result.isPoison() && !frame().isPython())
      result = toKernel(result, range);
    if (result.isPoison() && emit.diagnosticEngine().errorCount() != errorsBefore)
      return result;
  } else if (value.classInfo()) {
    result = isBlockPointer(value) ? blockPointerAttribute(value, name) : LangValue::poison();
    if (result.isPoison())
      result = instanceAttribute(value, name);
  } else if (value.isTuple() && name != "type") {
    result = constantAttribute(value, name);
  } else if (value.isTuple()) {
    std::vector<LangValue> types;
    for (const LangValue &element : value.elements())
      types.push_back(attributeOf(element, "type", range, reports));
    return LangValue::tuple(std::move(types));
  } else if (value.isTensor() && name == "T") {
    if (value.type().rank() == 2)
      return callBuiltin(*findBuiltin(ModuleTile, "trans"), {{"", value, range, {}, false}}, range);
    return reports ? emit.fail(range, fmt::format(".T needs a block of rank 2, but got {}", value.describe())) : LangValue::poison();
  } else if (value.isTensor()) {
    result = tensorAttribute(value, name);
  } else if (value.isDescriptor()) {
    result = descriptorAttribute(value, name);
  } else if (value.isType()) {
    result = name == "value" ? value : typeAttribute(value.asType(), name);
    if (result.isPoison())
      result = constantAttribute(value, name);
  } else if (value.isConstant() || value.sequence() || value.isDict() || value.is<ViewValue>()) {
    result = constantAttribute(value, name);
  } else if (const ObjectValue *object = value.object()) {
    const LangValue *field = find(*object, name);
    result = field ? *field : constantAttribute(value, name);
  } else if (const auto *file = value.getIf<FileValue>()) {
    return fileAttribute(*file, name, range, reports);
  } else if (const auto *foreign = value.getIf<ForeignValue>()) {
    return foreignAttribute(*foreign, name, range, reports);
  } else if (value.is<NativeValue>() || value.is<FunctionValue>() || value.is<LambdaValue>()) {
    result = functionAttribute(value, name, range, reports);
  }
  if (!result.isPoison() || !reports)
    return result;
  return reportMissingAttribute(value, name, range);
}

LangValue Evaluator::reportMissingAttribute(const LangValue &value, llvm::StringRef name, SourceRange range) {
  // An exception would send a program another way than Python goes.
  if (isAttributeOfPython(name) && (!value.instance() || name.starts_with("__")))
    return fail(range, fmt::format("attribute '{}' of {} is not known at compile time", name.str(), value.describe()), "");
  return fail(range, fmt::format("{} has no attribute '{}'", value.describe(), name.str()), "AttributeError");
}

} // namespace ditron::frontend
