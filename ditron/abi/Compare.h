/*===- Compare.h - Comparisons of signals -------------------------------------------------------------------------------===*
 *
 * Host code, generated code, wait reports and the simulator number comparisons alike. Words compare as signed.
 *
 *===------------------------------------------------------------------------------------------------------------------===*/
#ifndef DITRON_ABI_COMPARE_H
#define DITRON_ABI_COMPARE_H

enum DitronCompare {
  DITRON_COMPARE_EQ = 0,
  DITRON_COMPARE_NE = 1,
  DITRON_COMPARE_GT = 2,
  DITRON_COMPARE_LE = 3,
  DITRON_COMPARE_LT = 4,
  DITRON_COMPARE_GE = 5
};

#endif /* DITRON_ABI_COMPARE_H */
