/*===- _native.c - The C interface of Ditron for Python ----------------------------------------------------------------===*
 *
 * One extension module in CPython's limited API (3.10), so that one binary serves every later Python. It opens libditron at run
 * time, by the path that it is told, and calls nothing but ditron.h. Handles are integers here; the classes in the Python files
 * own them. Dispatcher is the hot path of kernel launches: from arguments to a variant without any Python code.
 *
 *===---------------------------------------------------------------------------------------------------------------------===*/
#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "native.h"

struct ditron_functions ditron;
static void *library;
/* Python's function that makes an exception of (status, message, file, line, column). */
static PyObject *make_error;

PyObject *raise_status(ditron_status_t status) {
  ditron_error_t error;
  DITRON_INIT(error);
  ditron.last_error(&error);
  if (!make_error) {
    PyErr_SetString(PyExc_RuntimeError, error.message ? error.message : "unknown error");
    return NULL;
  }
  PyObject *exception = PyObject_CallFunction(make_error, "izzII", (int)status, error.message ? error.message : "",
                                              error.file, error.line, error.column);
  if (exception) {
    PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_DECREF(exception);
  }
  return NULL;
}

static PyObject *load_library(PyObject *self, PyObject *args) {
  const char *path;
  PyObject *errors, *interruptible;
  if (!PyArg_ParseTuple(args, "sOO", &path, &errors, &interruptible))
    return NULL;
  if (library)
    Py_RETURN_NONE;
  void *opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!opened) {
    PyErr_Format(PyExc_ImportError, "%s", dlerror());
    return NULL;
  }
#define LOAD(name)                                                                                                     \
  if (!(ditron.name = (__typeof__(ditron_##name) *)dlsym(opened, "ditron_" #name))) {                                  \
    PyErr_Format(PyExc_ImportError, "%s has no ditron_" #name ": it is of another version", path);                     \
    return NULL;                                                                                                       \
  }
  DITRON_FUNCTIONS(LOAD)
#undef LOAD
  const uint32_t version = ditron.version();
  if (version / 10000 != DITRON_VERSION_NUMBER / 10000) {
    PyErr_Format(PyExc_ImportError, "%s has the version number %u, this package was built for %u", path, version,
                 (unsigned)DITRON_VERSION_NUMBER);
    return NULL;
  }
  library = opened;
  Py_INCREF(errors);
  make_error = errors;
  set_interruptible(interruptible);
  Py_RETURN_NONE;
}

static PyObject *version_text(PyObject *self, PyObject *args) { return PyUnicode_FromString(ditron.version_text()); }

/*===- Contexts -----------------------------------------------------------------------------------------------------------===*/

static PyObject *context_create(PyObject *self, PyObject *args) {
  ditron_context_options_t options;
  DITRON_INIT(options);
  unsigned long long heap, seed;
  unsigned ranks, environment, multiprocessors, unchecked, per_node;
  int gpu;
  if (!PyArg_ParseTuple(args, "zIIiKdKIII", &options.target, &ranks, &environment, &gpu, &heap,
                        &options.time_limit_seconds, &seed, &multiprocessors, &unchecked, &per_node))
    return NULL;
  const int32_t gpus[1] = {gpu};
  options.ranks = ranks;
  options.from_environment = environment;
  options.gpus = gpu >= 0 ? gpus : NULL;
  options.heap_bytes = heap;
  options.seed = seed;
  options.multiprocessors = multiprocessors;
  options.no_bounds_check = unchecked;
  options.ranks_per_node = per_node;
  ditron_context_h context;
  CHECK_UNLOCKED(ditron.context_create(&options, &context));
  return from_handle(context);
}

DESTROY(context)

static PyObject *context_call(PyObject *self, PyObject *args) {
  const char *what;
  unsigned long long context;
  if (!PyArg_ParseTuple(args, "sK", &what, &context))
    return NULL;
  if (!strcmp(what, "synchronize"))
    CHECK_INTERRUPTIBLE(ditron.context_synchronize(handle(context)));
  else if (!strcmp(what, "check"))
    CHECK(ditron.context_check(handle(context)));
  else if (!strcmp(what, "restart"))
    CHECK_UNLOCKED(ditron.context_restart(handle(context)));
  else if (!strcmp(what, "target"))
    return PyUnicode_FromString(ditron.context_target(handle(context)));
  else if (!strcmp(what, "ranks"))
    return PyLong_FromUnsignedLong(ditron.context_ranks(handle(context)));
  else
    return PyErr_Format(PyExc_ValueError, "context_call('%s'): there are synchronize, check, restart, target and ranks",
                        what);
  Py_RETURN_NONE;
}

static PyObject *context_is_local(PyObject *self, PyObject *args) {
  unsigned long long context;
  unsigned rank;
  if (!PyArg_ParseTuple(args, "KI", &context, &rank))
    return NULL;
  return PyBool_FromLong(ditron.context_is_local(handle(context), rank));
}

static PyObject *context_device(PyObject *self, PyObject *args) {
  unsigned long long context;
  unsigned rank;
  if (!PyArg_ParseTuple(args, "KI", &context, &rank))
    return NULL;
  ditron_device_info_t info;
  DITRON_INIT(info);
  CHECK(ditron.context_device(handle(context), rank, &info));
  return Py_BuildValue("(sIIKI)", info.name, info.multiprocessors, info.warp_size,
                       (unsigned long long)info.shared_bytes_per_block, info.max_threads_per_block);
}

/*===- Streams ------------------------------------------------------------------------------------------------------------===*/

static PyObject *stream_create(PyObject *self, PyObject *args) {
  unsigned long long context;
  unsigned rank;
  const char *name;
  if (!PyArg_ParseTuple(args, "KIs", &context, &rank, &name))
    return NULL;
  ditron_stream_h stream;
  CHECK(ditron.stream_create(handle(context), rank, name, &stream));
  return from_handle(stream);
}

static PyObject *stream_adopt(PyObject *self, PyObject *args) {
  unsigned long long context, native;
  unsigned rank;
  if (!PyArg_ParseTuple(args, "KIK", &context, &rank, &native))
    return NULL;
  ditron_stream_h stream;
  CHECK(ditron.stream_adopt(handle(context), rank, handle(native), &stream));
  return from_handle(stream);
}

DESTROY(stream)

/*===- Memory -------------------------------------------------------------------------------------------------------------===*/

static PyObject *memory_allocate(PyObject *self, PyObject *args) {
  unsigned long long context, bytes;
  int rank; /* -1: symmetric */
  const char *name;
  if (!PyArg_ParseTuple(args, "KiKz", &context, &rank, &bytes, &name))
    return NULL;
  ditron_memory_h memory;
  if (rank < 0)
    CHECK_UNLOCKED(ditron.memory_allocate_symmetric(handle(context), bytes, name, &memory));
  else
    CHECK(ditron.memory_allocate(handle(context), (uint32_t)rank, bytes, name, &memory));
  return from_handle(memory);
}

static PyObject *memory_adopt(PyObject *self, PyObject *args) {
  unsigned long long context, address, bytes;
  unsigned rank;
  const char *name;
  if (!PyArg_ParseTuple(args, "KIKKz", &context, &rank, &address, &bytes, &name))
    return NULL;
  ditron_memory_h memory;
  CHECK(ditron.memory_adopt(handle(context), rank, handle(address), bytes, name, &memory));
  return from_handle(memory);
}

DESTROY(memory)

static PyObject *memory_address(PyObject *self, PyObject *args) {
  unsigned long long memory;
  unsigned rank;
  if (!PyArg_ParseTuple(args, "KI", &memory, &rank))
    return NULL;
  return from_handle(ditron.memory_address(handle(memory), rank));
}

/*===- Kernels ------------------------------------------------------------------------------------------------------------===*/

/* modules: a list of (name, path, text). */
static PyObject *kernel_load(PyObject *self, PyObject *args) {
  unsigned long long context;
  const char *name;
  ditron_source_t source;
  DITRON_INIT(source);
  PyObject *list;
  if (!PyArg_ParseTuple(args, "KsssO", &context, &source.path, &source.text, &name, &list))
    return NULL;
  const Py_ssize_t count = PyList_Size(list);
  if (count < 0)
    return NULL;
  ditron_module_t *modules = calloc((size_t)count + 1, sizeof *modules);
  if (!modules)
    return PyErr_NoMemory();
  source.modules = modules;
  source.module_count = (uint32_t)count;
  ditron_kernel_h kernel = NULL;
  ditron_status_t status = DITRON_OK;
  for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); ++i)
    PyArg_ParseTuple(PyList_GetItem(list, i), "sss", &modules[i].name, &modules[i].path, &modules[i].text);
  if (!PyErr_Occurred()) {
    Py_BEGIN_ALLOW_THREADS status = ditron.kernel_load(handle(context), &source, name, &kernel);
    Py_END_ALLOW_THREADS
  }
  free(modules);
  if (PyErr_Occurred())
    return NULL;
  return status == DITRON_OK ? from_handle(kernel) : raise_status(status);
}

DESTROY(kernel)

static PyObject *kernel_compile(PyObject *self, PyObject *args) {
  unsigned long long kernel;
  ditron_launch_t launch;
  DITRON_INIT(launch);
  const char *signature;
  if (!PyArg_ParseTuple(args, "KIIIIs", &kernel, &launch.num_warps, &launch.num_stages, &launch.debug,
                        &launch.cooperative, &signature))
    return NULL;
  ditron_variant_h variant;
  CHECK_UNLOCKED(ditron.kernel_compile(handle(kernel), &launch, signature, &variant));
  return from_handle(variant);
}

DESTROY(variant)

/* (name, target, num_warps, threads, shared bytes, [(name, type)]) */
static PyObject *variant_info(PyObject *self, PyObject *args) {
  unsigned long long variant;
  if (!PyArg_ParseTuple(args, "K", &variant))
    return NULL;
  ditron_variant_info_t info;
  DITRON_INIT(info);
  CHECK(ditron.variant_info(handle(variant), &info));
  PyObject *parameters = PyList_New(0);
  for (uint32_t i = 0; parameters && i < info.parameter_count; ++i) {
    PyObject *item = Py_BuildValue("(ss)", ditron.variant_parameter_name(handle(variant), i),
                                   ditron.variant_parameter_type(handle(variant), i));
    if (!item || PyList_Append(parameters, item) < 0)
      Py_CLEAR(parameters);
    Py_XDECREF(item);
  }
  if (!parameters)
    return NULL;
  return Py_BuildValue("(ssIIKN)", info.name, info.target, info.num_warps, info.threads_per_block,
                       (unsigned long long)info.shared_bytes, parameters);
}

/* (registers, bytes of local memory) of a thread */
static PyObject *variant_resources(PyObject *self, PyObject *args) {
  unsigned long long variant;
  if (!PyArg_ParseTuple(args, "K", &variant))
    return NULL;
  ditron_variant_resources_t resources;
  DITRON_INIT(resources);
  CHECK_UNLOCKED(ditron.variant_resources(handle(variant), &resources));
  return Py_BuildValue("(II)", resources.registers, resources.local_bytes);
}

static PyObject *variant_text(PyObject *self, PyObject *args) {
  unsigned long long variant;
  const char *stage, *text;
  if (!PyArg_ParseTuple(args, "Ks", &variant, &stage))
    return NULL;
  CHECK_UNLOCKED(ditron.variant_text(handle(variant), stage, &text));
  return PyUnicode_FromString(text);
}

/* values: a bytes object with 8 bytes for each parameter. */
static PyObject *variant_launch(PyObject *self, PyObject *args) {
  unsigned long long variant, stream;
  uint32_t grid[3];
  const char *bytes;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(args, "KKIIIy#", &variant, &stream, &grid[0], &grid[1], &grid[2], &bytes, &size))
    return NULL;
  const void *values[MOST_PARAMETERS];
  if (size / 8 > MOST_PARAMETERS) {
    PyErr_Format(PyExc_ValueError, "a kernel can have at most %d parameters at run time, not %zd", MOST_PARAMETERS,
                 size / 8);
    return NULL;
  }
  for (Py_ssize_t i = 0; i < size / 8; ++i)
    values[i] = bytes + 8 * i;
  CHECK_UNLOCKED(ditron.variant_launch(handle(variant), handle(stream), grid, values));
  Py_RETURN_NONE;
}

/* One argument of kernel_launch: (name, kind, dtype, value), of a descriptor the value (base, shape, strides, block, nan). */
static int read_argument(PyObject *item, ditron_argument_t *argument, ditron_descriptor_t *descriptor, int64_t *sizes) {
  PyObject *value;
  int kind, dtype;
  if (!PyArg_ParseTuple(item, "siiO", &argument->name, &kind, &dtype, &value))
    return 0;
  argument->kind = (ditron_argument_kind_t)kind;
  argument->dtype = (ditron_dtype_t)dtype;
  switch (argument->kind) {
  case DITRON_ARGUMENT_BOOL:
  case DITRON_ARGUMENT_INT: argument->value.integer = PyLong_AsLongLong(value); break;
  case DITRON_ARGUMENT_UINT: argument->value.unsigned_integer = PyLong_AsUnsignedLongLong(value); break;
  case DITRON_ARGUMENT_FLOAT: argument->value.floating = PyFloat_AsDouble(value); break;
  case DITRON_ARGUMENT_POINTER: argument->value.pointer = handle(PyLong_AsUnsignedLongLong(value)); break;
  case DITRON_ARGUMENT_STRING: argument->value.string = PyUnicode_AsUTF8AndSize(value, NULL); break;
  case DITRON_ARGUMENT_DESCRIPTOR: {
    unsigned long long base;
    PyObject *lists[3];
    unsigned nan;
    if (!PyArg_ParseTuple(value, "KOOOI", &base, &lists[0], &lists[1], &lists[2], &nan))
      return 0;
    const Py_ssize_t dimensions = PyTuple_Size(lists[0]);
    for (int list = 0; list < 3; ++list)
      for (Py_ssize_t i = 0; i < dimensions && i < 5; ++i) {
        PyObject *size = PyTuple_GetItem(lists[list], i);
        if (!size)
          return 0;
        sizes[5 * list + i] = PyLong_AsLongLong(size);
      }
    *descriptor = (ditron_descriptor_t){.struct_size = sizeof *descriptor,
                                        .base = handle(base),
                                        .dtype = argument->dtype,
                                        .dimensions = (uint32_t)dimensions,
                                        .shape = sizes,
                                        .strides = sizes + 5,
                                        .block_shape = sizes + 10,
                                        .fill_nan = nan};
    argument->value.descriptor = descriptor;
    break;
  }
  default: break;
  }
  return !PyErr_Occurred();
}

static PyObject *kernel_launch(PyObject *self, PyObject *args) {
  unsigned long long kernel, stream;
  ditron_launch_t launch;
  DITRON_INIT(launch);
  PyObject *list;
  if (!PyArg_ParseTuple(args, "KK(III)IIIIO", &kernel, &stream, &launch.grid[0], &launch.grid[1], &launch.grid[2],
                        &launch.num_warps, &launch.num_stages, &launch.debug, &launch.cooperative, &list))
    return NULL;
  ditron_argument_t arguments[MOST_PARAMETERS];
  ditron_descriptor_t descriptors[MOST_PARAMETERS];
  int64_t sizes[MOST_PARAMETERS][15];
  const Py_ssize_t count = PyList_Size(list);
  if (count > MOST_PARAMETERS) {
    PyErr_Format(PyExc_ValueError, "a kernel can have at most %d parameters, not %zd", MOST_PARAMETERS, count);
    return NULL;
  }
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!read_argument(PyList_GetItem(list, i), &arguments[i], &descriptors[i], sizes[i]))
      return NULL;
  CHECK_UNLOCKED(ditron.kernel_launch(handle(kernel), handle(stream), &launch, arguments, (uint32_t)count));
  Py_RETURN_NONE;
}

/*===- Run files ----------------------------------------------------------------------------------------------------------===*/

/* Gives a text to Python's function, with the interpreter's lock. What it raises is printed: the program goes on. */
static void print_text(void *user, const char *text) {
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject *result = PyObject_CallFunction((PyObject *)user, "s", text);
  if (!result)
    PyErr_WriteUnraisable((PyObject *)user);
  Py_XDECREF(result);
  PyGILState_Release(state);
}

/* (path or None, text, folder, target, ranks, multiprocessors, seed, data_seed, time_limit, unchecked, print,
 * ranks_per_node) -> handle */
static PyObject *program_run(PyObject *self, PyObject *args) {
  ditron_program_options_t options;
  DITRON_INIT(options);
  const char *path, *text, *folder;
  unsigned ranks, multiprocessors, unchecked, per_node;
  unsigned long long seed, data_seed;
  PyObject *print;
  if (!PyArg_ParseTuple(args, "zzzzIIKKdIOI", &path, &text, &folder, &options.target, &ranks, &multiprocessors, &seed,
                        &data_seed, &options.time_limit_seconds, &unchecked, &print, &per_node))
    return NULL;
  options.ranks = ranks;
  options.multiprocessors = multiprocessors;
  options.seed = seed;
  options.data_seed = data_seed;
  options.no_bounds_check = unchecked;
  options.print = print_text;
  options.print_user = print;
  options.ranks_per_node = per_node;
  ditron_program_h program = NULL;
  if (path)
    CHECK_INTERRUPTIBLE(ditron.program_run_file(path, &options, &program));
  else
    CHECK_INTERRUPTIBLE(ditron.program_run_text(text, NULL, folder, &options, &program));
  return from_handle(program);
}

static PyObject *program_destroy(PyObject *self, PyObject *args) {
  unsigned long long program;
  if (!PyArg_ParseTuple(args, "K", &program))
    return NULL;
  ditron.program_destroy(handle(program));
  Py_RETURN_NONE;
}

static PyObject *program_ranks(PyObject *self, PyObject *args) {
  unsigned long long program;
  if (!PyArg_ParseTuple(args, "K", &program))
    return NULL;
  return PyLong_FromUnsignedLong(ditron.program_ranks(handle(program)));
}

static PyObject *program_mismatches(PyObject *self, PyObject *args) {
  unsigned long long program;
  if (!PyArg_ParseTuple(args, "K", &program))
    return NULL;
  PyObject *list = PyList_New(0);
  const char *text = NULL;
  for (uint32_t i = 0; list && (text = ditron.program_mismatch(handle(program), i)); ++i) {
    PyObject *item = PyUnicode_FromString(text);
    if (!item || PyList_Append(list, item) < 0)
      Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

/* (program, buffer, rank) -> (number of the type, shape, bytes) */
static PyObject *program_get(PyObject *self, PyObject *args) {
  unsigned long long program;
  const char *buffer;
  unsigned rank;
  if (!PyArg_ParseTuple(args, "KsI", &program, &buffer, &rank))
    return NULL;
  ditron_program_array_t array;
  DITRON_INIT(array);
  CHECK(ditron.program_get(handle(program), buffer, rank, &array));
  PyObject *shape = PyTuple_New(array.dimensions);
  for (uint32_t i = 0; shape && i < array.dimensions; ++i)
    PyTuple_SetItem(shape, i, PyLong_FromLongLong(array.shape[i]));
  return shape ? Py_BuildValue("iNy#", (int)array.dtype, shape, (const char *)array.data, (Py_ssize_t)array.bytes)
               : NULL;
}

/* clang-format off */
static PyMethodDef methods[] = {
    METHOD(load_library) METHOD(version_text) METHOD(context_create) METHOD(context_destroy) METHOD(context_call)
    METHOD(context_is_local)     METHOD(context_device) METHOD(stream_create) METHOD(stream_adopt) METHOD(stream_destroy) METHOD(memory_allocate)
    METHOD(memory_adopt) METHOD(memory_destroy) METHOD(memory_address) METHOD(kernel_load) METHOD(kernel_destroy)
    METHOD(kernel_compile) METHOD(variant_destroy) METHOD(variant_info) METHOD(variant_resources) METHOD(variant_text)
    METHOD(variant_launch)
    METHOD(kernel_launch) METHOD(program_run) METHOD(program_destroy) METHOD(program_ranks) METHOD(program_mismatches) METHOD(program_get)
    {NULL, NULL, 0, NULL}};
/* clang-format on */

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_native", "Ditron's C interface", -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void) {
  PyObject *self = PyModule_Create(&module);
  if (self && (add_dispatcher(self) < 0 || add_operators(self) < 0 || add_mixture(self) < 0 || add_attention(self) < 0))
    Py_CLEAR(self);
  return self;
}
