/*===- copy.c - Copies by many threads ------------------------------------------------------------------------------------===
 *
 * Freestanding C, compiled by clang to LLVM's form for each GPU family when Ditron is built, and linked into kernels that
 * call it, as libdevice is. No barriers in here: who calls orders the copy.
 *
 *===--------------------------------------------------------------------------------------------------------------------===*/

typedef unsigned char byte1;
typedef unsigned short byte2;
typedef unsigned int byte4;
typedef unsigned long long byte8;
typedef unsigned int byte16 __attribute__((vector_size(16)));
typedef unsigned long long size64;

/* Words of one size by `count` threads, of which this is number `index`. Four loads are in flight before the first store, since a
 * word on another GPU takes microseconds to come. */
#define COPY_WORDS(word)                                                                                               \
  static inline __attribute__((always_inline)) void copy_words_##word(word *to, const word *from, size64 words,        \
                                                                      size64 index, size64 count) {                    \
    size64 at = index;                                                                                                 \
    for (; at + 3 * count < words; at += 4 * count) {                                                                  \
      word a = from[at], b = from[at + count], c = from[at + 2 * count], d = from[at + 3 * count];                     \
      to[at] = a;                                                                                                      \
      to[at + count] = b;                                                                                              \
      to[at + 2 * count] = c;                                                                                          \
      to[at + 3 * count] = d;                                                                                          \
    }                                                                                                                  \
    for (; at < words; at += count)                                                                                    \
      to[at] = from[at];                                                                                               \
  }
COPY_WORDS(byte1)
COPY_WORDS(byte2)
COPY_WORDS(byte4)
COPY_WORDS(byte8)
COPY_WORDS(byte16)

/* The widest words for which both ends are aligned after the same head; the head and the tail go byte by byte. */
#define COPY_ALIGNED(word)                                                                                             \
  {                                                                                                                    \
    size64 head = (0 - (size64)to) & (sizeof(word) - 1);                                                               \
    if (head > bytes)                                                                                                  \
      head = bytes;                                                                                                    \
    copy_words_byte1((byte1 *)to, (const byte1 *)from, head, index, count);                                            \
    to = (char *)to + head;                                                                                            \
    from = (const char *)from + head;                                                                                  \
    bytes -= head;                                                                                                     \
    size64 whole = bytes / sizeof(word);                                                                               \
    copy_words_##word((word *)to, (const word *)from, whole, index, count);                                            \
    size64 done = whole * sizeof(word);                                                                                \
    copy_words_byte1((byte1 *)to + done, (const byte1 *)from + done, bytes - done, index, count);                      \
  }

void ditron_device_copy(void *to, const void *from, size64 bytes, unsigned int index32, unsigned int count32) {
  size64 index = index32, count = count32;
  size64 difference = (size64)to ^ (size64)from;
  if (difference % 16 == 0)
    COPY_ALIGNED(byte16)
  else if (difference % 8 == 0)
    COPY_ALIGNED(byte8)
  else if (difference % 4 == 0)
    COPY_ALIGNED(byte4)
  else if (difference % 2 == 0)
    COPY_ALIGNED(byte2)
  else
    copy_words_byte1((byte1 *)to, (const byte1 *)from, bytes, index, count);
}
