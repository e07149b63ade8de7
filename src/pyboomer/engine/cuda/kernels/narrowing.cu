// Who is covered: the sample of a rule, what a condition leaves of it, and all examples that the finished rule covers.

__device__ const int* find_draw(const Fit& f, const State& s, int step) {
  return f.draws + (step * f.n_ahead + s.rule - f.first) * f.F;
}

// The bins of an example, of the features that the next step draws.
__device__ void take_codes(const Fit& f, const int* features, u32 row, int place) {
  for (int i = 0; i < f.F; i++) f.step_codes[i * f.N + place] = f.codes[features[i] * f.N + row];
}

// The examples drawn, each with its weight times how often it was drawn.
KERNEL sample(const Fit* fit) {
  const Fit& f = *fit;
  State& s = *f.state;
  const int* features = find_draw(f, s, 0);
  for (i64 begin = (i64)blockIdx.x * blockDim.x; begin < f.N; begin += (i64)gridDim.x * blockDim.x) {
    i64 row = begin + threadIdx.x;
    double w = 0;
    if (row < f.N) {
      w = f.weight[row];
      if (f.n_draws) { w *= f.counts[row]; f.counts[row] = 0; }
    }
    int place = append(w > 0, &s.n_next);
    if (w > 0) {
      f.rows[place] = (u32)row;
      f.factors[place] = (float)w;
      take_codes(f, features, (u32)row, place);
    }
  }
  if (is_last_block(&s, gridDim.x) && threadIdx.x == 0) { s.n = s.n_next; s.n_next = 0; }
}

// Alg. 3, line 10: keep the examples that meet the condition found; and clear the sums for the next step.
KERNEL narrow(const Fit* fit) {
  const Fit& f = *fit;
  State& s = *f.state;
  if (s.done) return;
  i64 step = (i64)gridDim.x * blockDim.x, cells = f.F * f.B * s.summed;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < cells; i += step)
    f.bins[i / s.summed * f.pitch + i % s.summed] = 0;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < s.summed; i += step) f.totals[i] = 0;
  if (!s.ending) {
    const u32* rows = f.rows + s.side * f.N;
    const float* factors = f.factors + s.side * f.N;
    u32* rows_left = f.rows + (1 - s.side) * f.N;
    float* factors_left = f.factors + (1 - s.side) * f.N;
    const u8* codes = f.codes + s.feature * f.N;
    const int* features = find_draw(f, s, s.size);
    for (i64 begin = (i64)blockIdx.x * blockDim.x; begin < s.n; begin += step) {
      i64 j = begin + threadIdx.x;
      bool keep = j < s.n && meets(codes[rows[j]], s.op, s.cut);
      int place = append(keep, &s.n_next);
      if (keep) {
        rows_left[place] = rows[j];
        factors_left[place] = factors[j];
        take_codes(f, features, rows[j], place);
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
  for (i64 begin = (i64)blockIdx.x * blockDim.x; begin < f.N; begin += (i64)gridDim.x * blockDim.x) {
    i64 row = begin + threadIdx.x;
    bool keep = row < f.N && f.weight[row] > 0;
    for (int i = 0; keep && i < s.size; i++)
      keep = meets(f.codes[(i64)body[4 * i] * f.N + row], (int)body[4 * i + 1], (int)body[4 * i + 2]);
    int place = append(keep, &s.n_covered);
    if (keep) f.covered[place] = (u32)row;
  }
}
