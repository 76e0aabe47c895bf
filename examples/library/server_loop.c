/* A server's loop in C: AllGather+GEMM over 4 ranks of one process, prepared once, called for every request. What the loop does is
 * append to streams: nothing is compiled, looked up or allocated. Arguments: the target, "sim:sm_80" or "cuda", and a package, from
 * which all kernels then come; without one they are compiled now. The package of this loop:
 *   ditron build --op ag_gemm --shapes shapes.txt --target sim:sm_80 -o server.ditron     with the line
 *   m=96 n=64 k=32 ranks=4 dtype=fp32                                                     in shapes.txt
 * Prints:
 *   10 requests of 96 x 64 x 32 on 4 ranks of sim:sm_80: results right
 */
#include <ditron/ditron.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, M = 96, N = 64, K = 32, REQUESTS = 10 };

static void check(ditron_status_t status, const char *action) {
  ditron_error_t error;
  if (status == DITRON_OK)
    return;
  DITRON_INIT(error);
  ditron_last_error(&error);
  fprintf(stderr, "server_loop: %s: %s: %s\n", action, ditron_status_name(status), error.message);
  exit(1);
}

static float activation(int request, int rank, int index) { return (float)((index + request * 5 + rank * 3) % 7 - 3); }
static float weight(int rank, int index) { return (float)((index * 3 + rank) % 5 - 2); }

static ditron_tensor_t tensor(ditron_memory_h memory, uint32_t rank, const int64_t shape[2]) {
  ditron_tensor_t result;
  DITRON_INIT(result);
  result.address = ditron_memory_address(memory, rank);
  result.dtype = DITRON_F32;
  result.dimensions = 2;
  result.shape = shape;
  return result;
}

/* The product of all ranks' rows with the rank's weight, for one request. */
static int is_right(int request, int rank, const float *c) {
  for (int row = 0; row < M; ++row)
    for (int column = 0; column < N; ++column) {
      double sum = 0;
      for (int k = 0; k < K; ++k)
        sum += activation(request, row / (M / RANKS), row % (M / RANKS) * K + k) * weight(rank, k * N + column);
      if (fabs(sum - c[row * N + column]) > 1e-4)
        return 0;
    }
  return 1;
}

int main(int count, char **arguments) {
  ditron_context_options_t options;
  ditron_operator_options_t problem;
  ditron_context_h context;
  ditron_operator_h product;
  ditron_plan_h plan;
  ditron_stream_h streams[RANKS];
  ditron_memory_h a[RANKS], b[RANKS], c[RANKS];
  static float host[M * N];
  const int64_t a_shape[2] = {M / RANKS, K}, b_shape[2] = {K, N}, c_shape[2] = {M, N};

  DITRON_INIT(options);
  options.target = count > 1 ? arguments[1] : "sim:sm_80";
  options.ranks = RANKS;
  options.time_limit_seconds = 60;
  if (count > 2) {
    options.packages = (const char *const *)&arguments[2];
    options.package_count = 1;
    options.policy = DITRON_KERNELS_AOT_ONLY;
  }
  check(ditron_context_create(&options, &context), "context");
  DITRON_INIT(problem);
  problem.kind = DITRON_ALL_GATHER_GEMM;
  problem.dtype = DITRON_F32;
  problem.m = M;
  problem.n = N;
  problem.k = K;
  check(ditron_operator_create(context, &problem, &product), "operator");
  check(ditron_operator_prepare(product, M, N, K, &plan), "plan");
  for (uint32_t rank = 0; rank < RANKS; ++rank) {
    check(ditron_stream_create(context, rank, "requests", &streams[rank]), "stream");
    check(ditron_memory_allocate(context, rank, sizeof(float) * M / RANKS * K, "a", &a[rank]), "a");
    check(ditron_memory_allocate(context, rank, sizeof(float) * K * N, "b", &b[rank]), "b");
    check(ditron_memory_allocate(context, rank, sizeof(float) * M * N, "c", &c[rank]), "c");
    for (int i = 0; i < K * N; ++i)
      host[i] = weight((int)rank, i);
    check(ditron_memory_upload(b[rank], rank, 0, host, sizeof(float) * K * N), "upload of b");
  }

  for (int request = 0; request < REQUESTS; ++request) {
    for (uint32_t rank = 0; rank < RANKS; ++rank) {
      for (int i = 0; i < M / RANKS * K; ++i)
        host[i] = activation(request, (int)rank, i);
      check(ditron_memory_upload(a[rank], rank, 0, host, sizeof(float) * M / RANKS * K), "upload of a");
    }
    for (uint32_t rank = 0; rank < RANKS; ++rank) {
      const ditron_tensor_t a_tensor = tensor(a[rank], rank, a_shape), b_tensor = tensor(b[rank], rank, b_shape),
                            c_tensor = tensor(c[rank], rank, c_shape);
      check(ditron_plan_enqueue(plan, streams[rank], &a_tensor, &b_tensor, &c_tensor), "enqueue");
    }
    check(ditron_context_synchronize(context), "request");
    for (uint32_t rank = 0; rank < RANKS; ++rank) {
      check(ditron_memory_download(c[rank], rank, 0, host, sizeof(host)), "download of c");
      if (!is_right(request, (int)rank, host)) {
        printf("request %d: rank %u computed something else\n", request, rank);
        return 1;
      }
    }
  }
  printf("%d requests of %d x %d x %d on %d ranks of %s: results right\n", REQUESTS, M, N, K, RANKS, ditron_context_target(context));

  for (uint32_t rank = 0; rank < RANKS; ++rank) {
    ditron_memory_destroy(a[rank]);
    ditron_memory_destroy(b[rank]);
    ditron_memory_destroy(c[rank]);
    ditron_stream_destroy(streams[rank]);
  }
  ditron_plan_destroy(plan);
  ditron_operator_destroy(product);
  ditron_context_destroy(context);
  return 0;
}
