// Scores: the sums of the heads of all rules that cover an example (Eq. 2), in the order of the rules.
//
// A warp has 32 examples. Each lane tests the conditions of a rule for one of them; then all lanes add the head to the
// scores of those covered, one after another. So every score is the same sum as on the host, bit for bit.

typedef signed char i8;
typedef unsigned int u32;
typedef long long i64;

#ifndef EMULATED
#define DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#endif
#define KERNEL extern "C" __global__ void
#define FULL 0xffffffffu
enum { AT_MOST, ABOVE, EQUAL, UNEQUAL };  // see rules/operators.py

// Every field has eight bytes; the host reads their order here.
struct Fit {
  const void* X;            // (n, L), of numbers of 4 or 8 bytes
  const int* used;          // (U,) the features that conditions are about
  double* columns;          // (U, n)
  const i64* offsets;       // (T + 1,) of conditions
  const int* features;      // among those used
  const i8* operators;
  const double* values;
  const i64* head_offsets;  // (T + 1,)
  const int* head_labels;
  const double* head_scores;
  double* scores;           // (n, K)
  i64 n;
  i64 L;
  i64 U;
  i64 T;
  i64 K;
  i64 tile;                 // labels whose scores a block adds up
  i64 bytes;                // of a number of X
};

// columns[u, n] = X[n, used[u]]
KERNEL take_columns(const Fit* fit) {
  const Fit& f = *fit;
  int u = blockIdx.y;
  for (i64 row = (i64)blockIdx.x * blockDim.x + threadIdx.x; row < f.n; row += (i64)gridDim.x * blockDim.x) {
    i64 cell = row * f.L + f.used[u];
    f.columns[u * f.n + row] = f.bytes == 4 ? (double)((const float*)f.X)[cell] : ((const double*)f.X)[cell];
  }
}

// A missing value meets no condition.
__device__ __forceinline__ bool meets(double x, int op, double value) {
  return op == AT_MOST ? x <= value : op == ABOVE ? x > value : op == EQUAL ? x == value : x != value && x == x;
}

KERNEL add_heads(const Fit* fit) {
  const Fit& f = *fit;
  DYNAMIC_SHARED(double, room);  // (warps, 32, tile)
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, warps = blockDim.x >> 5;
  i64 first = blockIdx.y * f.tile, width = f.K - first < f.tile ? f.K - first : f.tile;
  double* own = room + warp * 32 * f.tile;
  for (i64 begin = ((i64)blockIdx.x * warps + warp) * 32; begin < f.n; begin += (i64)gridDim.x * warps * 32) {
    i64 row = begin + lane, count = f.n - begin < 32 ? f.n - begin : 32;
    for (i64 i = lane; i < count * width; i += 32)
      own[i / width * f.tile + i % width] = f.scores[(begin + i / width) * f.K + first + i % width];
    __syncwarp();
    for (i64 t = 0; t < f.T; t++) {
      bool met = lane < count;
      for (i64 c = f.offsets[t]; c < f.offsets[t + 1]; c++) {
        met = met && meets(f.columns[f.features[c] * f.n + row], f.operators[c], f.values[c]);
        if (!__any_sync(FULL, met)) break;
      }
      i64 start = f.head_offsets[t], length = f.head_offsets[t + 1] - start;
      for (u32 covered = __ballot_sync(FULL, met); covered; covered &= covered - 1) {
        double* scores = own + (__ffs(covered) - 1) * f.tile;
        if (length == f.K) {
          for (i64 k = lane; k < width; k += 32) scores[k] += f.head_scores[start + first + k];
        } else {
          for (i64 h = lane; h < length; h += 32) {
            i64 k = f.head_labels[start + h] - first;
            if (k >= 0 && k < width) scores[k] += f.head_scores[start + h];
          }
          __syncwarp();  // the next head may have a label at another lane
        }
      }
      __syncwarp();
    }
    for (i64 i = lane; i < count * width; i += 32)
      f.scores[(begin + i / width) * f.K + first + i % width] = own[i / width * f.tile + i % width];
    __syncwarp();
  }
}
