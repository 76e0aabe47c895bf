//===- Format.cpp - Functions of Python that run while compiling: formatting ----------------------------------------===//
//
// str.format, format() of any value, and the operator `%` of text. The format of scalars is ConstFormat.cpp's.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"
#include "ditron/frontend/natives/Natives.h"

#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <fmt/format.h>

namespace ditron::frontend {
namespace {

//===------------------------------------------------------------------------------------------------------------------===//
// str.format
//===------------------------------------------------------------------------------------------------------------------===//

/// One call of str.format.
class TextFormatter {
public:
  explicit TextFormatter(NativeCall &call) : call(call) {}

  /// The text with its fields replaced; nullopt after a failure.
  std::optional<std::string> run(llvm::StringRef text, unsigned depth = 0) {
    std::string result;
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if ((c == '{' || c == '}') && text.substr(i + 1).starts_with(text.substr(i, 1)) && depth == 0) {
        result += text[++i];
        continue;
      }
      if (c == '}')
        return give(call.fail("Single '}' encountered in format string", "ValueError"));
      if (c != '{') {
        result += c;
        continue;
      }
      const size_t end = endOfField(text, i);
      if (end == llvm::StringRef::npos)
        return give(call.fail(text.substr(i + 1).empty() ? "Single '{' encountered in format string"
                                                         : "expected '}' before end of string",
                              "ValueError"));
      std::optional<std::string> field = replace(text.slice(i + 1, end), depth);
      if (!field || !call.checkText(result += *field))
        return std::nullopt;
      i = end;
    }
    return result;
  }

  /// Why run() gave nothing: an unknown value, or poison.
  LangValue failure;

private:
  std::optional<std::string> give(LangValue value) {
    failure = std::move(value);
    return std::nullopt;
  }

  static size_t endOfField(llvm::StringRef text, size_t begin) {
    unsigned open = 0;
    for (size_t i = begin; i < text.size(); ++i) {
      open += text[i] == '{';
      open -= text[i] == '}';
      if (open == 0)
        return i;
    }
    return llvm::StringRef::npos;
  }

  /// `name.attribute[index]!r:spec`.
  std::optional<std::string> replace(llvm::StringRef field, unsigned depth) {
    if (depth >= 2)
      return give(call.fail("Max string recursion exceeded", "ValueError"));
    size_t nameEnd = 0;
    for (bool isIndex = false; nameEnd < field.size() && (isIndex || (field[nameEnd] != '!' && field[nameEnd] != ':'));
         ++nameEnd)
      isIndex = field[nameEnd] == '[' || (isIndex && field[nameEnd] != ']');
    LangValue value = valueOf(field.substr(0, nameEnd));
    if (value.isPoison() || value.isUnknown())
      return give(std::move(value));
    llvm::StringRef rest = field.substr(nameEnd);
    if (rest.consume_front("!")) {
      llvm::StringRef conversion = rest.take_until([](char c) { return c == ':'; });
      rest = rest.drop_front(conversion.size());
      if (conversion != "r" && conversion != "s" && conversion != "a")
        return give(call.fail(fmt::format("Unknown conversion specifier '{}'", conversion.str()), "ValueError"));
      value = textOfValue(call.evaluator, value, conversion != "s", call.range);
      if (value.isPoison() || value.isUnknown())
        return give(std::move(value));
    }
    rest.consume_front(":");
    std::optional<std::string> spec = run(rest, depth + 1);
    return spec ? formatValue(call.evaluator, value, *spec, call.range) : std::nullopt;
  }

  LangValue valueOf(llvm::StringRef path) {
    llvm::StringRef first = path.take_until([](char c) { return c == '.' || c == '['; });
    LangValue value = argumentOf(first);
    for (path = path.drop_front(first.size()); !path.empty() && !value.isPoison() && !value.isUnknown();) {
      if (path.consume_front(".")) {
        llvm::StringRef name = path.take_until([](char c) { return c == '.' || c == '['; });
        path = path.drop_front(name.size());
        value = call.evaluator.attributeOf(value, call.evaluator.intern(name), call.range);
        continue;
      }
      auto [index, rest] = path.drop_front().split(']');
      path = rest;
      int64_t number = 0;
      LangValue key = index.getAsInteger(10, number) ? LangValue::string(index.str()) : LangValue::integer(number);
      value = callNative({call.evaluator, *findNative("operator.getitem"), {}, {value, key}, {}, call.range});
    }
    return value;
  }

  LangValue argumentOf(llvm::StringRef name) {
    size_t index = next;
    const bool isNumber = !name.empty() && !name.getAsInteger(10, index);
    if (!name.empty() && !isNumber) {
      const LangValue *value = call.keyword(name);
      return value ? *value : call.fail(fmt::format("the format has no value for '{{{}}}'", name.str()), "KeyError");
    }
    hasNumbers |= isNumber;
    next += !isNumber;
    if (hasNumbers && next)
      return call.fail("a format cannot have both numbered fields and fields without a number", "ValueError");
    return index < call.args.size() ? call.args[index]
                                    : call.fail(fmt::format("the format has no value number {}", index), "IndexError");
  }

  NativeCall &call;
  size_t next = 0; ///< Fields without a number so far.
  bool hasNumbers = false;
};

//===------------------------------------------------------------------------------------------------------------------===//
// text % values
//===------------------------------------------------------------------------------------------------------------------===//

/// One conversion of `%`: "%-8.3f".
struct Conversion {
  bool isLeft = false, isZero = false, isAlternate = false;
  std::string sign, width, precision; ///< precision with its dot; empty without one
  char type = 's';
};

/// format()'s specification for a conversion of a number.
std::string specOf(const Conversion &conversion, llvm::StringRef type) {
  return fmt::format("{}{}{}{}{}{}{}", conversion.isLeft ? "<" : "", conversion.sign, conversion.isAlternate ? "#" : "",
                     conversion.isZero && !conversion.isLeft ? "0" : "", conversion.width, conversion.precision,
                     type.str());
}

std::string aligned(const Conversion &conversion, std::string value) {
  int64_t width = 0;
  llvm::StringRef(conversion.width).getAsInteger(10, width);
  const std::string padding(std::max<int64_t>(0, width - codePoints(value)), ' ');
  return conversion.isLeft ? value + padding : padding + value;
}

Expected<std::string> formatInt(const Conversion &conversion, const ConstValue &value, char type) {
  auto whole = toInt(value);
  if (!whole.isOk())
    return whole.status();
  if (conversion.precision.empty())
    return format(*whole, specOf(conversion, std::string(1, type)));
  // The precision is the least number of digits.
  Conversion plain = conversion;
  plain.width = plain.precision = "";
  plain.isZero = false;
  auto digits = format(*whole, specOf(plain, std::string(1, type)));
  if (!digits.isOk())
    return digits;
  size_t least = 0, begin = std::min(digits->find_first_not_of("+- "), digits->size());
  llvm::StringRef(conversion.precision).drop_front().getAsInteger(10, least);
  if (conversion.isAlternate && type != 'd')
    begin += 2;
  if (digits->size() - begin < least)
    digits->insert(begin, least - (digits->size() - begin), '0');
  size_t width = 0;
  llvm::StringRef(conversion.width).getAsInteger(10, width);
  if (conversion.isZero && !conversion.isLeft && digits->size() < width)
    digits->insert(begin, width - digits->size(), '0');
  return aligned(conversion, *digits);
}

Expected<std::string> formatConversion(const Conversion &conversion, const LangValue &value) {
  const bool isNumber = value.isLiteral();
  switch (conversion.type) {
  case 's':
  case 'r':
  case 'a': {
    std::string text = value.constant().getString();
    size_t most = 0;
    if (!conversion.precision.empty() && !llvm::StringRef(conversion.precision).drop_front().getAsInteger(10, most))
      text.resize(codePointOffset(text, static_cast<int64_t>(most)));
    return aligned(conversion, std::move(text));
  }
  case 'c':
    if (value.isString() && codePoints(value.constant().getString()) == 1)
      return aligned(conversion, value.constant().getString());
    return invalidArgument("%c requires a single character at compile time");
  case 'd':
  case 'i':
  case 'u':
    if (isNumber)
      return formatInt(conversion, value.constant(), 'd');
    return invalidArgument(
        fmt::format("%{} format: a real number is required, not {}", conversion.type, value.typeName()));
  case 'x':
  case 'X':
  case 'o':
    if (isNumber && value.constant().isIntegral())
      return formatInt(conversion, value.constant(), conversion.type);
    return invalidArgument(
        fmt::format("%{} format: an integer is required, not {}", conversion.type, value.typeName()));
  default: break;
  }
  if (!llvm::StringRef("eEfFgG").contains(conversion.type))
    return invalidArgument(fmt::format("unsupported format character '{}'", conversion.type));
  if (!isNumber)
    return invalidArgument(fmt::format("must be real number, not {}", value.typeName()));
  auto number = toFloat(value.constant());
  Conversion full = conversion;
  if (full.precision.empty())
    full.precision = ".6";
  return number.isOk() ? format(*number, specOf(full, std::string(1, conversion.type)))
                       : Expected<std::string>(number.status());
}

/// Takes flags, width, precision and type after the `%` from the text; false if it ends before. `star` gives a number for `*`.
bool takeConversion(llvm::StringRef &text, Conversion &conversion, llvm::function_ref<std::optional<int64_t>()> star) {
  for (; !text.empty() && llvm::StringRef("-0#+ ").contains(text[0]); text = text.drop_front()) {
    conversion.isLeft |= text[0] == '-';
    conversion.isZero |= text[0] == '0';
    conversion.isAlternate |= text[0] == '#';
    if (text[0] == '+' || (text[0] == ' ' && conversion.sign.empty()))
      conversion.sign = text[0];
  }
  auto number = [&](std::string &into) {
    if (text.consume_front("*")) {
      std::optional<int64_t> given = star();
      if (given && *given < 0 && &into == &conversion.width) {
        conversion.isLeft = true;
        given = -*given;
      }
      into += given ? std::to_string(std::max<int64_t>(0, *given)) : "";
      return given.has_value();
    }
    llvm::StringRef digits = text.take_while([](char c) { return llvm::isDigit(c); });
    into += digits.str();
    text = text.drop_front(digits.size());
    return digits.size() <= 7;
  };
  if (!number(conversion.width))
    return false;
  if (text.consume_front(".")) {
    conversion.precision = ".";
    if (!number(conversion.precision))
      return false;
    if (conversion.precision == ".")
      conversion.precision = ".0";
  }
  text = text.ltrim("lhL");
  if (text.empty())
    return false;
  conversion.type = text[0];
  text = text.drop_front();
  return true;
}

} // namespace

LangValue formatText(NativeCall &call) {
  TextFormatter formatter(call);
  std::optional<std::string> result = formatter.run(call.self.constant().getString());
  return result ? LangValue::string(std::move(*result)) : formatter.failure;
}

LangValue textOfValue(Evaluator &evaluator, const LangValue &value, bool isRepr, SourceRange range) {
  const LangValue shown = withShownWrappers(value);
  switch (textProblemOf(value)) {
  case TextProblem::None: return LangValue::string(isRepr ? shown.repr() : shown.display());
  case TextProblem::Digits:
    return evaluator.fail(range, fmt::format("Exceeds the limit ({} digits) for integer string conversion", BigInt::maxDecimalDigits),
                          "ValueError");
  case TextProblem::SetOrder:
    return evaluator.unknown(range, fmt::format("the order of the elements of {}", value.repr()));
  }
  return LangValue::poison();
}

std::optional<std::string> formatValue(Evaluator &evaluator, const LangValue &value, llvm::StringRef spec,
                                       SourceRange range) {
  if (value.instance()) {
    if (std::optional<LangValue> text = evaluator.callProtocol(value, "__format__", {LangValue::string(spec.str())}, range))
      return text->isPoison() ? std::nullopt : std::optional(text->display());
    const ClassInfo &cls = *value.instance()->cls;
    if (cls.showsNumber)
      return formatValue(evaluator, value.instance()->number, spec, range);
    if (cls.isEnum || spec.empty())
      return formatValue(evaluator, LangValue::string(value.display()), spec, range);
  }
  if (spec.empty()) {
    const LangValue text = textOfValue(evaluator, value, false, range);
    if (text.isString())
      return text.constant().getString();
    if (text.isUnknown())
      evaluator.fail(range, fmt::format("{} is not known at compile time", text.unknown().text), "");
    return std::nullopt;
  }
  if (!value.isConstant() || value.isNone()) {
    const ObjectValue *object = value.object();
    if (object && find(*object, "__str__"))
      return formatValue(evaluator, LangValue::string(value.display()), spec, range);
    evaluator.fail(range, fmt::format("unsupported format string passed to {}.__format__", value.typeName()));
    return std::nullopt;
  }
  auto text = format(value.constant(), spec);
  if (text.isOk() && text->size() <= ConstValue::maxStringBytes)
    return *text;
  if (text.isOk()) {
    evaluator.fail(range, "the text is too long", "");
    return std::nullopt;
  }
  const llvm::StringRef exception = exceptionOf(text.status().message());
  evaluator.fail(range, text.status().message(), exception == "TypeError" ? "ValueError" : exception);
  return std::nullopt;
}

LangValue formatPercent(Evaluator &evaluator, llvm::StringRef text, const LangValue &values, SourceRange range) {
  const auto *mapping = values.getIf<DictValue>();
  std::vector<LangValue> given = values.isTuple() ? values.elements() : std::vector<LangValue>{values};
  size_t next = 0;
  std::string result;
  auto take = [&]() -> LangValue {
    return next < given.size() ? given[next++] : evaluator.fail(range, "not enough arguments for format string");
  };
  while (!text.empty()) {
    auto [plain, rest] = text.split('%');
    result += plain;
    if (plain.size() == text.size())
      break;
    text = rest;
    if (text.consume_front("%")) {
      result += '%';
      continue;
    }
    std::optional<LangValue> keyed;
    if (mapping && text.consume_front("(")) {
      auto [key, after] = text.split(')');
      keyed = itemOf(evaluator, *mapping, LangValue::string(key.str()), range);
      text = after;
      next = given.size();
    }
    Conversion conversion;
    bool isGood = takeConversion(text, conversion, [&] {
      LangValue number = take();
      return number.isConstant() && number.constant().isIntegral() ? number.constant().toInt64() : std::nullopt;
    });
    if (!isGood)
      return evaluator.fail(range, "incomplete format", "ValueError");
    LangValue value = keyed ? *keyed : take();
    if (value.isPoison() || value.isUnknown())
      return value;
    if (llvm::StringRef("sra").contains(conversion.type))
      value = textOfValue(evaluator, value, conversion.type != 's', range);
    if (value.isPoison() || value.isUnknown())
      return value;
    auto formatted = formatConversion(conversion, value);
    if (!formatted.isOk())
      return evaluator.fail(range, formatted.status().message());
    result += *formatted;
    if (result.size() > ConstValue::maxStringBytes)
      return evaluator.fail(range, "the text is too long", "");
  }
  if (next < given.size() && !mapping && !(values.isList() || values.isSet()))
    return evaluator.fail(range, "not all arguments converted during string formatting");
  return LangValue::string(std::move(result));
}

} // namespace ditron::frontend
