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

__device__ __forceinline__ u32 below(u64 z, i64 n) { return (u32)(i64)((double)(mix(z) >> 11) * 0x1p-53 * (double)n); }

__device__ const int* find_draw(const Fit& f, const State& s, int step) {
  return f.draws + (step * f.n_ahead + s.slot) * f.F;
}

// Bin numbers, example by example
KERNEL transpose(const Fit* fit) {
  const Fit& f = *fit;
  for (i64 row = (i64)blockIdx.x * blockDim.x + threadIdx.x; row < f.N; row += (i64)gridDim.x * blockDim.x)
    for (i64 i = 0; i < f.L; i++) f.row_codes[row * f.row_pitch + i] = f.codes[i * f.N + row];
}

// The bins of an example, of the features that a step draws.
__device__ void take_codes(const Fit& f, const State& s, const int* features, u32 row, int place) {
  const u8* codes = f.row_codes + row * f.row_pitch;
  u32* words = (u32*)s.codes + place;
#pragma unroll 4
  for (int w = 0; w < f.n_words; w++) {
    u32 word = 0;
#pragma unroll
    for (int b = 0; b < 4; b++)
      if (4 * w + b < f.F) word |= (u32)codes[features[4 * w + b]] << 8 * b;
    words[w * f.sample_pitch] = word;
  }
}

// The bodies of a batch begin.
KERNEL begin(const Fit* fit) {
  const Fit& f = *fit;
  State& s = f.states[blockIdx.z];
  int m = (int)(f.label_draws ? f.n_labels : f.K), slot = find_slot(*f.round, f.round->begin + blockIdx.z);
  int* labels = f.out_labels + slot * f.K;
  for (int i = threadIdx.x; i < m; i += blockDim.x) labels[i] = f.label_draws ? f.label_draws[slot * m + i] : i;
  if (threadIdx.x) return;
  s.slot = slot;
  s.size = s.n = s.n_next = s.done = s.ending = s.side = s.n_covered = s.arrived = 0;
  s.m = m;
  s.choosing = f.head != MULTI;
  s.best = 0;
  f.out_size[slot] = 0;
  f.out_count[slot] = m;
}

// The examples of the sample; one that is drawn several times is so many entries.
KERNEL sample(const Fit* fit) {
  const Fit& f = *fit;
  State& s = f.states[blockIdx.z];
  const int* features = find_draw(f, s, 0);
  u64 z = start_stream(f.seed, (u64)(f.round->first + f.round->begin + blockIdx.z), 0);
  i64 each = EACH * blockDim.x;
  for (i64 begin = blockIdx.x * each; begin < f.n_sample; begin += gridDim.x * each) {
    u32 rows[EACH];
    double w[EACH];
    int count = 0;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      i64 i = min(begin + e * blockDim.x + threadIdx.x, f.n_sample - 1);
      rows[e] = f.sampling == DRAWN ? below(z + (u64)(i + 1) * GOLDEN, f.N) : f.sampling == LISTED ? s.entries[f.sample_pitch + i].row : i;
      w[e] = begin + e * blockDim.x + threadIdx.x < f.n_sample ? f.weight[rows[e]] : 0;
      count += w[e] > 0;
    }
    int place = append(count, &s.n_next);
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      if (!(w[e] > 0)) continue;
      s.entries[place] = {rows[e], (float)w[e]};
      take_codes(f, s, features, rows[e], place++);
    }
  }
  if (is_last_block(&s.arrived, gridDim.x) && threadIdx.x == 0) { s.n = s.n_next; s.n_next = 0; }
}
