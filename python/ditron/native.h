/*===- native.h - What the files of the extension module share ---------------------------------------------------------===*
 *
 * The functions of libditron that are called, and the module's parts.
 *
 *===---------------------------------------------------------------------------------------------------------------------===*/
#ifndef DITRON_PYTHON_NATIVE_H
#define DITRON_PYTHON_NATIVE_H

#include <Python.h>

#include <ditron/ditron.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* A kernel takes at most 4 KiB of parameters, which are 512 pointers. */
#define MOST_PARAMETERS 512

/* clang-format off */
#define DITRON_FUNCTIONS(F)          \
  F(last_error) F(version) F(version_text) F(context_create) F(context_destroy) F(context_target) F(context_ranks)    \
  F(interrupt) F(context_is_local) F(context_synchronize) F(context_check) F(context_restart) F(context_device)                   \
  F(stream_create) F(stream_adopt) F(stream_destroy) F(memory_allocate) F(memory_allocate_symmetric) F(memory_adopt)  \
  F(memory_destroy) F(memory_address) F(kernel_load) F(kernel_destroy) F(kernel_compile) F(kernel_launch)             \
  F(variant_destroy) F(variant_info) F(variant_resources) F(variant_parameter_name) F(variant_parameter_type)         \
  F(variant_text)                                                                                                     \
  F(variant_launch) F(operator_create) F(operator_destroy) F(operator_prepare_strided) F(plan_destroy) F(plan_rows)   \
  F(plan_enqueue_with) F(plan_check_with) F(collective_create) F(collective_destroy) F(collective_prepare)            \
  F(collective_enqueue) F(collective_check) F(all_reduce_rms_norm_create) F(all_reduce_rms_norm_destroy)              \
  F(all_reduce_rms_norm_prepare) F(all_reduce_rms_norm_enqueue) F(all_reduce_rms_norm_check)                          \
  F(all_to_all_v_create) F(all_to_all_v_destroy) F(all_to_all_v_prepare) F(all_to_all_v_enqueue)                      \
  F(all_to_all_v_check) F(send_receive_create) F(send_receive_destroy) F(send_receive_prepare)                        \
  F(send_receive_enqueue) F(send_receive_check) F(barrier_create) F(barrier_destroy) F(barrier_prepare)               \
  F(barrier_enqueue)                                                                                                  \
  F(routing_create) F(routing_destroy) F(routing_prepare) F(routing_choose) F(routing_sort) F(routing_sum)            \
  F(grouped_gemm_create) F(grouped_gemm_destroy) F(grouped_gemm_prepare) F(grouped_gemm_enqueue)                      \
  F(expert_parallel_create) F(expert_parallel_destroy) F(expert_parallel_max_rows)                                    \
  F(expert_parallel_handle_elements) F(expert_parallel_prepare) F(expert_parallel_dispatch)                           \
  F(expert_parallel_combine) F(expert_parallel_check) F(tensor_parallel_moe_create) F(tensor_parallel_moe_destroy)    \
  F(tensor_parallel_moe_prepare) F(tensor_parallel_moe_enqueue) F(expert_parallel_moe_create)                         \
  F(expert_parallel_moe_destroy) F(expert_parallel_moe_prepare) F(expert_parallel_moe_enqueue)                        \
  F(expert_parallel_moe_check) F(tensor_parallel_moe_backward) F(expert_parallel_moe_backward)                        \
  F(attention_create) F(attention_destroy) F(attention_prepare) F(attention_enqueue) F(attention_prepare_backward)    \
  F(attention_backward) F(attention_decode_create) F(attention_decode_destroy) F(attention_decode_prepare)            \
  F(attention_decode_enqueue) F(ring_attention_create) F(ring_attention_destroy)                                      \
  F(ring_attention_prepare) F(ring_attention_enqueue) F(ring_attention_prepare_backward) F(ring_attention_backward)   \
  F(tensor_parallel_attention_create) F(tensor_parallel_attention_destroy) F(tensor_parallel_attention_prepare_prefill) \
  F(tensor_parallel_attention_prepare_decode) F(tensor_parallel_attention_prefill)                                    \
  F(tensor_parallel_attention_decode) F(sequence_parallel_attention_create) F(sequence_parallel_attention_destroy)    \
  F(sequence_parallel_attention_prepare_prefill) F(sequence_parallel_attention_prepare_decode)                        \
  F(sequence_parallel_attention_prefill) F(sequence_parallel_attention_decode)                                        \
  F(program_run_file) F(program_run_text) F(program_destroy) F(program_ranks) F(program_mismatch) F(program_get)
/* clang-format on */

struct ditron_functions {
#define MEMBER(name) __typeof__(ditron_##name) *name;
  DITRON_FUNCTIONS(MEMBER)
#undef MEMBER
};
extern struct ditron_functions ditron;

/* Sets the exception for the thread's latest failure; gives NULL. */
PyObject *raise_status(ditron_status_t status);
/* Adds the type Dispatcher to the module; -1 on failure. */
int add_dispatcher(PyObject *module);
int add_operators(PyObject *module);
int add_mixture(PyObject *module);
int add_attention(PyObject *module);

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    ditron_status_t status_ = (call);                                                                                  \
    if (status_ != DITRON_OK)                                                                                          \
      return raise_status(status_);                                                                                    \
  } while (0)

/* A call that may compile, wait or run blocks: without the interpreter's lock. */
#define CHECK_UNLOCKED(call)                                                                                           \
  do {                                                                                                                 \
    ditron_status_t status_;                                                                                           \
    Py_BEGIN_ALLOW_THREADS status_ = (call);                                                                           \
    Py_END_ALLOW_THREADS if (status_ != DITRON_OK) return raise_status(status_);                                       \
  } while (0)

/* Before a call that runs simulated GPUs: Ctrl-C ends it where Python's own handler would have to wait (_interruption.c). 1 if so, -1 for an exception. */
int begin_interruptible(void);
/* Back to Python's handler. The failure of an interrupted call is a KeyboardInterrupt with the report, its cause the exception of
 * any other failure. NULL, and an exception, if the call has failed. */
PyObject *end_interruptible(int was_interruptible, ditron_status_t status);
/* Takes Python's function that says whether Ctrl-C may end calls of this thread. */
void set_interruptible(PyObject *function);

#define CHECK_INTERRUPTIBLE(call)                                                                                      \
  do {                                                                                                                 \
    ditron_status_t status_;                                                                                           \
    const int interruptible_ = begin_interruptible();                                                                  \
    if (interruptible_ < 0)                                                                                            \
      return NULL;                                                                                                     \
    Py_BEGIN_ALLOW_THREADS status_ = (call);                                                                           \
    Py_END_ALLOW_THREADS if (!end_interruptible(interruptible_, status_)) return NULL;                                 \
  } while (0)

static inline void *handle(unsigned long long value) { return (void *)(uintptr_t)value; }
static inline PyObject *from_handle(void *value) { return PyLong_FromUnsignedLongLong((uintptr_t)value); }

/* Structures of the C interface, one for each rank. */
struct rank_records {
  uint32_t count;
  void *records;
  const void **pointers; /* NULL where there is none. */
};
/* From a tuple, by rank, of None or what read(item, record) reads into a record of `size` bytes of zeros; 0 from it is an exception. To be given to
 * free_rank_records by the caller; 0, with an exception and nothing to free, on failure. */
int read_rank_records(PyObject *tuple, size_t size, int (*read)(PyObject *item, void *record),
                      struct rank_records *result);
void free_rank_records(struct rank_records *result);

#define METHOD(name) {#name, name, METH_VARARGS, NULL},

/* The function that gives a handle back. */
#define DESTROY(object)                                                                                                \
  static PyObject *object##_destroy(PyObject *self, PyObject *args) {                                                  \
    unsigned long long value;                                                                                          \
    if (!PyArg_ParseTuple(args, "K", &value))                                                                          \
      return NULL;                                                                                                     \
    ditron.object##_destroy(handle(value));                                                                            \
    Py_RETURN_NONE;                                                                                                    \
  }

#endif
