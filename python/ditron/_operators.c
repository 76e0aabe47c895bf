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
static PyObject *plan_enqueue(PyObject *self, PyObject *args) {
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
  CHECK_UNLOCKED(
      ditron.plan_enqueue_with(handle(plan), handle(stream), &tensors[0], &tensors[1], &tensors[2], &epilogue));
  Py_RETURN_NONE;
}

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

static PyObject *collective_enqueue(PyObject *self, PyObject *args) {
  unsigned long long collective, stream, in, out;
  long long elements;
  if (!PyArg_ParseTuple(args, "KKKKL", &collective, &stream, &in, &out, &elements))
    return NULL;
  CHECK_UNLOCKED(ditron.collective_enqueue(handle(collective), handle(stream), handle(in), handle(out), elements));
  Py_RETURN_NONE;
}

int add_operators(PyObject *module) {
  static PyMethodDef methods[] = {METHOD(operator_create) METHOD(operator_destroy) METHOD(operator_prepare)
                                      METHOD(plan_destroy) METHOD(plan_rows) METHOD(plan_enqueue) METHOD(collective_create)
                                      METHOD(collective_destroy) METHOD(collective_prepare) METHOD(collective_enqueue){NULL, NULL, 0, NULL}};
  return PyModule_AddFunctions(module, methods);
}
