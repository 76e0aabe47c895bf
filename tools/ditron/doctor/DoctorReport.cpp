//===- DoctorReport.cpp - The lines of ditron doctor --------------------------------------------------------------===//
#include "doctor/DoctorReport.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ditron::tool {

std::string_view toString(Verdict verdict) {
  switch (verdict) {
  case Verdict::Ok: return "ok";
  case Verdict::Slower: return "slower path";
  case Verdict::NotUsable: return "not usable";
  }
  return "";
}

Verdict DoctorReport::worst() const {
  Verdict worst = Verdict::Ok;
  for (const DoctorLine &line : lines)
    worst = std::max(worst, line.verdict);
  return worst;
}

std::string DoctorReport::text() const {
  size_t width = 0;
  for (const DoctorLine &line : lines)
    width = std::max(width, line.subject.size());
  std::string text;
  for (const DoctorLine &line : lines) {
    text += fmt::format("{:<{}}  {:<11}  {}\n", line.subject, width, toString(line.verdict), line.finding);
    if (!line.fix.empty())
      text += fmt::format("{:<{}}  {:<11}  fix: {}\n", "", width, "", line.fix);
  }
  return text;
}

std::string DoctorReport::json() const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const DoctorLine &line : lines)
    list.push_back(
        {{"subject", line.subject}, {"verdict", toString(line.verdict)}, {"finding", line.finding}, {"fix", line.fix}});
  // Folders of this machine are among the findings, and a path may hold any bytes.
  return list.dump(2, ' ', false, decltype(list)::error_handler_t::replace);
}

} // namespace ditron::tool
