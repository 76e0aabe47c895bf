//===- ProgramsAbsent.cpp - Run files in libditron_runtime: none, since their kernels are compiled ------------------===//
#include "ditron/api/Boundary.h"

using namespace ditron;
using namespace ditron::api;

static ditron_status_t refuse() {
  return report(unsupported("libditron_runtime has no compiler, and run files compile their kernels: link libditron"));
}

extern "C" {

ditron_status_t ditron_program_run_file(const char *, const ditron_program_options_t *, ditron_program_h *) {
  return refuse();
}
ditron_status_t ditron_program_run_text(const char *, const char *, const char *, const ditron_program_options_t *,
                                        ditron_program_h *) {
  return refuse();
}
void ditron_program_destroy(ditron_program_h) {}
uint32_t ditron_program_ranks(ditron_program_h) { return 0; }
uint32_t ditron_program_mismatch_count(ditron_program_h) { return 0; }
const char *ditron_program_mismatch(ditron_program_h, uint32_t) { return nullptr; }
ditron_status_t ditron_program_get(ditron_program_h, const char *, uint32_t, ditron_program_array_t *) {
  return refuse();
}

} // extern "C"
