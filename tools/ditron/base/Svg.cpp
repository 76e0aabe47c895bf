//===- Svg.cpp - Pictures as text ---------------------------------------------------------------------------------===//
#include "base/Svg.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace ditron::tool {

std::string escapeXml(std::string_view text) {
  std::string escaped;
  for (char c : text)
    switch (c) {
    case '<': escaped += "&lt;"; break;
    case '>': escaped += "&gt;"; break;
    case '&': escaped += "&amp;"; break;
    case '"': escaped += "&quot;"; break;
    default: escaped += c;
    }
  return escaped;
}

void Svg::cover(double x, double y) {
  width = std::max(width, x);
  height = std::max(height, y);
}

void Svg::rectangle(double x, double y, double w, double h, const std::string &fill, std::string_view hint) {
  cover(x + w, y + h);
  body += fmt::format("<rect x=\"{:g}\" y=\"{:g}\" width=\"{:g}\" height=\"{:g}\" fill=\"{}\"", x, y, w, h, fill);
  body += hint.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", escapeXml(hint));
}

void Svg::text(double x, double y, double size, std::string_view words, std::string_view anchor) {
  const double length = 0.62 * size * static_cast<double>(words.size());
  cover(anchor == "start" ? x + length : anchor == "middle" ? x + length / 2 : x, y + size / 3);
  body += fmt::format("<text x=\"{:g}\" y=\"{:g}\" font-size=\"{:g}\" text-anchor=\"{}\">{}</text>\n", x, y, size,
                      anchor, escapeXml(words));
}

std::string Svg::element() const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:g}\" height=\"{1:g}\" viewBox=\"0 0 {0:g} {1:g}\" "
      "font-family=\"monospace\" fill=\"#111\">\n{2}</svg>\n",
      width + 8, height + 8, body);
}

std::string colourOf(unsigned id, double shade) {
  // Steps of the golden angle: any few consecutive numbers get hues that are far apart. Written as #rrggbb and not as hsl(),
  // which SVG 1.1 does not have: programs that go by it would paint black on black.
  const double hue = std::fmod(id * 137.508, 360), lightness = 0.88 - 0.38 * std::clamp(shade, 0.0, 1.0);
  const auto channel = [&](int offset) {
    const double third = std::fmod(offset + hue / 30, 12);
    const double value = lightness - 0.65 * std::min(lightness, 1 - lightness) * std::clamp(std::min(third - 3, 9 - third), -1.0, 1.0);
    return static_cast<int>(std::lround(value * 255));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", channel(0), channel(8), channel(4));
}

} // namespace ditron::tool
