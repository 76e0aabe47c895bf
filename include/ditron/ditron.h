/*===- ditron.h - The C interface of Ditron ------------------------------------------------------------------------===*
 *
 * A context holds ranks (simulated or real GPUs of this process, or one rank of a job of processes) and a source of kernels
 * (the compiler, ahead-of-time packages, or both). Streams, memory, kernels and operators are made from it. This header is
 * the stable binary form of everything else: <ditron/ditron.hpp> is C++ over it, the Python package binds to it.
 *
 * Two libraries implement it. libditron holds the compiler; libditron_runtime holds neither compiler nor LLVM and takes
 * kernels from packages only: what needs the compiler returns DITRON_UNSUPPORTED there.
 *
 * Rules that hold everywhere:
 *  - Every function that can fail returns a ditron_status_t. On failure nothing was done, results are untouched, and
 *    ditron_last_error tells more to the calling thread. No function throws or ends the process, nor
 *    prints, but for messages of a context that has no function for them.
 *  - Handles are opaque, made by *_create, *_load or *_allocate and given back by the *_destroy of the same object, which takes
 *    null and never fails. An object keeps what it was made from alive: the order of destruction does not matter.
 *  - Structures that begin with struct_size grow at their end: set it to sizeof, zero the rest, fill in what you need.
 *    DITRON_INIT does so. Zero always means the default. A size from the future with other than zeros behind what this library
 *    knows is DITRON_INVALID_ARGUMENT.
 *  - Strings are UTF-8 and end with a zero; the library copies what it keeps. Text that it returns belongs to the object asked
 *    and lives as long.
 *  - Threads: different contexts may be used from different threads at once. Within a context of real GPUs any function may be
 *    called from any thread, but one stream, one plan, one rank of a collective and one capture belong to one thread at a time. A simulated context is
 *    used by the thread that made it; other threads get DITRON_INVALID_ARGUMENT. *_destroy may be called on any thread.
 *
 *===----------------------------------------------------------------------------------------------------------------===*/
#ifndef DITRON_DITRON_H
#define DITRON_DITRON_H

#include <ditron/version.h>

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define DITRON_API __attribute__((visibility("default")))
#else
#define DITRON_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Zeroes a structure and sets its size: ditron_launch_t launch; DITRON_INIT(launch); */
#define DITRON_INIT(object)                                                                                            \
  do {                                                                                                                 \
    char *ditron_bytes_ = (char *)&(object);                                                                           \
    for (size_t ditron_byte_ = 0; ditron_byte_ < sizeof(object); ++ditron_byte_)                                       \
      ditron_bytes_[ditron_byte_] = 0;                                                                                 \
    (object).struct_size = sizeof(object);                                                                             \
  } while (0)

/*===- Errors and version -------------------------------------------------------------------------------------------===*/

typedef enum ditron_status {
  DITRON_OK = 0,
  DITRON_INVALID_ARGUMENT = 1,   /* A value is wrong; the message names it, the limit and what is accepted. */
  DITRON_NOT_FOUND = 2,          /* No file, kernel, package or parameter of that name. */
  DITRON_UNSUPPORTED = 3,        /* Correct in principle, refused by this version or by this library. */
  DITRON_COMPILE_ERROR = 4,      /* A kernel's source is wrong; file, line and column say where. */
  DITRON_DEADLOCK = 5,           /* Nothing can run and nothing is in flight (simulated GPUs). */
  DITRON_OUT_OF_BOUNDS = 6,      /* A kernel touched memory outside of every allocation, or failed an assertion. */
  DITRON_RESOURCE_EXHAUSTED = 7, /* Memory, shared memory, threads or residency. */
  DITRON_INTERNAL = 8,           /* A bug of Ditron. */
  DITRON_TIMEOUT = 9,   /* A time limit passed: of a synchronisation, a wait in a kernel, or the start of a job; or the
                           process that is waited for has ended. */
  DITRON_DATA_RACE = 10 /* Two accesses of one byte that nothing orders (simulated GPUs). */
} ditron_status_t;

typedef struct ditron_error {
  size_t struct_size;
  ditron_status_t status;
  const char *message; /* In full sentences; of a kernel's mistake with source line and caret. Valid until this thread's next call. */
  const char *file;    /* Of the place in a kernel's source; null when there is none. */
  uint32_t line;       /* From 1; 0 when there is none. */
  uint32_t column;     /* From 1; 0 when there is none. */
} ditron_error_t;

/* The calling thread's latest failure. */
DITRON_API void ditron_last_error(ditron_error_t *error);
/* "invalid argument"; "unknown status" for a number that is none. */
DITRON_API const char *ditron_status_name(ditron_status_t status);
/* DITRON_VERSION_NUMBER of the library, to compare with the header's. */
DITRON_API uint32_t ditron_version(void);
/* "0.1.0 (commit ...)". */
DITRON_API const char *ditron_version_text(void);
/* 1 in libditron, 0 in libditron_runtime. */
DITRON_API int ditron_has_compiler(void);

/*===- Types --------------------------------------------------------------------------------------------------------===*/

typedef enum ditron_dtype {
  DITRON_I1 = 0, /* bool: one byte, 0 or 1 */
  DITRON_I8 = 1,
  DITRON_I16 = 2,
  DITRON_I32 = 3,
  DITRON_I64 = 4,
  DITRON_U8 = 5,
  DITRON_U16 = 6,
  DITRON_U32 = 7,
  DITRON_U64 = 8,
  DITRON_F8E5 = 9,
  DITRON_F8E4NV = 10,
  DITRON_F16 = 11,
  DITRON_BF16 = 12,
  DITRON_F32 = 13,
  DITRON_F64 = 14
} ditron_dtype_t;

/* Bytes of an element; 0 for a number that is no type. */
DITRON_API uint32_t ditron_dtype_size(ditron_dtype_t dtype);
/* "bf16"; null for a number that is no type. */
DITRON_API const char *ditron_dtype_name(ditron_dtype_t dtype);

typedef struct ditron_context *ditron_context_h;
typedef struct ditron_stream *ditron_stream_h;
typedef struct ditron_event *ditron_event_h;
typedef struct ditron_graph *ditron_graph_h;
typedef struct ditron_memory *ditron_memory_h;
typedef struct ditron_kernel *ditron_kernel_h;
typedef struct ditron_variant *ditron_variant_h;
typedef struct ditron_operator *ditron_operator_h;
typedef struct ditron_plan *ditron_plan_h;
typedef struct ditron_collective *ditron_collective_h;
typedef struct ditron_all_reduce_rms_norm *ditron_all_reduce_rms_norm_h;
typedef struct ditron_all_to_all_v *ditron_all_to_all_v_h;
typedef struct ditron_send_receive *ditron_send_receive_h;
typedef struct ditron_barrier *ditron_barrier_h;
typedef struct ditron_expert_parallel *ditron_expert_parallel_h;
typedef struct ditron_routing *ditron_routing_h;
typedef struct ditron_grouped_gemm *ditron_grouped_gemm_h;
typedef struct ditron_tensor_parallel_moe *ditron_tensor_parallel_moe_h;
typedef struct ditron_expert_parallel_moe *ditron_expert_parallel_moe_h;
typedef struct ditron_attention *ditron_attention_h;
typedef struct ditron_attention_decode *ditron_attention_decode_h;
typedef struct ditron_ring_attention *ditron_ring_attention_h;
typedef struct ditron_tensor_parallel_attention *ditron_tensor_parallel_attention_h;
typedef struct ditron_sequence_parallel_attention *ditron_sequence_parallel_attention_h;
typedef struct ditron_program *ditron_program_h;

/* A tensor where it lies. Checked against what an operator expects, so that a wrong size is an error and no wild access. */
typedef struct ditron_tensor {
  size_t struct_size;
  void *address;
  ditron_dtype_t dtype;
  uint32_t dimensions;
  const int64_t *shape;   /* [dimensions], outermost first. */
  const int64_t *strides; /* [dimensions] in elements; null for dense rows. */
} ditron_tensor_t;

/*===- Contexts -----------------------------------------------------------------------------------------------------===*/

/* Where a context may take kernels from. */
typedef enum ditron_kernel_policy {
  DITRON_KERNELS_DEFAULT = 0,  /* DITRON_KERNELS_JIT where there is a compiler, else DITRON_KERNELS_AOT_ONLY. */
  DITRON_KERNELS_JIT = 1,      /* From the packages, else compiled. */
  DITRON_KERNELS_JIT_WARN = 2, /* The same, and each compilation is told to the message callback. */
  DITRON_KERNELS_AOT_ONLY = 3  /* From the packages; another variant is an error that names the command which would add it. */
} ditron_kernel_policy_t;

/* Receives warnings, as whole lines without the line's end. What kernels print goes to the standard output stream. */
typedef void (*ditron_message_fn)(void *user, const char *line);

typedef struct ditron_context_options {
  size_t struct_size;
  const char *target;           /* "sim:sm_80", "sim:sm_90a", "cuda:sm_90a", "sim", "cuda"; null: real GPUs if there are any, else "sim". */
  uint32_t ranks;               /* GPUs of this process; 0: one. */
  uint32_t from_environment;    /* 1: be one rank of the job that torchrun, mpirun, srun or `ditron launch` started. */
  const int32_t *gpus;          /* [ranks] numbers of the GPUs to use; null: the first ones. */
  uint64_t heap_bytes;          /* Most memory of a rank, per kind. */
  double time_limit_seconds;    /* Of a synchronisation; 0: none. */
  uint64_t seed;                /* Simulated: other seeds, other interleavings. */
  uint32_t multiprocessors;     /* Simulated: SMs of a rank; 0: 8. */
  uint32_t no_bounds_check;     /* Simulated: 1 trusts the kernels' accesses. */
  const char *const *packages;  /* [package_count] paths of ahead-of-time packages. */
  uint32_t package_count;
  ditron_kernel_policy_t policy;
  ditron_message_fn message;    /* Null: messages go to the standard error stream. */
  void *message_user;
  uint32_t no_call_graphs;      /* 1: calls of operators are not launched as graphs, one call of the driver each, but one operation
                                 * after the other, as in a capture: to look at with a profiler, or to compare. */
  uint32_t no_race_check; /* Simulated: 1 does not look for data races, which takes time and four times the memory. */
  uint32_t
      ranks_per_node; /* Simulated: nodes of so many ranks, a divisor of `ranks`, with puts, gets and signals between them; 0: one
                            * node. */
} ditron_context_options_t;

/* `options` may be null. Collective over the job when from_environment is set. */
DITRON_API ditron_status_t ditron_context_create(const ditron_context_options_t *options, ditron_context_h *context);
DITRON_API void ditron_context_destroy(ditron_context_h context);
/* "sim:sm_80": the target that was chosen. */
DITRON_API const char *ditron_context_target(ditron_context_h context);
DITRON_API uint32_t ditron_context_ranks(ditron_context_h context);
/* 1 if the rank is in this process. */
DITRON_API int ditron_context_is_local(ditron_context_h context, uint32_t rank);
/* The lowest rank of this process. */
DITRON_API uint32_t ditron_context_first_rank(ditron_context_h context);
/* Waits for all streams of this process's ranks. Errors of kernels come back from here. */
DITRON_API ditron_status_t ditron_context_synchronize(ditron_context_h context);
/* Ends what simulated GPUs of this process run, in every thread, with a report of what waits for what: the calls that run it fail with
 * DITRON_TIMEOUT within a moment, also ditron_program_run_* that still compile. What ended is as after any error
 * (ditron_context_check); contents of its memory are undefined. Other contexts, and later runs, go on. `signal` is named in the
 * report, 2 for Ctrl-C. May be called from any thread and from a signal handler; GPUs take no notice. */
DITRON_API void ditron_interrupt(int signal);
/* Ok, or the error that ended the run: every later call on the context returns it. */
DITRON_API ditron_status_t ditron_context_check(ditron_context_h context);
/* After an error that ended the run of simulated GPUs: begins again with the same options. Kernels and adopted memory stay
 * valid; streams, events, graphs, operators and memory of the context's own are those of the run that ended. */
DITRON_API ditron_status_t ditron_context_restart(ditron_context_h context);

/* A context of some of this one's ranks, numbered by their places in the list: its kernels and operators see only the members, on the
 * same GPUs and in the same memory, from the same source of kernels. Symmetric memory of a group takes its place on every rank of the
 * context it was made from. Where ranks are processes, each makes a group that holds its own rank, and then the same allocations. */
DITRON_API ditron_status_t ditron_context_group(ditron_context_h context, const uint32_t *ranks, uint32_t count,
                                                ditron_context_h *group);

/* Symmetric memory that another library made, as a table: one piece on every rank, all of one size. */
typedef struct ditron_symmetric_heap {
  size_t struct_size;
  void *const *addresses;  /* [count] where each rank's piece lies as this process and the kernels of its ranks address it:
                            * `buffer_ptrs` of PyTorch's symmetric memory. Multiples of 16 bytes, no two overlap. */
  uint32_t count;          /* The ranks of the context. */
  uint64_t bytes;          /* Of a piece. */
  uint64_t reserved_bytes; /* At the beginning of each piece: the caller's own data, which stays as it is. */
  const char *name;        /* In messages; null: "adopted heap". */
} ditron_symmetric_heap_t;

/* A context of the same ranks, GPUs and kernels whose symmetric memory is the caller's. Kernels launched on its streams find a peer's
 * copy (symm_at) of every address in that memory, the caller's reserved data included; its operators and
 * ditron_memory_allocate_symmetric cut their memory off what is not reserved, which they clear. Kernels on streams of `context`
 * reach peers in the context's own symmetric memory as before: a kernel reaches them in one of the two. On simulated ranks the
 * pieces are host memory. They stay the caller's, and must live until the result and everything made from it is destroyed.
 * Collective where ranks are processes: each gives its own table. DITRON_INVALID_ARGUMENT names a piece that cannot be one,
 * DITRON_RESOURCE_EXHAUSTED says how much room is missing: a few hundred bytes are needed in any case. */
DITRON_API ditron_status_t ditron_context_adopt_symmetric(ditron_context_h context, const ditron_symmetric_heap_t *heap,
                                                          ditron_context_h *adopted);

typedef struct ditron_device_info {
  size_t struct_size;
  const char *name; /* As long as the context. */
  uint32_t multiprocessors;
  uint32_t warp_size;
  uint64_t shared_bytes_per_block;
  uint32_t max_threads_per_block;
} ditron_device_info_t;
DITRON_API ditron_status_t ditron_context_device(ditron_context_h context, uint32_t rank, ditron_device_info_t *info);

/*===- Streams, events, graphs --------------------------------------------------------------------------------------===*/

DITRON_API ditron_status_t ditron_stream_create(ditron_context_h context, uint32_t rank, const char *name, ditron_stream_h *stream);
/* A CUstream of the caller's, for example PyTorch's current one; it stays the caller's. Null is CUDA's default stream. */
DITRON_API ditron_status_t ditron_stream_adopt(ditron_context_h context, uint32_t rank, void *native, ditron_stream_h *stream);
DITRON_API void ditron_stream_destroy(ditron_stream_h stream);
/* The CUstream of a real GPU; null for a simulated one. */
DITRON_API void *ditron_stream_native(ditron_stream_h stream);
DITRON_API ditron_status_t ditron_stream_synchronize(ditron_stream_h stream);

DITRON_API ditron_status_t ditron_event_create(ditron_context_h context, uint32_t rank, ditron_event_h *event);
DITRON_API void ditron_event_destroy(ditron_event_h event);
DITRON_API ditron_status_t ditron_event_record(ditron_event_h event, ditron_stream_h stream);
/* Holds the stream until the event's latest recording has completed; nothing when there was none. */
DITRON_API ditron_status_t ditron_event_wait(ditron_event_h event, ditron_stream_h stream);
DITRON_API ditron_status_t ditron_event_synchronize(ditron_event_h event);
/* Device time between two completed recordings, virtual time on simulated GPUs. */
DITRON_API ditron_status_t ditron_event_elapsed(ditron_event_h begin, ditron_event_h end, double *microseconds);

/* From begin to end the stream's operations (and those of streams that wait for its events) are kept instead of run. */
DITRON_API ditron_status_t ditron_capture_begin(ditron_stream_h stream);
DITRON_API ditron_status_t ditron_capture_end(ditron_stream_h stream, ditron_graph_h *graph);
DITRON_API ditron_status_t ditron_graph_launch(ditron_graph_h graph, ditron_stream_h stream);
DITRON_API void ditron_graph_destroy(ditron_graph_h graph);

/*===- Memory -------------------------------------------------------------------------------------------------------===*/

/* Zero-filled memory of one rank. `name` appears in reports. */
DITRON_API ditron_status_t ditron_memory_allocate(ditron_context_h context, uint32_t rank, uint64_t bytes, const char *name,
                                                  ditron_memory_h *memory);
/* Zero-filled memory at the same offset of every rank's symmetric heap, so that a kernel finds any rank's copy from its own.
 * Collective where ranks are processes. */
DITRON_API ditron_status_t ditron_memory_allocate_symmetric(ditron_context_h context, uint64_t bytes, const char *name,
                                                            ditron_memory_h *memory);
/* Memory of the caller's: on a simulated rank, host memory (a NumPy array, a CPU tensor) that kernels may then touch, with bounds
 * checks; on a real GPU any memory that the GPU can address (nothing is checked there). It stays the caller's and must live
 * until the handle is destroyed. Adopting a range again that lies within an adopted one counts references. */
DITRON_API ditron_status_t ditron_memory_adopt(ditron_context_h context, uint32_t rank, void *address, uint64_t bytes, const char *name,
                                               ditron_memory_h *memory);
DITRON_API void ditron_memory_destroy(ditron_memory_h memory);
/* Where the rank's copy lies as this process addresses it; null for a rank that has none. */
DITRON_API void *ditron_memory_address(ditron_memory_h memory, uint32_t rank);
DITRON_API uint64_t ditron_memory_bytes(ditron_memory_h memory);
/* At once, past all streams: synchronise first when work may be queued on the memory. */
DITRON_API ditron_status_t ditron_memory_upload(ditron_memory_h memory, uint32_t rank, uint64_t offset, const void *source, uint64_t bytes);
DITRON_API ditron_status_t ditron_memory_download(ditron_memory_h memory, uint32_t rank, uint64_t offset, void *destination, uint64_t bytes);
/* Copies in stream order between any ranks' memory. */
DITRON_API ditron_status_t ditron_copy(ditron_stream_h stream, void *destination, const void *source, uint64_t bytes);
DITRON_API ditron_status_t ditron_fill(ditron_stream_h stream, void *destination, uint8_t value, uint64_t bytes);

/*===- Kernels ------------------------------------------------------------------------------------------------------===*/

/* A file that a kernel's source imports, under the name by which it does. */
typedef struct ditron_module {
  const char *name; /* "package.part" */
  const char *path; /* By which messages name it. */
  const char *text;
} ditron_module_t;

typedef struct ditron_source {
  size_t struct_size;
  const char *path; /* Of the file; with a text, the name by which messages call it. */
  const char *text; /* Null: the file is read. */
  const ditron_module_t *modules; /* [module_count]; what is not among them is looked for beside the file and in search_paths. */
  uint32_t module_count;
  const char *const *search_paths; /* [search_path_count] */
  uint32_t search_path_count;
} ditron_source_t;

/* Finds a kernel in a source: in the context's packages if one was built from this source, else the compiler takes it, as the policy
 * says. The same source and name give the same variants. */
DITRON_API ditron_status_t ditron_kernel_load(ditron_context_h context, const ditron_source_t *source, const char *name,
                                              ditron_kernel_h *kernel);
/* Finds a kernel in the context's packages. `source` is the name of its file, "softmax.py"; null: any. */
DITRON_API ditron_status_t ditron_kernel_find(ditron_context_h context, const char *source, const char *name, ditron_kernel_h *kernel);
DITRON_API void ditron_kernel_destroy(ditron_kernel_h kernel);
DITRON_API uint32_t ditron_kernel_parameter_count(ditron_kernel_h kernel);
/* Null past the last. */
DITRON_API const char *ditron_kernel_parameter_name(ditron_kernel_h kernel, uint32_t index);
/* 1 if the parameter is declared tl.constexpr. */
DITRON_API int ditron_kernel_parameter_is_constexpr(ditron_kernel_h kernel, uint32_t index);

typedef struct ditron_descriptor {
  size_t struct_size;
  void *base;
  ditron_dtype_t dtype;
  uint32_t dimensions;        /* 1 to 5 */
  const int64_t *shape;       /* In elements, outermost first. */
  const int64_t *strides;     /* The last is 1; null: dense. */
  const int64_t *block_shape;
  uint32_t fill_nan;          /* 1: what lies outside reads as NaN, else as zero. */
} ditron_descriptor_t;

typedef enum ditron_argument_kind {
  DITRON_ARGUMENT_NONE = 0, /* Python's None. */
  DITRON_ARGUMENT_BOOL = 1,
  DITRON_ARGUMENT_INT = 2,
  DITRON_ARGUMENT_UINT = 3,
  DITRON_ARGUMENT_FLOAT = 4,
  DITRON_ARGUMENT_POINTER = 5,    /* `dtype` is the element type. */
  DITRON_ARGUMENT_STRING = 6,     /* Compile-time. */
  DITRON_ARGUMENT_DTYPE = 7,      /* Compile-time; the type is in `dtype`. */
  DITRON_ARGUMENT_DESCRIPTOR = 8
} ditron_argument_kind_t;

typedef struct ditron_argument {
  const char *name; /* Of the parameter; null: the next by position. "t.0", "t.x" are elements of a tuple t. */
  ditron_argument_kind_t kind;
  ditron_dtype_t dtype;
  union {
    int64_t integer; /* A bool is 0 or 1. */
    uint64_t unsigned_integer;
    double floating;
    void *pointer;
    const char *string;
    const ditron_descriptor_t *descriptor;
  } value;
} ditron_argument_t;

typedef struct ditron_launch {
  size_t struct_size;
  uint32_t grid[3];      /* Blocks; of a launch 0 is 0 blocks: nothing runs. */
  uint32_t num_warps;    /* 0: what the kernel says, else 4. */
  uint32_t num_stages;   /* 0: what the kernel says, else 3. */
  uint32_t debug;        /* 1: assertions of kernels and integer overflow are checked. */
  uint32_t cooperative;  /* 1: all blocks must be resident at once. */
} ditron_launch_t;

/* Chooses the variant for the arguments by Triton's rules (types, the integer 1, multiples of 16), compiles it if need be, checks
 * every argument, and enqueues it. */
DITRON_API ditron_status_t ditron_kernel_launch(ditron_kernel_h kernel, ditron_stream_h stream, const ditron_launch_t *launch,
                                                const ditron_argument_t *arguments, uint32_t count);
/* The same without the launch: a variant to be launched often. `launch` may be null; its grid is ignored. */
DITRON_API ditron_status_t ditron_kernel_specialise(ditron_kernel_h kernel, const ditron_launch_t *launch, const ditron_argument_t *arguments,
                                                    uint32_t count, ditron_variant_h *variant);
/* The variant of a signature, "*bf16:16, *bf16, i32, constexpr BLOCK=64". */
DITRON_API ditron_status_t ditron_kernel_compile(ditron_kernel_h kernel, const ditron_launch_t *launch, const char *signature,
                                                 ditron_variant_h *variant);

/* One compiled form of a kernel, loaded on the ranks of this process. */
DITRON_API void ditron_variant_destroy(ditron_variant_h variant);
typedef struct ditron_variant_info {
  size_t struct_size;
  const char *name; /* Of the kernel; this and `target` as long as the variant. */
  const char *target;
  uint32_t num_warps;
  uint32_t threads_per_block;
  uint64_t shared_bytes;
  uint32_t parameter_count; /* Those left at run time. */
} ditron_variant_info_t;
DITRON_API ditron_status_t ditron_variant_info(ditron_variant_h variant, ditron_variant_info_t *info);
/* Name and type ("*bf16", "i32") of a run-time parameter; null past the last. */
DITRON_API const char *ditron_variant_parameter_name(ditron_variant_h variant, uint32_t index);
DITRON_API const char *ditron_variant_parameter_type(ditron_variant_h variant, uint32_t index);
/* What each thread of a variant takes. Of a GPU the driver says it; a variant that is not loaded yet, because the GPU was busy, is loaded
 * first. A simulated GPU has no registers: `registers` is the most, in multiples of 8, with which a block still fits one multiprocessor of
 * 65536 registers, 255 for a thread at most, and `local_bytes` is 0. */
typedef struct ditron_variant_resources {
  size_t struct_size;
  uint32_t registers;   /* Of 32 bits. */
  uint32_t local_bytes; /* In memory: what its registers do not hold. */
} ditron_variant_resources_t;
DITRON_API ditron_status_t ditron_variant_resources(ditron_variant_h variant, ditron_variant_resources_t *resources);
/* A stage of its compilation as text: "source", "tile", "layout", "llvm", "asm". Compiles again for those that are not kept. */
DITRON_API ditron_status_t ditron_variant_text(ditron_variant_h variant, const char *stage, const char **text);
/* Enqueues with the values that values[i] point to, of the types that the parameters have. Nothing is looked up and no argument is
 * checked: the caller vouches that they are what the variant was made for. Only the tensors of descriptors are, where the GPU fetches by them. */
DITRON_API ditron_status_t ditron_variant_launch(ditron_variant_h variant, ditron_stream_h stream, const uint32_t grid[3],
                                                 const void *const *values);

/*===- Operators ----------------------------------------------------------------------------------------------------===*/

typedef enum ditron_operator_kind {
  DITRON_ALL_GATHER_GEMM = 1,     /* C[M, N] = allgather(A[M / ranks, K]) * B */
  DITRON_GEMM_REDUCE_SCATTER = 2, /* C[M / ranks, N] = reduce_scatter(A[M, K] * B) */
  DITRON_GEMM_ALL_REDUCE = 3      /* C[M, N] = all_reduce(A[M, K] * B), the same bits on every rank */
} ditron_operator_kind_t;

/* How many fp32 scales A or B has, which the sums are multiplied with. */
typedef enum ditron_scaling {
  DITRON_SCALES_NONE = 0,
  DITRON_SCALES_TENSOR = 1, /* One. */
  DITRON_SCALES_VECTOR = 2  /* One for each row of A, or each column of B. */
} ditron_scaling_t;

/* What becomes of a scaled sum to which the bias has been added. */
typedef enum ditron_activation {
  DITRON_ACTIVATION_NONE = 0,
  DITRON_ACTIVATION_RELU = 1,
  DITRON_ACTIVATION_GELU = 2, /* With the error function. */
  DITRON_ACTIVATION_SILU = 3,
  DITRON_ACTIVATION_SWIGLU = 4 /* C[m, j] = silu(value[m, 2j]) * value[m, 2j + 1], [M, N / 2]: the columns of B are pairs, gate first. */
} ditron_activation_t;

typedef struct ditron_operator_options {
  size_t struct_size;
  ditron_operator_kind_t kind;
  ditron_dtype_t dtype;        /* Of A and B: bf16, fp16, fp32, fp8 or int8; sums are fp32, of int8 int32. Zero (bool) means bf16. */
  int64_t m;                   /* Rows of the whole problem; calls may have fewer. */
  int64_t n;                   /* Columns of a rank's product. GEMM+ReduceScatter, GEMM+AllReduce: of every call. */
  int64_t k;                   /* Depth of a rank's product. AllGather+GEMM: of every call. */
  uint32_t weight_transposed;  /* 1: B is [N, K], as the weight of a torch Linear; 0: [K, N]. */
  uint32_t chunks_per_rank;    /* 0: the library's choice. */
  ditron_dtype_t result_dtype; /* Of C: bf16, fp16 or fp32. Zero (bool): that of A and B, of 8-bit ones bf16. */
  ditron_scaling_t scales_a;   /* AllGather+GEMM: of the rows that a rank gives; they are gathered with the rows. */
  ditron_scaling_t scales_b;
  ditron_dtype_t bias_dtype;   /* bf16, fp16 or fp32. Zero (bool): no bias. Where ranks are added up it is given on all of them and added once. */
  ditron_activation_t activation; /* AllGather+GEMM only. */
  /* Of calls of one launch: for how many at once, of different operators on streams that nothing orders, all blocks must find a place; more
   * can wait for each other for ever. 0: 2. 1, where a GPU has one stream, gives a call all multiprocessors. The same on all ranks. */
  uint32_t concurrent_calls;
} ditron_operator_options_t;

/* Allocates workspaces and signals on all ranks. Collective where ranks are processes. The sizes choose the tiles. */
DITRON_API ditron_status_t ditron_operator_create(ditron_context_h context, const ditron_operator_options_t *options,
                                                  ditron_operator_h *op);
DITRON_API void ditron_operator_destroy(ditron_operator_h op);
/* Compiles and loads what calls of this shape need on all ranks of this process, and makes each rank's call a graph. Must not run while
 * a call of some rank runs. */
DITRON_API ditron_status_t ditron_operator_prepare(ditron_operator_h op, int64_t m, int64_t n, int64_t k, ditron_plan_h *plan);
/* The same for tensors whose rows are further apart than they are long. */
typedef struct ditron_plan_options {
  size_t struct_size;
  int64_t m, n, k;
  int64_t row_stride_a, row_stride_b, row_stride_c; /* Elements from row to row, on all ranks of this process; 0: dense rows. */
} ditron_plan_options_t;
DITRON_API ditron_status_t ditron_operator_prepare_strided(ditron_operator_h op, const ditron_plan_options_t *options,
                                                           ditron_plan_h *plan);
DITRON_API void ditron_plan_destroy(ditron_plan_h plan);
/* Rows of the gathered or scattered matrix that the rank holds; GEMM+AllReduce: all m. */
DITRON_API int64_t ditron_plan_rows(ditron_plan_h plan, uint32_t rank);
/* Enqueues one call on the stream's rank. Every rank makes the same sequence of calls. Pointers are exchanged and the plan's
 * graph is launched, nothing is looked up or allocated, and it may be captured (the plan must then outlive the graph). The tensors, row-major with
 * the plan's strides at multiples of 16 bytes, are checked against the plan:
 *   AllGather+GEMM:      a [rows of the rank, k], b [k, n] (transposed [n, k]), c [m, n] (swiglu [m, n / 2])
 *   GEMM+ReduceScatter:  a [m, k], b [k, n] (transposed [n, k]), c [rows of the rank, n]
 *   GEMM+AllReduce:      a [m, k], b [k, n] (transposed [n, k]), c [m, n]
 * Of the first two rank r has the rows from r * ceil(m / ranks) on, at most that many; ditron_plan_rows tells. They may be used again once the work
 * on `stream` so far has run. */
DITRON_API ditron_status_t ditron_plan_enqueue(ditron_plan_h plan, ditron_stream_h stream, const ditron_tensor_t *a,
                                               const ditron_tensor_t *b, const ditron_tensor_t *c);

/* What the operator's epilogue reads, in one dimension each; null for what it does not have. */
typedef struct ditron_epilogue_tensors {
  size_t struct_size;
  const ditron_tensor_t *scales_a; /* fp32 [1], or [rows of a]. */
  const ditron_tensor_t *scales_b; /* fp32 [1], or [n]. */
  const ditron_tensor_t *bias;     /* [n] */
} ditron_epilogue_tensors_t;
/* ditron_plan_enqueue of an operator with scales or a bias. */
DITRON_API ditron_status_t ditron_plan_enqueue_with(ditron_plan_h plan, ditron_stream_h stream, const ditron_tensor_t *a,
                                                    const ditron_tensor_t *b, const ditron_tensor_t *c,
                                                    const ditron_epilogue_tensors_t *epilogue);
/* Whether ditron_plan_enqueue_with would take these tensors on the stream's rank; nothing is enqueued. For who makes the calls of several ranks: look at
 * all of them first, since a call that some ranks make and others do not leaves those waiting. */
DITRON_API ditron_status_t ditron_plan_check_with(ditron_plan_h plan, ditron_stream_h stream, const ditron_tensor_t *a,
                                                  const ditron_tensor_t *b, const ditron_tensor_t *c,
                                                  const ditron_epilogue_tensors_t *epilogue);

/*===- Collectives --------------------------------------------------------------------------------------------------===*/

/* What a call reads and writes on each rank, dense, n elements of the collective's type a part. Part p of [ranks, n] is that of rank p. */
typedef enum ditron_collective_kind {
  DITRON_ALL_REDUCE = 1,     /* in [n], out [n]: of all ranks' `in`, the same bits on every rank */
  DITRON_ALL_GATHER = 2,     /* in [n], out [ranks, n] */
  DITRON_REDUCE_SCATTER = 3, /* in [ranks, n], out [n]: of all ranks' parts for this rank */
  DITRON_ALL_TO_ALL = 4, /* in [ranks, n], out [ranks, n]: part p of `in` becomes this rank's part of rank p's `out` */
  DITRON_BROADCAST = 5   /* in [n], read on the root only, null elsewhere if you like; out [n] on every rank */
} ditron_collective_kind_t;

/* Contributions are combined in ascending order of the ranks, floats in fp32, and rounded once. */
typedef enum ditron_reduction {
  DITRON_REDUCE_SUM = 0,
  DITRON_REDUCE_MAX = 1,
  DITRON_REDUCE_MIN = 2,
  DITRON_REDUCE_AVERAGE = 3 /* Of integers without the fraction. */
} ditron_reduction_t;

typedef struct ditron_collective_options {
  size_t struct_size;
  ditron_collective_kind_t kind;
  ditron_dtype_t dtype;         /* Zero (bool) means bf16; send bools as u8. */
  ditron_reduction_t reduction; /* DITRON_ALL_REDUCE and DITRON_REDUCE_SCATTER. */
  uint32_t has_scale; /* 1: each rank's contribution is multiplied by `scale` in fp32 and rounded before it is sent. */
  float scale;        /* Of floats only; processes may have different ones. */
  uint32_t root;      /* DITRON_BROADCAST: whose data all ranks get. */
  int64_t max_elements; /* Largest n of any call. */
  /* Calls of so many collectives at once, on streams that nothing orders, find places for all their blocks; more can wait for each other for
   * ever. 0: 1. The same on all ranks. */
  uint32_t concurrent_calls;
} ditron_collective_options_t;

/* Allocates slots and counters on all ranks. Collective where ranks are processes. All ranks on one node. */
DITRON_API ditron_status_t ditron_collective_create(ditron_context_h context,
                                                    const ditron_collective_options_t *options,
                                                    ditron_collective_h *collective);
DITRON_API void ditron_collective_destroy(ditron_collective_h collective);
/* Compiles and loads what calls of n elements need on all ranks of this process. Loading may wait until nothing runs on a GPU: prepare all
 * sizes before the first call. Preparing a size again does nothing. */
DITRON_API ditron_status_t ditron_collective_prepare(ditron_collective_h collective, int64_t elements);
/* Enqueues one call on the stream's rank: one kernel, no host argument of which changes from call to call. Every rank makes the same sequence
 * of calls of a collective, each with the same n, on one stream after the other; different sizes and different collectives may follow
 * each other in any order. n = 0 does nothing.
 *  - A prepared size is found and its kernel launched, nothing is allocated on the GPU; it may be captured, and eager calls and replays may
 *    follow each other (the collective must outlive the graph). Other sizes are prepared for this rank now, which a capture refuses.
 *  - Addresses are those of elements; prepared are multiples of 16 bytes, others count as a size of their own.
 *  - In place: `out` may be `in` (DITRON_ALL_REDUCE, DITRON_ALL_TO_ALL, DITRON_BROADCAST), `in` the rank's part of `out`
 *    (DITRON_ALL_GATHER), `out` the rank's part of `in` (DITRON_REDUCE_SCATTER). Other overlaps are refused.
 *  - `in` and `out` may be any memory of the rank, symmetric or not, and may be used again once the work on `stream` so far has run. */
DITRON_API ditron_status_t ditron_collective_enqueue(ditron_collective_h collective, ditron_stream_h stream,
                                                     const void *in, void *out, int64_t elements);
/* Whether ditron_collective_enqueue would take these; nothing is enqueued. As ditron_plan_check_with, for who makes the calls of several ranks. */
DITRON_API ditron_status_t ditron_collective_check(ditron_collective_h collective, ditron_stream_h stream,
                                                   const void *in, void *out, int64_t elements);

/* AllReduce, residual and RMSNorm as one launch: what stands between two products of a tensor-parallel layer. Row by row
 *   residual_out = sum over ranks of x + residual        out = residual_out / sqrt(mean(residual_out^2) + epsilon) * weight
 * The sum is rounded to the element type, then residual_out is, and the norm is of that: the values of the three steps one after the other. */
typedef struct ditron_all_reduce_rms_norm_options {
  size_t struct_size;
  ditron_dtype_t dtype;      /* bf16 (also zero), fp16 or fp32. */
  int64_t columns;           /* Of a row: a multiple of 16 bytes, at most 32768 elements. */
  int64_t max_rows;          /* Of any call; sizes the buffers. */
  double epsilon;            /* 0: 1e-6 */
  uint32_t concurrent_calls; /* As of ditron_collective_options_t. */
} ditron_all_reduce_rms_norm_options_t;

/* Of one rank, each at a multiple of 16 bytes. out and residual_out may be x and residual, one each; other overlaps with what is written are refused. */
typedef struct ditron_all_reduce_rms_norm_operands {
  size_t struct_size;
  const void *x;        /* [rows, columns] */
  const void *residual; /* [rows, columns], the same on all ranks where the results are to be. */
  const void *weight;   /* [columns] */
  void *out;            /* [rows, columns] */
  void *residual_out;   /* [rows, columns] */
} ditron_all_reduce_rms_norm_operands_t;

/* Allocates slots and counters on all ranks. Collective where ranks are processes. All ranks on one node. */
DITRON_API ditron_status_t ditron_all_reduce_rms_norm_create(ditron_context_h context,
                                                             const ditron_all_reduce_rms_norm_options_t *options,
                                                             ditron_all_reduce_rms_norm_h *norm);
DITRON_API void ditron_all_reduce_rms_norm_destroy(ditron_all_reduce_rms_norm_h norm);
/* As ditron_collective_prepare, for so many rows. */
DITRON_API ditron_status_t ditron_all_reduce_rms_norm_prepare(ditron_all_reduce_rms_norm_h norm, int64_t rows);
/* Enqueues one call on the stream's rank. Calls, sizes and captures as of ditron_collective_enqueue; 0 rows do nothing. */
DITRON_API ditron_status_t ditron_all_reduce_rms_norm_enqueue(ditron_all_reduce_rms_norm_h norm, ditron_stream_h stream,
                                                              const ditron_all_reduce_rms_norm_operands_t *operands,
                                                              int64_t rows);
/* As ditron_collective_check. */
DITRON_API ditron_status_t ditron_all_reduce_rms_norm_check(ditron_all_reduce_rms_norm_h norm, ditron_stream_h stream,
                                                            const ditron_all_reduce_rms_norm_operands_t *operands,
                                                            int64_t rows);

/* All-to-all of parts whose sizes stand on the device: counts and offsets in rows, read by the kernel and never by the host. */
typedef struct ditron_all_to_all_v_options {
  size_t struct_size;
  ditron_dtype_t dtype; /* Zero (bool) means bf16; send bools as u8. */
  int64_t row_elements; /* Elements of a row; 0 means 1. Multiples of 16 elements and of 16 bytes are moved by wide accesses. */
  int64_t max_rows;     /* The most that one rank sends another in a call; sizes the buffers. */
  uint32_t packed;      /* 1: what is received lies behind each other, by ascending ranks, and receive_offsets is a result. */
} ditron_all_to_all_v_options_t;

/* Memory of one rank, at any multiple of an element; `in` and `out` must not overlap. */
typedef struct ditron_all_to_all_v_operands {
  size_t struct_size;
  const void *in; /* [in_rows, row_elements] */
  int64_t in_rows;
  const int64_t *send_counts, *send_offsets; /* [ranks]: rows for each rank, and where they begin in `in` */
  void *out; /* [out_rows, row_elements] */
  int64_t out_rows;
  int64_t *receive_counts;  /* [ranks]: becomes how many rows came from each rank */
  int64_t *receive_offsets; /* [ranks]: where they begin in `out`; given, or with `packed` a result */
} ditron_all_to_all_v_operands_t;

/* Allocates on all ranks. Collective where ranks are processes. All ranks on one node. */
DITRON_API ditron_status_t ditron_all_to_all_v_create(ditron_context_h context,
                                                      const ditron_all_to_all_v_options_t *options,
                                                      ditron_all_to_all_v_h *exchange);
DITRON_API void ditron_all_to_all_v_destroy(ditron_all_to_all_v_h exchange);
/* As ditron_collective_prepare; once, for all counts. */
DITRON_API ditron_status_t ditron_all_to_all_v_prepare(ditron_all_to_all_v_h exchange);
/* Enqueues one call on the stream's rank. Every rank makes the same sequence of calls, on one stream after the other. It may be captured, and
 * replayed with whatever counts are in memory then. A part whose count is not in 0 to max_rows, or that does not lie in `in` or in `out`,
 * is left out; the rest of the call is made, and ditron_all_to_all_v_check tells it. */
DITRON_API ditron_status_t ditron_all_to_all_v_enqueue(ditron_all_to_all_v_h exchange, ditron_stream_h stream,
                                                       const ditron_all_to_all_v_operands_t *operands);
/* Waits for the stream. DITRON_INVALID_ARGUMENT for the first problem with the sizes of its rank's calls since the last check. */
DITRON_API ditron_status_t ditron_all_to_all_v_check(ditron_all_to_all_v_h exchange, ditron_stream_h stream);

/* Expert parallelism: tokens to the ranks of their experts (dispatch), and the experts' results back (combine). Rank r has the experts
 * [r * experts / ranks, (r + 1) * experts / ranks). Where tokens go stands on the device, and is never read by the host. */
typedef struct ditron_expert_parallel_options {
  size_t struct_size;
  ditron_dtype_t dtype; /* Of tokens and results: bf16, fp16, fp32. Zero (bool) means bf16. */
  int64_t hidden;       /* Elements of a row. */
  uint32_t experts;     /* Of all ranks; a multiple of their number. */
  uint32_t top_k;       /* Slots of a token, each the choice of one expert; 0 means 1. */
  int64_t max_tokens;   /* Of a rank in a call; sizes the buffers. */
  uint32_t fp8;         /* 1: rows travel and arrive as fp8 e4m3 with a scale for each 128 elements. */
  int64_t capacity;     /* Rows from one rank for one expert, at most; 0: max_tokens. The slots beyond are dropped. */
  int64_t max_rows;     /* Rows that a rank keeps of a call, at most; 0: all that can come. The rows beyond are dropped. */
  uint32_t concurrent_calls; /* Operators that may run at once on a GPU; 0 means 1. */
} ditron_expert_parallel_options_t;

/* What of a call is enqueued: all of it as one launch, or its sending now and its receiving later. */
typedef enum ditron_call_part {
  DITRON_CALL_WHOLE = 0,
  DITRON_CALL_SEND = 1,
  DITRON_CALL_RECEIVE = 2
} ditron_call_part_t;

/* Memory of one rank, at any multiple of an element. The sending takes x, ids, weights, handle, the receiving the others and handle. */
typedef struct ditron_dispatch_operands {
  size_t struct_size;
  const void *x;        /* [tokens, hidden] */
  int64_t tokens;       /* 0 to max_tokens; any on each rank. */
  const int32_t *ids;   /* [tokens, top_k]; a slot whose id is none of [0, experts), such as -1, has no expert. */
  const float *weights; /* [tokens, top_k]; null: ones */
  void *rows;           /* Result [max_rows, hidden] of dtype or fp8: by expert, then source, then slot. */
  float *scales;        /* Result [max_rows, ceil(hidden / 128)]; null without fp8 */
  int32_t *offsets;     /* Result [experts / ranks + 1]: where each expert's rows begin. */
  int32_t *handle;      /* Result [ditron_expert_parallel_handle_elements()], for the combine of these rows. */
} ditron_dispatch_operands_t;

/* The sending takes rows and handle, the receiving out, tokens and handle. */
typedef struct ditron_combine_operands {
  size_t struct_size;
  const void *rows; /* [max_rows, hidden] of dtype: of each row of dispatch its result */
  void *out; /* Result [tokens, hidden]: the sum of each token's slots in their order, times their weights, in fp32 */
  int64_t tokens; /* As dispatched. */
  const int32_t *handle;
} ditron_combine_operands_t;

/* Allocates on all ranks. Collective where ranks are processes. By few tokens (ops/expert-parallel.md) also on several nodes. */
DITRON_API ditron_status_t ditron_expert_parallel_create(ditron_context_h context,
                                                         const ditron_expert_parallel_options_t *options,
                                                         ditron_expert_parallel_h *experts);
DITRON_API void ditron_expert_parallel_destroy(ditron_expert_parallel_h experts);
/* Rows that the results of dispatch must have room for; 0 for null. */
DITRON_API int64_t ditron_expert_parallel_max_rows(ditron_expert_parallel_h experts);
/* int32 elements of a handle; 0 for null. */
DITRON_API int64_t ditron_expert_parallel_handle_elements(ditron_expert_parallel_h experts);
/* As ditron_collective_prepare; once, for all numbers of tokens. `parts`: 1 to enqueue sending and receiving apart, too. */
DITRON_API ditron_status_t ditron_expert_parallel_prepare(ditron_expert_parallel_h experts, uint32_t parts);
/* Enqueue one call, or a part of one, on the stream's rank. Every rank makes the same sequence of calls, on one stream after the other; each
 * DITRON_CALL_SEND is followed by its DITRON_CALL_RECEIVE before the next of its kind. They may be captured, and replayed with whatever ids
 * are in memory then. What is dropped adds nothing, and ditron_expert_parallel_check tells it. */
DITRON_API ditron_status_t ditron_expert_parallel_dispatch(ditron_expert_parallel_h experts, ditron_stream_h stream,
                                                           const ditron_dispatch_operands_t *operands,
                                                           ditron_call_part_t part);
DITRON_API ditron_status_t ditron_expert_parallel_combine(ditron_expert_parallel_h experts, ditron_stream_h stream,
                                                          const ditron_combine_operands_t *operands,
                                                          ditron_call_part_t part);
/* Waits for the stream. DITRON_INVALID_ARGUMENT for the first slots or rows that were dropped in its rank's calls since the last check. */
DITRON_API ditron_status_t ditron_expert_parallel_check(ditron_expert_parallel_h experts, ditron_stream_h stream);

/* Mixtures of experts. A slot is one choice of one token: its j-th expert. Where tokens go stands on the device, and is never read by the host; calls
 * may be captured, and replayed with other tokens. Operands are dense, at multiples of 16 bytes. ops/moe.md has the mathematics. */
typedef enum ditron_router_score {
  DITRON_SCORE_SOFTMAX = 0,
  DITRON_SCORE_SIGMOID = 1
} ditron_router_score_t;

typedef struct ditron_routing_options {
  size_t struct_size;
  uint32_t experts;            /* 1 to 1024 */
  uint32_t top_k;              /* Slots of a token; 0 means 1. */
  int64_t max_tokens;          /* Of a call. */
  ditron_router_score_t score; /* How logits become scores. */
  uint32_t not_normalized;     /* 0: the weights of a token sum up to `scale`; 1: they are its scores times `scale`. */
  double scale;                /* 0: 1 */
  int64_t hidden;              /* Elements of the rows that ditron_routing_sum adds; 0: it is not called. */
  ditron_dtype_t dtype;        /* Of those rows: bf16, fp16, fp32. Zero (bool) means bf16. */
} ditron_routing_options_t;

/* The rows of experts on each rank by itself: what is before and behind grouped products. Allocates on all ranks of this process. */
DITRON_API ditron_status_t ditron_routing_create(ditron_context_h context, const ditron_routing_options_t *options,
                                                 ditron_routing_h *routing);
DITRON_API void ditron_routing_destroy(ditron_routing_h routing);
/* Compiles and loads what calls with so many tokens need on all ranks of this process. What was not prepared is prepared when it is called, which
 * a capture refuses. */
DITRON_API ditron_status_t ditron_routing_prepare(ditron_routing_h routing, int64_t tokens);
/* ids [tokens, top_k], weights [tokens, top_k]: the experts with the highest scores of logits [tokens, experts], best first, the lower number
 * first among equals. bias [experts] counts for the choice and not for the weights; null: none. */
DITRON_API ditron_status_t ditron_routing_choose(ditron_routing_h routing, ditron_stream_h stream, const float *logits,
                                                 const float *bias, int32_t *ids, float *weights, int64_t tokens);
/* Sorts the slots of ids [tokens, top_k] by expert, stably: offsets [experts + 1], where each expert's rows begin; slot_of_row [tokens * top_k];
 * row_of_slot [tokens, top_k]. A slot whose id is none of [0, experts) has no row, and -1 for it. */
DITRON_API ditron_status_t ditron_routing_sort(ditron_routing_h routing, ditron_stream_h stream, const int32_t *ids,
                                               int32_t *offsets, int32_t *slot_of_row, int32_t *row_of_slot,
                                               int64_t tokens);
/* out [tokens, hidden]: of each token the sum of weights [tokens, top_k] (null: ones) times its rows [.., hidden], in fp32, in the order of slots. */
DITRON_API ditron_status_t ditron_routing_sum(ditron_routing_h routing, ditron_stream_h stream, const void *rows,
                                              const int32_t *row_of_slot, const float *weights, void *out,
                                              int64_t tokens);

/* C[r] = activation(A[r] * B[e]) for offsets[e] <= r < offsets[e + 1], in fp32, on each rank by itself. */
typedef struct ditron_grouped_gemm_options {
  size_t struct_size;
  int64_t max_rows; /* Of all experts together, at most. */
  uint32_t experts;
  int64_t n, k;                   /* Columns and depth of each expert's weights. */
  ditron_dtype_t dtype;           /* Of A and B: bf16, fp16, fp32; fp8 e4m3 with block_scales. Zero (bool) means bf16. */
  ditron_dtype_t result_dtype;    /* Of C: bf16, fp16, fp32. Zero (bool): that of A, of fp8 bf16. */
  uint32_t weights_plain;         /* 0: B is [experts, n, k]; 1: [experts, k, n]. */
  ditron_activation_t activation; /* As of an operator; swiglu: C has n / 2 columns. */
  uint32_t slots;                 /* Slots of a token: row r of A is row slot_of_row[r] / slots. 0: row r itself. */
  uint32_t block_scales;          /* 1: A has fp32 scales of 1 x 128 elements, B of 128 x 128. */
} ditron_grouped_gemm_options_t;

typedef struct ditron_grouped_gemm_operands {
  size_t struct_size;
  const void *a;              /* [max_rows, k], or [tokens, k] with slots */
  const void *b;              /* [experts, n, k] or [experts, k, n] */
  void *c;                    /* Result [max_rows, n or n / 2]; rows beyond the last are not touched. */
  const int32_t *offsets;     /* [experts + 1]; the last is at most max_rows. */
  const int32_t *slot_of_row; /* With slots. */
  const float *a_scale;       /* With block_scales: [rows or tokens, ceil(k / 128)] */
  const float *b_scale;       /* With block_scales: [experts, ceil(n / 128), ceil(k / 128)] */
} ditron_grouped_gemm_operands_t;

DITRON_API ditron_status_t ditron_grouped_gemm_create(ditron_context_h context,
                                                      const ditron_grouped_gemm_options_t *options,
                                                      ditron_grouped_gemm_h *product);
DITRON_API void ditron_grouped_gemm_destroy(ditron_grouped_gemm_h product);
/* Once, for any numbers of rows. */
DITRON_API ditron_status_t ditron_grouped_gemm_prepare(ditron_grouped_gemm_h product);
/* On the stream's rank; a rank's calls are made on one stream after the other. */
DITRON_API ditron_status_t ditron_grouped_gemm_enqueue(ditron_grouped_gemm_h product, ditron_stream_h stream,
                                                       const ditron_grouped_gemm_operands_t *operands);

/* A layer's weights on one rank, which stay where they are as long as the layer. dtype: the layer's. */
typedef struct ditron_moe_weights {
  size_t struct_size;
  const void *router; /* [experts, hidden], the same on all ranks */
  const float *bias;  /* [experts], for the choice only; null: none */
  /* Of each inner column the gate, then what it lets through. Tensor parallel: [experts, 2 * inner / ranks, hidden]; expert parallel: of the
   * rank's experts [experts / ranks, 2 * inner, hidden]. */
  const void *up;
  const void *down; /* [experts, hidden, inner / ranks]; [experts / ranks, hidden, inner] */
  /* Expert parallel with fp8: [experts / ranks, ceil(2 * inner / 128), ceil(hidden / 128)], [experts / ranks, ceil(hidden / 128), ceil(inner / 128)] */
  const float *up_scale, *down_scale;
  /* Expert parallel with shared experts: [2 * shared_inner, hidden], [hidden, shared_inner], the same on all ranks */
  const void *shared_up, *shared_down;
} ditron_moe_weights_t;

/* Each rank has a slice of the inner columns of every expert. */
typedef struct ditron_tensor_parallel_moe_options {
  size_t struct_size;
  ditron_dtype_t dtype; /* bf16, fp16, fp32. Zero (bool) means bf16. */
  int64_t hidden;
  int64_t inner; /* Of an expert on all ranks together; a multiple of the ranks. */
  uint32_t experts;
  uint32_t top_k; /* 0 means 1. */
  ditron_router_score_t score;
  uint32_t not_normalized; /* As of ditron_routing_options_t, like the next. */
  double scale;
  int64_t max_tokens_per_rank; /* Sizes the workspaces; where tokens are replicated, of all. */
  uint32_t replicated;         /* 0: each rank has tokens of its own; 1: every rank has all of them. */
  uint32_t unfused;            /* 1: each step on all ranks before the next, as always between nodes. */
  uint32_t training;           /* 1: ditron_tensor_parallel_moe_backward can be called. */
  ditron_dtype_t gradient_dtype; /* Of the weights' gradients: bf16, fp16, fp32. Zero (bool) means fp32. */
  uint32_t gradients_set;        /* 0: they are added to what is there; 1: they take its place. */
} ditron_tensor_parallel_moe_options_t;

/* `weights`: [weight_count], one for each rank; those of ranks of other processes may be null. Collective where ranks are processes. */
DITRON_API ditron_status_t ditron_tensor_parallel_moe_create(ditron_context_h context,
                                                             const ditron_tensor_parallel_moe_options_t *options,
                                                             const ditron_moe_weights_t *const *weights, uint32_t weight_count,
                                                             ditron_tensor_parallel_moe_h *layer);
DITRON_API void ditron_tensor_parallel_moe_destroy(ditron_tensor_parallel_moe_h layer);
/* Compiles and loads what calls with so many tokens of each rank need on all ranks of this process; before the first call anywhere. */
DITRON_API ditron_status_t ditron_tensor_parallel_moe_prepare(ditron_tensor_parallel_moe_h layer,
                                                              int64_t tokens_per_rank);
/* y = the layer of x, both [tokens_per_rank, hidden]. Every rank makes the same sequence of calls with the same number. */
DITRON_API ditron_status_t ditron_tensor_parallel_moe_enqueue(ditron_tensor_parallel_moe_h layer,
                                                              ditron_stream_h stream, const void *x, void *y,
                                                              int64_t tokens_per_rank);

/* Memory of one rank for a layer's backward. */
typedef struct ditron_moe_gradients {
  size_t struct_size;
  const void *x;  /* [tokens, hidden], as it was in the call */
  const void *dy; /* [tokens, hidden]: the gradient of y */
  void *dx;       /* Result [tokens, hidden]; may be dy. */
  /* Results of the gradients' type, shaped like the weights. Those of weights that all ranks have (router, shared experts) are of the rank's own
   * tokens: adding them up is the caller's. */
  void *router, *up, *down;
  void *shared_up, *shared_down; /* With shared experts. */
} ditron_moe_gradients_t;
/* The backward of a call with these tokens; of a layer for training. Every rank makes the same sequence of calls with the same number. What
 * ditron_tensor_parallel_moe_prepare prepares. */
DITRON_API ditron_status_t ditron_tensor_parallel_moe_backward(ditron_tensor_parallel_moe_h layer,
                                                               ditron_stream_h stream,
                                                               const ditron_moe_gradients_t *gradients,
                                                               int64_t tokens_per_rank);

/* Each expert is on one rank, as of ditron_expert_parallel_options_t. */
typedef struct ditron_expert_parallel_moe_options {
  size_t struct_size;
  ditron_dtype_t dtype; /* bf16, fp16, fp32. Zero (bool) means bf16. */
  int64_t hidden;
  int64_t inner;        /* Of an expert. */
  int64_t shared_inner; /* Of all shared experts together; 0: there are none. */
  uint32_t experts;     /* Of all ranks; a multiple of their number. */
  uint32_t top_k;       /* 0 means 1. */
  ditron_router_score_t score;
  uint32_t not_normalized; /* As of ditron_routing_options_t, like the next. */
  double scale;
  int64_t max_tokens; /* Of a rank in a call; sizes the workspaces. */
  /* 1: rows travel as fp8 e4m3 with block scales, and weights of experts are fp8 e4m3 with block scales. */
  uint32_t fp8;
  int64_t capacity, max_rows; /* As of ditron_expert_parallel_options_t, like the next. */
  uint32_t concurrent_calls;
  uint32_t training; /* 1: ditron_expert_parallel_moe_backward can be called; not with fp8. */
  ditron_dtype_t gradient_dtype; /* As of ditron_tensor_parallel_moe_options_t, like the next. */
  uint32_t gradients_set;
} ditron_expert_parallel_moe_options_t;

/* As ditron_tensor_parallel_moe_create. */
DITRON_API ditron_status_t ditron_expert_parallel_moe_create(ditron_context_h context,
                                                             const ditron_expert_parallel_moe_options_t *options,
                                                             const ditron_moe_weights_t *const *weights, uint32_t weight_count,
                                                             ditron_expert_parallel_moe_h *layer);
DITRON_API void ditron_expert_parallel_moe_destroy(ditron_expert_parallel_moe_h layer);
/* Compiles and loads what calls with so many own tokens need, 0 to max_tokens, on all ranks of this process; before the first call anywhere. */
DITRON_API ditron_status_t ditron_expert_parallel_moe_prepare(ditron_expert_parallel_moe_h layer, int64_t tokens);
/* y = the layer of x, both [tokens, hidden]; any number of tokens on each rank. Every rank makes the same sequence of calls, on one stream after the
 * other. What an expert had no room for adds nothing, and ditron_expert_parallel_moe_check tells it. */
DITRON_API ditron_status_t ditron_expert_parallel_moe_enqueue(ditron_expert_parallel_moe_h layer,
                                                              ditron_stream_h stream, const void *x, void *y,
                                                              int64_t tokens);
/* The backward of the layer's last call on the rank; of a layer for training. Every rank makes the same sequence of calls. */
DITRON_API ditron_status_t ditron_expert_parallel_moe_backward(ditron_expert_parallel_moe_h layer,
                                                               ditron_stream_h stream,
                                                               const ditron_moe_gradients_t *gradients, int64_t tokens);
/* As ditron_expert_parallel_check. */
DITRON_API ditron_status_t ditron_expert_parallel_moe_check(ditron_expert_parallel_moe_h layer, ditron_stream_h stream);

/* Attention on each rank by itself: softmax(Q K^T * scale) V, forward and backward. Query i of a batch stands at the key i + keys - queries, so that the
 * last query is at the last key. ops/attention.md has the mathematics. Operands are contiguous. */
typedef struct ditron_attention_options {
  size_t struct_size;
  ditron_dtype_t dtype; /* Of Q, K, V: bf16, fp16; forward fp8 e4m3, whose result is bf16. Zero (bool) means bf16. */
  int64_t heads;
  int64_t kv_heads;  /* Divides heads; 0: as many as heads. */
  int64_t head_dim;  /* Of Q and K: 16, 32, 64, 96, 128, 192 or 256. */
  int64_t value_dim; /* Of V and the result; 0: head_dim. */
  double scale;      /* 0: 1 / sqrt(head_dim) */
  uint32_t causal;   /* 1: a query sees the keys up to its own place. */
  uint32_t windowed; /* 1: it sees none that is more than `window` in front of it. */
  int64_t window;
  double soft_cap;            /* A score s becomes soft_cap * tanh(s / soft_cap); 0: it does not. */
  uint32_t rows_first;        /* 0: [batch, heads, rows, dim]; 1: [batch, rows, heads, dim], of packed rows [rows, heads, dim]. */
  int64_t page_size;          /* Rows of a page of K and V, a multiple of 16; 0: no pages. */
  uint32_t values_transposed; /* 1: V is [batch, kv_heads, value_dim, keys], as Hopper's tensor cores want fp8. */
} ditron_attention_options_t;

/* Of one call. Where operands say on the device how many rows a batch has, `queries` and `keys` are the most that one can have. */
typedef struct ditron_attention_shape {
  size_t struct_size;
  int64_t batch, queries, keys;
  int64_t packed_queries; /* Rows of Q and the result in memory, with query_offsets; 0: not packed. With rows_first. */
  int64_t packed_keys;    /* Rows of K and V in memory, with key_offsets; 0: not packed. With rows_first. */
  int64_t pages;          /* With page_size: of K and V. */
} ditron_attention_shape_t;

typedef struct ditron_attention_operands {
  size_t struct_size;
  const void *q, *k, *v;
  void *out;                    /* Result, like q, rows of value_dim. */
  float *lse;                   /* Result [batch, heads, queries], of packed rows [heads, query_offsets[batch]]: log-sum-exp; null: not wanted. */
  const float *sinks;           /* [heads]: a score that each row has besides; null: none. */
  const float *slopes;          /* [heads]: what a score loses for each key of distance (ALiBi); null: nothing. */
  const int32_t *query_offsets; /* [batch + 1]: where each batch's packed rows begin, at last their number. */
  const int32_t *key_offsets;   /* [batch + 1] */
  const int32_t *key_lengths;   /* [batch]: how many of `keys` a batch has; null: all. */
  const int32_t *block_table;   /* With page_size: [batch, ceil(keys / page_size)], pages by batch. */
} ditron_attention_operands_t;

/* Of bf16 and fp16, heads of up to 128 elements, V as wide as K, no pages. */
typedef struct ditron_attention_gradients {
  size_t struct_size;
  const void *q, *k, *v, *out;
  const float *lse;     /* As the forward wrote it. */
  const void *gradient; /* Of out. */
  void *dq, *dk, *dv;   /* Results. */
  const float *slopes;  /* As in the forward, like the next two. */
  const int32_t *query_offsets, *key_offsets;
  const float *sinks; /* With dsinks; null: their gradient is not wanted. */
  float *dsinks;      /* Result [heads]. */
} ditron_attention_gradients_t;

DITRON_API ditron_status_t ditron_attention_create(ditron_context_h context, const ditron_attention_options_t *options,
                                                   ditron_attention_h *attention);
DITRON_API void ditron_attention_destroy(ditron_attention_h attention);
/* Compiles and loads what calls of this shape need on all ranks of this process. Of the operands it counts which are given, and which are at
 * multiples of 16 bytes. What was not prepared is prepared when it is called, which a capture refuses. Each shape is kept: round sizes up. */
DITRON_API ditron_status_t ditron_attention_prepare(ditron_attention_h attention, const ditron_attention_shape_t *shape,
                                                    const ditron_attention_operands_t *operands);
/* One launch on the stream's rank; it may be captured. A rank's calls are made on one stream after the other. */
DITRON_API ditron_status_t ditron_attention_enqueue(ditron_attention_h attention, ditron_stream_h stream,
                                                    const ditron_attention_shape_t *shape,
                                                    const ditron_attention_operands_t *operands);
/* The same of the backward, which gives the same bits every time. */
DITRON_API ditron_status_t ditron_attention_prepare_backward(ditron_attention_h attention,
                                                             const ditron_attention_shape_t *shape,
                                                             const ditron_attention_gradients_t *operands);
DITRON_API ditron_status_t ditron_attention_backward(ditron_attention_h attention, ditron_stream_h stream,
                                                     const ditron_attention_shape_t *shape,
                                                     const ditron_attention_gradients_t *operands);

/* Attention of few queries over many keys, as a decoder has it for each token. ops/attention_decode.md. */
typedef struct ditron_attention_decode_options {
  size_t struct_size;
  ditron_dtype_t dtype; /* bf16, fp16. Zero (bool) means bf16. */
  int64_t max_batch;    /* Sequences of a call, 1 to 4096. */
  int64_t heads;
  int64_t kv_heads; /* Divides heads; 0: as many as heads. */
  int64_t queries;  /* Of a sequence; 0: 1. */
  int64_t head_dim; /* Powers of two and sums of two of them, each from 16: 16 to 256, like 64, 96, 128, 192. */
  double scale;     /* 0: 1 / sqrt(head_dim) */
  /* Where keys lie, of K and V alike; strides in elements. Key i of a sequence is row i % page_size of page table[i / page_size]; page_size 0:
   * sequence s has page s, and there is no table. */
  int64_t page_size, page_stride, row_stride, head_stride;
  int64_t table_stride; /* Entries of the table from sequence to sequence. */
  /* 0: each rank by itself. 1: the keys of a sequence are spread over the ranks, all of which have all queries and get the whole result, the same
   * bits; one launch on every rank, all ranks on one node. */
  uint32_t over_ranks;
  uint32_t concurrent_calls; /* With over_ranks: as of ditron_operator_options_t. */
} ditron_attention_decode_options_t;

typedef struct ditron_attention_decode_operands {
  size_t struct_size;
  const void *q; /* [batch, heads, queries, head_dim] */
  const void *k, *v;
  void *out;              /* Result, like q. */
  float *lse;             /* Result [batch, heads, queries]; null: not wanted. */
  const int32_t *lengths; /* [batch, queries]: a query sees the first so many keys; over ranks: of this rank's keys. */
  const int32_t *table;   /* With page_size. */
} ditron_attention_decode_operands_t;

/* Allocates on all ranks. With over_ranks collective where ranks are processes. */
DITRON_API ditron_status_t ditron_attention_decode_create(ditron_context_h context,
                                                          const ditron_attention_decode_options_t *options,
                                                          ditron_attention_decode_h *decode);
DITRON_API void ditron_attention_decode_destroy(ditron_attention_decode_h decode);
/* Compiles and loads what calls with so many sequences need on all ranks of this process, with lse or without, of operands at multiples of 16
 * bytes. What was not prepared is prepared when it is called, which a capture refuses. */
DITRON_API ditron_status_t ditron_attention_decode_prepare(ditron_attention_decode_h decode, int64_t batch,
                                                           uint32_t with_lse);
/* One launch on the stream's rank, which reads lengths and tables when it runs; it may be captured. A rank's calls follow each other. With
 * over_ranks every rank makes the same sequence of calls. */
DITRON_API ditron_status_t ditron_attention_decode_enqueue(ditron_attention_decode_h decode, ditron_stream_h stream,
                                                           const ditron_attention_decode_operands_t *operands,
                                                           int64_t batch);

/* Attention whose tokens are dealt out to the ranks (context parallelism), forward and backward: a rank's queries see the keys of all ranks, which come while
 * it computes. ops/sequence_parallel.md. The tokens of a sequence are cut into sections of ceil(tokens / sections) tokens, the last ones shorter or empty.
 * Without `causal` rank r has section r of as many as ranks; with it it has sections r and 2 * ranks - 1 - r of twice as many, one behind the other, so that
 * all ranks have as much to do (ditron_ring_attention_section). */
typedef struct ditron_ring_attention_options {
  size_t struct_size;
  ditron_dtype_t dtype; /* bf16, fp16. Zero (bool) means bf16. */
  int64_t batch;        /* 0: 1 */
  int64_t heads;
  int64_t kv_heads;         /* Divides heads; 0: as many as heads. */
  int64_t head_dim;         /* 16, 32, 64, 128 or 256; with `backward` up to 128. */
  double scale;             /* 0: 1 / sqrt(head_dim) */
  uint32_t causal;          /* 1: a query sees the keys up to its own token. */
  int64_t max_tokens;       /* Of a sequence, on all ranks together, in any call. */
  int64_t packed_sequences; /* Tokens are those of so many sequences one behind the other that do not see each other; batch is 1. 0: of one. */
  uint32_t goes_round;      /* 1: keys go round the ranks even where memory for all of them is no more than that takes. */
  uint32_t backward;        /* 1: calls have gradients, too. */
} ditron_ring_attention_options_t;

typedef struct ditron_ring_attention_operands {
  size_t struct_size;
  const void *q;          /* [batch, heads, own tokens, head_dim]; multiples of 16 bytes, as all of them */
  const void *k, *v;      /* [batch, kv_heads, own tokens, head_dim] */
  void *out;              /* Result, like q. */
  float *lse;             /* Result [batch, heads, own tokens]: log-sum-exp, which the backward reads; null: not wanted. */
  /* With packed_sequences, the same on all ranks: where each sequence begins among all tokens, at last their number; ascending
   * from 0 to at most those of the call, which nobody checks. */
  const int32_t *offsets;
} ditron_ring_attention_operands_t;

typedef struct ditron_ring_attention_gradients {
  size_t struct_size;
  const void *q, *k, *v, *out; /* As of the forward call. */
  const float *lse;
  const void *gradient; /* Of out. */
  void *dq, *dk, *dv;   /* Results. */
  const int32_t *offsets;
} ditron_ring_attention_gradients_t;

/* Allocates on all ranks. Collective where ranks are processes. */
DITRON_API ditron_status_t ditron_ring_attention_create(ditron_context_h context,
                                                        const ditron_ring_attention_options_t *options,
                                                        ditron_ring_attention_h *attention);
DITRON_API void ditron_ring_attention_destroy(ditron_ring_attention_h attention);
/* Which tokens of a sequence of so many a rank has: of part 0, or with `causal` of part 1, behind it, the first one and how many. */
DITRON_API ditron_status_t ditron_ring_attention_section(ditron_ring_attention_h attention, uint32_t rank,
                                                         uint32_t part, int64_t tokens, int64_t *first, int64_t *count);
/* Compiles and loads what calls with so many tokens in a sequence (on all ranks together) need on all ranks of this process, with lse or without. Every
 * rank prepares the same calls in the same order. What was not prepared is prepared when it is called, which a capture refuses. */
DITRON_API ditron_status_t ditron_ring_attention_prepare(ditron_ring_attention_h attention, int64_t tokens,
                                                         uint32_t with_lse);
/* Enqueued on the stream's rank; it may be captured. Every rank makes the same sequence of calls, each behind the one before. A rank without tokens makes it
 * too; its operands are not looked at. */
DITRON_API ditron_status_t ditron_ring_attention_enqueue(ditron_ring_attention_h attention, ditron_stream_h stream,
                                                         const ditron_ring_attention_operands_t *operands,
                                                         int64_t tokens);
/* The same of the backward, which gives the same bits every time. */
DITRON_API ditron_status_t ditron_ring_attention_prepare_backward(ditron_ring_attention_h attention, int64_t tokens);
DITRON_API ditron_status_t ditron_ring_attention_backward(ditron_ring_attention_h attention, ditron_stream_h stream,
                                                          const ditron_ring_attention_gradients_t *gradients,
                                                          int64_t tokens);

/* A layer of attention whose heads are dealt out to the ranks, for prefill and decoding with a cache of keys. ops/tensor_parallel_attention.md.
 *   q, k, v = x Wqkv^T (+ bias), heads of q and k normed and rotated;  k, v to the cache;  y = attention(q, cache) Wout^T, causal
 * Rank r has the heads of Q from r * heads / ranks on, and of K and V from r * kv_heads / ranks on (rounded down) as many as kv_heads / ranks, at
 * least one. */
typedef struct ditron_tensor_parallel_attention_options {
  size_t struct_size;
  ditron_dtype_t dtype; /* bf16, fp16. Zero (bool) means bf16. */
  int64_t hidden;
  int64_t heads;    /* Of all ranks, whose number divides them. */
  int64_t kv_heads; /* Divides heads; the number of ranks divides it, or is a multiple of it: then ranks have the same head. 0: heads */
  int64_t head_dim; /* 16, 32, 64, 128 or 256. */
  double scale;     /* 0: 1 / sqrt(head_dim) */
  int64_t rotary_dim;          /* First columns of a head that its position turns; 0: none. */
  uint32_t rotary_interleaved; /* 0: pairs are columns j and j + rotary_dim / 2; 1: 2j and 2j + 1. */
  double norm_epsilon;         /* Of RMSNorm of the heads of Q and K; 0: they are not normed. */
  uint32_t qkv_bias;           /* 1: there is one. */
  uint32_t dealt; /* 0: every rank has all tokens; 1: rank r has x and y of those from r * ceil(tokens / ranks) on, at most that many. */
  int64_t max_tokens; /* Of a prefill, on all ranks together. */
  int64_t max_batch;  /* Sequences of a call, 1 to 4096. */
  int64_t max_keys;   /* Of a sequence. */
  int64_t page_size;  /* Keys of a page of the cache, a multiple of 16; 0: no pages. */
  int64_t pages;      /* With page_size: of the cache. */
  uint32_t unfused;   /* 1: each step on all ranks before the next. */
  uint32_t concurrent_calls; /* As of ditron_operator_options_t. */
} ditron_tensor_parallel_attention_options_t;

/* Of one rank, of the layer's type; they stay where they are as long as the layer. */
typedef struct ditron_attention_weights {
  size_t struct_size;
  /* Tensor parallel: [own heads of Q, then of K, then of V, head_dim each; hidden]; sequence parallel: the same of rank 0, then of rank 1 and so on. */
  const void *qkv;
  const void *out; /* Tensor parallel: [hidden, own heads of Q * head_dim]; sequence parallel: [hidden, heads * head_dim]. */
  const void *qkv_bias;        /* With qkv_bias: one for each row of qkv. Tensor parallel only. */
  const void *q_norm, *k_norm; /* With norm_epsilon: [head_dim], the same on all ranks. */
  const float *rotary; /* With rotary_dim: [max_keys, rotary_dim]: for each position of each angle the cosine, then of each the sine. */
} ditron_attention_weights_t;

typedef struct ditron_tensor_parallel_attention_operands {
  size_t struct_size;
  const void *x; /* [tokens, hidden], or the rank's rows; null where it has none, like y */
  void *y;       /* Result, like x. */
  /* The cache: [pages, page_size, own kv heads, head_dim], without pages [max_batch, max_keys, own kv heads, head_dim]. Finite numbers also where no
   * key is yet: zeros at first. */
  void *keys, *values;
  const int32_t *lengths; /* [batch]: keys of each sequence with those of this call, its last ones. 0: the sequence is not there. */
  const int32_t *offsets; /* Prefill: [batch + 1]: where each sequence's tokens begin, at last their number. */
  const int32_t *table;   /* With page_size: [batch, ceil(max_keys / page_size)] */
} ditron_tensor_parallel_attention_operands_t;

/* `weights`: [weight_count], one for each rank; those of ranks of other processes may be null. Collective where ranks are processes. */
DITRON_API ditron_status_t ditron_tensor_parallel_attention_create(
    ditron_context_h context, const ditron_tensor_parallel_attention_options_t *options,
    const ditron_attention_weights_t *const *weights, uint32_t weight_count,
    ditron_tensor_parallel_attention_h *layer);
DITRON_API void ditron_tensor_parallel_attention_destroy(ditron_tensor_parallel_attention_h layer);
/* Elements of a rank's cache of K, and of that of V; 0 for null. */
DITRON_API int64_t ditron_tensor_parallel_attention_cache_elements(ditron_tensor_parallel_attention_h layer);
/* Compile and load what calls need on all ranks of this process, of so many tokens and sequences, none of which has more than `longest` tokens; before
 * the first call anywhere. What was not prepared is prepared when it is called, which a capture refuses. */
DITRON_API ditron_status_t ditron_tensor_parallel_attention_prepare_prefill(ditron_tensor_parallel_attention_h layer,
                                                                            int64_t tokens, int64_t batch,
                                                                            int64_t longest);
DITRON_API ditron_status_t ditron_tensor_parallel_attention_prepare_decode(ditron_tensor_parallel_attention_h layer,
                                                                           int64_t batch);
/* Tokens of several sequences, one sequence behind the other, perhaps behind keys that are there. Rows of y behind the last offset are any numbers.
 * Every rank makes the same sequence of calls, on one stream after the other; they may be captured, and are replayed with what is in memory then. */
DITRON_API ditron_status_t ditron_tensor_parallel_attention_prefill(
    ditron_tensor_parallel_attention_h layer, ditron_stream_h stream,
    const ditron_tensor_parallel_attention_operands_t *operands, int64_t tokens, int64_t batch, int64_t longest);
/* The same of one token of each sequence. */
DITRON_API ditron_status_t ditron_tensor_parallel_attention_decode(
    ditron_tensor_parallel_attention_h layer, ditron_stream_h stream,
    const ditron_tensor_parallel_attention_operands_t *operands, int64_t batch);

/* A layer of attention whose tokens are dealt out to the ranks: rank r has those of a sequence from r * ceil(tokens / ranks) on, at most that many. Weights are
 * whole on every rank; for attention the heads are dealt out instead. ops/sequence_parallel.md. With a cache steps of decoding follow, in which the keys of
 * a sequence stay spread over the ranks. All ranks on one node. */
typedef struct ditron_sequence_parallel_attention_options {
  size_t struct_size;
  ditron_dtype_t dtype; /* bf16, fp16. Zero (bool) means bf16. */
  int64_t batch;        /* Sequences of a prefill; 0: 1. */
  int64_t hidden;
  int64_t heads, kv_heads; /* The number of ranks divides both; kv_heads divides heads; 0: heads. */
  int64_t head_dim;        /* 16, 32, 64, 128 or 256. */
  uint32_t not_causal;     /* 1: a token sees those behind it, too. */
  double scale;            /* As of ditron_tensor_parallel_attention_options_t, like the next four. */
  int64_t rotary_dim;
  uint32_t rotary_interleaved;
  double norm_epsilon;
  int64_t max_tokens;  /* Of a sequence of a prefill, on all ranks together. */
  uint32_t chunks;     /* Signals for the tokens that a rank gives another of a sequence, behind attention; 0: the library's choice. */
  int64_t cache_batch; /* Sequences of a step of decoding; 0: there is no cache, and no decoding. */
  int64_t cache_keys;  /* With cache_batch: of a sequence, on one rank. */
  int64_t page_size;   /* With cache_batch: keys of a page; 0: no pages. */
  int64_t pages;       /* With page_size: of a rank's cache. */
  uint32_t concurrent_calls; /* As of ditron_attention_decode_options_t. */
} ditron_sequence_parallel_attention_options_t;

typedef struct ditron_sequence_parallel_attention_operands {
  size_t struct_size;
  /* Prefill: [batch, the rank's tokens, hidden], null where it has none, like y; decode: [batch, hidden], the same on all ranks */
  const void *x;
  void *y;       /* Result, like x; of a step of decoding the same bits on all ranks. */
  /* The cache: [pages, page_size, kv_heads, head_dim], without pages [cache_batch, cache_keys, kv_heads, head_dim]. Null in a prefill that keeps no keys. */
  void *keys, *values;
  const int32_t *table; /* With page_size: [batch, ceil(cache_keys / page_size)] */
  /* Decode: [batch] each: the rank's keys of each sequence with the token's if it is dealt to it; where the token's key goes among them, -1 if another rank has
   * it; the token's position in its sequence. */
  const int32_t *lengths, *places, *positions;
} ditron_sequence_parallel_attention_operands_t;

/* `weights`: [weight_count], one for each rank; those of ranks of other processes may be null. Collective where ranks are processes. */
DITRON_API ditron_status_t ditron_sequence_parallel_attention_create(
    ditron_context_h context, const ditron_sequence_parallel_attention_options_t *options,
    const ditron_attention_weights_t *const *weights, uint32_t weight_count,
    ditron_sequence_parallel_attention_h *layer);
DITRON_API void ditron_sequence_parallel_attention_destroy(ditron_sequence_parallel_attention_h layer);
/* Elements of a rank's cache of K, and of that of V; 0 without one, and for null. */
DITRON_API int64_t ditron_sequence_parallel_attention_cache_elements(ditron_sequence_parallel_attention_h layer);
/* Compile and load what calls need on all ranks of this process, with so many tokens in a sequence, or so many sequences; before the first call anywhere. */
DITRON_API ditron_status_t ditron_sequence_parallel_attention_prepare_prefill(
    ditron_sequence_parallel_attention_h layer, int64_t tokens);
DITRON_API ditron_status_t ditron_sequence_parallel_attention_prepare_decode(ditron_sequence_parallel_attention_h layer,
                                                                             int64_t batch);
/* Whole sequences, of so many tokens on all ranks together, whose keys become the first ones of the cache where that is given. Every rank makes the same
 * sequence of calls, on one stream after the other; they may be captured. */
DITRON_API ditron_status_t ditron_sequence_parallel_attention_prefill(
    ditron_sequence_parallel_attention_h layer, ditron_stream_h stream,
    const ditron_sequence_parallel_attention_operands_t *operands, int64_t tokens);
/* The next token of each sequence. */
DITRON_API ditron_status_t ditron_sequence_parallel_attention_decode(
    ditron_sequence_parallel_attention_h layer, ditron_stream_h stream,
    const ditron_sequence_parallel_attention_operands_t *operands, int64_t batch);

/* One message of a group: to, or from, a rank. */
typedef struct ditron_message {
  uint32_t peer;
  void *data; /* Only read when it is sent. */
  int64_t elements; /* 0 or more, the same on both ranks. */
} ditron_message_t;

/* Allocates rings on all ranks, for messages of any size. Collective where ranks are processes. All ranks on one node. dtype: as of
 * ditron_collective_options_t. */
DITRON_API ditron_status_t ditron_send_receive_create(ditron_context_h context, ditron_dtype_t dtype,
                                                      ditron_send_receive_h *pairs);
DITRON_API void ditron_send_receive_destroy(ditron_send_receive_h pairs);
/* As ditron_collective_prepare; once, for all sizes. */
DITRON_API ditron_status_t ditron_send_receive_prepare(ditron_send_receive_h pairs);
/* Enqueues a group of messages on the stream's rank, which make progress together: one kernel, or as many as there are messages to or from
 * the same rank. Complete when the receivers have taken everything. The i-th message that a rank sends another is the i-th that that one
 * receives from it, over all calls. A rank's calls are made on one stream after the other. It may be captured. */
DITRON_API ditron_status_t ditron_send_receive_enqueue(ditron_send_receive_h pairs, ditron_stream_h stream,
                                                       const ditron_message_t *sends, uint32_t send_count,
                                                       const ditron_message_t *receives, uint32_t receive_count);
/* Waits for the stream. DITRON_INVALID_ARGUMENT for the first message since the last check that had another size than its receiver said;
 * nothing was stored for it. */
DITRON_API ditron_status_t ditron_send_receive_check(ditron_send_receive_h pairs, ditron_stream_h stream);

/* Of all ranks of a context, or of a group (ditron_context_group). Collective where ranks are processes. All ranks on one node. */
DITRON_API ditron_status_t ditron_barrier_create(ditron_context_h context, ditron_barrier_h *barrier);
DITRON_API void ditron_barrier_destroy(ditron_barrier_h barrier);
DITRON_API ditron_status_t ditron_barrier_prepare(ditron_barrier_h barrier);
/* What is enqueued on the stream behind it begins when all ranks' streams have come to theirs, and sees what they did before. One
 * kernel of one block; may be captured. */
DITRON_API ditron_status_t ditron_barrier_enqueue(ditron_barrier_h barrier, ditron_stream_h stream);

/*===- Run files ----------------------------------------------------------------------------------------------------===*/

/* Programs of several hosts as data: buffers, streams, events, graphs, kernels, allocation and free (docs/run-files.md). They make
 * their own ranks. Needs the compiler. */
typedef struct ditron_program_options {
  size_t struct_size;
  const char *target;        /* Null: the program's own, else "sim:sm_80". */
  uint32_t ranks;            /* 0: the program's own. */
  uint32_t multiprocessors;  /* Simulated: SMs of a rank; 0: the program's own, else 8. */
  uint64_t seed;             /* Simulated: other seeds, other interleavings. */
  uint64_t data_seed;        /* Of the numbers that rand: makes. */
  double time_limit_seconds; /* 0: none. */
  uint32_t no_bounds_check;  /* Simulated: 1 trusts the kernels' accesses. */
  uint32_t no_race_check;    /* Simulated: 1 does not look for data races. */
  ditron_message_fn print;   /* Receives what `print` steps have said when the program has ended, a text of several lines at a
                              * time; null: it goes to the standard output stream at once. */
  void *print_user;
  uint32_t ranks_per_node; /* Simulated: size of a node; 0: the program's own, else one node. */
} ditron_program_options_t;

/* Reads the run file and runs it to its end; `options` may be null. An error is one of the file, or of the running program: a
 * deadlock, a data race, a call that only some ranks make. Results that are not as `expect` steps say are none. */
DITRON_API ditron_status_t ditron_program_run_file(const char *path, const ditron_program_options_t *options, ditron_program_h *program);
/* The same of a text, which errors call `name`, "<program>" when it is null; kernel files are looked for in `folder`, null for the
 * current one. */
DITRON_API ditron_status_t ditron_program_run_text(const char *text, const char *name, const char *folder,
                                                   const ditron_program_options_t *options, ditron_program_h *program);
DITRON_API void ditron_program_destroy(ditron_program_h program);
DITRON_API uint32_t ditron_program_ranks(ditron_program_h program);
/* Results that were not as expected: how many, and the text about one; null from there on. */
DITRON_API uint32_t ditron_program_mismatch_count(ditron_program_h program);
DITRON_API const char *ditron_program_mismatch(ditron_program_h program, uint32_t index);
/* A buffer as the program left it. */
typedef struct ditron_program_array {
  size_t struct_size;
  ditron_dtype_t dtype;
  uint32_t dimensions;
  const int64_t *shape; /* [dimensions]; it and the data stay until the next call for the program. */
  const void *data;
  uint64_t bytes;
} ditron_program_array_t;
DITRON_API ditron_status_t ditron_program_get(ditron_program_h program, const char *buffer, uint32_t rank, ditron_program_array_t *array);

#ifdef __cplusplus
}
#endif
#endif /* DITRON_DITRON_H */
