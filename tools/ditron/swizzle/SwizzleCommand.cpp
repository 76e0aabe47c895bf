//===- SwizzleCommand.cpp - ditron swizzle ----------------------------------------------------------------------------===//
#include "swizzle/SwizzleCommand.h"

#include "swizzle/SwizzlePicture.h"

#include "ditron/support/OutputFile.h"

#include <fmt/format.h>

namespace ditron::tool {

namespace {

/// More cells than a picture can show.
constexpr int64_t mostTiles = 100000;

struct SwizzleArguments {
  SwizzleOptions options;
  std::optional<int64_t> m, n;
  std::string svgFile;
};

Status draw(SwizzleArguments &arguments) {
  SwizzleOptions &options = arguments.options;
  if (options.ranks % options.nodes != 0)
    return invalidArgument(
        fmt::format("--nodes {}: the number of nodes must divide that of ranks, {}", options.nodes, options.ranks));
  options.m = arguments.m.value_or(int64_t(2) * options.ranks * options.blockM);
  options.n = arguments.n.value_or(options.blockN);
  const int64_t tiles =
      ops::ceilDivide(options.m, options.blockM) * ops::ceilDivide(options.n, options.blockN) * options.ranks;
  if (tiles > mostTiles)
    return invalidArgument(
        fmt::format("{} tiles on {} ranks; at most {} can be drawn: choose fewer rows or columns, or larger tiles",
                    tiles, options.ranks, mostTiles));
  DITRON_RETURN_IF_ERROR(checkCanWrite("--svg", arguments.svgFile));
  fmt::print(arguments.svgFile == standardOutput ? stderr : stdout, "{}", swizzleText(options));
  if (arguments.svgFile.empty())
    return Status::ok();
  const std::string picture = swizzleSvg(options);
  if (arguments.svgFile != standardOutput)
    return writeWholeFile(arguments.svgFile, picture).withContext("--svg");
  fmt::print("{}", picture);
  return Status::ok();
}

void addOperator(CLI::App &swizzle, CommandContext &context, std::string_view name, bool gathers,
                 const std::string &description) {
  CLI::App *command = swizzle.add_subcommand(std::string(name), description);
  auto arguments = std::make_shared<SwizzleArguments>();
  SwizzleOptions &options = arguments->options;
  options.gathers = gathers;
  const auto number = [&](const char *option, auto &value, uint64_t most, const char *help) {
    return command->add_option(option, value, help)->check(integerBetween(1, most));
  };
  number("--m", arguments->m, INT32_MAX,
         "Rows of the product, of all ranks together; without it two tiles for each rank");
  number("--n", arguments->n, INT32_MAX, "Columns of a rank's product; without it one tile");
  number("--ranks", options.ranks, 1024, "Number of GPUs")->capture_default_str();
  number("--nodes", options.nodes, 1024, "Nodes that the ranks are spread over")->capture_default_str();
  number("--block-m", options.blockM, 1024, "Rows of a tile")->capture_default_str();
  number("--block-n", options.blockN, 1024, "Columns of a tile")->capture_default_str();
  number("--group-m", options.groupM, 1024, "Rows of tiles that are computed together")->capture_default_str();
  command->add_flag("--plain", options.plain, "From the first row of tiles to the last on every rank, to compare with");
  command->add_option("--svg", arguments->svgFile, "Write a picture to this file; - is standard output")
      ->type_name("FILE.svg");
  command->callback([&context, arguments] { context.finish(draw(*arguments)); });
}

} // namespace

void addSwizzleCommand(CLI::App &app, CommandContext &context) {
  CLI::App *swizzle =
      app.add_subcommand("swizzle", "Show which tile of an overlapped operator each rank computes when");
  swizzle->require_subcommand(1);
  addOperator(*swizzle, context, "ag_gemm", true, "AllGather+GEMM: tiles by the ranks whose rows they are");
  addOperator(*swizzle, context, "gemm_rs", false, "GEMM+ReduceScatter: tiles by the ranks to which their rows go");
}

} // namespace ditron::tool
