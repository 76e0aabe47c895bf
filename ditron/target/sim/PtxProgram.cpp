//===- PtxProgram.cpp - Pieces of PTX as statements --------------------------------------------------------------------------===//
//
// See PtxProgram.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/sim/PtxProgram.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <fmt/format.h>

namespace ditron::target {

bool PtxStatement::has(llvm::StringRef modifier) const {
  return llvm::any_of(llvm::ArrayRef(opcode).drop_front(), [&](const std::string &part) { return part == modifier; });
}

namespace {

/// The text without comments, "$$" as "$".
std::string withoutComments(llvm::StringRef text) {
  std::string result;
  while (!text.empty()) {
    if (text.starts_with("//")) {
      text = text.drop_until([](char c) { return c == '\n'; });
    } else if (text.starts_with("/*")) {
      size_t end = text.find("*/", 2);
      text = end == llvm::StringRef::npos ? llvm::StringRef() : text.drop_front(end + 2);
    } else {
      result += text.front();
      text = text.drop_front(text.starts_with("$$") ? 2 : 1);
    }
  }
  return result;
}

/// The parts between commas that stand outside of brackets.
llvm::SmallVector<llvm::StringRef> splitOperands(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '{' || text[i] == '[';
    depth -= text[i] == '}' || text[i] == ']';
    if (text[i] == ',' && depth == 0) {
      parts.push_back(text.slice(begin, i).trim());
      begin = i + 1;
    }
  }
  if (llvm::StringRef last = text.substr(begin).trim(); !last.empty() || !parts.empty())
    parts.push_back(last);
  return parts;
}

bool isName(llvm::StringRef text) {
  return !text.empty() && llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_' || c == '$' || c == '%' || c == '.' || c == '-' || c == '+'; });
}

Expected<PtxOperand> readOperand(llvm::StringRef text) {
  PtxOperand operand;
  if (text.consume_front("{")) {
    if (!text.consume_back("}"))
      return invalidArgument("a brace is not closed");
    operand.kind = PtxOperand::Kind::Vector;
    for (llvm::StringRef part : splitOperands(text)) {
      DITRON_ASSIGN_OR_RETURN(PtxOperand element, readOperand(part));
      operand.parts.push_back(std::move(element));
    }
    return operand;
  }
  if (text.consume_front("[")) {
    if (!text.consume_back("]"))
      return invalidArgument("a bracket is not closed");
    operand.kind = PtxOperand::Kind::Address;
    size_t sign = text.find_first_of("+-");
    llvm::StringRef offset = sign == llvm::StringRef::npos ? llvm::StringRef() : text.substr(sign);
    bool isNegative = offset.contains('-');
    offset = offset.ltrim("+- ").trim();
    if (!offset.empty() && offset.getAsInteger(0, operand.offset))
      return invalidArgument(fmt::format("the offset '{}' is no number", offset.str()));
    operand.offset = isNegative ? -operand.offset : operand.offset;
    text = text.substr(0, sign).trim();
  }
  if (!isName(text))
    return invalidArgument(fmt::format("the operand '{}' cannot be read", text.str()));
  operand.name = text.str();
  return operand;
}

/// The label that the text begins with, its colon included; empty when there is none.
llvm::StringRef leadingLabel(llvm::StringRef text) {
  llvm::StringRef name = text.take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '$' || c == '%'; });
  llvm::StringRef rest = text.drop_front(name.size());
  return !name.empty() && rest.starts_with(":") && !rest.starts_with("::") ? text.take_front(name.size() + 1) : llvm::StringRef();
}

/// The bits of a register type: ".b32"; 0 for what is none.
unsigned registerBits(llvm::StringRef type) {
  if (type == ".pred")
    return 1;
  if (type.ends_with("x2"))
    return type == ".f16x2" || type == ".bf16x2" ? 32 : 0;
  unsigned bits = 0;
  llvm::StringRef digits = type.drop_while([](char c) { return !llvm::isDigit(c); });
  return digits.getAsInteger(10, bits) || (bits != 8 && bits != 16 && bits != 32 && bits != 64) ? 0 : bits;
}

Status readRegisters(llvm::StringRef text, PtxProgram &program) {
  text.consume_front(".reg");
  auto [type, names] = text.trim().split(' ');
  unsigned bits = registerBits(type.trim());
  if (bits == 0)
    return invalidArgument(fmt::format("registers of type '{}' are not known", type.str()));
  for (llvm::StringRef name : splitOperands(names)) {
    unsigned count = 0;
    llvm::StringRef stem = name.substr(0, name.find('<'));
    if (stem.size() == name.size()) {
      program.registers.push_back({name.str(), bits, program.statements.size()});
      continue;
    }
    if (name.drop_front(stem.size() + 1).drop_back().getAsInteger(10, count) || count > 256)
      return invalidArgument(fmt::format("the registers '{}' cannot be read", name.str()));
    for (unsigned i = 0; i < count; ++i)
      program.registers.push_back({fmt::format("{}{}", stem.str(), i), bits, program.statements.size()});
  }
  return Status::ok();
}

Status readStatement(llvm::StringRef text, PtxProgram &program) {
  if (text.starts_with(".reg"))
    return readRegisters(text, program);
  PtxStatement statement;
  statement.text = text.str();
  if (text.consume_front("@")) {
    statement.negated = text.consume_front("!");
    llvm::StringRef rest = text.drop_until([](char c) { return llvm::isSpace(c); });
    statement.guard = text.drop_back(rest.size()).str();
    text = rest.trim();
  }
  llvm::StringRef operands = text.drop_until([](char c) { return llvm::isSpace(c); });
  llvm::SmallVector<llvm::StringRef> parts;
  text.drop_back(operands.size()).split(parts, '.');
  for (llvm::StringRef part : parts)
    statement.opcode.push_back(part.str());
  for (llvm::StringRef part : splitOperands(operands.trim())) {
    DITRON_ASSIGN_OR_RETURN(PtxOperand operand, readOperand(part));
    statement.operands.push_back(std::move(operand));
  }
  program.statements.push_back(std::move(statement));
  return Status::ok();
}

} // namespace

Expected<PtxProgram> readPtx(llvm::StringRef text) {
  std::string clean = withoutComments(text);
  PtxProgram program;
  llvm::StringRef rest(clean);
  while (!(rest = rest.ltrim()).empty()) {
    if (rest.front() == '{' || rest.front() == '}' || rest.front() == ';') { // a scope of registers; names may repeat
      rest = rest.drop_front();
      continue;
    }
    if (llvm::StringRef label = leadingLabel(rest); !label.empty()) { // a statement of its own, which nobody models
      PtxStatement &statement = program.statements.emplace_back();
      statement.text = label.str();
      statement.opcode.push_back(label.str());
      rest = rest.drop_front(label.size());
      continue;
    }
    size_t end = rest.find(';');
    llvm::StringRef one = rest.substr(0, end).trim();
    rest = end == llvm::StringRef::npos ? llvm::StringRef() : rest.drop_front(end + 1);
    if (Status status = readStatement(one, program); !status.isOk())
      return invalidArgument(fmt::format("'{}': {}", one.str(), status.message()));
  }
  return program;
}

} // namespace ditron::target
