//===- Svg.h - Pictures as text -------------------------------------------------------------------------*- C++ -*-===//
//
// What the pictures of this program are made of: rectangles and words. A picture needs no network and no script.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_SVG_H
#define DITRON_TOOLS_DITRON_SVG_H

#include <string>
#include <string_view>

namespace ditron::tool {

/// The text with the characters replaced that mean something to XML.
std::string escapeXml(std::string_view text);

class Svg {
public:
  /// `fill` is a CSS colour. `hint` is shown when the pointer rests on it.
  void rectangle(double x, double y, double width, double height, const std::string &fill, std::string_view hint = "");
  /// `anchor` is start, middle or end; y is the base line.
  void text(double x, double y, double size, std::string_view words, std::string_view anchor = "start");

  /// The picture, which reaches from the origin to the lowest and rightmost thing drawn.
  std::string element() const;

private:
  void cover(double x, double y);

  std::string body;
  double width = 0, height = 0;
};

/// A colour for a number: neighbours differ, `shade` from 0 to 1 makes it darker.
std::string colourOf(unsigned id, double shade = 0);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_SVG_H
