//===- InlineAsm.cpp - Assembly on elements ------------------------------------------------------------------------===//
//
// tl.inline_asm_elementwise: operands meet in one shape, constraints are counted and their register classes compared with the types,
// since LLVM's own messages about them name no line of the kernel.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/tile/Tile.h"
#include "ditron/frontend/builtins/BuiltinHandlers.h"
#include "ditron/support/Plural.h"

#include <fmt/format.h>

namespace ditron::frontend::builtins {
namespace {

/// Registers that a pack of elements fills, and how many bits of each are used.
struct Registers {
  size_t count;
  unsigned bits;
};

Registers registersOf(const LangType &element, size_t pack) {
  unsigned width = std::max(8u, element.bitWidth());
  size_t share = width < 32 ? std::min<size_t>(pack, 32 / width) : 1;
  return {(pack + share - 1) / share, static_cast<unsigned>(width * share)};
}

/// The width of a register class, 0 for a letter that is none.
unsigned classWidth(char letter) {
  switch (letter) {
  case 'h': return 16;
  case 'r':
  case 'f': return 32;
  case 'l':
  case 'd': return 64;
  default: return 0;
  }
}

/// The constraints of a call, taken one after the other.
class ConstraintReader {
public:
  ConstraintReader(Evaluator &evaluator, const Arg<llvm::StringRef> &constraints, int64_t pack)
      : evaluator(evaluator), constraints(constraints), pack(pack) {
    constraints->split(items, ',');
    for (llvm::StringRef &item : items)
      item = item.trim();
    // Registers and flags that the text spoils say nothing about operands.
    llvm::erase_if(items, [](llvm::StringRef item) { return item.starts_with("~"); });
  }

  /// Reads those of one operand or result, `what` of this type.
  bool read(const LangType &element, bool isOutput, llvm::StringRef what) {
    Registers wanted = registersOf(element, pack);
    for (size_t i = 0; i < wanted.count; ++i) {
      if (next == items.size() || items[next].starts_with("=") != isOutput)
        return reject(fmt::format("{} of type {} fills {} with pack={}, which the constraints '{}' do not have", what.str(),
                                  element.str(), plural(wanted.count, "register"), pack, constraints->str()));
      llvm::StringRef item = items[next++];
      unsigned tied = 0;
      if (!isOutput && !item.getAsInteger(10, tied)) {
        if (tied >= outputs)
          return reject(fmt::format("constraint '{}' names an output that is not there", item.str()));
        continue;
      }
      unsigned width = classWidth(item.back());
      if (width == 0)
        return reject(fmt::format("constraint '{}' is no register class; they are h (16 bits), r and f (32), l and d (64)", item.str()));
      if (wanted.bits > width || (width == 64) != (wanted.bits == 64))
        return reject(fmt::format("constraint '{}' is for {} bits, but {} of type {} fills registers of {}", item.str(), width, what.str(),
                                  element.str(), wanted.bits));
      outputs += isOutput;
    }
    return true;
  }

  bool finish() {
    return next == items.size() || reject(fmt::format("there are {} constraints for {} registers", items.size(), next));
  }

private:
  bool reject(std::string message) {
    evaluator.emit.error(constraints.range, std::move(message));
    return false;
  }

  Evaluator &evaluator;
  const Arg<llvm::StringRef> &constraints;
  int64_t pack;
  llvm::SmallVector<llvm::StringRef> items;
  size_t next = 0, outputs = 0;
};

} // namespace

LangValue inlineAsmElementwise(Evaluator &evaluator, BuiltinCall &call, Arg<llvm::StringRef> text,
                               Arg<llvm::StringRef> constraintsArg, ValueArg args, ValueArg dtypeArg, Arg<bool> isPure,
                               Arg<int64_t> pack) {
  Emitter &emit = evaluator.emit;
  if (*pack < 1 || *pack > 64)
    return emit.fail(pack.range, fmt::format("pack must be between 1 and 64, but is {}", *pack));
  if (!args->isTuple())
    return emit.fail(args.range, fmt::format("argument 'args' must be a list of operands, but got {}", args->describe()));

  llvm::SmallVector<LangValue> operands;
  for (const LangValue &argument : args->elements()) {
    operands.push_back(emit.toTensor(argument, args.range));
    if (operands.back().isPoison())
      return operands.back();
  }
  if (!operands.empty() && !emit.broadcastTogether(operands, args.range))
    return LangValue::poison();

  bool isTuple = dtypeArg->isTuple();
  std::vector<LangValue> dtypes = isTuple ? std::vector<LangValue>(dtypeArg->elements()) : std::vector{*dtypeArg};
  llvm::SmallVector<LangType> results;
  for (LangValue &dtype : dtypes) {
    if (dtype.isString())
      if (auto kind = parseScalarKind(dtype.constant().getString()))
        dtype = LangValue(LangType(*kind));
    if (!dtype.isType() || dtype.asType().isBlock() || dtype.asType().isVoid())
      return emit.fail(dtypeArg.range,
                       fmt::format("argument 'dtype' must be a dtype or a tuple of them, but got {}", dtype.describe()));
    results.push_back(dtype.asType().withShape(operands.empty() ? llvm::ArrayRef<int64_t>() : operands[0].type().shape()));
  }

  ConstraintReader constraints(evaluator, constraintsArg, *pack);
  for (const LangType &result : results)
    if (!constraints.read(result.element(), true, "a result"))
      return LangValue::poison();
  llvm::SmallVector<mlir::Value> values;
  for (const LangValue &operand : operands) {
    if (!constraints.read(operand.type().element(), false, "an operand"))
      return LangValue::poison();
    values.push_back(operand.ir());
  }
  if (!constraints.finish())
    return LangValue::poison();

  llvm::SmallVector<mlir::Type> types;
  for (const LangType &result : results)
    types.push_back(emit.ir(result));
  auto op = emit.create<tile::InlineAsmOp>(types, *text, *constraintsArg, values, static_cast<uint32_t>(*pack), *isPure);
  std::vector<LangValue> wrapped;
  for (auto [value, type] : llvm::zip_equal(op.getResults(), results))
    wrapped.push_back(emit.wrap(value, type));
  return isTuple ? LangValue::tuple(std::move(wrapped)) : wrapped.front();
}

} // namespace ditron::frontend::builtins
