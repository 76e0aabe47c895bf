//===- EmbeddedMachine.h - The files of machines/, inside the program -----------------------------------*- C++ -*-===//
#ifndef DITRON_PREDICT_EMBEDDEDMACHINE_H
#define DITRON_PREDICT_EMBEDDEDMACHINE_H

#include <string_view>

namespace ditron::predict {

struct EmbeddedMachine {
  std::string_view path, text; ///< Empty when there is no such machine.
};
/// The file machines/NAME.json; defined by generated code.
EmbeddedMachine embeddedMachine(std::string_view name);

} // namespace ditron::predict
#endif // DITRON_PREDICT_EMBEDDEDMACHINE_H
