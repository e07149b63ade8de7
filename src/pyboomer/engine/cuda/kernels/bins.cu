// Sums over bins: of each drawn feature, the statistics of the covered examples, bin by bin (Alg. 3, lines 3 to 5).
//
//   bins[i, b, c] = sum over covered examples n in bin b of feature i of round(w_n x_nc 2^s_c)
//
// The columns c are the gradients of m labels, their curvatures, and a 1, whose sums are weights. A block has T columns of
// some features, and a part of the examples. It adds up in shared memory, in 32 bits; what overflows goes to the 64 bits of
// the result. A warp adds one example to 32 / T features at once, lane by lane to another bank of shared memory. The bin
// that most examples are in is left out, as it is what all others leave of the total: where the features of a word are all
// in theirs, which is the rule where X has many zeros, there is nothing to add. Blocks of the same columns run side by side,
// so that statistics are read from the cache that others have brought there.

__device__ const float ONE = 1;

__device__ __forceinline__ int overflows(int old, int x) {  // negative if their sum does
  int now = (int)((u32)old + (u32)x);
  return (old ^ now) & (x ^ now);
}

// The word of an example whose features are all in their usual bins, if all have one.
struct alignas(8) Usual {
  u32 word;
  int is_there;
};

// A bit for each of four examples that is to be added
#define EVERY 15
__device__ __forceinline__ u32 skip(u32 usual, const Words& own) {
  u32 adds = 0;
#pragma unroll
  for (int e = 0; e < TOGETHER; e++) adds |= (u32)(own.of[e] != usual) << e;
  return adds;
}

template <int T>
__device__ __forceinline__ void sum_bins(const Fit f) {
  DYNAMIC_SHARED(int, room);  // (units, B, 32): a unit has T columns of 32 / T features
  const int AT_ONCE = 32 / T, UNITS = T / 8;  // features of a unit; units of a word
  const State& s = f.states[blockIdx.y / f.n_groups];
  if (s.done) return;
  int m = s.m, n_columns = 2 * m + 1;
  if ((int)blockIdx.z * T >= n_columns) return;
  int n = s.n, n_parts = min((int)gridDim.x, max(1, n / 512));
  if ((int)blockIdx.x >= n_parts) return;
  int per_part = ((n + n_parts - 1) / n_parts + 3) / 4 * 4, start = blockIdx.x * per_part, end = min(n, start + per_part);
  int first = blockIdx.y % f.n_groups * f.group, count = min((int)f.group, (int)f.n_words - first), B = (int)f.B;
  int size = count * UNITS * B * 32;
  const int *features = find_draw(f, s, s.size), *labels = f.out_labels + s.slot * f.K;
  const Entry* entries = s.entries + s.side * f.n_sample;

  Usual* usual = (Usual*)(room + size);
  for (int i = threadIdx.x; i < size; i += BIN_THREADS) room[i] = 0;
  for (int w = threadIdx.x; w < count; w += BIN_THREADS) {
    Usual own = {0, 1};
    for (int b = 0; b < 4; b++) {
      int i = 4 * (first + w) + b, bin = i < f.F ? f.usual[features[i]] : 0;
      own = {own.word | (u32)(bin & 255) << 8 * b, own.is_there && bin >= 0};
    }
    usual[w] = own;
  }
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, sub = lane / T, column = blockIdx.z * T + lane % T;
  const float* source = &ONE;
  i64 step = 0, total = 0;
  float scale = 0;
  int least = -0x7fffffff;
  if (column < m) { source = f.gradient + labels[column]; scale = f.g_scale[labels[column]]; step = f.stride; }
  else if (column < 2 * m) { source = f.curvature + labels[column - m]; scale = f.h_scale[labels[column - m]]; step = f.stride; }
  else if (column == 2 * m) { scale = (float)f.w_scale; least = 1; }  // however small a weight is, it is not 0
  __syncthreads();

  for (int j0 = start + warp * TOGETHER; j0 < end; j0 += BIN_THREADS / 32 * TOGETHER) {
    int terms[TOGETHER];
#pragma unroll
    for (int e = 0; e < TOGETHER; e++) {
      Entry entry = entries[min(j0 + e, end - 1)];
      int term = max(__float2int_rn(source[entry.row * step] * entry.factor * scale), least);
      total += terms[e] = j0 + e < end ? term : 0;
    }
    const Words* words = s.codes + ((i64)first * f.sample_pitch + j0) / TOGETHER;
    i64 pitch = f.sample_pitch / TOGETHER;
    Words next = words[0];
    for (int w = 0; w < count; w++) {
      Words own = next;
      if (w + 1 < count) next = words[(w + 1) * pitch];
      Usual skipped = usual[w];
      u32 adds = skipped.is_there ? skip(skipped.word, own) : EVERY;
#pragma unroll
      for (int u = 0; u < UNITS && adds; u++) {
        int *unit = room + (w * UNITS + u) * B * 32 + lane, shift = 8 * (u * AT_ONCE + sub), old[TOGETHER] = {}, over = 0;
        if (adds == EVERY) {
#pragma unroll
          for (int e = 0; e < TOGETHER; e++)  // additions that do not wait for each other
            old[e] = atomicAdd(unit + (own.of[e] >> shift & 255) * 32, terms[e]);
        } else {
#pragma unroll
          for (int e = 0; e < TOGETHER; e++)
            if (adds >> e & 1) old[e] = atomicAdd(unit + (own.of[e] >> shift & 255) * 32, terms[e]);
        }
#pragma unroll
        for (int e = 0; e < TOGETHER; e++) over |= overflows(old[e], terms[e]);
        if (over >= 0) continue;
        i64 feature = 4 * (first + w) + u * AT_ONCE + sub;
#pragma unroll
        for (int e = 0; e < TOGETHER; e++) {
          int bin = own.of[e] >> shift & 255;
          if (overflows(old[e], terms[e]) < 0 && feature < f.F && bin != f.usual[features[feature]])
            add64(s.bins + (feature * B + bin) * f.pitch + column, terms[e] > 0 ? 1ll << 32 : -(1ll << 32));
        }
      }
    }
  }
  if (first == 0 && sub == 0 && total) add64(s.totals + column, total);
  __syncthreads();
  for (int i = threadIdx.x; i < size; i += BIN_THREADS) {
    int bin = i / 32 % B, unit = i / 32 / B;
    i64 feature = 4 * first + unit * AT_ONCE + sub;
    if (room[i] && feature < f.F && bin != f.usual[features[feature]])
      add64(s.bins + (feature * B + bin) * f.pitch + column, room[i]);
  }
}

KERNEL __launch_bounds__(BIN_THREADS) sum_bins_8(const Fit* fit) { sum_bins<8>(*fit); }
KERNEL __launch_bounds__(BIN_THREADS) sum_bins_16(const Fit* fit) { sum_bins<16>(*fit); }
KERNEL __launch_bounds__(BIN_THREADS) sum_bins_32(const Fit* fit) { sum_bins<32>(*fit); }
