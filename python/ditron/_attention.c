/*===- _attention.c - Attention and layers of it of the extension module ------------------------------------------------===*
 *
 * Arguments are numbers: handles, addresses and sizes. What they mean, and all checks of tensors, is in _attention.py.
 *
 *===---------------------------------------------------------------------------------------------------------------------===*/
#include "native.h"

/* dtype, heads, kv_heads, head_dim, value_dim, scale, causal, windowed, window, soft_cap, rows_first, page_size, values_transposed */
static PyObject *attention_create(PyObject *self, PyObject *args) {
  unsigned long long context;
  long long heads, kv_heads, head_dim, value_dim, window, page_size;
  int dtype;
  ditron_attention_options_t options;
  DITRON_INIT(options);
  if (!PyArg_ParseTuple(args, "KiLLLLdIILdILI", &context, &dtype, &heads, &kv_heads, &head_dim, &value_dim,
                        &options.scale, &options.causal, &options.windowed, &window, &options.soft_cap,
                        &options.rows_first, &page_size, &options.values_transposed))
    return NULL;
  options.dtype = (ditron_dtype_t)dtype;
  options.heads = heads;
  options.kv_heads = kv_heads;
  options.head_dim = head_dim;
  options.value_dim = value_dim;
  options.window = window;
  options.page_size = page_size;
  ditron_attention_h attention;
  CHECK_UNLOCKED(ditron.attention_create(handle(context), &options, &attention));
  return from_handle(attention);
}

DESTROY(attention)

/* A tuple: batch, queries, keys, packed_queries, packed_keys, pages. */
#define SHAPE_FORMAT "(LLLLLL)"
#define SHAPE_VALUES &sizes[0], &sizes[1], &sizes[2], &sizes[3], &sizes[4], &sizes[5]

static ditron_attention_shape_t shape_of(const long long sizes[6]) {
  ditron_attention_shape_t shape;
  DITRON_INIT(shape);
  shape.batch = sizes[0];
  shape.queries = sizes[1];
  shape.keys = sizes[2];
  shape.packed_queries = sizes[3];
  shape.packed_keys = sizes[4];
  shape.pages = sizes[5];
  return shape;
}

/* q, k, v, out, lse, sinks, slopes, query_offsets, key_offsets, key_lengths, block_table */
#define OPERANDS_FORMAT "KKKKKKKKKKK"
#define OPERANDS_VALUES &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &a[6], &a[7], &a[8], &a[9], &a[10]

static ditron_attention_operands_t operands_of(const unsigned long long a[11]) {
  ditron_attention_operands_t operands;
  DITRON_INIT(operands);
  operands.q = handle(a[0]);
  operands.k = handle(a[1]);
  operands.v = handle(a[2]);
  operands.out = handle(a[3]);
  operands.lse = handle(a[4]);
  operands.sinks = handle(a[5]);
  operands.slopes = handle(a[6]);
  operands.query_offsets = handle(a[7]);
  operands.key_offsets = handle(a[8]);
  operands.key_lengths = handle(a[9]);
  operands.block_table = handle(a[10]);
  return operands;
}

/* q, k, v, out, lse, gradient, dq, dk, dv, slopes, query_offsets, key_offsets, sinks, dsinks */
#define GRADIENTS_FORMAT "KKKKKKKKKKKKKK"
#define GRADIENTS_VALUES                                                                                               \
  &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &a[6], &a[7], &a[8], &a[9], &a[10], &a[11], &a[12], &a[13]

static ditron_attention_gradients_t gradients_of(const unsigned long long a[14]) {
  ditron_attention_gradients_t gradients;
  DITRON_INIT(gradients);
  gradients.q = handle(a[0]);
  gradients.k = handle(a[1]);
  gradients.v = handle(a[2]);
  gradients.out = handle(a[3]);
  gradients.lse = handle(a[4]);
  gradients.gradient = handle(a[5]);
  gradients.dq = handle(a[6]);
  gradients.dk = handle(a[7]);
  gradients.dv = handle(a[8]);
  gradients.slopes = handle(a[9]);
  gradients.query_offsets = handle(a[10]);
  gradients.key_offsets = handle(a[11]);
  gradients.sinks = handle(a[12]);
  gradients.dsinks = handle(a[13]);
  return gradients;
}

static PyObject *attention_prepare(PyObject *self, PyObject *args) {
  unsigned long long attention, a[11];
  long long sizes[6];
  if (!PyArg_ParseTuple(args, "K" SHAPE_FORMAT OPERANDS_FORMAT, &attention, SHAPE_VALUES, OPERANDS_VALUES))
    return NULL;
  const ditron_attention_shape_t shape = shape_of(sizes);
  const ditron_attention_operands_t operands = operands_of(a);
  CHECK_UNLOCKED(ditron.attention_prepare(handle(attention), &shape, &operands));
  Py_RETURN_NONE;
}

static PyObject *attention_enqueue(PyObject *self, PyObject *args) {
  unsigned long long attention, stream, a[11];
  long long sizes[6];
  if (!PyArg_ParseTuple(args, "KK" SHAPE_FORMAT OPERANDS_FORMAT, &attention, &stream, SHAPE_VALUES, OPERANDS_VALUES))
    return NULL;
  const ditron_attention_shape_t shape = shape_of(sizes);
  const ditron_attention_operands_t operands = operands_of(a);
  CHECK_UNLOCKED(ditron.attention_enqueue(handle(attention), handle(stream), &shape, &operands));
  Py_RETURN_NONE;
}

static PyObject *attention_prepare_backward(PyObject *self, PyObject *args) {
  unsigned long long attention, a[14];
  long long sizes[6];
  if (!PyArg_ParseTuple(args, "K" SHAPE_FORMAT GRADIENTS_FORMAT, &attention, SHAPE_VALUES, GRADIENTS_VALUES))
    return NULL;
  const ditron_attention_shape_t shape = shape_of(sizes);
  const ditron_attention_gradients_t gradients = gradients_of(a);
  CHECK_UNLOCKED(ditron.attention_prepare_backward(handle(attention), &shape, &gradients));
  Py_RETURN_NONE;
}

static PyObject *attention_backward(PyObject *self, PyObject *args) {
  unsigned long long attention, stream, a[14];
  long long sizes[6];
  if (!PyArg_ParseTuple(args, "KK" SHAPE_FORMAT GRADIENTS_FORMAT, &attention, &stream, SHAPE_VALUES, GRADIENTS_VALUES))
    return NULL;
  const ditron_attention_shape_t shape = shape_of(sizes);
  const ditron_attention_gradients_t gradients = gradients_of(a);
  CHECK_UNLOCKED(ditron.attention_backward(handle(attention), handle(stream), &shape, &gradients));
  Py_RETURN_NONE;
}

/* dtype, max_batch, heads, kv_heads, queries, head_dim, scale, page_size, page_stride, row_stride, head_stride, table_stride, over_ranks,
 * concurrent_calls */
static PyObject *attention_decode_create(PyObject *self, PyObject *args) {
  unsigned long long context;
  long long batch, heads, kv_heads, queries, head_dim, page_size, strides[4];
  int dtype;
  ditron_attention_decode_options_t options;
  DITRON_INIT(options);
  if (!PyArg_ParseTuple(args, "KiLLLLLdLLLLLII", &context, &dtype, &batch, &heads, &kv_heads, &queries, &head_dim,
                        &options.scale, &page_size, &strides[0], &strides[1], &strides[2], &strides[3],
                        &options.over_ranks, &options.concurrent_calls))
    return NULL;
  options.dtype = (ditron_dtype_t)dtype;
  options.max_batch = batch;
  options.heads = heads;
  options.kv_heads = kv_heads;
  options.queries = queries;
  options.head_dim = head_dim;
  options.page_size = page_size;
  options.page_stride = strides[0];
  options.row_stride = strides[1];
  options.head_stride = strides[2];
  options.table_stride = strides[3];
  ditron_attention_decode_h decode;
  CHECK_UNLOCKED(ditron.attention_decode_create(handle(context), &options, &decode));
  return from_handle(decode);
}

DESTROY(attention_decode)

/* batch, with_lse */
static PyObject *attention_decode_prepare(PyObject *self, PyObject *args) {
  unsigned long long decode;
  long long batch;
  unsigned with_lse;
  if (!PyArg_ParseTuple(args, "KLI", &decode, &batch, &with_lse))
    return NULL;
  CHECK_UNLOCKED(ditron.attention_decode_prepare(handle(decode), batch, with_lse));
  Py_RETURN_NONE;
}

/* batch, q, k, v, out, lse, lengths, table */
static PyObject *attention_decode_enqueue(PyObject *self, PyObject *args) {
  unsigned long long decode, stream, a[7];
  long long batch;
  if (!PyArg_ParseTuple(args, "KKLKKKKKKK", &decode, &stream, &batch, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &a[6]))
    return NULL;
  ditron_attention_decode_operands_t operands;
  DITRON_INIT(operands);
  operands.q = handle(a[0]);
  operands.k = handle(a[1]);
  operands.v = handle(a[2]);
  operands.out = handle(a[3]);
  operands.lse = handle(a[4]);
  operands.lengths = handle(a[5]);
  operands.table = handle(a[6]);
  CHECK_UNLOCKED(ditron.attention_decode_enqueue(handle(decode), handle(stream), &operands, batch));
  Py_RETURN_NONE;
}

int add_attention(PyObject *module) {
  static PyMethodDef methods[] = {METHOD(attention_create) METHOD(attention_destroy) METHOD(attention_prepare)
                                      METHOD(attention_enqueue) METHOD(attention_prepare_backward)
                                          METHOD(attention_backward) METHOD(attention_decode_create)
                                              METHOD(attention_decode_destroy) METHOD(attention_decode_prepare)
                                                  METHOD(attention_decode_enqueue){NULL, NULL, 0, NULL}};
  return PyModule_AddFunctions(module, methods);
}
