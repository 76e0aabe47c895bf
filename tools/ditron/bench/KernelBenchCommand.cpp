//===- KernelBenchCommand.cpp - ditron bench gemm, grouped_gemm, softmax, rmsnorm, attention, orders -----------------------===//
//
// The command lines of the benchmarks of one GPU.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "bench/KernelBench.h"
#include "overlap/OverlapCommands.h"

namespace ditron::tool {

namespace {

void addRunOptions(CLI::App *command, KernelBenchOptions &options, const std::string &types = "bf16, fp16 or fp32") {
  command->add_option("--target", options.target, "What to run on: sim, cuda (this machine's GPU), or a full name")
      ->capture_default_str();
  command->add_option("--dtype", options.dtype, types)->capture_default_str();
  command->add_option("--rounds", options.timing.rounds, "Rounds in which all take turns; the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--milliseconds", options.timing.millisecondsPerRound, "Of each in a round")
      ->check(CLI::Range(0.01, 60000.0))
      ->capture_default_str();
  command->add_option("--seed", options.seed, "Chooses the data")->capture_default_str();
  command->add_option("--json", options.jsonFile, "Write the result to this file; - is standard output")
      ->type_name("FILE");
  command->add_option("--html", options.htmlFile, "Write a page with plots to this file; - is standard output")
      ->type_name("FILE");
  command->add_flag("--quiet", options.quiet, "Print errors only");
}

void addCommonOptions(CLI::App *command, KernelBenchOptions &options, const std::string &shapeForm,
                      const std::string &planForm, const std::string &types = "bf16, fp16 or fp32") {
  addRunOptions(command, options, types);
  command->add_option("--shape", options.shapes, shapeForm + ", may be given several times")->type_name("SHAPE");
  command->add_option("--plan", options.plans, "How to compute it, like '" + planForm + "'; several are compared")
      ->type_name("PLAN");
}

} // namespace

void addKernelBenchCommands(CLI::App &bench, CommandContext &context) {
  CLI::App *gemm = bench.add_subcommand("gemm", "C = A * B on one GPU, beside cuBLAS");
  auto gemmOptions = std::make_shared<GemmBenchOptions>();
  addCommonOptions(
      gemm, *gemmOptions, "MxNxK", ops::GemmPlan().text(),
      "Of A and B: bf16, fp16, fp32, fp8e4nv, fp8e5 or i8; C is bf16 of 8-bit operands, else of their type");
  gemm->add_option("--order", gemmOptions->order, "B is [N, K] (nk) or [K, N] (kn)")
      ->check(CLI::IsMember({"nk", "kn"}))
      ->capture_default_str();
  gemm->add_option("--precision", gemmOptions->precision, "How fp32 operands are multiplied")
      ->check(CLI::IsMember({"tf32", "ieee"}))
      ->capture_default_str();
  gemm->add_option("--scales", gemmOptions->scales,
                   "Of 8-bit operands: none, one of each matrix (tensor, the default), or one of each row of A and "
                   "column of B (vector)")
      ->check(CLI::IsMember({"none", "tensor", "vector"}));
  gemm->add_option("--peer", gemmOptions->peer,
                   "cuBLAS, for 8-bit operands cuBLASLt, to compare with: its path, auto, or none")
      ->capture_default_str();
  gemm->add_flag("--peer-fast-accumulation", gemmOptions->peerFastAccumulation,
                 "fp8: the peer adds in the tensor cores alone, whose sums are shorter than fp32");
  gemm->add_option("--sweep", gemmOptions->sweep, "Also try this many plans, those predicted to be best")
      ->check(integerBetween(0, 1000));
  gemm->add_option("--movement", gemmOptions->movement, "Only plans that move tiles this way")
      ->check(CLI::IsMember({"descriptors", "pointers"}));
  addPlantOption(gemm, gemmOptions->fault);
  gemm->callback([&context, gemmOptions] { context.finish(benchGemm(*gemmOptions, context.knobs)); });

  CLI::App *grouped =
      bench.add_subcommand("grouped_gemm", "Rows of several experts times the weights of their own, on one GPU");
  auto groupedOptions = std::make_shared<GroupedGemmBenchOptions>();
  addCommonOptions(grouped, *groupedOptions, "TOKENSxNxKxEXPERTSxTOPK", ops::GemmPlan().text());
  grouped->add_option("--order", groupedOptions->order, "The weights of an expert are [N, K] (nk) or [K, N] (kn)")
      ->check(CLI::IsMember({"nk", "kn"}))
      ->capture_default_str();
  grouped
      ->add_option("--form", groupedOptions->form,
                   "rows: they lie sorted; gathered: from the tokens, and those of a token are added; else both")
      ->check(CLI::IsMember({"rows", "gathered"}));
  addPlantOption(grouped, groupedOptions->fault);
  grouped->callback([&context, groupedOptions] { context.finish(benchGroupedGemm(*groupedOptions, context.knobs)); });

  for (RowOperator op : {RowOperator::Softmax, RowOperator::RmsNorm}) {
    const bool softmax = op == RowOperator::Softmax;
    CLI::App *command = bench.add_subcommand(
        softmax ? "softmax" : "rmsnorm", softmax ? "Softmax of rows, beside a copy" : "RMSNorm of rows, beside a copy");
    auto options = std::make_shared<KernelBenchOptions>();
    addCommonOptions(command, *options, "ROWSxCOLUMNS", "pairs warps 32 blocks 1");
    command->callback([&context, options, op] { context.finish(benchRows(op, *options, context.knobs)); });
  }

  CLI::App *attention = bench.add_subcommand("attention", "Attention, forward or backward");
  auto attentionOptions = std::make_shared<AttentionBenchOptions>();
  addCommonOptions(attention, *attentionOptions, "BATCHxHEADSxKV_HEADSxSEQUENCExHEAD_DIM", ops::AttentionPlan().text(),
                   "bf16, fp16 or, forward, fp8e4nv");
  attention->add_flag("!--no-causal", attentionOptions->causal, "Every query sees every key");
  attention->add_flag("--backward", attentionOptions->backward, "Gradients of Q, K and V; a plan is two, 'PLAN, PLAN'");
  attention->add_option("--window", attentionOptions->window, "Keys in front of its own place that a query sees")
      ->check(integerBetween(0, 1 << 30));
  attention->add_option("--soft-cap", attentionOptions->softCap, "A score s becomes CAP * tanh(s / CAP)")
      ->type_name("CAP");
  attention->add_flag("--sinks", attentionOptions->sinks, "Each row has one more score, of its head");
  attention->add_flag("--alibi", attentionOptions->slopes, "Scores lose a head's slope for every key in between");
  attention
      ->add_option("--value-dim", attentionOptions->valueDim, "Elements of V and the result, where Q and K have others")
      ->check(integerBetween(1, 1 << 16));
  attention->add_flag("--rows-first", attentionOptions->rowsFirst, "Operands are [batch, rows, heads, dim]");
  attention->add_flag("--packed", attentionOptions->packed,
                      "Batches one behind the other, from SEQUENCE rows down to half of them");
  attention->add_option("--page-size", attentionOptions->pageSize, "K and V lie in pages of so many rows")
      ->check(integerBetween(1, 1 << 20));
  attention->add_flag("--values-transposed", attentionOptions->valuesTransposed, "V is [batch, kv_heads, dim, rows]");
  attention->callback(
      [&context, attentionOptions] { context.finish(benchAttention(*attentionOptions, context.knobs)); });

  CLI::App *orders =
      bench.add_subcommand("orders", "Softmax, RMSNorm, layer norm, attention: what the order of reductions costs");
  auto orderOptions = std::make_shared<KernelBenchOptions>();
  addRunOptions(orders, *orderOptions);
  orders->callback([&context, orderOptions] { context.finish(benchOrders(*orderOptions, context.knobs)); });
}

} // namespace ditron::tool
