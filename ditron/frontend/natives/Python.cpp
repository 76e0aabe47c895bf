//===- Python.cpp - Functions of Python that run while compiling: Python's own -------------------------------------===//
//
// What Python provides without an import, apart from what works on sequences (Sequences.cpp). An operand that exists
// only at run time is handed on to the language's function of the same name.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"
#include "ditron/frontend/natives/Natives.h"
#include "ditron/frontend/natives/PythonNames.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/ConvertUTF.h"
#include <cmath>
#include <fmt/format.h>

namespace ditron::frontend {
namespace {

/// Calls the language's function of the same name, which takes values that exist only at run time.
LangValue callLanguage(NativeCall &call, std::vector<LangValue> args) {
  const Builtin *builtin = findBuiltin(ModulePython, call.function.name);
  return call.evaluator.call(LangValue(BuiltinValue{builtin}), std::move(args), call.keywords, call.range);
}

bool hasTensor(llvm::ArrayRef<LangValue> values) {
  return llvm::any_of(values, [](const LangValue &value) { return value.isTensor(); });
}

/// The failure of a function that takes a scalar of Python.
LangValue refuse(NativeCall &call, const LangValue &value, llvm::StringRef wanted) {
  return call.fail(fmt::format("{} takes {}, but got {}", llvm::StringRef(call.function.name).str(), wanted.str(),
                               value.describe()));
}

//===------------------------------------------------------------------------------------------------------------------===//
// Numbers
//===------------------------------------------------------------------------------------------------------------------===//

LangValue intOf(NativeCall &call) {
  if (hasTensor(call.args))
    return callLanguage(call, call.args);
  const LangValue *base = call.argument(1, "base");
  if (!call.args.empty())
    if (std::optional<LangValue> result = call.evaluator.callProtocol(call.args[0], "__int__", {}, call.range))
      return *result;
  if (call.args.empty())
    return base ? call.fail("int() with a base needs a str") : LangValue::integer(0);
  if (!call.args[0].isConstant())
    return refuse(call, call.args[0], "a number or str");
  if (!base)
    return call.result(toInt(call.args[0].constant()));
  std::optional<int64_t> radix = call.integer(*base, "the base of int()");
  if (!radix)
    return LangValue::poison();
  if (!call.args[0].isString())
    return call.fail("int() with a base takes a str, but got " + call.args[0].describe());
  if (*radix < 0 || *radix == 1 || *radix > 36)
    return call.fail("the base of int() must be 0 or 2 to 36", "ValueError");
  return call.result(toInt(call.args[0].constant(), static_cast<int>(*radix)));
}

LangValue floatOf(NativeCall &call) {
  if (hasTensor(call.args))
    return callLanguage(call, call.args);
  if (call.args.empty())
    return LangValue::floating(0);
  return call.args[0].isConstant() ? call.result(toFloat(call.args[0].constant()))
                                   : refuse(call, call.args[0], "a number or str");
}

LangValue boolOf(NativeCall &call) {
  if (hasTensor(call.args))
    return callLanguage(call, call.args);
  std::optional<bool> truth =
      call.args.empty() ? std::optional(false) : call.evaluator.truthOf(call.args[0], call.range);
  return truth ? LangValue::boolean(*truth) : LangValue::poison();
}

LangValue absOf(NativeCall &call) {
  const LangValue &value = call.args[0];
  if (value.isTensor())
    return callLanguage(call, call.args);
  if (std::optional<LangValue> result = call.evaluator.callProtocol(value, "__abs__", {}, call.range))
    return *result;
  if (!value.isLiteral())
    return refuse(call, value, "a number");
  const ConstValue &number = value.constant();
  return number.isFloat() ? LangValue::floating(std::fabs(number.getFloat()))
                          : LangValue(ConstValue::integer(number.getInt().abs()));
}

/// base ** exponent % modulus of ints, without the large power.
LangValue powerModulo(NativeCall &call) {
  for (const LangValue &value : call.args)
    if (!value.isConstant() || !value.constant().isIntegral())
      return refuse(call, value, "ints when there are three");
  BigInt exponent = call.args[1].constant().getInt(), modulus = call.args[2].constant().getInt();
  if (modulus.isZero())
    return call.fail("pow() 3rd argument cannot be 0", "ValueError");
  if (exponent.isNegative())
    return call.fail("pow() with a modulus takes no negative exponent at compile time", "");
  if (modulus.bitLength() > 4096 || exponent.bitLength() > 4096)
    return call.fail("pow() with a modulus takes ints of at most 4096 bits at compile time", "");
  BigInt quotient, base, result;
  floorDivMod(call.args[0].constant().getInt(), modulus, quotient, base);
  floorDivMod(BigInt(1), modulus, quotient, result);
  for (; !exponent.isZero(); exponent = shr(exponent, BigInt(1))) {
    if (exponent.isOdd())
      floorDivMod(*mul(result, base), modulus, quotient, result);
    floorDivMod(*mul(base, base), modulus, quotient, base);
  }
  return LangValue(ConstValue::integer(result));
}

LangValue power(NativeCall &call) {
  return call.args.size() == 3 ? powerModulo(call)
                               : call.evaluator.binaryOf(BinaryOp::Pow, call.args[0], call.args[1], call.range);
}

LangValue divideWithRest(NativeCall &call) {
  LangValue quotient = call.evaluator.binaryOf(BinaryOp::FloorDiv, call.args[0], call.args[1], call.range);
  if (quotient.isPoison())
    return quotient;
  LangValue rest = call.evaluator.binaryOf(BinaryOp::Mod, call.args[0], call.args[1], call.range);
  return rest.isPoison() ? rest : LangValue::tuple({quotient, rest});
}

/// The multiple of 10**digits next to an int, ties to even; `hasFraction`: the number is a little larger in magnitude.
std::optional<BigInt> roundToPower(const BigInt &value, int64_t digits, bool hasFraction) {
  if (digits > 400 && value.bitLength() < 1024)
    return BigInt(0);
  std::optional<BigInt> unit = pow(BigInt(10), BigInt(digits));
  if (!unit)
    return std::nullopt;
  BigInt quotient, rest;
  floorDivMod(value.abs(), *unit, quotient, rest);
  std::optional<BigInt> twice = add(rest, rest);
  bool isUp = *twice > *unit || (*twice == *unit && (hasFraction || quotient.isOdd()));
  std::optional<BigInt> result = mul(isUp ? *add(quotient, BigInt(1)) : quotient, *unit);
  return result && value.isNegative() ? std::optional(-*result) : result;
}

LangValue roundFloat(NativeCall &call, double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 330)
    return LangValue::floating(value);
  if (digits < 0) {
    std::optional<BigInt> whole = BigInt::fromDouble(value);
    std::optional<BigInt> rounded = roundToPower(*whole, -digits, std::trunc(value) != value);
    std::optional<double> result = rounded ? rounded->toDouble() : std::nullopt;
    return result ? LangValue::floating(std::copysign(*result, value))
                  : call.fail("rounded value too large to represent", "OverflowError");
  }
  auto text = format(ConstValue::floating(value), fmt::format(".{}f", digits));
  return text.isOk() ? call.result(toFloat(ConstValue::string(*text)))
                     : call.fail(text.status().message(), "ValueError");
}

LangValue roundOf(NativeCall &call) {
  const LangValue &value = call.args[0];
  if (!value.isLiteral())
    return refuse(call, value, "a number");
  const LangValue *given = call.argument(1, "ndigits");
  if (!given || given->isNone()) {
    if (!value.constant().isFloat())
      return LangValue(ConstValue::integer(value.constant().getInt()));
    double number = value.constant().getFloat();
    return call.result(toInt(ConstValue::floating(std::isfinite(number) ? std::nearbyint(number) : number)));
  }
  std::optional<int64_t> digits = call.integer(*given, "the number of digits");
  if (!digits)
    return LangValue::poison();
  if (value.constant().isFloat())
    return roundFloat(call, value.constant().getFloat(), *digits);
  const BigInt number = value.constant().getInt();
  if (*digits >= 0)
    return LangValue(ConstValue::integer(number));
  std::optional<BigInt> rounded = *digits < -20000 ? BigInt(0) : roundToPower(number, -*digits, false);
  return rounded ? LangValue(ConstValue::integer(*rounded)) : call.fail("the int is too large", "OverflowError");
}

/// hex, oct, bin.
LangValue inRadix(NativeCall &call) {
  if (!call.args[0].isConstant() || !call.args[0].constant().isIntegral())
    return refuse(call, call.args[0], "an int");
  llvm::StringRef name = call.function.name;
  auto text = format(ConstValue::integer(call.args[0].constant().getInt()), name == "hex"   ? "#x"
                                                                            : name == "oct" ? "#o"
                                                                                            : "#b");
  return text.isOk() ? LangValue::string(*text) : call.fail(text.status().message(), "ValueError");
}

//===------------------------------------------------------------------------------------------------------------------===//
// Text
//===------------------------------------------------------------------------------------------------------------------===//

LangValue textOf(NativeCall &call) {
  return call.args.empty() ? LangValue::string("") : textOfValue(call.evaluator, call.args[0], false, call.range);
}
LangValue reprOf(NativeCall &call) { return textOfValue(call.evaluator, call.args[0], true, call.range); }

/// repr() with escapes for what is not ASCII.
LangValue asciiOf(NativeCall &call) {
  const LangValue shown = reprOf(call);
  if (!shown.isString())
    return shown;
  const std::string text = shown.constant().getString();
  std::string escaped;
  for (llvm::StringRef rest = text; !rest.empty();) {
    llvm::StringRef character = rest.take_front(codePointOffset(rest, 1));
    rest = rest.drop_front(character.size());
    const auto *source = reinterpret_cast<const llvm::UTF8 *>(character.data());
    llvm::UTF32 code = 0, *target = &code;
    llvm::ConvertUTF8toUTF32(&source, source + character.size(), &target, target + 1, llvm::strictConversion);
    escaped += code < 0x80    ? character.str()
               : code < 0x100 ? fmt::format("\\x{:02x}", code)
                              : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                                               : fmt::format("\\U{:08x}", code);
  }
  return LangValue::string(std::move(escaped));
}

LangValue formatOf(NativeCall &call) {
  const std::string empty;
  const std::string *spec = call.args.size() > 1 ? call.text(call.args[1], "the format") : &empty;
  if (!spec)
    return LangValue::poison();
  std::optional<std::string> text = formatValue(call.evaluator, call.args[0], *spec, call.range);
  return text ? LangValue::string(*text) : LangValue::poison();
}

LangValue codeOf(NativeCall &call) {
  const std::string *text = call.text(call.args[0], "the operand of ord()");
  if (!text)
    return LangValue::poison();
  llvm::SmallVector<llvm::UTF32> codes(text->size() + 1);
  const auto *source = reinterpret_cast<const llvm::UTF8 *>(text->data());
  llvm::UTF32 *target = codes.data();
  auto converted =
      llvm::ConvertUTF8toUTF32(&source, source + text->size(), &target, target + codes.size(), llvm::strictConversion);
  if (converted != llvm::conversionOK || target != codes.data() + 1)
    return call.fail(fmt::format("ord() expected a character, but got {}", call.args[0].describe()));
  return LangValue::integer(codes.front());
}

LangValue characterOf(NativeCall &call) {
  std::optional<int64_t> code = call.integer(call.args[0], "the operand of chr()");
  if (!code)
    return LangValue::poison();
  char bytes[UNI_MAX_UTF8_BYTES_PER_CODE_POINT];
  char *end = bytes;
  if (*code < 0 || *code >= 0x110000 || !llvm::ConvertCodePointToUTF8(static_cast<unsigned>(*code), end))
    return call.fail("chr() arg not in range(0x110000)", "ValueError");
  return LangValue::string(std::string(bytes, end));
}

//===------------------------------------------------------------------------------------------------------------------===//
// Types and attributes
//===------------------------------------------------------------------------------------------------------------------===//

LangValue typeOf(NativeCall &call) {
  const LangValue &value = call.args[0];
  if (const auto *tuple = value.getIf<TupleValue>(); tuple && tuple->cls)
    return LangValue(ClassValue{tuple->cls});
  if (const auto *aggregate = value.getIf<AggregateValue>())
    return LangValue(ClassValue{aggregate->cls});
  if (const Instance *instance = value.instance())
    return LangValue(ClassValue{instance->cls});
  std::string name = value.typeName();
  const NativeFunction *function = findNative(name);
  if (function && function->isClass)
    return LangValue(NativeValue{function});
  return LangValue::object("type", {{"__name__", LangValue::string(name)},
                                    {"__repr__", LangValue::string(fmt::format("<class '{}'>", name))},
                                    {"__key__", LangValue::string(name)}});
}

LangValue isInstance(NativeCall &call) { return isInstanceOf(call.evaluator, call.args[0], call.args[1], call.range); }

/// issubclass() of the classes of kernel files and of exceptions.
LangValue isSubclass(NativeCall &call) {
  std::vector<LangValue> bases =
      call.args[1].isTuple() ? call.args[1].elements() : std::vector<LangValue>{call.args[1]};
  if (call.args[0].isUnknown())
    return call.args[0];
  if (const LangValue *unknown = firstUnknown(bases))
    return *unknown;
  const auto *declared = call.args[0].getIf<ClassValue>();
  const auto *native = call.args[0].getIf<NativeValue>();
  if (!declared && !(native && native->function->isClass))
    return refuse(call, call.args[0], "a class");
  for (const LangValue &base : bases) {
    const auto *baseClass = base.getIf<ClassValue>();
    const auto *baseNative = base.getIf<NativeValue>();
    if (declared && baseClass && declared->info->isOrInherits(baseClass->info.get()))
      return LangValue::boolean(true);
    if (declared && baseNative &&
        (baseNative->function->name == "object" || isExceptionOf(declared->info->nativeBase, baseNative->function->shortName()) ||
         declared->info->nativeBase == baseNative->function->shortName()))
      return LangValue::boolean(true);
    if (native && baseNative &&
        (native->function == baseNative->function || baseNative->function->shortName() == "object" ||
         (native->function->shortName() == "bool" && baseNative->function->shortName() == "int") ||
         isExceptionOf(native->function->shortName(), baseNative->function->shortName())))
      return LangValue::boolean(true);
  }
  return LangValue::boolean(false);
}

/// The attribute that a call names; poison if there is none, which is reported only if `reports`. Unknown for what a package
/// that is not here may have or not.
LangValue namedAttribute(NativeCall &call, bool reports) {
  for (const LangValue &value : llvm::ArrayRef(call.args).take_front(2))
    if (value.isUnknown())
      return value;
  const std::string *name = call.text(call.args[1], "the name of an attribute");
  if (!name)
    return LangValue::poison();
  LangValue value = call.evaluator.attributeOf(call.args[0], call.evaluator.intern(*name), call.range, reports);
  const auto *foreign = value.getIf<ForeignValue>(), *object = call.args[0].getIf<ForeignValue>();
  if (!foreign || !object || reports || isNativeModule(dottedName(*foreign)))
    return value;
  std::string rest = call.args[1].repr() + (call.args.size() > 2 ? ", " + call.args[2].repr() : "");
  return call.evaluator.unknown(
      call.range, fmt::format("{}({}, {})", llvm::StringRef(call.function.name).str(), dottedName(*object), rest));
}

/// Whether Python's own object has the attribute and only this program does not know it.
bool isMissingHere(NativeCall &call, const LangValue &found) {
  const LangValue &object = call.args[0];
  const bool isOfPython = object.isConstant() || object.sequence() || object.isDict();
  return found.isPoison() && isOfPython && call.args[1].isString() && isAttributeOfPython(call.args[1].display());
}

LangValue getAttribute(NativeCall &call) {
  LangValue value = namedAttribute(call, call.args.size() == 2);
  if (isMissingHere(call, value) && call.args.size() == 3)
    return call.unknown();
  return value.isPoison() && call.args.size() == 3 ? call.args[2] : value;
}

LangValue hasAttribute(NativeCall &call) {
  LangValue value = namedAttribute(call, false);
  return value.isUnknown() || isMissingHere(call, value) ? call.unknown() : LangValue::boolean(!value.isPoison());
}

LangValue setAttributeOf(NativeCall &call) {
  if (call.args[0].isUnknown() || call.args[1].isUnknown())
    return call.args[0].isUnknown() ? call.args[0] : call.args[1];
  const std::string *name = call.text(call.args[1], "the name of an attribute");
  return name ? call.evaluator.setAttribute(call.args[0], *name, call.args[2], call.range) : LangValue::poison();
}

LangValue deleteAttributeOf(NativeCall &call) {
  const std::string *name = call.text(call.args[1], "the name of an attribute");
  return name ? call.evaluator.deleteAttribute(call.args[0], *name, call.range) : LangValue::poison();
}

/// vars(object)
LangValue variablesOf(NativeCall &call) {
  return call.args[0].instance() ? call.evaluator.attributeOf(call.args[0], "__dict__", call.range) : call.unknown();
}

LangValue callableOf(NativeCall &call) { return LangValue::boolean(isCallable(call.args[0])); }
LangValue printNothing(NativeCall &) { return LangValue::none(); }
LangValue plainObject(NativeCall &) { return LangValue::object("object", {}); }

} // namespace

//===------------------------------------------------------------------------------------------------------------------===//
// isinstance
//===------------------------------------------------------------------------------------------------------------------===//

LangValue makeException(NativeCall &call) {
  std::string text;
  if (call.args.size() == 1)
    text = call.function.shortName() == "KeyError" ? call.args[0].repr() : call.args[0].display();
  else if (call.args.size() > 1)
    text = LangValue::tuple(call.args).repr();
  std::string name = call.function.shortName().str();
  std::string shown = fmt::format("{}({})", name,
                                  call.args.size() == 1 ? call.args[0].repr()
                                  : text.empty()        ? ""
                                                        : text.substr(1, text.size() - 2));
  return LangValue::object(name, {{"args", LangValue::tuple(call.args)},
                                  {"__str__", LangValue::string(std::move(text))},
                                  {"__repr__", LangValue::string(std::move(shown))}});
}

bool isCallable(const LangValue &value) {
  return value.is<FunctionValue>() || value.is<LambdaValue>() || value.is<NativeValue>() || value.is<MethodValue>() ||
         value.is<BuiltinValue>() || value.is<ClassValue>() || (value.instance() && value.instance()->cls->member("__call__")) || (value.object() && findNativeMethod(value, "__call__"));
}

/// isinstance() of a class of Python's, torch's or another package's that the table has.
static std::optional<bool> isOfNativeClass(const LangValue &value, const NativeFunction &cls) {
  llvm::StringRef name = cls.name;
  std::string type = value.typeName();
  if (name == "object")
    return true;
  if (const Instance *instance = value.instance()) {
    llvm::StringRef base = instance->cls->nativeBase;
    return !base.empty() && (base == cls.shortName() || isExceptionOf(base, cls.shortName()));
  }
  if (value.isWrapped) // an object of the class tl.constexpr, whatever it holds
    return false;
  if (name == "int" || name == "numbers.Integral")
    return value.isConstant() && value.constant().isIntegral();
  if (name == "numbers.Number" || name == "numbers.Real")
    return value.isLiteral();
  if (name == "tuple")
    return value.isTuple();
  if (name == "dict")
    return value.isDict();
  if (name == "frozenset" || name == "set")
    return value.isSet() && value.getIf<ListValue>()->isFrozen == (name == "frozenset");
  if (name == "type")
    return value.is<ClassValue>() || type == "type";
  if (!cls.isClass)
    return std::nullopt;
  return type == name || type == cls.shortName() || (value.object() && isExceptionOf(type, cls.shortName()));
}

/// isinstance() of a class that the language has.
static std::optional<bool> isOfBuiltinClass(const LangValue &value, llvm::StringRef name) {
  if (name == "tensor")
    return value.isTensor();
  if (name == "tensor_descriptor")
    return value.isDescriptor();
  if (name == "dtype" || name == "pointer_type" || name == "block_type")
    return value.isType() &&
           (name == "dtype" || (name == "block_type" ? value.asType().isBlock() : value.asType().isPointer()));
  if (name == "constexpr_type")
    return value.classInfo() == constexprTypeClass().get();
  if (name == "constexpr") // its value stands for itself, except where the program has wrapped it
    return value.isWrapped;
  const NativeFunction *native = findNative(name);
  return native ? isOfNativeClass(value, *native) : std::nullopt;
}

/// isinstance() of what has no class of its own here: typing.Sequence, collections.abc.Callable.
static std::optional<bool> isOfAbstractClass(const LangValue &value, llvm::StringRef name) {
  const bool isText = value.isString();
  if (name == "Callable")
    return isCallable(value);
  if (name == "Mapping" || name == "MutableMapping" || name == "Dict")
    return value.isDict();
  if (name == "List" || name == "MutableSequence")
    return value.isList();
  if (name == "Tuple")
    return value.isTuple();
  if (name == "Sequence")
    return isText || value.isTuple() || value.isList() || value.is<std::shared_ptr<const RangeValue>>();
  if (name == "Iterable" || name == "Collection")
    return isText || value.sequence() || value.isDict() || value.is<std::shared_ptr<const RangeValue>>();
  return std::nullopt;
}

LangValue isInstanceOf(Evaluator &evaluator, const LangValue &value, const LangValue &cls, SourceRange range) {
  if (value.isUnknown() || cls.isUnknown())
    return value.isUnknown() ? value : cls;
  if (cls.isTuple() && !cls.classInfo()) {
    for (const LangValue &each : cls.elements()) {
      LangValue result = isInstanceOf(evaluator, value, each, range);
      if (!result.isConstant() || result.constant().isTrue())
        return result;
    }
    return LangValue::boolean(false);
  }
  std::optional<bool> result;
  if (const auto *declared = cls.getIf<ClassValue>())
    result = value.classInfo() && value.classInfo()->isOrInherits(declared->info.get());
  else if (const auto *native = cls.getIf<NativeValue>())
    result = isOfNativeClass(value, *native->function);
  else if (const auto *builtin = cls.getIf<BuiltinValue>())
    result = isOfBuiltinClass(value, builtin->builtin->name);
  else if (cls.isNone())
    result = value.isNone();
  else if (const ObjectValue *object = cls.object())
    if (const LangValue *name = find(*object, "__name__"))
      result = object->type == "type" ? value.typeName() == name->display() : isOfAbstractClass(value, name->display());
  if (result)
    return LangValue::boolean(*result);
  if (cls.is<ForeignValue>())
    return evaluator.unknown(range, fmt::format("isinstance({}, {})", value.repr(), cls.describe()));
  return evaluator.fail(range, fmt::format("isinstance does not know {} as a class", cls.describe()));
}

//===------------------------------------------------------------------------------------------------------------------===//
// Rows
//===------------------------------------------------------------------------------------------------------------------===//

llvm::ArrayRef<NativeFunction> nativePythonFunctions() {
  constexpr unsigned any = NativeFunction::any;
  static constexpr NativeFunction rows[] = {
      {"abs", 1, 1, absOf},
      {"ascii", 1, 1, asciiOf},
      {"bin", 1, 1, inRadix},
      {"bool", 0, 1, boolOf, "", false, true},
      {"callable", 1, 1, callableOf},
      {"chr", 1, 1, characterOf},
      {"divmod", 2, 2, divideWithRest},
      {"float", 0, 1, floatOf, "", false, true},
      {"format", 1, 2, formatOf},
      {"getattr", 2, 3, getAttribute, "", true},
      {"hasattr", 2, 2, hasAttribute, "", true},
      {"hex", 1, 1, inRadix},
      {"int", 0, 2, intOf, "base", false, true},
      {"isinstance", 2, 2, isInstance, "", true},
      {"issubclass", 2, 2, isSubclass, "", true},
      {"object", 0, 0, plainObject, "", false, true},
      {"oct", 1, 1, inRadix},
      {"ord", 1, 1, codeOf},
      {"pow", 2, 3, power},
      {"print", 0, any, printNothing, "sep end file flush", true},
      {"repr", 1, 1, reprOf},
      {"round", 1, 2, roundOf, "ndigits"},
      {"delattr", 2, 2, deleteAttributeOf},
      {"setattr", 3, 3, setAttributeOf, "", true},
      {"vars", 1, 1, variablesOf},
      {"str", 0, 1, textOf, "", false, true},
      {"type", 1, 1, typeOf, "", false, true},
      {"ArithmeticError", 0, any, makeException, "", true, true},
      {"AssertionError", 0, any, makeException, "", true, true},
      {"AttributeError", 0, any, makeException, "name obj", true, true},
      {"BaseException", 0, any, makeException, "", true, true},
      {"DeprecationWarning", 0, any, makeException, "", true, true},
      {"EOFError", 0, any, makeException, "", true, true},
      {"Exception", 0, any, makeException, "", true, true},
      {"FileNotFoundError", 0, any, makeException, "", true, true},
      {"FutureWarning", 0, any, makeException, "", true, true},
      {"ImportError", 0, any, makeException, "name path", true, true},
      {"IndexError", 0, any, makeException, "", true, true},
      {"KeyError", 0, any, makeException, "", true, true},
      {"LookupError", 0, any, makeException, "", true, true},
      {"MemoryError", 0, any, makeException, "", true, true},
      {"ModuleNotFoundError", 0, any, makeException, "name path", true, true},
      {"NameError", 0, any, makeException, "", true, true},
      {"NotImplementedError", 0, any, makeException, "", true, true},
      {"OSError", 0, any, makeException, "", true, true},
      {"OverflowError", 0, any, makeException, "", true, true},
      {"RuntimeError", 0, any, makeException, "", true, true},
      {"RuntimeWarning", 0, any, makeException, "", true, true},
      {"StopIteration", 0, any, makeException, "", true, true},
      {"TypeError", 0, any, makeException, "", true, true},
      {"UserWarning", 0, any, makeException, "", true, true},
      {"ValueError", 0, any, makeException, "", true, true},
      {"Warning", 0, any, makeException, "", true, true},
      {"FloatingPointError", 0, any, makeException, "", true, true},
      {"GeneratorExit", 0, any, makeException, "", true, true},
      {"ImportWarning", 0, any, makeException, "", true, true},
      {"KeyboardInterrupt", 0, any, makeException, "", true, true},
      {"PendingDeprecationWarning", 0, any, makeException, "", true, true},
      {"PermissionError", 0, any, makeException, "", true, true},
      {"RecursionError", 0, any, makeException, "", true, true},
      {"SyntaxError", 0, any, makeException, "", true, true},
      {"SystemExit", 0, any, makeException, "", true, true},
      {"TimeoutError", 0, any, makeException, "", true, true},
      {"UnboundLocalError", 0, any, makeException, "", true, true},
      {"UnicodeError", 0, any, makeException, "", true, true},
      {"EnvironmentError", 0, any, makeException, "", true, true},
      {"IOError", 0, any, makeException, "", true, true},
      {"ZeroDivisionError", 0, any, makeException, "", true, true},
  };
  return rows;
}

} // namespace ditron::frontend
