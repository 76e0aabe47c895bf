/*===- WaitReport.h - What a wait that took too long tells the host -----------------------------------------------------===*
 *
 * In memory of the host that kernels write: the first wait of a rank that lasts longer than the limit claims the report (state 0
 * to 1), fills it in and publishes it (state 2, release at system scope).
 *
 *===------------------------------------------------------------------------------------------------------------------===*/
#ifndef DITRON_ABI_WAITREPORT_H
#define DITRON_ABI_WAITREPORT_H

#include <stdint.h>

enum DitronWaitState { DITRON_WAIT_NONE = 0, DITRON_WAIT_WRITING = 1, DITRON_WAIT_COMPLETE = 2 };
enum DitronWaitKind {
  DITRON_WAIT_SIGNAL = 0,   /* A wait of the language. */
  DITRON_WAIT_LOOP = 1,     /* A loop of the kernel's own that polls a word; it wants no particular value. */
  DITRON_WAIT_MBARRIER = 2  /* `wanted` is the parity. */
};

typedef struct DitronWaitReport {
  uint32_t state; /* DitronWaitState */
  uint32_t rank;
  uint32_t block[3];
  uint32_t thread;
  uint32_t line, column;
  uint32_t compare; /* DitronCompare */
  uint32_t wordBytes;
  uint32_t kind;   /* DitronWaitKind */
  uint32_t kernel; /* FNV-1a, 32 bits, of the entry symbol; 0: not known. */
  uint64_t address;
  uint64_t seen;
  uint64_t wanted;
  uint64_t reserved[7];
} DitronWaitReport;

#ifdef __cplusplus
static_assert(sizeof(DitronWaitReport) == 128, "a cache line of the host's memory");
#endif

#endif /* DITRON_ABI_WAITREPORT_H */
