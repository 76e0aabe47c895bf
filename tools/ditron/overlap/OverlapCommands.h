//===- OverlapCommands.h - ditron bench and ditron demo ------------------------------------------------------*- C++ -*-===//
//
// The subcommands that run the library's operators. main.cpp lists them beside those of Command.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_OVERLAPCOMMANDS_H
#define DITRON_TOOLS_DITRON_OVERLAPCOMMANDS_H

#include "base/Command.h"

namespace ditron::tool {

/// `ditron bench ag_gemm|gemm_rs|gemm_ar`: one operator with chosen shapes, checked when asked to, as text and as JSON.
void addBenchCommand(CLI::App &app, CommandContext &context);
/// `ditron bench gemm|grouped_gemm|softmax|rmsnorm|attention|orders`, below `ditron bench`: kernels of one GPU.
void addKernelBenchCommands(CLI::App &bench, CommandContext &context);
/// `ditron bench attention_decode`, below `ditron bench`: on one GPU, or with keys spread over several.
void addAttentionDecodeBenchCommand(CLI::App &bench, CommandContext &context);
/// `ditron bench attention_layer`, below `ditron bench`: a layer of attention whose heads are dealt out to the ranks.
void addAttentionLayerBenchCommand(CLI::App &bench, CommandContext &context);
/// `ditron bench gemm_a2a|a2a_gemm`, below `ditron bench`: products around attention by heads.
void addUlyssesBenchCommands(CLI::App &bench, CommandContext &context);
/// `ditron bench ag_attention|ring_attention`, below `ditron bench`: attention to the keys of all ranks.
void addTokenAttentionBenchCommands(CLI::App &bench, CommandContext &context);
/// `ditron bench all_reduce|all_gather|...`, below `ditron bench`: collectives by sizes and plans.
void addCollectiveBenchCommands(CLI::App &bench, CommandContext &context);
/// Of AllReduce with residual and RMSNorm.
void addRmsNormBenchCommand(CLI::App &bench, CommandContext &context);
/// `ditron bench all_to_all_v|send_receive|barrier`, below `ditron bench`: transfers by sizes.
void addTransferBenchCommands(CLI::App &bench, CommandContext &context);
/// ag_moe, moe_rs, moe_ar.
void addMoeBenchCommands(CLI::App &bench, CommandContext &context);
/// `ditron bench ep_dispatch|ep_combine`, below `ditron bench`: tokens to the ranks of their experts, and back.
void addExpertParallelBenchCommands(CLI::App &bench, CommandContext &context);
/// `ditron bench ep_fused`: products of experts beside the exchange of their tokens.
void addFusedExpertParallelBenchCommand(CLI::App &bench, CommandContext &context);
/// `ditron demo`: both operators on 8 simulated GPUs, verified; fails when a result is wrong or nothing overlapped.
void addDemoCommand(CLI::App &app, CommandContext &context);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_OVERLAPCOMMANDS_H
