// What all kernels share: the fit they work for, the state of a body that is being learned and of its round, and a few tools.
//
// Sums are sums of whole numbers. A term x becomes round(x 2^s), and additions of whole numbers are exact in any order:
// threads, blocks and lists may come in any order, and the rules are the same, bit for bit, in every run.

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#ifndef EMULATED
#define DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#endif
#define KERNEL extern "C" __global__ void
#define FULL 0xffffffffu

#define TIE 1e-10    // see rules/precision.py
#define NOISE 1e-15
#define FLOOR 1e-6
#define MISSING 255  // see columns/binned.py
#define OTHER 254
#define SHARED_BIN 2
#define THREADS 256  // of a block, unless told
#define WARPS 8
#define BIN_THREADS 1024  // of a block that sums over bins
#define EACH 4       // examples that a thread looks at before it asks for places in a list
#define LARGEST_SYSTEM 48  // labels up to which Eq. 16 is solved by elimination
#define MORE 256     // times that products of statistics may be larger than sums of weights allow for
#define CG_TOLERANCE 1e-10  // of the residual of conjugate gradients, relative to the right-hand side

// Operators; a negation is the operator before it, plus one.
enum { AT_MOST, ABOVE, EQUAL, UNEQUAL };
enum { LABEL_WISE, EXAMPLE_WISE, SQUARED, NOT_COMPILED, JOINT };  // see losses/compiled.py
enum { MULTI, SINGLE, PARTIAL };
enum { EVERYONE, DRAWN, LISTED };  // where samples come from: all examples, drawn here, listed by the host

// An example of a sample.
struct alignas(8) Entry {
  u32 row;
  float factor;  // its weight
};

// Bins of four examples of a sample, of four of the features drawn for the step: a word for each example.
#define TOGETHER 4
struct alignas(16) Words {
  u32 of[TOGETHER];
};

struct alignas(16) Entries {
  Entry of[TOGETHER];
};

// What stays the same while rules are learned. Every field has eight bytes; the host reads their order here.
struct Fit {
  struct State* states;      // (batch,)
  struct Round* round;
  const u8* codes;           // (L, N) bin numbers
  u8* row_codes;             // (N, row_pitch) the same, example by example: what samples are gathered from
  const i8* nominal;         // (L,) 0, 1, or 2 if rarer categories share a bin
  const int* usual;          // (L,) the bin that most examples are in, which is never summed; -1: there is none
  const double* weight;      // (N,)
  const i8* signs;           // (N, K) labels, 0 for unknown ones; of targets, 1 for the known ones
  const float* label_weight; // (N, K), or null if all that is known has weight 1
  double* scores;            // (N, K) with the heads of the round as far as `n_added` tells
  const double* pending;     // (N, K) scores of those rules of the round that there were before, or null
  float* gradient;           // (N, stride) as at the beginning of the round
  float* curvature;          // (N, stride): h of a diagonal Hessian, or a of diag(a) - g g^T
  const float* g_scale;      // (K,) powers of 2 that terms of sums over bins are multiplied with
  const float* h_scale;      // (K,)
  u32* masks;                // (words, N) a bit for each rule of the round that covers an example; zeros between rounds
  double* tables;            // (fours of rules of a round, 16, K) scores that each set of four rules gives
  const double* unit;        // (K,) scores are multiples of these powers of 2, so that their sums are exact in any order
  const int* draws;          // (steps, n_ahead, F) features drawn
  const int* label_draws;    // (n_ahead, n_labels) labels drawn, or null
  i64* sums;                 // (3K + 1) of what a rule covers: gradients, curvatures, first gradients, weight; zeros before
  double* vectors;           // (8, K) of the head
  double* dots;              // (N,) of each example that a rule covers
  i64* products;             // (K,), or (K, K) of a system; zeros before and after
  int* out_size;             // (n_ahead,) of what has been learned: conditions ...
  double* out_body;          // (n_ahead, longest, 4) feature, operator, value, gain with it
  int* out_labels;           // (n_ahead, K)
  int* out_count;            // (n_ahead,)
  double* out_scores;        // (n_ahead, K)
  double* out_facts;         // (n_ahead, 2) gain and coverage
  const double* factor;      // (V,) of the joint loss: see losses/truth.py
  const i64* vector_offsets; // (V + 1,)
  const int* vector_places;
  const i64* label_offsets;  // (K + 1,)
  const int* label_places;
  const u8* settled;         // (N,)
  double* scratch;           // (blocks, 2 V + K)
  double* losses;            // (blocks,)
  i64 N;
  i64 K;
  i64 L;
  i64 row_pitch;             // a multiple of 32, the bytes of a sector
  i64 stride;                // numbers between two rows of statistics: a multiple of 8, the size of a sector
  i64 F;                     // features drawn
  i64 B;                     // bins, that of missing values included if there are any
  i64 pitch;                 // columns of the sums over bins
  i64 V;                     // known label vectors
  i64 n_sample;              // examples of a sample, those of weight 0 included
  i64 sampling;
  i64 n_labels;              // labels drawn
  i64 n_ahead;               // rules that there are draws and results of
  i64 longest;               // conditions
  i64 sample_pitch;          // n_sample, rounded up to whole structs of words
  i64 n_words;               // of an example of a sample: four features each
  i64 group;                 // words that one block sums
  i64 n_groups;
  i64 loss;
  i64 outer;                 // whether the Hessian is diag(a) - g g^T, else diagonal
  i64 span;                  // lanes that have a label each, of an example: 4 to 32
  i64 chunk;                 // examples that a warp updates: a power of 2, up to 32
  i64 head;
  i64 head_size;             // of partial heads: the most labels ...
  double head_share;         // ... and the least share of the largest gain
  u64 seed;
  double learning_rate;
  double l1;
  double l2;
  double min_coverage;
  double w_scale;            // of weights
  double head_scale;         // what sums over all examples are multiplied with besides
  double product_scale;      // of products of conjugate gradients
  double limit;              // of scores, by the joint loss
};

// A body that is being learned, and its room. Only the last block of a kernel changes what others read.
struct State {
  Entry* entries;        // (2, sample_pitch) the sampled examples that the rule covers, before and after a condition
  Words* codes;          // (n_words, sample_pitch / 4) their bins
  i64* bins;             // (F, B, pitch) sums over bins; zeros before and after a step
  i64* totals;           // (pitch,) sums over all that is covered; zeros before and after a step
  double* parts;         // (tiles, F, B, 2) ratings of each condition and its negation, from 32 labels each
  double* rates;         // (F, B, 2) the sums of these
  u64* occupied;         // (F, 4) which bins are not empty ...
  u64* candidates;       // (F, 4) ... and there are conditions on
  i64* bin_weight;       // (F, B) the weight of what meets the condition of each bin
  i64* present_weight;   // (F,) the weight of what has a value
  double* gains;         // (K,) of each label on its own
  int* chosen;           // (K,) labels
  u32* covered;          // (N,) all examples that the finished rule covers
  double best;           // gain
  int slot;              // where its results are
  int size;              // conditions so far
  int n;                 // sampled examples that it covers ...
  int n_next;            // ... and those found so far that it will
  int done;              // no further condition is looked for
  int ending;            // so it will be
  int m;                 // labels that it is about
  int choosing;          // whether these are yet to be chosen
  int side;              // which of two lists of examples is in use
  int summed;            // columns of sums over bins
  int feature;           // the condition found last
  int op;
  int cut;               // its bin
  int n_covered;
  int arrived;           // blocks of a kernel
  int unused;
};

// The round that the rules belong to, see engine/rounds.py, and the head that is being fitted. Rules are counted from its
// first one. Bodies are learned `count` at a time, from `begin` on: that is a batch.
struct Round {
  double coverage;
  double rz;       // of conjugate gradients
  double limit;
  double scale;
  double top;      // the largest power of 2 in the direction
  int first;       // the number of its first rule; that of the default rule is 0
  int size;
  int origin;      // the rule whose results are the first
  int begin;
  int count;
  int n_heads;     // rules that have a head
  int n_added;     // rules whose heads are in the scores
  int arrived;     // blocks of a kernel
  int solved;      // whether the head is found
  int unused;
};

__device__ __forceinline__ int find_slot(const Round& round, int rule) { return round.first + rule - round.origin; }

// An addition to a number in global memory, whose old value nobody wants
__device__ __forceinline__ void add64(i64* place, i64 x) {
#ifdef EMULATED
  *place += x;
#else
  asm volatile("red.global.add.u64 [%0], %1;" : : "l"(place), "l"(x) : "memory");
#endif
}

__device__ __forceinline__ double shrink(double g, double l1) { return g > l1 ? g - l1 : g < -l1 ? g + l1 : 0.0; }

// Eq. 17, twice the gain of a label: g^2 / (h + l2)
__device__ __forceinline__ double rate_label(double g, double h, double l2) {
  return h + l2 > FLOOR ? g * g / (h + l2) : 0.0;
}

__device__ __forceinline__ bool meets(int code, int op, int cut) {
  if (code == MISSING) return false;
  bool met = op <= ABOVE ? code <= cut : code == cut;
  return met != (bool)(op & 1);
}

// Whether this is the last block of those that take part, of which all others have finished; all threads ask.
__device__ bool is_last_block(int* arrived, int n_blocks) {
  __shared__ int last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(arrived, 1) == n_blocks - 1;
    if (last) *arrived = 0;
  }
  __syncthreads();
  __threadfence();
  return last;
}

// Places in a list for what each thread keeps, `count` things; all threads of a block ask. The order is free.
__device__ int append(int count, int* length) {
  __shared__ int counts[32], base;
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, upto = count;
  for (int o = 1; o < 32; o <<= 1) {
    int before = __shfl_up_sync(FULL, upto, o);
    if (lane >= o) upto += before;
  }
  if (lane == 31) counts[warp] = upto;
  __syncthreads();
  if (threadIdx.x == 0) {
    int all = 0;
    for (int w = 0; w < (int)(blockDim.x >> 5); w++) { int c = counts[w]; counts[w] = all; all += c; }
    base = all ? atomicAdd(length, all) : 0;
  }
  __syncthreads();
  int place = base + counts[warp] + upto - count;
  __syncthreads();
  return place;
}

__device__ __forceinline__ double warp_sum(double x) {
  for (int o = 16; o; o >>= 1) x += __shfl_xor_sync(FULL, x, o);
  return x;
}
__device__ __forceinline__ double warp_max(double x) {
  for (int o = 16; o; o >>= 1) x = fmax(x, __shfl_xor_sync(FULL, x, o));
  return x;
}

// Sum or largest of a number of each thread of a block, in a fixed order.
__device__ double block_sum(double x) {
  __shared__ double sums[32];
  x = warp_sum(x);
  if ((threadIdx.x & 31) == 0) sums[threadIdx.x >> 5] = x;
  __syncthreads();
  x = 0;
  for (int w = 0; w < (int)(blockDim.x >> 5); w++) x += sums[w];
  __syncthreads();
  return x;
}
__device__ double block_max(double x) {
  __shared__ double most[32];
  x = warp_max(x);
  if ((threadIdx.x & 31) == 0) most[threadIdx.x >> 5] = x;
  __syncthreads();
  x = most[0];
  for (int w = 1; w < (int)(blockDim.x >> 5); w++) x = fmax(x, most[w]);
  __syncthreads();
  return x;
}
