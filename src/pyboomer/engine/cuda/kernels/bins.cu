// Sums over bins: of each drawn feature, the statistics of the covered examples, bin by bin (Alg. 3, lines 3 to 5).
//
//   bins[i, b, c] = sum over covered examples n in bin b of feature i of round(w_n x_nc 2^s_c)
//
// The columns c are the gradients of m labels, their curvatures, and a 1, whose sums are weights. A block has T columns of
// some features, and a part of the examples. It adds up in shared memory, in 32 bits; what overflows goes to the 64 bits of
// the result. A warp adds one example to 32 / T features at once, lane by lane to another bank of shared memory. The bin
// that most examples are in is left out, as it is what all others leave of the total: where the features of a word are all
// in theirs, which is the rule where X has many zeros, there is nothing to add.

#define TOGETHER 4  // examples that are read at once

__device__ const float ONE = 1;

__device__ __forceinline__ int overflows(int old, int x) {  // negative if their sum does
  int now = (int)((u32)old + (u32)x);
  return (old ^ now) & (x ^ now);
}

template <int T>
__device__ void sum_bins(const Fit& f) {
  DYNAMIC_SHARED(int, room);  // (units, B, 32): a unit has T columns of 32 / T features
  const int AT_ONCE = 32 / T, UNITS = T / 8;  // features of a unit; units of a word
  const State& s = f.states[blockIdx.z / f.n_groups];
  if (s.done) return;
  int m = s.m, n_columns = 2 * m + 1;
  if ((int)blockIdx.y * T >= n_columns) return;
  int n = s.n, n_parts = min((int)gridDim.x, max(1, n / 512));
  if ((int)blockIdx.x >= n_parts) return;
  int per_part = (n + n_parts - 1) / n_parts, start = blockIdx.x * per_part, end = min(n, start + per_part);
  int group = blockIdx.z % f.n_groups, first = group * (int)f.group, q = first / 4, low = first % 4;
  int high = min(low + (int)f.group, 4), B = (int)f.B, size = (high - low) * UNITS * B * 32;
  const int *features = find_draw(f, s, s.size), *labels = f.out_labels + s.slot * f.K;
  const Entry* entries = s.entries + s.side * f.n_sample;

  for (int i = threadIdx.x; i < size; i += BIN_THREADS) room[i] = 0;
  u32 usual[4] = {};
  bool skips[4];  // whether a word may say that all of its features are in their usual bins
#pragma unroll
  for (int w = 0; w < 4; w++) {
    skips[w] = true;
#pragma unroll
    for (int b = 0; b < 4; b++) {
      int i = 4 * (4 * q + w) + b, bin = i < f.F ? f.usual[features[i]] : 0;
      skips[w] = skips[w] && bin >= 0;
      usual[w] |= (u32)(bin & 255) << 8 * b;
    }
  }
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, sub = lane / T, column = blockIdx.y * T + lane % T;
  const float* source = &ONE;
  i64 step = 0;
  float scale = 0;
  int least = -0x7fffffff;
  if (column < m) { source = f.gradient + labels[column]; scale = f.g_scale[labels[column]]; step = f.stride; }
  else if (column < 2 * m) { source = f.curvature + labels[column - m]; scale = f.h_scale[labels[column - m]]; step = f.stride; }
  else if (column == 2 * m) { scale = (float)f.w_scale; least = 1; }  // however small a weight is, it is not 0
  i64 total = 0;
  __syncthreads();

  for (int j0 = start + warp * TOGETHER; j0 < end; j0 += BIN_THREADS / 32 * TOGETHER) {
    Codes codes[TOGETHER];
    int terms[TOGETHER];
#pragma unroll
    for (int e = 0; e < TOGETHER; e++) {  // asked for together
      int j = min(j0 + e, end - 1);
      Entry entry = entries[j];
      codes[e] = s.codes[j * f.n_codes + q];
      terms[e] = max(__float2int_rn(source[entry.row * step] * entry.factor * scale), least);
    }
#pragma unroll
    for (int e = 0; e < TOGETHER; e++) {
      if (j0 + e >= end) break;
      int x = terms[e], old[4 * UNITS], over = 0;
      total += x;
#pragma unroll
      for (int w = 0; w < 4; w++) {
        u32 word = codes[e].words[w];
        bool adds = w >= low && w < high && !(skips[w] && word == usual[w]);
#pragma unroll
        for (int u = 0; u < UNITS; u++) {
          int bin = word >> 8 * (u * AT_ONCE + sub) & 255;
          old[w * UNITS + u] = adds ? atomicAdd(room + (((w - low) * UNITS + u) * B + bin) * 32 + lane, x) : 0;
        }
      }
#pragma unroll
      for (int i = 0; i < 4 * UNITS; i++) over |= overflows(old[i], x);
      if (over >= 0) continue;
#pragma unroll
      for (int i = 0; i < 4 * UNITS; i++) {
        if (overflows(old[i], x) >= 0) continue;
        int place = i % UNITS * AT_ONCE + sub, bin = codes[e].words[i / UNITS] >> 8 * place & 255;
        i64 feature = 4 * (4 * q + i / UNITS) + place;
        if (feature < f.F && bin != f.usual[features[feature]])
          add64(s.bins + (feature * B + bin) * f.pitch + column, x > 0 ? 1ll << 32 : -(1ll << 32));
      }
    }
  }
  if (group == 0 && sub == 0 && total) add64(s.totals + column, total);
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
