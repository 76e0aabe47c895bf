//===- Iterators.h - Iterators of Python that runs while compiling ---------------------------------------------*- C++ -*-===//
//
// What iter(), zip(), map(), itertools and generator expressions give: elements one by one, computed when they are asked
// for, and each only once, whoever asks. Private to the room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_ITERATORS_H
#define DITRON_FRONTEND_ITERATORS_H

#include "ditron/frontend/Value.h"

#include <optional>

namespace ditron::frontend {

class Iterator {
public:
  /// Gives the next element, or nullopt at the end; poison after a reported error.
  using Step = std::function<std::optional<LangValue>(Evaluator &, SourceRange)>;

  Iterator(std::string type, Step step) : type(std::move(type)), step(std::move(step)) {}

  std::optional<LangValue> next(Evaluator &evaluator, SourceRange range) {
    std::optional<LangValue> element = step ? step(evaluator, range) : std::nullopt;
    if (!element || element->isPoison())
      step = nullptr; // what has ended gives nothing more
    return element;
  }
  /// Forgets what it holds.
  void clear() { step = nullptr; }

  const std::string type; ///< Python's name of it: "zip".

private:
  Step step;
};

inline LangValue makeIterator(std::string type, Iterator::Step step) {
  return LangValue(std::make_shared<Iterator>(std::move(type), std::move(step)));
}

/// The steps over values that are known already.
Iterator::Step walkList(std::shared_ptr<const std::vector<LangValue>> elements, bool isSet = false);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_ITERATORS_H
