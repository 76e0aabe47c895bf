/*===- EventRing.h - Where blocks of a GPU note what they did when ------------------------------------------------------===*
 *
 * In the GPU's own memory, one for each rank: a head and a ring of events that kernels compiled with DITRON_TRACE_GPU append to. Who
 * appends takes the next number (`claimed`, one more for each event ever) and writes the event at that number modulo DITRON_RING_EVENTS;
 * `sequence` comes with it, so that a place that was claimed and not written yet is told from one that is full.
 *
 *===------------------------------------------------------------------------------------------------------------------===*/
#ifndef DITRON_ABI_EVENTRING_H
#define DITRON_ABI_EVENTRING_H

#include <stdint.h>

enum DitronEventKind {
  DITRON_EVENT_BLOCK = 1, /* From its first instruction to the return of its first warp; of large launches not all. */
  DITRON_EVENT_WAIT = 2,  /* A wait of the language that was not satisfied at once. `operation`: DitronCompare. */
  DITRON_EVENT_SIGNAL =
      3 /* A notify, a signal operation, a store of a word with release order. `begin` is when; `operation`: DitronSignalOperation. */
};
enum DitronSignalOperation { DITRON_SIGNAL_SET = 0, DITRON_SIGNAL_ADD = 1 };

typedef struct DitronEvent {
  uint32_t sequence;      /* The number, low bits, plus one. */
  uint32_t kindOperation; /* DitronEventKind | operation << 8 */
  uint32_t kernel;        /* FNV-1a, 32 bits, of the entry symbol. */
  uint32_t line;          /* 0: not known. */
  uint32_t blockX;
  uint32_t blockYZ;  /* y | z << 16 */
  uint32_t threadSm; /* thread | sm << 16 */
  uint32_t launch;   /* The GPU's number of the launch, low bits. */
  uint64_t begin;    /* The GPU's clock, in nanoseconds. */
  uint64_t end;
  uint64_t address; /* Of the word. */
  uint64_t value;   /* Wanted, or given. */
} DitronEvent;

typedef struct DitronEventRing {
  uint64_t claimed;
  uint64_t reserved[7];
  DitronEvent events[];
} DitronEventRing;

enum {
  DITRON_RING_EVENTS = 1 << 16, /* A power of two. */
  DITRON_WHOLE_LAUNCH =
      1 << 11 /* Blocks of a launch of which all are noted; of a larger one this many at most, and at least half. */
};

#ifdef __cplusplus
static_assert(sizeof(DitronEvent) == 64, "four stores of a thread");
#endif

#endif /* DITRON_ABI_EVENTRING_H */
