//===- SourceLine.cpp - Errors of running kernels with their lines ------------------------------------------------===//
#include "run/SourceLine.h"

#include "ditron/frontend/syntax/Diagnostics.h"

#include <algorithm>
#include <fmt/format.h>

namespace ditron::tool {

Status withSourceLine(const Status &status, const compiler::KernelSource &source) {
  const SourceLocation *place = status.location();
  if (!place || place->file != source.path)
    return status;
  frontend::SourceManager sources;
  Expected<frontend::FileId> file = sources.add(source.path, source.text);
  if (!file.isOk())
    return status;
  const uint32_t offset = sources.file(*file).offsetOf({place->line, place->column});
  // The rendered message begins with the same place.
  const size_t text = fmt::formatted_size("{}:{}:{}: ", place->file, place->line, place->column);
  // Behind the first line of a run that was ended comes the report of its waits.
  const std::string message = status.message().substr(text);
  const size_t end =
      status.code() == StatusCode::TimeOut ? std::min(message.find('\n'), message.size()) : message.size();
  std::string rendered = frontend::renderMessage(sources, frontend::Severity::Error,
                                                 sources.file(*file).range(offset, offset), message.substr(0, end));
  if (end != message.size() && rendered.ends_with('\n'))
    rendered.pop_back();
  return Status(status.code(), rendered + message.substr(end));
}

} // namespace ditron::tool
