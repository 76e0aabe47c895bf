//===- LayoutCommand.cpp - ditron layout --------------------------------------------------------------------------===//
//
// Draws a layout that is named by its builder and sizes, or given as the text that the compiler prints.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "layout/LayoutCommand.h"

#include "layout/LayoutPicture.h"

#include "ditron/layout/Builders.h"
#include "ditron/layout/Wgmma.h"
#include "ditron/support/OutputFile.h"
#include "ditron/values/TextPieces.h"

#include <fmt/format.h>
#include <variant>

namespace ditron::tool {

namespace {

using AnyLayout = std::variant<layout::DistributedLayout, layout::SharedLayout>;

struct LayoutArguments {
  std::string shape, operand = "c", text, svg;
  uint32_t perThread = 1, lanes = 32, warps = 4, bits = 16, bytes = 128;
  bool columnMajor = false;
};

/// Sizes with an x between: powers of two, as all layouts have, and no more elements than are drawn.
Expected<layout::Shape> parseSizes(const std::string &text) {
  layout::Shape shape;
  int64_t elements = 1;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('x', begin), text.size());
    const std::optional<int64_t> size = values::wholeNumber<int64_t>(std::string_view(text).substr(begin, end - begin));
    if (!size || *size < 1 || *size > mostDrawnElements || !layout::isPowerOfTwo(*size))
      return invalidArgument(fmt::format("--shape '{}': '{}' is not accepted; write powers of two from 1 to {}, as in 16x32", text,
                                         text.substr(begin, end - begin), mostDrawnElements));
    shape.push_back(*size);
    elements *= *size;
    if (elements > mostDrawnElements || shape.size() > layout::maxRank)
      return invalidArgument(fmt::format("--shape '{}': at most {} elements in {} dimensions are drawn", text, mostDrawnElements,
                                         layout::maxRank));
    begin = end + 1;
  }
  return shape;
}

Expected<std::vector<int>> orderOf(const layout::Shape &shape, bool columnMajor) {
  std::vector<int> order = layout::rowMajorOrder(static_cast<int>(shape.size()));
  if (columnMajor && shape.size() != 2)
    return invalidArgument(fmt::format("--column-major: a shape of two dimensions is accepted, {} has {}",
                                       layout::shapeToString(shape), shape.size()));
  if (columnMajor)
    std::swap(order[0], order[1]);
  return order;
}

Status checkPower(std::string_view option, uint32_t value) {
  return layout::isPowerOfTwo(value) ? Status::ok()
                                     : invalidArgument(fmt::format("{} {}: a power of two is accepted", option, value));
}

Expected<AnyLayout> makeTile(const LayoutArguments &arguments) {
  DITRON_ASSIGN_OR_RETURN(const layout::Shape shape, parseSizes(arguments.shape));
  DITRON_ASSIGN_OR_RETURN(const std::vector<int> order, orderOf(shape, arguments.columnMajor));
  DITRON_RETURN_IF_ERROR(checkPower("--per-thread", arguments.perThread));
  DITRON_RETURN_IF_ERROR(checkPower("--lanes", arguments.lanes));
  DITRON_RETURN_IF_ERROR(checkPower("--warps", arguments.warps));
  return AnyLayout(layout::tile(shape, order, arguments.perThread, static_cast<int>(arguments.lanes),
                                static_cast<int>(arguments.warps)));
}

Expected<AnyLayout> makeMma(const LayoutArguments &arguments) {
  DITRON_ASSIGN_OR_RETURN(const layout::Shape shape, parseSizes(arguments.shape));
  if (shape.size() != 3)
    return invalidArgument(fmt::format("--shape '{}': a product has three sizes, MxNxK, as in 16x8x16", arguments.shape));
  DITRON_RETURN_IF_ERROR(checkPower("--warps", arguments.warps));
  const std::optional<layout::MmaKind> kind = layout::mmaKindFor(static_cast<int>(arguments.bits));
  if (!kind)
    return invalidArgument(fmt::format("--bits {}: no instruction multiplies such operands; accepted are 8, 16, 32 and 64",
                                       arguments.bits));
  const layout::DotShape dot = {shape[0], shape[1], shape[2]};
  const layout::WarpGrid grid = layout::chooseWarpGrid(*kind, dot, static_cast<int>(arguments.warps));
  const layout::DotOperand operand = arguments.operand == "a"   ? layout::DotOperand::A
                                     : arguments.operand == "b" ? layout::DotOperand::B
                                                                : layout::DotOperand::C;
  DITRON_ASSIGN_OR_RETURN(layout::DistributedLayout made, layout::mmaLayout(*kind, operand, dot, grid));
  return AnyLayout(std::move(made));
}

Expected<AnyLayout> makeWgmma(const LayoutArguments &arguments) {
  DITRON_ASSIGN_OR_RETURN(const layout::Shape shape, parseSizes(arguments.shape));
  if (shape.size() != 2)
    return invalidArgument(fmt::format("--shape '{}': an accumulator has two sizes, MxN, as in 64x32", arguments.shape));
  DITRON_RETURN_IF_ERROR(checkPower("--warps", arguments.warps));
  DITRON_ASSIGN_OR_RETURN(layout::DistributedLayout made,
                          layout::wgmmaAccumulator(shape, static_cast<int>(arguments.warps)));
  return AnyLayout(std::move(made));
}

Expected<AnyLayout> makeFma(const LayoutArguments &arguments) {
  DITRON_ASSIGN_OR_RETURN(const layout::Shape shape, parseSizes(arguments.shape));
  if (shape.size() != 3)
    return invalidArgument(fmt::format("--shape '{}': a product has three sizes, MxNxK, as in 16x16x4", arguments.shape));
  DITRON_RETURN_IF_ERROR(checkPower("--warps", arguments.warps));
  layout::DotLayouts made = layout::fmaLayouts({shape[0], shape[1], shape[2]}, 32, static_cast<int>(arguments.warps));
  return AnyLayout(std::move(arguments.operand == "a" ? made.a : arguments.operand == "b" ? made.b : made.c));
}

Expected<AnyLayout> makeSwizzled(const LayoutArguments &arguments) {
  DITRON_ASSIGN_OR_RETURN(const layout::Shape shape, parseSizes(arguments.shape));
  DITRON_ASSIGN_OR_RETURN(const std::vector<int> order, orderOf(shape, arguments.columnMajor));
  if (arguments.bytes == 0)
    return AnyLayout(layout::plainShared(shape, order, static_cast<int>(arguments.bits)));
  const int64_t row = shape[order[0]] * arguments.bits / 8;
  if (shape.size() < 2 || row < arguments.bytes)
    return invalidArgument(fmt::format("--bytes {}: the fastest dimension of {} has {} bytes of {}-bit elements; a swizzle needs two "
                                       "dimensions and at least as many bytes as it has, or --bytes 0 for none",
                                       arguments.bytes, arguments.shape, row, arguments.bits));
  return AnyLayout(
      layout::swizzledShared(shape, order, static_cast<int>(arguments.bits), static_cast<int>(arguments.bytes)));
}

Expected<AnyLayout> readText(const LayoutArguments &arguments) {
  if (arguments.text.find("offset") != std::string::npos) {
    DITRON_ASSIGN_OR_RETURN(layout::SharedLayout parsed, layout::SharedLayout::parse(arguments.text));
    return AnyLayout(std::move(parsed));
  }
  DITRON_ASSIGN_OR_RETURN(layout::DistributedLayout parsed, layout::DistributedLayout::parse(arguments.text));
  return AnyLayout(std::move(parsed));
}

Status draw(const Expected<AnyLayout> &made, const std::string &svgFile) {
  DITRON_RETURN_IF_ERROR(made.status());
  const auto *registers = std::get_if<layout::DistributedLayout>(&*made);
  const auto *shared = std::get_if<layout::SharedLayout>(&*made);
  const int64_t elements = registers ? registers->numElements() : int64_t(1) << shared->numTensorBits();
  if (elements > mostDrawnElements)
    return invalidArgument(
        fmt::format("the layout has {} elements; at most {} are drawn", elements, mostDrawnElements));
  fmt::print(svgFile == standardOutput ? stderr : stdout, "{}\n{}", registers ? registers->toString() : shared->toString(),
             registers ? registers->toTable(mostDrawnElements) : layoutTable(*shared));
  if (svgFile.empty())
    return Status::ok();
  const std::string picture = registers ? layoutSvg(*registers) : layoutSvg(*shared);
  if (svgFile != standardOutput)
    return writeWholeFile(svgFile, picture).withContext("--svg");
  std::fwrite(picture.data(), 1, picture.size(), stdout);
  return Status::ok();
}

using Maker = Expected<AnyLayout> (*)(const LayoutArguments &);

/// One form of the command, with the options that all have.
CLI::App *addForm(CLI::App *parent, CommandContext &context, const std::string &name, const std::string &help, Maker make,
                  const std::shared_ptr<LayoutArguments> &arguments) {
  CLI::App *form = parent->add_subcommand(name, help);
  form->add_option("--svg", arguments->svg, "Write a picture to this file; - is standard output")->type_name("FILE.svg");
  form->callback([=, &context] {
    const Status writable = checkCanWrite("--svg", arguments->svg);
    context.finish(writable.isOk() ? draw(make(*arguments), arguments->svg) : writable);
  });
  return form;
}

void addShape(CLI::App *form, LayoutArguments &arguments, const std::string &help) {
  form->add_option("--shape", arguments.shape, help)->required()->type_name("SIZES");
}

} // namespace

void addLayoutCommand(CLI::App &app, CommandContext &context) {
  CLI::App *command = app.add_subcommand("layout", "Draw how a tile lies in registers or in shared memory");
  command->require_subcommand(1);
  command->footer("Registers: each element's first holder as warp.lane:register. Shared memory: a line per 128 bytes, the element at "
                  "each place.");
  auto arguments = std::make_shared<LayoutArguments>();
  const auto addWarps = [&](CLI::App *form) {
    form->add_option("--warps", arguments->warps, "Warps of the block")->check(integerBetween(1, 32))->capture_default_str();
  };
  const auto addBits = [&](CLI::App *form) {
    form->add_option("--bits", arguments->bits, "Of an element")->check(CLI::IsMember({8, 16, 32, 64}))->capture_default_str();
  };

  const auto addOperand = [&](CLI::App *form) {
    form->add_option("--operand", arguments->operand, "a, b or c")->check(CLI::IsMember({"a", "b", "c"}))->capture_default_str();
  };

  CLI::App *tile = addForm(command, context, "tile", "Registers, for access to consecutive memory", makeTile, arguments);
  addShape(tile, *arguments, "Of the tile, as in 16x32");
  tile->add_option("--per-thread", arguments->perThread, "Consecutive elements of a thread")
      ->check(integerBetween(1, 1024))
      ->capture_default_str();
  tile->add_option("--lanes", arguments->lanes, "Threads of a warp")->check(integerBetween(1, 64))->capture_default_str();
  addWarps(tile);
  tile->add_flag("--column-major", arguments->columnMajor, "The first dimension is the fastest");

  CLI::App *mma = addForm(command, context, "mma", "Registers, of an operand of a warp's multiply (mma.sync)", makeMma, arguments);
  addShape(mma, *arguments, "Of the product, MxNxK, as in 16x8x16");
  addOperand(mma);
  addBits(mma);
  addWarps(mma);

  CLI::App *wgmma = addForm(command, context, "wgmma", "Registers, of the accumulator of a warpgroup's multiply", makeWgmma, arguments);
  addShape(wgmma, *arguments, "Of the accumulator, MxN, as in 64x32");
  addWarps(wgmma);

  CLI::App *fma = addForm(command, context, "fma", "Registers, of an operand of a product without tensor cores", makeFma, arguments);
  addShape(fma, *arguments, "Of the product, MxNxK, as in 16x16x4");
  addOperand(fma);
  addWarps(fma);

  CLI::App *swizzled =
      addForm(command, context, "swizzled", "Shared memory, with the hardware's XOR swizzle", makeSwizzled, arguments);
  addShape(swizzled, *arguments, "Of the tile, as in 8x64");
  addBits(swizzled);
  swizzled->add_option("--bytes", arguments->bytes, "Of the swizzle; 0 for none")
      ->check(CLI::IsMember({0, 32, 64, 128}))
      ->capture_default_str();
  swizzled->add_flag("--column-major", arguments->columnMajor, "The first dimension is the fastest");

  CLI::App *text = addForm(command, context, "text", "The layout that is written out", readText, arguments);
  text->add_option("layout", arguments->text, "As the compiler prints it, of registers or of shared memory")
      ->required()
      ->type_name("LAYOUT");
}

} // namespace ditron::tool
