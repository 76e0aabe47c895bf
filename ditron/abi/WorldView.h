/*===- WorldView.h - The words that tell a kernel where it runs ---------------------------------------------------------===*
 *
 * The world view is the hidden last argument of every kernel: the address of 64-bit words that the runtime writes once for each
 * rank. Words of the view proper count from there upwards, what the runtime tells beside from there downwards.
 *
 *===------------------------------------------------------------------------------------------------------------------===*/
#ifndef DITRON_ABI_WORLDVIEW_H
#define DITRON_ABI_WORLDVIEW_H

enum DitronWorldWord {
  DITRON_WORLD_RANK = 0,
  DITRON_WORLD_NUM_RANKS = 1,
  DITRON_WORLD_HEAPS = 2,        /* Symmetric heap of rank 0, of rank 1, ... */
  DITRON_WORLD_WAIT_REPORT = -1, /* Address of the rank's DitronWaitReport; 0: waits have no limit. */
  DITRON_WORLD_WAIT_LIMIT = -2,  /* Nanoseconds. */
  DITRON_WORLD_RANKS_PER_NODE = -3,
  DITRON_WORLD_MULTICAST_HEAP = -4, /* Multicast address of this rank's symmetric heap; 0: there is none. */
  DITRON_WORLD_TEAM_BARRIERS = -5,  /* Address of this rank's words of team barriers. */
  DITRON_WORLD_WAIT_SLOTS =
      -6, /* Address of the rank's DitronWaitSlots (abi/WaitBoard.h); 0: waits are not published. */
  DITRON_WORLD_WAIT_SLOT_MASK = -7, /* Their number, a power of two, less one. */
  DITRON_WORLD_EVENT_RING = -8,  /* Address of the rank's DitronEventRing (abi/EventRing.h); 0: events are not noted. */
  DITRON_WORLD_WORDS_BEFORE = 16 /* Words before the view proper: whole cache lines, so that it stays aligned. */
};

#endif /* DITRON_ABI_WORLDVIEW_H */
