// Ratings: twice the gain of each condition, and of its negation (Alg. 3, lines 6 to 8), and the best of all.
//
//   q = sum_k g_k^2 / (h_k + l2),  or its largest term if one label is to be chosen;  g, h: sums of what meets it
//   2 gain = q, or by the bound q W / (W - q) for H = diag(|g|) - g g^T
//
// A block rates the conditions on a feature for 32 labels; the last block adds up, and chooses. Prefix sums are whole
// numbers; the order of other sums is fixed.

struct Pair {
  i64 g, h;
};

// The sums of a bin; the usual one is what the others leave.
__device__ __forceinline__ i64 read_bin(const Fit& f, const State& s, int i, int b, int column) {
  return s.bins[((i64)i * f.B + b) * f.pitch + column];
}

// Sums of what meets a condition, over the bins of a feature.
__device__ i64 sum_condition(const Fit& f, const State& s, int i, int usual, int op, int cut, int column) {
  i64 sum = 0, others = 0;
  for (int b = 0; b < f.B; b++) {
    i64 x = read_bin(f, s, i, b, column);
    others += x;
    if (meets(b, op, cut)) sum += x;
  }
  return usual >= 0 && meets(usual, op, cut) ? sum + s.totals[column] - others : sum;
}

// Which bin is the next that is not empty.
__device__ int find_next(const u64* occupied, int b) {
  for (int w = (b + 1) >> 6; w < 4; w++) {
    u64 word = occupied[w];
    if (w == (b + 1) >> 6) word &= ~0ull << ((b + 1) & 63);
    if (word) return w * 64 + __ffsll((i64)word) - 1;
  }
  return -1;
}

// Whether there is a condition on a bin.
__device__ __forceinline__ bool is_candidate(const u64* candidates, int b) { return candidates[b >> 6] >> (b & 63) & 1; }

// From q to twice the bound of the gain; exact arithmetic keeps q below the weight, floating point may not.
__device__ __forceinline__ double bound(double q, double weight) { return q * weight / fmax(weight - q, FLOOR * weight); }

__device__ int find_best_label(const double* gains, int m) {
  int best = 0;
  for (int k = 0; k < m; k++)
    if (gains[k] > gains[best] * (1 + TIE)) best = k;
  return best;
}

// The labels of a partial head, ascending: those of the largest gains, see heads.choose_labels. Returns how many.
__device__ int choose_labels(const double* gains, int n_labels, int most, double share, int* labels) {
  int n = 0;
  for (int k = 0; k < n_labels; k++) {
    int place = n;
    while (place > 0 && gains[k] > gains[labels[place - 1]] * (1 + TIE)) place--;
    if (place < most) {
      n = min(n + 1, most);
      for (int i = n - 1; i > place; i--) labels[i] = labels[i - 1];
      labels[place] = k;
    }
  }
  double least = share * (1 - TIE) * gains[labels[0]];
  while (n > 1 && gains[labels[n - 1]] < least) n--;
  for (int i = 1; i < n; i++) {
    int k = labels[i], place = i;
    for (; place > 0 && labels[place - 1] > k; place--) labels[place] = labels[place - 1];
    labels[place] = k;
  }
  return n;
}

// Keep the labels of a rule that suit it best by their gains; returns how many, and `chosen` has their places. One thread does.
__device__ int focus(const Fit& f, const double* gains, int m, int* chosen, int* labels) {
  int n = 1;
  if (f.head == SINGLE) chosen[0] = find_best_label(gains, m);
  else n = choose_labels(gains, m, (int)f.head_size, f.head_share, chosen);
  for (int i = 0; i < n; i++) labels[i] = labels[chosen[i]];  // ascending: none is read that was written
  return n;
}

// The gain of a label on its own, from sums and the weight; by the bound H has the diagonal a - b^2 / W.
__device__ double rate_alone(const Fit& f, double g, double h, double b, double weight) {
  if (f.outer) h -= b * b / fmax(weight, FLOOR);
  return 0.5 * rate_label(shrink(g, f.l1), h, f.l2);
}

// The best condition, if it beats the body so far; of those within the margin of a tie, the first. A block chooses.
__device__ void choose(const Fit& f, State& s, int n_tiles, bool one) {
  int B = (int)f.B, n = 2 * (int)f.F * B, *labels = f.out_labels + s.slot * f.K;
  const int* features = find_draw(f, s, s.size);
  bool choosing = s.choosing;
  double most = -1;
  int each = n > (int)blockDim.x ? EACH : 1;
  for (int c0 = threadIdx.x; c0 < n; c0 += each * blockDim.x) {
    double rates[EACH], weights[EACH];
    i64 met[EACH], present[EACH];
    bool candidate[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++) {  // asked for together
      int c = min(c0 + e * (int)blockDim.x, n - 1), i = (u32)c / (u32)(2 * B), b = (c >> 1) - i * B;
      rates[e] = s.parts[c];
      met[e] = s.bin_weight[i * B + b];
      present[e] = s.present_weight[i];
      candidate[e] = is_candidate(s.candidates + 4 * i, b) && e < each && c0 + e * (int)blockDim.x < n;
    }
    if (each == 1) {
#pragma unroll 8
      for (int t = 1; t < n_tiles; t++) {
        double part = s.parts[(i64)t * n + c0];
        rates[0] = one ? fmax(rates[0], part) : rates[0] + part;
      }
    }
    for (int t = 1; t < n_tiles && each > 1; t++) {
#pragma unroll
      for (int e = 0; e < EACH; e++) {
        double part = s.parts[(i64)t * n + min(c0 + e * (int)blockDim.x, n - 1)];
        rates[e] = one ? fmax(rates[e], part) : rates[e] + part;
      }
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      int c = c0 + e * blockDim.x;
      weights[e] = (double)(c & 1 ? present[e] - met[e] : met[e]) / f.w_scale;
      if (candidate[e] && f.outer && !choosing) {
        if (f.l1 > 0) {  // the sums of g^T D^-1 g, g^T D^-1 b and b^T D^-1 b are parts one after another
          double gb = 0, bb = 0;
          for (int t = 0; t < n_tiles; t++) {
            gb += s.parts[(i64)(n_tiles + t) * n + c];
            bb += s.parts[(i64)(2 * n_tiles + t) * n + c];
          }
          rates[e] += gb * gb / fmax(weights[e] - bb, FLOOR * weights[e]);
        } else {
          rates[e] = bound(rates[e], weights[e]);
        }
      }
      if (!candidate[e] || weights[e] < f.min_coverage) rates[e] = -1;
      if (e < each && c < n) s.rates[c] = rates[e];
      most = fmax(most, rates[e]);
    }
  }
  most = block_max(most);
  __shared__ int found;
  double best = fmax(s.best, NOISE * ((double)s.totals[2 * s.m] / f.w_scale));
  if (threadIdx.x == 0) found = n;
  __syncthreads();
  if (most > 2 * best * (1 + TIE)) {
    for (int c = threadIdx.x; c < n; c += blockDim.x)
      if (s.rates[c] * (1 + TIE) >= most) { atomicMin(&found, c); break; }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    s.summed = 2 * s.m + 1;
    s.best = found == n ? best : 0.5 * s.rates[found];
    s.ending = found == n || s.size + 1 == f.longest;
  }
  if (found == n) return;
  int i = found / 2 / B, b = found / 2 % B, feature = features[i], nominal = f.nominal[feature];
  int op = (nominal ? EQUAL : AT_MOST) + (found & 1);
  if (choosing) {  // the labels of the rule, by the sums of what it covers now
    i64 met = s.bin_weight[i * B + b];
    double weight = (double)(found & 1 ? s.present_weight[i] - met : met) / f.w_scale;
    for (int k = threadIdx.x; k < s.m; k += blockDim.x) {
      int label = labels[k];
      double g = (double)sum_condition(f, s, i, f.usual[feature], op, b, k) / f.g_scale[label];
      double h = (double)sum_condition(f, s, i, f.usual[feature], op, b, s.m + k) / f.h_scale[label];
      s.gains[k] = rate_alone(f, g, h, g, weight);
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    if (choosing) {
      s.m = f.out_count[s.slot] = focus(f, s.gains, s.m, s.chosen, labels);
      s.choosing = 0;
    }
    double* body = f.out_body + (s.slot * f.longest + s.size) * 4;
    body[0] = feature;
    body[1] = op;
    body[2] = nominal ? b : 0.5 * (b + find_next(s.occupied + 4 * i, b));
    body[3] = s.best;
    s.feature = feature;
    s.op = op;
    s.cut = b;
    f.out_size[s.slot] = s.size += 1;
  }
}

// What the sums of a feature's bins say, apart from those of single labels; a block finds out.
struct Runs {
  u64 occupied[4];
  u64 candidates[4];
  i64 present;  // the weight of what has a value
};

__device__ void find_runs(const Fit& f, const State& s, int i, int usual, int nominal, int n_columns, Runs& runs) {
  __shared__ i64 parts[WARPS];
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, b = threadIdx.x, B = (int)f.B;
  i64 w = b < B ? read_bin(f, s, i, b, n_columns - 1) : 0;  // a block has as many threads as there may be bins
  i64 sum = w;
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(FULL, sum, o);
  if (lane == 0) parts[warp] = sum;
  __syncthreads();
  i64 others = 0;
  for (int v = 0; v < WARPS; v++) others += parts[v];
  i64 total = s.totals[n_columns - 1];
  if (b == usual) w = total - others;
  u32 votes = __ballot_sync(FULL, w > 0 && b != MISSING);
  if (lane == 0) ((u32*)runs.occupied)[warp] = votes;
  i64 upto = w;
  for (int o = 1; o < 32; o <<= 1) {
    i64 x = __shfl_up_sync(FULL, upto, o);
    if (lane >= o) upto += x;
  }
  __syncthreads();
  if (lane == 31) parts[warp] = upto;
  __syncthreads();
  i64 before = 0;
  for (int v = 0; v < warp; v++) before += parts[v];
  if (b == MISSING) runs.present = total - w;
  if (b == 0) {  // no condition on an empty bin, nor behind the last threshold, nor on what rarer categories share
    int last = -1, count = 0;
    for (int v = 0; v < 4; v++) {
      u64 word = runs.candidates[v] = runs.occupied[v];
      count += __popcll(word);
      if (word) last = 64 * v + 63 - __clzll((i64)word);
    }
    if (count < 2) runs.candidates[0] = runs.candidates[1] = runs.candidates[2] = runs.candidates[3] = 0;
    else if (!nominal || (nominal == SHARED_BIN && last == OTHER)) runs.candidates[last >> 6] &= ~(1ull << (last & 63));
  }
  __syncthreads();
  if (blockIdx.y == 0) {
    if (b < B) s.bin_weight[i * B + b] = nominal ? w : before + upto;
    if (b < 4) { s.occupied[4 * i + b] = runs.occupied[b]; s.candidates[4 * i + b] = runs.candidates[b]; }
    if (b == 0) s.present_weight[i] = runs.present;
  }
}

// Sums, or largest, of 16 numbers of each lane: in the end, lane 2 j has that of number j. The order is fixed.
template <int HALF>
__device__ __forceinline__ double fold(double (&x)[16], bool largest) {
  bool upper = threadIdx.x & (2 * HALF);
#pragma unroll
  for (int j = 0; j < HALF; j++) {
    double sent = __shfl_xor_sync(FULL, upper ? x[j] : x[j + HALF], 2 * HALF), kept = upper ? x[j + HALF] : x[j];
    x[j] = largest ? fmax(kept, sent) : kept + sent;
  }
  if constexpr (HALF > 1) return fold<HALF / 2>(x, largest);
  double other = __shfl_xor_sync(FULL, x[0], 1);
  return largest ? fmax(x[0], other) : x[0] + other;
}

KERNEL __launch_bounds__(THREADS, 2) rate(const Fit* fit) {
  const Fit& f = *fit;
  State& s = f.states[blockIdx.z];
  if (s.done) return;
  int m = s.m, n_tiles = (m + 31) / 32, tile = blockIdx.y, i = blockIdx.x, B = (int)f.B;
  if (tile >= n_tiles) return;
  __shared__ Runs runs;
  __shared__ Pair parts[WARPS][32];
  int feature = find_draw(f, s, s.size)[i], usual = f.usual[feature], nominal = f.nominal[feature];
  const int* labels = f.out_labels + s.slot * f.K;
  bool one = s.choosing && f.head == SINGLE, with_b = f.outer && f.l1 > 0 && !s.choosing;
  find_runs(f, s, i, usual, nominal, 2 * m + 1, runs);

  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, k = tile * 32 + lane, b0 = 32 * warp, b1 = min(b0 + 32, B);
  bool active = k < m;
  Pair sum = {0, 0}, whole = {0, 0}, missing = {0, 0}, most = {0, 0};
  double g_unit = 0, h_unit = 0;
  if (active) {
#pragma unroll 8
    for (int b = b0; b < b1; b++) { sum.g += read_bin(f, s, i, b, k); sum.h += read_bin(f, s, i, b, m + k); }
    whole = {s.totals[k], s.totals[m + k]};
    if (B > MISSING) missing = {read_bin(f, s, i, MISSING, k), read_bin(f, s, i, MISSING, m + k)};
    g_unit = 1.0 / f.g_scale[labels[k]];
    h_unit = 1.0 / f.h_scale[labels[k]];
  }
  parts[warp][lane] = sum;
  __syncthreads();
  if (usual >= 0) {
    most = whole;
    for (int v = 0; v < WARPS; v++) { most.g -= parts[v][lane].g; most.h -= parts[v][lane].h; }
  }
  if (usual == MISSING) missing = most;
  Pair upto = {0, 0};
  for (int v = 0; v < warp; v++) { upto.g += parts[v][lane].g; upto.h += parts[v][lane].h; }
  if (usual >= 0 && usual < b0) { upto.g += most.g; upto.h += most.h; }
  double g_all = (double)(whole.g - missing.g) * g_unit, h_all = (double)(whole.h - missing.h) * h_unit;
  u32 candidates = ((u32*)runs.candidates)[warp];
  i64 section = (i64)n_tiles * f.F * B * 2;
  for (int b8 = b0; b8 < b1; b8 += 8) {  // eight bins at a time
    u32 some = candidates >> (b8 - b0) & 255;
    if (!(candidates >> (b8 - b0))) break;
    Pair own[8];
#pragma unroll
    for (int e = 0; e < 8; e++) {
      bool there = active && b8 + e < b1 && b8 + e != usual;
      own[e] = {there ? read_bin(f, s, i, b8 + e, k) : 0, there ? read_bin(f, s, i, b8 + e, m + k) : 0};
      if (b8 + e == usual) own[e] = most;
    }
    double rates[16];
    i64 place = (((i64)tile * f.F + i) * B + b8) * 2;
#pragma unroll
    for (int e = 0; e < 8; e++) {
      if (nominal) upto = own[e];
      else { upto.g += own[e].g; upto.h += own[e].h; }
      double g = (double)upto.g * g_unit, h = (double)upto.h * h_unit, o = g_all - g, p = h_all - h;
      double x = shrink(g, f.l1), y = shrink(o, f.l1);
      bool sound = h + f.l2 > FLOOR, other_sound = p + f.l2 > FLOOR;
      double a = sound ? h + f.l2 : 1, b = other_sound ? p + f.l2 : 1, r = 1 / (a * b);  // one division for both
      rates[2 * e] = active && sound ? x * x * (b * r) : 0;
      rates[2 * e + 1] = active && other_sound ? y * y * (a * r) : 0;
      if (with_b && (some >> e & 1)) {
        double u = active && sound ? b * r : 0, v = active && other_sound ? a * r : 0;
        double gb_in = warp_sum(x * g * u), gb_out = warp_sum(y * o * v);
        double bb_in = warp_sum(g * g * u), bb_out = warp_sum(o * o * v);
        if (lane == 0) {
          s.parts[section + place + 2 * e] = gb_in;
          s.parts[section + place + 2 * e + 1] = gb_out;
          s.parts[2 * section + place + 2 * e] = bb_in;
          s.parts[2 * section + place + 2 * e + 1] = bb_out;
        }
      }
    }
    double rate = fold<8>(rates, one);
    if (!(lane & 1) && b8 + (lane >> 2) < B) s.parts[place + (lane >> 1)] = rate;
  }
  if (is_last_block(&s.arrived, (int)f.F * n_tiles)) choose(f, s, n_tiles, one);
}

// The same for partial heads whose labels are yet to be chosen: a block rates the conditions on a bin, label by label.
// A head is about the labels of the largest gains on their own; its gain is that of these, or the bound of it:
//   2 gain = sum of g^2 / (h + l2),  or  g^T D^-1 g + (g^T D^-1 b)^2 / (W - b^T D^-1 b)  with b the sums of gradients
KERNEL rate_some(const Fit* fit) {
  const Fit& f = *fit;
  State& s = f.states[blockIdx.z];
  if (s.done) return;
  DYNAMIC_SHARED(double, gains);  // (m,)
  __shared__ Runs runs;
  __shared__ int first;
  int B = (int)f.B, i = blockIdx.x / B, b = blockIdx.x % B, m = s.m;
  int feature = find_draw(f, s, s.size)[i], usual = f.usual[feature], nominal = f.nominal[feature];
  const int* labels = f.out_labels + s.slot * f.K;
  find_runs(f, s, i, usual, nominal, 2 * m + 1, runs);
  if (is_candidate(runs.candidates, b)) {
    i64 met = sum_condition(f, s, i, usual, nominal ? EQUAL : AT_MOST, b, 2 * m);
    for (int negated = 0; negated < 2; negated++) {
      int op = (nominal ? EQUAL : AT_MOST) + negated;
      double weight = (double)(negated ? runs.present - met : met) / f.w_scale, largest = 0;
      for (int k = threadIdx.x; k < m; k += blockDim.x) {
        double g = (double)sum_condition(f, s, i, usual, op, b, k) / f.g_scale[labels[k]];
        double h = (double)sum_condition(f, s, i, usual, op, b, m + k) / f.h_scale[labels[k]];
        gains[k] = rate_alone(f, g, h, g, weight);
        largest = fmax(largest, gains[k]);
      }
      largest = block_max(largest);
      double gg = 0, gb = 0, bb = 0, least = f.head_share * (1 - TIE) * largest;
      auto take = [&](int k) {
        if (!f.outer) { gg += 2 * gains[k]; return; }
        double g = (double)sum_condition(f, s, i, usual, op, b, k) / f.g_scale[labels[k]];
        double d = (double)sum_condition(f, s, i, usual, op, b, m + k) / f.h_scale[labels[k]] + f.l2;
        double x = shrink(g, f.l1);
        if (d > FLOOR) { gg += x * x / d; gb += x * g / d; bb += g * g / d; }
      };
      if (f.head_size >= m) {
        for (int k = threadIdx.x; k < m; k += blockDim.x)
          if (gains[k] >= least) take(k);
      } else {
        for (int r = 0; r < f.head_size; r++) {
          double most = -1;
          for (int k = threadIdx.x; k < m; k += blockDim.x) most = fmax(most, gains[k]);
          most = block_max(most);
          if (threadIdx.x == 0) first = m;
          __syncthreads();
          for (int k = threadIdx.x; k < m; k += blockDim.x)
            if (gains[k] == most) atomicMin(&first, k);
          __syncthreads();
          int k = first;
          if ((int)threadIdx.x == k % (int)blockDim.x) { take(k); gains[k] = -1; }
          __syncthreads();
        }
      }
      gg = block_sum(gg);
      gb = block_sum(gb);
      bb = block_sum(bb);
      if (threadIdx.x == 0)
        s.parts[((i64)i * B + b) * 2 + negated] = f.outer ? gg + gb * gb / fmax(weight - bb, FLOOR * weight) : gg;
    }
  }
  if (is_last_block(&s.arrived, (int)f.F * B)) choose(f, s, 1, false);
}
