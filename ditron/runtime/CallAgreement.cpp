//===- CallAgreement.cpp - What the ranks' calls of an operator have in common ----------------------------------------===//
#include "ditron/runtime/CallAgreement.h"

#include <fmt/format.h>

namespace ditron::runtime {

Status CallAgreement::enter(uint32_t rank, const std::string &what) {
  const uint64_t number = entered[rank]++;
  if (number == firstCall + calls.size()) {
    calls.push_back({rank, what, 0});
  } else if (const Call &call = calls[number - firstCall]; call.what != what) {
    return invalidArgument(fmt::format("{}: call {} of rank {} is of {}, that of rank {} of {}; every rank makes the same "
                                       "sequence of calls",
                                       operation, number + 1, rank, what, call.firstRank, call.what));
  }
  ++calls[number - firstCall].ranks;
  while (!calls.empty() && calls.front().ranks == entered.size()) {
    calls.pop_front();
    ++firstCall;
  }
  return Status::ok();
}

} // namespace ditron::runtime
