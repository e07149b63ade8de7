// The update: scores of the covered examples, and the statistics that follow from them (Alg. 1, line 4); a warp does a row.

// Eq. 6: e = exp(-|y f|);  g = -y w / (1 + exp(y f)),  h = w e / (1 + e)^2
__device__ __forceinline__ void derive_label_wise(double y, double w, double score, float& g, float& h) {
  double margin = y * score, e = exp(-fabs(margin)), p = 1 / (1 + e), q = e * p;
  g = (float)(-y * w * (margin > 0 ? q : p));
  h = (float)(w * p * q);
}

__device__ __forceinline__ double read_weight(const Fit& f, i64 cell, int y) {
  return f.label_weight ? f.label_weight[cell] : y ? 1.0 : 0.0;
}
__device__ __forceinline__ double read_weight(const Fit& f, i64 cell) { return read_weight(f, cell, f.signs[cell]); }

__device__ __forceinline__ bool decomposes(const Fit& f) { return f.loss == LABEL_WISE || f.loss == SQUARED; }

// Statistics of a label on its own, for losses that decompose
__device__ __forceinline__ void derive(const Fit& f, i64 row, int k, double score) {
  i64 cell = row * f.K + k, place = row * f.stride + k;
  int y = f.signs[cell];
  double w = read_weight(f, cell, y);
  if (f.loss == LABEL_WISE) {
    derive_label_wise(y, w, score, f.gradient[place], f.curvature[place]);
  } else {  // squared error: scores are residuals, g = w (f - y), h = w
    f.gradient[place] = (float)(w * score);
    f.curvature[place] = (float)w;
  }
}

// Eq. 7, for an example: g_k = -y_k w_k exp(-y_k f_k) / S,  S = 1 + sum_k w_k exp(-y_k f_k)
__device__ void derive_example_wise(const Fit& f, i64 row) {
  int lane = threadIdx.x & 31, K = (int)f.K;
  i64 start = row * f.K;
  auto read = [&](int k) { return -f.signs[start + k] * f.scores[start + k]; };
  double first = lane < K ? read(lane) : 0, shift = fmax(first, 0.0), sum = 0;
  for (int k = lane + 32; k < K; k += 32) shift = fmax(shift, read(k));
  shift = warp_max(shift);
  double e = lane < K ? read_weight(f, start + lane) * exp(first - shift) : 0;  // of the first 32 labels, kept
  sum = e;
  for (int k = lane + 32; k < K; k += 32) sum += read_weight(f, start + k) * exp(read(k) - shift);
  double unit = 1 / (exp(-shift) + warp_sum(sum));
  for (int k = lane; k < K; k += 32) {
    double p = (k == lane ? e : read_weight(f, start + k) * exp(read(k) - shift)) * unit;
    f.gradient[row * f.stride + k] = (float)(-f.signs[start + k] * p);
    f.curvature[row * f.stride + k] = (float)(f.outer ? p : p * (1 - p));
  }
}

// The exponentials of the known vectors' scores, and their sum; a warp does it, with room for V + K numbers
__device__ double weigh_vectors(const Fit& f, i64 row, double* vectors, double* labels) {
  int lane = threadIdx.x & 31;
  for (int k = lane; k < f.K; k += 32) labels[k] = exp(fmin(fmax(f.scores[row * f.K + k], -f.limit), f.limit));
  __syncwarp();
  double sum = 0;
  for (int v = lane; v < f.V; v += 32) {
    double x = f.factor[v];
    for (i64 i = f.vector_offsets[v]; i < f.vector_offsets[v + 1]; i++) x *= labels[f.vector_places[i]];
    vectors[v] = x;
    sum += x;
  }
  return warp_sum(sum);
}

// own = vectors, with 0 for all that are not nearest to an example; their sum
__device__ double keep_nearest(const Fit& f, i64 row, const double* vectors, double* own) {
  int lane = threadIdx.x & 31;
  double best = -1e300, sum = 0;
  for (int v = lane; v < f.V; v += 32) {
    double agreement = 0;
    for (i64 i = f.vector_offsets[v]; i < f.vector_offsets[v + 1]; i++) agreement += f.signs[row * f.K + f.vector_places[i]];
    own[v] = agreement;
    best = fmax(best, agreement);
  }
  best = warp_max(best) - 0.5;
  for (int v = lane; v < f.V; v += 32) {
    own[v] = own[v] > best ? vectors[v] : 0;
    sum += own[v];
  }
  return warp_sum(sum);
}

// The joint loss: g = p - q, h = p (1 - p);  p, q: probabilities of the labels, all vectors or the nearest considered
__device__ void derive_joint(const Fit& f, i64 row) {
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  double* vectors = f.scratch + ((i64)blockIdx.x * (blockDim.x >> 5) + warp) * (2 * f.V + f.K);
  double *own = vectors + f.V, *labels = own + f.V;
  double sum = weigh_vectors(f, row, vectors, labels), sum_own = 1;
  __syncwarp();
  bool settled = f.settled[row];
  if (!settled) sum_own = keep_nearest(f, row, vectors, own);
  __syncwarp();
  for (int k = lane; k < f.K; k += 32) {
    double p = 0, q = 0;
    for (i64 i = f.label_offsets[k]; i < f.label_offsets[k + 1]; i++) {
      p += vectors[f.label_places[i]];
      if (!settled) q += own[f.label_places[i]];
    }
    p /= sum;
    q = settled ? (f.signs[row * f.K + k] > 0) : q / sum_own;
    f.gradient[row * f.stride + k] = (float)(p - q);
    f.curvature[row * f.stride + k] = (float)fmax(p * (1 - p), 0.0);
  }
  __syncwarp();
}

// Statistics of an example, for the others
__device__ void derive_row(const Fit& f, i64 row) {
  if (f.loss == EXAMPLE_WISE) derive_example_wise(f, row);
  else derive_joint(f, row);
}

// All statistics, from the scores as they are
KERNEL write(const Fit* fit) {
  const Fit& f = *fit;
  int warps = blockDim.x >> 5, lane = threadIdx.x & 31;
  for (i64 row = (i64)blockIdx.x * warps + (threadIdx.x >> 5); row < f.N; row += (i64)gridDim.x * warps) {
    for (int k = lane; decomposes(f) && k < f.K; k += 32) derive(f, row, k, f.scores[row * f.K + k]);
    if (!decomposes(f)) derive_row(f, row);
  }
}

// The heads found last are added to the scores of what their rules cover; at the end of the round, statistics follow. A warp
// has some examples, up to 32, and its lanes share the labels of those that are covered.
KERNEL apply(const Fit* fit) {
  __shared__ int places[WARPS][32];
  const Fit& f = *fit;
  Round& round = *f.round;
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, first = round.n_added, last = round.n_heads, K = (int)f.K;
  bool ends = last == round.size;
  for (i64 start = ((i64)blockIdx.x * WARPS + warp) * f.chunk; start < f.N; start += gridDim.x * WARPS * f.chunk) {
    u32 covering = 0;
    bool has_row = lane < f.chunk && start + lane < f.N;
    for (int w = 0; 32 * w < last && has_row; w++) covering |= f.masks[w * f.N + start + lane];
    u32 votes = __ballot_sync(FULL, has_row && (covering || (ends && f.pending)));
    if (votes >> lane & 1) places[warp][__popc(votes & ((1u << lane) - 1))] = lane;
    __syncwarp();
    int count = __popc(votes), place = lane / K, k = lane % K;
    for (int i = lane; i < count * K; i += 32) {
      i64 row = start + places[warp][place];
      double score = f.scores[row * K + k] + sum_given(f, row, f.masks[row], first, last, k);
      f.scores[row * K + k] = score;
      if (ends && decomposes(f)) derive(f, row, k, score);
      place += 32 / K;
      k += 32 % K;
      if (k >= K) { k -= K; place += 1; }
    }
    __syncwarp();
    for (int c = 0; ends && !decomposes(f) && c < count; c++) derive_row(f, start + places[warp][c]);
    for (int w = 0; ends && 32 * w < last && covering; w++) f.masks[w * f.N + start + lane] = 0;
    __syncwarp();
  }
  if (is_last_block(&round.arrived, gridDim.x) && threadIdx.x == 0) round.n_added = last;
}

__device__ double find_loss(const Fit& f, i64 row) {  // a warp does it
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  i64 start = row * f.K;
  double value = 0;
  if (f.loss == LABEL_WISE) {
    for (int k = lane; k < f.K; k += 32) {
      double margin = f.signs[start + k] * f.scores[start + k];
      value += read_weight(f, start + k) * (log1p(exp(-fabs(margin))) + fmax(-margin, 0.0));
    }
    return warp_sum(value);
  }
  if (f.loss == SQUARED) {
    for (int k = lane; k < f.K; k += 32) value += 0.5 * read_weight(f, start + k) * f.scores[start + k] * f.scores[start + k];
    return warp_sum(value);
  }
  if (f.loss == EXAMPLE_WISE) {
    double shift = 0;
    for (int k = lane; k < f.K; k += 32) shift = fmax(shift, -f.signs[start + k] * f.scores[start + k]);
    shift = warp_max(shift);
    for (int k = lane; k < f.K; k += 32)
      value += read_weight(f, start + k) * exp(-f.signs[start + k] * f.scores[start + k] - shift);
    value = warp_sum(value);
    return shift == 0 ? log1p(value) : shift + log(exp(-shift) + value);
  }
  double* vectors = f.scratch + ((i64)blockIdx.x * (blockDim.x >> 5) + warp) * (2 * f.V + f.K);
  double sum = weigh_vectors(f, row, vectors, vectors + 2 * f.V);
  __syncwarp();
  double own = keep_nearest(f, row, vectors, vectors + f.V);
  __syncwarp();
  return log(sum) - log(own);
}

// losses[block] = weighted sum of the loss over the examples of the block, in a fixed order
KERNEL sum_losses(const Fit* fit) {
  const Fit& f = *fit;
  int warps = blockDim.x >> 5, lane = threadIdx.x & 31;
  double sum = 0;
  for (i64 row = (i64)blockIdx.x * warps + (threadIdx.x >> 5); row < f.N; row += (i64)gridDim.x * warps)
    if (f.weight[row] > 0) sum += f.weight[row] * find_loss(f, row);
  sum = block_sum(lane == 0 ? sum : 0);
  if (threadIdx.x == 0) f.losses[blockIdx.x] = sum;
}
