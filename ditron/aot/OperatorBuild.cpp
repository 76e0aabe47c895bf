//===- OperatorBuild.cpp - The kernels that operators need, into a package ------------------------------------------------===//
#include "ditron/aot/OperatorBuild.h"

#include "ditron/aot/ShapeText.h"
#include "ditron/ops/Gemm.h"
#include "ditron/ops/RowWise.h"
#include "ditron/ops/attention/Attention.h"
#include "ditron/ops/collectives/AllToAllV.h"
#include "ditron/ops/collectives/Barrier.h"
#include "ditron/ops/collectives/Collective.h"
#include "ditron/ops/collectives/SendReceive.h"
#include "ditron/ops/tensor_parallel/AllGatherGemm.h"
#include "ditron/ops/tensor_parallel/GemmAllReduce.h"
#include "ditron/ops/tensor_parallel/GemmReduceScatter.h"
#include "ditron/support/Plural.h"
#include "ditron/support/Suggest.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::aot {

namespace {

/// What an operator is built in.
struct Workbench {
  PackageBuilder &builder;
  const OperatorOrder &order;
  ShapeText shape;
  runtime::WorldOptions options = {};
  package::OperatorPlan note = {};

  Expected<std::unique_ptr<runtime::World>> world(uint32_t numRanks) {
    return runtime::World::forPlanning(numRanks, order.target, options);
  }
};

/// libraryTile where the shape says nothing of it: what programs find at run time. `chosen` is what the library's model takes; where the
/// shape names blocks, the rest has its own defaults.
Expected<ops::TileConfig> readTile(ShapeText &shape, const ops::TileConfig &chosen) {
  const std::string blocks = shape.text("tile", "");
  const int64_t warps = shape.integer("warps", 0, 0), stages = shape.integer("stages", 0, 0),
                group = shape.integer("group", 0, 0);
  if (blocks.empty() && warps == 0 && stages == 0 && group == 0)
    return ops::libraryTile;
  const ops::TileConfig defaults = blocks.empty() ? chosen : ops::TileConfig();
  const std::string rest = fmt::format("warps {} stages {} group {}", warps ? warps : defaults.numWarps,
                                       stages ? stages : defaults.numStages, group ? group : defaults.groupM);
  DITRON_ASSIGN_OR_RETURN(const ops::GemmPlan plan, ops::parseGemmPlan(fmt::format("{} {}", blocks, rest),
                                                                       {ops::GemmMovement::Pointers, defaults}));
  return plan.tile;
}

Expected<ops::MatrixOrder> readOrder(ShapeText &shape, ops::MatrixOrder fallback) {
  const std::string text = shape.text("weights", fallback == ops::MatrixOrder::Plain ? "plain" : "transposed");
  if (text != "plain" && text != "transposed")
    return invalidArgument(fmt::format("weights={}: accepted are plain and transposed", text));
  return text == "plain" ? ops::MatrixOrder::Plain : ops::MatrixOrder::Transposed;
}

Expected<ops::MultiplyPrecision> readPrecision(ShapeText &shape) {
  const std::string text = shape.text("precision", "tf32");
  if (text != "tf32" && text != "ieee")
    return invalidArgument(fmt::format("precision={}: accepted are tf32 and ieee", text));
  return text == "tf32" ? ops::MultiplyPrecision::Tf32 : ops::MultiplyPrecision::Ieee;
}

/// A part of the name of the GPU that people mean by a target.
std::string_view usualGpu(const TargetName &target) {
  return target.simulated                  ? "simulated"
         : target.architecture == "sm_80"  ? "A100"
         : target.architecture == "sm_89"  ? "L40S"
         : target.architecture == "sm_90a" ? "H100"
                                           : "B200";
}

/// Types of the result and the bias, scales, activation.
Status readEpilogue(ShapeText &shape, DataType dtype, std::optional<DataType> &resultType,
                    ops::GemmEpilogue &epilogue) {
  const DataType result = shape.type("result_type", ops::defaultResultType(dtype));
  resultType = result;
  DITRON_ASSIGN_OR_RETURN(epilogue.scalesA, ops::parseScaling(shape.text("scales_a", "none")));
  DITRON_ASSIGN_OR_RETURN(epilogue.scalesB, ops::parseScaling(shape.text("scales_b", "none")));
  if (shape.flag("bias", false))
    epilogue.bias = shape.type("bias_type", result);
  DITRON_ASSIGN_OR_RETURN(epilogue.activation, ops::parseActivation(shape.text("activation", "none")));
  return Status::ok();
}

/// Elements from row to row; 0, the default: no gap.
ops::RowStrides readStrides(ShapeText &shape) {
  return {shape.integer("stride_a", 0, 0), shape.integer("stride_b", 0, 0), shape.integer("stride_c", 0, 0)};
}

/// ag_gemm, gemm_rs and gemm_ar: the options that they share, a world, and the calls of all ranks.
template <typename Operator> Status addOverlapped(Workbench &bench) {
  constexpr bool isGather = std::is_same_v<Operator, ops::AllGatherGemm>;
  constexpr bool isAllReduce = std::is_same_v<Operator, ops::GemmAllReduce>;
  ShapeText &shape = bench.shape;
  typename Operator::Options options;
  const int64_t m = shape.integer("m"), n = shape.integer("n"), k = shape.integer("k");
  const int64_t ranks = shape.integer("ranks"), mostRows = shape.integer("max_m", m);
  options.dtype = shape.type("dtype", DataType::BF16);
  DITRON_ASSIGN_OR_RETURN(const TargetName target, parseTargetName(bench.order.target));
  if constexpr (!isAllReduce) {
    const int64_t nodes = shape.integer("nodes", 1);
    // GPUs of one machine are one node: there it is the order of tiles only.
    if (target.simulated && nodes > 1 && ranks % nodes == 0)
      bench.options.ranksPerNode = static_cast<uint32_t>(ranks / nodes);
    options.numNodes = static_cast<uint32_t>(nodes);
  }
  DITRON_ASSIGN_OR_RETURN(options.weightOrder, readOrder(shape, options.weightOrder));
  DITRON_ASSIGN_OR_RETURN(options.precision, readPrecision(shape));
  DITRON_RETURN_IF_ERROR(readEpilogue(shape, options.dtype, options.resultType, options.epilogue));
  const ops::RowStrides strides = readStrides(shape);
  DITRON_ASSIGN_OR_RETURN(const std::unique_ptr<runtime::World> world,
                          bench.world(static_cast<uint32_t>(std::min<int64_t>(ranks, UINT32_MAX))));
  ops::GemmProblem problem;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.dtype = options.dtype;
  problem.resultType = options.resultType;
  problem.order = options.weightOrder;
  problem.epilogue = options.epilogue;
  options.gpu = shape.text("gpu", usualGpu(target));
  DITRON_ASSIGN_OR_RETURN(options.tile, readTile(shape, ops::chooseTile(problem, *world)));
  if constexpr (isAllReduce) {
    const std::string form = shape.text("form", "auto");
    const std::optional<ops::AllReduceForm> parsed = ops::parseAllReduceForm(form);
    if (!parsed)
      return invalidArgument(
          fmt::format("form={}: accepted are auto, one_shot, fused_two_shot, two_shot, pushed and unfused", form));
    options.form = *parsed;
  } else if (shape.flag("unfused", false)) {
    options.schedule = ops::Schedule::Unfused;
  }
  options.maxRows = mostRows;
  options.depth = k;
  if constexpr (isGather) {
    options.chunksPerRank = static_cast<uint32_t>(shape.integer("chunks", 0, 0));
  } else {
    options.columns = n;
  }
  DITRON_RETURN_IF_ERROR(shape.finish());
  RecordingProvider kernels(bench.builder, bench.order.target);
  DITRON_ASSIGN_OR_RETURN(Operator op, Operator::create(*world, kernels, options));
  for (uint32_t rank : world->localRanks())
    DITRON_RETURN_IF_ERROR(op.prepare(world->rank(rank), m, isGather ? n : k, strides));
  if constexpr (isAllReduce)
    bench.note.plan = op.planText(m);
  else
    bench.note.plan = op.planText(m, isGather ? n : k);
  bench.note.workspaceBytes = op.workspaceBytes();
  return Status::ok();
}

template <ops::CollectiveKind kind> Status addCollective(Workbench &bench) {
  constexpr bool reduces = kind == ops::CollectiveKind::AllReduce || kind == ops::CollectiveKind::ReduceScatter;
  ShapeText &shape = bench.shape;
  DITRON_ASSIGN_OR_RETURN(const TargetName target, parseTargetName(bench.order.target));
  const int64_t elements = shape.integer("elements"), ranks = shape.integer("ranks");
  ops::CollectiveOptions options;
  options.kind = kind;
  options.maxElements = shape.integer("max_elements", elements);
  options.dtype = shape.type("dtype", DataType::BF16);
  options.gpu = shape.text("gpu", usualGpu(target));
  if constexpr (reduces) {
    DITRON_ASSIGN_OR_RETURN(options.reduction, ops::parseReduction(shape.text("reduction", "sum")));
    if (shape.flag("scaled", false))
      options.scale = 1.0f; // which one is said at run time
  }
  if constexpr (kind == ops::CollectiveKind::Broadcast)
    options.root = static_cast<uint32_t>(std::min<int64_t>(shape.integer("root", 0, 0), UINT32_MAX));
  DITRON_RETURN_IF_ERROR(shape.finish());
  DITRON_ASSIGN_OR_RETURN(const std::unique_ptr<runtime::World> world,
                          bench.world(static_cast<uint32_t>(std::min<int64_t>(ranks, UINT32_MAX))));
  RecordingProvider kernels(bench.builder, bench.order.target);
  DITRON_ASSIGN_OR_RETURN(ops::Collective op, ops::Collective::create(*world, kernels, options));
  for (uint32_t rank : world->localRanks())
    DITRON_RETURN_IF_ERROR(op.prepare(world->rank(rank), elements));
  bench.note.plan = op.planFor(elements).text();
  bench.note.workspaceBytes = op.workspaceBytes();
  return Status::ok();
}

/// The ranks that a shape names, and the GPU whose plans are asked for.
Expected<std::unique_ptr<runtime::World>> readRanks(Workbench &bench, std::string &gpu) {
  DITRON_ASSIGN_OR_RETURN(const TargetName target, parseTargetName(bench.order.target));
  gpu = bench.shape.text("gpu", usualGpu(target));
  return bench.world(static_cast<uint32_t>(std::min<int64_t>(bench.shape.integer("ranks"), UINT32_MAX)));
}

/// Prepares an operator whose code serves calls of all sizes.
template <typename Operator> Status prepareAll(Workbench &bench, runtime::World &world, Operator &op) {
  for (uint32_t rank : world.localRanks())
    DITRON_RETURN_IF_ERROR(op.prepare(world.rank(rank)));
  if constexpr (requires { op.workspaceBytes(); })
    bench.note.workspaceBytes = op.workspaceBytes();
  return Status::ok();
}

Status addAllToAllV(Workbench &bench) {
  ops::AllToAllVOptions options;
  options.maxRows = bench.shape.integer("max_rows");
  options.rowElements = bench.shape.integer("row_elements", 1);
  options.dtype = bench.shape.type("dtype", DataType::BF16);
  options.packed = bench.shape.flag("packed", false);
  DITRON_ASSIGN_OR_RETURN(const std::unique_ptr<runtime::World> world, readRanks(bench, options.gpu));
  DITRON_RETURN_IF_ERROR(bench.shape.finish());
  RecordingProvider kernels(bench.builder, bench.order.target);
  DITRON_ASSIGN_OR_RETURN(ops::AllToAllV op, ops::AllToAllV::create(*world, kernels, options));
  bench.note.plan = fmt::format("packets up to {}, rings above", plural(op.packetRows(), "row"));
  return prepareAll(bench, *world, op);
}

Status addSendReceive(Workbench &bench) {
  ops::SendReceiveOptions options;
  options.dtype = bench.shape.type("dtype", DataType::BF16);
  DITRON_ASSIGN_OR_RETURN(const std::unique_ptr<runtime::World> world, readRanks(bench, options.gpu));
  DITRON_RETURN_IF_ERROR(bench.shape.finish());
  RecordingProvider kernels(bench.builder, bench.order.target);
  DITRON_ASSIGN_OR_RETURN(ops::SendReceive op, ops::SendReceive::create(*world, kernels, options));
  bench.note.plan = "rings";
  return prepareAll(bench, *world, op);
}

Status addBarrier(Workbench &bench) {
  std::string gpu; // it makes no difference
  DITRON_ASSIGN_OR_RETURN(const std::unique_ptr<runtime::World> world, readRanks(bench, gpu));
  DITRON_RETURN_IF_ERROR(bench.shape.finish());
  RecordingProvider kernels(bench.builder, bench.order.target);
  DITRON_ASSIGN_OR_RETURN(ops::Barrier op, ops::Barrier::create(*world, kernels));
  bench.note.plan = "one block";
  return prepareAll(bench, *world, op);
}

/// Operands of operators on one GPU.
struct Operands {
  std::unique_ptr<runtime::World> world;
  std::vector<runtime::Buffer> buffers;

  /// An address for planning: it stands for memory of any size, aligned as all allocations are.
  Expected<runtime::Pointer> add(DataType type) {
    DITRON_ASSIGN_OR_RETURN(runtime::Buffer buffer, world->rank(0).allocate(type, 1, "operand"));
    buffers.push_back(std::move(buffer));
    return buffers.back().pointer();
  }
};

Status addGemm(Workbench &bench) {
  ShapeText &shape = bench.shape;
  ops::GemmProblem problem;
  problem.m = shape.integer("m");
  problem.n = shape.integer("n");
  problem.k = shape.integer("k");
  problem.dtype = shape.type("dtype", DataType::BF16);
  DITRON_ASSIGN_OR_RETURN(problem.order, readOrder(shape, problem.order));
  DITRON_ASSIGN_OR_RETURN(problem.precision, readPrecision(shape));
  DITRON_RETURN_IF_ERROR(readEpilogue(shape, problem.dtype, problem.resultType, problem.epilogue));
  problem.strides = readStrides(shape);
  DITRON_ASSIGN_OR_RETURN(const TargetName target, parseTargetName(bench.order.target));
  const std::string gpu = shape.text("gpu", usualGpu(target));
  DITRON_RETURN_IF_ERROR(shape.finish());
  Operands operands;
  DITRON_ASSIGN_OR_RETURN(operands.world, bench.world(1));
  RecordingProvider kernels(bench.builder, bench.order.target);
  DITRON_ASSIGN_OR_RETURN(const runtime::Pointer any, operands.add(problem.dtype));
  const runtime::Pointer result = any.as(problem.typeOfResult()), none;
  ops::EpilogueOperands extras;
  extras.scalesA = problem.epilogue.scalesA == ops::Scaling::None ? none : any.as(DataType::F32);
  extras.scalesB = problem.epilogue.scalesB == ops::Scaling::None ? none : any.as(DataType::F32);
  extras.bias = problem.epilogue.bias ? any.as(*problem.epilogue.bias) : none;
  runtime::Rank &rank = operands.world->rank(0);
  DITRON_ASSIGN_OR_RETURN(const ops::GemmPlan plan, ops::libraryGemmPlan(problem, *operands.world, gpu));
  bench.note.plan = plan.text();
  return ops::prepareGemm(kernels, rank, problem, any, any, result, plan, extras).status();
}

Status addAttention(Workbench &bench) {
  ShapeText &shape = bench.shape;
  ops::AttentionProblem problem;
  problem.batch = shape.integer("batch", 1);
  problem.heads = shape.integer("heads");
  problem.kvHeads = shape.integer("kv_heads", problem.heads);
  problem.queries = shape.integer("queries");
  problem.keys = shape.integer("keys", problem.queries);
  problem.headDim = shape.integer("head_dim", 128);
  problem.causal = shape.flag("causal", false);
  problem.dtype = shape.type("dtype", DataType::BF16);
  DITRON_ASSIGN_OR_RETURN(const TargetName target, parseTargetName(bench.order.target));
  const std::string gpu = shape.text("gpu", usualGpu(target));
  DITRON_RETURN_IF_ERROR(shape.finish());
  Operands operands;
  DITRON_ASSIGN_OR_RETURN(operands.world, bench.world(1));
  RecordingProvider kernels(bench.builder, bench.order.target);
  DITRON_ASSIGN_OR_RETURN(const runtime::Pointer any, operands.add(problem.dtype));
  DITRON_ASSIGN_OR_RETURN(const ops::AttentionPlan plan, ops::libraryAttentionPlan(problem, *operands.world, gpu));
  bench.note.plan = plan.text();
  return ops::prepareAttention(kernels, operands.world->rank(0), problem, {any, any, any, any}, plan).status();
}

enum class RowOperator { Softmax, RmsNorm, LayerNorm };

template <RowOperator op> Status addRows(Workbench &bench) {
  ShapeText &shape = bench.shape;
  ops::RowProblem problem;
  problem.rows = shape.integer("rows");
  problem.columns = shape.integer("columns");
  problem.dtype = shape.type("dtype", DataType::BF16);
  DITRON_RETURN_IF_ERROR(shape.finish());
  Operands operands;
  DITRON_ASSIGN_OR_RETURN(operands.world, bench.world(1));
  RecordingProvider kernels(bench.builder, bench.order.target);
  DITRON_ASSIGN_OR_RETURN(const runtime::Pointer any, operands.add(problem.dtype));
  runtime::Rank &rank = operands.world->rank(0);
  bench.note.plan = ops::chooseRowPlan(problem).text();
  if constexpr (op == RowOperator::Softmax)
    return ops::prepareSoftmax(kernels, rank, problem, any, any).status();
  else if constexpr (op == RowOperator::RmsNorm)
    return ops::prepareRmsNorm(kernels, rank, problem, any, any, any).status();
  else
    return ops::prepareLayerNorm(kernels, rank, problem, any, any, any, any).status();
}

struct OperatorEntry {
  std::string_view name;
  std::string_view help;
  Status (*add)(Workbench &);
};

constexpr std::string_view overlappedHelp =
    "m n k ranks [max_m=m dtype=bf16 weights=plain precision=tf32 tile=BMxBNxBK warps stages group gpu=usual "
    "result_type=dtype "
    "scales_a=none "
    "scales_b=none bias=0 bias_type=result_type stride_a=0 stride_b=0 stride_c=0";
constexpr std::string_view rowHelp = "rows columns [dtype=bf16]";
constexpr std::string_view moveHelp = "elements ranks [max_elements=elements dtype=bf16 gpu=usual]: elements of a part";
constexpr std::string_view reduceHelp =
    "elements ranks [max_elements=elements dtype=bf16 reduction=sum scaled=0 gpu=usual]: elements of a part";

const std::vector<OperatorEntry> &operatorTable() {
  static const std::vector<OperatorEntry> table = {
      {"ag_gemm", "activation=none nodes=1 unfused=0 chunks]: n of each rank", addOverlapped<ops::AllGatherGemm>},
      {"gemm_rs", "nodes=1 unfused=0]: k of each rank", addOverlapped<ops::GemmReduceScatter>},
      {"gemm_ar", "form=auto]: k of each rank", addOverlapped<ops::GemmAllReduce>},
      {"all_reduce", reduceHelp, addCollective<ops::CollectiveKind::AllReduce>},
      {"all_gather", moveHelp, addCollective<ops::CollectiveKind::AllGather>},
      {"reduce_scatter", reduceHelp, addCollective<ops::CollectiveKind::ReduceScatter>},
      {"all_to_all", moveHelp, addCollective<ops::CollectiveKind::AllToAll>},
      {"broadcast", "elements ranks [max_elements=elements dtype=bf16 root=0 gpu=usual]",
       addCollective<ops::CollectiveKind::Broadcast>},
      {"all_to_all_v", "max_rows ranks [row_elements=1 dtype=bf16 packed=0 gpu=usual]: rows of a part", addAllToAllV},
      {"send_receive", "ranks [dtype=bf16 gpu=usual]", addSendReceive},
      {"barrier", "ranks", addBarrier},
      {"gemm",
       "m n k [dtype=bf16 weights=transposed precision=tf32 gpu=usual result_type=dtype scales_a=none scales_b=none "
       "bias=0 "
       "bias_type=result_type "
       "activation=none stride_a=0 stride_b=0 stride_c=0]",
       addGemm},
      {"attention", "heads queries [batch=1 kv_heads=heads keys=queries head_dim=128 causal=0 dtype=bf16 gpu=usual]",
       addAttention},
      {"softmax", rowHelp, addRows<RowOperator::Softmax>},
      {"rms_norm", rowHelp, addRows<RowOperator::RmsNorm>},
      {"layer_norm", rowHelp, addRows<RowOperator::LayerNorm>},
  };
  return table;
}

/// Multiprocessors of the GPU that people mean by a target: A100, L40S, H100 and H200, B200.
uint32_t usualMultiprocessors(const TargetName &target) {
  if (target.simulated)
    return runtime::WorldOptions().sms;
  return target.architecture == "sm_80"    ? 108
         : target.architecture == "sm_89"  ? 142
         : target.architecture == "sm_90a" ? 132
                                           : 148;
}

void nothing(void **) {}

} // namespace

Expected<runtime::Specialisation> RecordingProvider::specialise(const runtime::KernelReference &kernel,
                                                                const runtime::CallArguments &arguments,
                                                                const runtime::LaunchOptions &options) {
  const VariantOrder order = VariantOrder::of(kernel, targetText);
  DITRON_ASSIGN_OR_RETURN(PackageBuilder::CallVariant added, builder.addCall(order, arguments, options));
  // What the planning world gets has the interface of the kernel and no code: it takes any device's place.
  Artifact artifact = added.variant->artifact;
  artifact.target = "sim:" + targetText.substr(targetText.find(':') + 1);
  if (!parseTargetName(artifact.target).isOk())
    artifact.target = "sim:sm_90a";
  artifact.codeKind = ArtifactCode::HostObject;
  artifact.sharedBytes = 0;
  runtime::ModuleImage image;
  image.hostEntry = nothing;
  DITRON_ASSIGN_OR_RETURN(runtime::Kernel stand, runtime::Kernel::create(std::move(artifact), std::move(image)));
  return runtime::Specialisation{std::move(stand), std::move(added.arguments)};
}

const std::vector<std::string> &operatorNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const OperatorEntry &entry : operatorTable())
      all.emplace_back(entry.name);
    return all;
  }();
  return names;
}

std::string operatorHelp() {
  std::string text;
  for (const OperatorEntry &entry : operatorTable()) {
    const bool isOverlapped = entry.name == "ag_gemm" || entry.name == "gemm_rs" || entry.name == "gemm_ar";
    text +=
        fmt::format("  {:<15}{}{}\n", entry.name, isOverlapped ? fmt::format("{} ", overlappedHelp) : "", entry.help);
  }
  return text;
}

Status addOperator(PackageBuilder &builder, const OperatorOrder &order) {
  const auto entry = std::ranges::find(operatorTable(), std::string_view(order.op), &OperatorEntry::name);
  if (entry == operatorTable().end())
    return invalidArgument(fmt::format("unknown operator '{}'{}; accepted are {}", order.op,
                                       didYouMean(order.op, operatorNames()), fmt::join(operatorNames(), ", ")));
  DITRON_ASSIGN_OR_RETURN(const TargetName target, parseTargetName(order.target));
  const std::string where = fmt::format("{} {}", order.op, order.shape);
  Expected<ShapeText> shape = ShapeText::parse(order.shape);
  if (!shape.isOk())
    return shape.status().withContext(where);
  Workbench bench = {builder, order, std::move(*shape)};
  bench.options.sms = order.multiprocessors ? order.multiprocessors : usualMultiprocessors(target);
  bench.note.op = order.op;
  bench.note.target = order.target;
  bench.note.problem = order.shape;
  DITRON_RETURN_IF_ERROR(entry->add(bench).withContext(where));
  builder.addPlan(std::move(bench.note));
  return Status::ok();
}

} // namespace ditron::aot
