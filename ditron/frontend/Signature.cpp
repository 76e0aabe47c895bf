//===- Signature.cpp - Reading and printing kernel signatures ----------------------------------------------------------===//
//
// A hand-written reader: items are cut at commas outside of quotes, each item is a type, a literal, or one of these with
// a name before it.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Signature.h"
#include "ditron/frontend/builtins/Descriptors.h"

#include "llvm/ADT/StringExtras.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::frontend {
namespace {

/// For messages: the text, or its beginning when nobody would read it all.
std::string quoted(llvm::StringRef text) {
  constexpr size_t mostShown = 200;
  return text.size() <= mostShown ? fmt::format("'{}'", text.str())
                                  : fmt::format("'{}...' ({} characters)", text.take_front(mostShown).str(), text.size());
}

constexpr unsigned mostTupleLevels = 32;

bool isIdentifier(llvm::StringRef text) {
  if (text.empty() || llvm::isDigit(text.front()))
    return false;
  return llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

/// Splits at commas that are outside of quotes and angle brackets; a backslash inside quotes protects the next character.
Expected<std::vector<llvm::StringRef>> splitItems(llvm::StringRef text) {
  std::vector<llvm::StringRef> items;
  size_t begin = 0;
  unsigned depth = 0;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quote) {
      if (c == '\\')
        ++i;
      else if (c == quote)
        quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '<' || c == '(') {
      ++depth;
    } else if ((c == '>' || c == ')') && depth > 0) {
      --depth;
    } else if (c == ',' && depth == 0) {
      items.push_back(text.slice(begin, i).trim());
      begin = i + 1;
    }
  }
  if (quote)
    return invalidArgument(fmt::format("signature '{}': the string has no closing {}", text.str(), quote));
  items.push_back(text.substr(begin).trim());
  return items;
}

Expected<std::string> unescape(llvm::StringRef body) {
  std::string result;
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\') {
      result += body[i];
      continue;
    }
    if (++i == body.size())
      return invalidArgument(fmt::format("string {} ends in a backslash", quoted(body)));
    switch (body[i]) {
    case 'n': result += '\n'; break;
    case 't': result += '\t'; break;
    case '\\':
    case '"':
    case '\'': result += body[i]; break;
    default: return invalidArgument(fmt::format("string {} holds the unknown escape \\{}", quoted(body), body[i]));
    }
  }
  return result;
}

Expected<ConstexprArgument> parseNumber(llvm::StringRef text) {
  bool looksLikeInt = text.find_first_of(".eEnN") == llvm::StringRef::npos || text.contains_insensitive("0x");
  ConstValue literal = ConstValue::string(text.str());
  auto number = looksLikeInt ? toInt(literal, 0) : toFloat(literal);
  if (!number.isOk())
    return invalidArgument(fmt::format("{} is not a compile-time value; write a number, True, False, None, a quoted "
                                       "string or a dtype such as fp16",
                                       quoted(text)));
  return ConstexprArgument(*number);
}

/// A power of two.
std::optional<unsigned> parseDivisor(llvm::StringRef text) {
  unsigned divisor = 0;
  if (text.trim().getAsInteger(10, divisor) || divisor == 0 || (divisor & (divisor - 1)) != 0)
    return std::nullopt;
  return divisor;
}

/// tensordesc<bf16[128,64],nan>:16:8
Expected<ArgumentSpec> parseDescriptor(llvm::StringRef text) {
  auto fail = [&](std::string problem) {
    return invalidArgument(fmt::format("{}: {}; a tensor descriptor is written tensordesc<bf16[128,64]>, with ',nan' before '>' "
                                       "for its padding and ':16:8' after it for divisors",
                                       quoted(text), problem));
  };
  auto [inside, promises] = text.drop_front(std::size("tensordesc<") - 1).split('>');
  auto [tile, padding] = inside.rsplit(',');
  const bool fillsNan = padding.trim() == "nan";
  if (!fillsNan && padding.trim() != "zero")
    tile = inside;
  tile = tile.trim();
  auto [elementText, shapeText] = tile.split('[');
  std::optional<LangType> element = parseSignatureType(elementText.trim());
  if (!element || element->isPointer() || element->isBool())
    return fail(fmt::format("'{}' is no element type", elementText.str()));
  if (!shapeText.consume_back("]"))
    return fail("the shape has no closing ']'");
  llvm::SmallVector<llvm::StringRef> sizes;
  llvm::SmallVector<int64_t> shape;
  shapeText.split(sizes, ',');
  for (llvm::StringRef item : sizes) {
    int64_t size = 0;
    if (item.trim().getAsInteger(10, size) || size < 1 || size > maxBlockElements || (size & (size - 1)) != 0)
      return fail(fmt::format("'{}' is no power of two", item.trim().str()));
    shape.push_back(size);
  }
  if (shape.size() > 5)
    return fail("at most 5 dimensions are possible");
  if (const int64_t rowBytes = shape.back() * element->bitWidth() / 8; rowBytes < smallestDescriptorRow)
    return fail(fmt::format("its last dimension has {} bytes, at least {} are needed", rowBytes, smallestDescriptorRow));
  if (fillsNan && !element->isFloat())
    return fail(fmt::format("elements of type {} have no NaN", element->str()));
  ArgumentSpec spec = ArgumentSpec::descriptorOf(element->withShape(shape), fillsNan);
  if (promises.empty())
    return spec;
  llvm::SmallVector<llvm::StringRef> divisors;
  promises.split(divisors, ':');
  if (!divisors[0].trim().empty() || divisors.size() > 3)
    return fail("what follows '>' is not understood");
  for (size_t i = 1; i < divisors.size(); ++i) {
    std::optional<unsigned> divisor = parseDivisor(divisors[i]);
    if (!divisor)
      return fail(fmt::format("'{}' is no power of two", divisors[i].trim().str()));
    (i == 1 ? spec.divisibility : spec.sizeDivisibility) = *divisor;
  }
  return spec;
}

Expected<ArgumentSpec> parseItem(llvm::StringRef text, const std::string &where, unsigned level);

/// (i32, constexpr 3)
Expected<ArgumentSpec> parseTuple(llvm::StringRef text, unsigned level) {
  if (level == mostTupleLevels)
    return invalidArgument(fmt::format("{}: tuples are nested more than {} deep", quoted(text), mostTupleLevels));
  llvm::StringRef inside = text.drop_front().trim();
  if (!inside.consume_back(")"))
    return invalidArgument(fmt::format("{}: the tuple has no closing ')'", quoted(text)));
  inside = inside.trim();
  std::vector<ArgumentSpec> elements;
  if (!inside.empty()) {
    inside.consume_back(","); // a tuple of one
    auto items = splitItems(inside);
    if (!items.isOk())
      return items.status();
    for (auto [index, item] : llvm::enumerate(*items)) {
      auto element = parseItem(item, fmt::format("tuple element {}", index + 1), level + 1);
      if (!element.isOk())
        return element.status();
      elements.push_back(std::move(*element));
    }
  }
  return ArgumentSpec::tupleOf(std::move(elements));
}

/// An item without its name: a type with an optional divisor, a tuple or a literal.
Expected<ArgumentSpec> parseUnnamed(llvm::StringRef text, unsigned level) {
  if (text.starts_with("("))
    return parseTuple(text, level);
  if (text.starts_with("tensordesc<"))
    return parseDescriptor(text);
  auto [typeText, divisorText] = text.split(':');
  if (auto type = parseSignatureType(typeText.trim())) {
    ArgumentSpec spec = ArgumentSpec::runTime(*type);
    if (text.contains(':')) {
      std::optional<unsigned> divisor = parseDivisor(divisorText);
      if (!divisor)
        return invalidArgument(
            fmt::format("{}: the divisor after ':' must be a power of two, for example 16", quoted(text)));
      if (type->isFloat() || type->isBool())
        return invalidArgument(fmt::format("{}: only pointers and integers have a divisor", quoted(text)));
      spec.divisibility = *divisor;
    }
    return spec;
  }
  auto value = parseConstexpr(text);
  if (text.starts_with("*") || text.contains(':') || (!value.isOk() && isIdentifier(text)))
    return invalidArgument(fmt::format("{} is not a type; types are i1 i8 i16 i32 i64 u8 u16 u32 u64 fp8e5 fp8e4nv "
                                       "fp16 bf16 fp32 fp64 and * before them for pointers",
                                       quoted(text)));
  if (!value.isOk())
    return value.status();
  return ArgumentSpec::constexprOf(*value);
}

/// One item with its name.
Expected<ArgumentSpec> parseItem(llvm::StringRef text, const std::string &where, unsigned level) {
  llvm::StringRef rest = text;
  if (rest.empty())
    return invalidArgument(where + " is empty");
  bool isConstexpr = false;
  if (rest.starts_with("constexpr") && (rest.size() == 9 || !llvm::isAlnum(rest[9]))) {
    isConstexpr = true;
    rest = rest.drop_front(9).ltrim();
  }
  std::string name;
  auto [before, after] = rest.split('=');
  if (rest.contains('=') && isIdentifier(before.trim())) {
    name = before.trim().str();
    rest = after.trim();
  }
  if (isConstexpr && !rest.starts_with("(")) { // a tuple of literals is compile-time by itself
    if (rest.empty())
      return invalidArgument(where + ": write constexpr NAME=VALUE");
    if (rest.consume_front("@")) {
      if (!isIdentifier(rest))
        return invalidArgument(where + fmt::format(": what follows '@' is a name of the kernel's file, not {}", quoted(rest)));
      return ArgumentSpec::globalOf(rest.str(), name);
    }
    auto value = parseConstexpr(rest);
    if (!value.isOk())
      return value.status().withContext(where);
    return ArgumentSpec::constexprOf(*value, name);
  }
  if (rest.empty())
    return invalidArgument(where + fmt::format(": parameter {} has no type or value", quoted(name)));
  auto spec = parseUnnamed(rest, level);
  if (!spec.isOk())
    return spec.status().withContext(where);
  spec->name = name;
  return spec;
}

} // namespace

ArgumentSpec ArgumentSpec::tupleOf(std::vector<ArgumentSpec> elements, std::string name) {
  ArgumentSpec spec;
  spec.name = std::move(name);
  spec.elements = std::make_shared<const std::vector<ArgumentSpec>>(std::move(elements));
  return spec;
}

ArgumentSpec ArgumentSpec::runTime(LangType type, unsigned divisibility, std::string name) {
  ArgumentSpec spec;
  spec.name = std::move(name);
  spec.type = std::move(type);
  spec.divisibility = divisibility;
  return spec;
}

ArgumentSpec ArgumentSpec::descriptorOf(LangType tile, bool fillsNan, unsigned divisibility, unsigned sizeDivisibility,
                                        std::string name) {
  ArgumentSpec spec = runTime(std::move(tile), divisibility, std::move(name));
  spec.isDescriptor = true;
  spec.fillsNan = fillsNan;
  spec.sizeDivisibility = sizeDivisibility;
  return spec;
}

ArgumentSpec ArgumentSpec::constexprOf(ConstexprArgument value, std::string name) {
  ArgumentSpec spec;
  spec.name = std::move(name);
  spec.constexprValue = std::move(value);
  return spec;
}

ArgumentSpec ArgumentSpec::globalOf(std::string global, std::string name) {
  ArgumentSpec spec;
  spec.name = std::move(name);
  spec.globalName = std::move(global);
  return spec;
}

bool ArgumentSpec::operator==(const ArgumentSpec &other) const {
  if (name != other.name || isConstexpr() != other.isConstexpr() || isTuple() != other.isTuple())
    return false;
  if (isTuple())
    return *elements == *other.elements;
  if (!isConstexpr())
    return type == other.type && divisibility == other.divisibility && isDescriptor == other.isDescriptor &&
           fillsNan == other.fillsNan && sizeDivisibility == other.sizeDivisibility;
  if (isGlobal() || other.isGlobal())
    return globalName == other.globalName;
  if (constexprValue->index() != other.constexprValue->index())
    return false;
  if (const auto *constant = std::get_if<ConstValue>(&*constexprValue))
    return constant->identical(std::get<ConstValue>(*other.constexprValue));
  return std::get<LangType>(*constexprValue) == std::get<LangType>(*other.constexprValue);
}

std::string ArgumentSpec::str() const {
  if (isGlobal())
    return fmt::format("constexpr {}{}@{}", name, name.empty() ? "" : "=", globalName);
  if (isConstexpr())
    return fmt::format("constexpr {}{}{}", name, name.empty() ? "" : "=", printConstexpr(*constexprValue));
  std::string text = name.empty() ? "" : name + "=";
  if (isTuple()) {
    std::string inside;
    for (const ArgumentSpec &element : *elements)
      inside += (inside.empty() ? "" : ", ") + element.str();
    return fmt::format("{}({}{})", text, inside, elements->size() == 1 ? "," : "");
  }
  if (isDescriptor)
    text += fmt::format("tensordesc<{}[{}]{}>", type.element().signatureText(),
                        fmt::join(type.shape().begin(), type.shape().end(), ","), fillsNan ? ",nan" : "");
  else
    text += type.signatureText();
  if (divisibility != 1 || sizeDivisibility != 1)
    text += fmt::format(":{}", divisibility);
  if (sizeDivisibility != 1)
    text += fmt::format(":{}", sizeDivisibility);
  return text;
}

std::vector<RunTimeParameter> runTimeParameters(const ArgumentSpec &spec, std::string_view name) {
  if (spec.isConstexpr())
    return {};
  if (spec.isTuple()) {
    std::vector<RunTimeParameter> result;
    for (auto [index, element] : llvm::enumerate(*spec.elements)) {
      std::string inner = fmt::format("{}.{}", name, element.name.empty() ? std::to_string(index) : element.name);
      llvm::append_range(result, runTimeParameters(element, inner));
    }
    return result;
  }
  if (!spec.isDescriptor)
    return {{std::string(name), spec.type, spec.divisibility}};
  const LangType element = spec.type.element();
  std::vector<RunTimeParameter> result = {{std::string(name), LangType::pointer(element), spec.divisibility}};
  const unsigned rank = spec.type.rank();
  for (unsigned dim = 0; dim < rank; ++dim)
    result.push_back({fmt::format("{}.shape.{}", name, dim), ScalarKind::Int32, dim + 1 == rank ? spec.sizeDivisibility : 1});
  // The promise counts bytes, the stride elements.
  for (unsigned dim = 0; dim + 1 < rank; ++dim)
    result.push_back({fmt::format("{}.stride.{}", name, dim), ScalarKind::Int64,
                      std::max(1u, spec.divisibility * 8 / std::max(8u, element.bitWidth()))});
  return result;
}

std::string KernelSignature::str() const {
  std::string text;
  for (const ArgumentSpec &argument : arguments)
    text += (text.empty() ? "" : ", ") + argument.str();
  return text;
}

std::string printConstexpr(const ConstexprArgument &value) {
  if (const auto *type = std::get_if<LangType>(&value))
    return type->signatureText();
  const ConstValue &constant = std::get<ConstValue>(value);
  if (!constant.isStr())
    return constant.repr();
  std::string text = "\"";
  for (char c : constant.getString()) {
    if (c == '\n')
      text += "\\n";
    else if (c == '\t')
      text += "\\t";
    else if (c == '"' || c == '\\')
      (text += '\\') += c;
    else
      text += c;
  }
  return text + '"';
}

Expected<ConstexprArgument> parseConstexpr(llvm::StringRef text) {
  text = text.trim();
  if (text.empty())
    return invalidArgument("an empty text is not a compile-time value");
  if (text == "True" || text == "true")
    return ConstexprArgument(ConstValue::boolean(true));
  if (text == "False" || text == "false")
    return ConstexprArgument(ConstValue::boolean(false));
  if (text == "None")
    return ConstexprArgument(ConstValue::none());
  if (text.front() == '"' || text.front() == '\'') {
    if (text.size() < 2 || text.back() != text.front())
      return invalidArgument(fmt::format("string {} has no closing quote", text.str()));
    auto body = unescape(text.drop_front().drop_back());
    if (!body.isOk())
      return body.status();
    return ConstexprArgument(ConstValue::string(*body));
  }
  if (auto type = parseSignatureType(text))
    return ConstexprArgument(*type);
  return parseNumber(text);
}

Expected<KernelSignature> parseSignature(llvm::StringRef text) {
  KernelSignature signature;
  if (text.trim().empty())
    return signature;
  auto items = splitItems(text);
  if (!items.isOk())
    return items.status();
  for (auto [index, item] : llvm::enumerate(*items)) {
    std::string where = fmt::format("signature item {}", index + 1);
    auto spec = parseItem(item, where, 0);
    if (!spec.isOk())
      return spec.status();
    for (const ArgumentSpec &earlier : signature.arguments)
      if (!spec->name.empty() && earlier.name == spec->name)
        return invalidArgument(where + fmt::format(": parameter {} is given twice", quoted(spec->name)));
    signature.arguments.push_back(*spec);
  }
  return signature;
}

Expected<std::vector<std::pair<std::string, std::string>>> parseDefines(const std::vector<std::string> &texts) {
  std::vector<std::pair<std::string, std::string>> defines;
  for (llvm::StringRef text : texts) {
    size_t at = llvm::StringRef::npos;
    int depth = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      depth += text[i] == '(' || text[i] == '[' ? 1 : text[i] == ')' || text[i] == ']' ? -1 : 0;
      bool isComparison = (i > 0 && llvm::StringRef("=<>!").contains(text[i - 1])) || (i + 1 < text.size() && text[i + 1] == '=');
      if (text[i] == '=' && depth == 0 && !isComparison) {
        at = i;
        break;
      }
    }
    llvm::StringRef name = text.take_front(at).trim(), value = at == llvm::StringRef::npos ? "" : text.drop_front(at + 1).trim();
    if (name.empty() || value.empty())
      return invalidArgument(fmt::format("'{}' is no NAME=VALUE; for example USE_TMA=True, or 'torch.cuda.device_count()=8'", text.str()));
    const auto same = llvm::find_if(defines, [&](const auto &define) { return define.first == name; });
    if (same == defines.end())
      defines.emplace_back(name.str(), value.str());
    else if (same->second != value)
      return invalidArgument(fmt::format("'{}' is defined twice, as {} and as {}", name.str(), same->second, value.str()));
  }
  return defines;
}

} // namespace ditron::frontend
