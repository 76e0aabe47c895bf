//===- JsonFields.h - Reading JSON objects strictly -----------------------------------------------------*- C++ -*-===//
//
// Files that people write by hand (machine descriptions, tables of measured rows) are read through this: every key must be known,
// every value of its kind and inside its limits, and an error says where: "h200x8.json: gpu.sm_count is -1; 1 to 4096 is accepted".
//
//   JsonFields fields(json, "h200x8.json", "gpu");
//   description.smCount = fields.integer("sm_count", 1, 4096);
//   return fields.finish();       // the first error, or that of a key that nobody asked for
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_PREDICT_JSONFIELDS_H
#define DITRON_PREDICT_JSONFIELDS_H

#include "ditron/support/Status.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

namespace ditron::predict {

/// Parses a file's text; the error has its line and column.
Expected<nlohmann::json> parseJson(std::string_view text, const std::string &file);

class JsonFields {
public:
  /// `path` is where the object lies in the file: empty for the whole.
  JsonFields(const nlohmann::json &value, std::string file, std::string path);

  /// A number from `least` to `most`. Without a fallback the key must be there.
  double number(const std::string &key, double least, double most, std::optional<double> fallback = std::nullopt);
  int64_t integer(const std::string &key, int64_t least, int64_t most, std::optional<int64_t> fallback = std::nullopt);
  /// One of the accepted words; any text when there are none.
  std::string text(const std::string &key, const std::vector<std::string> &accepted,
                   std::optional<std::string> fallback = std::nullopt);
  bool has(const std::string &key);
  /// The value of a key that must be there: an object or array to be read with its own JsonFields. Null JSON when it is missing.
  const nlohmann::json &child(const std::string &key);

  /// What the caller finds wrong; only the first error is kept.
  void fail(const std::string &key, const std::string &problem);
  Status finish();

  const std::string &file() const { return fileName; }
  /// "gpu.sm_count", for the caller's own messages.
  std::string pathOf(const std::string &key) const;

private:
  const nlohmann::json *find(const std::string &key, bool isRequired);

  const nlohmann::json &value;
  std::string fileName, path;
  std::vector<std::string> known;
  std::string missing; ///< The first key that must be there and is not.
  Status error;
};

} // namespace ditron::predict
#endif // DITRON_PREDICT_JSONFIELDS_H
