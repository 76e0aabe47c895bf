/*===- _mixture.c - Routing, grouped products, expert parallelism and layers of experts of the extension module ---------===*
 *
 * Arguments are numbers: handles, addresses and sizes. What they mean, and all checks of tensors, is in _mixture.py.
 *
 *===---------------------------------------------------------------------------------------------------------------------===*/
#include "native.h"

/* Takes an operator's handle and a stream's: waits for the stream and says what the calls of its rank have met. */
#define CHECKED(object)                                                                                                \
  static PyObject *object##_check(PyObject *self, PyObject *args) {                                                    \
    unsigned long long value, stream;                                                                                  \
    if (!PyArg_ParseTuple(args, "KK", &value, &stream))                                                                \
      return NULL;                                                                                                     \
    CHECK_UNLOCKED(ditron.object##_check(handle(value), handle(stream)));                                              \
    Py_RETURN_NONE;                                                                                                    \
  }

/* Takes a handle and a number of tokens. */
#define PREPARED(object)                                                                                               \
  static PyObject *object##_prepare(PyObject *self, PyObject *args) {                                                  \
    unsigned long long value;                                                                                          \
    long long tokens;                                                                                                  \
    if (!PyArg_ParseTuple(args, "KL", &value, &tokens))                                                                \
      return NULL;                                                                                                     \
    CHECK_UNLOCKED(ditron.object##_prepare(handle(value), tokens));                                                    \
    Py_RETURN_NONE;                                                                                                    \
  }

/* Takes a handle, a stream's, x, y and a number of tokens. */
#define LAYER(object)                                                                                                  \
  static PyObject *object##_enqueue(PyObject *self, PyObject *args) {                                                  \
    unsigned long long value, stream, x, y;                                                                            \
    long long tokens;                                                                                                  \
    if (!PyArg_ParseTuple(args, "KKKKL", &value, &stream, &x, &y, &tokens))                                            \
      return NULL;                                                                                                     \
    CHECK_UNLOCKED(ditron.object##_enqueue(handle(value), handle(stream), handle(x), handle(y), tokens));              \
    Py_RETURN_NONE;                                                                                                    \
  }

/* What the options of routing and of the layers begin with: dtype, hidden, experts, top_k, score, not_normalized, scale, and their numbers. */
#define ROUTER_FORMAT "iLIIiId"
#define ROUTER_VALUES &dtype, &hidden, &options.experts, &options.top_k, &score, &options.not_normalized, &options.scale
#define SET_ROUTER                                                                                                     \
  options.dtype = (ditron_dtype_t)dtype;                                                                               \
  options.hidden = hidden;                                                                                             \
  options.score = (ditron_router_score_t)score

/* Takes a handle, a stream's, a number of tokens, x, dy, dx and the gradients of router, up, down, shared_up, shared_down. */
#define BACKWARD(object)                                                                                               \
  static PyObject *object##_backward(PyObject *self, PyObject *args) {                                                 \
    unsigned long long value, stream, a[8];                                                                            \
    long long tokens;                                                                                                  \
    if (!PyArg_ParseTuple(args, "KKLKKKKKKKK", &value, &stream, &tokens, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5],     \
                          &a[6], &a[7]))                                                                               \
      return NULL;                                                                                                     \
    ditron_moe_gradients_t gradients;                                                                                  \
    DITRON_INIT(gradients);                                                                                            \
    gradients.x = handle(a[0]);                                                                                        \
    gradients.dy = handle(a[1]);                                                                                       \
    gradients.dx = handle(a[2]);                                                                                       \
    gradients.router = handle(a[3]);                                                                                   \
    gradients.up = handle(a[4]);                                                                                       \
    gradients.down = handle(a[5]);                                                                                     \
    gradients.shared_up = handle(a[6]);                                                                                \
    gradients.shared_down = handle(a[7]);                                                                              \
    CHECK_UNLOCKED(ditron.object##_backward(handle(value), handle(stream), &gradients, tokens));                       \
    Py_RETURN_NONE;                                                                                                    \
  }

static PyObject *routing_create(PyObject *self, PyObject *args) {
  unsigned long long context;
  long long hidden, tokens;
  int dtype, score;
  ditron_routing_options_t options;
  DITRON_INIT(options);
  if (!PyArg_ParseTuple(args, "K" ROUTER_FORMAT "L", &context, ROUTER_VALUES, &tokens))
    return NULL;
  SET_ROUTER;
  options.max_tokens = tokens;
  ditron_routing_h routing;
  CHECK_UNLOCKED(ditron.routing_create(handle(context), &options, &routing));
  return from_handle(routing);
}

DESTROY(routing)
PREPARED(routing)

/* logits, bias, ids, weights, tokens */
static PyObject *routing_choose(PyObject *self, PyObject *args) {
  unsigned long long routing, stream, logits, bias, ids, weights;
  long long tokens;
  if (!PyArg_ParseTuple(args, "KKKKKKL", &routing, &stream, &logits, &bias, &ids, &weights, &tokens))
    return NULL;
  CHECK_UNLOCKED(ditron.routing_choose(handle(routing), handle(stream), handle(logits), handle(bias), handle(ids),
                                       handle(weights), tokens));
  Py_RETURN_NONE;
}

/* ids, offsets, slot_of_row, row_of_slot, tokens */
static PyObject *routing_sort(PyObject *self, PyObject *args) {
  unsigned long long routing, stream, ids, offsets, slots, rows;
  long long tokens;
  if (!PyArg_ParseTuple(args, "KKKKKKL", &routing, &stream, &ids, &offsets, &slots, &rows, &tokens))
    return NULL;
  CHECK_UNLOCKED(ditron.routing_sort(handle(routing), handle(stream), handle(ids), handle(offsets), handle(slots),
                                     handle(rows), tokens));
  Py_RETURN_NONE;
}

/* rows, row_of_slot, weights, out, tokens */
static PyObject *routing_sum(PyObject *self, PyObject *args) {
  unsigned long long routing, stream, rows, row_of_slot, weights, out;
  long long tokens;
  if (!PyArg_ParseTuple(args, "KKKKKKL", &routing, &stream, &rows, &row_of_slot, &weights, &out, &tokens))
    return NULL;
  CHECK_UNLOCKED(ditron.routing_sum(handle(routing), handle(stream), handle(rows), handle(row_of_slot), handle(weights),
                                    handle(out), tokens));
  Py_RETURN_NONE;
}

/* dtype, result_dtype, max_rows, experts, n, k, weights_plain, activation, slots, block_scales */
static PyObject *grouped_gemm_create(PyObject *self, PyObject *args) {
  unsigned long long context;
  long long rows, n, k;
  int dtype, result, activation;
  ditron_grouped_gemm_options_t options;
  DITRON_INIT(options);
  if (!PyArg_ParseTuple(args, "KiiLILLIiII", &context, &dtype, &result, &rows, &options.experts, &n, &k,
                        &options.weights_plain, &activation, &options.slots, &options.block_scales))
    return NULL;
  options.dtype = (ditron_dtype_t)dtype;
  options.result_dtype = (ditron_dtype_t)result;
  options.max_rows = rows;
  options.n = n;
  options.k = k;
  options.activation = (ditron_activation_t)activation;
  ditron_grouped_gemm_h product;
  CHECK_UNLOCKED(ditron.grouped_gemm_create(handle(context), &options, &product));
  return from_handle(product);
}

DESTROY(grouped_gemm)

static PyObject *grouped_gemm_prepare(PyObject *self, PyObject *args) {
  unsigned long long product;
  if (!PyArg_ParseTuple(args, "K", &product))
    return NULL;
  CHECK_UNLOCKED(ditron.grouped_gemm_prepare(handle(product)));
  Py_RETURN_NONE;
}

/* a, b, c, offsets, slot_of_row, a_scale, b_scale */
static PyObject *grouped_gemm_enqueue(PyObject *self, PyObject *args) {
  unsigned long long product, stream, a[7];
  if (!PyArg_ParseTuple(args, "KKKKKKKKK", &product, &stream, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &a[6]))
    return NULL;
  ditron_grouped_gemm_operands_t operands;
  DITRON_INIT(operands);
  operands.a = handle(a[0]);
  operands.b = handle(a[1]);
  operands.c = handle(a[2]);
  operands.offsets = handle(a[3]);
  operands.slot_of_row = handle(a[4]);
  operands.a_scale = handle(a[5]);
  operands.b_scale = handle(a[6]);
  CHECK_UNLOCKED(ditron.grouped_gemm_enqueue(handle(product), handle(stream), &operands));
  Py_RETURN_NONE;
}

/* dtype, hidden, experts, top_k, max_tokens, fp8, capacity, max_rows, concurrent_calls */
static PyObject *expert_parallel_create(PyObject *self, PyObject *args) {
  unsigned long long context;
  long long hidden, tokens, capacity, rows;
  int dtype;
  ditron_expert_parallel_options_t options;
  DITRON_INIT(options);
  if (!PyArg_ParseTuple(args, "KiLIILILLI", &context, &dtype, &hidden, &options.experts, &options.top_k, &tokens,
                        &options.fp8, &capacity, &rows, &options.concurrent_calls))
    return NULL;
  options.dtype = (ditron_dtype_t)dtype;
  options.hidden = hidden;
  options.max_tokens = tokens;
  options.capacity = capacity;
  options.max_rows = rows;
  ditron_expert_parallel_h experts;
  CHECK_UNLOCKED(ditron.expert_parallel_create(handle(context), &options, &experts));
  return from_handle(experts);
}

DESTROY(expert_parallel)
CHECKED(expert_parallel)

/* (max_rows, handle_elements) */
static PyObject *expert_parallel_sizes(PyObject *self, PyObject *args) {
  unsigned long long experts;
  if (!PyArg_ParseTuple(args, "K", &experts))
    return NULL;
  return Py_BuildValue("LL", (long long)ditron.expert_parallel_max_rows(handle(experts)),
                       (long long)ditron.expert_parallel_handle_elements(handle(experts)));
}

static PyObject *expert_parallel_prepare(PyObject *self, PyObject *args) {
  unsigned long long experts;
  unsigned parts;
  if (!PyArg_ParseTuple(args, "KI", &experts, &parts))
    return NULL;
  CHECK_UNLOCKED(ditron.expert_parallel_prepare(handle(experts), parts));
  Py_RETURN_NONE;
}

/* part, tokens, x, ids, weights, rows, scales, offsets, handle */
static PyObject *expert_parallel_dispatch(PyObject *self, PyObject *args) {
  unsigned long long experts, stream, a[7];
  long long tokens;
  int part;
  if (!PyArg_ParseTuple(args, "KKiLKKKKKKK", &experts, &stream, &part, &tokens, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5],
                        &a[6]))
    return NULL;
  ditron_dispatch_operands_t operands;
  DITRON_INIT(operands);
  operands.tokens = tokens;
  operands.x = handle(a[0]);
  operands.ids = handle(a[1]);
  operands.weights = handle(a[2]);
  operands.rows = handle(a[3]);
  operands.scales = handle(a[4]);
  operands.offsets = handle(a[5]);
  operands.handle = handle(a[6]);
  CHECK_UNLOCKED(ditron.expert_parallel_dispatch(handle(experts), handle(stream), &operands, (ditron_call_part_t)part));
  Py_RETURN_NONE;
}

/* part, tokens, rows, out, handle */
static PyObject *expert_parallel_combine(PyObject *self, PyObject *args) {
  unsigned long long experts, stream, rows, out, words;
  long long tokens;
  int part;
  if (!PyArg_ParseTuple(args, "KKiLKKK", &experts, &stream, &part, &tokens, &rows, &out, &words))
    return NULL;
  ditron_combine_operands_t operands;
  DITRON_INIT(operands);
  operands.tokens = tokens;
  operands.rows = handle(rows);
  operands.out = handle(out);
  operands.handle = handle(words);
  CHECK_UNLOCKED(ditron.expert_parallel_combine(handle(experts), handle(stream), &operands, (ditron_call_part_t)part));
  Py_RETURN_NONE;
}

/* (router, bias, up, down, up_scale, down_scale, shared_up, shared_down) */
static int read_weights(PyObject *item, void *record) {
  unsigned long long a[8];
  if (!PyArg_ParseTuple(item, "KKKKKKKK", &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &a[6], &a[7]))
    return 0;
  ditron_moe_weights_t *own = record;
  own->struct_size = sizeof(*own);
  own->router = handle(a[0]);
  own->bias = handle(a[1]);
  own->up = handle(a[2]);
  own->down = handle(a[3]);
  own->up_scale = handle(a[4]);
  own->down_scale = handle(a[5]);
  own->shared_up = handle(a[6]);
  own->shared_down = handle(a[7]);
  return 1;
}

/* The router's, inner, max_tokens_per_rank, replicated, unfused, training, gradient_dtype, gradients_set, weights */
static PyObject *tensor_parallel_moe_create(PyObject *self, PyObject *args) {
  unsigned long long context;
  long long hidden, inner, tokens;
  int dtype, score, gradient;
  PyObject *given;
  ditron_tensor_parallel_moe_options_t options;
  DITRON_INIT(options);
  if (!PyArg_ParseTuple(args, "K" ROUTER_FORMAT "LLIIIiIO", &context, ROUTER_VALUES, &inner, &tokens,
                        &options.replicated, &options.unfused, &options.training, &gradient, &options.gradients_set,
                        &given))
    return NULL;
  SET_ROUTER;
  options.inner = inner;
  options.max_tokens_per_rank = tokens;
  options.gradient_dtype = (ditron_dtype_t)gradient;
  struct rank_records weights;
  if (!read_rank_records(given, sizeof(ditron_moe_weights_t), read_weights, &weights))
    return NULL;
  ditron_tensor_parallel_moe_h layer;
  ditron_status_t status;
  Py_BEGIN_ALLOW_THREADS status = ditron.tensor_parallel_moe_create(
      handle(context), &options, (const ditron_moe_weights_t *const *)weights.pointers, weights.count, &layer);
  Py_END_ALLOW_THREADS free_rank_records(&weights);
  return status == DITRON_OK ? from_handle(layer) : raise_status(status);
}

DESTROY(tensor_parallel_moe)
PREPARED(tensor_parallel_moe)
LAYER(tensor_parallel_moe)
BACKWARD(tensor_parallel_moe)

/* The router's, inner, shared_inner, max_tokens, fp8, capacity, max_rows, concurrent_calls, training, gradient_dtype, gradients_set, weights */
static PyObject *expert_parallel_moe_create(PyObject *self, PyObject *args) {
  unsigned long long context;
  long long hidden, inner, shared, tokens, capacity, rows;
  int dtype, score, gradient;
  PyObject *given;
  ditron_expert_parallel_moe_options_t options;
  DITRON_INIT(options);
  if (!PyArg_ParseTuple(args, "K" ROUTER_FORMAT "LLLILLIIiIO", &context, ROUTER_VALUES, &inner, &shared, &tokens,
                        &options.fp8, &capacity, &rows, &options.concurrent_calls, &options.training, &gradient,
                        &options.gradients_set, &given))
    return NULL;
  SET_ROUTER;
  options.inner = inner;
  options.shared_inner = shared;
  options.max_tokens = tokens;
  options.capacity = capacity;
  options.max_rows = rows;
  options.gradient_dtype = (ditron_dtype_t)gradient;
  struct rank_records weights;
  if (!read_rank_records(given, sizeof(ditron_moe_weights_t), read_weights, &weights))
    return NULL;
  ditron_expert_parallel_moe_h layer;
  ditron_status_t status;
  Py_BEGIN_ALLOW_THREADS status = ditron.expert_parallel_moe_create(
      handle(context), &options, (const ditron_moe_weights_t *const *)weights.pointers, weights.count, &layer);
  Py_END_ALLOW_THREADS free_rank_records(&weights);
  return status == DITRON_OK ? from_handle(layer) : raise_status(status);
}

DESTROY(expert_parallel_moe)
PREPARED(expert_parallel_moe)
LAYER(expert_parallel_moe)
BACKWARD(expert_parallel_moe)
CHECKED(expert_parallel_moe)

int add_mixture(PyObject *module) {
  static PyMethodDef methods[] = {
      METHOD(routing_create) METHOD(routing_destroy) METHOD(routing_prepare) METHOD(routing_choose) METHOD(routing_sort)
          METHOD(routing_sum) METHOD(grouped_gemm_create) METHOD(grouped_gemm_destroy) METHOD(grouped_gemm_prepare)
              METHOD(grouped_gemm_enqueue) METHOD(expert_parallel_create) METHOD(expert_parallel_destroy)
                  METHOD(expert_parallel_sizes) METHOD(expert_parallel_prepare) METHOD(expert_parallel_dispatch)
                      METHOD(expert_parallel_combine) METHOD(expert_parallel_check) METHOD(tensor_parallel_moe_create)
                          METHOD(tensor_parallel_moe_destroy) METHOD(tensor_parallel_moe_prepare)
                              METHOD(tensor_parallel_moe_enqueue) METHOD(tensor_parallel_moe_backward) METHOD(expert_parallel_moe_create)
                                  METHOD(expert_parallel_moe_destroy) METHOD(expert_parallel_moe_prepare)
                                      METHOD(expert_parallel_moe_enqueue) METHOD(expert_parallel_moe_backward)
                                          METHOD(expert_parallel_moe_check){NULL, NULL, 0, NULL}};
  return PyModule_AddFunctions(module, methods);
}
