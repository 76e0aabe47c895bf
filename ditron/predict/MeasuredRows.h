//===- MeasuredRows.h - Times that others measured or published, to hold predictions against ------------*- C++ -*-===//
//
// A file of bench/predict/: groups of rows with their source and machine, in a fixed order.
//
//   {"groups": [{"source": "...", "machine": "h200x8", "gpus": 8, "rows": [{"op": "gemm", "m": 8192, ..., "us": 129}, ...]}]}
//
// A row is a request with a time, or with a speedup over the vendor's libraries. The split for calibration is fixed by the order of
// the file: the rows 0, 2, 4, ... of it, counted through all groups, are fitted; the rows 1, 3, 5, ... are held out.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_PREDICT_MEASUREDROWS_H
#define DITRON_PREDICT_MEASUREDROWS_H

#include "ditron/predict/Prediction.h"

namespace ditron::predict {

struct MeasuredRow {
  std::string source, label, machine;
  Request request;
  Time us = 0;        ///< 0 when only a speedup is known.
  double speedup = 0; ///< Over the vendor's libraries; 0 when only a time is known.
};

Expected<std::vector<MeasuredRow>> readMeasuredRows(const std::string &path);

/// Whether a row is one that parameters may be fitted to; the others are held out.
inline bool isFitted(size_t row) { return row % 2 == 0; }

/// The predicted value of what the row has: microseconds or a speedup.
Expected<double> predictRow(const MachineDescription &machine, const MeasuredRow &row);
/// (predicted - measured) / measured
double relativeError(const MeasuredRow &row, double predicted);

} // namespace ditron::predict
#endif // DITRON_PREDICT_MEASUREDROWS_H
