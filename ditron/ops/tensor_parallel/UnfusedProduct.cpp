//===- UnfusedProduct.cpp - A product, with a collective before or behind it ----------------------------------------------===//
#include "ditron/ops/tensor_parallel/UnfusedProduct.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {

Expected<GemmPlan> planOf(const UnfusedProduct &product, runtime::World &world, bool aligned) {
  if (!aligned || !allowsDescriptors(product.problem))
    return GemmPlan{GemmMovement::Pointers, product.tile ? *product.tile : chooseTile(product.problem, world)};
  return product.tile ? GemmPlan{GemmMovement::Descriptors, *product.tile} : libraryGemmPlan(product.problem, world);
}

Expected<OperandLaunch> productLaunch(runtime::KernelProvider &kernels, runtime::Rank &rank, GemmWorkspace &workspace,
                                      const UnfusedProduct &product, const OperandPointers &operands,
                                      const OperandLaunch::Names &names) {
  const runtime::Pointer a = operands[Operand::A], b = operands[Operand::B], c = operands[Operand::Result];
  const bool aligned =
      alignmentOf(a) == planAlignment && alignmentOf(b) == planAlignment && alignmentOf(c) == planAlignment;
  DITRON_ASSIGN_OR_RETURN(const GemmPlan plan, planOf(product, rank.world(), aligned));
  DITRON_ASSIGN_OR_RETURN(PreparedCall prepared,
                          prepareGemm(kernels, rank, product.problem, a, b, c, plan, operands.epilogue(), &workspace));
  return OperandLaunch::create(std::move(prepared), OperandLaunch::withEpilogue(names, product.problem.epilogue));
}

} // namespace

std::string textOf(const UnfusedProduct &product, runtime::World &world) {
  TensorParallelPlan text = {.form = TensorParallelForm::Unfused, .tile = product.tile};
  if (product.problem.k == 0) // not known yet, and so neither is what the library would choose
    return text.text();
  Expected<GemmPlan> plan = planOf(product, world, /*aligned=*/true);
  const uint32_t multiprocessors = world.rank(world.localRanks().front()).attributes().multiprocessors;
  if (plan.isOk() && !splitTailOf(product.problem, *plan, multiprocessors))
    plan->tailSplits = 1;
  if (plan.isOk() && !plan->isPlain())
    return fmt::format("unfused, product {}", plan->text());
  if (plan.isOk())
    text.tile = plan->tile;
  return text.text();
}

KernelCall copyRowsCall(const runtime::Rank &rank, const MatrixRows &from, const MatrixRows &to, int64_t rows,
                        int64_t columns) {
  constexpr int64_t block = 1024;
  KernelCall call;
  call.source = "tensor_parallel_gemm";
  call.kernel = "copy_rows";
  call.grid = {static_cast<uint32_t>(
                   std::min<int64_t>(rows * ceilDivide(columns, block), 2 * rank.attributes().multiprocessors)),
               1, 1};
  call.arguments = {{"from_ptr", from.pointer},   {"to_ptr", to.pointer},   {"rows", rows},  {"columns", columns},
                    {"stride_from", from.stride}, {"stride_to", to.stride}, {"BLOCK", block}};
  return call;
}

Expected<ProductPlan::Parts> makeProductThenCollective(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                                       Collective &collective, GemmWorkspace &workspace,
                                                       const OperandPointers &operands,
                                                       const ProductThenCollective &call) {
  const int64_t columns = call.product.problem.n;
  ProductPlan::Parts parts;
  ProductPlan::Exchange::Place result = Operand::Result;
  OperandPointers ofProduct = operands;
  runtime::Pointer &product = ofProduct.pointers[static_cast<size_t>(Operand::Result)];
  const bool isDense = call.resultStride == columns;
  if (!isDense) {
    DITRON_ASSIGN_OR_RETURN(parts.dense,
                            rank.allocate(call.product.problem.typeOfResult(), call.resultRows * columns, "dense"));
    result = product = parts.dense.pointer();
  }
  const runtime::Pointer exchanged = product;
  product = call.partial.value_or(product);
  OperandLaunch::Names names = {{"a_ptr", Operand::A}, {"b_ptr", Operand::B}};
  if (isDense && !call.partial)
    names.emplace_back("c_ptr", Operand::Result);
  DITRON_ASSIGN_OR_RETURN(OperandLaunch launch,
                          productLaunch(kernels, rank, workspace, call.product, ofProduct, names));
  parts.sequence.launch(runtime::Lane::Main, launch.call.prepared());
  parts.launches.push_back(std::move(launch));
  DITRON_ASSIGN_OR_RETURN(Collective::Plan plan, collective.plan(rank, product, exchanged, call.elements));
  parts.exchange = {std::move(plan), call.partial ? ProductPlan::Exchange::Place(*call.partial) : result, result};
  if (isDense)
    return parts;
  DITRON_ASSIGN_OR_RETURN(parts.last, OperandLaunch::create(kernels, rank,
                                                            copyRowsCall(rank, {exchanged, columns},
                                                                         {operands[Operand::Result], call.resultStride},
                                                                         call.resultRows, columns),
                                                            {{"to_ptr", Operand::Result}}));
  return parts;
}

Expected<ProductPlan::Parts> makeCollectiveThenProduct(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                                       Collective &allGather, GemmWorkspace &workspace,
                                                       const OperandPointers &operands,
                                                       const CollectiveThenProduct &call) {
  const int64_t depth = call.product.problem.k;
  ProductPlan::Parts parts;
  ProductPlan::Exchange::Place own = Operand::A;
  runtime::Pointer shard = operands[Operand::A];
  if (call.ownStride != depth) {
    DITRON_ASSIGN_OR_RETURN(parts.dense, rank.allocate(call.product.problem.dtype, call.ownRows * depth, "dense"));
    own = parts.dense.pointer();
    DITRON_ASSIGN_OR_RETURN(OperandLaunch copy,
                            OperandLaunch::create(kernels, rank,
                                                  copyRowsCall(rank, {shard, call.ownStride},
                                                               {parts.dense.pointer(), depth}, call.ownRows, depth),
                                                  {{"from_ptr", Operand::A}}));
    parts.sequence.launch(runtime::Lane::Main, copy.call.prepared());
    parts.launches.push_back(std::move(copy));
    shard = parts.dense.pointer();
  }
  DITRON_ASSIGN_OR_RETURN(Collective::Plan plan, allGather.plan(rank, shard, call.gathered, call.ownRows * depth));
  parts.exchange = {std::move(plan), own, call.gathered};
  parts.isBegunByExchange = true;
  OperandPointers ofProduct = operands;
  ofProduct.pointers[static_cast<size_t>(Operand::A)] = call.gathered;
  DITRON_ASSIGN_OR_RETURN(parts.last, productLaunch(kernels, rank, workspace, call.product, ofProduct,
                                                    {{"b_ptr", Operand::B}, {"c_ptr", Operand::Result}}));
  return parts;
}

} // namespace ditron::ops
