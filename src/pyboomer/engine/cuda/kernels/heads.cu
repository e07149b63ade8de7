// Heads: the scores of a finished rule, from sums over all examples that it covers (Alg. 2).
//
//   p_k = -g_k / (h_k + l2)           (Eq. 17), where the Hessian is diagonal
//   (H + l2 I) p = -g                 (Eq. 16), where H = diag(a) - sum_n w_n g_n g_n^T: by conjugate gradients

// What is written down when the head is found: x are the scores before shrinkage.
__device__ void finish_head(const Fit& f, State& s, const double* x, double gain) {
  i64 slot = s.rule - f.first;
  for (int k = threadIdx.x; k < s.m; k += blockDim.x) {
    f.out_labels[slot * f.K + k] = f.labels[k];
    f.out_scores[slot * f.K + k] = f.learning_rate * x[k];  // Alg. 1, line 8
  }
  if (threadIdx.x == 0) {
    f.out_size[slot] = s.size;
    f.out_count[slot] = s.m;
    f.out_facts[2 * slot] = gain;
    f.out_facts[2 * slot + 1] = s.coverage;
    s.solved = 1;
  }
}

// result[c] += sum over covered examples of a term of the column, a whole number, for the columns of a block
template <class Term>
__device__ void sum_columns(const Fit& f, const State& s, int n_columns, i64* result, Term term) {
  __shared__ i64 sums[THREADS];
  int span = (int)f.span, lane = threadIdx.x & 31, per_warp = 32 / span, column = blockIdx.y * span + lane % span;
  i64 sum = 0;
  if (column < n_columns) {
    int step = gridDim.x * WARPS * per_warp;
#pragma unroll 4
    for (int j = (blockIdx.x * WARPS + (threadIdx.x >> 5)) * per_warp + lane / span; j < s.n_covered; j += step)
      sum += term(f.covered[j], j);
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  if ((int)threadIdx.x < span && column < n_columns) {
    sum = 0;
    for (int t = threadIdx.x; t < THREADS; t += span) sum += sums[t];
    if (sum) add64(result + column, sum);
  }
}

// Vectors of conjugate gradients.
enum { D, X, R, DIRECTION, G, Z };
__device__ double* get_vector(const Fit& f, int which) { return f.vectors + which * f.K; }

// z = (D - g g^T / W)^-1 r, the matrix behind the bound, and the next direction z + beta * direction; returns r . z
__device__ double precondition(const Fit& f, State& s, double old) {
  double *d = get_vector(f, D), *r = get_vector(f, R), *g = get_vector(f, G), *z = get_vector(f, Z);
  double *direction = get_vector(f, DIRECTION), product = 0, dot = 0, top = 0;
  for (int k = threadIdx.x; k < s.m; k += blockDim.x)
    if (d[k] > FLOOR) product += g[k] * r[k] / d[k];
  product = block_sum(product);
  for (int k = threadIdx.x; k < s.m; k += blockDim.x) {
    z[k] = d[k] > FLOOR ? (r[k] + s.scale * product * g[k]) / d[k] : 0;
    dot += r[k] * z[k];
  }
  dot = block_sum(dot);
  double beta = old > 0 ? dot / old : 0;
  for (int k = threadIdx.x; k < s.m; k += blockDim.x) {
    direction[k] = z[k] + beta * direction[k];
    top = fmax(top, fabs(direction[k]));
  }
  top = block_max(top);
  if (threadIdx.x == 0) {
    int exponent;
    frexp(top, &exponent);
    s.top = ldexp(1.0, exponent);
    s.rz = dot;
  }
  __syncthreads();
  return dot;
}

__device__ void finish_gradients(const Fit& f, State& s) {
  double *x = get_vector(f, X), *g = get_vector(f, G), gain = 0;
  for (int k = threadIdx.x; k < s.m; k += blockDim.x) gain -= 0.5 * shrink(g[k], f.l1) * x[k];
  finish_head(f, s, x, block_sum(gain));
}

// Alg. 2, line 1: the sums; and the head, or the first direction towards it
KERNEL sum_covered(const Fit* fit) {
  const Fit& f = *fit;
  State& s = *f.state;
  int m = s.m, n_columns = 2 * m + 1;
  int span = (int)f.span, column = blockIdx.y * span + (threadIdx.x & 31) % span;
  if ((int)blockIdx.y * span >= n_columns) return;
  const float* source = 0;
  double scale = f.w_scale * f.head_scale;
  if (column < m) {
    source = f.gradient + f.labels[column];
    scale = f.g_scale[f.labels[column]] * f.head_scale;
  } else if (column < 2 * m) {
    source = f.curvature + f.labels[column - m];
    scale = f.h_scale[f.labels[column - m]] * f.head_scale;
  }
  const double* weight = f.weight;
  i64 stride = f.stride;
  sum_columns(f, s, n_columns, f.sums, [=](u32 row, int) -> i64 {
    return __double2ll_rn((source ? (double)source[row * stride] : 1.0) * (weight[row] * scale));
  });
  if (!is_last_block(&s, (int)gridDim.x * ((n_columns + span - 1) / span))) return;
  double *g = get_vector(f, G), *d = get_vector(f, D), *x = get_vector(f, X), *r = get_vector(f, R);
  double coverage = (double)f.sums[2 * m] / (f.w_scale * f.head_scale);
  bool choosing = s.choosing;  // of all threads, before one of them changes it
  for (int k = threadIdx.x; k < m; k += blockDim.x) {
    int label = f.labels[k];
    g[k] = (double)f.sums[k] / ((double)f.g_scale[label] * f.head_scale);
    d[k] = (double)f.sums[m + k] / ((double)f.h_scale[label] * f.head_scale);
    if (choosing) f.gains[k] = rate_alone(f, g[k], d[k], coverage);
  }
  __syncthreads();
  for (int c = threadIdx.x; c < n_columns; c += blockDim.x) f.sums[c] = 0;
  if (threadIdx.x == 0) s.coverage = coverage;
  if (choosing) {  // nothing was learned from the sample: the labels that suit all examples best
    int* chosen = (int*)get_vector(f, DIRECTION);
    __shared__ int n_chosen;
    if (threadIdx.x == 0) {
      if (f.head == SINGLE) { chosen[0] = find_best_label(f.gains, m); n_chosen = 1; }
      else n_chosen = choose_labels(f.gains, m, (int)f.head_size, f.head_share, chosen);
      for (int i = 0; i < n_chosen; i++) {  // ascending: none is read that was written
        f.labels[i] = f.labels[chosen[i]];
        g[i] = g[chosen[i]];
        d[i] = d[chosen[i]];
      }
      s.m = n_chosen;
      s.choosing = 0;
    }
    __syncthreads();
    m = n_chosen;
  }
  double gain = 0, size = 0, gg = 0;
  double* direction = get_vector(f, DIRECTION);
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
      gg += sound ? g[k] * g[k] / d[k] : 0;
    }
  }
  gain = block_sum(gain);
  if (!f.outer) { finish_head(f, s, x, gain); return; }
  if (f.K <= LARGEST_SYSTEM) return;  // `solve_system` goes on
  size = block_sum(size);
  gg = block_sum(gg);
  if (threadIdx.x == 0) {
    s.limit = CG_TOLERANCE * CG_TOLERANCE * size;
    s.scale = 1 / fmax(coverage - gg, FLOOR * coverage);
  }
  __syncthreads();
  double rz = precondition(f, s, 0);
  if (!(size > 0 && rz > 0)) finish_gradients(f, s);
}

// dots[j] = w_n (g_n . direction), a covered example for each warp
KERNEL multiply_rows(const Fit* fit) {
  const Fit& f = *fit;
  const State& s = *f.state;
  if (s.solved) return;
  const double* direction = get_vector(f, DIRECTION);
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  for (int j = blockIdx.x * WARPS + warp; j < s.n_covered; j += gridDim.x * WARPS) {
    i64 row = f.covered[j];
    double dot = 0;
    for (int k = lane; k < s.m; k += 32) dot += (double)f.gradient[row * f.stride + f.labels[k]] * direction[k];
    dot = warp_sum(dot);
    if (lane == 0) f.dots[j] = f.weight[row] * dot;
  }
}

// A direction = D direction - sum_n g_n dots[n]; and a step of conjugate gradients
KERNEL multiply_columns(const Fit* fit) {
  const Fit& f = *fit;
  State& s = *f.state;
  int m = s.m;
  int span = (int)f.span, column = blockIdx.y * span + (threadIdx.x & 31) % span;
  if (s.solved || (int)blockIdx.y * span >= m) return;
  double unit = f.product_scale / s.top;
  const float* source = f.gradient + (column < m ? f.labels[column] : 0);
  const double* dots = f.dots;
  i64 stride = f.stride;
  sum_columns(f, s, m, f.products, [=](u32 row, int j) -> i64 {
    return __double2ll_rn((double)source[row * stride] * (dots[j] * unit));
  });
  if (!is_last_block(&s, (int)gridDim.x * ((m + span - 1) / span))) return;
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
  if (curvature <= FLOOR * norm) { finish_gradients(f, s); return; }  // degenerate direction
  double old = s.rz, step = old / curvature;
  for (int k = threadIdx.x; k < m; k += blockDim.x) {
    x[k] += step * direction[k];
    r[k] -= step * product[k];
    size += r[k] * r[k];
  }
  size = block_sum(size);
  double rz = precondition(f, s, old);
  if (!(size > s.limit && rz > 0)) finish_gradients(f, s);
}

// Eq. 16 for few labels: the sums of g g^T, and elimination, as heads.eliminate does it
KERNEL solve_system(const Fit* fit) {
  const int ROWS = 64, PAIRS = (LARGEST_SYSTEM * (LARGEST_SYSTEM + 1) / 2 + THREADS - 1) / THREADS;
  __shared__ float left[ROWS][LARGEST_SYSTEM], right[ROWS][LARGEST_SYSTEM];
  const Fit& f = *fit;
  State& s = *f.state;
  int m = s.m, n = s.n_covered, n_pairs = m * (m + 1) / 2, K = (int)f.K;
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
      u32 row = f.covered[start + r];
      float g = f.gradient[row * f.stride + f.labels[k]];
      left[r][k] = g;
      right[r][k] = (float)(g * f.weight[row] * f.w_scale);
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
  if (!is_last_block(&s, gridDim.x)) return;

  __shared__ double A[LARGEST_SYSTEM][LARGEST_SYSTEM + 1], z[LARGEST_SYSTEM], pivots[LARGEST_SYSTEM];
  double *d = get_vector(f, D), *r = get_vector(f, R), *x = get_vector(f, X), gain = 0;
  for (int c = threadIdx.x; c < m * m; c += blockDim.x) {
    int i = c / m, j = c % m;
    if (j > i) continue;
    A[i][j] = (i == j ? d[i] : 0) - (double)f.products[i * K + j] / f.w_scale;  // d has l2 already
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
  finish_head(f, s, x, gain);
}
