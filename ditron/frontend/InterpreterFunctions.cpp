//===- InterpreterFunctions.cpp - Python that runs while compiling: functions ---------------------------------------------===//
//
// The functions of Python, of its modules math, itertools and functools, and of triton that need no kernel.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Interpreter.h"

#include "ditron/frontend/Aggregates.h"
#include "ditron/frontend/Builtins.h"
#include "llvm/ADT/StringSet.h"

#include <cmath>
#include <fmt/format.h>
#include <numbers>
#include <numeric>

namespace ditron::frontend {
namespace {

/// Functions of one number that give a float.
double (*floatFunction(llvm::StringRef name))(double) {
  static const llvm::StringMap<double (*)(double)> functions = {
      {"log2", [](double x) { return std::log2(x); }},   {"log10", [](double x) { return std::log10(x); }},
      {"sqrt", [](double x) { return std::sqrt(x); }},   {"exp", [](double x) { return std::exp(x); }},
      {"exp2", [](double x) { return std::exp2(x); }},   {"sin", [](double x) { return std::sin(x); }},
      {"cos", [](double x) { return std::cos(x); }},     {"tan", [](double x) { return std::tan(x); }},
      {"fabs", [](double x) { return std::fabs(x); }},   {"log1p", [](double x) { return std::log1p(x); }},
      {"tanh", [](double x) { return std::tanh(x); }},   {"erf", [](double x) { return std::erf(x); }},
      {"radians", [](double x) { return x * std::numbers::pi / 180; }}};
  auto it = functions.find(name);
  return it == functions.end() ? nullptr : it->second;
}

} // namespace

bool isHostFunction(llvm::StringRef name) {
  static const llvm::StringSet<> names = {
      "abs", "all", "any", "bin", "bool", "chr", "dict", "divmod", "enumerate", "filter", "float", "getattr", "hasattr",
      "hex", "int", "isinstance", "len", "list", "map", "max", "min", "ord", "pow", "print", "range", "repr", "reversed",
      "round", "set", "sorted", "str", "sum", "tuple", "type", "zip", "frozenset", "callable", "triton.cdiv",
      "triton.next_power_of_2", "triton.Config", "math.ceil", "math.floor", "math.trunc", "math.log", "math.pow",
      "math.gcd", "math.lcm", "math.isinf", "math.isnan", "math.prod", "math.isqrt", "math.log2", "math.log10",
      "math.sqrt", "math.exp", "math.exp2", "math.sin", "math.cos", "math.tan", "math.fabs", "math.log1p", "math.tanh",
      "math.erf", "math.radians", "itertools.product", "itertools.chain", "functools.reduce"};
  return names.contains(name);
}

std::optional<double> mathConstant(llvm::StringRef name) {
  if (name == "pi")
    return std::numbers::pi;
  if (name == "e")
    return std::numbers::e;
  if (name == "tau")
    return 2 * std::numbers::pi;
  if (name == "inf")
    return INFINITY;
  if (name == "nan")
    return NAN;
  return std::nullopt;
}

HostValue Interpreter::callMath(llvm::StringRef name, const HostArguments &arguments, SourceRange range) {
  const HostSequence &args = arguments.positional;
  if (name == "prod") {
    std::optional<HostSequence> elements = args.size() == 1 ? elementsOf(args[0], range) : std::nullopt;
    if (!elements)
      return fail(range, "math.prod takes one sequence");
    HostValue product = HostValue::integer(1);
    for (const HostValue &element : *elements)
      if (!failure)
        product = binaryOf(BinaryOp::Mult, product, element, range);
    return product;
  }
  bool isGood = !args.empty() && arguments.keywords.empty() &&
                llvm::all_of(args, [](const HostValue &each) { return each.isConstant() && each.constant().isNumber(); });
  if (!isGood)
    return fail(range, fmt::format("math.{} takes numbers", name.str()));
  if (name == "gcd" || name == "lcm") {
    int64_t result = name == "gcd" ? 0 : 1;
    for (const HostValue &each : args) {
      std::optional<int64_t> number = integerOf(each, range, "an operand of math." + name.str());
      if (!number || *number == INT64_MIN)
        return fail(range, "the number is too large");
      int64_t lcm = 0;
      if (name == "lcm" && *number != 0 &&
          __builtin_mul_overflow(result / std::max<int64_t>(1, std::gcd(result, *number)), std::abs(*number), &lcm))
        return fail(range, "the number is too large");
      result = name == "gcd" ? std::gcd(result, *number) : lcm;
    }
    return HostValue::integer(result);
  }
  const ConstValue &first = args[0].constant();
  auto value = first.toDouble();
  if (!value.isOk())
    return fail(range, value.status().message());
  if (name == "ceil" || name == "floor" || name == "trunc" || name == "isqrt") {
    if (first.isIntegral() && name != "isqrt")
      return HostValue(ConstValue::integer(first.getInt()));
    double rounded = name == "ceil" ? std::ceil(*value) : name == "floor" ? std::floor(*value) : std::trunc(*value);
    if (name == "isqrt") {
      std::optional<int64_t> number = integerOf(args[0], range, "the operand of math.isqrt");
      if (!number || *number < 0 || *number > (int64_t(1) << 52))
        return fail(range, "math.isqrt takes a number of 0 to 2**52");
      rounded = std::floor(std::sqrt(*value));
    }
    auto integer = BigInt::fromDouble(rounded);
    return integer ? HostValue(ConstValue::integer(*integer)) : fail(range, "cannot convert this float to an int");
  }
  if (name == "isinf" || name == "isnan")
    return HostValue::boolean(name == "isinf" ? std::isinf(*value) : std::isnan(*value));
  if (name == "log" || name == "pow") {
    auto second = args.size() > 1 ? args[1].constant().toDouble() : Expected<double>(std::numbers::e);
    if (!second.isOk() || (name == "pow" && args.size() != 2))
      return fail(range, fmt::format("math.{} takes two numbers", name.str()));
    if (name == "pow")
      return HostValue(ConstValue::floating(std::pow(*value, *second)));
    if (*value <= 0 || *second <= 0 || *second == 1)
      return fail(range, "math domain error");
    // Without rounding twice for the plain logarithm.
    return HostValue(ConstValue::floating(args.size() > 1 ? std::log(*value) / std::log(*second) : std::log(*value)));
  }
  auto function = floatFunction(name);
  if (!function || args.size() != 1)
    return fail(range, fmt::format("math.{} takes one number", name.str()));
  if ((name.starts_with("log") && *value <= (name == "log1p" ? -1 : 0)) || (name == "sqrt" && *value < 0))
    return fail(range, "math domain error");
  return HostValue(ConstValue::floating(function(*value)));
}

HostValue Interpreter::makeConfig(const HostArguments &arguments, SourceRange range) {
  static const std::pair<const char *, HostValue> defaults[] = {
      {"kwargs", HostValue::dict({})},        {"num_warps", HostValue::integer(4)}, {"num_stages", HostValue::integer(3)},
      {"num_ctas", HostValue::integer(1)},    {"maxnreg", HostValue()},             {"pre_hook", HostValue()},
      {"ir_override", HostValue()},           {"num_consumer_groups", HostValue()}, {"num_buffers_warp_spec", HostValue()},
      {"reg_dec_producer", HostValue()},      {"reg_inc_consumer", HostValue()}};
  auto config = std::make_shared<HostObject>();
  config->type = "Config";
  for (const auto &[name, value] : defaults)
    config->fields.emplace_back(name, value);
  if (arguments.positional.size() > config->fields.size())
    return fail(range, "triton.Config has too many arguments");
  for (auto [index, value] : llvm::enumerate(arguments.positional))
    config->fields[index].second = value;
  for (const auto &[name, value] : arguments.keywords) {
    auto field = llvm::find_if(config->fields, [&](const auto &each) { return each.first == name; });
    if (field == config->fields.end())
      return fail(range, fmt::format("triton.Config has no parameter '{}'", name));
    field->second = value;
  }
  if (!config->fields[0].second.is<HostDict>())
    return fail(range, "the first argument of triton.Config is a dict of values for parameters");
  return HostValue(std::shared_ptr<const HostObject>(std::move(config)));
}

bool Interpreter::isInstance(const HostValue &value, const HostValue &cls, SourceRange range) {
  if (const HostSequence *classes = cls.sequence())
    return llvm::any_of(*classes, [&](const HostValue &each) { return isInstance(value, each, range); });
  if (const auto *native = cls.getIf<HostNative>()) {
    llvm::StringRef name = native->name;
    if (name == "int")
      return value.isIntegral();
    if (name == "bool" || name == "float" || name == "str")
      return value.isConstant() && value.constant().typeName() == name;
    if (name == "tuple")
      return value.is<HostTuple>() || (value.language() && value.language()->isTuple());
    return value.typeName() == name || (name == "triton.Config" && value.typeName() == "Config");
  }
  if (const LangValue *carried = cls.language()) {
    const LangValue *object = value.language();
    if (const auto *declared = carried->getIf<ClassValue>())
      return object && object->classInfo() && object->classInfo()->isOrInherits(declared->info.get());
    if (const auto *builtin = carried->getIf<BuiltinValue>()) {
      llvm::StringRef name = builtin->builtin->name;
      if (name == "dtype")
        return value.is<LangType>();
      if (name == "tensor")
        return object && object->isTensor();
      if (name == "tensor_descriptor")
        return object && object->isDescriptor();
      if (name == "constexpr") // arguments arrive without it
        return false;
    }
  }
  fail(range, fmt::format("isinstance does not know {} as a class", cls.repr()));
  return false;
}

std::optional<HostValue> Interpreter::callSequenceFunction(llvm::StringRef name, const HostArguments &arguments,
                                                           SourceRange range) {
  const HostSequence &args = arguments.positional;
  auto keyword = [&](llvm::StringRef wanted) -> const HostValue * {
    for (const auto &[each, value] : arguments.keywords)
      if (each == wanted)
        return &value;
    return nullptr;
  };
  auto sequence = [&](size_t index) -> std::optional<HostSequence> {
    if (index < args.size())
      return elementsOf(args[index], range);
    fail(range, fmt::format("{} needs a sequence", name.str()));
    return std::nullopt;
  };
  if (name == "list" || name == "tuple" || name == "set" || name == "frozenset") {
    std::optional<HostSequence> elements = args.empty() ? HostSequence() : sequence(0);
    if (!elements)
      return HostValue();
    if (name == "list")
      return HostValue::list(std::move(*elements));
    if (name == "tuple")
      return HostValue::tuple(std::move(*elements));
    HostSequence unique; // a set is the tuple of its elements, in the order in which they came
    for (const HostValue &element : *elements) {
      steps += unique.size();
      if (!step(range))
        return HostValue();
      if (llvm::none_of(unique, [&](const HostValue &each) { return each.equals(element); }))
        unique.push_back(element);
    }
    return HostValue::tuple(std::move(unique));
  }
  if (name == "dict") {
    HostValue result = HostValue::dict({});
    callMethod(result, "update", arguments, range);
    return result;
  }
  if (name == "range") {
    int64_t bounds[3] = {0, 0, 1};
    if (args.empty() || args.size() > 3)
      return fail(range, "range takes one to three ints");
    for (auto [index, value] : llvm::enumerate(args)) {
      std::optional<int64_t> number = integerOf(value, range, "the bound of a range");
      if (!number || std::abs(*number) > (int64_t(1) << 40))
        return failure ? HostValue() : fail(range, "the bound of a range is too large");
      bounds[args.size() == 1 ? 1 : index] = *number;
    }
    return bounds[2] == 0 ? fail(range, "the step of a range must not be zero")
                          : HostValue(HostRange{bounds[0], bounds[1], bounds[2]});
  }
  if (name == "sum") {
    std::optional<HostSequence> elements = sequence(0);
    HostValue total = args.size() > 1 ? args[1] : keyword("start") ? *keyword("start") : HostValue::integer(0);
    for (const HostValue &element : elements.value_or(HostSequence()))
      if (!failure)
        total = binaryOf(BinaryOp::Add, total, element, range);
    return total;
  }
  if (name == "all" || name == "any") {
    std::optional<HostSequence> elements = sequence(0);
    auto isTrue = [](const HostValue &value) { return value.isTrue(); };
    if (!elements)
      return HostValue();
    return HostValue::boolean(name == "all" ? llvm::all_of(*elements, isTrue) : llvm::any_of(*elements, isTrue));
  }
  if (name == "min" || name == "max") {
    std::optional<HostSequence> elements = args.size() == 1 ? sequence(0) : std::optional(args);
    if (!elements)
      return HostValue();
    if (elements->empty())
      return keyword("default") ? *keyword("default") : fail(range, fmt::format("{} of an empty sequence", name.str()));
    const HostValue *key = keyword("key");
    auto keyOf = [&](const HostValue &value) { return key && !key->isNone() ? call(*key, {{value}, {}}, range) : value; };
    HostValue best = elements->front(), bestKey = keyOf(best);
    for (const HostValue &element : llvm::drop_begin(*elements)) {
      HostValue candidate = keyOf(element);
      if (failure)
        return HostValue();
      std::optional<bool> isBetter = compareOf(name == "min" ? CompareOp::Lt : CompareOp::Gt, candidate, bestKey, range);
      if (isBetter && *isBetter) {
        best = element;
        bestKey = candidate;
      }
    }
    return best;
  }
  if (name == "sorted") {
    std::optional<HostSequence> elements = sequence(0);
    if (!elements || !sort(*elements, arguments, range))
      return HostValue();
    return HostValue::list(std::move(*elements));
  }
  if (name == "reversed") {
    std::optional<HostSequence> elements = sequence(0);
    if (!elements)
      return HostValue();
    std::reverse(elements->begin(), elements->end());
    return HostValue::list(std::move(*elements));
  }
  if (name == "enumerate") {
    std::optional<HostSequence> elements = sequence(0);
    const HostValue *given = args.size() > 1 ? &args[1] : keyword("start");
    std::optional<int64_t> start = given ? integerOf(*given, range, "the start") : std::optional<int64_t>(0);
    if (!elements || !start)
      return HostValue();
    HostSequence pairs;
    for (auto [index, element] : llvm::enumerate(*elements))
      pairs.push_back(HostValue::tuple({HostValue::integer(*start + static_cast<int64_t>(index)), element}));
    return HostValue::list(std::move(pairs));
  }
  if (name == "zip" || name == "itertools.product" || name == "itertools.chain") {
    std::vector<HostSequence> lists;
    for (size_t i = 0; i < args.size(); ++i) {
      std::optional<HostSequence> elements = sequence(i);
      if (!elements)
        return HostValue();
      lists.push_back(std::move(*elements));
    }
    HostSequence result;
    if (name == "itertools.chain") {
      for (const HostSequence &list : lists)
        llvm::append_range(result, list);
    } else if (name == "zip") {
      for (size_t i = 0; !lists.empty() && llvm::all_of(lists, [&](const auto &list) { return i < list.size(); }); ++i) {
        HostSequence row;
        for (const HostSequence &list : lists)
          row.push_back(list[i]);
        result.push_back(HostValue::tuple(std::move(row)));
      }
    } else {
      std::optional<int64_t> repeat = keyword("repeat") ? integerOf(*keyword("repeat"), range, "repeat") : std::optional<int64_t>(1);
      if (!repeat || *repeat < 0 || *repeat > 64)
        return failure ? HostValue() : fail(range, "repeat must be between 0 and 64");
      std::vector<HostSequence> once = lists;
      lists.clear();
      for (int64_t i = 0; i < *repeat; ++i)
        llvm::append_range(lists, once);
      std::vector<HostSequence> rows = {{}};
      for (const HostSequence &list : lists) {
        std::vector<HostSequence> longer;
        if (rows.size() * list.size() > maxElements || (steps += rows.size() * list.size()) > maxSteps)
          return fail(range, fmt::format("a list at compile time may have at most {} elements", maxElements));
        for (const HostSequence &row : rows)
          for (const HostValue &element : list) {
            longer.push_back(row);
            longer.back().push_back(element);
          }
        rows = std::move(longer);
      }
      for (HostSequence &row : rows)
        result.push_back(HostValue::tuple(std::move(row)));
    }
    return HostValue::list(std::move(result));
  }
  if (name == "map" || name == "filter" || name == "functools.reduce") {
    std::optional<HostSequence> elements = sequence(1);
    if (!elements)
      return HostValue();
    HostSequence result;
    if (name == "functools.reduce") {
      if (args.size() > 2)
        elements->insert(elements->begin(), args[2]);
      if (elements->empty())
        return fail(range, "functools.reduce of an empty sequence");
      HostValue total = elements->front();
      for (const HostValue &element : llvm::drop_begin(*elements))
        total = call(args[0], {{total, element}, {}}, range);
      return total;
    }
    for (const HostValue &element : *elements) {
      HostValue value = name == "filter" && args[0].isNone() ? element : call(args[0], {{element}, {}}, range);
      if (failure)
        return HostValue();
      if (name == "map")
        result.push_back(std::move(value));
      else if (value.isTrue())
        result.push_back(element);
    }
    return HostValue::list(std::move(result));
  }
  return std::nullopt;
}

HostValue Interpreter::callNative(llvm::StringRef name, const HostArguments &arguments, SourceRange range) {
  if (std::optional<HostValue> value = callSequenceFunction(name, arguments, range))
    return *value;
  if (name == "triton.Config")
    return makeConfig(arguments, range);
  if (name.consume_front("math."))
    return callMath(name, arguments, range);
  const HostSequence &args = arguments.positional;
  auto takes = [&](size_t least, size_t most) {
    if (args.size() >= least && args.size() <= most && arguments.keywords.empty())
      return true;
    fail(range, fmt::format("{} takes {} argument{}", name.str(),
                            least == most ? std::to_string(least) : fmt::format("{} to {}", least, most),
                            most == 1 ? "" : "s"));
    return false;
  };
  if (name == "print")
    return HostValue();
  if (name == "hasattr" || name == "getattr") {
    if (!takes(2, name == "getattr" ? 3 : 2))
      return HostValue();
    std::optional<HostValue> value = attribute(args[0], args[1].str(), range, name == "getattr" && args.size() == 2);
    return name == "hasattr" ? HostValue::boolean(value.has_value()) : value ? *value : args.size() > 2 ? args[2] : HostValue();
  }
  if (name == "isinstance")
    return takes(2, 2) ? HostValue::boolean(isInstance(args[0], args[1], range)) : HostValue();
  if (name == "str" || name == "repr")
    return takes(0, 1) ? HostValue::string(args.empty() ? "" : name == "str" ? args[0].str() : args[0].repr()) : HostValue();
  if (name == "bool")
    return takes(0, 1) ? HostValue::boolean(!args.empty() && args[0].isTrue()) : HostValue();
  if (name == "type")
    return takes(1, 1) ? HostValue(HostNative{args[0].typeName()}) : HostValue();
  if (name == "callable")
    return takes(1, 1) ? HostValue::boolean(args[0].is<HostFunction>() || args[0].is<HostNative>() || args[0].is<HostMethod>())
                       : HostValue();
  if (name == "len") {
    if (!takes(1, 1))
      return HostValue();
    if (args[0].isString())
      return constantResult(length(args[0].constant()), range);
    std::optional<HostSequence> elements = elementsOf(args[0], range);
    return elements ? HostValue::integer(elements->size()) : HostValue();
  }
  // What is left takes numbers or strings.
  if (llvm::any_of(args, [](const HostValue &each) { return !each.isConstant(); }))
    return fail(range, fmt::format("{} does not take '{}'", name.str(), args.empty() ? "" : args.front().typeName()));
  auto at = [&](size_t index) -> const ConstValue & { return args[index].constant(); };
  if (name == "int") {
    if (!takes(0, 2))
      return HostValue();
    std::optional<int64_t> base = args.size() > 1 ? integerOf(args[1], range, "the base") : std::optional<int64_t>(10);
    if (!base || *base < 0 || *base > 36)
      return failure ? HostValue() : fail(range, "the base of int() must be 0 or 2 to 36");
    return args.empty() ? HostValue::integer(0) : constantResult(toInt(at(0), static_cast<int>(*base)), range);
  }
  if (name == "float")
    return !takes(0, 1) ? HostValue() : args.empty() ? HostValue(ConstValue::floating(0)) : constantResult(toFloat(at(0)), range);
  if (name == "abs") {
    if (!takes(1, 1))
      return HostValue();
    auto zero = compare(CompareOp::Lt, at(0), ConstValue::integer(0));
    if (!zero.isOk())
      return fail(range, zero.status().message());
    if (at(0).isFloat())
      return HostValue(ConstValue::floating(std::fabs(at(0).getFloat())));
    return HostValue(ConstValue::integer(at(0).getInt().abs()));
  }
  if (name == "pow")
    return takes(2, 2) ? binaryOf(BinaryOp::Pow, args[0], args[1], range) : HostValue();
  if (name == "divmod") {
    if (!takes(2, 2))
      return HostValue();
    HostValue quotient = binaryOf(BinaryOp::FloorDiv, args[0], args[1], range);
    HostValue rest = failure ? HostValue() : binaryOf(BinaryOp::Mod, args[0], args[1], range);
    return HostValue::tuple({quotient, rest});
  }
  if (name == "round") {
    if (!takes(1, 2))
      return HostValue();
    if (at(0).isIntegral())
      return HostValue(ConstValue::integer(at(0).getInt()));
    if (!at(0).isFloat())
      return fail(range, "round takes a number");
    if (args.size() == 1 || args[1].isNone()) {
      auto rounded = BigInt::fromDouble(std::nearbyint(at(0).getFloat()));
      return rounded ? HostValue(ConstValue::integer(*rounded)) : fail(range, "cannot convert this float to an int");
    }
    std::optional<int64_t> digits = integerOf(args[1], range, "the number of digits");
    if (!digits || *digits < 0 || *digits > 300)
      return failure ? HostValue() : fail(range, "round takes 0 to 300 digits");
    auto text = format(at(0), fmt::format(".{}f", *digits));
    return text.isOk() ? constantResult(toFloat(ConstValue::string(*text)), range) : fail(range, text.status().message());
  }
  if (name == "hex" || name == "bin") {
    if (!takes(1, 1))
      return HostValue();
    auto text = format(at(0), name == "hex" ? "#x" : "#b");
    return text.isOk() ? HostValue::string(*text) : fail(range, text.status().message());
  }
  if (name == "ord" || name == "chr") {
    if (!takes(1, 1))
      return HostValue();
    if (name == "ord")
      return args[0].isString() && at(0).getString().size() == 1
                 ? HostValue::integer(static_cast<unsigned char>(at(0).getString()[0]))
                 : fail(range, "ord takes one character");
    std::optional<int64_t> code = integerOf(args[0], range, "the code");
    return code && *code >= 0 && *code < 128 ? HostValue::string(std::string(1, static_cast<char>(*code)))
                                             : fail(range, "chr takes a number below 128");
  }
  if (name == "triton.cdiv") {
    if (!takes(2, 2))
      return HostValue();
    HostValue less = binaryOf(BinaryOp::Sub, args[1], HostValue::integer(1), range);
    HostValue sum = failure ? HostValue() : binaryOf(BinaryOp::Add, args[0], less, range);
    return failure ? HostValue() : binaryOf(BinaryOp::FloorDiv, sum, args[1], range);
  }
  if (name == "triton.next_power_of_2") {
    std::optional<int64_t> number = takes(1, 1) ? integerOf(args[0], range, "the argument of triton.next_power_of_2") : std::nullopt;
    if (!number)
      return HostValue();
    int64_t power = *number < 1 ? 0 : 1;
    while (power < *number && power < (int64_t(1) << 62))
      power *= 2;
    return HostValue::integer(power);
  }
  return fail(range, fmt::format("{} cannot be called at compile time", name.str()));
}

} // namespace ditron::frontend
