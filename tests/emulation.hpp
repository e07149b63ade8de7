// CUDA on the host, as far as the kernels use it: a thread is a fibre, and blocks run one after another.
#include <csetjmp>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <algorithm>
#include <vector>

#define EMULATED
#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __shared__ static
#define DYNAMIC_SHARED(type, name) type* name = (type*)emulated_shared

struct Index { unsigned x, y, z; };
static Index blockIdx, gridDim, blockDim;
alignas(16) static char emulated_shared[1 << 18];

struct Fibre {
  ucontext_t start;
  jmp_buf at;
  bool begun, finished;
  int generation;  // of operations of its warp
  int barrier;     // of the block
  std::vector<char> stack;
};
struct Warp { double slots[2][32]; int arrived[2], generation, alive; };
static std::vector<Fibre> fibres;
static std::vector<Warp> warps;
static int current, arrived_at_barrier, barrier_generation, alive;
static jmp_buf scheduler;
static void (*kernel_now)(const struct Fit*);
static const struct Fit* argument_now;

struct ThreadIndex { struct { operator unsigned() const { return (unsigned)current; } } x; };
static ThreadIndex threadIdx;

static void pause_fibre() { if (!_setjmp(fibres[current].at)) _longjmp(scheduler, 1); }
static void fibre_main() {
  kernel_now(argument_now);
  fibres[current].finished = true;
  _longjmp(scheduler, 1);
}
static void release_barrier() {
  if (alive > 0 && arrived_at_barrier == alive) { arrived_at_barrier = 0; barrier_generation++; }
}
static void __syncthreads() {
  int own = fibres[current].barrier++;
  arrived_at_barrier++;
  release_barrier();
  while (barrier_generation <= own) pause_fibre();
}
template <class T> static double* exchange(T value) {  // all lanes of the warp that live take part
  Warp& warp = warps[current / 32];
  int own = fibres[current].generation++;
  static_assert(sizeof(T) <= 8, "");
  memcpy(&warp.slots[own & 1][current & 31], &value, sizeof(T));
  warp.arrived[own & 1]++;
  while (warp.generation <= own) {
    if (warp.arrived[own & 1] == warp.alive) { warp.arrived[own & 1] = 0; warp.generation++; break; }
    pause_fibre();
  }
  return warp.slots[own & 1];
}
template <class T> static T read_slot(double* slots, int lane) { T x; memcpy(&x, slots + (lane & 31), sizeof(T)); return x; }
static inline void __syncwarp(unsigned = 0) { exchange(0); }
static inline unsigned __ballot_sync(unsigned, bool vote) {
  double* slots = exchange((int)vote);
  unsigned votes = 0;
  for (int i = 0; i < 32; i++)
    if (current / 32 * 32 + i < (int)blockDim.x && !fibres[current / 32 * 32 + i].finished && read_slot<int>(slots, i)) votes |= 1u << i;
  return votes;
}
static inline bool __any_sync(unsigned mask, bool vote) { return __ballot_sync(mask, vote) != 0; }
template <class T> static T __shfl_sync(unsigned, T x, int lane) { return read_slot<T>(exchange(x), lane); }
template <class T> static T __shfl_xor_sync(unsigned, T x, int o) { return read_slot<T>(exchange(x), (current & 31) ^ o); }
template <class T> static T __shfl_up_sync(unsigned, T x, int o) {
  double* slots = exchange(x);
  return (current & 31) >= o ? read_slot<T>(slots, (current & 31) - o) : x;
}
static inline void __threadfence() {}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned o) { return (unsigned)(((unsigned long long)high << 32 | low) >> (o & 31)); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __ffs(unsigned x) { return __builtin_ffs((int)x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline int __float2int_rn(float x) { return x >= 2147483648.0f ? 2147483647 : x < -2147483648.0f ? -2147483647 - 1 : (int)lrintf(x); }
static inline long long __double2ll_rn(double x) { return llrint(x); }
template <class T> static T atomicAdd(T* place, T x) { T old = *place; *place = (T)(old + x); return old; }
static inline int atomicAdd(int* place, int x) { int old = *place; *place = (int)((unsigned)old + (unsigned)x); return old; }
template <class T> static T atomicMin(T* place, T x) { T old = *place; *place = std::min(old, x); return old; }
using std::max;
using std::min;

extern "C" void emulate(void (*kernel)(const struct Fit*), const struct Fit* fit, int gx, int gy, int gz, int threads) {
  gridDim = {(unsigned)gx, (unsigned)gy, (unsigned)gz};
  blockDim = {(unsigned)threads, 1, 1};
  kernel_now = kernel;
  argument_now = fit;
  if ((int)fibres.size() < threads) fibres.resize(threads);
  for (int z = 0; z < gz; z++) for (int y = 0; y < gy; y++) for (int x = 0; x < gx; x++) {
    blockIdx = {(unsigned)x, (unsigned)y, (unsigned)z};
    memset(emulated_shared, 0xAB, sizeof emulated_shared);
    warps.assign((threads + 31) / 32, Warp{});
    arrived_at_barrier = barrier_generation = 0;
    alive = threads;
    for (int t = 0; t < threads; t++) {
      Fibre& fibre = fibres[t];
      fibre.begun = fibre.finished = false;
      fibre.generation = fibre.barrier = 0;
      if (fibre.stack.empty()) fibre.stack.resize(1 << 16);
      warps[t / 32].alive++;
    }
    for (int left = threads; left;) {
      for (int t = 0; t < threads; t++) {
        Fibre& fibre = fibres[t];
        if (fibre.finished) continue;
        current = t;
        if (!_setjmp(scheduler)) {
          if (fibre.begun) _longjmp(fibre.at, 1);
          fibre.begun = true;
          getcontext(&fibre.start);
          fibre.start.uc_stack.ss_sp = fibre.stack.data();
          fibre.start.uc_stack.ss_size = fibre.stack.size();
          fibre.start.uc_link = 0;
          makecontext(&fibre.start, fibre_main, 0);
          setcontext(&fibre.start);
        }
        if (fibres[current].finished) {
          left--;
          alive--;
          release_barrier();
          warps[current / 32].alive--;
        }
      }
    }
  }
}
