// What a rank sends with deep gradient compression: the elements of a residual that are farthest from 0, in the order in
// which they lie. Three looks find the bits of the last one that is sent, eleven or ten bits a time: each counts the
// elements that begin as found so far by their next bits. One more counts what each chunk sends, and the last one writes it.
// Counts are of integers, so that the order of the threads changes nothing, and they stay on the device.
//   dgc_select: 4 bytes an element for the norm where there is a limit, 24 for the residual, and 5 times 4;
//   dgc_scatter: 4, and 16 for each element that is sent; dgc_sgd: 12.
#include "cuda/plugin/dgc.h"

#include <cstring>

#include "cuda/plugin/channel_sums.cuh"
#include "cuda/plugin/elements.cuh"

namespace fleetrun::cuda {
namespace {

constexpr int kBins = 2048;
constexpr int kInRow = 16;  // elements side by side that a thread looks at
constexpr std::int64_t kChunk = std::int64_t{kThreads} * kInRow;  // elements of a block

// Bits of a number, of which those above are known.
struct Digit {
  int shift, bits;
};
constexpr Digit kDigits[] = {{20, 11}, {10, 10}, {0, 10}};

struct Search {
  float scale;           // of the gradient
  std::uint32_t bits;    // of the last element that is sent, as found so far
  std::uint32_t wanted;  // how many elements are sent that begin with these bits
};

// larger: elements that are all sent. equal: elements as large as the smallest one sent; only the first of them are sent.
struct Counts {
  std::uint32_t larger, equal;
};
__device__ Counts operator+(const Counts& a, const Counts& b) {
  return {a.larger + b.larger, a.equal + b.equal};
}

std::int64_t chunks_of(std::int64_t elements) { return (elements + kChunk - 1) / kChunk; }

// As one channel.
Channels line_of(std::int64_t elements) { return {1, 1, elements}; }

// Scratch memory.
struct Rooms {
  double* squares;
  Search* search;
  std::uint32_t* bins;
  Counts* chunks;

  Rooms(void* scratch, std::int64_t elements) {
    auto* next = static_cast<std::byte*>(scratch);
    squares = reinterpret_cast<double*>(next);
    next += bytes_of_channel_sums<double>(line_of(elements), 1);
    bins = reinterpret_cast<std::uint32_t*>(next);
    next += kBins * sizeof(std::uint32_t);
    chunks = reinterpret_cast<Counts*>(next);
    next += static_cast<std::size_t>(chunks_of(elements)) * sizeof(Counts);
    search = reinterpret_cast<Search*>(next);
  }
};

// In the order of the numbers.
__device__ std::uint32_t magnitude(float x) {
  std::uint32_t bits = 0;
  memcpy(&bits, &x, sizeof bits);
  return bits & 0x7FFFFFFFU;
}

__device__ Counts look_at(float x, std::uint32_t last) {
  const std::uint32_t bits = magnitude(x);
  return {bits > last ? 1U : 0U, bits == last ? 1U : 0U};
}

// 4 bytes read per element. Predicted share of the memory bandwidth: 0.5, as in sum_pixels.
struct Squares {
  using Sum = double;
  const float* x;

  __host__ __device__ static int count() { return 1; }
  __device__ void add(int, std::int64_t at, std::int64_t, double& sum) const {
    const auto value = static_cast<double>(x[at]);
    sum += value * value;
  }
};

struct ScaleToLimit {
  Search* search;
  double ranks, limit;

  __device__ void operator()(int, std::int64_t, double squares) const {
    const double norm = sqrt(squares);
    search->scale = static_cast<float>(ranks * (norm <= limit ? 1.0 : limit / norm));
  }
};

// 4 bytes written per bin. Predicted share of the memory bandwidth: below 0.01, because its launch takes longer than
// moving the bytes.
__global__ void begin_search(Search* search, Search with, std::uint32_t* bins, std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    if (i == 0) *search = with;
    bins[i] = 0;
  }
}

// 16 bytes read and 8 written per element. Predicted share of the memory bandwidth: 0.8, because a thread has four reads
// in flight.
void accumulate(const DgcArrays& arrays, const DgcSettings& s, const Search* search, std::int64_t elements,
                cudaStream_t stream) {
  run_each(elements, stream, [=] __device__(std::int64_t i) {
    const float g = search->scale * arrays.grad[i] + s.decay * arrays.param[i];
    const float v = s.nesterov ? s.mu * (arrays.velocity[i] + g) : s.mu * arrays.velocity[i] + g;
    arrays.velocity[i] = v;
    arrays.residual[i] += s.nesterov ? v + g : v;
  });
}

// 4 bytes read per element. Predicted share of the memory bandwidth: 0.4 for the first digit, where most elements wait
// for the same few bins in shared memory, and 0.6 for the others.
__global__ void count_digits(const float* x, const Search* search, Digit digit, std::uint32_t* bins,
                             std::int64_t elements) {
  __shared__ std::uint32_t mine[kBins];
  for (int bin = static_cast<int>(threadIdx.x); bin < kBins; bin += kThreads) mine[bin] = 0;
  __syncthreads();
  const int above = digit.shift + digit.bits;
  const std::uint32_t known = search->bits >> above, mask = (1U << digit.bits) - 1;
  FLEETRUN_EACH(i, elements) {
    const std::uint32_t bits = magnitude(x[i]);
    if (bits >> above == known) atomicAdd(&mine[(bits >> digit.shift) & mask], 1U);
  }
  __syncthreads();
  for (int bin = static_cast<int>(threadIdx.x); bin < kBins; bin += kThreads)
    if (mine[bin] > 0) atomicAdd(&bins[bin], mine[bin]);
}

// One block: the digit of the last element that is sent. Empties the bins. 4 bytes read and 4 written per bin.
// Predicted share of the memory bandwidth: below 0.01, because its launch takes longer than moving the bytes.
__global__ void find_digit(Search* search, Digit digit, std::uint32_t* bins) {
  constexpr int kOwn = kBins / kThreads;
  __shared__ std::uint32_t totals[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  std::uint32_t total = 0;
  for (int k = 0; k < kOwn; ++k) total += bins[thread * kOwn + k];
  totals[thread] = total;
  __syncthreads();
  const std::uint32_t wanted = search->wanted;
  std::uint32_t above = 0;  // elements in higher bins
  for (int other = thread + 1; other < kThreads; ++other) above += totals[other];
  __syncthreads();
  for (int k = kOwn - 1; k >= 0; --k) {
    const int bin = thread * kOwn + k;
    const std::uint32_t here = bins[bin];
    if (above < wanted && wanted <= above + here) {
      search->bits |= static_cast<std::uint32_t>(bin) << digit.shift;
      search->wanted = wanted - above;
    }
    above += here;
    bins[bin] = 0;
  }
}

// A block for each chunk. 4 bytes read per element and 8 written per chunk. Predicted share of the memory bandwidth: 0.6,
// because each block waits for its sum.
__global__ void count_chunks(const float* x, const Search* search, Counts* chunks, std::int64_t elements) {
  __shared__ Counts shared[kThreads];
  const std::uint32_t last = search->bits;
  FLEETRUN_EACH_ROW(chunk, (elements + kChunk - 1) / kChunk) {
    Counts counts = {0, 0};
    const std::int64_t end = min((chunk + 1) * kChunk, elements);
    for (std::int64_t i = chunk * kChunk + threadIdx.x; i < end; i += kThreads)
      counts = counts + look_at(x[i], last);
    counts = over_block(counts, shared, Sum());
    if (threadIdx.x == 0) chunks[chunk] = counts;
  }
}

// What the threads of a block with smaller numbers have. `shared` has kThreads places.
__device__ Counts before_thread(const Counts& mine, Counts* shared) {
  const int thread = static_cast<int>(threadIdx.x);
  shared[thread] = mine;
  __syncthreads();
  for (int step = 1; step < kThreads; step *= 2) {
    Counts before = {0, 0};
    if (thread >= step) before = shared[thread - step];
    __syncthreads();
    shared[thread] = shared[thread] + before;
    __syncthreads();
  }
  return {shared[thread].larger - mine.larger, shared[thread].equal - mine.equal};
}

// One block: of each chunk what those in front of it have. 8 bytes read and 8 written per chunk.
// Predicted share of the memory bandwidth: below 0.01, because one block uses only one SM.
__global__ void add_up_chunks(Counts* chunks, std::int64_t count) {
  __shared__ Counts shared[kThreads];
  const std::int64_t own = (count + kThreads - 1) / kThreads;
  const std::int64_t first = threadIdx.x * own, end = min(first + own, count);
  Counts mine = {0, 0};
  for (std::int64_t i = first; i < end; ++i) mine = mine + chunks[i];
  Counts before = before_thread(mine, shared);
  for (std::int64_t i = first; i < end; ++i) {
    const Counts here = chunks[i];
    chunks[i] = before;
    before = before + here;
  }
}

// A block for each chunk: writes what it sends, and takes it out of the residual and the velocity. 4 bytes read per
// element and 16 written per element that is sent. Predicted share of the memory bandwidth: 0.3: threads beside each
// other read 64 bytes apart, and the block waits for the counts of all its threads.
__global__ void take_elements(DgcArrays arrays, const Search* search, const Counts* chunks, std::int64_t kept,
                              std::int64_t elements) {
  __shared__ Counts shared[kThreads];
  const std::uint32_t last = search->bits, wanted = search->wanted;
  FLEETRUN_EACH_ROW(chunk, (elements + kChunk - 1) / kChunk) {
    const std::int64_t first = chunk * kChunk + std::int64_t{threadIdx.x} * kInRow;
    const std::int64_t end = min(first + kInRow, elements);
    Counts mine = {0, 0};
    for (std::int64_t i = first; i < end; ++i) mine = mine + look_at(arrays.residual[i], last);
    Counts before = chunks[chunk] + before_thread(mine, shared);
    for (std::int64_t i = first; i < end; ++i) {
      const float value = arrays.residual[i];
      const Counts here = look_at(value, last);
      if (here.larger > 0 || (here.equal > 0 && before.equal < wanted)) {
        const std::int64_t place = std::int64_t{before.larger} + min(before.equal, wanted);
        arrays.message[place] = static_cast<std::int32_t>(i);
        memcpy(&arrays.message[kept + place], &value, sizeof value);
        arrays.residual[i] = arrays.velocity[i] = 0;
      }
      before = before + here;
    }
  }
}

}  // namespace

std::size_t bytes_of_dgc(std::int64_t elements) {
  return bytes_of_channel_sums<double>(line_of(elements), 1) + kBins * sizeof(std::uint32_t) +
         static_cast<std::size_t>(chunks_of(elements)) * sizeof(Counts) + sizeof(Search);
}

void dgc_select(const DgcArrays& arrays, const DgcSettings& settings, std::int64_t kept,
                std::int64_t elements, void* scratch, cudaStream_t stream) {
  constexpr std::int64_t kMostBlocksOfBins = 1024;  // each empties and adds up its own
  const Rooms rooms(scratch, elements);
  const std::int64_t chunks = chunks_of(elements);
  const Search all = {static_cast<float>(settings.ranks), 0, static_cast<std::uint32_t>(kept)};
  start_elements(begin_search, kBins, stream, rooms.search, all, rooms.bins);
  if (settings.limit != 0)
    sum_channels(Squares{arrays.grad}, ScaleToLimit{rooms.search, settings.ranks, settings.limit},
                 line_of(elements), rooms.squares, stream);
  accumulate(arrays, settings, rooms.search, elements, stream);
  for (const Digit& digit : kDigits) {
    start_blocks(count_digits, std::min(chunks, kMostBlocksOfBins), stream, arrays.residual, rooms.search,
                 digit, rooms.bins, elements);
    start_blocks(find_digit, 1, stream, rooms.search, digit, rooms.bins);
  }
  start_blocks(count_chunks, chunks, stream, arrays.residual, rooms.search, rooms.chunks, elements);
  start_blocks(add_up_chunks, 1, stream, rooms.chunks, chunks);
  start_blocks(take_elements, chunks, stream, arrays, rooms.search, rooms.chunks, kept, elements);
}

// 4 bytes written per element, and 12 read and 4 written per element that is sent.
// Predicted share of the memory bandwidth: 0.83 for the zeros and 0.2 for the elements that are sent, which are far apart
// in the gradient.
void dgc_scatter(float* grad, const std::int32_t* gathered, int ranks, std::int64_t kept,
                 std::int64_t elements, cudaStream_t stream) {
  const float share = 1.0F / static_cast<float>(ranks);
  run_each(elements, stream, [=] __device__(std::int64_t i) { grad[i] = 0; });
  // One rank after the other: no message has an element twice.
  for (int rank = 0; rank < ranks; ++rank, gathered += 2 * kept)
    run_each(kept, stream, [=] __device__(std::int64_t i) {
      float value = 0;
      memcpy(&value, &gathered[kept + i], sizeof value);
      grad[gathered[i]] += share * value;
    });
}

// 8 bytes read and 4 written per element. Predicted share of the memory bandwidth: 0.7, because a thread moves one
// element at a time.
void dgc_sgd(float* param, const float* grad, const float* rate, std::int64_t count, cudaStream_t stream) {
  run_each(count, stream, [=] __device__(std::int64_t i) { param[i] -= *rate * grad[i]; });
}

}  // namespace fleetrun::cuda
