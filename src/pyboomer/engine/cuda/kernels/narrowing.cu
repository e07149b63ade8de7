// Who is covered: what a condition leaves of a sample, and all examples that a finished rule covers.

// Alg. 3, line 10: keep the examples that meet the condition found; and clear the sums for the next step.
KERNEL narrow(const Fit* fit) {
  const Fit& f = *fit;
  State& s = f.states[blockIdx.z];
  if (s.done) return;
  u32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x, summed = s.summed;
  u32 warp = thread >> 5, lane = thread & 31;
  for (u32 b = warp; b < f.F * f.B; b += threads >> 5)
    for (u32 c = lane; c < summed; c += 32) s.bins[b * f.pitch + c] = 0;
  for (u32 c = thread; c < summed; c += threads) s.totals[c] = 0;
  if (!s.ending) {
    const Entry* entries = s.entries + s.side * f.sample_pitch;
    Entry* left = s.entries + (1 - s.side) * f.sample_pitch;
    const u8* codes = f.row_codes + s.feature;
    const int* features = find_draw(f, s, s.size);
    i64 n = s.n, per_thread = n > 2 * (i64)threads ? EACH : 1, each = per_thread * blockDim.x;
    int op = s.op, cut = s.cut;
    for (i64 begin = blockIdx.x * each; begin < n; begin += gridDim.x * each) {
      Entry own[EACH];
      bool keep[EACH];
      int count = 0;
#pragma unroll
      for (int e = 0; e < EACH; e++) {
        i64 j = begin + e * blockDim.x + threadIdx.x;
        keep[e] = e < per_thread && j < n;
        if (keep[e]) own[e] = entries[j];
        keep[e] = keep[e] && meets(codes[own[e].row * f.row_pitch], op, cut);
        count += keep[e];
      }
      int place = append(count, &s.n_next);
#pragma unroll
      for (int e = 0; e < EACH; e++) {
        if (!keep[e]) continue;
        left[place] = own[e];
        take_codes(f, s, features, own[e].row, place++);
      }
    }
  }
  if (is_last_block(&s.arrived, gridDim.x) && threadIdx.x == 0) {
    s.done = s.ending;
    s.side = 1 - s.side;
    s.n = s.n_next;
    s.n_next = 0;
  }
}

// All examples that meet the conditions of each body of the batch, sampled or not.
KERNEL cover(const Fit* fit) {
  const Fit& f = *fit;
  const Round& round = *f.round;
  i64 each = EACH * blockDim.x;
  for (i64 begin = blockIdx.x * each; begin < f.N; begin += gridDim.x * each) {
    i64 rows[EACH];
    bool counts[EACH];  // whether an example does
    u32 bits[EACH] = {};
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      rows[e] = min(begin + e * blockDim.x + threadIdx.x, f.N - 1);
      counts[e] = begin + e * blockDim.x + threadIdx.x < f.N && f.weight[rows[e]] > 0;
    }
    for (int b = 0; b < round.count; b++) {
      State& s = f.states[b];
      const double* body = f.out_body + s.slot * f.longest * 4;
      bool keep[EACH];
      int count = 0, bit = (round.begin + b) & 31, word = (round.begin + b) >> 5;
#pragma unroll
      for (int e = 0; e < EACH; e++) keep[e] = counts[e];
      for (int i = 0; i < s.size; i++) {
        const u8* codes = f.codes + (i64)body[4 * i] * f.N;
        int op = (int)body[4 * i + 1], cut = (int)body[4 * i + 2];
#pragma unroll
        for (int e = 0; e < EACH; e++) keep[e] = keep[e] && meets(codes[rows[e]], op, cut);
      }
#pragma unroll
      for (int e = 0; e < EACH; e++) count += keep[e];
      int place = append(count, &s.n_covered);
#pragma unroll
      for (int e = 0; e < EACH; e++) {
        if (keep[e]) s.covered[place++] = (u32)rows[e];
        bits[e] |= (u32)keep[e] << bit;
        if (bit < 31 && b + 1 < round.count) continue;
        if (bits[e]) f.masks[word * f.N + rows[e]] |= bits[e];
        bits[e] = 0;
      }
    }
  }
}
