// AllReduce as an inference server uses it: one collective for all sizes, in place, prepared once; the sizes of decoding are captured into
// graphs and replayed between eager calls of others. Arguments: the target, "sim:sm_80" or "cuda", and a package, from which all
// kernels then come. The package of this program:
//   ditron build --op all_reduce --shapes shapes.txt --target sim:sm_80 -o all_reduce.ditron     with a line for each size,
//   elements=64 ranks=4 dtype=fp32 max_elements=100000                                           in shapes.txt
// Prints:
//   all_reduce of 64, 4096 and 100000 elements on 4 ranks of sim:sm_80: every rank has the sums
#include <ditron/ditron.hpp>

#include <cstdio>
#include <vector>

static constexpr uint32_t ranks = 4;
static constexpr int64_t sizes[] = {64, 4096, 100000};
static constexpr int64_t most = 100000;

static void check(ditron::Status status) {
  if (!status.ok())
    throw ditron::Error(std::move(status));
}

static ditron::Context openContext(const char *target, const char *package) {
  ditron_context_options_t options;
  DITRON_INIT(options);
  options.target = target;
  options.ranks = ranks;
  options.time_limit_seconds = 60;
  if (package) {
    options.packages = &package;
    options.package_count = 1;
    options.policy = DITRON_KERNELS_AOT_ONLY;
  }
  return ditron::Context::create(options).value();
}

/// What lives as long as the server.
struct Server {
  ditron::Context context;
  ditron::Collective reduce;
  std::vector<ditron::Stream> streams;
  std::vector<ditron::Memory> activations;
  std::vector<ditron::Graph> decode; ///< Of the smallest size.

  Server(const char *target, const char *package) : context(openContext(target, package)) {
    ditron::Collective::Options options;
    options.dtype = DITRON_F32;
    options.maxElements = most;
    reduce = context.createCollective(options).value();
    for (int64_t elements : sizes)
      check(reduce.prepare(elements));
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      streams.push_back(context.stream(rank).value());
      activations.push_back(context.allocate(rank, most * sizeof(float), "activations").value());
      check(streams[rank].beginCapture());
      check(enqueue(rank, sizes[0]));
      decode.push_back(ditron::Graph::endCapture(streams[rank]).value());
    }
  }

  ditron::Status enqueue(uint32_t rank, int64_t elements) {
    void *x = activations[rank].address(rank);
    return reduce.enqueue(streams[rank], x, x, elements);
  }

  /// True if every rank has the sums.
  bool serve(int64_t elements) {
    std::vector<float> values(elements);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      for (int64_t i = 0; i < elements; ++i)
        values[i] = static_cast<float>(i % 7 + rank);
      check(activations[rank].upload(rank, values.data(), elements * sizeof(float)));
    }
    for (uint32_t rank = 0; rank < ranks; ++rank)
      check(elements == sizes[0] ? decode[rank].launch(streams[rank]) : enqueue(rank, elements));
    check(context.synchronize());
    bool right = true;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      check(activations[rank].download(rank, values.data(), elements * sizeof(float)));
      for (int64_t i = 0; i < elements; ++i)
        right = right && values[i] == static_cast<float>(4 * (i % 7) + 6);
    }
    return right;
  }
};

int main(int count, char **arguments) {
  try {
    Server server(count > 1 ? arguments[1] : "sim:sm_80", count > 2 ? arguments[2] : nullptr);
    bool right = true;
    for (int request = 0; request < 3; ++request)
      for (int64_t elements : sizes)
        right = server.serve(elements) && right;
    std::printf("all_reduce of 64, 4096 and 100000 elements on %u ranks of %s: %s\n", ranks,
                server.context.target().c_str(), right ? "every rank has the sums" : "something else");
    return right ? 0 : 1;
  } catch (const ditron::Error &error) {
    std::fprintf(stderr, "all_reduce: %s\n", error.what());
    return 1;
  }
}
