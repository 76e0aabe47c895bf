/*===- _dispatch.c - From a call's arguments to a launch ----------------------------------------------------------------===*
 *
 * kernel[grid](x, y, n, BLOCK=64) without Python code. Every argument becomes a token of two words that says all that the choice
 * of a variant depends on: an integer whether it is 1, a multiple of 16, and how wide; a tensor its element type, its GPU and its
 * alignment; a tensor descriptor what its tensor is, and for each dimension of the tile a few more; anything else its type and hash, and the
 * object itself to compare. Equal tokens mean the same variant, so the tokens of earlier calls lead to it. What is no simple argument
 * (tuples, NumPy arrays), and the first call with new tokens, goes to Python (JITFunction.run_slowly), whose result is remembered.
 *
 *===---------------------------------------------------------------------------------------------------------------------===*/
#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include "native.h"

enum { MOST_TOKENS = 160, MOST_DEVICES = 64, MOST_DIMENSIONS = 5 };

/* What Python told of PyTorch: the types of tensors, and the function that gives the current stream of a GPU. */
static PyObject *tensor_types[2];
static PyObject *descriptor_type; /* ditron.TensorDescriptor */
static PyObject *raw_stream;
static int host_only; /* as_triton: every tensor lies in host memory. */
/* Lists of functions to be called before and after each launch: while there is one, Python launches (_hooks.py). */
static PyObject *launch_hooks[2];
/* Python's function (GPU, native stream) -> our stream, and what it gave last for each GPU. */
static PyObject *adopt_stream;
static struct {
  unsigned long long native;
  ditron_stream_h stream;
} streams[MOST_DEVICES];
static PyObject *name_data_ptr, *name_dtype, *name_get_device;
static PyObject *name_base, *name_shape, *name_strides, *name_block_shape, *name_padding, *word_zero, *word_nan;

typedef struct {
  uintptr_t kind;
  uint64_t value;
} Token;

enum { TOKEN_NONE = 1, TOKEN_BOOL, TOKEN_INT, TOKEN_FLOAT, TOKEN_TENSOR };

/* One call as far as it has been read. */
typedef struct {
  PyObject *objects
      [MOST_TOKENS]; /* Borrowed: the arguments by parameter, the values of options, then the tensors of descriptors. */
  Token tokens[MOST_TOKENS];
  uint64_t bits[MOST_TOKENS]; /* What a run-time parameter would be given. */
  uint8_t parts[MOST_TOKENS]; /* Of a descriptor: where its further tokens begin. */
  size_t count;
  int device; /* -1: the host; -2: no tensor yet. */
} Call;

/* A variant that tokens led to. */
typedef struct {
  uint64_t hash;
  Token *tokens;
  size_t count;
  PyObject *objects;  /* A tuple, for the comparison of what is no number. */
  PyObject *compiled; /* CompiledKernel */
  PyObject *launch;   /* Of a simulated GPU: compiled.launch_packed */
  ditron_variant_h variant;
  uint32_t *slots; /* Of each run-time parameter: which argument. */
  char *codes;     /* And its type: b bool, i integer, f fp32, d fp64. */
  size_t parameters;
} Entry;

typedef struct {
  PyObject_HEAD PyObject *slowly; /* JITFunction.run_slowly(grid, arguments, keywords) */
  PyObject *names;                /* A tuple of the parameters' names. */
  PyObject *defaults;             /* A tuple; the name `missing` where there is none. */
  PyObject *missing;
  PyObject *indices; /* A dictionary from name to number. */
  size_t parameters;
  Entry **table;
  size_t capacity, used;
} Dispatcher;

typedef struct {
  PyObject_HEAD Dispatcher *dispatcher;
  PyObject *grid;
} Bound;

static PyTypeObject *bound_type;

static int is_tensor(PyObject *object) {
  PyObject *type = (PyObject *)Py_TYPE(object);
  return type == tensor_types[0] || type == tensor_types[1];
}

static int is_descriptor(PyObject *object) { return (PyObject *)Py_TYPE(object) == descriptor_type; }

/*===- Tokens -------------------------------------------------------------------------------------------------------------===*/

static int read_tensor(PyObject *object, Call *call, size_t index) {
  PyObject *address = PyObject_CallMethodObjArgs(object, name_data_ptr, NULL);
  if (!address)
    return -1;
  const unsigned long long pointer = PyLong_AsUnsignedLongLong(address);
  Py_DECREF(address);
  long device = -1;
  if (!host_only) {
    PyObject *number = PyObject_CallMethodObjArgs(object, name_get_device, NULL);
    if (!number)
      return -1;
    device = PyLong_AsLong(number);
    Py_DECREF(number);
  }
  PyObject *dtype = PyObject_GetAttr(object, name_dtype);
  if (!dtype || PyErr_Occurred()) {
    Py_XDECREF(dtype);
    return -1;
  }
  if (call->device != -2 && call->device != device)
    device = MOST_DEVICES; /* Python says what is wrong. */
  call->device = (int)device;
  call->tokens[index].kind = (uintptr_t)dtype; /* PyTorch's dtypes live for ever. */
  call->tokens[index].value = TOKEN_TENSOR | (pointer % 16 == 0 ? 0x100 : 0) | (uint64_t)(device + 2) << 16;
  call->bits[index] = pointer;
  Py_DECREF(dtype);
  return device == MOST_DEVICES ? 0 : 1;
}

/* `rank` numbers that a kernel's parameters can be. */
static int read_sizes(PyObject *object, PyObject *name, size_t rank, long long *sizes) {
  PyObject *list = PyObject_GetAttr(object, name);
  if (!list)
    return -1;
  const int is_tuple = PyTuple_Check(list);
  int read = (is_tuple || PyList_Check(list)) && (size_t)(is_tuple ? PyTuple_Size(list) : PyList_Size(list)) == rank;
  for (size_t i = 0; read && i < rank; ++i) {
    PyObject *size = is_tuple ? PyTuple_GetItem(list, (Py_ssize_t)i) : PyList_GetItem(list, (Py_ssize_t)i);
    int overflow = 0;
    sizes[i] = Py_TYPE(size) == &PyLong_Type ? PyLong_AsLongLongAndOverflow(size, &overflow) : -1;
    read = !overflow && sizes[i] >= 0;
  }
  Py_DECREF(list);
  return read;
}

/* Behind the tensor's token, at call->parts[index], stand tokens for its rank and what it reads outside, and for size, stride and tile of each
 * dimension: a tile's size decides itself, of a stride what it is modulo 16, of the last size whether it is a multiple of 16. */
static int read_descriptor(PyObject *object, Call *call, size_t index) {
  PyObject *base = PyObject_GetAttr(object, name_base), *padding = PyObject_GetAttr(object, name_padding),
           *shape = PyObject_GetAttr(object, name_shape);
  const Py_ssize_t rank = shape ? PyObject_Size(shape) : -1;
  Py_XDECREF(shape);
  Py_XDECREF(base); /* The descriptor holds it. */
  Py_XDECREF(padding);
  if (!base || !padding || rank < 0)
    return -1;
  long long sizes[MOST_DIMENSIONS], strides[MOST_DIMENSIONS], tile[MOST_DIMENSIONS];
  const int is_nan = PyObject_RichCompareBool(padding, word_nan, Py_EQ);
  const int is_plain = is_nan == 1 ? 1 : is_nan < 0 ? -1 : PyObject_RichCompareBool(padding, word_zero, Py_EQ);
  if (is_plain != 1 || !is_tensor(base) || rank > MOST_DIMENSIONS || call->count + 1 + 3 * (size_t)rank > MOST_TOKENS)
    return is_plain < 0 ? -1 : 0;
  int read = read_tensor(base, call, index);
  if (read == 1)
    read = read_sizes(object, name_shape, (size_t)rank, sizes);
  if (read == 1)
    read = read_sizes(object, name_strides, (size_t)rank, strides);
  if (read == 1)
    read = read_sizes(object, name_block_shape, (size_t)rank, tile);
  if (read != 1)
    return read;
  call->tokens[index].value |= 0x200;
  size_t next = call->count;
  call->parts[index] = (uint8_t)next;
  call->objects[next] = base;
  call->tokens[next++] = (Token){TOKEN_INT, (uint64_t)rank << 1 | (uint64_t)is_nan};
  for (Py_ssize_t i = 0; i < rank; ++i) {
    if (sizes[i] > INT32_MAX)
      return 0; /* Python says what is wrong. */
    const long long values[] = {sizes[i], strides[i], tile[i]};
    const uint64_t decides[] = {i == rank - 1 && sizes[i] % 16 == 0, (uint64_t)strides[i] % 16, (uint64_t)tile[i]};
    for (size_t part = 0; part < 3; ++part, ++next) {
      call->objects[next] = Py_None;
      call->tokens[next] = (Token){TOKEN_INT, decides[part]};
      call->bits[next] = (uint64_t)values[part];
    }
  }
  call->count = next;
  return 1;
}

/* 1: done; 0: not simple; -1: an exception. */
static int read_token(PyObject *object, Call *call, size_t index) {
  PyTypeObject *type = Py_TYPE(object);
  Token *token = &call->tokens[index];
  call->objects[index] = object;
  if (object == Py_None) {
    *token = (Token){TOKEN_NONE, 0};
  } else if (object == Py_True || object == Py_False) {
    *token = (Token){TOKEN_BOOL, object == Py_True};
    call->bits[index] = object == Py_True;
  } else if (type == &PyLong_Type) {
    int overflow;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow)
      return 0;
    *token = (Token){TOKEN_INT, (uint64_t)(value == 1) | (uint64_t)(value % 16 == 0) << 1 |
                                    (uint64_t)(value < INT32_MIN || value > INT32_MAX) << 2};
    call->bits[index] = (uint64_t)value;
  } else if (type == &PyFloat_Type) {
    const double value = PyFloat_AsDouble(object);
    *token = (Token){TOKEN_FLOAT, 0};
    memcpy(&call->bits[index], &value, sizeof value);
  } else if (is_tensor(object)) {
    return read_tensor(object, call, index);
  } else if (is_descriptor(object)) {
    return read_descriptor(object, call, index);
  } else if (PyTuple_Check(object) || PyList_Check(object)) {
    return 0;
  } else {
    const Py_hash_t hash = PyObject_Hash(object);
    if (hash == -1) {
      PyErr_Clear();
      return 0;
    }
    *token = (Token){(uintptr_t)type, (uint64_t)hash};
  }
  return 1;
}

/* A compile-time argument: its value decides. */
static int read_value(PyObject *object, Call *call, size_t index) {
  call->objects[index] = object;
  call->tokens[index] = (Token){(uintptr_t)Py_TYPE(object), 0};
  if (Py_TYPE(object) == &PyFloat_Type) { /* 0.0 and -0.0 are equal, and two values. */
    const double number = PyFloat_AsDouble(object);
    memcpy(&call->tokens[index].value, &number, sizeof number);
    return 1;
  }
  const Py_hash_t hash = PyObject_Hash(object);
  if (hash == -1) {
    PyErr_Clear();
    return 0;
  }
  call->tokens[index].value = (uint64_t)hash;
  return 1;
}

/* `constexprs` holds a 1 for each compile-time parameter. */
static int read_call(Dispatcher *self, PyObject *arguments, PyObject *keywords, Call *call) {
  const size_t given = (size_t)PyTuple_Size(arguments);
  if (given > self->parameters)
    return 0;
  call->count = self->parameters;
  call->device = -2;
  for (size_t i = 0; i < self->parameters; ++i)
    call->objects[i] = i < given ? PyTuple_GetItem(arguments, (Py_ssize_t)i) : NULL;
  if (keywords) {
    PyObject *name, *value;
    Py_ssize_t place = 0;
    while (PyDict_Next(keywords, &place, &name, &value)) {
      PyObject *number = PyDict_GetItemWithError(self->indices, name);
      if (number) {
        const size_t index = (size_t)PyLong_AsSize_t(number) & 0xFFFF;
        if (call->objects[index])
          return 0;
        call->objects[index] = value;
        continue;
      }
      /* An option of the launch: name and value. */
      if (call->count + 2 > MOST_TOKENS || !read_value(name, call, call->count) ||
          !read_value(value, call, call->count + 1))
        return 0;
      call->count += 2;
    }
  }
  for (size_t i = 0; i < self->parameters; ++i) {
    PyObject *object = call->objects[i];
    if (!object && (object = PyTuple_GetItem(self->defaults, (Py_ssize_t)i)) == self->missing)
      return 0;
    PyObject *number = PyDict_GetItemWithError(self->indices, PyTuple_GetItem(self->names, (Py_ssize_t)i));
    const int is_constexpr = PyLong_AsSize_t(number) >> 16;
    const int read = is_constexpr ? read_value(object, call, i) : read_token(object, call, i);
    if (read != 1)
      return read;
  }
  return call->device == -2 ? 0 : 1;
}

static uint64_t hash_of(const Call *call) {
  uint64_t hash = call->count;
  for (size_t i = 0; i < call->count; ++i) {
    hash = (hash ^ call->tokens[i].kind) * 0x9E3779B97F4A7C15u;
    hash = (hash ^ call->tokens[i].value ^ hash >> 29) * 0xBF58476D1CE4E5B9u;
  }
  return hash ^ hash >> 32;
}

/*===- The table ----------------------------------------------------------------------------------------------------------===*/

static int matches(const Entry *entry, const Call *call, uint64_t hash) {
  if (entry->hash != hash || entry->count != call->count ||
      memcmp(entry->tokens, call->tokens, call->count * sizeof(Token)))
    return 0;
  for (size_t i = 0; i < call->count; ++i) {
    /* Numbers, tensors and their descriptors are told by their tokens alone. */
    if (call->tokens[i].kind <= TOKEN_TENSOR || is_tensor(call->objects[i]) || is_descriptor(call->objects[i]) ||
        Py_TYPE(call->objects[i]) == &PyFloat_Type)
      continue;
    PyObject *known = PyTuple_GetItem(entry->objects, (Py_ssize_t)i);
    if (known == call->objects[i])
      continue;
    const int equal = PyObject_RichCompareBool(known, call->objects[i], Py_EQ);
    if (equal < 0)
      PyErr_Clear();
    if (equal != 1)
      return 0;
  }
  return 1;
}

static Entry *look_up(Dispatcher *self, const Call *call, uint64_t hash) {
  if (!self->capacity)
    return NULL;
  for (size_t i = hash & (self->capacity - 1);; i = (i + 1) & (self->capacity - 1)) {
    Entry *entry = self->table[i];
    if (!entry || matches(entry, call, hash))
      return entry;
  }
}

static void free_entry(Entry *entry) {
  Py_CLEAR(entry->objects);
  Py_CLEAR(entry->compiled);
  Py_CLEAR(entry->launch);
  free(entry->tokens);
  free(entry->slots);
  free(entry->codes);
  free(entry);
}

static int insert(Dispatcher *self, Entry *entry) {
  if (2 * (self->used + 1) > self->capacity) {
    const size_t capacity = self->capacity ? 2 * self->capacity : 16;
    Entry **table = calloc(capacity, sizeof *table);
    if (!table)
      return -1;
    for (size_t old = 0; old < self->capacity; ++old) {
      if (!self->table[old])
        continue;
      size_t i = self->table[old]->hash & (capacity - 1);
      while (table[i])
        i = (i + 1) & (capacity - 1);
      table[i] = self->table[old];
    }
    free(self->table);
    self->table = table;
    self->capacity = capacity;
  }
  size_t i = entry->hash & (self->capacity - 1);
  while (self->table[i])
    i = (i + 1) & (self->capacity - 1);
  self->table[i] = entry;
  ++self->used;
  return 0;
}

/* Keeps what Python's launch of this call used: compiled.plan is (variant, ((argument, part, code), ...)) or None. */
static void remember(Dispatcher *self, const Call *call, uint64_t hash, PyObject *compiled) {
  PyObject *plan = PyObject_GetAttrString(compiled, "plan");
  unsigned long long variant;
  PyObject *list;
  if (!plan || plan == Py_None || !PyArg_ParseTuple(plan, "KO", &variant, &list)) {
    PyErr_Clear();
    Py_XDECREF(plan);
    return;
  }
  Entry *entry = calloc(1, sizeof *entry);
  const size_t parameters = (size_t)PyTuple_Size(list);
  if (entry) {
    entry->tokens = malloc(call->count * sizeof(Token) + 1);
    entry->slots = malloc(parameters * sizeof(uint32_t) + 1);
    entry->codes = malloc(parameters + 1);
    entry->objects = PyTuple_New((Py_ssize_t)call->count);
  }
  if (!entry || !entry->tokens || !entry->slots || !entry->codes || !entry->objects || parameters > MOST_TOKENS) {
    if (entry)
      free_entry(entry);
    Py_DECREF(plan);
    PyErr_Clear();
    return;
  }
  entry->hash = hash;
  entry->count = call->count;
  entry->variant = (void *)(uintptr_t)variant;
  entry->parameters = parameters;
  memcpy(entry->tokens, call->tokens, call->count * sizeof(Token));
  for (size_t i = 0; i < call->count; ++i) {
    PyObject *object = call->objects[i];
    PyObject *kept = is_tensor(object) || is_descriptor(object) ? Py_None : object; /* Nobody's memory is held. */
    Py_INCREF(kept);
    PyTuple_SetItem(entry->objects, (Py_ssize_t)i, kept);
  }
  int is_simple = 1;
  for (size_t i = 0; i < parameters; ++i) {
    const char *code = "i";
    unsigned argument = 0, part = 0;
    is_simple = is_simple && PyArg_ParseTuple(PyTuple_GetItem(list, (Py_ssize_t)i), "IIs", &argument, &part, &code) &&
                argument < self->parameters;
    if (!is_simple)
      break;
    PyObject *object = call->objects[argument];
    entry->codes[i] = code[0];
    entry->slots[i] = part ? call->parts[argument] + part : argument;
    /* An object that becomes a number in Python (a scalar of NumPy) has no bits here. */
    is_simple = entry->slots[i] < call->count &&
                (part ? is_descriptor(object)
                      : call->tokens[argument].kind <= TOKEN_TENSOR || is_tensor(object) || is_descriptor(object));
  }
  entry->compiled = compiled;
  Py_INCREF(compiled);
  entry->launch = PyObject_GetAttrString(compiled, "launch_packed");
  Py_DECREF(plan);
  if (!entry->launch || !is_simple || insert(self, entry) < 0) {
    PyErr_Clear();
    free_entry(entry);
  }
}

/*===- A launch -----------------------------------------------------------------------------------------------------------===*/

/* 1: read; 0: Python has to; -1: an exception. */
static int read_grid(Dispatcher *self, PyObject *grid, const Call *call, uint32_t blocks[3]) {
  PyObject *made = NULL;
  if (!PyTuple_Check(grid)) {
    if (!PyCallable_Check(grid))
      return 0;
    PyObject *meta = PyDict_New();
    for (size_t i = 0; meta && i < self->parameters; ++i)
      if (PyDict_SetItem(meta, PyTuple_GetItem(self->names, (Py_ssize_t)i), call->objects[i]) < 0)
        Py_CLEAR(meta);
    if (!meta)
      return -1;
    grid = made = PyObject_CallFunctionObjArgs(grid, meta, NULL);
    Py_DECREF(meta);
    if (!made)
      return -1;
  }
  const Py_ssize_t dimensions = PyTuple_Check(grid) ? PyTuple_Size(grid) : 0;
  int read = dimensions >= 1 && dimensions <= 3;
  blocks[0] = blocks[1] = blocks[2] = 1;
  for (Py_ssize_t i = 0; read && i < dimensions; ++i) {
    PyObject *size = PyTuple_GetItem(grid, i);
    int overflow = 0;
    const long long value = Py_TYPE(size) == &PyLong_Type ? PyLong_AsLongLongAndOverflow(size, &overflow) : -1;
    read = !overflow && value >= 0 && value <= (i == 0 ? INT32_MAX : UINT16_MAX);
    blocks[i] = (uint32_t)value;
  }
  Py_XDECREF(made);
  return read;
}

static void pack(const Entry *entry, const Call *call, uint64_t *values) {
  for (size_t i = 0; i < entry->parameters; ++i) {
    const uint64_t bits = call->bits[entry->slots[i]];
    const int is_float = call->tokens[entry->slots[i]].kind == TOKEN_FLOAT;
    double number;
    if (is_float)
      memcpy(&number, &bits, sizeof number);
    else
      number = (double)(int64_t)bits;
    values[i] = bits;
    if (entry->codes[i] == 'f') {
      const float single = (float)number;
      values[i] = 0;
      memcpy(&values[i], &single, sizeof single);
    } else if (entry->codes[i] == 'd') {
      memcpy(&values[i], &number, sizeof number);
    }
  }
}

static ditron_stream_h stream_of(int device) {
  PyObject *number = PyObject_CallFunction(raw_stream, "i", device);
  if (!number)
    return NULL;
  const unsigned long long native = PyLong_AsUnsignedLongLong(number);
  Py_DECREF(number);
  if (streams[device].stream && streams[device].native == native)
    return streams[device].stream;
  PyObject *stream = PyObject_CallFunction(adopt_stream, "iK", device, native);
  if (!stream)
    return NULL;
  streams[device].native = native;
  streams[device].stream = (void *)(uintptr_t)PyLong_AsUnsignedLongLong(stream);
  Py_DECREF(stream);
  return streams[device].stream;
}

/* The tensors of the call, for the simulator to borrow their memory. */
static PyObject *launch_simulated(const Entry *entry, const Call *call, const uint32_t *blocks,
                                  const uint64_t *values) {
  PyObject *owners = PyList_New(0);
  for (size_t i = 0; owners && i < call->count; ++i)
    if (is_tensor(call->objects[i]) && PyList_Append(owners, call->objects[i]) < 0)
      Py_CLEAR(owners);
  if (!owners)
    return NULL;
  return PyObject_CallFunction(entry->launch, "(III)y#N", blocks[0], blocks[1], blocks[2], (const char *)values,
                               (Py_ssize_t)(entry->parameters * sizeof *values), owners);
}

static PyObject *run_entry(const Entry *entry, const Call *call, const uint32_t *blocks) {
  PyObject *compiled = entry->compiled;
  if (blocks[0] && blocks[1] && blocks[2]) {
    uint64_t values[MOST_TOKENS];
    pack(entry, call, values);
    if (call->device < 0) {
      PyObject *done = launch_simulated(entry, call, blocks, values);
      if (!done)
        return NULL;
      Py_DECREF(done);
    } else {
      const void *pointers[MOST_TOKENS];
      for (size_t i = 0; i < entry->parameters; ++i)
        pointers[i] = &values[i];
      ditron_stream_h stream = stream_of(call->device);
      if (!stream)
        return NULL;
      const ditron_status_t status = ditron.variant_launch(entry->variant, stream, blocks, pointers);
      if (status != DITRON_OK)
        return raise_status(status);
    }
  }
  Py_INCREF(compiled);
  return compiled;
}

static int has_hooks(void) { return launch_hooks[0] && (PyList_Size(launch_hooks[0]) || PyList_Size(launch_hooks[1])); }

static PyObject *dispatch(Dispatcher *self, PyObject *grid, PyObject *arguments, PyObject *keywords) {
  Call call;
  uint32_t blocks[3];
  const int is_simple = tensor_types[0] && self->parameters < MOST_TOKENS && !has_hooks();
  const int read = is_simple ? read_call(self, arguments, keywords, &call) : 0;
  if (read < 0)
    return NULL;
  uint64_t hash = 0;
  if (read) {
    hash = hash_of(&call);
    Entry *entry = look_up(self, &call, hash);
    if (entry) {
      const int has_grid = read_grid(self, grid, &call, blocks);
      if (has_grid < 0)
        return NULL;
      if (has_grid)
        return run_entry(entry, &call, blocks);
    }
  }
  PyObject *compiled = PyObject_CallFunctionObjArgs(self->slowly, grid, arguments, keywords ? keywords : Py_None, NULL);
  if (compiled && read && !look_up(self, &call, hash))
    remember(self, &call, hash, compiled);
  return compiled;
}

/*===- Types --------------------------------------------------------------------------------------------------------------===*/

/* Dispatcher(slowly, names, constexprs, defaults, missing) */
static PyObject *dispatcher_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  PyObject *slowly, *names, *constexprs, *defaults, *missing;
  if (!PyArg_ParseTuple(arguments, "OO!O!O!O", &slowly, &PyTuple_Type, &names, &PyTuple_Type, &constexprs,
                        &PyTuple_Type, &defaults, &missing))
    return NULL;
  Dispatcher *self = (Dispatcher *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
  if (!self)
    return NULL;
  self->parameters = (size_t)PyTuple_Size(names);
  self->slowly = slowly, self->names = names, self->defaults = defaults, self->missing = missing;
  Py_INCREF(slowly), Py_INCREF(names), Py_INCREF(defaults), Py_INCREF(missing);
  self->indices = PyDict_New();
  for (size_t i = 0; self->indices && i < self->parameters; ++i) {
    const int is_constexpr = PyObject_IsTrue(PyTuple_GetItem(constexprs, (Py_ssize_t)i));
    PyObject *number = PyLong_FromSize_t(i | (size_t)is_constexpr << 16);
    if (!number || PyDict_SetItem(self->indices, PyTuple_GetItem(names, (Py_ssize_t)i), number) < 0)
      Py_CLEAR(self->indices);
    Py_XDECREF(number);
  }
  if (!self->indices)
    Py_CLEAR(self);
  return (PyObject *)self;
}

static int dispatcher_traverse(PyObject *object, visitproc visit, void *arg) {
  Dispatcher *self = (Dispatcher *)object;
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->slowly);
  Py_VISIT(self->defaults);
  for (size_t i = 0; i < self->capacity; ++i)
    if (self->table[i]) {
      Py_VISIT(self->table[i]->objects);
      Py_VISIT(self->table[i]->compiled);
      Py_VISIT(self->table[i]->launch);
    }
  return 0;
}

static int dispatcher_clear(PyObject *object) {
  Dispatcher *self = (Dispatcher *)object;
  Py_CLEAR(self->slowly);
  for (size_t i = 0; i < self->capacity; ++i)
    if (self->table[i]) {
      free_entry(self->table[i]);
      self->table[i] = NULL;
    }
  free(self->table);
  self->table = NULL;
  self->capacity = self->used = 0;
  return 0;
}

static void dispatcher_dealloc(PyObject *object) {
  Dispatcher *self = (Dispatcher *)object;
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  dispatcher_clear(object);
  Py_CLEAR(self->names);
  Py_CLEAR(self->defaults);
  Py_CLEAR(self->missing);
  Py_CLEAR(self->indices);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

/* launch(grid, arguments, keywords) */
static PyObject *dispatcher_launch(PyObject *self, PyObject *args) {
  PyObject *grid, *arguments, *keywords;
  if (!PyArg_ParseTuple(args, "OO!O!", &grid, &PyTuple_Type, &arguments, &PyDict_Type, &keywords))
    return NULL;
  return dispatch((Dispatcher *)self, grid, arguments, keywords);
}

static PyObject *dispatcher_subscript(PyObject *self, PyObject *grid) {
  Bound *bound = (Bound *)((allocfunc)PyType_GetSlot(bound_type, Py_tp_alloc))(bound_type, 0);
  if (!bound)
    return NULL;
  bound->dispatcher = (Dispatcher *)self;
  bound->grid = grid;
  Py_INCREF(self);
  Py_INCREF(grid);
  return (PyObject *)bound;
}

static PyObject *bound_call(PyObject *object, PyObject *arguments, PyObject *keywords) {
  Bound *self = (Bound *)object;
  return dispatch(self->dispatcher, self->grid, arguments, keywords);
}

static int bound_traverse(PyObject *object, visitproc visit, void *arg) {
  Bound *self = (Bound *)object;
  Py_VISIT(Py_TYPE(object));
  Py_VISIT((PyObject *)self->dispatcher);
  Py_VISIT(self->grid);
  return 0;
}

static void bound_dealloc(PyObject *object) {
  Bound *self = (Bound *)object;
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  Py_XDECREF((PyObject *)self->dispatcher);
  Py_XDECREF(self->grid);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

/* set_tensors(types, descriptor, raw_stream, adopt_stream, host_only): what PyTorch is, once it has been imported. */
static PyObject *set_tensors(PyObject *module, PyObject *args) {
  PyObject *types, *descriptor, *raw, *adopt;
  int only;
  if (!PyArg_ParseTuple(args, "O!OOOp", &PyTuple_Type, &types, &descriptor, &raw, &adopt, &only))
    return NULL;
  Py_INCREF(descriptor);
  Py_XDECREF(descriptor_type);
  descriptor_type = descriptor;
  for (Py_ssize_t i = 0; i < 2; ++i) {
    PyObject *type = PyTuple_GetItem(types, i);
    if (!type)
      return NULL;
    Py_INCREF(type);
    Py_XDECREF(tensor_types[i]);
    tensor_types[i] = type;
  }
  Py_INCREF(raw);
  Py_XDECREF(raw_stream);
  raw_stream = raw;
  Py_INCREF(adopt);
  Py_XDECREF(adopt_stream);
  adopt_stream = adopt;
  host_only = only;
  Py_RETURN_NONE;
}

/* set_launch_hooks(before, after) */
static PyObject *set_launch_hooks(PyObject *module, PyObject *args) {
  PyObject *lists[2];
  if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &lists[0], &PyList_Type, &lists[1]))
    return NULL;
  for (int i = 0; i < 2; ++i) {
    PyObject *before = launch_hooks[i];
    Py_INCREF(lists[i]);
    launch_hooks[i] = lists[i];
    Py_XDECREF(before);
  }
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"set_tensors", set_tensors, METH_VARARGS, NULL},
                                  {"set_launch_hooks", set_launch_hooks, METH_VARARGS, NULL},
                                  {NULL, NULL, 0, NULL}};

int add_dispatcher(PyObject *module) {
  static PyMethodDef methods[] = {{"launch", dispatcher_launch, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
  static PyType_Slot slots[] = {{Py_tp_new, dispatcher_new},
                                {Py_tp_dealloc, dispatcher_dealloc},
                                {Py_tp_traverse, dispatcher_traverse},
                                {Py_tp_clear, dispatcher_clear},
                                {Py_tp_methods, methods},
                                {Py_mp_subscript, dispatcher_subscript},
                                {0, NULL}};
  static PyType_Spec spec = {"ditron._native.Dispatcher", sizeof(Dispatcher), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
  static PyType_Slot bound_slots[] = {
      {Py_tp_dealloc, bound_dealloc}, {Py_tp_traverse, bound_traverse}, {Py_tp_call, bound_call}, {0, NULL}};
  static PyType_Spec bound_spec = {"ditron._native.Bound", sizeof(Bound), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                                   bound_slots};
  name_data_ptr = PyUnicode_InternFromString("data_ptr");
  name_dtype = PyUnicode_InternFromString("dtype");
  name_get_device = PyUnicode_InternFromString("get_device");
  name_base = PyUnicode_InternFromString("base");
  name_shape = PyUnicode_InternFromString("shape");
  name_strides = PyUnicode_InternFromString("strides");
  name_block_shape = PyUnicode_InternFromString("block_shape");
  name_padding = PyUnicode_InternFromString("padding");
  word_zero = PyUnicode_InternFromString("zero");
  word_nan = PyUnicode_InternFromString("nan");
  bound_type = (PyTypeObject *)PyType_FromSpec(&bound_spec);
  PyObject *type = PyType_FromSpec(&spec);
  if (!name_data_ptr || !name_dtype || !name_get_device || !name_base || !name_shape || !name_strides ||
      !name_block_shape || !name_padding || !word_zero || !word_nan || !bound_type || !type)
    return -1;
  return PyModule_AddObject(module, "Dispatcher", type) < 0 ? -1 : PyModule_AddFunctions(module, functions);
}
