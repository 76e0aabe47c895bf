//===- Precompiled.h - Precompiled header of the command line ------------------------------------------------*- C++ -*-===//
//
// Only to be precompiled: no source includes it. Every source still includes what it uses; the build without precompiled
// headers (DITRON_USE_PCH=OFF) proves it. Headers of rooms are here only as far as most commands need them, since all commands
// are compiled again when one of them changes.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_PRECOMPILED_H
#define DITRON_TOOLS_DITRON_PRECOMPILED_H

#include "base/Command.h"
#include "base/Progress.h"

#include "ditron/jit/Jit.h"
#include "ditron/ops/Gemm.h"
#include "ditron/runtime/TargetChoice.h"
#include "ditron/runtime/World.h"
#include "ditron/support/OutputFile.h"
#include "ditron/support/Plural.h"
#include "ditron/support/Suggest.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <set>
#include <sstream>
#include <thread>

namespace ditron::tool::precompiled {

// What nearly every command instantiates: with -fpch-instantiate-templates that is done here, once for all.
inline void options(CLI::App &app) {
  static std::string text;
  static std::vector<std::string> texts;
  static uint32_t count;
  static int64_t number;
  static uint64_t bytes;
  static double seconds;
  static bool flag;
  static std::vector<int64_t> numbers;
  static std::optional<int64_t> maybeNumber;
  app.add_option("--text", text, "")->check(CLI::IsMember({"a", "b"}))->capture_default_str();
  app.add_option("--texts", texts, "")->delimiter(',');
  app.add_option("--count", count, "");
  app.add_option("--number", number, "");
  app.add_option("--bytes", bytes, "");
  app.add_option("--seconds", seconds, "");
  app.add_option("--numbers", numbers, "");
  app.add_option("--maybe", maybeNumber, "");
  app.add_flag("--flag", flag, "")->check(integerBetween(0, 1));
}

inline std::string json(const std::string &text, uint32_t count, int64_t number, uint64_t bytes, double seconds, bool flag,
                        std::string_view view) {
  nlohmann::ordered_json object = {{"text", text}, {"literal", "text"}, {"count", count}, {"number", number}};
  object["bytes"] = bytes;
  object["seconds"] = seconds;
  object["flag"] = flag;
  object["text"] = text;
  object["view"] = view;
  object["count"] = count;
  object["literal"] = "text";
  object["nested"] = nlohmann::ordered_json{{"seconds", seconds}, {"bytes", bytes}, {"flag", flag}, {"view", view}};
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  list.push_back(std::move(object));
  list.push_back({{"seconds", seconds}});
  return list.dump(2) + '\n';
}

} // namespace ditron::tool::precompiled
#endif // DITRON_TOOLS_DITRON_PRECOMPILED_H
