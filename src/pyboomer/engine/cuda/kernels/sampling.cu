// Draws: the sample of a rule (Alg. 1, line 5), the same as engine/sampling.py draws. The host draws features and labels.

#define GOLDEN 0x9E3779B97F4A7C15ull

__device__ __forceinline__ u64 mix(u64 z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

__device__ __forceinline__ u64 start_stream(u64 seed, u64 rule, u64 step) {
  u64 z = mix(seed + GOLDEN);
  z = mix(z + rule * GOLDEN);
  return mix(z + step * GOLDEN);
}

__device__ __forceinline__ i64 below(u64 z, i64 n) { return (i64)((double)(mix(z) >> 11) * 0x1p-53 * (double)n); }

// The next rule begins.
KERNEL begin(const Fit* fit) {
  const Fit& f = *fit;
  State& s = *f.state;
  int m = (int)(f.label_draws ? f.n_labels : f.K);
  i64 slot = s.rule + 1 - f.first;
  for (int i = threadIdx.x; i < m; i += blockDim.x) f.labels[i] = f.label_draws ? f.label_draws[slot * m + i] : i;
  __syncthreads();
  if (threadIdx.x) return;
  s.rule += 1;
  s.size = s.n = s.n_next = s.done = s.ending = s.side = s.n_covered = s.arrived = s.solved = 0;
  s.m = m;
  s.choosing = f.head != MULTI;
  s.best = 0;
}

// counts[i] += 1 for examples i drawn with replacement
KERNEL draw(const Fit* fit) {
  const Fit& f = *fit;
  u64 z = start_stream(f.seed, (u64)f.state->rule, 0);
  i64 step = (i64)gridDim.x * blockDim.x;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < f.n_draws; i += step)
    atomicAdd(f.counts + below(z + (u64)(i + 1) * GOLDEN, f.N), 1u);
}
