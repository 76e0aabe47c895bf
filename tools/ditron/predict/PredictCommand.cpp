//===- PredictCommand.cpp - ditron predict --------------------------------------------------------------------------===//
//
// How long an operator's call takes on a described machine (ditron/predict).
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "predict/PredictCommand.h"

#include "base/WorldText.h"

#include "ditron/predict/Prediction.h"
#include "ditron/support/OutputFile.h"
#include "ditron/support/Suggest.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::tool {

namespace {

using predict::Form;

struct PredictArguments {
  std::string op, machine = "h200x8", form, dtype = "bf16", tile, trace;
  std::vector<std::string> slowRanks;
  predict::Request request;
  uint32_t gpus = 0;
  bool asJson = false, listsMachines = false, usesRepresentatives = false;
};

/// The index of a word among accepted ones.
Expected<size_t> indexOf(std::string_view what, const std::string &word, const std::vector<std::string> &accepted) {
  const auto found = std::ranges::find(accepted, word);
  if (found == accepted.end())
    return invalidArgument(fmt::format("{} '{}' is not known{}; accepted are {}", what, word,
                                       didYouMean(word, accepted), fmt::join(accepted, ", ")));
  return found - accepted.begin();
}

Status listMachines() {
  for (const std::string &name : predict::machineNames()) {
    DITRON_ASSIGN_OR_RETURN(const predict::MachineDescription machine, predict::readMachine(name));
    fmt::print("{:<14} {}{}\n", name, machine.name,
               machine.network.mostNodes > 1
                   ? fmt::format(", up to {} nodes of {}", machine.network.mostNodes, machine.node.gpus)
                   : "");
  }
  return Status::ok();
}

Expected<predict::Request> makeRequest(const PredictArguments &arguments, const predict::MachineDescription &machine) {
  predict::Request request = arguments.request;
  DITRON_ASSIGN_OR_RETURN(const size_t op, indexOf("operator", arguments.op, predict::operatorNames()));
  request.op = static_cast<predict::Operator>(op);
  request.form = predict::formsOf(request.op).front();
  if (!arguments.form.empty()) {
    DITRON_ASSIGN_OR_RETURN(const size_t form, indexOf("--form", arguments.form, predict::formNames()));
    request.form = static_cast<Form>(form);
  }
  DITRON_ASSIGN_OR_RETURN(request.dtype, parseDataTypeOrError(arguments.dtype));
  request.gpus = arguments.gpus != 0 ? arguments.gpus : request.op == predict::Operator::Gemm ? 1 : machine.node.gpus;
  if (!arguments.tile.empty()) {
    DITRON_ASSIGN_OR_RETURN(request.tile, predict::parseTile(arguments.tile));
  }
  DITRON_ASSIGN_OR_RETURN(request.slowRanks, parseSlowRanks(arguments.slowRanks, request.gpus));
  if (arguments.usesRepresentatives)
    request.usesRepresentatives = true;
  request.keepsSpans = !arguments.trace.empty();
  return request;
}

Status runPredict(const PredictArguments &arguments) {
  if (arguments.listsMachines)
    return listMachines();
  if (arguments.op.empty())
    return invalidArgument(fmt::format("an operator is needed: {}", fmt::join(predict::operatorNames(), ", ")));
  DITRON_RETURN_IF_ERROR(checkCanWrite("--trace", arguments.trace));
  DITRON_ASSIGN_OR_RETURN(const predict::MachineDescription machine, predict::readMachine(arguments.machine));
  DITRON_ASSIGN_OR_RETURN(const predict::Request request, makeRequest(arguments, machine));
  DITRON_ASSIGN_OR_RETURN(const predict::Prediction prediction, predict::predict(machine, request));
  std::FILE *out = arguments.trace == standardOutput ? stderr : stdout;
  fmt::print(out, "{}", arguments.asJson ? predict::toJson(prediction) : predict::toText(prediction));
  if (arguments.trace.empty())
    return Status::ok();
  const std::string trace = predict::renderTrace(prediction.spans);
  if (arguments.trace != standardOutput)
    return writeWholeFile(arguments.trace, trace).withContext("--trace");
  std::fwrite(trace.data(), 1, trace.size(), stdout);
  return Status::ok();
}

} // namespace

void addPredictCommand(CLI::App &app, CommandContext &context) {
  CLI::App *command = app.add_subcommand("predict", "Predict the time of an operator's call on a described machine");
  command->footer("Sizes are those of the whole operator: ag_gemm computes [m, n / gpus] on each GPU, gemm_rs "
                  "multiplies k / gpus.\n"
                  "What the model knows, and how far it is from measured and published times: docs/predict.md.");
  auto arguments = std::make_shared<PredictArguments>();
  command->add_option("op", arguments->op, fmt::format("{}", fmt::join(predict::operatorNames(), ", ")))
      ->type_name("OP");
  command->add_option("--machine", arguments->machine, "A name of --list-machines, or the path of a description")
      ->type_name("NAME|FILE.json")
      ->capture_default_str();
  command->add_flag("--list-machines", arguments->listsMachines, "List the machines that are known by name");
  command->add_option("--gpus", arguments->gpus, "Ranks; a node's when not given")
      ->check(integerBetween(1, 1 << 20))
      ->type_name("N");
  command
      ->add_option(
          "--form", arguments->form,
          fmt::format("{}; what an operator has is said when it is another", fmt::join(predict::formNames(), ", ")))
      ->type_name("FORM");
  command->add_option("--dtype", arguments->dtype, "Of the operands")->capture_default_str();
  constexpr uint64_t mostSize = uint64_t(1) << 40;
  predict::Request &request = arguments->request;
  for (auto [name, field, help] : std::initializer_list<std::tuple<const char *, int64_t *, const char *>>{
           {"--m", &request.m, "Rows of the product"},
           {"--n", &request.n, "Columns of the product"},
           {"--k", &request.k, "Depth of the product"},
           {"--bytes", &request.bytes, "Of a collective: each rank's, to each peer for all_to_all; all of all_reduce"},
           {"--tokens", &request.tokens, "Of all ranks; for ep_dispatch and ep_combine of each"},
           {"--hidden", &request.hidden, "Elements of a token"},
           {"--intermediate", &request.intermediate, "Width of an expert, over all ranks"},
           {"--experts", &request.experts, "In all"},
           {"--topk", &request.topk, "Experts of a token"},
           {"--batch", &request.batch, "Sequences of attention"},
           {"--heads", &request.heads, "Heads of queries"},
           {"--kv-heads", &request.kvHeads, "Heads of keys and values"},
           {"--head-dim", &request.headDim, "Elements of a head"},
           {"--context", &request.context, "Tokens of keys and values, over all ranks"}})
    command->add_option(name, *field, help)->check(integerBetween(1, mostSize))->type_name("N");
  command
      ->add_option("--tile", arguments->tile, "Of the product, as in 128x256x64; the operator's choice when not given")
      ->type_name("MxNxK");
  command->add_option("--chunks", request.chunksPerRank, "ag_gemm: signals per shard")
      ->check(integerBetween(1, 64))
      ->capture_default_str();
  command->add_option("--communication-sms", request.communicationSms, "one_shot, two_shot: SMs that move bytes")
      ->check(integerBetween(1, 4096))
      ->type_name("N");
  command->add_option("--slow-rank", arguments->slowRanks, "Make a rank slower by a factor; may be repeated")
      ->type_name("R:FACTOR");
  command->add_flag("--representatives", arguments->usesRepresentatives,
                    "Simulate one node, which stands for all; by itself above 256 GPUs where all nodes do the same");
  command->add_flag("--json", arguments->asJson, "Print JSON");
  command->add_option("--trace", arguments->trace, "Write a Chrome/Perfetto trace; - is standard output")
      ->type_name("FILE.json");
  command->callback([arguments, &context] { context.finish(runPredict(*arguments)); });
}

} // namespace ditron::tool
