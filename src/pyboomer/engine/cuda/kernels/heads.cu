// Heads: the scores of a finished rule, from sums over all examples that it covers (Alg. 2).
//
//   p_k = -g_k / (h_k + l2)           (Eq. 17), where the Hessian is diagonal
//   (H + l2 I) p = -g                 (Eq. 16), where H = diag(a) - sum_n w_n b_n b_n^T: by conjugate gradients
//
// Statistics are those at the beginning of the round. With f_n the scores that rules of the round before have given to an
// example, its gradient is now g_n + H_n f_n, and b_n is what g_n was. The masks tell which rules these are.

// What the rule is that gets its head: a part of the round.
struct Target {
  int rule;      // of the round
  i64 slot;
  const State* s;
  int m;
  int* labels;
  bool is_first;  // so that no scores have been given
};
__device__ Target find_target(const Fit& f) {
  const Round& round = *f.round;
  int rule = round.n_heads;
  i64 slot = find_slot(round, rule);
  return {rule, slot, f.states + rule - round.begin, f.out_count[slot], f.out_labels + slot * f.K, rule == 0 && !f.pending};
}

// What those rules of the round from `first` to `last` - 1 that cover an example give it for a label; `mask` is its first
__device__ __forceinline__ double sum_given(const Fit& f, i64 row, u32 mask, int first, int last, int label) {
  double sum = 0;
  int K = (int)f.K;
  for (int w = 0; 32 * w < last; w++) {
    if (w) mask = f.masks[w * f.N + row];
    if (32 * w < first) mask &= first - 32 * w < 32 ? FULL << (first - 32 * w) : 0;
    if (32 * w + 32 > last) mask &= (1u << (last - 32 * w)) - 1;
    const double* table = f.tables + (i64)w * 128 * K + label;
    int n = min(8, (last - 32 * w + 3) / 4);
#pragma unroll 4
    for (int q = 0; q < n; q++) sum += table[(16 * q + (int)(mask >> 4 * q & 15)) * K];
  }
  return sum;
}

// What the rules of the round before have given
__device__ __forceinline__ double find_given(const Fit& f, i64 row, u32 mask, int rule, int label) {
  return sum_given(f, row, mask, 0, rule, label) + (f.pending ? f.pending[row * f.K + label] : 0);
}

// What is written down when the head is found: x are the scores before shrinkage.
__device__ void finish_head(const Fit& f, const Target& t, const double* x, double gain) {
  Round& round = *f.round;
  int m = f.out_count[t.slot], own = 1 << t.rule % 4;
  double *table = f.tables + t.rule / 4 * 16 * f.K, *head = table + own * f.K;
  for (int k = threadIdx.x; k < f.K; k += blockDim.x) head[k] = 0;
  __syncthreads();
  for (int k = threadIdx.x; k < m; k += blockDim.x) {
    double unit = f.unit[t.labels[k]];
    f.out_scores[t.slot * f.K + k] = head[t.labels[k]] = rint(f.learning_rate * x[k] / unit) * unit;  // Alg. 1, line 8
  }
  __syncthreads();
  for (i64 k = threadIdx.x; k < f.K; k += blockDim.x) {
#pragma unroll 8
    for (int c = 1; c < own; c++) head[c * f.K + k] = head[k] + table[c * f.K + k];
  }
  if (threadIdx.x == 0) {
    f.out_facts[2 * t.slot] = gain;
    f.out_facts[2 * t.slot + 1] = round.coverage;
    round.n_heads += 1;
    round.solved = 1;
  }
}

// Vectors of a head, and of conjugate gradients.
enum { D, X, R, DIRECTION, G, Z, FIRST, GAINS };
__device__ double* get_vector(const Fit& f, int which) { return f.vectors + which * f.K; }

// z = (D - b b^T / W)^-1 r, the matrix behind the bound, and the next direction z + beta * direction; returns r . z
__device__ double precondition(const Fit& f, Round& round, int m, double old) {
  double *d = get_vector(f, D), *r = get_vector(f, R), *b = get_vector(f, FIRST), *z = get_vector(f, Z);
  double *direction = get_vector(f, DIRECTION), product = 0, dot = 0, top = 0;
  for (int k = threadIdx.x; k < m; k += blockDim.x)
    if (d[k] > FLOOR) product += b[k] * r[k] / d[k];
  product = block_sum(product);
  for (int k = threadIdx.x; k < m; k += blockDim.x) {
    z[k] = d[k] > FLOOR ? (r[k] + round.scale * product * b[k]) / d[k] : 0;
    dot += r[k] * z[k];
  }
  dot = block_sum(dot);
  double beta = old > 0 ? dot / old : 0;
  for (int k = threadIdx.x; k < m; k += blockDim.x) {
    direction[k] = z[k] + beta * direction[k];
    top = fmax(top, fabs(direction[k]));
  }
  top = block_max(top);
  if (threadIdx.x == 0) {
    int exponent;
    frexp(top, &exponent);
    round.top = ldexp(1.0, exponent);
    round.rz = dot;
  }
  __syncthreads();
  return dot;
}

__device__ void finish_gradients(const Fit& f, const Target& t) {
  int m = f.out_count[t.slot];
  double *x = get_vector(f, X), *g = get_vector(f, G), gain = 0;
  for (int k = threadIdx.x; k < m; k += blockDim.x) gain -= 0.5 * shrink(g[k], f.l1) * x[k];
  finish_head(f, t, x, block_sum(gain));
}

// dots[j] = b_n . f_n, with f_n the scores given; a covered example for each warp
KERNEL project(const Fit* fit) {
  const Fit& f = *fit;
  const Target t = find_target(f);
  if (t.is_first) return;
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  for (int j = blockIdx.x * WARPS + warp; j < t.s->n_covered; j += gridDim.x * WARPS) {
    i64 row = t.s->covered[j];
    double dot = 0;
    for (int k = lane; k < f.K; k += 32) dot += f.gradient[row * f.stride + k] * find_given(f, row, f.masks[row], t.rule, k);
    dot = warp_sum(dot);
    if (lane == 0) f.dots[j] = dot;
  }
}

// Alg. 2, line 1: the sums; and the head, or the first direction towards it. Each lane has a label, of two examples at once.
KERNEL __launch_bounds__(THREADS, 3) sum_covered(const Fit* fit) {
  const int KINDS = 4, PAIR = 2;
  __shared__ i64 parts[KINDS][THREADS];
  const Fit f = *fit;  // in registers, what is read
  Round& round = *f.round;
  const Target t = find_target(f);
  int m = t.m, n_tiles = (m + 31) / 32, K = (int)f.K, span = (int)f.span, c = blockIdx.y * 32 + threadIdx.x % span;
  if ((int)blockIdx.y >= n_tiles) return;
  i64 sums[KINDS] = {};
  if (c < m) {
    int n = t.s->n_covered, per_block = THREADS / span, step = gridDim.x * per_block, label = t.labels[c];
    double g_scale = f.g_scale[label] * f.head_scale, h_scale = f.h_scale[label] * f.head_scale;
    double w_scale = f.w_scale * f.head_scale;
    for (int j0 = blockIdx.x * per_block + threadIdx.x / span; j0 < n; j0 += PAIR * step) {
      i64 rows[PAIR];
      double w[PAIR];
      float b[PAIR], h[PAIR];
      u32 masks[PAIR];
#pragma unroll
      for (int e = 0; e < PAIR; e++) {  // asked for together
        rows[e] = t.s->covered[min(j0 + e * step, n - 1)];
        w[e] = j0 + e * step < n ? f.weight[rows[e]] : 0;
        b[e] = f.gradient[rows[e] * f.stride + label];
        h[e] = f.curvature[rows[e] * f.stride + label];
        masks[e] = f.masks[rows[e]];
      }
#pragma unroll
      for (int e = 0; e < PAIR; e++) {
        if (j0 + e * step >= n) break;
        double g = b[e];
        if (!t.is_first) g += h[e] * find_given(f, rows[e], masks[e], t.rule, label);
        if (!t.is_first && f.outer) g -= b[e] * f.dots[j0 + e * step];
        sums[0] += __double2ll_rn(g * (w[e] * g_scale));
        sums[1] += __double2ll_rn(h[e] * (w[e] * h_scale));
        if (f.outer) sums[2] += __double2ll_rn(b[e] * (w[e] * g_scale));
        sums[3] += __double2ll_rn(w[e] * w_scale);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < KINDS; i++) parts[i][threadIdx.x] = sums[i];
  __syncthreads();
  for (int i = threadIdx.x; i < KINDS * span; i += THREADS) {
    int kind = i / span, column = blockIdx.y * 32 + i % span;
    i64 sum = 0;
    for (int j = i % span; j < THREADS; j += span) sum += parts[kind][j];
    if (kind == 3 ? column == 0 : column < m) add64(f.sums + kind * K + column, sum);
  }
  if (!is_last_block(&round.arrived, (int)gridDim.x * n_tiles)) return;
  double *g = get_vector(f, G), *d = get_vector(f, D), *b = get_vector(f, FIRST), *gains = get_vector(f, GAINS);
  double coverage = (double)f.sums[3 * K] / (f.w_scale * f.head_scale);
  bool choosing = f.head != MULTI && f.out_size[t.slot] == 0;
  for (int k = threadIdx.x; k < m; k += blockDim.x) {
    int label = t.labels[k];
    g[k] = (double)f.sums[k] / (f.g_scale[label] * f.head_scale);
    d[k] = (double)f.sums[K + k] / (f.h_scale[label] * f.head_scale);
    b[k] = (double)f.sums[2 * K + k] / (f.g_scale[label] * f.head_scale);
    gains[k] = choosing ? rate_alone(f, g[k], d[k], b[k], coverage) : 0;
  }
  __syncthreads();
  for (int c = threadIdx.x; c < 3 * K + 1; c += blockDim.x) f.sums[c] = 0;
  if (threadIdx.x == 0) {
    round.coverage = coverage;
    round.solved = 0;
  }
  if (choosing) {  // nothing was learned from the sample: the labels that suit all examples best
    int* chosen = (int*)get_vector(f, DIRECTION);
    if (threadIdx.x == 0) {
      int count = f.out_count[t.slot] = focus(f, gains, m, chosen, t.labels);
      for (int i = 0; i < count; i++) { g[i] = g[chosen[i]]; d[i] = d[chosen[i]]; b[i] = b[chosen[i]]; }
    }
    __syncthreads();
    m = f.out_count[t.slot];
    __syncthreads();
  }
  double gain = 0, size = 0, bb = 0;
  double *x = get_vector(f, X), *r = get_vector(f, R), *direction = get_vector(f, DIRECTION);
  for (int k = threadIdx.x; k < m; k += blockDim.x) {
    d[k] += f.l2;
    bool sound = d[k] > FLOOR;
    double z = shrink(g[k], f.l1);
    if (!f.outer) {
      x[k] = sound ? -z / d[k] : 0;  // Eq. 17
      gain += sound ? 0.5 * z * z / d[k] : 0;
    } else {
      x[k] = direction[k] = 0;
      r[k] = sound ? -z : 0;
      size += r[k] * r[k];
      bb += sound ? b[k] * b[k] / d[k] : 0;
    }
  }
  gain = block_sum(gain);
  if (!f.outer) { finish_head(f, t, x, gain); return; }
  if (f.K <= LARGEST_SYSTEM) return;  // `solve_system` goes on
  size = block_sum(size);
  bb = block_sum(bb);
  if (threadIdx.x == 0) {
    round.limit = CG_TOLERANCE * CG_TOLERANCE * size;
    round.scale = 1 / fmax(coverage - bb, FLOOR * coverage);
  }
  __syncthreads();
  double rz = precondition(f, round, m, 0);
  if (!(size > 0 && rz > 0)) finish_gradients(f, t);
}

// dots[j] = w_n (b_n . direction), a covered example for each warp
KERNEL multiply_rows(const Fit* fit) {
  const Fit& f = *fit;
  if (f.round->solved) return;
  const Target t = find_target(f);
  const double* direction = get_vector(f, DIRECTION);
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  for (int j = blockIdx.x * WARPS + warp; j < t.s->n_covered; j += gridDim.x * WARPS) {
    i64 row = t.s->covered[j];
    double dot = 0;
    for (int k = lane; k < t.m; k += 32) dot += (double)f.gradient[row * f.stride + t.labels[k]] * direction[k];
    dot = warp_sum(dot);
    if (lane == 0) f.dots[j] = f.weight[row] * dot;
  }
}

// A direction = D direction - sum_n b_n dots[n]; and a step of conjugate gradients
KERNEL multiply_columns(const Fit* fit) {
  __shared__ i64 parts[THREADS];
  const Fit& f = *fit;
  Round& round = *f.round;
  if (round.solved) return;
  const Target t = find_target(f);
  int m = t.m, lane = threadIdx.x & 31, column = blockIdx.y * 32 + lane;
  if ((int)blockIdx.y * 32 >= m) return;
  double unit = f.product_scale / round.top;
  const float* source = f.gradient + (column < m ? t.labels[column] : 0);
  i64 sum = 0;
#pragma unroll 4
  for (int j = blockIdx.x * WARPS + (threadIdx.x >> 5); j < t.s->n_covered; j += gridDim.x * WARPS)
    sum += __double2ll_rn((double)source[t.s->covered[j] * f.stride] * (f.dots[j] * unit));
  parts[threadIdx.x] = sum;
  __syncthreads();
  if ((int)threadIdx.x < 32 && column < m) {
    sum = 0;
    for (int i = lane; i < THREADS; i += 32) sum += parts[i];
    add64(f.products + column, sum);
  }
  if (!is_last_block(&round.arrived, (int)gridDim.x * ((m + 31) / 32))) return;
  double *d = get_vector(f, D), *x = get_vector(f, X), *r = get_vector(f, R), *direction = get_vector(f, DIRECTION);
  double *product = get_vector(f, Z), curvature = 0, norm = 0, size = 0;
  for (int k = threadIdx.x; k < m; k += blockDim.x) {
    product[k] = d[k] > FLOOR ? d[k] * direction[k] - (double)f.products[k] / unit : 0;
    f.products[k] = 0;
    curvature += direction[k] * product[k];
    norm += direction[k] * direction[k];
  }
  curvature = block_sum(curvature);
  norm = block_sum(norm);
  if (curvature <= FLOOR * norm) { finish_gradients(f, t); return; }  // degenerate direction
  double old = round.rz, step = old / curvature;
  for (int k = threadIdx.x; k < m; k += blockDim.x) {
    x[k] += step * direction[k];
    r[k] -= step * product[k];
    size += r[k] * r[k];
  }
  size = block_sum(size);
  double rz = precondition(f, round, m, old);
  if (!(size > round.limit && rz > 0)) finish_gradients(f, t);
}

// Eq. 16 for few labels: the sums of b b^T, and elimination, as heads.eliminate does it
KERNEL solve_system(const Fit* fit) {
  const int ROWS = 64, PAIRS = (LARGEST_SYSTEM * (LARGEST_SYSTEM + 1) / 2 + THREADS - 1) / THREADS;
  __shared__ float left[ROWS][LARGEST_SYSTEM], right[ROWS][LARGEST_SYSTEM];
  const Fit& f = *fit;
  const Target t = find_target(f);
  int m = t.m, n = t.s->n_covered, n_pairs = m * (m + 1) / 2, K = (int)f.K;
  i64 sums[PAIRS];
  int rows[PAIRS], columns[PAIRS];
#pragma unroll
  for (int q = 0; q < PAIRS; q++) {
    int pair = threadIdx.x + q * THREADS, i = 0;
    sums[q] = 0;
    while ((i + 1) * (i + 2) / 2 <= pair && i < m) i++;
    rows[q] = i;
    columns[q] = pair - i * (i + 1) / 2;
  }
  for (int start = blockIdx.x * ROWS; start < n; start += gridDim.x * ROWS) {
    int count = min(ROWS, n - start);
    for (int c = threadIdx.x; c < count * m; c += blockDim.x) {
      int r = c / m, k = c % m;
      u32 row = t.s->covered[start + r];
      float g = f.gradient[row * f.stride + t.labels[k]];
      left[r][k] = g;
      right[r][k] = (float)(g * f.weight[row] * (f.w_scale * MORE));
    }
    __syncthreads();
#pragma unroll
    for (int q = 0; q < PAIRS; q++) {
      if ((int)threadIdx.x + q * THREADS >= n_pairs) break;
#pragma unroll 8
      for (int r = 0; r < count; r++) sums[q] += __float2int_rn(left[r][rows[q]] * right[r][columns[q]]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int q = 0; q < PAIRS; q++)
    if ((int)threadIdx.x + q * THREADS < n_pairs && sums[q]) add64(f.products + rows[q] * K + columns[q], sums[q]);
  if (!is_last_block(&f.round->arrived, gridDim.x)) return;

  __shared__ double A[LARGEST_SYSTEM][LARGEST_SYSTEM + 1], z[LARGEST_SYSTEM], pivots[LARGEST_SYSTEM];
  double *d = get_vector(f, D), *r = get_vector(f, R), *x = get_vector(f, X), gain = 0;
  for (int c = threadIdx.x; c < m * m; c += blockDim.x) {
    int i = c / m, j = c % m;
    if (j > i) continue;
    A[i][j] = (i == j ? d[i] : 0) - (double)f.products[i * K + j] / (f.w_scale * MORE);  // d has l2 already
    f.products[i * K + j] = 0;
  }
  for (int k = threadIdx.x; k < m; k += blockDim.x) z[k] = r[k];
  __syncthreads();
  for (int j = 0; j < m; j++) {
    double pivot = A[j][j], own = z[j];
    bool sound = pivot > FLOOR;  // else the label leaves the system
    if (sound) gain += 0.5 * own * own / pivot;
    for (int c = threadIdx.x; c < (m - j - 1) * (m - j); c += blockDim.x) {
      int i = j + 1 + c / (m - j), k = j + 1 + c % (m - j);
      if (k == m) z[i] = sound ? z[i] - A[i][j] / pivot * own : z[i];
      else if (k <= i && sound) A[i][k] -= A[i][j] / pivot * A[k][j];
    }
    __syncthreads();
    if (threadIdx.x == 0) pivots[j] = sound ? pivot : 0;
  }
  __syncthreads();
  for (int j = m - 1; j >= 0; j--) {  // back substitution, with L[i, j] = A[i, j] / pivot
    if (threadIdx.x == 0) z[j] = pivots[j] > 0 ? z[j] / pivots[j] : 0;
    __syncthreads();
    double own = z[j];
    for (int i = threadIdx.x; i < j; i += blockDim.x)
      if (pivots[i] > 0) z[i] -= A[j][i] * own;
    __syncthreads();
  }
  for (int k = threadIdx.x; k < m; k += blockDim.x) x[k] = z[k];
  __syncthreads();
  finish_head(f, t, x, gain);
}
