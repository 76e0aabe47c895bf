/*===- WaitBoard.h - Where blocks of a GPU say what they wait for --------------------------------------------------------===*
 *
 * A file in shared memory, one for each rank (names: ditron/explain/WaitBoard.h): a head, a table of names that the host appends to,
 * and slots that kernels write. A wait that lasts claims a slot (state 0 to 1), fills it in, publishes it (state 2, release at
 * system scope), looks again now and then (`seen`, `lastLooked`), and gives it back when it ends (state 0). Other processes
 * of the same user read all of it at any time.
 *
 * The table is text, a line for each record, fields separated by tabs; later lines replace earlier ones of one address or number:
 *   memory  ADDRESS BYTES ELEMENT_BYTES KIND NAME      KIND: symmetric, device, pinned
 *   freed   ADDRESS
 *   heap    RANK BASE BYTES                            where this process addresses the rank's symmetric heap
 *   kernel  HASH NAME FILE                             32-bit FNV-1a of the entry symbol
 *
 *===------------------------------------------------------------------------------------------------------------------===*/
#ifndef DITRON_ABI_WAITBOARD_H
#define DITRON_ABI_WAITBOARD_H

#include "ditron/abi/WaitReport.h"

#include <stdint.h>

enum DitronSlotState { DITRON_SLOT_FREE = 0, DITRON_SLOT_WRITING = 1, DITRON_SLOT_WAITING = 2 };

typedef struct DitronWaitSlot {
  uint32_t state;  /* DitronSlotState */
  uint32_t kernel; /* FNV-1a, 32 bits, of the entry symbol. */
  uint32_t block[3];
  uint32_t thread;
  uint32_t line, column; /* 0: not known. */
  uint32_t compare;      /* DitronCompare */
  uint32_t wordBytes;
  uint32_t kind; /* DitronWaitKind */
  uint32_t sm;
  uint64_t address;
  uint64_t wanted;
  uint64_t launch; /* The GPU's number of the launch. */
  uint64_t since;  /* The GPU's clock, in nanoseconds. */
  uint64_t seen;
  uint64_t lastLooked; /* The GPU's clock when `seen` was read. */
  uint64_t reserved[4];
} DitronWaitSlot;

enum {
  DITRON_BOARD_VERSION = 1,
  DITRON_BOARD_HEAD_BYTES = 4096,
  DITRON_BOARD_TABLE_BYTES = 1 << 20,
  DITRON_BOARD_SLOTS = 4096 /* A power of two. */
};
#define DITRON_BOARD_MAGIC 0x44524f4254494157ull /* "WAITBORD" */

typedef struct DitronBoardHead {
  uint64_t magic;
  uint32_t version;
  uint32_t pid;
  uint64_t processStart; /* Of /proc/PID/stat: another process may get the number of one that is gone. */
  uint32_t rank, numRanks;
  uint32_t gpu;
  uint32_t publishes; /* Kernels that publish their waits have been loaded: their number. */
  uint64_t tableOffset, tableBytes;
  uint64_t slotsOffset, slots;
  uint64_t tableUsed;        /* Bytes of whole lines; grows, release. */
  uint64_t generation;       /* Odd while the table is being rewritten. */
  char target[64], name[64]; /* Of the GPU. */
} DitronBoardHead;

#ifdef __cplusplus
static_assert(sizeof(DitronWaitSlot) == 128, "a cache line of the host's memory");
static_assert(sizeof(DitronBoardHead) <= DITRON_BOARD_HEAD_BYTES);
#endif

#endif /* DITRON_ABI_WAITBOARD_H */
