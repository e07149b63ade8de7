// Sums over bins: of each drawn feature, the statistics of the covered examples, bin by bin (Alg. 3, lines 3 to 5).
//
//   bins[i, b, c] = sum over covered examples n in bin b of feature i of round(w_n x_nc 2^s_c)
//
// The columns c are the gradients of m labels, their curvatures, and a 1, whose sums are weights. A block has T columns
// and a part of the examples. It adds up in shared memory, in 32 bits; what overflows goes to the 64 bits of the result.
// The bin that most examples are in is left out: it is what all others leave of the total.

#define TOGETHER 4  // additions that do not wait for each other; more of them hardly help, and take registers
#define RESIDENT 2  // blocks of a multiprocessor

__device__ __forceinline__ int overflows(int old, int x) {  // negative if their sum does
  int now = (int)((u32)old + (u32)x);
  return (old ^ now) & (x ^ now);
}
__device__ __forceinline__ void carry(int x, i64* result) { add64(result, x > 0 ? 1ll << 32 : -(1ll << 32)); }
__device__ __forceinline__ void add32(int* place, int x, i64* result) {
  if (overflows(atomicAdd(place, x), x) < 0) carry(x, result);
}

template <int T>
__device__ void sum_bins(const Fit& f) {
  DYNAMIC_SHARED(int, room);
  const State& s = *f.state;
  if (s.done) return;
  int m = s.m, n_columns = 2 * m + 1;
  if ((int)blockIdx.y * T >= n_columns) return;
  int n = s.n, n_parts = min((int)gridDim.x, max(1, n / 512));
  if ((int)blockIdx.x >= n_parts) return;
  int per_part = ((n + n_parts - 1) / n_parts + 31) / 32 * 32;
  int start = blockIdx.x * per_part, end = min(n, start + per_part);
  int first = blockIdx.z * (int)f.group, count = min((int)f.group, (int)f.F - first), B = (int)f.B;
  const u32* rows = f.rows + s.side * f.N;
  const float* factors = f.factors + s.side * f.N;
  const int* features = find_draw(f, s, s.size);

  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, sub = lane / T;
  int* own = room + count * B * T + warp * T * 32 + lane;  // the terms of this thread's column, for T examples
  int* usual = room + count * B * T + BIN_THREADS * T;     // the usual bin of each feature
  for (int i = threadIdx.x; i < count; i += blockDim.x) usual[i] = f.usual[features[first + i]];
  for (int i = threadIdx.x; i < count * B * T; i += blockDim.x) room[i] = 0;
  __syncthreads();

  int column = blockIdx.y * T + lane % T;
  const float* source = 0;
  float scale = 0;
  if (column < m) { source = f.gradient + f.labels[column]; scale = f.g_scale[f.labels[column]]; }
  else if (column < 2 * m) { source = f.curvature + f.labels[column - m]; scale = f.h_scale[f.labels[column - m]]; }
  else if (column == 2 * m) scale = (float)f.w_scale;
  i64 total = 0;

  for (int j0 = start + warp * 32; j0 < end; j0 += BIN_THREADS) {
    int j = j0 + lane;
    u32 row = j < end ? rows[j] : 0;
    float factor = j < end ? factors[j] : 0;
#pragma unroll 8
    for (int i = 0; i < T; i++) {  // examples sub * T + i of these 32
      u32 r = __shfl_sync(FULL, row, sub * T + i);
      float w = __shfl_sync(FULL, factor, sub * T + i);
      float x = source ? source[(i64)r * f.stride] : 1.0f;
      int term = __float2int_rn(x * w * scale);
      if (column == 2 * m && w > 0) term = max(term, 1);  // however small a weight is, it is not 0
      own[i * 32] = term;
      total += term;
    }
    for (int i0 = 0; i0 < count; i0 += 4) {
      int codes[4];  // asked for together
#pragma unroll
      for (int q = 0; q < 4; q++) codes[q] = i0 + q < count && j < end ? f.step_codes[(first + i0 + q) * f.N + j] : 0;
#pragma unroll
      for (int q = 0; q < 4; q++) {
        int i = i0 + q, code = codes[q];
        if (i >= count) break;
        u32 mask = __ballot_sync(FULL, j < end && code != usual[i]);
        int* place = room + i * B * T + lane % T;
        i64* result = f.bins + (i64)(first + i) * B * f.pitch + column;
        if (mask == FULL) {
          for (int e0 = 0; e0 < T; e0 += TOGETHER) {
            int x[TOGETHER], old[TOGETHER], over = 0;
#pragma unroll
            for (int e = 0; e < TOGETHER; e++) {
              int bin = __shfl_sync(FULL, code, sub * T + e0 + e);
              x[e] = own[(e0 + e) * 32];
              old[e] = x[e] ? atomicAdd(place + bin * T, x[e]) : 0;
            }
#pragma unroll
            for (int e = 0; e < TOGETHER; e++) over |= overflows(old[e], x[e]);
            if (__any_sync(FULL, over < 0)) {
#pragma unroll
              for (int e = 0; e < TOGETHER; e++) {
                int bin = __shfl_sync(FULL, code, sub * T + e0 + e);
                if (overflows(old[e], x[e]) < 0) carry(x[e], result + bin * f.pitch);
              }
            }
          }
        } else {
          u32 left = T == 32 ? mask : mask >> (sub * T) & ((1u << (T & 31)) - 1);
          while (__any_sync(FULL, left != 0)) {
            int e = left ? __ffs(left) - 1 : 0;
            int bin = __shfl_sync(FULL, code, sub * T + e);
            if (left && own[e * 32]) add32(place + bin * T, own[e * 32], result + bin * f.pitch);
            left &= left - 1;
          }
        }
      }
    }
  }
  if (first == 0 && total) add64(f.totals + column, total);
  __syncthreads();
  for (int i = threadIdx.x; i < count * B * T; i += blockDim.x)
    if (room[i]) add64(f.bins + (i64)(first * B + i / T) * f.pitch + blockIdx.y * T + i % T, room[i]);
}

KERNEL __launch_bounds__(BIN_THREADS, RESIDENT) sum_bins_8(const Fit* fit) { sum_bins<8>(*fit); }
KERNEL __launch_bounds__(BIN_THREADS, RESIDENT) sum_bins_16(const Fit* fit) { sum_bins<16>(*fit); }
KERNEL __launch_bounds__(BIN_THREADS, RESIDENT) sum_bins_32(const Fit* fit) { sum_bins<32>(*fit); }
