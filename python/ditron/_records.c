/*===- _records.c - Structures that the ranks have one of each ------------------------------------------------------------===*/
#include "native.h"

void free_rank_records(struct rank_records *result) {
  PyMem_Free(result->records);
  PyMem_Free((void *)result->pointers);
}

int read_rank_records(PyObject *tuple, size_t size, int (*read)(PyObject *item, void *record),
                      struct rank_records *result) {
  memset(result, 0, sizeof(*result));
  const Py_ssize_t count = PyTuple_Size(tuple);
  if (count < 0)
    return 0;
  result->count = (uint32_t)count;
  result->records = PyMem_Calloc((size_t)(count ? count : 1), size);
  result->pointers = PyMem_Calloc((size_t)(count ? count : 1), sizeof(*result->pointers));
  if (!result->records || !result->pointers) {
    free_rank_records(result);
    PyErr_NoMemory();
    return 0;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject *item = PyTuple_GetItem(tuple, i);
    if (item == Py_None)
      continue;
    void *record = (char *)result->records + (size_t)i * size;
    if (!read(item, record)) {
      free_rank_records(result);
      return 0;
    }
    result->pointers[i] = record;
  }
  return 1;
}
