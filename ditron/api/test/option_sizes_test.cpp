//===- option_sizes_test.cpp - What every size option of the operators says about a value that does not fit -------===//
//
// Of valid options one member after the other gets sizes that are negative, zero, odd, huge, or overflow when they are multiplied. Whatever an
// operator does not take it refuses in words: the message has the value, or the member's name, and what would be accepted.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/api/test/ApiTest.h"

#include <cctype>
#include <functional>
#include <limits>

namespace ditron::api::test {
namespace {

constexpr int64_t huge = std::numeric_limits<int64_t>::max();
constexpr int64_t sizes[] = {
    -huge - 1,        -(int64_t(1) << 33), -3,  -1, 0, 1, 3, 5, 7, 33, 4097, int64_t(1) << 31, (int64_t(1) << 32) + 1,
    int64_t(1) << 40, int64_t(1) << 62,    huge};

/// What kernels count in 32 bits.
constexpr int64_t mostSize = std::numeric_limits<int32_t>::max();

/// A member of options: its name, and what gives it a value, false where its type has none such.
template <typename Options> struct Member {
  const char *name;
  std::function<bool(Options &, int64_t)> set;
  bool hasNoLimit = false;
};

template <typename Options, typename T> Member<Options> member(const char *name, T Options::*place) {
  return {name, [place](Options &options, int64_t value) {
            options.*place = static_cast<T>(value);
            return static_cast<int64_t>(options.*place) == value;
          }};
}

/// Of one that is cut to what can be, or belongs to calls, or is a distance in memory.
template <typename Options, typename T> Member<Options> withoutLimit(const char *name, T Options::*place) {
  Member<Options> made = member(name, place);
  made.hasNoLimit = true;
  return made;
}

/// One that says yes or no, of values that say neither.
template <typename Options> Member<Options> flag(const char *name, uint32_t Options::*place) {
  Member<Options> made = member(name, place);
  made.set = [set = made.set](Options &options, int64_t value) { return set(options, value) && value > 1; };
  return made;
}

bool says(const std::string &message, const std::string &word) { return message.find(word) != std::string::npos; }

/// "page_size" as the library says it: "pageSize".
std::string inLibraryStyle(std::string name) {
  for (size_t at; (at = name.find('_')) != std::string::npos;)
    name.replace(at, 2, 1, static_cast<char>(std::toupper(name[at + 1])));
  return name;
}

class OptionSizes : public Api {
protected:
  /// create(options) makes an operator and destroys it again.
  template <typename Options>
  void check(const Options &valid, const std::vector<Member<Options>> &members,
             const std::function<ditron_status_t(const Options &)> &create) {
    ASSERT_DONE(create(valid));
    for (const Member<Options> &each : members)
      for (const int64_t value : sizes) {
        Options options = valid;
        if (!each.set(options, value))
          continue;
        const ditron_status_t status = create(options);
        const std::string what = std::string(each.name) + " = " + std::to_string(value);
        if (status == DITRON_OK) {
          EXPECT_GE(value, 0) << what << " is accepted";
          EXPECT_TRUE(value <= mostSize || each.hasNoLimit) << what << " is accepted";
          continue;
        }
        const std::string message = lastMessage();
        EXPECT_TRUE(status == DITRON_INVALID_ARGUMENT || status == DITRON_UNSUPPORTED ||
                    status == DITRON_RESOURCE_EXHAUSTED)
            << what << ": " << message;
        if (status == DITRON_RESOURCE_EXHAUSTED)
          continue; // it says how much memory there is
        EXPECT_TRUE(says(message, "accepted") || says(message, "must") || says(message, "at most"))
            << what << ": " << message;
        EXPECT_TRUE(says(message, std::to_string(value)) || says(message, inLibraryStyle(each.name)))
            << what << ": " << message;
      }
  }

  /// Of operators that create(context, options, more..., place) makes.
  template <typename Options, typename Create, typename Handle, typename... More>
  void checkCreation(const Options &valid, const std::vector<Member<Options>> &members, Create create,
                     void (*destroy)(Handle), More... more) {
    check<Options>(valid, members, [&](const Options &options) {
      Handle made = nullptr;
      const ditron_status_t status = create(context, &options, more..., &made);
      destroy(made);
      return status;
    });
  }

  std::vector<float> memory = std::vector<float>(1 << 16);
};

#define MEMBER(type, name) member(#name, &type::name)
#define FLAG(type, name) flag(#name, &type::name)
#define MEMBER_WITHOUT_LIMIT(type, name) withoutLimit(#name, &type::name)

TEST_F(OptionSizes, Attention) {
  using Options = ditron_attention_options_t;
  Options valid;
  DITRON_INIT(valid);
  valid.dtype = DITRON_F16;
  valid.heads = 4, valid.kv_heads = 2, valid.head_dim = 32;
  checkCreation<Options>(valid,
                         {MEMBER(Options, heads), MEMBER(Options, kv_heads), MEMBER(Options, head_dim),
                          MEMBER(Options, value_dim), MEMBER(Options, page_size), FLAG(Options, causal),
                          FLAG(Options, windowed), FLAG(Options, rows_first), FLAG(Options, values_transposed)},
                         ditron_attention_create, ditron_attention_destroy);
  Options windowed = valid;
  windowed.windowed = 1;
  checkCreation<Options>(windowed, {MEMBER(Options, window)}, ditron_attention_create, ditron_attention_destroy);
}

TEST_F(OptionSizes, AttentionShape) {
  using Shape = ditron_attention_shape_t;
  ditron_attention_options_t options;
  DITRON_INIT(options);
  options.dtype = DITRON_F16;
  options.heads = 4, options.kv_heads = 2, options.head_dim = 32, options.rows_first = 1;
  for (const int64_t page : {0, 16}) {
    options.page_size = page;
    ditron_attention_h made = nullptr;
    ASSERT_DONE(ditron_attention_create(context, &options, &made));
    ditron_memory_h held = adopt(memory, "x");
    ditron_attention_operands_t operands;
    DITRON_INIT(operands);
    operands.q = operands.k = operands.v = operands.out = memory.data();
    int32_t *words = reinterpret_cast<int32_t *>(memory.data());
    if (page)
      operands.block_table = operands.key_lengths = words;
    Shape valid;
    DITRON_INIT(valid);
    valid.batch = 2, valid.queries = 16, valid.keys = 32;
    valid.pages = page ? 4 : 0;
    const auto prepare = [&](const Shape &shape) { return ditron_attention_prepare(made, &shape, &operands); };
    check<Shape>(valid, {MEMBER(Shape, batch), MEMBER(Shape, queries), MEMBER(Shape, keys), MEMBER(Shape, pages)},
                 prepare);
    operands.query_offsets = words;
    valid.packed_queries = 20;
    check<Shape>(valid, {MEMBER(Shape, packed_queries), MEMBER(Shape, queries)}, prepare);
    if (!page) {
      operands.key_offsets = words;
      valid.packed_keys = 40;
      check<Shape>(valid, {MEMBER(Shape, packed_keys), MEMBER(Shape, keys)}, prepare);
    }
    ditron_memory_destroy(held);
    ditron_attention_destroy(made);
  }
}

TEST_F(OptionSizes, AttentionDecode) {
  using Options = ditron_attention_decode_options_t;
  for (const bool overRanks : {false, true}) {
    Options valid;
    DITRON_INIT(valid);
    valid.dtype = DITRON_F16;
    valid.max_batch = 2, valid.heads = 4, valid.kv_heads = 2, valid.head_dim = 32;
    valid.page_size = 16, valid.page_stride = 16 * 64, valid.row_stride = 64, valid.head_stride = 32;
    valid.table_stride = 4;
    valid.over_ranks = overRanks;
    std::vector<Member<Options>> members = {MEMBER(Options, max_batch),
                                            MEMBER(Options, heads),
                                            MEMBER(Options, kv_heads),
                                            MEMBER(Options, queries),
                                            MEMBER(Options, head_dim),
                                            MEMBER(Options, page_size),
                                            MEMBER_WITHOUT_LIMIT(Options, page_stride),
                                            MEMBER_WITHOUT_LIMIT(Options, row_stride),
                                            MEMBER_WITHOUT_LIMIT(Options, head_stride),
                                            MEMBER(Options, table_stride),
                                            FLAG(Options, over_ranks)};
    if (overRanks)
      members.push_back(MEMBER_WITHOUT_LIMIT(Options, concurrent_calls));
    checkCreation<Options>(valid, members, ditron_attention_decode_create, ditron_attention_decode_destroy);
  }
}

TEST_F(OptionSizes, RingAttention) {
  using Options = ditron_ring_attention_options_t;
  for (const bool packed : {false, true}) {
    Options valid;
    DITRON_INIT(valid);
    valid.dtype = DITRON_F16;
    valid.batch = packed ? 1 : 2, valid.heads = 4, valid.kv_heads = 2, valid.head_dim = 32;
    valid.max_tokens = 64, valid.packed_sequences = packed ? 3 : 0;
    checkCreation<Options>(valid,
                           {MEMBER(Options, batch), MEMBER(Options, heads), MEMBER(Options, kv_heads),
                            MEMBER(Options, head_dim), MEMBER(Options, max_tokens), MEMBER(Options, packed_sequences),
                            FLAG(Options, causal), FLAG(Options, goes_round), FLAG(Options, backward)},
                           ditron_ring_attention_create, ditron_ring_attention_destroy);
  }
}

TEST_F(OptionSizes, AllReduceRmsNorm) {
  using Options = ditron_all_reduce_rms_norm_options_t;
  Options valid;
  DITRON_INIT(valid);
  valid.columns = 64, valid.max_rows = 8;
  checkCreation<Options>(
      valid, {MEMBER(Options, columns), MEMBER(Options, max_rows), MEMBER_WITHOUT_LIMIT(Options, concurrent_calls)},
      ditron_all_reduce_rms_norm_create, ditron_all_reduce_rms_norm_destroy);
}

TEST_F(OptionSizes, TensorParallelAttention) {
  using Options = ditron_tensor_parallel_attention_options_t;
  ditron_attention_weights_t own;
  DITRON_INIT(own);
  own.qkv = own.out = own.q_norm = own.k_norm = memory.data();
  own.rotary = memory.data();
  for (const bool dealt : {false, true}) {
    Options valid;
    DITRON_INIT(valid);
    valid.dtype = DITRON_F16;
    valid.hidden = 64, valid.heads = 4, valid.kv_heads = 2, valid.head_dim = 32, valid.rotary_dim = 16;
    valid.norm_epsilon = 1e-5;
    valid.max_tokens = 32, valid.max_batch = 2, valid.max_keys = 64, valid.page_size = 16, valid.pages = 8;
    valid.dealt = dealt;
    const ditron_attention_weights_t *weights[] = {&own, &own};
    check<Options>(
        valid,
        {MEMBER(Options, hidden), MEMBER(Options, heads), MEMBER(Options, kv_heads), MEMBER(Options, head_dim),
         MEMBER(Options, rotary_dim), MEMBER(Options, max_tokens), MEMBER(Options, max_batch),
         MEMBER(Options, max_keys), MEMBER(Options, page_size), MEMBER(Options, pages),
         MEMBER_WITHOUT_LIMIT(Options, concurrent_calls), FLAG(Options, dealt), FLAG(Options, unfused)},
        [&](const Options &options) {
          own.rotary = options.rotary_dim == 0 ? nullptr : memory.data();
          ditron_tensor_parallel_attention_h made = nullptr;
          const ditron_status_t status = ditron_tensor_parallel_attention_create(context, &options, weights, 2, &made);
          ditron_tensor_parallel_attention_destroy(made);
          return status;
        });
  }
}

TEST_F(OptionSizes, SequenceParallelAttention) {
  using Options = ditron_sequence_parallel_attention_options_t;
  ditron_attention_weights_t own;
  DITRON_INIT(own);
  own.qkv = own.out = own.q_norm = own.k_norm = memory.data();
  own.rotary = memory.data();
  Options valid;
  DITRON_INIT(valid);
  valid.dtype = DITRON_F16;
  valid.hidden = 64, valid.heads = 4, valid.kv_heads = 2, valid.head_dim = 32, valid.rotary_dim = 16;
  valid.norm_epsilon = 1e-5;
  valid.max_tokens = 32, valid.cache_batch = 2, valid.cache_keys = 64, valid.page_size = 16, valid.pages = 8;
  const ditron_attention_weights_t *weights[] = {&own, &own};
  checkCreation<Options>(
      valid,
      {MEMBER(Options, batch), MEMBER(Options, hidden), MEMBER(Options, heads), MEMBER(Options, kv_heads),
       MEMBER(Options, head_dim), MEMBER(Options, rotary_dim), MEMBER(Options, max_tokens), MEMBER(Options, chunks),
       MEMBER(Options, cache_batch), MEMBER(Options, cache_keys), MEMBER(Options, page_size), MEMBER(Options, pages),
       MEMBER_WITHOUT_LIMIT(Options, concurrent_calls), FLAG(Options, not_causal)},
      ditron_sequence_parallel_attention_create, ditron_sequence_parallel_attention_destroy, weights, 2);
}

TEST_F(OptionSizes, Routing) {
  using Options = ditron_routing_options_t;
  Options valid;
  DITRON_INIT(valid);
  valid.experts = 8, valid.top_k = 2, valid.max_tokens = 16, valid.hidden = 64;
  checkCreation<Options>(
      valid, {MEMBER(Options, experts), MEMBER(Options, top_k), MEMBER(Options, max_tokens), MEMBER(Options, hidden)},
      ditron_routing_create, ditron_routing_destroy);
}

TEST_F(OptionSizes, GroupedGemm) {
  using Options = ditron_grouped_gemm_options_t;
  for (const bool scaled : {false, true}) {
    Options valid;
    DITRON_INIT(valid);
    valid.max_rows = 32, valid.experts = 4, valid.n = 64, valid.k = 128, valid.slots = 2;
    valid.block_scales = scaled;
    if (scaled)
      valid.dtype = DITRON_F8E4NV;
    checkCreation<Options>(valid,
                           {MEMBER(Options, max_rows), MEMBER(Options, experts), MEMBER(Options, n), MEMBER(Options, k),
                            MEMBER_WITHOUT_LIMIT(Options, slots), FLAG(Options, weights_plain),
                            FLAG(Options, block_scales)},
                           ditron_grouped_gemm_create, ditron_grouped_gemm_destroy);
  }
}

TEST_F(OptionSizes, TensorParallelMoe) {
  using Options = ditron_tensor_parallel_moe_options_t;
  ditron_moe_weights_t own;
  DITRON_INIT(own);
  own.router = own.up = own.down = memory.data();
  const ditron_moe_weights_t *weights[] = {&own, &own};
  for (const bool training : {false, true}) {
    Options valid;
    DITRON_INIT(valid);
    valid.hidden = 64, valid.inner = 64, valid.experts = 4, valid.top_k = 2, valid.max_tokens_per_rank = 16;
    valid.training = training;
    checkCreation<Options>(valid,
                           {MEMBER(Options, hidden), MEMBER(Options, inner), MEMBER(Options, experts),
                            MEMBER(Options, top_k), MEMBER(Options, max_tokens_per_rank), FLAG(Options, replicated),
                            FLAG(Options, training)},
                           ditron_tensor_parallel_moe_create, ditron_tensor_parallel_moe_destroy, weights, 2);
  }
}

TEST_F(OptionSizes, ExpertParallelMoe) {
  using Options = ditron_expert_parallel_moe_options_t;
  ditron_moe_weights_t own;
  DITRON_INIT(own);
  own.router = own.up = own.down = own.shared_up = own.shared_down = memory.data();
  const ditron_moe_weights_t *weights[] = {&own, &own};
  for (const bool training : {false, true}) {
    Options valid;
    DITRON_INIT(valid);
    valid.hidden = 64, valid.inner = 64, valid.shared_inner = 64, valid.experts = 4, valid.top_k = 2;
    valid.max_tokens = 16;
    valid.training = training;
    checkCreation<Options>(valid,
                           {MEMBER(Options, hidden), MEMBER(Options, inner), MEMBER(Options, shared_inner),
                            MEMBER(Options, experts), MEMBER(Options, top_k), MEMBER(Options, max_tokens),
                            MEMBER(Options, capacity), MEMBER_WITHOUT_LIMIT(Options, max_rows),
                            MEMBER_WITHOUT_LIMIT(Options, concurrent_calls), FLAG(Options, training),
                            FLAG(Options, fp8)},
                           ditron_expert_parallel_moe_create, ditron_expert_parallel_moe_destroy, weights, 2);
  }
}

TEST_F(OptionSizes, ExpertParallel) {
  using Options = ditron_expert_parallel_options_t;
  Options valid;
  DITRON_INIT(valid);
  valid.hidden = 64, valid.experts = 4, valid.top_k = 2, valid.max_tokens = 16;
  checkCreation<Options>(valid,
                         {MEMBER(Options, hidden), MEMBER(Options, experts), MEMBER(Options, top_k),
                          MEMBER(Options, max_tokens), MEMBER(Options, capacity),
                          MEMBER_WITHOUT_LIMIT(Options, max_rows), MEMBER_WITHOUT_LIMIT(Options, concurrent_calls)},
                         ditron_expert_parallel_create, ditron_expert_parallel_destroy);
}

TEST_F(OptionSizes, TensorParallelProducts) {
  using Options = ditron_operator_options_t;
  for (const auto kind : {DITRON_ALL_GATHER_GEMM, DITRON_GEMM_REDUCE_SCATTER, DITRON_GEMM_ALL_REDUCE}) {
    Options valid;
    DITRON_INIT(valid);
    valid.kind = kind;
    valid.m = 32, valid.n = 64, valid.k = 64;
    const auto create = [&](const Options &options) {
      ditron_operator_h made = nullptr;
      ditron_status_t status = ditron_operator_create(context, &options, &made);
      ditron_plan_h plan = nullptr;
      if (status == DITRON_OK && options.m < 4096 && options.n < 4096 && options.k < 4096)
        status = ditron_operator_prepare(made, options.m, options.n, options.k, &plan);
      ditron_plan_destroy(plan);
      ditron_operator_destroy(made);
      return status;
    };
    check<Options>(valid,
                   {MEMBER(Options, m), MEMBER_WITHOUT_LIMIT(Options, n), MEMBER_WITHOUT_LIMIT(Options, k),
                    MEMBER_WITHOUT_LIMIT(Options, chunks_per_rank), MEMBER_WITHOUT_LIMIT(Options, concurrent_calls),
                    FLAG(Options, weight_transposed)},
                   create);
  }
}

TEST_F(OptionSizes, PlansOfProducts) {
  using Options = ditron_plan_options_t;
  for (const auto kind : {DITRON_ALL_GATHER_GEMM, DITRON_GEMM_REDUCE_SCATTER, DITRON_GEMM_ALL_REDUCE}) {
    ditron_operator_options_t options;
    DITRON_INIT(options);
    options.kind = kind;
    options.m = 32, options.n = 64, options.k = 64;
    ditron_operator_h made = nullptr;
    ASSERT_DONE(ditron_operator_create(context, &options, &made));
    Options valid;
    DITRON_INIT(valid);
    valid.m = 32, valid.n = 64, valid.k = 64;
    check<Options>(valid,
                   {MEMBER(Options, m), MEMBER(Options, n), MEMBER(Options, k), MEMBER(Options, row_stride_a),
                    MEMBER(Options, row_stride_b), MEMBER(Options, row_stride_c)},
                   [&](const Options &given) {
                     ditron_plan_h plan = nullptr;
                     const ditron_status_t status = ditron_operator_prepare_strided(made, &given, &plan);
                     ditron_plan_destroy(plan);
                     return status;
                   });
    ditron_operator_destroy(made);
  }
}

} // namespace
} // namespace ditron::api::test
