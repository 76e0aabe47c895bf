//===- MeasuredRows.cpp - Times that others measured or published, to hold predictions against ----------------------===//
#include "ditron/predict/MeasuredRows.h"

#include "ditron/support/InputFile.h"

#include <fmt/format.h>

namespace ditron::predict {

namespace {

constexpr uint64_t mostRowsBytes = 16 << 20;
constexpr double mostUs = 1e9;

Status readRow(const nlohmann::json &value, const std::string &path, const std::string &where, MeasuredRow row,
               uint32_t gpus, std::vector<MeasuredRow> &rows) {
  nlohmann::json whole = value;
  if (whole.is_object() && !whole.contains("gpus"))
    whole["gpus"] = gpus;
  JsonFields fields(whole, path, where);
  row.request = readRequest(fields);
  row.label = fields.text("label", {}, "");
  row.us = fields.number("us", 1e-3, mostUs, 0.0);
  row.speedup = fields.number("speedup", 1e-3, 1e6, 0.0);
  if ((row.us == 0) == (row.speedup == 0))
    fields.fail("us", "or speedup is needed, one of the two");
  DITRON_RETURN_IF_ERROR(fields.finish());
  DITRON_RETURN_IF_ERROR(verify(row.request).withContext(fmt::format("{}: {}", path, where)));
  rows.push_back(std::move(row));
  return Status::ok();
}

} // namespace

Expected<std::vector<MeasuredRow>> readMeasuredRows(const std::string &path) {
  DITRON_ASSIGN_OR_RETURN(const std::string text, readWholeFile(path, "measured rows", mostRowsBytes));
  DITRON_ASSIGN_OR_RETURN(const nlohmann::json whole, parseJson(text, path));
  JsonFields file(whole, path, "");
  const nlohmann::json groups = file.child("groups");
  if (!groups.is_array())
    file.fail("groups", "is no list");
  DITRON_RETURN_IF_ERROR(file.finish());
  std::vector<MeasuredRow> rows;
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::string where = fmt::format("groups[{}]", g);
    JsonFields fields(groups[g], path, where);
    MeasuredRow row;
    row.source = fields.text("source", {});
    row.machine = fields.text("machine", {});
    const uint32_t gpus = static_cast<uint32_t>(fields.integer("gpus", 1, 1 << 20));
    const nlohmann::json list = fields.child("rows");
    if (!list.is_array())
      fields.fail("rows", "is no list");
    DITRON_RETURN_IF_ERROR(fields.finish());
    for (size_t r = 0; r < list.size(); ++r)
      DITRON_RETURN_IF_ERROR(readRow(list[r], path, fmt::format("{}.rows[{}]", where, r), row, gpus, rows));
  }
  return rows;
}

Expected<double> predictRow(const MachineDescription &machine, const MeasuredRow &row) {
  DITRON_ASSIGN_OR_RETURN(const Time us, predictTime(machine, row.request));
  if (row.speedup == 0)
    return us;
  Request vendor = row.request;
  vendor.form = Form::Vendor;
  DITRON_ASSIGN_OR_RETURN(const Time vendorUs, predictTime(machine, vendor));
  return vendorUs / us;
}

double relativeError(const MeasuredRow &row, double predicted) {
  const double measured = row.speedup == 0 ? row.us : row.speedup;
  return (predicted - measured) / measured;
}

} // namespace ditron::predict
