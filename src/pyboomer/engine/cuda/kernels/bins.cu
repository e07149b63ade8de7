// Sums over bins: of each drawn feature, the statistics of the covered examples, bin by bin (Alg. 3, lines 3 to 5).
//
//   bins[i, b, c] = sum over covered examples n in bin b of feature i of round(w_n x_nc 2^s_c)
//
// The columns c are the gradients of m labels, their curvatures, and a 1, whose sums are weights. A block has T columns of
// some features, and a part of the examples. It adds up in shared memory, in 32 bits; what overflows goes to the 64 bits of
// the result. A warp adds one example to 32 / T features at once, lane by lane to another bank of shared memory. The bin
// that most examples are in is left out, as it is what all others leave of the total: where the features of a word are all
// in theirs, which is the rule where X has many zeros, there is nothing to add.

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

// What a sum of 32 bits has lost: 2^32, with the sign of the term. The sum of a usual bin is not wanted.
__device__ __noinline__ void carry(const Fit* fit, const State* s, int feature, int bin, int column, int term) {
  if (feature < fit->F && bin != fit->usual[find_draw(*fit, *s, s->size)[feature]])
    add64(s->bins + ((i64)feature * fit->B + bin) * fit->pitch + column, term > 0 ? 1ll << 32 : -(1ll << 32));
}

template <int T>
__device__ void sum_bins(const Fit* fit) {
  DYNAMIC_SHARED(int, room);  // (units, B, 32): a unit has T columns of 32 / T features
  const int AT_ONCE = 32 / T, UNITS = T / 8;  // features of a unit; units of a word
  const Fit& f = *fit;
  const State& s = f.states[blockIdx.z / f.n_groups];
  if (s.done) return;
  int m = s.m, n_columns = 2 * m + 1;
  if ((int)blockIdx.y * T >= n_columns) return;
  int n = s.n, n_parts = min((int)gridDim.x, max(1, n / 512));
  if ((int)blockIdx.x >= n_parts) return;
  int per_part = ((n + n_parts - 1) / n_parts + 3) / 4 * 4, start = blockIdx.x * per_part, end = min(n, start + per_part);
  int first = blockIdx.z % f.n_groups * f.group, count = min((int)f.group, (int)f.n_words - first), B = (int)f.B;
  int size = count * UNITS * B * 32;
  const int *features = find_draw(f, s, s.size), *labels = f.out_labels + s.slot * f.K;

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
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, sub = lane / T, column = blockIdx.y * T + lane % T;
  const float* source = &ONE;
  u32 step = 0;  // bytes
  float scale = 0;
  int least = -0x7fffffff;
  if (column < m) { source = f.gradient + labels[column]; scale = f.g_scale[labels[column]]; step = 4 * f.stride; }
  else if (column < 2 * m) { source = f.curvature + labels[column - m]; scale = f.h_scale[labels[column - m]]; step = 4 * f.stride; }
  else if (column == 2 * m) { scale = (float)f.w_scale; least = 1; }  // however small a weight is, it is not 0
  i64 total = 0, pitch = f.sample_pitch / TOGETHER;
  const Entries* entries = (const Entries*)(s.entries + s.side * f.sample_pitch);
  const Words* codes = s.codes + first * pitch;
  __syncthreads();

  for (int j = start / TOGETHER + warp; TOGETHER * j < end; j += BIN_THREADS / 32) {
    Entries own = entries[j];
    const Words* place = codes + j;
    Words next = *place;
    int terms[TOGETHER];
#pragma unroll
    for (int e = 0; e < TOGETHER; e++) {
      float x = *(const float*)((const char*)source + (u64)own.of[e].row * step);
      int term = max(__float2int_rn(x * own.of[e].factor * scale), least);
      total += terms[e] = TOGETHER * j + e < end ? term : 0;
    }
    char* unit = (char*)(room + lane);
    for (int w = 0; w < count; w++) {
      Words words = next;
      if (w + 1 < count) next = *(place += pitch);
      Usual skipped = usual[w];
      u32 adds = skipped.is_there ? skip(skipped.word, words) : EVERY;
#pragma unroll
      for (int u = 0; u < UNITS; u++, unit += B * 128) {
        if (!adds) continue;
        int places[TOGETHER], old[TOGETHER] = {}, over = 0;
#pragma unroll
        for (int e = 0; e < TOGETHER; e++)  // 128 times the bin
          places[e] = __funnelshift_r(words.of[e], words.of[e], 8 * (u * AT_ONCE + sub) - 7) & 255 << 7;
        if (adds == EVERY) {
#pragma unroll
          for (int e = 0; e < TOGETHER; e++)  // additions that do not wait for each other
            old[e] = atomicAdd((int*)(unit + places[e]), terms[e]);
        } else {
#pragma unroll
          for (int e = 0; e < TOGETHER; e++)
            if (adds >> e & 1) old[e] = atomicAdd((int*)(unit + places[e]), terms[e]);
        }
#pragma unroll
        for (int e = 0; e < TOGETHER; e++) over |= overflows(old[e], terms[e]);
        if (over >= 0) continue;
        for (int e = 0; e < TOGETHER; e++)
          if (overflows(old[e], terms[e]) < 0)
            carry(fit, &s, 4 * (first + w) + u * AT_ONCE + sub, places[e] >> 7, column, terms[e]);
      }
    }
  }
  if (first == 0 && sub == 0 && total) add64(s.totals + column, total);
  __syncthreads();
  for (int u = 0; u < count * UNITS; u++) {
    i64 feature = 4 * first + u * AT_ONCE + sub;
    if (feature >= f.F) continue;
    int unwanted = f.usual[features[feature]];
    i64* result = s.bins + feature * B * f.pitch + column;
    for (int bin = warp; bin < B; bin += BIN_THREADS / 32) {
      int sum = room[(u * B + bin) * 32 + lane];
      if (sum && bin != unwanted) add64(result + bin * f.pitch, sum);
    }
  }
}

KERNEL __launch_bounds__(BIN_THREADS) sum_bins_8(const Fit* fit) { sum_bins<8>(fit); }
KERNEL __launch_bounds__(BIN_THREADS) sum_bins_16(const Fit* fit) { sum_bins<16>(fit); }
KERNEL __launch_bounds__(BIN_THREADS) sum_bins_32(const Fit* fit) { sum_bins<32>(fit); }
