// Who is covered: the sample of a rule, what a condition leaves of it, and all examples that the finished rule covers.

__device__ const int* find_draw(const Fit& f, const State& s, int step) {
  return f.draws + (step * f.n_ahead + s.rule - f.first) * f.F;
}

// The bins of an example, of the features that the next step draws.
__device__ void take_codes(const Fit& f, const int* features, u32 row, int place) {
#pragma unroll 8
  for (int i = 0; i < f.F; i++) f.step_codes[i * f.N + place] = f.codes[features[i] * f.N + row];
}

// The examples drawn, each with its weight times how often it was drawn.
KERNEL sample(const Fit* fit) {
  const Fit& f = *fit;
  State& s = *f.state;
  const int* features = find_draw(f, s, 0);
  i64 each = EACH * blockDim.x;
  for (i64 begin = blockIdx.x * each; begin < f.N; begin += gridDim.x * each) {
    double w[EACH];
    int count = 0;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      i64 row = begin + e * blockDim.x + threadIdx.x;
      u32 drawn = row >= f.N ? 0 : f.n_draws ? f.counts[row] : 1;
      w[e] = drawn ? drawn * f.weight[row] : 0;
      if (drawn && f.n_draws) f.counts[row] = 0;
      count += w[e] > 0;
    }
    int place = append(count, &s.n_next);
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      if (!(w[e] > 0)) continue;
      u32 row = (u32)(begin + e * blockDim.x + threadIdx.x);
      f.rows[place] = row;
      f.factors[place] = (float)w[e];
      take_codes(f, features, row, place++);
    }
  }
  if (is_last_block(&s, gridDim.x) && threadIdx.x == 0) { s.n = s.n_next; s.n_next = 0; }
}

// Alg. 3, line 10: keep the examples that meet the condition found; and clear the sums for the next step.
KERNEL narrow(const Fit* fit) {
  const Fit& f = *fit;
  State& s = *f.state;
  if (s.done) return;
  u32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x, summed = s.summed;
  u32 warp = thread >> 5, lane = thread & 31;
  for (u32 b = warp; b < f.F * f.B; b += threads >> 5)
    for (u32 c = lane; c < summed; c += 32) f.bins[b * f.pitch + c] = 0;
  for (u32 c = thread; c < summed; c += threads) f.totals[c] = 0;
  if (!s.ending) {
    const u32* rows = f.rows + s.side * f.N;
    const float* factors = f.factors + s.side * f.N;
    u32* rows_left = f.rows + (1 - s.side) * f.N;
    float* factors_left = f.factors + (1 - s.side) * f.N;
    const u8* codes = f.codes + s.feature * f.N;
    const int* features = find_draw(f, s, s.size);
    i64 n = s.n, per_thread = n > 2 * (i64)threads ? EACH : 1, each = per_thread * blockDim.x;
    int op = s.op, cut = s.cut;
    for (i64 begin = blockIdx.x * each; begin < n; begin += gridDim.x * each) {
      bool keep[EACH];
      int count = 0;
#pragma unroll
      for (int e = 0; e < EACH; e++) {
        i64 j = begin + e * blockDim.x + threadIdx.x;
        keep[e] = e < per_thread && j < n && meets(codes[rows[j]], op, cut);
        count += keep[e];
      }
      int place = append(count, &s.n_next);
#pragma unroll
      for (int e = 0; e < EACH; e++) {
        if (!keep[e]) continue;
        i64 j = begin + e * blockDim.x + threadIdx.x;
        rows_left[place] = rows[j];
        factors_left[place] = factors[j];
        take_codes(f, features, rows[j], place++);
      }
    }
  }
  if (is_last_block(&s, gridDim.x) && threadIdx.x == 0) {
    s.done = s.ending;
    s.side = 1 - s.side;
    s.n = s.n_next;
    s.n_next = 0;
  }
}

// All examples that meet the conditions of the body, sampled or not.
KERNEL cover(const Fit* fit) {
  const Fit& f = *fit;
  State& s = *f.state;
  const double* body = f.out_body + (s.rule - f.first) * f.longest * 4;
  int size = s.size;
  i64 each = EACH * blockDim.x;
  for (i64 begin = blockIdx.x * each; begin < f.N; begin += gridDim.x * each) {
    bool keep[EACH];
    int count = 0;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      i64 row = begin + e * blockDim.x + threadIdx.x;
      keep[e] = row < f.N && f.weight[row] > 0;
    }
    for (int i = 0; i < size; i++) {
      const u8* codes = f.codes + (i64)body[4 * i] * f.N;
      int op = (int)body[4 * i + 1], cut = (int)body[4 * i + 2];
#pragma unroll
      for (int e = 0; e < EACH; e++)
        keep[e] = keep[e] && meets(codes[begin + e * blockDim.x + threadIdx.x], op, cut);
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) count += keep[e];
    int place = append(count, &s.n_covered);
#pragma unroll
    for (int e = 0; e < EACH; e++)
      if (keep[e]) f.covered[place++] = (u32)(begin + e * blockDim.x + threadIdx.x);
  }
}
