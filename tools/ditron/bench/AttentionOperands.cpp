//===- AttentionOperands.cpp - Operands of ditron bench attention ---------------------------------------------------------===//
#include "bench/AttentionOperands.h"

#include <cmath>

namespace ditron::tool {

namespace {

/// Which data an operand has.
enum Salt : uint64_t { SaltQ = 1, SaltK, SaltV, SaltGradient };

int64_t pagesOf(const ops::AttentionProblem &problem) {
  return (problem.keys + problem.pages->size - 1) / problem.pages->size;
}

uint64_t placeIn(const ops::AttentionProblem &problem, int64_t batch, int64_t head, int64_t row, int64_t column,
                 int64_t heads, int64_t rows, int64_t dim) {
  return problem.layout == ops::AttentionLayout::HeadsFirst ? ((batch * heads + head) * rows + row) * dim + column
                                                            : ((batch * rows + row) * heads + head) * dim + column;
}

Expected<runtime::Buffer> upload(runtime::Rank &rank, const std::vector<int32_t> &values, std::string_view name) {
  DITRON_ASSIGN_OR_RETURN(runtime::Buffer buffer, rank.allocate(DataType::I32, values.size(), name));
  DITRON_RETURN_IF_ERROR(buffer.upload(values.data(), values.size() * sizeof(int32_t)));
  return buffer;
}

Expected<runtime::Buffer> upload(runtime::Rank &rank, const std::vector<double> &values, std::string_view name) {
  DITRON_ASSIGN_OR_RETURN(runtime::Buffer buffer, rank.allocate(DataType::F32, values.size(), name));
  DITRON_RETURN_IF_ERROR(buffer.uploadFloats(std::vector<float>(values.begin(), values.end())));
  return buffer;
}

std::optional<runtime::Pointer> pointerOf(const std::optional<runtime::Buffer> &buffer) {
  return buffer ? std::optional(buffer->pointer()) : std::nullopt;
}

} // namespace

Expected<AttentionOperands> AttentionOperands::create(const AttentionBenchOptions &options, runtime::Rank &rank,
                                                      const NormalData &data, std::span<const int64_t> sizes,
                                                      DataType dtype) {
  AttentionOperands result;
  ops::AttentionProblem &problem = result.problem;
  problem = {.batch = sizes[0],
             .heads = sizes[1],
             .kvHeads = sizes[2],
             .queries = sizes[3],
             .keys = sizes[3],
             .headDim = sizes[4],
             .causal = options.causal,
             .dtype = dtype};
  problem.valueDim = options.valueDim;
  problem.window = options.window;
  problem.softCap = options.softCap;
  problem.valuesTransposed = options.valuesTransposed;
  if (options.rowsFirst || options.packed)
    problem.layout = ops::AttentionLayout::RowsFirst;
  if (options.packed) {
    result.offsets = {0};
    for (int64_t batch = 0; batch < problem.batch; ++batch) {
      result.lengths.push_back(std::max<int64_t>(problem.queries - problem.queries * batch / (2 * problem.batch), 1));
      result.offsets.push_back(result.offsets.back() + result.lengths.back());
    }
    problem.packedQueries = problem.packedKeys = result.offsets.back();
  }
  if (options.pageSize) {
    problem.pages = ops::AttentionPages{.size = *options.pageSize};
    problem.pages->count = problem.batch * pagesOf(problem);
    for (int64_t page = problem.pages->count; page-- > 0;) // from the last one down
      result.table.push_back(static_cast<int32_t>(page));
  }
  for (int64_t head = 0; head < problem.heads; ++head) {
    const double share = static_cast<double>(head + 1) / static_cast<double>(problem.heads);
    if (options.sinks)
      result.sinkValues.push_back(share);
    if (options.slopes)
      result.slopeValues.push_back(std::exp2(-8 * share));
  }
  DITRON_RETURN_IF_ERROR(result.allocate(options, rank, data));
  DITRON_RETURN_IF_ERROR(result.allocateOptions(options, rank));
  return result;
}

Status AttentionOperands::allocate(const AttentionBenchOptions &options, runtime::Rank &rank, const NormalData &data) {
  const int64_t width = problem.dimOfValues();
  const uint64_t queryRows = problem.packedQueries.value_or(problem.batch * problem.queries) * problem.heads;
  const uint64_t keyRows = (problem.pages ? problem.pages->count * problem.pages->size
                                          : problem.packedKeys.value_or(problem.batch * problem.keys)) *
                           problem.kvHeads;
  DITRON_ASSIGN_OR_RETURN(q, rank.allocate(problem.dtype, queryRows * problem.headDim, "q"));
  DITRON_ASSIGN_OR_RETURN(k, rank.allocate(problem.dtype, keyRows * problem.headDim, "k"));
  DITRON_ASSIGN_OR_RETURN(v, rank.allocate(problem.dtype, keyRows * width, "v"));
  DITRON_ASSIGN_OR_RETURN(out, rank.allocate(problem.typeOfResult(), queryRows * width, "out"));
  DITRON_ASSIGN_OR_RETURN(lse, rank.allocate(DataType::F32, queryRows, "lse"));
  DITRON_RETURN_IF_ERROR(data.fill(q, SaltQ));
  DITRON_RETURN_IF_ERROR(data.fill(k, SaltK));
  DITRON_RETURN_IF_ERROR(data.fill(v, SaltV));
  if (!options.backward)
    return Status::ok();
  DITRON_ASSIGN_OR_RETURN(gradient, rank.allocate(problem.dtype, queryRows * width, "gradient"));
  DITRON_ASSIGN_OR_RETURN(dq, rank.allocate(problem.dtype, queryRows * problem.headDim, "dq"));
  DITRON_ASSIGN_OR_RETURN(dk, rank.allocate(problem.dtype, keyRows * problem.headDim, "dk"));
  DITRON_ASSIGN_OR_RETURN(dv, rank.allocate(problem.dtype, keyRows * width, "dv"));
  return data.fill(gradient, SaltGradient);
}

Status AttentionOperands::allocateOptions(const AttentionBenchOptions &options, runtime::Rank &rank) {
  if (options.sinks) {
    DITRON_ASSIGN_OR_RETURN(sinks, upload(rank, sinkValues, "sinks"));
  }
  if (options.slopes) {
    DITRON_ASSIGN_OR_RETURN(slopes, upload(rank, slopeValues, "slopes"));
  }
  if (options.packed) {
    const std::vector<int32_t> narrow(offsets.begin(), offsets.end());
    DITRON_ASSIGN_OR_RETURN(offsetBuffer, upload(rank, narrow, "offsets"));
  }
  if (problem.pages) {
    DITRON_ASSIGN_OR_RETURN(tableBuffer, upload(rank, table, "block table"));
  }
  return Status::ok();
}

ops::AttentionOperands AttentionOperands::forward() const {
  return {.q = q,
          .k = k,
          .v = v,
          .out = out,
          .lse = lse.pointer(),
          .sinks = pointerOf(sinks),
          .slopes = pointerOf(slopes),
          .queryOffsets = pointerOf(offsetBuffer),
          .keyOffsets = pointerOf(offsetBuffer),
          .blockTable = pointerOf(tableBuffer)};
}

ops::AttentionBackwardOperands AttentionOperands::backward() const {
  return {.q = q,
          .k = k,
          .v = v,
          .out = out,
          .lse = lse,
          .gradient = gradient,
          .dq = dq,
          .dk = dk,
          .dv = dv,
          .slopes = pointerOf(slopes),
          .queryOffsets = pointerOf(offsetBuffer),
          .keyOffsets = pointerOf(offsetBuffer)};
}

double AttentionOperands::flops() const {
  if (lengths.empty())
    return problem.flops();
  double sum = 0;
  for (int64_t length : lengths) {
    ops::AttentionProblem own = problem;
    own.batch = 1;
    own.queries = own.keys = length;
    sum += own.flops();
  }
  return sum;
}

uint64_t AttentionOperands::queryPlace(int64_t batch, int64_t head, int64_t row, int64_t column, int64_t dim) const {
  if (problem.packedQueries)
    return ((offsets[batch] + row) * problem.heads + head) * dim + column;
  return placeIn(problem, batch, head, row, column, problem.heads, problem.queries, dim);
}

uint64_t AttentionOperands::keyPlace(int64_t batch, int64_t head, int64_t row, int64_t column, int64_t dim) const {
  if (problem.packedKeys)
    return ((offsets[batch] + row) * problem.kvHeads + head) * dim + column;
  if (problem.pages)
    return placeIn(problem, table[batch * pagesOf(problem) + row / problem.pages->size], head,
                   row % problem.pages->size, column, problem.kvHeads, problem.pages->size, dim);
  return placeIn(problem, batch, head, row, column, problem.kvHeads, problem.keys, dim);
}

uint64_t AttentionOperands::valuePlace(int64_t batch, int64_t head, int64_t row, int64_t column) const {
  if (problem.valuesTransposed)
    return ((batch * problem.kvHeads + head) * problem.dimOfValues() + column) * problem.keys + row;
  return keyPlace(batch, head, row, column, problem.dimOfValues());
}

uint64_t AttentionOperands::lsePlace(int64_t batch, int64_t head, int64_t row) const {
  if (problem.packedQueries)
    return head * *problem.packedQueries + offsets[batch] + row;
  return (batch * problem.heads + head) * problem.queries + row;
}

ops::AttentionReference AttentionOperands::reference(const NormalData &data) const {
  ops::AttentionReference plain(
      problem,
      [this, &data](int64_t b, int64_t h, int64_t r, int64_t c) -> double {
        return data.at(SaltQ, queryPlace(b, h, r, c, problem.headDim));
      },
      [this, &data](int64_t b, int64_t h, int64_t r, int64_t c) -> double {
        return data.at(SaltK, keyPlace(b, h, r, c, problem.headDim));
      },
      [this, &data](int64_t b, int64_t h, int64_t r, int64_t c) -> double {
        return data.at(SaltV, valuePlace(b, h, r, c));
      });
  plain.sinks = sinkValues;
  plain.slopes = slopeValues;
  plain.queries = plain.keys = lengths;
  return plain;
}

ops::AttentionElement AttentionOperands::gradientElement(const NormalData &data) const {
  return [this, &data](int64_t b, int64_t h, int64_t r, int64_t c) -> double {
    return data.at(SaltGradient, queryPlace(b, h, r, c, problem.dimOfValues()));
  };
}

} // namespace ditron::tool
