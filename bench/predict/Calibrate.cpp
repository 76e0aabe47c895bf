//===- Calibrate.cpp - Predictions beside measured and published times ----------------------------------------------===//
//
// usage: ditron-predict-rows ROWS.json [--halves]      every row: measured, predicted, error; then the error of each half, or of all
//        ditron-predict-rows ROWS.json --fit MACHINE.json KEY...   fits the numbers of these keys ("gpu.mma_efficiency") to the rows
//                                                      0, 2, 4, ... of the machine, and prints the new values
//
// The fit goes from key to key and tries values a little above and below, for as long as the mean absolute error of the fitted
// half falls: slow, simple, and the same result every time.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/predict/MeasuredRows.h"
#include "ditron/support/InputFile.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>

using namespace ditron;
using namespace ditron::predict;

namespace {

/// Mean absolute error of the fitted rows; infinite for a description that is refused.
double fittedError(const nlohmann::json &description, const std::string &file, const std::vector<MeasuredRow> &rows) {
  const Expected<MachineDescription> machine = parseMachine(description.dump(), file);
  if (!machine.isOk())
    return INFINITY;
  double sum = 0;
  size_t count = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!isFitted(i))
      continue;
    const Expected<double> predicted = predictRow(*machine, rows[i]);
    if (!predicted.isOk())
      return INFINITY;
    sum += std::abs(relativeError(rows[i], *predicted));
    ++count;
  }
  return sum / static_cast<double>(count);
}

nlohmann::json::json_pointer pointerOf(const std::string &key) {
  std::string path = "/" + key;
  std::ranges::replace(path, '.', '/');
  return nlohmann::json::json_pointer(path);
}

Status fit(const std::vector<MeasuredRow> &rows, const std::string &file, const std::vector<std::string> &keys) {
  DITRON_ASSIGN_OR_RETURN(const std::string text, readWholeFile(file, "machine description", 1 << 20));
  DITRON_ASSIGN_OR_RETURN(nlohmann::json description, parseJson(text, file));
  DITRON_RETURN_IF_ERROR(parseMachine(text, file).status());
  for (const std::string &key : keys)
    if (!description.contains(pointerOf(key)) || !description[pointerOf(key)].is_number())
      return invalidArgument(fmt::format("{} has no number '{}'", file, key));
  double best = fittedError(description, file, rows);
  fmt::print("before: {:.4f}\n", best);
  for (double step = 0.2; step > 0.004; step /= 2)
    for (bool hasImproved = true; hasImproved;) {
      hasImproved = false;
      for (const std::string &key : keys)
        for (double factor : {1 + step, 1 / (1 + step)}) {
          nlohmann::json candidate = description;
          // Four digits: what is in the file is what was fitted.
          const double value = description[pointerOf(key)].get<double>() * factor;
          const double unit = std::pow(10, std::floor(std::log10(value)) - 3);
          candidate[pointerOf(key)] = std::round(value / unit) * unit;
          if (const double error = fittedError(candidate, file, rows); error < best - 1e-5) {
            best = error;
            description = std::move(candidate);
            hasImproved = true;
          }
        }
    }
  fmt::print("after: {:.4f}\n", best);
  for (const std::string &key : keys)
    fmt::print("{} {:.4g}\n", key, description[pointerOf(key)].get<double>());
  return Status::ok();
}

std::string rowText(const MeasuredRow &row) {
  const Request &request = row.request;
  std::string text = row.label.empty() ? "" : row.label + " ";
  text += fmt::format("{} {} x{}", toString(request.op), toString(request.form), request.gpus);
  for (auto [name, value] : {std::pair("", request.m),
                             {"x", request.n},
                             {"x", request.k},
                             {" bytes ", request.bytes},
                             {" tokens ", request.tokens},
                             {" hidden ", request.hidden},
                             {" context ", request.context}})
    if (value != 0)
      text += fmt::format("{}{}{}", name[0] == '\0' ? " " : "", name, value);
  return text;
}

struct Errors {
  std::vector<double> values;

  void print(std::string_view name) {
    if (values.empty())
      return;
    std::ranges::sort(values);
    double sum = 0;
    for (double value : values)
      sum += value;
    fmt::print("{}: {} rows, mean absolute error {:.1f} %, median {:.1f} %, 90th percentile {:.1f} %, worst {:.1f} %\n",
               name, values.size(), 100 * sum / static_cast<double>(values.size()), 100 * values[values.size() / 2],
               100 * values[values.size() * 9 / 10], 100 * values.back());
  }
};

Status show(const std::vector<MeasuredRow> &rows, bool hasHalves) {
  std::map<std::string, MachineDescription> machines;
  Errors fitted, heldOut, group;
  std::string heading;
  for (size_t i = 0; i < rows.size(); ++i) {
    const MeasuredRow &row = rows[i];
    if (!machines.contains(row.machine)) {
      DITRON_ASSIGN_OR_RETURN(machines[row.machine], readMachine(row.machine));
    }
    DITRON_ASSIGN_OR_RETURN(const double predicted, predictRow(machines[row.machine], row));
    const double error = relativeError(row, predicted);
    if (const std::string next = fmt::format("{}, {} GPUs ({})", row.source, row.request.gpus, row.machine);
        next != heading) {
      group.print("\nmean of these");
      group = {};
      heading = next;
      fmt::print("\n### {}\n\n| row |{} measured | predicted | error |\n|---|{}---|---|---|\n", heading,
                 hasHalves ? " half |" : "", hasHalves ? "---|" : "");
    }
    group.values.push_back(std::abs(error));
    (isFitted(i) && hasHalves ? fitted : heldOut).values.push_back(std::abs(error));
    const std::string half = !hasHalves ? "" : isFitted(i) ? " fitted |" : " held out |";
    if (row.speedup == 0)
      fmt::print("| {} |{} {:.1f} us | {:.1f} us | {:+.1f} % |\n", rowText(row), half, row.us, predicted, 100 * error);
    else
      fmt::print("| {} |{} {:.2f} times | {:.2f} times | {:+.1f} % |\n", rowText(row), half, row.speedup, predicted,
                 100 * error);
  }
  group.print("\nmean of these");
  fmt::print("\n");
  fitted.print("fitted rows (0, 2, 4, ...)");
  heldOut.print(hasHalves ? "held-out rows (1, 3, 5, ...)" : "all rows");
  return Status::ok();
}

Status runProgram(const std::vector<std::string> &words) {
  const bool hasHalves = words.size() == 2 && words[1] == "--halves", isFit = words.size() >= 4 && words[1] == "--fit";
  if (words.empty() || (words.size() > 1 && !hasHalves && !isFit))
    return invalidArgument("usage: ditron-predict-rows ROWS.json [--halves | --fit MACHINE.json KEY...]");
  DITRON_ASSIGN_OR_RETURN(const std::vector<MeasuredRow> rows, readMeasuredRows(words[0]));
  return !isFit ? show(rows, hasHalves) : fit(rows, words[2], {words.begin() + 3, words.end()});
}

} // namespace

int main(int argc, char **argv) {
  const Status status = runProgram({argv + 1, argv + argc});
  if (status.isOk())
    return 0;
  fmt::print(stderr, "ditron-predict-rows: error: {}\n", status.message());
  return 1;
}
