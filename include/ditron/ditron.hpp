//===- ditron.hpp - The C++ interface of Ditron -----------------------------------------------------------------------===//
//
// C++17 over <ditron/ditron.h>, in this header only: whatever compiler and standard library a program uses, it meets the library
// through its C interface. What a function does, its units and its threads, stands in ditron.h; here are owners, errors as values,
// and arguments from what C++ has at hand.
//
//   ditron::Context::Options options;
//   options.target = "sim:sm_80";
//   ditron::Context context = ditron::Context::create(options).value(); // or ask ok() and status(); value() throws ditron::Error
//
// Errors are values: Status, and Expected<T>, which holds a T or a Status. value() of an Expected without a value throws; nothing
// else in this header does. Every class here owns one handle and can be moved, not copied.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_DITRON_HPP
#define DITRON_DITRON_HPP

#include <ditron/ditron.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace ditron {
inline namespace v0 {

/// A success, or an error with its kind and, where it has one, its place in a kernel's source.
class [[nodiscard]] Status {
public:
  Status() = default;
  /// What a function of the C interface returned; takes the thread's latest failure with it.
  static Status of(ditron_status_t code) {
    Status status;
    if (code == DITRON_OK)
      return status;
    ditron_error_t error;
    DITRON_INIT(error);
    ditron_last_error(&error);
    status.codeValue = code;
    status.messageValue = error.message ? error.message : "";
    status.fileValue = error.file ? error.file : "";
    status.lineValue = error.line;
    status.columnValue = error.column;
    return status;
  }

  bool ok() const { return codeValue == DITRON_OK; }
  ditron_status_t code() const { return codeValue; }
  const std::string &message() const { return messageValue; }
  /// Empty, and 0, when the error is about no place in a kernel's source.
  const std::string &file() const { return fileValue; }
  uint32_t line() const { return lineValue; }
  uint32_t column() const { return columnValue; }

private:
  ditron_status_t codeValue = DITRON_OK;
  std::string messageValue, fileValue;
  uint32_t lineValue = 0, columnValue = 0;
};

/// Thrown by Expected::value, for programs that use exceptions.
class Error : public std::runtime_error {
public:
  explicit Error(Status status) : std::runtime_error(status.message()), statusValue(std::move(status)) {}
  const Status &status() const { return statusValue; }

private:
  Status statusValue;
};

/// Either a T or the Status that says why there is none.
template <typename T> class [[nodiscard]] Expected {
public:
  Expected(T value) : storage(std::in_place_index<0>, std::move(value)) {}
  Expected(Status error) : storage(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return storage.index() == 0; }
  Status status() const { return ok() ? Status() : std::get<1>(storage); }
  T &value() & {
    check();
    return std::get<0>(storage);
  }
  T &&value() && {
    check();
    return std::get<0>(std::move(storage));
  }
  T &operator*() & { return std::get<0>(storage); }
  T *operator->() { return &std::get<0>(storage); }

private:
  void check() const {
    if (!ok())
      throw Error(std::get<1>(storage));
  }
  std::variant<T, Status> storage;
};

namespace detail {

/// An owned handle; the owner's destroy function is a parameter.
template <typename Handle, void (*destroy)(Handle)> class Owner {
public:
  Owner() = default;
  explicit Owner(Handle handle) : handle(handle) {}
  Owner(Owner &&other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
  Owner &operator=(Owner &&other) noexcept {
    std::swap(handle, other.handle);
    return *this;
  }
  ~Owner() { destroy(handle); }

  /// The handle of the C interface, still owned by this object.
  Handle get() const { return handle; }
  explicit operator bool() const { return handle != nullptr; }

protected:
  Handle handle = nullptr;
};

/// The result of a function that makes a handle.
template <typename Object, typename Handle, typename Call> Expected<Object> make(Call &&call) {
  Handle handle = nullptr;
  if (Status status = Status::of(call(&handle)); !status.ok())
    return status;
  return Object(handle);
}

} // namespace detail

/// The element type of a C++ type: float, double, bool and the integers.
template <typename T> constexpr ditron_dtype_t dtypeOf() {
  using Plain = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<Plain, bool>)
    return DITRON_I1;
  else if constexpr (std::is_same_v<Plain, float>)
    return DITRON_F32;
  else if constexpr (std::is_same_v<Plain, double>)
    return DITRON_F64;
  else {
    static_assert(std::is_integral_v<Plain>, "name the element type with ditron::Pointer{address, dtype}");
    constexpr ditron_dtype_t signedTypes[] = {DITRON_I8, DITRON_I16, DITRON_I32, DITRON_I64};
    constexpr ditron_dtype_t unsignedTypes[] = {DITRON_U8, DITRON_U16, DITRON_U32, DITRON_U64};
    constexpr int index = sizeof(Plain) == 1 ? 0 : sizeof(Plain) == 2 ? 1 : sizeof(Plain) == 4 ? 2 : 3;
    return std::is_signed_v<Plain> ? signedTypes[index] : unsignedTypes[index];
  }
}

/// A device address with its element type.
struct Pointer {
  void *address;
  ditron_dtype_t dtype;
};

/// A tensor where it lies; dense unless strides are given.
class TensorView {
public:
  TensorView(void *address, ditron_dtype_t dtype, std::vector<int64_t> shape, std::vector<int64_t> strides = {})
      : addressValue(address), dtypeValue(dtype), shapeValue(std::move(shape)), stridesValue(std::move(strides)) {}

  void *address() const { return addressValue; }
  ditron_dtype_t dtype() const { return dtypeValue; }
  const std::vector<int64_t> &shape() const { return shapeValue; }
  /// For the C interface; valid as long as this object.
  ditron_tensor_t raw() const {
    ditron_tensor_t tensor;
    DITRON_INIT(tensor);
    tensor.address = addressValue;
    tensor.dtype = dtypeValue;
    tensor.dimensions = static_cast<uint32_t>(shapeValue.size());
    tensor.shape = shapeValue.data();
    tensor.strides = stridesValue.empty() ? nullptr : stridesValue.data();
    return tensor;
  }

private:
  void *addressValue;
  ditron_dtype_t dtypeValue;
  std::vector<int64_t> shapeValue, stridesValue;
};

/// A value for a kernel's parameter, by position or, made by named(), by name.
class Argument {
public:
  template <typename T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
  Argument(T value) {
    if constexpr (std::is_signed_v<T>) {
      raw.kind = DITRON_ARGUMENT_INT;
      raw.value.integer = value;
    } else {
      raw.kind = DITRON_ARGUMENT_UINT;
      raw.value.unsigned_integer = value;
    }
  }
  template <typename T, std::enable_if_t<std::is_same_v<T, bool>, int> = 0> Argument(T value) {
    raw.kind = DITRON_ARGUMENT_BOOL;
    raw.value.integer = value;
  }
  Argument(double value) {
    raw.kind = DITRON_ARGUMENT_FLOAT;
    raw.value.floating = value;
  }
  Argument(Pointer pointer) {
    raw.kind = DITRON_ARGUMENT_POINTER;
    raw.dtype = pointer.dtype;
    raw.value.pointer = pointer.address;
  }
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  Argument(T *address) : Argument(Pointer{const_cast<std::remove_cv_t<T> *>(address), dtypeOf<T>()}) {}
  Argument(const TensorView &tensor) : Argument(Pointer{tensor.address(), tensor.dtype()}) {}
  Argument(std::nullptr_t) { raw.kind = DITRON_ARGUMENT_NONE; }
  Argument(ditron_dtype_t dtype) {
    raw.kind = DITRON_ARGUMENT_DTYPE;
    raw.dtype = dtype;
  }
  /// A compile-time string; the text must live until the call.
  Argument(const char *text) {
    raw.kind = DITRON_ARGUMENT_STRING;
    raw.value.string = text;
  }

  /// The same for the parameter of that name; the text must live until the call.
  static Argument named(const char *name, Argument value) {
    value.raw.name = name;
    return value;
  }

  ditron_argument_t raw = {};
};

/// Python's keyword arguments: {"BLOCK", 128}.
struct Keyword {
  Keyword(const char *name, Argument value) : argument(Argument::named(name, value)) {}
  Argument argument;
};

/// Grid and options of a launch.
struct Launch {
  uint32_t x = 1, y = 1, z = 1;
  uint32_t numWarps = 0, numStages = 0; ///< 0: what the kernel says, else 4 and 3.
  bool debug = false, cooperative = false;

  ditron_launch_t raw() const {
    ditron_launch_t launch;
    DITRON_INIT(launch);
    launch.grid[0] = x;
    launch.grid[1] = y;
    launch.grid[2] = z;
    launch.num_warps = numWarps;
    launch.num_stages = numStages;
    launch.debug = debug;
    launch.cooperative = cooperative;
    return launch;
  }
};

class Stream : public detail::Owner<ditron_stream_h, ditron_stream_destroy> {
public:
  using Owner::Owner;
  Status synchronize() { return Status::of(ditron_stream_synchronize(handle)); }
  Status copy(void *destination, const void *source, uint64_t bytes) {
    return Status::of(ditron_copy(handle, destination, source, bytes));
  }
  Status fill(void *destination, uint8_t value, uint64_t bytes) {
    return Status::of(ditron_fill(handle, destination, value, bytes));
  }
  Status beginCapture() { return Status::of(ditron_capture_begin(handle)); }
  /// A CUstream; null for a simulated stream.
  void *native() const { return ditron_stream_native(handle); }
};

class Graph : public detail::Owner<ditron_graph_h, ditron_graph_destroy> {
public:
  using Owner::Owner;
  static Expected<Graph> endCapture(Stream &stream) {
    return detail::make<Graph, ditron_graph_h>(
        [&](ditron_graph_h *graph) { return ditron_capture_end(stream.get(), graph); });
  }
  Status launch(Stream &stream) { return Status::of(ditron_graph_launch(handle, stream.get())); }
};

class Event : public detail::Owner<ditron_event_h, ditron_event_destroy> {
public:
  using Owner::Owner;
  Status record(Stream &stream) { return Status::of(ditron_event_record(handle, stream.get())); }
  /// Holds the stream until the latest recording has completed.
  Status holdBack(Stream &stream) { return Status::of(ditron_event_wait(handle, stream.get())); }
  Status synchronize() { return Status::of(ditron_event_synchronize(handle)); }
  /// From the recording of `begin` to that of this event.
  Expected<double> microsecondsSince(const Event &begin) const {
    double result = 0;
    Status status = Status::of(ditron_event_elapsed(begin.get(), handle, &result));
    return status.ok() ? Expected<double>(result) : Expected<double>(status);
  }
};

class Memory : public detail::Owner<ditron_memory_h, ditron_memory_destroy> {
public:
  using Owner::Owner;
  /// Null for a rank that has none.
  void *address(uint32_t rank = 0) const { return ditron_memory_address(handle, rank); }
  uint64_t bytes() const { return ditron_memory_bytes(handle); }
  Status upload(uint32_t rank, const void *source, uint64_t bytes, uint64_t offset = 0) {
    return Status::of(ditron_memory_upload(handle, rank, offset, source, bytes));
  }
  Status download(uint32_t rank, void *destination, uint64_t bytes, uint64_t offset = 0) const {
    return Status::of(ditron_memory_download(handle, rank, offset, destination, bytes));
  }
};

/// A run file that has been run (docs/run-files.md).
class Program : public detail::Owner<ditron_program_h, ditron_program_destroy> {
public:
  using Owner::Owner;

  /// Reads and runs; `options` may be null.
  static Expected<Program> run(const std::string &path, const ditron_program_options_t *options = nullptr) {
    return detail::make<Program, ditron_program_h>(
        [&](ditron_program_h *program) { return ditron_program_run_file(path.c_str(), options, program); });
  }
  /// The same of a text; kernel files are looked for in `folder`.
  static Expected<Program> runText(const std::string &text, const std::string &folder = "",
                                   const ditron_program_options_t *options = nullptr) {
    return detail::make<Program, ditron_program_h>([&](ditron_program_h *program) {
      return ditron_program_run_text(text.c_str(), nullptr, folder.empty() ? nullptr : folder.c_str(), options,
                                     program);
    });
  }

  uint32_t ranks() const { return ditron_program_ranks(handle); }
  /// Results that were not as expected, a text for each.
  std::vector<std::string> mismatches() const {
    std::vector<std::string> texts;
    for (uint32_t i = 0; i < ditron_program_mismatch_count(handle); ++i)
      texts.emplace_back(ditron_program_mismatch(handle, i));
    return texts;
  }
  /// A buffer as the program left it; valid until the next call.
  Expected<ditron_program_array_t> array(const std::string &buffer, uint32_t rank = 0) const {
    ditron_program_array_t array;
    DITRON_INIT(array);
    Status status = Status::of(ditron_program_get(handle, buffer.c_str(), rank, &array));
    return status.ok() ? Expected<ditron_program_array_t>(array) : Expected<ditron_program_array_t>(status);
  }
};

/// One compiled form of a kernel.
class Variant : public detail::Owner<ditron_variant_h, ditron_variant_destroy> {
public:
  using Owner::Owner;
  /// values[i] points to the value of the i-th run-time parameter. Nothing is checked: see ditron_variant_launch.
  Status launch(Stream &stream, uint32_t x, uint32_t y, uint32_t z, const void *const *values) {
    const uint32_t grid[] = {x, y, z};
    return Status::of(ditron_variant_launch(handle, stream.get(), grid, values));
  }
  /// "source", "tile", "layout", "llvm", "asm".
  Expected<std::string> text(const char *stage) const {
    const char *result = nullptr;
    Status status = Status::of(ditron_variant_text(handle, stage, &result));
    return status.ok() ? Expected<std::string>(std::string(result)) : Expected<std::string>(status);
  }
};

class Kernel : public detail::Owner<ditron_kernel_h, ditron_kernel_destroy> {
public:
  using Owner::Owner;

  /// kernel.launch(stream, {.x = 8}, {x, y, n}, {{"BLOCK", 128}}) with the rules and checks of ditron_kernel_launch.
  Status launch(Stream &stream, const Launch &launch, std::initializer_list<Argument> arguments,
                std::initializer_list<Keyword> keywords = {}) {
    const std::vector<ditron_argument_t> list = listOf(arguments, keywords);
    const ditron_launch_t raw = launch.raw();
    return Status::of(
        ditron_kernel_launch(handle, stream.get(), &raw, list.data(), static_cast<uint32_t>(list.size())));
  }
  Expected<Variant> specialise(const Launch &launch, std::initializer_list<Argument> arguments,
                               std::initializer_list<Keyword> keywords = {}) {
    const std::vector<ditron_argument_t> list = listOf(arguments, keywords);
    const ditron_launch_t raw = launch.raw();
    return detail::make<Variant, ditron_variant_h>([&](ditron_variant_h *variant) {
      return ditron_kernel_specialise(handle, &raw, list.data(), static_cast<uint32_t>(list.size()), variant);
    });
  }

private:
  static std::vector<ditron_argument_t> listOf(std::initializer_list<Argument> arguments,
                                               std::initializer_list<Keyword> keywords) {
    std::vector<ditron_argument_t> list;
    for (const Argument &argument : arguments)
      list.push_back(argument.raw);
    for (const Keyword &keyword : keywords)
      list.push_back(keyword.argument.raw);
    return list;
  }
};

/// An operator for one shape.
class Plan : public detail::Owner<ditron_plan_h, ditron_plan_destroy> {
public:
  using Owner::Owner;
  Status enqueue(Stream &stream, const TensorView &a, const TensorView &b, const TensorView &c) {
    const ditron_tensor_t rawA = a.raw(), rawB = b.raw(), rawC = c.raw();
    return Status::of(ditron_plan_enqueue(handle, stream.get(), &rawA, &rawB, &rawC));
  }
  /// What the operator's epilogue reads; null for what it does not have.
  struct Epilogue {
    const TensorView *scalesA = nullptr, *scalesB = nullptr, *bias = nullptr;
  };
  Status enqueue(Stream &stream, const TensorView &a, const TensorView &b, const TensorView &c,
                 const Epilogue &epilogue) {
    return with(ditron_plan_enqueue_with, stream, a, b, c, epilogue);
  }
  /// Whether `enqueue` would take these tensors on the stream's rank. For who makes the calls of several ranks: look at all of them first, since a call
  /// that some ranks make and others do not leaves those waiting.
  Status check(Stream &stream, const TensorView &a, const TensorView &b, const TensorView &c,
               const Epilogue &epilogue) {
    return with(ditron_plan_check_with, stream, a, b, c, epilogue);
  }
  /// Rows of the gathered or scattered matrix that the rank holds; GEMM+AllReduce: all of them.
  int64_t rows(uint32_t rank) const { return ditron_plan_rows(handle, rank); }

private:
  Status with(decltype(ditron_plan_enqueue_with) *function, Stream &stream, const TensorView &a, const TensorView &b,
              const TensorView &c, const Epilogue &epilogue) {
    const ditron_tensor_t rawA = a.raw(), rawB = b.raw(), rawC = c.raw();
    ditron_tensor_t raw[3];
    const ditron_tensor_t *given[3] = {};
    const TensorView *views[] = {epilogue.scalesA, epilogue.scalesB, epilogue.bias};
    for (int i = 0; i < 3; ++i)
      if (views[i]) {
        raw[i] = views[i]->raw();
        given[i] = &raw[i];
      }
    ditron_epilogue_tensors_t tensors;
    DITRON_INIT(tensors);
    tensors.scales_a = given[0];
    tensors.scales_b = given[1];
    tensors.bias = given[2];
    return Status::of(function(handle, stream.get(), &rawA, &rawB, &rawC, &tensors));
  }
};

/// AllGather+GEMM, GEMM+ReduceScatter or GEMM+AllReduce over all ranks of a context.
class Operator : public detail::Owner<ditron_operator_h, ditron_operator_destroy> {
public:
  using Owner::Owner;
  Expected<Plan> prepare(int64_t m, int64_t n, int64_t k) {
    return detail::make<Plan, ditron_plan_h>(
        [&](ditron_plan_h *plan) { return ditron_operator_prepare(handle, m, n, k, plan); });
  }
  /// With rows further apart than they are long.
  Expected<Plan> prepare(const ditron_plan_options_t &options) {
    return detail::make<Plan, ditron_plan_h>(
        [&](ditron_plan_h *plan) { return ditron_operator_prepare_strided(handle, &options, plan); });
  }
};

/// AllReduce, AllGather, ReduceScatter, AllToAll or Broadcast over all ranks of a context, for calls of any size up to the largest.
class Collective : public detail::Owner<ditron_collective_h, ditron_collective_destroy> {
public:
  using Owner::Owner;

  struct Options {
    ditron_collective_kind_t kind = DITRON_ALL_REDUCE;
    ditron_dtype_t dtype = DITRON_BF16;
    int64_t maxElements = 0;
    ditron_reduction_t reduction = DITRON_REDUCE_SUM;
    std::optional<float> scale;   ///< Of this rank's contribution, before it is sent.
    uint32_t root = 0;            ///< Of a broadcast.
    uint32_t concurrentCalls = 0; ///< Of collectives on streams that nothing orders; 0: 1.
  };

  /// Before the first call anywhere, for every size.
  Status prepare(int64_t elements) { return Status::of(ditron_collective_prepare(handle, elements)); }
  /// What `in` and `out` are for each kind, and when they may be the same: ditron_collective_enqueue.
  Status enqueue(Stream &stream, const void *in, void *out, int64_t elements) {
    return Status::of(ditron_collective_enqueue(handle, stream.get(), in, out, elements));
  }
  /// Whether `enqueue` would take these; as Plan::check.
  Status check(Stream &stream, const void *in, void *out, int64_t elements) {
    return Status::of(ditron_collective_check(handle, stream.get(), in, out, elements));
  }
};

/// AllReduce, residual and RMSNorm as one launch (ditron_all_reduce_rms_norm_enqueue).
class AllReduceRmsNorm : public detail::Owner<ditron_all_reduce_rms_norm_h, ditron_all_reduce_rms_norm_destroy> {
public:
  using Owner::Owner;

  /// As ditron_all_reduce_rms_norm_options_t.
  struct Options {
    ditron_dtype_t dtype = DITRON_BF16;
    int64_t columns = 0;
    int64_t maxRows = 0; ///< Of any call.
    double epsilon = 1e-6;
    uint32_t concurrentCalls = 1;
  };
  /// As ditron_all_reduce_rms_norm_operands_t.
  struct Operands {
    const void *x = nullptr, *residual = nullptr, *weight = nullptr;
    void *out = nullptr, *residualOut = nullptr;
  };

  /// Before the first call anywhere, for every number of rows.
  Status prepare(int64_t rows) { return Status::of(ditron_all_reduce_rms_norm_prepare(handle, rows)); }
  Status enqueue(Stream &stream, const Operands &operands, int64_t rows) {
    const ditron_all_reduce_rms_norm_operands_t raw = rawOf(operands);
    return Status::of(ditron_all_reduce_rms_norm_enqueue(handle, stream.get(), &raw, rows));
  }
  /// Whether `enqueue` would take these; as Plan::check.
  Status check(Stream &stream, const Operands &operands, int64_t rows) {
    const ditron_all_reduce_rms_norm_operands_t raw = rawOf(operands);
    return Status::of(ditron_all_reduce_rms_norm_check(handle, stream.get(), &raw, rows));
  }

private:
  static ditron_all_reduce_rms_norm_operands_t rawOf(const Operands &operands) {
    ditron_all_reduce_rms_norm_operands_t raw;
    DITRON_INIT(raw);
    raw.x = operands.x, raw.residual = operands.residual, raw.weight = operands.weight;
    raw.out = operands.out, raw.residual_out = operands.residualOut;
    return raw;
  }
};

/// All-to-all of parts whose sizes stand on the device (ditron_all_to_all_v_enqueue).
class AllToAllV : public detail::Owner<ditron_all_to_all_v_h, ditron_all_to_all_v_destroy> {
public:
  using Owner::Owner;

  struct Options {
    ditron_dtype_t dtype = DITRON_BF16;
    int64_t rowElements = 1;
    int64_t maxRows = 0; ///< The most that one rank sends another.
    bool packed = false; ///< Offsets of what is received are a result.
  };
  /// Device memory of the rank, as in ditron_all_to_all_v_operands_t.
  struct Operands {
    const void *in = nullptr;
    int64_t inRows = 0;
    const int64_t *sendCounts = nullptr, *sendOffsets = nullptr;
    void *out = nullptr;
    int64_t outRows = 0;
    int64_t *receiveCounts = nullptr, *receiveOffsets = nullptr;
  };

  /// Before the first call anywhere.
  Status prepare() { return Status::of(ditron_all_to_all_v_prepare(handle)); }
  Status enqueue(Stream &stream, const Operands &operands) {
    ditron_all_to_all_v_operands_t raw;
    DITRON_INIT(raw);
    raw.in = operands.in;
    raw.in_rows = operands.inRows;
    raw.send_counts = operands.sendCounts;
    raw.send_offsets = operands.sendOffsets;
    raw.out = operands.out;
    raw.out_rows = operands.outRows;
    raw.receive_counts = operands.receiveCounts;
    raw.receive_offsets = operands.receiveOffsets;
    return Status::of(ditron_all_to_all_v_enqueue(handle, stream.get(), &raw));
  }
  /// Waits for the stream: whether all sizes could be.
  Status check(Stream &stream) { return Status::of(ditron_all_to_all_v_check(handle, stream.get())); }
};

/// Tokens to the ranks of their experts and back (ditron_expert_parallel_dispatch, _combine).
class ExpertParallel : public detail::Owner<ditron_expert_parallel_h, ditron_expert_parallel_destroy> {
public:
  using Owner::Owner;

  /// As ditron_expert_parallel_options_t.
  struct Options {
    ditron_dtype_t dtype = DITRON_BF16;
    int64_t hidden = 0;
    uint32_t experts = 0, topK = 1;
    int64_t maxTokens = 0;
    bool fp8 = false;
    int64_t capacity = 0, maxRows = 0;
    uint32_t concurrentCalls = 1;
  };
  /// As ditron_dispatch_operands_t.
  struct DispatchOperands {
    const void *x = nullptr;
    int64_t tokens = 0;
    const int32_t *ids = nullptr;
    const float *weights = nullptr;
    void *rows = nullptr;
    float *scales = nullptr;
    int32_t *offsets = nullptr, *handle = nullptr;
  };
  /// As ditron_combine_operands_t.
  struct CombineOperands {
    const void *rows = nullptr;
    void *out = nullptr;
    int64_t tokens = 0;
    const int32_t *handle = nullptr;
  };

  int64_t maxRows() const { return ditron_expert_parallel_max_rows(handle); }
  int64_t handleElements() const { return ditron_expert_parallel_handle_elements(handle); }
  /// Before the first call anywhere; `parts`: sending and receiving apart, too.
  Status prepare(bool parts = false) { return Status::of(ditron_expert_parallel_prepare(handle, parts)); }
  Status dispatch(Stream &stream, const DispatchOperands &operands, ditron_call_part_t part = DITRON_CALL_WHOLE) {
    ditron_dispatch_operands_t raw;
    DITRON_INIT(raw);
    raw.x = operands.x;
    raw.tokens = operands.tokens;
    raw.ids = operands.ids;
    raw.weights = operands.weights;
    raw.rows = operands.rows;
    raw.scales = operands.scales;
    raw.offsets = operands.offsets;
    raw.handle = operands.handle;
    return Status::of(ditron_expert_parallel_dispatch(handle, stream.get(), &raw, part));
  }
  Status combine(Stream &stream, const CombineOperands &operands, ditron_call_part_t part = DITRON_CALL_WHOLE) {
    ditron_combine_operands_t raw;
    DITRON_INIT(raw);
    raw.rows = operands.rows;
    raw.out = operands.out;
    raw.tokens = operands.tokens;
    raw.handle = operands.handle;
    return Status::of(ditron_expert_parallel_combine(handle, stream.get(), &raw, part));
  }
  /// Waits for the stream: whether nothing was dropped.
  Status check(Stream &stream) { return Status::of(ditron_expert_parallel_check(handle, stream.get())); }
};

/// The rows of experts on each rank by itself (ditron_routing_choose, _sort, _sum).
class Routing : public detail::Owner<ditron_routing_h, ditron_routing_destroy> {
public:
  using Owner::Owner;

  /// As ditron_routing_options_t.
  struct Options {
    uint32_t experts = 0, topK = 1;
    int64_t maxTokens = 0;
    ditron_router_score_t score = DITRON_SCORE_SOFTMAX;
    bool normalized = true;
    double scale = 1;
    int64_t hidden = 0;
    ditron_dtype_t dtype = DITRON_BF16;
  };

  /// Before the first call, for every number of tokens.
  Status prepare(int64_t tokens) { return Status::of(ditron_routing_prepare(handle, tokens)); }
  /// `bias`: null for none.
  Status choose(Stream &stream, const float *logits, const float *bias, int32_t *ids, float *weights, int64_t tokens) {
    return Status::of(ditron_routing_choose(handle, stream.get(), logits, bias, ids, weights, tokens));
  }
  Status sort(Stream &stream, const int32_t *ids, int32_t *offsets, int32_t *slotOfRow, int32_t *rowOfSlot,
              int64_t tokens) {
    return Status::of(ditron_routing_sort(handle, stream.get(), ids, offsets, slotOfRow, rowOfSlot, tokens));
  }
  /// `weights`: null for ones.
  Status sum(Stream &stream, const void *rows, const int32_t *rowOfSlot, const float *weights, void *out,
             int64_t tokens) {
    return Status::of(ditron_routing_sum(handle, stream.get(), rows, rowOfSlot, weights, out, tokens));
  }
};

/// Rows of several experts, each times the weights of its own, on each rank by itself (ditron_grouped_gemm_enqueue).
class GroupedGemm : public detail::Owner<ditron_grouped_gemm_h, ditron_grouped_gemm_destroy> {
public:
  using Owner::Owner;

  /// As ditron_grouped_gemm_options_t.
  struct Options {
    int64_t maxRows = 0;
    uint32_t experts = 0;
    int64_t n = 0, k = 0;
    ditron_dtype_t dtype = DITRON_BF16;
    std::optional<ditron_dtype_t> resultType = std::nullopt; ///< That of the rows, of fp8 bf16.
    bool weightsPlain = false;
    ditron_activation_t activation = DITRON_ACTIVATION_NONE;
    uint32_t slots = 0;
    bool blockScales = false;
  };
  /// As ditron_grouped_gemm_operands_t.
  struct Operands {
    const void *a = nullptr, *b = nullptr;
    void *c = nullptr;
    const int32_t *offsets = nullptr, *slotOfRow = nullptr;
    const float *aScale = nullptr, *bScale = nullptr;
  };

  /// Before the first call.
  Status prepare() { return Status::of(ditron_grouped_gemm_prepare(handle)); }
  Status enqueue(Stream &stream, const Operands &operands) {
    ditron_grouped_gemm_operands_t raw;
    DITRON_INIT(raw);
    raw.a = operands.a;
    raw.b = operands.b;
    raw.c = operands.c;
    raw.offsets = operands.offsets;
    raw.slot_of_row = operands.slotOfRow;
    raw.a_scale = operands.aScale;
    raw.b_scale = operands.bScale;
    return Status::of(ditron_grouped_gemm_enqueue(handle, stream.get(), &raw));
  }
};

/// A layer's weights on one rank; as ditron_moe_weights_t.
struct MoeWeights {
  const void *router = nullptr;
  const float *bias = nullptr;
  const void *up = nullptr, *down = nullptr;
  const float *upScale = nullptr, *downScale = nullptr;
  const void *sharedUp = nullptr, *sharedDown = nullptr;

  ditron_moe_weights_t raw() const {
    ditron_moe_weights_t raw;
    DITRON_INIT(raw);
    raw.router = router;
    raw.bias = bias;
    raw.up = up;
    raw.down = down;
    raw.up_scale = upScale;
    raw.down_scale = downScale;
    raw.shared_up = sharedUp;
    raw.shared_down = sharedDown;
    return raw;
  }
};

/// One rank's memory for a backward; as ditron_moe_gradients_t.
struct MoeGradients {
  const void *x = nullptr, *dy = nullptr;
  void *dx = nullptr;
  void *router = nullptr, *up = nullptr, *down = nullptr;
  void *sharedUp = nullptr, *sharedDown = nullptr;

  ditron_moe_gradients_t raw() const {
    ditron_moe_gradients_t raw;
    DITRON_INIT(raw);
    raw.x = x;
    raw.dy = dy;
    raw.dx = dx;
    raw.router = router;
    raw.up = up;
    raw.down = down;
    raw.shared_up = sharedUp;
    raw.shared_down = sharedDown;
    return raw;
  }
};

/// A mixture of experts whose every expert is spread over the ranks (ditron_tensor_parallel_moe_enqueue).
class TensorParallelMoe : public detail::Owner<ditron_tensor_parallel_moe_h, ditron_tensor_parallel_moe_destroy> {
public:
  using Owner::Owner;

  /// As ditron_tensor_parallel_moe_options_t.
  struct Options {
    ditron_dtype_t dtype = DITRON_BF16;
    int64_t hidden = 0, inner = 0;
    uint32_t experts = 0, topK = 1;
    ditron_router_score_t score = DITRON_SCORE_SOFTMAX;
    bool normalized = true;
    double scale = 1;
    int64_t maxTokensPerRank = 0;
    bool replicated = false, unfused = false;
    bool training = false;
    ditron_dtype_t gradientType = DITRON_F32;
    bool addsGradients = true; ///< To what is there.
  };

  /// Before the first call anywhere, for every number of tokens.
  Status prepare(int64_t tokensPerRank) {
    return Status::of(ditron_tensor_parallel_moe_prepare(handle, tokensPerRank));
  }
  Status enqueue(Stream &stream, const void *x, void *y, int64_t tokensPerRank) {
    return Status::of(ditron_tensor_parallel_moe_enqueue(handle, stream.get(), x, y, tokensPerRank));
  }
  Status backward(Stream &stream, const MoeGradients &gradients, int64_t tokensPerRank) {
    const ditron_moe_gradients_t raw = gradients.raw();
    return Status::of(ditron_tensor_parallel_moe_backward(handle, stream.get(), &raw, tokensPerRank));
  }
};

/// A mixture of experts each of which is on one rank (ditron_expert_parallel_moe_enqueue).
class ExpertParallelMoe : public detail::Owner<ditron_expert_parallel_moe_h, ditron_expert_parallel_moe_destroy> {
public:
  using Owner::Owner;

  /// As ditron_expert_parallel_moe_options_t.
  struct Options {
    ditron_dtype_t dtype = DITRON_BF16;
    int64_t hidden = 0, inner = 0, sharedInner = 0;
    uint32_t experts = 0, topK = 1;
    ditron_router_score_t score = DITRON_SCORE_SOFTMAX;
    bool normalized = true;
    double scale = 1;
    int64_t maxTokens = 0;
    bool fp8 = false;
    int64_t capacity = 0, maxRows = 0;
    uint32_t concurrentCalls = 1;
    bool training = false;
    ditron_dtype_t gradientType = DITRON_F32;
    bool addsGradients = true; ///< To what is there.
  };

  /// Before the first call anywhere, for every number of own tokens.
  Status prepare(int64_t tokens) { return Status::of(ditron_expert_parallel_moe_prepare(handle, tokens)); }
  Status enqueue(Stream &stream, const void *x, void *y, int64_t tokens) {
    return Status::of(ditron_expert_parallel_moe_enqueue(handle, stream.get(), x, y, tokens));
  }
  /// Of the last call.
  Status backward(Stream &stream, const MoeGradients &gradients, int64_t tokens) {
    const ditron_moe_gradients_t raw = gradients.raw();
    return Status::of(ditron_expert_parallel_moe_backward(handle, stream.get(), &raw, tokens));
  }
  /// Waits for the stream: whether nothing was dropped.
  Status check(Stream &stream) { return Status::of(ditron_expert_parallel_moe_check(handle, stream.get())); }
};

/// Attention on each rank by itself (ditron_attention_enqueue).
class Attention : public detail::Owner<ditron_attention_h, ditron_attention_destroy> {
public:
  using Owner::Owner;

  /// As ditron_attention_options_t.
  struct Options {
    ditron_dtype_t dtype = DITRON_BF16;
    int64_t heads = 1, kvHeads = 0;
    int64_t headDim = 128, valueDim = 0;
    std::optional<double> scale = std::nullopt;
    bool causal = false;
    std::optional<int64_t> window = std::nullopt;
    std::optional<double> softCap = std::nullopt;
    bool rowsFirst = false;
    int64_t pageSize = 0;
    bool valuesTransposed = false;
  };
  /// As ditron_attention_shape_t.
  struct Shape {
    int64_t batch = 1, queries = 0, keys = 0;
    int64_t packedQueries = 0, packedKeys = 0;
    int64_t pages = 0;

    ditron_attention_shape_t raw() const {
      ditron_attention_shape_t raw;
      DITRON_INIT(raw);
      raw.batch = batch;
      raw.queries = queries;
      raw.keys = keys;
      raw.packed_queries = packedQueries;
      raw.packed_keys = packedKeys;
      raw.pages = pages;
      return raw;
    }
  };
  /// As ditron_attention_operands_t; null for what is not given.
  struct Operands {
    const void *q = nullptr, *k = nullptr, *v = nullptr;
    void *out = nullptr;
    float *lse = nullptr;
    const float *sinks = nullptr, *slopes = nullptr;
    const int32_t *queryOffsets = nullptr, *keyOffsets = nullptr, *keyLengths = nullptr, *blockTable = nullptr;

    ditron_attention_operands_t raw() const {
      ditron_attention_operands_t raw;
      DITRON_INIT(raw);
      raw.q = q, raw.k = k, raw.v = v;
      raw.out = out;
      raw.lse = lse;
      raw.sinks = sinks;
      raw.slopes = slopes;
      raw.query_offsets = queryOffsets;
      raw.key_offsets = keyOffsets;
      raw.key_lengths = keyLengths;
      raw.block_table = blockTable;
      return raw;
    }
  };
  /// As ditron_attention_gradients_t; null for what is not given.
  struct Gradients {
    const void *q = nullptr, *k = nullptr, *v = nullptr, *out = nullptr;
    const float *lse = nullptr;
    const void *gradient = nullptr;
    void *dq = nullptr, *dk = nullptr, *dv = nullptr;
    const float *slopes = nullptr;
    const int32_t *queryOffsets = nullptr, *keyOffsets = nullptr;
    const float *sinks = nullptr;
    float *dsinks = nullptr;

    ditron_attention_gradients_t raw() const {
      ditron_attention_gradients_t raw;
      DITRON_INIT(raw);
      raw.q = q, raw.k = k, raw.v = v;
      raw.out = out;
      raw.lse = lse;
      raw.gradient = gradient;
      raw.dq = dq, raw.dk = dk, raw.dv = dv;
      raw.slopes = slopes;
      raw.query_offsets = queryOffsets;
      raw.key_offsets = keyOffsets;
      raw.sinks = sinks;
      raw.dsinks = dsinks;
      return raw;
    }
  };

  /// Before the first call, for every shape and set of operands.
  Status prepare(const Shape &shape, const Operands &operands) {
    const auto rawShape = shape.raw();
    const auto raw = operands.raw();
    return Status::of(ditron_attention_prepare(handle, &rawShape, &raw));
  }
  Status enqueue(Stream &stream, const Shape &shape, const Operands &operands) {
    const auto rawShape = shape.raw();
    const auto raw = operands.raw();
    return Status::of(ditron_attention_enqueue(handle, stream.get(), &rawShape, &raw));
  }
  Status prepareBackward(const Shape &shape, const Gradients &gradients) {
    const auto rawShape = shape.raw();
    const auto raw = gradients.raw();
    return Status::of(ditron_attention_prepare_backward(handle, &rawShape, &raw));
  }
  Status backward(Stream &stream, const Shape &shape, const Gradients &gradients) {
    const auto rawShape = shape.raw();
    const auto raw = gradients.raw();
    return Status::of(ditron_attention_backward(handle, stream.get(), &rawShape, &raw));
  }
};

/// Attention of few queries over many keys (ditron_attention_decode_enqueue).
class AttentionDecode : public detail::Owner<ditron_attention_decode_h, ditron_attention_decode_destroy> {
public:
  using Owner::Owner;

  /// Where keys lie; as of ditron_attention_decode_options_t.
  struct Keys {
    int64_t pageSize = 0, pageStride = 0, rowStride = 0, headStride = 0, tableStride = 0;

    /// [batch, kvHeads, keys, headDim]
    static Keys headsFirst(int64_t kvHeads, int64_t keys, int64_t headDim) {
      return {0, kvHeads * keys * headDim, headDim, keys * headDim, 0};
    }
    /// [batch, keys, kvHeads, headDim]
    static Keys keysFirst(int64_t kvHeads, int64_t keys, int64_t headDim) {
      return {0, keys * kvHeads * headDim, kvHeads * headDim, headDim, 0};
    }
    /// [pages, pageSize, kvHeads, headDim] with a table [batch, pagesOfSequence]
    static Keys paged(int64_t pageSize, int64_t pagesOfSequence, int64_t kvHeads, int64_t headDim) {
      return {pageSize, pageSize * kvHeads * headDim, kvHeads * headDim, headDim, pagesOfSequence};
    }
  };
  /// As ditron_attention_decode_options_t.
  struct Options {
    ditron_dtype_t dtype = DITRON_BF16;
    int64_t maxBatch = 1;
    int64_t heads = 1, kvHeads = 0, queries = 1, headDim = 128;
    std::optional<double> scale = std::nullopt;
    Keys keys = {};
    bool overRanks = false;
    uint32_t concurrentCalls = 0;
  };
  /// As ditron_attention_decode_operands_t; null for what is not given.
  struct Operands {
    const void *q = nullptr, *k = nullptr, *v = nullptr;
    void *out = nullptr;
    float *lse = nullptr;
    const int32_t *lengths = nullptr, *table = nullptr;
  };

  /// Before the first call anywhere, for every number of sequences.
  Status prepare(int64_t batch, bool withLse = false) {
    return Status::of(ditron_attention_decode_prepare(handle, batch, withLse));
  }
  Status enqueue(Stream &stream, const Operands &operands, int64_t batch) {
    ditron_attention_decode_operands_t raw;
    DITRON_INIT(raw);
    raw.q = operands.q, raw.k = operands.k, raw.v = operands.v;
    raw.out = operands.out;
    raw.lse = operands.lse;
    raw.lengths = operands.lengths;
    raw.table = operands.table;
    return Status::of(ditron_attention_decode_enqueue(handle, stream.get(), &raw, batch));
  }
};

/// Attention whose tokens are dealt out to the ranks, forward and backward (ditron_ring_attention_enqueue).
class RingAttention : public detail::Owner<ditron_ring_attention_h, ditron_ring_attention_destroy> {
public:
  using Owner::Owner;

  /// As ditron_ring_attention_options_t.
  struct Options {
    ditron_dtype_t dtype = DITRON_BF16;
    int64_t batch = 1;
    int64_t heads = 1, kvHeads = 0, headDim = 128;
    std::optional<double> scale = std::nullopt;
    bool causal = false;
    int64_t maxTokens = 0;
    int64_t packedSequences = 0;
    bool goesRound = false, backward = false;
  };
  /// As ditron_ring_attention_operands_t; null for what is not given.
  struct Operands {
    const void *q = nullptr, *k = nullptr, *v = nullptr;
    void *out = nullptr;
    float *lse = nullptr;
    const int32_t *offsets = nullptr;
  };
  /// As ditron_ring_attention_gradients_t.
  struct Gradients {
    const void *q = nullptr, *k = nullptr, *v = nullptr, *out = nullptr;
    const float *lse = nullptr;
    const void *gradient = nullptr;
    void *dq = nullptr, *dk = nullptr, *dv = nullptr;
    const int32_t *offsets = nullptr;
  };
  /// Tokens of a sequence, from `first` on.
  struct Section {
    int64_t first = 0, count = 0;
  };

  /// Which tokens of a sequence of so many a rank has; part 1 is behind part 0, with causal.
  Expected<Section> section(uint32_t rank, uint32_t part, int64_t tokens) const {
    Section section;
    Status status =
        Status::of(ditron_ring_attention_section(handle, rank, part, tokens, &section.first, &section.count));
    if (!status.ok())
      return status;
    return section;
  }
  /// Before the first call anywhere, for every number of tokens in a sequence.
  Status prepare(int64_t tokens, bool withLse = false) {
    return Status::of(ditron_ring_attention_prepare(handle, tokens, withLse));
  }
  Status enqueue(Stream &stream, const Operands &operands, int64_t tokens) {
    ditron_ring_attention_operands_t raw;
    DITRON_INIT(raw);
    raw.q = operands.q, raw.k = operands.k, raw.v = operands.v;
    raw.out = operands.out;
    raw.lse = operands.lse;
    raw.offsets = operands.offsets;
    return Status::of(ditron_ring_attention_enqueue(handle, stream.get(), &raw, tokens));
  }
  Status prepareBackward(int64_t tokens) {
    return Status::of(ditron_ring_attention_prepare_backward(handle, tokens));
  }
  Status backward(Stream &stream, const Gradients &gradients, int64_t tokens) {
    ditron_ring_attention_gradients_t raw;
    DITRON_INIT(raw);
    raw.q = gradients.q, raw.k = gradients.k, raw.v = gradients.v, raw.out = gradients.out;
    raw.lse = gradients.lse;
    raw.gradient = gradients.gradient;
    raw.dq = gradients.dq, raw.dk = gradients.dk, raw.dv = gradients.dv;
    raw.offsets = gradients.offsets;
    return Status::of(ditron_ring_attention_backward(handle, stream.get(), &raw, tokens));
  }
};

/// A layer's weights on one rank; as ditron_attention_weights_t.
struct AttentionWeights {
  const void *qkv = nullptr, *out = nullptr, *qkvBias = nullptr, *qNorm = nullptr, *kNorm = nullptr;
  const float *rotary = nullptr;

  ditron_attention_weights_t raw() const {
    ditron_attention_weights_t raw;
    DITRON_INIT(raw);
    raw.qkv = qkv;
    raw.out = out;
    raw.qkv_bias = qkvBias;
    raw.q_norm = qNorm;
    raw.k_norm = kNorm;
    raw.rotary = rotary;
    return raw;
  }
};

/// A layer of attention whose heads are dealt out to the ranks (ditron_tensor_parallel_attention_prefill, _decode).
class TensorParallelAttention
    : public detail::Owner<ditron_tensor_parallel_attention_h, ditron_tensor_parallel_attention_destroy> {
public:
  using Owner::Owner;

  /// As ditron_tensor_parallel_attention_options_t.
  struct Options {
    ditron_dtype_t dtype = DITRON_BF16;
    int64_t hidden = 0, heads = 1, kvHeads = 0, headDim = 128;
    std::optional<double> scale = std::nullopt;
    int64_t rotaryDim = 0;
    bool rotaryInterleaved = false;
    std::optional<double> normEpsilon = std::nullopt;
    bool qkvBias = false;
    bool dealt = false;
    int64_t maxTokens = 0, maxBatch = 1, maxKeys = 0;
    int64_t pageSize = 0, pages = 0;
    bool unfused = false;
    uint32_t concurrentCalls = 0;
  };
  using Weights = AttentionWeights;
  /// As ditron_tensor_parallel_attention_operands_t; null for what is not given.
  struct Operands {
    const void *x = nullptr;
    void *y = nullptr, *keys = nullptr, *values = nullptr;
    const int32_t *lengths = nullptr, *offsets = nullptr, *table = nullptr;

    ditron_tensor_parallel_attention_operands_t raw() const {
      ditron_tensor_parallel_attention_operands_t raw;
      DITRON_INIT(raw);
      raw.x = x;
      raw.y = y;
      raw.keys = keys;
      raw.values = values;
      raw.lengths = lengths;
      raw.offsets = offsets;
      raw.table = table;
      return raw;
    }
  };

  /// Elements of a rank's cache of K, and of that of V.
  int64_t cacheElements() const { return ditron_tensor_parallel_attention_cache_elements(handle); }
  /// Before the first call anywhere, for every size of a call.
  Status preparePrefill(int64_t tokens, int64_t batch, int64_t longest) {
    return Status::of(ditron_tensor_parallel_attention_prepare_prefill(handle, tokens, batch, longest));
  }
  Status prepareDecode(int64_t batch) {
    return Status::of(ditron_tensor_parallel_attention_prepare_decode(handle, batch));
  }
  Status prefill(Stream &stream, const Operands &operands, int64_t tokens, int64_t batch, int64_t longest) {
    const auto raw = operands.raw();
    return Status::of(
        ditron_tensor_parallel_attention_prefill(handle, stream.get(), &raw, tokens, batch, longest));
  }
  Status decode(Stream &stream, const Operands &operands, int64_t batch) {
    const auto raw = operands.raw();
    return Status::of(ditron_tensor_parallel_attention_decode(handle, stream.get(), &raw, batch));
  }
};

/// A layer of attention whose tokens are dealt out to the ranks (ditron_sequence_parallel_attention_prefill, _decode).
class SequenceParallelAttention
    : public detail::Owner<ditron_sequence_parallel_attention_h, ditron_sequence_parallel_attention_destroy> {
public:
  using Owner::Owner;
  using Weights = AttentionWeights;

  /// As ditron_sequence_parallel_attention_options_t.
  struct Options {
    ditron_dtype_t dtype = DITRON_BF16;
    int64_t batch = 1, hidden = 0, heads = 1, kvHeads = 0, headDim = 128;
    bool causal = true;
    std::optional<double> scale = std::nullopt;
    int64_t rotaryDim = 0;
    bool rotaryInterleaved = false;
    std::optional<double> normEpsilon = std::nullopt;
    int64_t maxTokens = 0;
    uint32_t chunks = 0;
    int64_t cacheBatch = 0, cacheKeys = 0, pageSize = 0, pages = 0;
    uint32_t concurrentCalls = 0;
  };
  /// As ditron_sequence_parallel_attention_operands_t; null for what is not given.
  struct Operands {
    const void *x = nullptr;
    void *y = nullptr, *keys = nullptr, *values = nullptr;
    const int32_t *table = nullptr, *lengths = nullptr, *places = nullptr, *positions = nullptr;

    ditron_sequence_parallel_attention_operands_t raw() const {
      ditron_sequence_parallel_attention_operands_t raw;
      DITRON_INIT(raw);
      raw.x = x;
      raw.y = y;
      raw.keys = keys;
      raw.values = values;
      raw.table = table;
      raw.lengths = lengths;
      raw.places = places;
      raw.positions = positions;
      return raw;
    }
  };

  /// Elements of a rank's cache of K, and of that of V.
  int64_t cacheElements() const { return ditron_sequence_parallel_attention_cache_elements(handle); }
  /// Before the first call anywhere, for every size of a call.
  Status preparePrefill(int64_t tokens) {
    return Status::of(ditron_sequence_parallel_attention_prepare_prefill(handle, tokens));
  }
  Status prepareDecode(int64_t batch) {
    return Status::of(ditron_sequence_parallel_attention_prepare_decode(handle, batch));
  }
  Status prefill(Stream &stream, const Operands &operands, int64_t tokens) {
    const auto raw = operands.raw();
    return Status::of(ditron_sequence_parallel_attention_prefill(handle, stream.get(), &raw, tokens));
  }
  Status decode(Stream &stream, const Operands &operands, int64_t batch) {
    const auto raw = operands.raw();
    return Status::of(ditron_sequence_parallel_attention_decode(handle, stream.get(), &raw, batch));
  }
};

/// Groups of messages between pairs of ranks (ditron_send_receive_enqueue).
class SendReceive : public detail::Owner<ditron_send_receive_h, ditron_send_receive_destroy> {
public:
  using Owner::Owner;

  /// Before the first call anywhere.
  Status prepare() { return Status::of(ditron_send_receive_prepare(handle)); }
  Status enqueue(Stream &stream, const std::vector<ditron_message_t> &sends,
                 const std::vector<ditron_message_t> &receives) {
    return Status::of(ditron_send_receive_enqueue(handle, stream.get(), sends.data(),
                                                  static_cast<uint32_t>(sends.size()), receives.data(),
                                                  static_cast<uint32_t>(receives.size())));
  }
  /// Waits for the stream: whether all messages had the sizes that their receivers said.
  Status check(Stream &stream) { return Status::of(ditron_send_receive_check(handle, stream.get())); }
};

/// The ranks of a context, or of a group, meet on their streams.
class Barrier : public detail::Owner<ditron_barrier_h, ditron_barrier_destroy> {
public:
  using Owner::Owner;

  /// Before the first call anywhere.
  Status prepare() { return Status::of(ditron_barrier_prepare(handle)); }
  Status enqueue(Stream &stream) { return Status::of(ditron_barrier_enqueue(handle, stream.get())); }
};

class Context : public detail::Owner<ditron_context_h, ditron_context_destroy> {
public:
  using Owner::Owner;

  struct Options {
    std::string target; ///< Empty: real GPUs if there are any, else "sim".
    uint32_t ranks = 1;
    bool fromEnvironment = false; ///< Be one rank of the job that torchrun, mpirun, srun or `ditron launch` started.
    std::vector<int32_t> gpus;    ///< Of each rank; empty: the first ones.
    double timeLimitSeconds = 0;
    uint64_t seed = 0;
    bool callGraphs = true; ///< Calls of operators are launched as graphs.
  };
  static Expected<Context> create(const Options &options) {
    ditron_context_options_t raw;
    DITRON_INIT(raw);
    raw.target = options.target.empty() ? nullptr : options.target.c_str();
    raw.ranks = options.ranks;
    raw.from_environment = options.fromEnvironment;
    raw.gpus = options.gpus.empty() ? nullptr : options.gpus.data();
    raw.time_limit_seconds = options.timeLimitSeconds;
    raw.seed = options.seed;
    raw.no_call_graphs = !options.callGraphs;
    if (!options.gpus.empty() && options.gpus.size() != options.ranks)
      raw.ranks = static_cast<uint32_t>(options.gpus.size());
    return create(raw);
  }
  static Expected<Context> create(const ditron_context_options_t &options) {
    return detail::make<Context, ditron_context_h>(
        [&](ditron_context_h *context) { return ditron_context_create(&options, context); });
  }

  /// A context of some of this one's ranks, numbered by their places in the list.
  Expected<Context> group(const std::vector<uint32_t> &ranks) {
    return detail::make<Context, ditron_context_h>([&](ditron_context_h *group) {
      return ditron_context_group(handle, ranks.data(), static_cast<uint32_t>(ranks.size()), group);
    });
  }

  /// A context of the same ranks whose symmetric memory is the caller's: `addresses[rank]` is where the rank's piece of `bytes` lies, the
  /// first `reserved` of which stay the caller's own data.
  Expected<Context> adoptSymmetric(const std::vector<void *> &addresses, uint64_t bytes, uint64_t reserved = 0,
                                   const char *name = nullptr) {
    ditron_symmetric_heap_t heap;
    DITRON_INIT(heap);
    heap.addresses = addresses.data();
    heap.count = static_cast<uint32_t>(addresses.size());
    heap.bytes = bytes;
    heap.reserved_bytes = reserved;
    heap.name = name;
    return detail::make<Context, ditron_context_h>(
        [&](ditron_context_h *adopted) { return ditron_context_adopt_symmetric(handle, &heap, adopted); });
  }

  std::string target() const { return ditron_context_target(handle); }
  uint32_t ranks() const { return ditron_context_ranks(handle); }
  bool isLocal(uint32_t rank) const { return ditron_context_is_local(handle, rank); }
  Status synchronize() { return Status::of(ditron_context_synchronize(handle)); }
  Status check() const { return Status::of(ditron_context_check(handle)); }
  /// Ends what simulated GPUs of this process run: ditron_interrupt. From any thread, and from signal handlers.
  static void interrupt(int signal) { ditron_interrupt(signal); }
  Status restart() { return Status::of(ditron_context_restart(handle)); }

  Expected<Stream> stream(uint32_t rank, const char *name = "stream") {
    return detail::make<Stream, ditron_stream_h>(
        [&](ditron_stream_h *stream) { return ditron_stream_create(handle, rank, name, stream); });
  }
  /// A CUstream of the caller's, which stays the caller's.
  Expected<Stream> adoptStream(uint32_t rank, void *native) {
    return detail::make<Stream, ditron_stream_h>(
        [&](ditron_stream_h *stream) { return ditron_stream_adopt(handle, rank, native, stream); });
  }
  Expected<Event> event(uint32_t rank) {
    return detail::make<Event, ditron_event_h>(
        [&](ditron_event_h *event) { return ditron_event_create(handle, rank, event); });
  }
  Expected<Memory> allocate(uint32_t rank, uint64_t bytes, const char *name) {
    return detail::make<Memory, ditron_memory_h>(
        [&](ditron_memory_h *memory) { return ditron_memory_allocate(handle, rank, bytes, name, memory); });
  }
  Expected<Memory> allocateSymmetric(uint64_t bytes, const char *name) {
    return detail::make<Memory, ditron_memory_h>(
        [&](ditron_memory_h *memory) { return ditron_memory_allocate_symmetric(handle, bytes, name, memory); });
  }
  /// Memory of the caller's, which stays the caller's and must outlive the result.
  Expected<Memory> adopt(uint32_t rank, void *address, uint64_t bytes, const char *name) {
    return detail::make<Memory, ditron_memory_h>(
        [&](ditron_memory_h *memory) { return ditron_memory_adopt(handle, rank, address, bytes, name, memory); });
  }

  /// A kernel of a file on disk.
  Expected<Kernel> kernel(const char *path, const char *name) { return kernelOf(path, nullptr, name); }
  /// A kernel of a text; `path` is what messages call it.
  Expected<Kernel> kernelFromText(const char *path, const char *text, const char *name) {
    return kernelOf(path, text, name);
  }

  Expected<Operator> createOperator(const ditron_operator_options_t &options) {
    return detail::make<Operator, ditron_operator_h>(
        [&](ditron_operator_h *op) { return ditron_operator_create(handle, &options, op); });
  }
  Expected<Collective> createCollective(const Collective::Options &options) {
    ditron_collective_options_t raw;
    DITRON_INIT(raw);
    raw.kind = options.kind;
    raw.dtype = options.dtype;
    raw.reduction = options.reduction;
    raw.has_scale = options.scale.has_value();
    raw.scale = options.scale.value_or(0.0f);
    raw.root = options.root;
    raw.max_elements = options.maxElements;
    raw.concurrent_calls = options.concurrentCalls;
    return createCollective(raw);
  }
  Expected<Collective> createCollective(const ditron_collective_options_t &options) {
    return detail::make<Collective, ditron_collective_h>(
        [&](ditron_collective_h *collective) { return ditron_collective_create(handle, &options, collective); });
  }
  Expected<AllToAllV> createAllToAllV(const AllToAllV::Options &options) {
    ditron_all_to_all_v_options_t raw;
    DITRON_INIT(raw);
    raw.dtype = options.dtype;
    raw.row_elements = options.rowElements;
    raw.max_rows = options.maxRows;
    raw.packed = options.packed;
    return detail::make<AllToAllV, ditron_all_to_all_v_h>(
        [&](ditron_all_to_all_v_h *exchange) { return ditron_all_to_all_v_create(handle, &raw, exchange); });
  }
  Expected<ExpertParallel> createExpertParallel(const ExpertParallel::Options &options) {
    ditron_expert_parallel_options_t raw;
    DITRON_INIT(raw);
    raw.dtype = options.dtype;
    raw.hidden = options.hidden;
    raw.experts = options.experts;
    raw.top_k = options.topK;
    raw.max_tokens = options.maxTokens;
    raw.fp8 = options.fp8;
    raw.capacity = options.capacity;
    raw.max_rows = options.maxRows;
    raw.concurrent_calls = options.concurrentCalls;
    return detail::make<ExpertParallel, ditron_expert_parallel_h>(
        [&](ditron_expert_parallel_h *experts) { return ditron_expert_parallel_create(handle, &raw, experts); });
  }
  Expected<Routing> createRouting(const Routing::Options &options) {
    ditron_routing_options_t raw;
    DITRON_INIT(raw);
    setRouter(raw, options);
    raw.max_tokens = options.maxTokens;
    return detail::make<Routing, ditron_routing_h>(
        [&](ditron_routing_h *routing) { return ditron_routing_create(handle, &raw, routing); });
  }
  Expected<GroupedGemm> createGroupedGemm(const GroupedGemm::Options &options) {
    ditron_grouped_gemm_options_t raw;
    DITRON_INIT(raw);
    raw.max_rows = options.maxRows;
    raw.experts = options.experts;
    raw.n = options.n;
    raw.k = options.k;
    raw.dtype = options.dtype;
    raw.result_dtype = options.resultType.value_or(DITRON_I1);
    raw.weights_plain = options.weightsPlain;
    raw.activation = options.activation;
    raw.slots = options.slots;
    raw.block_scales = options.blockScales;
    return detail::make<GroupedGemm, ditron_grouped_gemm_h>(
        [&](ditron_grouped_gemm_h *product) { return ditron_grouped_gemm_create(handle, &raw, product); });
  }
  /// `weights`: by rank; those of ranks of other processes are not looked at.
  Expected<TensorParallelMoe> createTensorParallelMoe(const TensorParallelMoe::Options &options,
                                                      const std::vector<MoeWeights> &weights) {
    ditron_tensor_parallel_moe_options_t raw;
    DITRON_INIT(raw);
    setRouter(raw, options);
    raw.inner = options.inner;
    raw.max_tokens_per_rank = options.maxTokensPerRank;
    raw.replicated = options.replicated;
    raw.unfused = options.unfused;
    setTraining(raw, options);
    const RawWeights<MoeWeights, ditron_moe_weights_t> given(weights);
    return detail::make<TensorParallelMoe, ditron_tensor_parallel_moe_h>([&](ditron_tensor_parallel_moe_h *layer) {
      return ditron_tensor_parallel_moe_create(handle, &raw, given.pointers.data(), given.count(), layer);
    });
  }
  /// The same for weights of whole experts.
  Expected<ExpertParallelMoe> createExpertParallelMoe(const ExpertParallelMoe::Options &options,
                                                      const std::vector<MoeWeights> &weights) {
    ditron_expert_parallel_moe_options_t raw;
    DITRON_INIT(raw);
    setRouter(raw, options);
    raw.inner = options.inner;
    raw.shared_inner = options.sharedInner;
    raw.max_tokens = options.maxTokens;
    raw.fp8 = options.fp8;
    raw.capacity = options.capacity;
    raw.max_rows = options.maxRows;
    raw.concurrent_calls = options.concurrentCalls;
    setTraining(raw, options);
    const RawWeights<MoeWeights, ditron_moe_weights_t> given(weights);
    return detail::make<ExpertParallelMoe, ditron_expert_parallel_moe_h>([&](ditron_expert_parallel_moe_h *layer) {
      return ditron_expert_parallel_moe_create(handle, &raw, given.pointers.data(), given.count(), layer);
    });
  }
  Expected<Attention> createAttention(const Attention::Options &options) {
    ditron_attention_options_t raw;
    DITRON_INIT(raw);
    raw.dtype = options.dtype;
    raw.heads = options.heads;
    raw.kv_heads = options.kvHeads;
    raw.head_dim = options.headDim;
    raw.value_dim = options.valueDim;
    raw.scale = options.scale.value_or(0.0);
    raw.causal = options.causal;
    raw.windowed = options.window.has_value();
    raw.window = options.window.value_or(0);
    raw.soft_cap = options.softCap.value_or(0.0);
    raw.rows_first = options.rowsFirst;
    raw.page_size = options.pageSize;
    raw.values_transposed = options.valuesTransposed;
    return detail::make<Attention, ditron_attention_h>(
        [&](ditron_attention_h *attention) { return ditron_attention_create(handle, &raw, attention); });
  }
  Expected<AttentionDecode> createAttentionDecode(const AttentionDecode::Options &options) {
    ditron_attention_decode_options_t raw;
    DITRON_INIT(raw);
    raw.dtype = options.dtype;
    raw.max_batch = options.maxBatch;
    raw.heads = options.heads;
    raw.kv_heads = options.kvHeads;
    raw.queries = options.queries;
    raw.head_dim = options.headDim;
    raw.scale = options.scale.value_or(0.0);
    raw.page_size = options.keys.pageSize;
    raw.page_stride = options.keys.pageStride;
    raw.row_stride = options.keys.rowStride;
    raw.head_stride = options.keys.headStride;
    raw.table_stride = options.keys.tableStride;
    raw.over_ranks = options.overRanks;
    raw.concurrent_calls = options.concurrentCalls;
    return detail::make<AttentionDecode, ditron_attention_decode_h>(
        [&](ditron_attention_decode_h *decode) { return ditron_attention_decode_create(handle, &raw, decode); });
  }
  Expected<RingAttention> createRingAttention(const RingAttention::Options &options) {
    ditron_ring_attention_options_t raw;
    DITRON_INIT(raw);
    raw.dtype = options.dtype;
    raw.batch = options.batch;
    raw.heads = options.heads;
    raw.kv_heads = options.kvHeads;
    raw.head_dim = options.headDim;
    raw.scale = options.scale.value_or(0.0);
    raw.causal = options.causal;
    raw.max_tokens = options.maxTokens;
    raw.packed_sequences = options.packedSequences;
    raw.goes_round = options.goesRound;
    raw.backward = options.backward;
    return detail::make<RingAttention, ditron_ring_attention_h>(
        [&](ditron_ring_attention_h *attention) { return ditron_ring_attention_create(handle, &raw, attention); });
  }
  /// `weights`: by rank; those of ranks of other processes are not looked at.
  Expected<TensorParallelAttention>
  createTensorParallelAttention(const TensorParallelAttention::Options &options,
                                const std::vector<TensorParallelAttention::Weights> &weights) {
    ditron_tensor_parallel_attention_options_t raw;
    DITRON_INIT(raw);
    raw.dtype = options.dtype;
    raw.hidden = options.hidden;
    raw.heads = options.heads;
    raw.kv_heads = options.kvHeads;
    raw.head_dim = options.headDim;
    raw.scale = options.scale.value_or(0.0);
    raw.rotary_dim = options.rotaryDim;
    raw.rotary_interleaved = options.rotaryInterleaved;
    raw.norm_epsilon = options.normEpsilon.value_or(0.0);
    raw.qkv_bias = options.qkvBias;
    raw.dealt = options.dealt;
    raw.max_tokens = options.maxTokens;
    raw.max_batch = options.maxBatch;
    raw.max_keys = options.maxKeys;
    raw.page_size = options.pageSize;
    raw.pages = options.pages;
    raw.unfused = options.unfused;
    raw.concurrent_calls = options.concurrentCalls;
    const RawWeights<AttentionWeights, ditron_attention_weights_t> given(weights);
    return detail::make<TensorParallelAttention, ditron_tensor_parallel_attention_h>(
        [&](ditron_tensor_parallel_attention_h *layer) {
          return ditron_tensor_parallel_attention_create(handle, &raw, given.pointers.data(), given.count(), layer);
        });
  }
  /// The same for a layer whose tokens are dealt out.
  Expected<SequenceParallelAttention>
  createSequenceParallelAttention(const SequenceParallelAttention::Options &options,
                                  const std::vector<AttentionWeights> &weights) {
    ditron_sequence_parallel_attention_options_t raw;
    DITRON_INIT(raw);
    raw.dtype = options.dtype;
    raw.batch = options.batch;
    raw.hidden = options.hidden;
    raw.heads = options.heads;
    raw.kv_heads = options.kvHeads;
    raw.head_dim = options.headDim;
    raw.not_causal = !options.causal;
    raw.scale = options.scale.value_or(0.0);
    raw.rotary_dim = options.rotaryDim;
    raw.rotary_interleaved = options.rotaryInterleaved;
    raw.norm_epsilon = options.normEpsilon.value_or(0.0);
    raw.max_tokens = options.maxTokens;
    raw.chunks = options.chunks;
    raw.cache_batch = options.cacheBatch;
    raw.cache_keys = options.cacheKeys;
    raw.page_size = options.pageSize;
    raw.pages = options.pages;
    raw.concurrent_calls = options.concurrentCalls;
    const RawWeights<AttentionWeights, ditron_attention_weights_t> given(weights);
    return detail::make<SequenceParallelAttention, ditron_sequence_parallel_attention_h>(
        [&](ditron_sequence_parallel_attention_h *layer) {
          return ditron_sequence_parallel_attention_create(handle, &raw, given.pointers.data(), given.count(), layer);
        });
  }
  Expected<AllReduceRmsNorm> createAllReduceRmsNorm(const AllReduceRmsNorm::Options &options) {
    ditron_all_reduce_rms_norm_options_t raw;
    DITRON_INIT(raw);
    raw.dtype = options.dtype;
    raw.columns = options.columns;
    raw.max_rows = options.maxRows;
    raw.epsilon = options.epsilon;
    raw.concurrent_calls = options.concurrentCalls;
    return detail::make<AllReduceRmsNorm, ditron_all_reduce_rms_norm_h>(
        [&](ditron_all_reduce_rms_norm_h *norm) { return ditron_all_reduce_rms_norm_create(handle, &raw, norm); });
  }
  Expected<SendReceive> createSendReceive(ditron_dtype_t dtype) {
    return detail::make<SendReceive, ditron_send_receive_h>(
        [&](ditron_send_receive_h *pairs) { return ditron_send_receive_create(handle, dtype, pairs); });
  }
  Expected<Barrier> createBarrier() {
    return detail::make<Barrier, ditron_barrier_h>(
        [&](ditron_barrier_h *barrier) { return ditron_barrier_create(handle, barrier); });
  }

private:
  template <typename Weights, typename Raw> struct RawWeights {
    explicit RawWeights(const std::vector<Weights> &weights) {
      for (const Weights &each : weights)
        raw.push_back(each.raw());
      for (const Raw &each : raw)
        pointers.push_back(&each);
    }
    uint32_t count() const { return static_cast<uint32_t>(pointers.size()); }

    std::vector<Raw> raw;
    std::vector<const Raw *> pointers;
  };
  /// What the options of routing and of the layers have in common.
  template <typename Raw, typename Options> static void setRouter(Raw &raw, const Options &options) {
    raw.dtype = options.dtype;
    raw.hidden = options.hidden;
    raw.experts = options.experts;
    raw.top_k = options.topK;
    raw.score = options.score;
    raw.not_normalized = !options.normalized;
    raw.scale = options.scale;
  }
  template <typename Raw, typename Options> static void setTraining(Raw &raw, const Options &options) {
    raw.training = options.training;
    raw.gradient_dtype = options.gradientType;
    raw.gradients_set = !options.addsGradients;
  }
  Expected<Kernel> kernelOf(const char *path, const char *text, const char *name) {
    ditron_source_t source;
    DITRON_INIT(source);
    source.path = path;
    source.text = text;
    return detail::make<Kernel, ditron_kernel_h>(
        [&](ditron_kernel_h *kernel) { return ditron_kernel_load(handle, &source, name, kernel); });
  }
};

} // namespace v0
} // namespace ditron

#endif // DITRON_DITRON_HPP
