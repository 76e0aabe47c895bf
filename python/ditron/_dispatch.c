/*===- _dispatch.c - From a call's arguments to a launch ----------------------------------------------------------------===*
 *
 * Filled below.
 *
 *===---------------------------------------------------------------------------------------------------------------------===*/
#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include "native.h"

int add_dispatcher(PyObject *module) { return 0; }
