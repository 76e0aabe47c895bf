/* Code as the compiler makes it for simulated targets: constants, tables of addresses, data, and functions from elsewhere. */
#include <math.h>

static const double steps[4] = {1.0, 2.5, -3.0, 4.0};
static double (*const functions[2])(double) = {cbrt, fabs}; /* addresses, in .data.rel.ro */
static int calls;                                           /* .bss */
int offset = 1000;                                          /* reached through a word with its address */

extern void ditron_sim_self(void) __attribute__((weak));
extern void nobody_has_this(void) __attribute__((weak));

static __attribute__((noinline)) double step(int which) { return steps[which & 3]; }

/* *arguments[0] = functions[which](value) + step(which) + exp2(3) + offset + calls so far; the weak name counts 1 if it is there */
void entry(void **arguments) {
  double *value = arguments[0];
  const int which = *(int *)arguments[1];
  *value = functions[which & 1](*value) + step(which) + exp2(value[1]) + offset + calls;
  if (&nobody_has_this)
    *value += 1;
  if (&ditron_sim_self)
    *value += 0.5;
  ++calls;
}
