//===- Value.cpp - What an expression of a kernel evaluates to -------------------------------------------------------===//
//
// Comparison, description and flattening of values.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Value.h"

#include "ditron/frontend/Aggregates.h"
#include "ditron/frontend/Builtins.h"
#include "ditron/frontend/ModuleScope.h"
#include "ditron/frontend/Vectors.h"
#include <fmt/format.h>

namespace ditron::frontend {

llvm::StringRef toString(BuiltinModule module) {
  switch (module) {
  case ModulePython: return "builtins";
  case ModuleTriton: return "triton";
  case ModuleTile: return "triton.language";
  case ModuleMath: return "triton.language.math";
  case ModuleDevice: return "libdevice";
  case ModuleExtra: return "language.extra";
  case ModuleDist: return "triton_dist.language";
  case ModuleThread: return "language_extra";
  case ModuleShmem: return "libshmem_device";
  case ModulePeer: return "triton_dist";
  case ModuleMember: return "tensor";
  case ModuleNan: return "triton.language.PropagateNan";
  case ModuleOrdering: return "triton.language.ReductionOrdering";
  case ModuleDescriptor: return "tensor descriptor";
  case ModuleVector: return "vector";
  }
  return "module";
}

LangValue LangValue::shape(llvm::ArrayRef<int64_t> dims) {
  std::vector<LangValue> elements;
  for (int64_t dim : dims)
    elements.push_back(integer(dim));
  return tuple(std::move(elements));
}

bool LangValue::isCompileTime() const {
  if (isCompound())
    return llvm::all_of(parts(), [](const LangValue &element) { return element.isCompileTime(); });
  return !isPoison() && !isTensor() && !isDescriptor();
}

const ClassInfo *LangValue::classInfo() const {
  if (const auto *tuple = getIf<TupleValue>())
    return tuple->cls.get();
  const auto *aggregate = getIf<AggregateValue>();
  return aggregate ? aggregate->cls.get() : nullptr;
}

LangValue LangValue::withParts(std::vector<LangValue> parts) const {
  auto shared = std::make_shared<const std::vector<LangValue>>(std::move(parts));
  if (const auto *aggregate = getIf<AggregateValue>())
    return LangValue(AggregateValue{aggregate->cls, std::move(shared)});
  return LangValue(TupleValue{std::move(shared), std::get<TupleValue>(storage).cls});
}

bool LangValue::identical(const LangValue &other) const {
  if (storage.index() != other.storage.index())
    return false;
  if (isPoison())
    return true;
  if (isConstant())
    return constant().identical(other.constant());
  if (isType())
    return asType() == other.asType();
  if (isTensor())
    return ir() == other.ir() && type() == other.type();
  if (isCompound())
    return classInfo() == other.classInfo() && parts().size() == other.parts().size() &&
           llvm::all_of(llvm::zip(parts(), other.parts()),
                        [](auto pair) { return std::get<0>(pair).identical(std::get<1>(pair)); });
  if (isDescriptor()) {
    if (!sameStructure(*this, other) || descriptor().ir != other.descriptor().ir)
      return false;
    llvm::SmallVector<LangValue> mine, others;
    flatten(*this, mine);
    flatten(other, others);
    return llvm::all_of(llvm::zip_equal(mine, others),
                        [](auto pair) { return std::get<0>(pair).identical(std::get<1>(pair)); });
  }
  if (const auto *function = getIf<FunctionValue>())
    return function->node == other.getIf<FunctionValue>()->node;
  if (const auto *module = getIf<ModuleValue>())
    return module->module == other.getIf<ModuleValue>()->module;
  if (const auto *builtin = getIf<BuiltinValue>())
    return builtin->builtin == other.getIf<BuiltinValue>()->builtin;
  if (const auto *method = getIf<MethodValue>())
    return method->name == other.getIf<MethodValue>()->name &&
           method->self->identical(*other.getIf<MethodValue>()->self);
  if (const auto *foreign = getIf<ForeignValue>())
    return foreign->module == other.getIf<ForeignValue>()->module && foreign->name == other.getIf<ForeignValue>()->name;
  if (const auto *file = getIf<FileValue>())
    return file->scope == other.getIf<FileValue>()->scope;
  if (const auto *context = getIf<std::shared_ptr<const ContextValue>>())
    return *context == *other.getIf<std::shared_ptr<const ContextValue>>();
  if (const auto *cls = getIf<ClassValue>())
    return cls->info == other.getIf<ClassValue>()->info;
  return *getIf<std::shared_ptr<const RangeValue>>() == *other.getIf<std::shared_ptr<const RangeValue>>();
}

std::string LangValue::describe() const {
  if (isPoison())
    return "an invalid value";
  if (isConstant()) {
    if (isNone())
      return "None";
    std::string text = constant().repr();
    if (text.size() > 60)
      text = text.substr(0, 57) + "...";
    return fmt::format("compile-time {} {}", constant().typeName().str(), text);
  }
  if (isType())
    return "dtype " + asType().str();
  if (isTensor())
    return (type().isBlock() ? "block " : "run-time ") + type().str();
  if (isVector(*this))
    return fmt::format("a vector of {} {}", elements().size(),
                       elements().empty() ? "elements" : elements().front().type().str());
  if (const ClassInfo *cls = classInfo())
    return fmt::format("{} '{}'", isTuple() ? "named tuple" : "aggregate", cls->name);
  if (isTuple())
    return fmt::format("a tuple of {}", elements().size());
  if (isDescriptor())
    return "tensor descriptor " + descriptor().tile.str();
  if (const auto *function = getIf<FunctionValue>())
    return fmt::format("function '{}'", function->node->name.text.str());
  if (const auto *module = getIf<ModuleValue>())
    return fmt::format("module '{}'", toString(module->module).str());
  if (const auto *builtin = getIf<BuiltinValue>())
    return fmt::format("function '{}'", qualifiedName(*builtin->builtin));
  if (const auto *method = getIf<MethodValue>())
    return fmt::format("member function '{}'", method->name.str());
  if (const auto *foreign = getIf<ForeignValue>())
    return foreign->name.empty() ? fmt::format("module '{}'", foreign->module)
                                 : fmt::format("'{}' of module '{}'", foreign->name, foreign->module);
  if (const auto *file = getIf<FileValue>())
    return fmt::format("module '{}'", file->scope->origin().path);
  if (const auto *context = getIf<std::shared_ptr<const ContextValue>>())
    return fmt::format("the context {}", (*context)->name);
  if (const auto *cls = getIf<ClassValue>())
    return fmt::format("class '{}'", cls->info->name);
  return "a range";
}

std::string LangValue::display() const {
  if (isConstant())
    return constant().str();
  if (isType())
    return asType().str();
  if (isTensor())
    return type().str();
  if (isCompound()) {
    const ClassInfo *cls = classInfo();
    std::string text;
    for (auto [index, element] : llvm::enumerate(parts())) {
      text += index ? ", " : "";
      text += cls ? cls->fields[index].name + "=" : "";
      text += element.isConstant() ? element.constant().repr() : element.display();
    }
    if (cls)
      return fmt::format("{}({})", cls->name, text);
    return fmt::format("({}{})", text, elements().size() == 1 ? "," : "");
  }
  return describe();
}

void flatten(const LangValue &value, llvm::SmallVectorImpl<LangValue> &leaves) {
  if (value.isDescriptor()) {
    const DescriptorValue &descriptor = value.descriptor();
    leaves.push_back(descriptor.base);
    leaves.append(descriptor.sizes.begin(), descriptor.sizes.end());
    leaves.append(descriptor.strides.begin(), descriptor.strides.end());
    return;
  }
  if (!value.isCompound()) {
    leaves.push_back(value);
    return;
  }
  for (const LangValue &element : value.parts())
    flatten(element, leaves);
}

/// A descriptor of other parts; the same one if the parts are the same.
static LangValue descriptorOf(const LangValue &like, llvm::ArrayRef<LangValue> parts) {
  llvm::SmallVector<LangValue> before;
  flatten(like, before);
  if (llvm::all_of(llvm::zip_equal(before, parts),
                   [](auto pair) { return std::get<0>(pair).identical(std::get<1>(pair)); }))
    return like;
  // One part that was reported spoils all.
  if (llvm::any_of(parts, [](const LangValue &part) { return part.isPoison(); }))
    return LangValue::poison();
  DescriptorValue result = like.descriptor();
  result.ir = nullptr;
  result.base = parts.front();
  parts = parts.drop_front();
  result.sizes.assign(parts.begin(), parts.begin() + result.sizes.size());
  result.strides.assign(parts.begin() + result.sizes.size(), parts.end());
  return LangValue(std::make_shared<const DescriptorValue>(std::move(result)));
}

LangValue unflatten(const LangValue &like, llvm::ArrayRef<LangValue> &leaves) {
  if (like.isDescriptor()) {
    const size_t count = 1 + like.descriptor().sizes.size() + like.descriptor().strides.size();
    LangValue result = descriptorOf(like, leaves.take_front(count));
    leaves = leaves.drop_front(count);
    return result;
  }
  if (!like.isCompound()) {
    LangValue leaf = leaves.front();
    leaves = leaves.drop_front();
    return leaf;
  }
  std::vector<LangValue> elements;
  for (const LangValue &element : like.parts())
    elements.push_back(unflatten(element, leaves));
  return like.withParts(std::move(elements));
}

LangValue withoutDescriptorIr(const LangValue &value) {
  if (value.isDescriptor()) {
    DescriptorValue result = value.descriptor();
    result.ir = nullptr;
    return LangValue(std::make_shared<const DescriptorValue>(std::move(result)));
  }
  if (!value.isCompound())
    return value;
  std::vector<LangValue> elements;
  for (const LangValue &element : value.parts())
    elements.push_back(withoutDescriptorIr(element));
  return value.withParts(std::move(elements));
}

bool sameStructure(const LangValue &a, const LangValue &b) {
  if (a.isDescriptor() || b.isDescriptor())
    return a.isDescriptor() && b.isDescriptor() && a.descriptor().tile == b.descriptor().tile &&
           a.descriptor().fillsNan == b.descriptor().fillsNan;
  if (a.isTuple() != b.isTuple() || a.isAggregate() != b.isAggregate())
    return false;
  if (!a.isCompound())
    return true;
  // The type of an aggregate includes its compile-time fields.
  if (a.isAggregate() && a.classInfo() == b.classInfo())
    for (auto [x, y] : llvm::zip_equal(a.parts(), b.parts()))
      if (!x.isPoison() && !y.isPoison() && (x.isCompileTime() || y.isCompileTime()) && !x.identical(y))
        return false;
  return a.classInfo() == b.classInfo() && a.parts().size() == b.parts().size() &&
         llvm::all_of(llvm::zip(a.parts(), b.parts()),
                      [](auto pair) { return sameStructure(std::get<0>(pair), std::get<1>(pair)); });
}

std::pair<std::string, std::string> describeDifference(const LangValue &a, const LangValue &b) {
  if (!a.isAggregate() || !b.isAggregate() || a.classInfo() != b.classInfo())
    return {a.describe(), b.describe()};
  for (auto [field, x, y] : llvm::zip_equal(a.classInfo()->fields, a.parts(), b.parts()))
    if (!sameStructure(x, y) || ((x.isCompileTime() || y.isCompileTime()) && !x.identical(y))) {
      auto [inA, inB] = describeDifference(x, y);
      return {fmt::format("{} whose field '{}' is {}", a.describe(), field.name, inA),
              fmt::format("one whose field '{}' is {}", field.name, inB)};
    }
  return {a.describe(), b.describe()};
}

} // namespace ditron::frontend
