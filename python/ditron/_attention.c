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

/* dtype, batch, heads, kv_heads, head_dim, scale, causal, max_tokens, packed_sequences, goes_round, backward */
static PyObject *ring_attention_create(PyObject *self, PyObject *args) {
  unsigned long long context;
  long long batch, heads, kv_heads, head_dim, tokens, sequences;
  int dtype;
  ditron_ring_attention_options_t options;
  DITRON_INIT(options);
  if (!PyArg_ParseTuple(args, "KiLLLLdILLII", &context, &dtype, &batch, &heads, &kv_heads, &head_dim, &options.scale,
                        &options.causal, &tokens, &sequences, &options.goes_round, &options.backward))
    return NULL;
  options.dtype = (ditron_dtype_t)dtype;
  options.batch = batch;
  options.heads = heads;
  options.kv_heads = kv_heads;
  options.head_dim = head_dim;
  options.max_tokens = tokens;
  options.packed_sequences = sequences;
  ditron_ring_attention_h attention;
  CHECK_UNLOCKED(ditron.ring_attention_create(handle(context), &options, &attention));
  return from_handle(attention);
}

DESTROY(ring_attention)

/* tokens, with_lse, is_backward */
static PyObject *ring_attention_prepare(PyObject *self, PyObject *args) {
  unsigned long long attention;
  long long tokens;
  unsigned with_lse, is_backward;
  if (!PyArg_ParseTuple(args, "KLII", &attention, &tokens, &with_lse, &is_backward))
    return NULL;
  if (is_backward)
    CHECK_UNLOCKED(ditron.ring_attention_prepare_backward(handle(attention), tokens));
  else
    CHECK_UNLOCKED(ditron.ring_attention_prepare(handle(attention), tokens, with_lse));
  Py_RETURN_NONE;
}

/* tokens, q, k, v, out, lse, offsets */
static PyObject *ring_attention_enqueue(PyObject *self, PyObject *args) {
  unsigned long long attention, stream, a[6];
  long long tokens;
  if (!PyArg_ParseTuple(args, "KKLKKKKKK", &attention, &stream, &tokens, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5]))
    return NULL;
  ditron_ring_attention_operands_t operands;
  DITRON_INIT(operands);
  operands.q = handle(a[0]);
  operands.k = handle(a[1]);
  operands.v = handle(a[2]);
  operands.out = handle(a[3]);
  operands.lse = handle(a[4]);
  operands.offsets = handle(a[5]);
  CHECK_UNLOCKED(ditron.ring_attention_enqueue(handle(attention), handle(stream), &operands, tokens));
  Py_RETURN_NONE;
}

/* tokens, q, k, v, out, lse, gradient, dq, dk, dv, offsets */
static PyObject *ring_attention_backward(PyObject *self, PyObject *args) {
  unsigned long long attention, stream, a[10];
  long long tokens;
  if (!PyArg_ParseTuple(args, "KKLKKKKKKKKKK", &attention, &stream, &tokens, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5],
                        &a[6], &a[7], &a[8], &a[9]))
    return NULL;
  ditron_ring_attention_gradients_t gradients;
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
  gradients.offsets = handle(a[9]);
  CHECK_UNLOCKED(ditron.ring_attention_backward(handle(attention), handle(stream), &gradients, tokens));
  Py_RETURN_NONE;
}

/* (qkv, out, qkv_bias, q_norm, k_norm, rotary) */
static int read_weights(PyObject *item, void *record) {
  unsigned long long a[6];
  if (!PyArg_ParseTuple(item, "KKKKKK", &a[0], &a[1], &a[2], &a[3], &a[4], &a[5]))
    return 0;
  ditron_attention_weights_t *own = record;
  own->struct_size = sizeof(*own);
  own->qkv = handle(a[0]);
  own->out = handle(a[1]);
  own->qkv_bias = handle(a[2]);
  own->q_norm = handle(a[3]);
  own->k_norm = handle(a[4]);
  own->rotary = handle(a[5]);
  return 1;
}

/* dtype, hidden, heads, kv_heads, head_dim, scale, rotary_dim, rotary_interleaved, norm_epsilon, qkv_bias, dealt, max_tokens, max_batch,
 * max_keys, page_size, pages, unfused, concurrent_calls, weights */
static PyObject *tensor_parallel_attention_create(PyObject *self, PyObject *args) {
  unsigned long long context;
  long long hidden, heads, kv_heads, head_dim, rotary_dim, tokens, batch, keys, page_size, pages;
  int dtype;
  PyObject *given;
  ditron_tensor_parallel_attention_options_t options;
  DITRON_INIT(options);
  if (!PyArg_ParseTuple(args, "KiLLLLdLIdIILLLLLIIO", &context, &dtype, &hidden, &heads, &kv_heads, &head_dim,
                        &options.scale, &rotary_dim, &options.rotary_interleaved, &options.norm_epsilon,
                        &options.qkv_bias, &options.dealt, &tokens, &batch, &keys, &page_size, &pages,
                        &options.unfused, &options.concurrent_calls, &given))
    return NULL;
  options.dtype = (ditron_dtype_t)dtype;
  options.hidden = hidden;
  options.heads = heads;
  options.kv_heads = kv_heads;
  options.head_dim = head_dim;
  options.rotary_dim = rotary_dim;
  options.max_tokens = tokens;
  options.max_batch = batch;
  options.max_keys = keys;
  options.page_size = page_size;
  options.pages = pages;
  struct rank_records weights;
  if (!read_rank_records(given, sizeof(ditron_attention_weights_t), read_weights, &weights))
    return NULL;
  ditron_tensor_parallel_attention_h layer;
  ditron_status_t status;
  Py_BEGIN_ALLOW_THREADS status = ditron.tensor_parallel_attention_create(
      handle(context), &options, (const ditron_attention_weights_t *const *)weights.pointers, weights.count, &layer);
  Py_END_ALLOW_THREADS free_rank_records(&weights);
  return status == DITRON_OK ? from_handle(layer) : raise_status(status);
}

DESTROY(tensor_parallel_attention)

/* tokens, batch, longest */
static PyObject *tensor_parallel_attention_prepare_prefill(PyObject *self, PyObject *args) {
  unsigned long long layer;
  long long tokens, batch, longest;
  if (!PyArg_ParseTuple(args, "KLLL", &layer, &tokens, &batch, &longest))
    return NULL;
  CHECK_UNLOCKED(ditron.tensor_parallel_attention_prepare_prefill(handle(layer), tokens, batch, longest));
  Py_RETURN_NONE;
}

/* batch */
static PyObject *tensor_parallel_attention_prepare_decode(PyObject *self, PyObject *args) {
  unsigned long long layer;
  long long batch;
  if (!PyArg_ParseTuple(args, "KL", &layer, &batch))
    return NULL;
  CHECK_UNLOCKED(ditron.tensor_parallel_attention_prepare_decode(handle(layer), batch));
  Py_RETURN_NONE;
}

/* tokens, batch, longest (0: a step of decoding), x, y, keys, values, lengths, offsets, table */
static PyObject *tensor_parallel_attention_enqueue(PyObject *self, PyObject *args) {
  unsigned long long layer, stream, a[7];
  long long tokens, batch, longest;
  if (!PyArg_ParseTuple(args, "KKLLLKKKKKKK", &layer, &stream, &tokens, &batch, &longest, &a[0], &a[1], &a[2], &a[3],
                        &a[4], &a[5], &a[6]))
    return NULL;
  ditron_tensor_parallel_attention_operands_t operands;
  DITRON_INIT(operands);
  operands.x = handle(a[0]);
  operands.y = handle(a[1]);
  operands.keys = handle(a[2]);
  operands.values = handle(a[3]);
  operands.lengths = handle(a[4]);
  operands.offsets = handle(a[5]);
  operands.table = handle(a[6]);
  if (longest == 0)
    CHECK_UNLOCKED(ditron.tensor_parallel_attention_decode(handle(layer), handle(stream), &operands, batch));
  else
    CHECK_UNLOCKED(ditron.tensor_parallel_attention_prefill(handle(layer), handle(stream), &operands, tokens, batch,
                                                            longest));
  Py_RETURN_NONE;
}

/* dtype, batch, hidden, heads, kv_heads, head_dim, not_causal, scale, rotary_dim, rotary_interleaved, norm_epsilon, max_tokens, chunks,
 * cache_batch, cache_keys, page_size, pages, concurrent_calls, weights */
static PyObject *sequence_parallel_attention_create(PyObject *self, PyObject *args) {
  unsigned long long context;
  long long batch, hidden, heads, kv_heads, head_dim, rotary_dim, tokens, cache_batch, cache_keys, page_size, pages;
  int dtype;
  PyObject *given;
  ditron_sequence_parallel_attention_options_t options;
  DITRON_INIT(options);
  if (!PyArg_ParseTuple(args, "KiLLLLLIdLIdLILLLLIO", &context, &dtype, &batch, &hidden, &heads, &kv_heads, &head_dim,
                        &options.not_causal, &options.scale, &rotary_dim, &options.rotary_interleaved,
                        &options.norm_epsilon, &tokens, &options.chunks, &cache_batch, &cache_keys, &page_size, &pages,
                        &options.concurrent_calls, &given))
    return NULL;
  options.dtype = (ditron_dtype_t)dtype;
  options.batch = batch;
  options.hidden = hidden;
  options.heads = heads;
  options.kv_heads = kv_heads;
  options.head_dim = head_dim;
  options.rotary_dim = rotary_dim;
  options.max_tokens = tokens;
  options.cache_batch = cache_batch;
  options.cache_keys = cache_keys;
  options.page_size = page_size;
  options.pages = pages;
  struct rank_records weights;
  if (!read_rank_records(given, sizeof(ditron_attention_weights_t), read_weights, &weights))
    return NULL;
  ditron_sequence_parallel_attention_h layer;
  ditron_status_t status;
  Py_BEGIN_ALLOW_THREADS status = ditron.sequence_parallel_attention_create(
      handle(context), &options, (const ditron_attention_weights_t *const *)weights.pointers, weights.count, &layer);
  Py_END_ALLOW_THREADS free_rank_records(&weights);
  return status == DITRON_OK ? from_handle(layer) : raise_status(status);
}

DESTROY(sequence_parallel_attention)

/* tokens (of a prefill), or batch with is_decode */
static PyObject *sequence_parallel_attention_prepare(PyObject *self, PyObject *args) {
  unsigned long long layer;
  long long size;
  unsigned is_decode;
  if (!PyArg_ParseTuple(args, "KLI", &layer, &size, &is_decode))
    return NULL;
  if (is_decode)
    CHECK_UNLOCKED(ditron.sequence_parallel_attention_prepare_decode(handle(layer), size));
  else
    CHECK_UNLOCKED(ditron.sequence_parallel_attention_prepare_prefill(handle(layer), size));
  Py_RETURN_NONE;
}

/* tokens, or batch with is_decode; x, y, keys, values, table, lengths, places, positions */
static PyObject *sequence_parallel_attention_enqueue(PyObject *self, PyObject *args) {
  unsigned long long layer, stream, a[8];
  long long size;
  unsigned is_decode;
  if (!PyArg_ParseTuple(args, "KKLIKKKKKKKK", &layer, &stream, &size, &is_decode, &a[0], &a[1], &a[2], &a[3], &a[4],
                        &a[5], &a[6], &a[7]))
    return NULL;
  ditron_sequence_parallel_attention_operands_t operands;
  DITRON_INIT(operands);
  operands.x = handle(a[0]);
  operands.y = handle(a[1]);
  operands.keys = handle(a[2]);
  operands.values = handle(a[3]);
  operands.table = handle(a[4]);
  operands.lengths = handle(a[5]);
  operands.places = handle(a[6]);
  operands.positions = handle(a[7]);
  if (is_decode)
    CHECK_UNLOCKED(ditron.sequence_parallel_attention_decode(handle(layer), handle(stream), &operands, size));
  else
    CHECK_UNLOCKED(ditron.sequence_parallel_attention_prefill(handle(layer), handle(stream), &operands, size));
  Py_RETURN_NONE;
}

int add_attention(PyObject *module) {
  static PyMethodDef methods[] = {
      METHOD(attention_create) METHOD(attention_destroy) METHOD(attention_prepare) METHOD(attention_enqueue)
          METHOD(attention_prepare_backward) METHOD(attention_backward) METHOD(attention_decode_create)
              METHOD(attention_decode_destroy) METHOD(attention_decode_prepare) METHOD(attention_decode_enqueue)
              METHOD(ring_attention_create) METHOD(ring_attention_destroy)
              METHOD(ring_attention_prepare) METHOD(ring_attention_enqueue) METHOD(ring_attention_backward)
                  METHOD(tensor_parallel_attention_create) METHOD(tensor_parallel_attention_destroy)
                      METHOD(tensor_parallel_attention_prepare_prefill) METHOD(tensor_parallel_attention_prepare_decode)
                          METHOD(tensor_parallel_attention_enqueue) METHOD(sequence_parallel_attention_create)
                              METHOD(sequence_parallel_attention_destroy) METHOD(sequence_parallel_attention_prepare)
                                  METHOD(sequence_parallel_attention_enqueue){NULL, NULL, 0, NULL}};
  return PyModule_AddFunctions(module, methods);
}
