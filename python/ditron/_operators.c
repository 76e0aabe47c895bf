/*===- _operators.c - Operators, plans and collectives for Python ------------------------------------------------------===*
 *
 * The calls of ditron.h on operators and collectives, with handles as integers.
 *
 *===---------------------------------------------------------------------------------------------------------------------===*/
#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include "native.h"

static PyObject *operator_create(PyObject *self, PyObject *args) {
  unsigned long long context;
  ditron_operator_options_t options;
  DITRON_INIT(options);
  int kind, dtype, result, scales_a, scales_b, bias, activation;
  long long m, n, k;
  if (!PyArg_ParseTuple(args, "KiiLLLIIiiiii", &context, &kind, &dtype, &m, &n, &k, &options.weight_transposed,
                        &options.chunks_per_rank, &result, &scales_a, &scales_b, &bias, &activation))
    return NULL;
  options.result_dtype = (ditron_dtype_t)result;
  options.scales_a = (ditron_scaling_t)scales_a;
  options.scales_b = (ditron_scaling_t)scales_b;
  options.bias_dtype = (ditron_dtype_t)bias;
  options.activation = (ditron_activation_t)activation;
  options.kind = (ditron_operator_kind_t)kind;
  options.dtype = (ditron_dtype_t)dtype;
  options.m = m;
  options.n = n;
  options.k = k;
  ditron_operator_h op;
  CHECK_UNLOCKED(ditron.operator_create(handle(context), &options, &op));
  return from_handle(op);
}

DESTROY(operator)

static PyObject *operator_prepare(PyObject *self, PyObject *args) {
  unsigned long long op;
  long long sizes[6];
  if (!PyArg_ParseTuple(args, "KLLL(LLL)", &op, &sizes[0], &sizes[1], &sizes[2], &sizes[3], &sizes[4], &sizes[5]))
    return NULL;
  ditron_plan_options_t options;
  DITRON_INIT(options);
  options.m = sizes[0];
  options.n = sizes[1];
  options.k = sizes[2];
  options.row_stride_a = sizes[3];
  options.row_stride_b = sizes[4];
  options.row_stride_c = sizes[5];
  ditron_plan_h plan;
  CHECK_UNLOCKED(ditron.operator_prepare_strided(handle(op), &options, &plan));
  return from_handle(plan);
}

DESTROY(plan)

static PyObject *plan_rows(PyObject *self, PyObject *args) {
  unsigned long long plan;
  unsigned rank;
  if (!PyArg_ParseTuple(args, "KI", &plan, &rank))
    return NULL;
  return PyLong_FromLongLong(ditron.plan_rows(handle(plan), rank));
}

/* Each matrix: (address, dtype, rows, columns, row stride, column stride). Then the scales of A and of B and the bias, if any are given, as
 * (address, dtype, elements); address 0: none. */
static PyObject *plan_call(PyObject *args, __typeof__(ditron_plan_enqueue_with) *function) {
  unsigned long long plan, stream, address[3], vector[3] = {0};
  int dtype[3], vector_dtype[3];
  long long sizes[3][4], elements[3];
  if (!PyArg_ParseTuple(args, "KK(KiLLLL)(KiLLLL)(KiLLLL)|(KiL)(KiL)(KiL)", &plan, &stream, &address[0], &dtype[0], &sizes[0][0],
                        &sizes[0][1], &sizes[0][2], &sizes[0][3], &address[1], &dtype[1], &sizes[1][0], &sizes[1][1],
                        &sizes[1][2], &sizes[1][3], &address[2], &dtype[2], &sizes[2][0], &sizes[2][1], &sizes[2][2],
                        &sizes[2][3], &vector[0], &vector_dtype[0], &elements[0], &vector[1], &vector_dtype[1], &elements[1],
                        &vector[2], &vector_dtype[2], &elements[2]))
    return NULL;
  ditron_tensor_t tensors[3], vectors[3];
  int64_t numbers[3][4], counts[3];
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 4; ++j)
      numbers[i][j] = sizes[i][j];
    DITRON_INIT(tensors[i]);
    tensors[i].address = handle(address[i]);
    tensors[i].dtype = (ditron_dtype_t)dtype[i];
    tensors[i].dimensions = 2;
    tensors[i].shape = numbers[i];
    tensors[i].strides = numbers[i] + 2;
  }
  const ditron_tensor_t *given[3] = {NULL, NULL, NULL};
  for (int i = 0; i < 3; ++i) {
    if (!vector[i])
      continue;
    counts[i] = elements[i];
    DITRON_INIT(vectors[i]);
    vectors[i].address = handle(vector[i]);
    vectors[i].dtype = (ditron_dtype_t)vector_dtype[i];
    vectors[i].dimensions = 1;
    vectors[i].shape = &counts[i];
    given[i] = &vectors[i];
  }
  ditron_epilogue_tensors_t epilogue;
  DITRON_INIT(epilogue);
  epilogue.scales_a = given[0];
  epilogue.scales_b = given[1];
  epilogue.bias = given[2];
  CHECK_UNLOCKED(function(handle(plan), handle(stream), &tensors[0], &tensors[1], &tensors[2], &epilogue));
  Py_RETURN_NONE;
}

static PyObject *plan_enqueue(PyObject *self, PyObject *args) { return plan_call(args, ditron.plan_enqueue_with); }

static PyObject *plan_check(PyObject *self, PyObject *args) { return plan_call(args, ditron.plan_check_with); }

static PyObject *collective_create(PyObject *self, PyObject *args) {
  unsigned long long context;
  ditron_collective_options_t options;
  DITRON_INIT(options);
  int kind, dtype, reduction, has_scale;
  long long most;
  if (!PyArg_ParseTuple(args, "KiiipfIL", &context, &kind, &dtype, &reduction, &has_scale, &options.scale,
                        &options.root, &most))
    return NULL;
  options.kind = (ditron_collective_kind_t)kind;
  options.dtype = (ditron_dtype_t)dtype;
  options.reduction = (ditron_reduction_t)reduction;
  options.has_scale = (uint32_t)has_scale;
  options.max_elements = most;
  ditron_collective_h collective;
  CHECK_UNLOCKED(ditron.collective_create(handle(context), &options, &collective));
  return from_handle(collective);
}

DESTROY(collective)

static PyObject *collective_prepare(PyObject *self, PyObject *args) {
  unsigned long long collective;
  long long elements;
  if (!PyArg_ParseTuple(args, "KL", &collective, &elements))
    return NULL;
  CHECK_UNLOCKED(ditron.collective_prepare(handle(collective), elements));
  Py_RETURN_NONE;
}

static PyObject *collective_call(PyObject *args, __typeof__(ditron_collective_enqueue) *function) {
  unsigned long long collective, stream, in, out;
  long long elements;
  if (!PyArg_ParseTuple(args, "KKKKL", &collective, &stream, &in, &out, &elements))
    return NULL;
  CHECK_UNLOCKED(function(handle(collective), handle(stream), handle(in), handle(out), elements));
  Py_RETURN_NONE;
}

static PyObject *collective_enqueue(PyObject *self, PyObject *args) {
  return collective_call(args, ditron.collective_enqueue);
}

static PyObject *collective_check(PyObject *self, PyObject *args) {
  return collective_call(args, ditron.collective_check);
}

static PyObject *all_reduce_rms_norm_create(PyObject *self, PyObject *args) {
  unsigned long long context;
  ditron_all_reduce_rms_norm_options_t options;
  DITRON_INIT(options);
  int dtype;
  long long columns, rows;
  if (!PyArg_ParseTuple(args, "KiLLdI", &context, &dtype, &columns, &rows, &options.epsilon, &options.concurrent_calls))
    return NULL;
  options.dtype = (ditron_dtype_t)dtype;
  options.columns = columns;
  options.max_rows = rows;
  ditron_all_reduce_rms_norm_h norm;
  CHECK_UNLOCKED(ditron.all_reduce_rms_norm_create(handle(context), &options, &norm));
  return from_handle(norm);
}

DESTROY(all_reduce_rms_norm)

static PyObject *all_reduce_rms_norm_prepare(PyObject *self, PyObject *args) {
  unsigned long long norm;
  long long rows;
  if (!PyArg_ParseTuple(args, "KL", &norm, &rows))
    return NULL;
  CHECK_UNLOCKED(ditron.all_reduce_rms_norm_prepare(handle(norm), rows));
  Py_RETURN_NONE;
}

/* x, residual, weight, out, residual_out. */
static PyObject *all_reduce_rms_norm_call(PyObject *args, __typeof__(ditron_all_reduce_rms_norm_enqueue) *function) {
  unsigned long long norm, stream, a[5];
  long long rows;
  if (!PyArg_ParseTuple(args, "KKLKKKKK", &norm, &stream, &rows, &a[0], &a[1], &a[2], &a[3], &a[4]))
    return NULL;
  ditron_all_reduce_rms_norm_operands_t operands;
  DITRON_INIT(operands);
  operands.x = handle(a[0]);
  operands.residual = handle(a[1]);
  operands.weight = handle(a[2]);
  operands.out = handle(a[3]);
  operands.residual_out = handle(a[4]);
  CHECK_UNLOCKED(function(handle(norm), handle(stream), &operands, rows));
  Py_RETURN_NONE;
}

static PyObject *all_reduce_rms_norm_enqueue(PyObject *self, PyObject *args) {
  return all_reduce_rms_norm_call(args, ditron.all_reduce_rms_norm_enqueue);
}

static PyObject *all_reduce_rms_norm_check(PyObject *self, PyObject *args) {
  return all_reduce_rms_norm_call(args, ditron.all_reduce_rms_norm_check);
}

static PyObject *all_to_all_v_create(PyObject *self, PyObject *args) {
  unsigned long long context;
  ditron_all_to_all_v_options_t options;
  DITRON_INIT(options);
  int dtype, packed;
  long long row, most;
  if (!PyArg_ParseTuple(args, "KiLLp", &context, &dtype, &row, &most, &packed))
    return NULL;
  options.dtype = (ditron_dtype_t)dtype;
  options.row_elements = row;
  options.max_rows = most;
  options.packed = (uint32_t)packed;
  ditron_all_to_all_v_h exchange;
  CHECK_UNLOCKED(ditron.all_to_all_v_create(handle(context), &options, &exchange));
  return from_handle(exchange);
}

DESTROY(all_to_all_v)

static PyObject *all_to_all_v_prepare(PyObject *self, PyObject *args) {
  unsigned long long exchange;
  if (!PyArg_ParseTuple(args, "K", &exchange))
    return NULL;
  CHECK_UNLOCKED(ditron.all_to_all_v_prepare(handle(exchange)));
  Py_RETURN_NONE;
}

/* in, rows, counts, offsets; out, rows, counts, offsets. */
static PyObject *all_to_all_v_enqueue(PyObject *self, PyObject *args) {
  unsigned long long exchange, stream, in, out, words[4];
  long long in_rows, out_rows;
  if (!PyArg_ParseTuple(args, "KKKLKKKLKK", &exchange, &stream, &in, &in_rows, &words[0], &words[1], &out, &out_rows,
                        &words[2], &words[3]))
    return NULL;
  ditron_all_to_all_v_operands_t operands;
  DITRON_INIT(operands);
  operands.in = handle(in);
  operands.in_rows = in_rows;
  operands.send_counts = handle(words[0]);
  operands.send_offsets = handle(words[1]);
  operands.out = handle(out);
  operands.out_rows = out_rows;
  operands.receive_counts = handle(words[2]);
  operands.receive_offsets = handle(words[3]);
  CHECK_UNLOCKED(ditron.all_to_all_v_enqueue(handle(exchange), handle(stream), &operands));
  Py_RETURN_NONE;
}

static PyObject *all_to_all_v_check(PyObject *self, PyObject *args) {
  unsigned long long exchange, stream;
  if (!PyArg_ParseTuple(args, "KK", &exchange, &stream))
    return NULL;
  CHECK_UNLOCKED(ditron.all_to_all_v_check(handle(exchange), handle(stream)));
  Py_RETURN_NONE;
}

static PyObject *send_receive_create(PyObject *self, PyObject *args) {
  unsigned long long context;
  int dtype;
  if (!PyArg_ParseTuple(args, "Ki", &context, &dtype))
    return NULL;
  ditron_send_receive_h pairs;
  CHECK_UNLOCKED(ditron.send_receive_create(handle(context), (ditron_dtype_t)dtype, &pairs));
  return from_handle(pairs);
}

DESTROY(send_receive)

static PyObject *send_receive_prepare(PyObject *self, PyObject *args) {
  unsigned long long pairs;
  if (!PyArg_ParseTuple(args, "K", &pairs))
    return NULL;
  CHECK_UNLOCKED(ditron.send_receive_prepare(handle(pairs)));
  Py_RETURN_NONE;
}

/* The messages of a tuple of (peer, address, elements), to be freed by the caller; NULL with an exception. */
static ditron_message_t *messages_of(PyObject *tuple, uint32_t *count) {
  const Py_ssize_t size = PyTuple_Size(tuple);
  if (size < 0)
    return NULL;
  ditron_message_t *messages = PyMem_Malloc((size_t)(size ? size : 1) * sizeof(*messages));
  if (!messages) {
    PyErr_NoMemory();
    return NULL;
  }
  for (Py_ssize_t i = 0; i < size; ++i) {
    unsigned long long address;
    long long elements;
    if (!PyArg_ParseTuple(PyTuple_GetItem(tuple, i), "IKL", &messages[i].peer, &address, &elements)) {
      PyMem_Free(messages);
      return NULL;
    }
    messages[i].data = handle(address);
    messages[i].elements = elements;
  }
  *count = (uint32_t)size;
  return messages;
}

static PyObject *send_receive_enqueue(PyObject *self, PyObject *args) {
  unsigned long long pairs, stream;
  PyObject *given[2];
  if (!PyArg_ParseTuple(args, "KKOO", &pairs, &stream, &given[0], &given[1]))
    return NULL;
  uint32_t counts[2];
  ditron_message_t *sends = messages_of(given[0], &counts[0]);
  if (!sends)
    return NULL;
  ditron_message_t *receives = messages_of(given[1], &counts[1]);
  if (!receives) {
    PyMem_Free(sends);
    return NULL;
  }
  ditron_status_t status;
  Py_BEGIN_ALLOW_THREADS;
  status = ditron.send_receive_enqueue(handle(pairs), handle(stream), sends, counts[0], receives, counts[1]);
  Py_END_ALLOW_THREADS;
  PyMem_Free(sends);
  PyMem_Free(receives);
  CHECK(status);
  Py_RETURN_NONE;
}

static PyObject *send_receive_check(PyObject *self, PyObject *args) {
  unsigned long long pairs, stream;
  if (!PyArg_ParseTuple(args, "KK", &pairs, &stream))
    return NULL;
  CHECK_UNLOCKED(ditron.send_receive_check(handle(pairs), handle(stream)));
  Py_RETURN_NONE;
}

static PyObject *barrier_create(PyObject *self, PyObject *args) {
  unsigned long long context;
  if (!PyArg_ParseTuple(args, "K", &context))
    return NULL;
  ditron_barrier_h barrier;
  CHECK_UNLOCKED(ditron.barrier_create(handle(context), &barrier));
  return from_handle(barrier);
}

DESTROY(barrier)

static PyObject *barrier_prepare(PyObject *self, PyObject *args) {
  unsigned long long barrier;
  if (!PyArg_ParseTuple(args, "K", &barrier))
    return NULL;
  CHECK_UNLOCKED(ditron.barrier_prepare(handle(barrier)));
  Py_RETURN_NONE;
}

static PyObject *barrier_enqueue(PyObject *self, PyObject *args) {
  unsigned long long barrier, stream;
  if (!PyArg_ParseTuple(args, "KK", &barrier, &stream))
    return NULL;
  CHECK_UNLOCKED(ditron.barrier_enqueue(handle(barrier), handle(stream)));
  Py_RETURN_NONE;
}

int add_operators(PyObject *module) {
  static PyMethodDef methods[] = {METHOD(operator_create) METHOD(operator_destroy) METHOD(operator_prepare)
                                      METHOD(plan_destroy) METHOD(plan_rows) METHOD(plan_enqueue) METHOD(plan_check) METHOD(collective_create)
                                      METHOD(collective_destroy) METHOD(collective_prepare) METHOD(collective_enqueue)
                                      METHOD(collective_check) METHOD(all_reduce_rms_norm_create)
                                      METHOD(all_reduce_rms_norm_destroy) METHOD(all_reduce_rms_norm_prepare)
                                      METHOD(all_reduce_rms_norm_enqueue) METHOD(all_reduce_rms_norm_check)
                                      METHOD(all_to_all_v_create) METHOD(all_to_all_v_destroy) METHOD(all_to_all_v_prepare)
                                      METHOD(all_to_all_v_enqueue) METHOD(all_to_all_v_check) METHOD(send_receive_create)
                                      METHOD(send_receive_destroy) METHOD(send_receive_prepare) METHOD(send_receive_enqueue)
                                      METHOD(send_receive_check) METHOD(barrier_create) METHOD(barrier_destroy)
                                      METHOD(barrier_prepare) METHOD(barrier_enqueue){NULL, NULL, 0, NULL}};
  return PyModule_AddFunctions(module, methods);
}
