//===- Value.h - What an expression of a kernel evaluates to --------------------------------------------------*- C++ -*-===//
//
// The evaluator runs a kernel's source as a program whose values are either known now (numbers, strings, dtypes, tuples,
// functions, modules) or exist at run time: an SSA value with its language type. A LangValue is one of these, or poison
// after an error was reported, which every operation passes on in silence so that one mistake gives one message.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_VALUE_H
#define DITRON_FRONTEND_VALUE_H

#include "ditron/frontend/Types.h"
#include "ditron/frontend/syntax/Ast.h"
#include "ditron/frontend/syntax/Diagnostics.h"
#include "mlir/IR/Value.h"
#include <functional>
#include <memory>
#include <variant>
#include <vector>

namespace ditron::frontend {

class Evaluator;
class Iterator;
class LangValue;
class ModuleScope;
struct Builtin;
struct ClassInfo;
struct CallCache;
struct Environment;
struct Instance;
struct NativeFunction;

/// The built-in modules; library/*.pyi say what each holds.
enum BuiltinModule : unsigned {
  ModulePython = 1u << 0,      ///< The names that Python itself provides: min, len, range.
  ModuleTriton = 1u << 1,      ///< triton
  ModuleTile = 1u << 2,        ///< triton.language
  ModuleMath = 1u << 3,        ///< triton.language.math
  ModuleDevice = 1u << 4,      ///< libdevice
  ModuleExtra = 1u << 5,       ///< triton.language.extra, triton_dist.language.extra: hold only other modules
  ModuleDist = 1u << 6,        ///< triton_dist.language, ditron.language
  ModuleThread = 1u << 7,      ///< language_extra: the thread level
  ModuleShmem = 1u << 8,       ///< libshmem_device
  ModulePeer = 1u << 9,        ///< triton_dist, ditron
  ModuleMember = 1u << 10,     ///< Not a module: member functions of tensors.
  ModuleNan = 1u << 11,        ///< triton.language.PropagateNan, an enumeration
  ModuleDescriptor = 1u << 12, ///< Not a module: member functions of tensor descriptors.
  ModuleOrdering = 1u << 13,   ///< triton.language.ReductionOrdering, an enumeration
  ModuleVector = 1u << 15,     ///< Not a module: member functions of vectors.
};

/// A run-time value and its language type.
struct TensorValue {
  mlir::Value ir;
  LangType type;
};

/// A tuple or list; lists behave as tuples in kernels.
struct TupleValue {
  std::shared_ptr<const std::vector<LangValue>> elements;
  std::shared_ptr<const ClassInfo> cls; ///< The NamedTuple class; null for a plain tuple.
};

/// A class of a kernel file, not yet called.
struct ClassValue {
  std::shared_ptr<const ClassInfo> info;
};

/// An instance of an aggregate class: a value with named fields, in the order of ClassInfo::fields.
struct AggregateValue {
  std::shared_ptr<const ClassInfo> cls;
  std::shared_ptr<const std::vector<LangValue>> fields;
};

/// A function of a kernel file.
struct FunctionValue {
  const ast::FunctionDef *node = nullptr;
  bool isJit = false;                 ///< Decorated with a jit of ours; others are Python.
  const ModuleScope *scope = nullptr; ///< The file it is in.
  /// The names around it: of the function that holds it; null at the module level.
  std::shared_ptr<Environment> environment = nullptr;
  /// Python that kernels may call: decorated with constexpr_function, tl.constexpr, core.builtin or core.extern.
  bool isCompileTime = false;
  /// The default values of the parameters, evaluated once with the definition; poison for a parameter without one.
  std::shared_ptr<const std::vector<LangValue>> defaults = nullptr;
  /// What it is in its class: a method, or made by staticmethod, classmethod, property, functools.cached_property.
  enum class Binding { Method, Static, Class, Property, CachedProperty };
  Binding binding = Binding::Method;
  std::shared_ptr<const FunctionValue> setter = nullptr; ///< Of a property; may be null.
  std::shared_ptr<CallCache> cache = nullptr;            ///< Of functools.lru_cache; else null.
};

/// A lambda of a kernel file, with the names around it.
struct LambdaValue {
  const ast::Lambda *node = nullptr;
  std::shared_ptr<Environment> environment;
  std::shared_ptr<const std::vector<LangValue>> defaults = nullptr;
  std::shared_ptr<CallCache> cache = nullptr;
};

/// Puts the elements of a set into CPython's order, where that follows from the elements alone: integers that are smaller than any hash
/// table of so many lie at the places of their own numbers. Elsewhere the order depends on how the set came about.
void orderSet(std::vector<LangValue> &elements);

/// Why a value has no text that is the same in Python: a number of too many digits, or a set whose order is not known (textOfValue).
enum class TextProblem { None, Digits, SetOrder };
TextProblem textProblemOf(const LangValue &value, unsigned depth = 0);

/// The value with constexprs inside it as Python's text shows them: `[constexpr[3]]`.
LangValue withShownWrappers(const LangValue &value, unsigned depth = 0);

/// A list, set or dict of Python that runs while compiling: whoever holds it sees its changes. Kernels see the tuple of a
/// list.
struct ListValue {
  std::shared_ptr<std::vector<LangValue>> elements;
  bool isSet = false; ///< No element twice; in CPython's order where it is certain (orderSet), else as they came.
  bool isFrozen = false; ///< A frozenset.
};
struct DictValue {
  std::shared_ptr<std::vector<std::pair<LangValue, LangValue>>> items; ///< In the order of insertion.
  std::shared_ptr<const LangValue> factory = nullptr; ///< Of a defaultdict: called for a key that is missing; else null.
};

/// The keys, values or items of a dict, as it is when somebody looks.
struct ViewValue {
  enum class Kind { Keys, Values, Items };
  DictValue dict;
  Kind kind = Kind::Keys;
};

/// An object with named attributes that nobody changes: a triton.Config, torch.dtype, an argument of a launch. Attributes that
/// only the compiler reads: `__key__` is what comparisons compare instead of the object, `__repr__` and `__str__` are its texts.
struct ObjectValue {
  std::string type;
  std::vector<std::pair<std::string, LangValue>> fields;
};

/// A function of Python's own modules, or one of the few of other packages that are known (natives/Natives.h).
struct NativeValue {
  const NativeFunction *function = nullptr;
};

/// What only the machine that runs the program knows: a call of a package that is not here, or what depends on one.
struct UnknownValue {
  SourceRange range;               ///< Of the expression that is not known.
  std::string text;                ///< The expression, as --define takes it.
  std::vector<Diagnostic> errors;  ///< Why its evaluation failed; empty if it is merely not known.
  bool isMissing = false;          ///< An import of a name that the module does not have.
};

/// One of the built-in modules.
struct ModuleValue {
  BuiltinModule module = ModuleTile;
};

/// A function of the language, not yet called.
struct BuiltinValue {
  const Builtin *builtin = nullptr;
};

/// A member function with the object it belongs to.
struct MethodValue {
  const Builtin *builtin = nullptr; ///< Null: a predicate or method of a dtype, int or other compile-time value.
  llvm::StringRef name;
  std::shared_ptr<const LangValue> self;
  FunctionValue function; ///< Of a kernel file's class; its node is null for a method of the language.
  const NativeFunction *native = nullptr; ///< Of a compile-time value: "abc".upper.
};

/// What a `with` statement enters: a function of the language gives one. All callbacks but `enter` may be missing.
struct ContextValue {
  std::string name; ///< For messages.
  /// Called before the body; gives the value after `as`. Poison: an error was reported and the body is left out.
  std::function<LangValue(Evaluator &, SourceRange)> enter;
  /// Called after the body.
  std::function<void(Evaluator &, SourceRange)> exit;
  /// `object[indices]` inside of the body where plain subscripts have no meaning; nullopt: not of this context's making.
  std::function<std::optional<LangValue>(Evaluator &, const LangValue &object, llvm::ArrayRef<LangValue> indices,
                                         SourceRange)>
      loadElement;
  /// `object[indices] = value` inside of the body; gives what the variable `object` becomes, None to leave it as it is.
  std::function<std::optional<LangValue>(Evaluator &, const LangValue &object, llvm::ArrayRef<LangValue> indices,
                                         const LangValue &value, SourceRange)>
      storeElement;
};

/// The result of range(), tl.range() or tl.static_range().
struct RangeValue;

/// The result of tl.make_tensor_descriptor(), or a parameter that the host describes.
struct DescriptorValue;

/// Anything that comes from outside of the known modules: torch, os, or a file of the user's that was not looked for yet.
struct ForeignValue {
  std::string module;                 ///< As it was imported, with the dots of a relative import.
  std::string name;                   ///< Within the module; empty for the module itself.
  const ModuleScope *scope = nullptr; ///< The file that imports it.
};

/// Another file of the user's, or a package.
struct FileValue {
  const ModuleScope *scope = nullptr;
};

/// One value of the evaluator.
class LangValue {
public:
  struct Poison {};

  LangValue() = default;
  // Copying and destroying is for each of 25 alternatives another thing; no caller is the faster for having that inline.
  LangValue(const LangValue &other);
  LangValue(LangValue &&other) noexcept;
  LangValue &operator=(const LangValue &other);
  LangValue &operator=(LangValue &&other) noexcept;
  ~LangValue();
  LangValue(ConstValue value) : storage(std::move(value)) {}
  LangValue(LangType type) : storage(std::move(type)) {}
  LangValue(TensorValue value) : storage(std::move(value)) {}
  LangValue(TupleValue value) : storage(std::move(value)) {}
  LangValue(FunctionValue value) : storage(value) {}
  LangValue(ModuleValue value) : storage(value) {}
  LangValue(BuiltinValue value) : storage(value) {}
  LangValue(MethodValue value) : storage(std::move(value)) {}
  LangValue(std::shared_ptr<const RangeValue> value) : storage(std::move(value)) {}
  LangValue(std::shared_ptr<const DescriptorValue> value) : storage(std::move(value)) {}
  LangValue(std::shared_ptr<const ContextValue> value) : storage(std::move(value)) {}
  LangValue(ClassValue value) : storage(std::move(value)) {}
  LangValue(AggregateValue value) : storage(std::move(value)) {}
  LangValue(ForeignValue value) : storage(std::move(value)) {}
  LangValue(FileValue value) : storage(value) {}
  LangValue(LambdaValue value) : storage(std::move(value)) {}
  LangValue(ListValue value) : storage(std::move(value)) {}
  LangValue(DictValue value) : storage(std::move(value)) {}
  LangValue(NativeValue value) : storage(value) {}
  LangValue(std::shared_ptr<const ObjectValue> value) : storage(std::move(value)) {}
  LangValue(std::shared_ptr<const UnknownValue> value) : storage(std::move(value)) {}
  LangValue(std::shared_ptr<Iterator> value) : storage(std::move(value)) {}
  LangValue(std::shared_ptr<Instance> value) : storage(std::move(value)) {}
  LangValue(ViewValue value) : storage(std::move(value)) {}

  static LangValue poison() { return LangValue(); }
  static LangValue none() { return LangValue(ConstValue::none()); }
  static LangValue boolean(bool value) { return LangValue(ConstValue::boolean(value)); }
  static LangValue integer(int64_t value) { return LangValue(ConstValue::integer(value)); }
  static LangValue string(std::string text) { return LangValue(ConstValue::string(std::move(text))); }
  static LangValue tensor(mlir::Value ir, LangType type) { return LangValue(TensorValue{ir, std::move(type)}); }
  static LangValue floating(double value) { return LangValue(ConstValue::floating(value)); }
  static LangValue tuple(std::vector<LangValue> elements) {
    return LangValue(TupleValue{std::make_shared<const std::vector<LangValue>>(std::move(elements)), nullptr});
  }
  static LangValue list(std::vector<LangValue> elements) {
    return LangValue(ListValue{std::make_shared<std::vector<LangValue>>(std::move(elements))});
  }
  /// The elements must differ.
  static LangValue set(std::vector<LangValue> elements, bool isFrozen = false) {
    orderSet(elements);
    return LangValue(ListValue{std::make_shared<std::vector<LangValue>>(std::move(elements)), true, isFrozen});
  }
  static LangValue dict(std::vector<std::pair<LangValue, LangValue>> items = {}) {
    return LangValue(DictValue{std::make_shared<std::vector<std::pair<LangValue, LangValue>>>(std::move(items))});
  }
  static LangValue object(std::string type, std::vector<std::pair<std::string, LangValue>> fields) {
    return LangValue(std::make_shared<const ObjectValue>(ObjectValue{std::move(type), std::move(fields)}));
  }
  /// Other elements in a tuple, NamedTuple or aggregate of the same class.
  LangValue withParts(std::vector<LangValue> parts) const;
  /// A tuple of compile-time ints.
  static LangValue shape(llvm::ArrayRef<int64_t> dims);

  bool isPoison() const { return is<Poison>(); }
  bool isTensor() const { return is<TensorValue>(); }
  bool isConstant() const { return is<ConstValue>(); }
  bool isTuple() const { return is<TupleValue>(); }
  bool isList() const { return is<ListValue>() && !std::get<ListValue>(storage).isSet; }
  bool isSet() const { return is<ListValue>() && std::get<ListValue>(storage).isSet; }
  bool isDict() const { return is<DictValue>(); }
  bool isUnknown() const { return is<std::shared_ptr<const UnknownValue>>(); }
  bool isType() const { return is<LangType>(); }
  bool isAggregate() const { return is<AggregateValue>(); }
  /// A tuple or aggregate: parts() holds its elements or fields.
  bool isCompound() const { return isTuple() || isAggregate(); }
  bool isDescriptor() const { return is<std::shared_ptr<const DescriptorValue>>(); }
  bool isNone() const { return isConstant() && constant().isNone(); }
  bool isString() const { return isConstant() && constant().isStr(); }
  /// A compile-time bool, int or float: a literal in the language's sense.
  bool isLiteral() const { return isConstant() && constant().isNumber(); }
  template <typename T> bool is() const { return std::holds_alternative<T>(storage); }
  template <typename T> const T *getIf() const { return std::get_if<T>(&storage); }

  /// The alternatives; the kind must match.
  const ConstValue &constant() const { return std::get<ConstValue>(storage); }
  const TensorValue &tensor() const { return std::get<TensorValue>(storage); }
  /// The language type of a run-time value.
  const LangType &type() const { return tensor().type; }
  mlir::Value ir() const { return tensor().ir; }
  const DescriptorValue &descriptor() const { return *std::get<std::shared_ptr<const DescriptorValue>>(storage); }
  const LangType &asType() const { return std::get<LangType>(storage); }
  const std::vector<LangValue> &elements() const { return *std::get<TupleValue>(storage).elements; }
  /// The elements of a tuple, list or set; null for anything else.
  const std::vector<LangValue> *sequence() const;
  /// The items of a dict, which may be changed. The kind must match.
  std::vector<std::pair<LangValue, LangValue>> &items() const { return *std::get<DictValue>(storage).items; }
  const ObjectValue *object() const {
    const auto *object = getIf<std::shared_ptr<const ObjectValue>>();
    return object ? object->get() : nullptr;
  }
  /// An iterator of Python, and an object of a class of Python; null for anything else.
  Iterator *iterator() const {
    const auto *iterator = getIf<std::shared_ptr<Iterator>>();
    return iterator ? iterator->get() : nullptr;
  }
  Instance *instance() const {
    const auto *instance = getIf<std::shared_ptr<Instance>>();
    return instance ? instance->get() : nullptr;
  }
  const UnknownValue &unknown() const { return *std::get<std::shared_ptr<const UnknownValue>>(storage); }
  const std::vector<LangValue> &parts() const {
    return isTuple() ? elements() : *std::get<AggregateValue>(storage).fields;
  }
  /// The class of an aggregate or NamedTuple; null for anything else.
  const ClassInfo *classInfo() const;

  /// True if nothing of the value exists only at run time (no tensor in it, not poison).
  bool isCompileTime() const;
  /// The same value: equal constants, the same SSA value with the same type, element by element for tuples.
  bool identical(const LangValue &other) const;
  /// What messages call the value: "run-time int32", "compile-time int 3", "dtype fp16", "None", "tuple of 2".
  std::string describe() const;
  /// Python's str() of a compile-time value, for f-strings and static_print; tensors print as their type.
  std::string display(unsigned depth = 0) const;
  /// Python's repr().
  std::string repr(unsigned depth = 0) const;
  /// Python's ==, of compile-time values; values of different kinds differ.
  bool equals(const LangValue &other, unsigned depth = 0) const;
  /// Python's name of the type: "int", "list", "dtype".
  std::string typeName() const;

  /// Lists may hold each other in circles: comparison and printing go this deep, and what is nested deeper is no value of a
  /// kernel.
  static constexpr unsigned maxNesting = 64;

  /// Made by tl.constexpr, or computed of what was: a kernel may read it through a global variable.
  bool isWrapped = false;

private:
  std::variant<Poison, ConstValue, LangType, TensorValue, TupleValue, FunctionValue, ModuleValue, BuiltinValue,
               MethodValue, std::shared_ptr<const RangeValue>, std::shared_ptr<const DescriptorValue>, ForeignValue,
               FileValue, std::shared_ptr<const ContextValue>, ClassValue, AggregateValue, LambdaValue, ListValue, DictValue,
               NativeValue, std::shared_ptr<const ObjectValue>, std::shared_ptr<const UnknownValue>,
               std::shared_ptr<Iterator>, std::shared_ptr<Instance>, ViewValue>
      storage;
};

struct RangeValue {
  enum class Kind { Range, TileRange, StaticRange };
  Kind kind = Kind::Range;
  LangValue start, stop, step;
  /// The rounds of a loop over it; nullopt if a bound is not an int of 64 bits that is known at compile time.
  std::optional<int64_t> size() const;
  SourceRange startRange, stopRange, stepRange;
  /// Loop attributes; absent when None was given.
  std::optional<int64_t> numStages, unrollFactor;
  bool disallowAccMultiBuffer = false;
  bool flatten = false;
  bool warpSpecialize = false;
  int64_t clusterBlocks = 1;
};

struct DescriptorValue {
  LangValue base;                 ///< A scalar pointer.
  std::vector<LangValue> sizes;   ///< Run-time integers, outermost dimension first.
  std::vector<LangValue> strides; ///< Run-time int64, without the last one, which is 1.
  LangType tile;                  ///< What a load gives.
  bool fillsNan = false;          ///< What lies outside of the tensor is NaN, else zero.
  mlir::Value ir;                 ///< Null when the parts come from a join or loop: it is made again where it is used.
};

/// What is unknown of a value: itself, or a part of a container; null if all is known.
const LangValue *unknownIn(const LangValue &value, unsigned depth = 0);

/// The value of a key; null if the dict has no such key.
LangValue *find(const DictValue &dict, const LangValue &key);
/// Sets a key, behind the others if it is new.
void setItem(const DictValue &dict, const LangValue &key, LangValue value);
/// The attribute of an object; null if it has none of that name.
const LangValue *find(const ObjectValue &object, llvm::StringRef name);

/// An attribute of a dtype; poison if it has none of that name.
LangValue typeAttribute(const LangType &type, llvm::StringRef name);

/// The dotted name of a built-in module for messages: "triton.language".
llvm::StringRef toString(BuiltinModule module);

/// Appends the tensors and compile-time values of a value, tuples, aggregates and descriptors flattened, in order.
void flatten(const LangValue &value, llvm::SmallVectorImpl<LangValue> &leaves);
/// Rebuilds a value of the same structure from leaves, which are consumed from the front.
LangValue unflatten(const LangValue &like, llvm::ArrayRef<LangValue> &leaves);
/// The value with descriptors that are made again where they are used.
LangValue withoutDescriptorIr(const LangValue &value);
/// True if two values have the same nesting of tuples, aggregates of the same classes and descriptors of the same tiles.
bool sameStructure(const LangValue &a, const LangValue &b);
/// What differs between two values of different structure, in words: both described, and the field where they differ.
std::pair<std::string, std::string> describeDifference(const LangValue &a, const LangValue &b);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_VALUE_H
