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

/* What lives as long as the server. */
struct server {
  ditron_context_h context;
  ditron_operator_h product;
  ditron_plan_h plan;
  ditron_stream_h streams[RANKS];
  ditron_memory_h a[RANKS], b[RANKS], c[RANKS];
};

static float host[M * N]; /* What goes to and comes from the ranks. */

/* `package` may be null: then the kernels are compiled now. */
static void open_context(struct server *server, const char *target, const char *package) {
  ditron_context_options_t options;
  DITRON_INIT(options);
  options.target = target;
  options.ranks = RANKS;
  options.time_limit_seconds = 60;
  if (package) {
    options.packages = &package;
    options.package_count = 1;
    options.policy = DITRON_KERNELS_AOT_ONLY;
  }
  check(ditron_context_create(&options, &server->context), "context");
}

static void prepare(struct server *server) {
  ditron_operator_options_t problem;
  DITRON_INIT(problem);
  problem.kind = DITRON_ALL_GATHER_GEMM;
  problem.dtype = DITRON_F32;
  problem.m = M;
  problem.n = N;
  problem.k = K;
  check(ditron_operator_create(server->context, &problem, &server->product), "operator");
  check(ditron_operator_prepare(server->product, M, N, K, &server->plan), "plan");
  for (uint32_t rank = 0; rank < RANKS; ++rank) {
    check(ditron_stream_create(server->context, rank, "requests", &server->streams[rank]), "stream");
    check(ditron_memory_allocate(server->context, rank, sizeof(float) * M / RANKS * K, "a", &server->a[rank]), "a");
    check(ditron_memory_allocate(server->context, rank, sizeof(float) * K * N, "b", &server->b[rank]), "b");
    check(ditron_memory_allocate(server->context, rank, sizeof(float) * M * N, "c", &server->c[rank]), "c");
    for (int i = 0; i < K * N; ++i)
      host[i] = weight((int)rank, i);
    check(ditron_memory_upload(server->b[rank], rank, 0, host, sizeof(float) * K * N), "upload of b");
  }
}

/* 1 if all ranks computed what they should. */
static int serve(struct server *server, int request) {
  const int64_t a_shape[2] = {M / RANKS, K}, b_shape[2] = {K, N}, c_shape[2] = {M, N};
  for (uint32_t rank = 0; rank < RANKS; ++rank) {
    for (int i = 0; i < M / RANKS * K; ++i)
      host[i] = activation(request, (int)rank, i);
    check(ditron_memory_upload(server->a[rank], rank, 0, host, sizeof(float) * M / RANKS * K), "upload of a");
  }
  for (uint32_t rank = 0; rank < RANKS; ++rank) {
    const ditron_tensor_t a = tensor(server->a[rank], rank, a_shape), b = tensor(server->b[rank], rank, b_shape),
                          c = tensor(server->c[rank], rank, c_shape);
    check(ditron_plan_enqueue(server->plan, server->streams[rank], &a, &b, &c), "enqueue");
  }
  check(ditron_context_synchronize(server->context), "request");
  for (uint32_t rank = 0; rank < RANKS; ++rank) {
    check(ditron_memory_download(server->c[rank], rank, 0, host, sizeof(host)), "download of c");
    if (!is_right(request, (int)rank, host)) {
      printf("request %d: rank %u computed something else\n", request, rank);
      return 0;
    }
  }
  return 1;
}

static void close_server(struct server *server) {
  for (uint32_t rank = 0; rank < RANKS; ++rank) {
    ditron_memory_destroy(server->a[rank]);
    ditron_memory_destroy(server->b[rank]);
    ditron_memory_destroy(server->c[rank]);
    ditron_stream_destroy(server->streams[rank]);
  }
  ditron_plan_destroy(server->plan);
  ditron_operator_destroy(server->product);
  ditron_context_destroy(server->context);
}

int main(int count, char **arguments) {
  struct server server;
  open_context(&server, count > 1 ? arguments[1] : "sim:sm_80", count > 2 ? arguments[2] : NULL);
  prepare(&server);
  for (int request = 0; request < REQUESTS; ++request)
    if (!serve(&server, request))
      return 1;
  printf("%d requests of %d x %d x %d on %d ranks of %s: results right\n", REQUESTS, M, N, K, RANKS,
         ditron_context_target(server.context));
  close_server(&server);
  return 0;
}
