// Needless conditions: those that exclude no example that the conditions kept before and all behind them cover.
//
// Let V be the conditions of a rule that an example violates. Condition i is kept if there is an example whose last
// violated condition is i, and all others that it violates are dropped. An example with V = {i} proves that at once;
// what is not proven so is looked at once more, by the sets V of which nothing is proven: few conditions, few sets.
// See columns/needless.py. A row of blocks has a rule.

__device__ __forceinline__ bool violates(const Fit& f, const double* body, int i, i64 row) {
  return !meets(f.codes[(i64)body[4 * i] * f.N + row], (int)body[4 * i + 1], (int)body[4 * i + 2]);
}

__device__ u64 find_violated(const Fit& f, const double* body, int size, i64 row) {
  u64 violated = 0;
  for (int i = 0; i < size; i++) violated |= (u64)violates(f, body, i, row) << i;
  return violated;
}

// proven[rule] = conditions i with V = {i} for an example
KERNEL find_proven(const Fit* fit) {
  const Fit& f = *fit;
  int size = f.out_size[blockIdx.y];
  const double* body = f.out_body + blockIdx.y * f.longest * 4;
  u64 own = 0;
  if (size < 2 || size > 64) return;
  for (i64 row = (i64)blockIdx.x * blockDim.x + threadIdx.x; row < f.N; row += (i64)gridDim.x * blockDim.x) {
    int count = 0, last = 0;
    for (int i = 0; i < size && count < 2; i++)
      if (violates(f, body, i, row)) { count++; last = i; }
    if (count == 1) own |= 1ull << last;
  }
  for (int o = 16; o; o >>= 1) own |= __shfl_xor_sync(FULL, own, o);
  if ((threadIdx.x & 31) == 0 && own) atomicOr(f.proven + blockIdx.y, own);
}

// patterns[rule], a set of sets: bit p for an example whose V are the conditions p of those in `unproven`
KERNEL find_patterns(const Fit* fit) {
  const Fit& f = *fit;
  u64 unproven = f.unproven[blockIdx.y];
  if (!unproven) return;
  const double* body = f.out_body + blockIdx.y * f.longest * 4;
  for (i64 row = (i64)blockIdx.x * blockDim.x + threadIdx.x; row < f.N; row += (i64)gridDim.x * blockDim.x) {
    u64 violated = find_violated(f, body, f.out_size[blockIdx.y], row);
    if (!violated || violated & ~unproven) continue;
    int pattern = 0, place = 0;
    for (u64 left = unproven; left; left &= left - 1, place++)
      pattern |= (int)(violated >> (__ffsll((i64)left) - 1) & 1) << place;
    u64* word = f.patterns + blockIdx.y * PATTERN_WORDS + (pattern >> 6);
    if (!(*word >> (pattern & 63) & 1)) atomicOr(word, 1ull << (pattern & 63));
  }
}

// heirs[rule, i] = the first condition behind i up to which all examples are excluded that i, dropped, excluded
KERNEL find_heirs(const Fit* fit) {
  const Fit& f = *fit;
  u64 dropped = f.unproven[blockIdx.y];  // by now
  if (!dropped) return;
  const double* body = f.out_body + blockIdx.y * f.longest * 4;
  for (i64 row = (i64)blockIdx.x * blockDim.x + threadIdx.x; row < f.N; row += (i64)gridDim.x * blockDim.x) {
    u64 violated = find_violated(f, body, f.out_size[blockIdx.y], row);
    for (u64 left = dropped & violated; left; left &= left - 1) {
      int i = __ffsll((i64)left) - 1;
      if (violated & ~dropped & ((1ull << i) - 1)) continue;  // excluded by one that is kept before
      int heir = __ffsll((i64)(violated & ~((2ull << i) - 1))) - 1;
      int* place = f.heirs + blockIdx.y * 64 + i;
      if (*place < heir) atomicMax(place, heir);
    }
  }
}
