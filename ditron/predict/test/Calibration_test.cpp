//===- Calibration_test.cpp - The stated error of the H200's description holds --------------------------------------===//
//
// Not a timed test: the measured rows are a file, and predictions are the same every time.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/predict/MeasuredRows.h"

#include <cmath>
#include <fstream>
#include <gmock/gmock.h>

namespace ditron::predict {
namespace {

using testing::HasSubstr;

constexpr const char *measured = DITRON_SOURCE_DIR "/bench/predict/h200_measured.json";

/// docs/predict.md states these.
TEST(Calibration, HeldOutRowsAreWithinTheStatedError) {
  const Expected<std::vector<MeasuredRow>> rows = readMeasuredRows(measured);
  ASSERT_TRUE(rows.isOk()) << rows.status().message();
  ASSERT_GT(rows->size(), 300u);
  const MachineDescription machine = *readMachine("h200x8");
  double sum = 0;
  size_t count = 0, far = 0;
  for (size_t i = 0; i < rows->size(); ++i) {
    const MeasuredRow &row = (*rows)[i];
    EXPECT_EQ(row.machine, "h200x8");
    const Expected<double> predicted = predictRow(machine, row);
    ASSERT_TRUE(predicted.isOk()) << row.source << ": " << predicted.status().message();
    if (isFitted(i))
      continue;
    const double error = std::abs(relativeError(row, *predicted));
    sum += error;
    far += error > 0.25;
    ++count;
  }
  EXPECT_LT(sum / static_cast<double>(count), 0.10);
  EXPECT_LT(static_cast<double>(far) / static_cast<double>(count), 0.10);
}

TEST(Calibration, PublishedRowsAreRead) {
  const Expected<std::vector<MeasuredRow>> rows = readMeasuredRows(DITRON_SOURCE_DIR "/bench/predict/published.json");
  ASSERT_TRUE(rows.isOk()) << rows.status().message();
  for (const MeasuredRow &row : *rows) {
    const Expected<MachineDescription> machine = readMachine(row.machine);
    ASSERT_TRUE(machine.isOk()) << machine.status().message();
    EXPECT_TRUE(predictRow(*machine, row).isOk()) << row.source;
  }
}

std::string errorOf(const std::string &text) {
  const std::string path = testing::TempDir() + "/rows.json";
  std::ofstream(path) << text;
  return readMeasuredRows(path).status().message();
}

TEST(MeasuredRows, AreReadStrictly) {
  EXPECT_EQ(errorOf(R"({"groups": []})"), "");
  EXPECT_THAT(errorOf(R"({"group": []})"), HasSubstr("group is no key here; did you mean 'groups'?"));
  const std::string start = R"({"groups": [{"source": "s", "machine": "h200x8", "gpus": 8, "rows": [)", end = "]}]}";
  EXPECT_EQ(errorOf(start + R"({"op": "all_reduce", "bytes": 8, "us": 3})" + end), "");
  EXPECT_THAT(errorOf(start + R"({"op": "all_reduce", "bytes": 8})" + end),
              HasSubstr("groups[0].rows[0].us or speedup is needed"));
  EXPECT_THAT(errorOf(start + R"({"op": "all_redcue", "bytes": 8, "us": 3})" + end),
              HasSubstr("did you mean 'all_reduce'?"));
  EXPECT_THAT(errorOf(start + R"({"op": "all_reduce", "byte": 8, "us": 3})" + end), HasSubstr("did you mean 'bytes'?"));
  EXPECT_THAT(errorOf(start + R"({"op": "all_reduce", "us": 3})" + end), HasSubstr("all_reduce needs bytes"));
  EXPECT_THAT(errorOf(start + R"({"op": "gemm", "m": 1, "n": 1, "k": 1, "gpus": 1, "tile": "3x3x3", "us": 3})" + end),
              HasSubstr("rows[0].tile is wrong"));
}

} // namespace
} // namespace ditron::predict
