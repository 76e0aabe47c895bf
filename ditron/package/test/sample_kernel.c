/* A kernel as the compiler makes them for simulated targets: out[0] = n + TAG, by every thread. */
void sample_entry(void **arguments) {
  int *out = *(int **)arguments[0];
  const int n = *(const int *)arguments[1];
  out[0] = n + 1000;
}
void sample_constant(void **arguments) {
  int *out = *(int **)arguments[0];
  out[0] = 2000;
}
