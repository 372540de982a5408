// What the plug-in uses of nvJPEG, NVIDIA's decoder of JPEG files. It is loaded when a job wants it (data.use_dali), so fleetrun is built and runs
// without it. The declarations are those of nvjpeg.h, versions 12 and 13.
#pragma once
#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <string>

namespace fleetrun::cuda {

struct NvjpegHandle;  // nvjpegHandle, opaque
struct NvjpegState;   // nvjpegJpegState, opaque

enum class NvjpegStatus : int {
  success = 0,
  bad_jpeg = 3,
  jpeg_not_supported = 4,
  allocator_failure = 5,
  execution_failed = 6,
  internal_error = 8,
  implementation_not_supported = 9,
  incomplete_bitstream = 10,
};

enum class NvjpegBackend : int { automatic = 0 };  // NVJPEG_BACKEND_DEFAULT

enum class NvjpegOutput : int {
  y = 2,                // one channel: grey
  rgb_interleaved = 5,  // one channel with the three bytes of each pixel side by side
};

constexpr unsigned kNvjpegSmoothColours =
    1U << 5U;  // NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION, as libjpeg-turbo does

struct NvjpegImage {  // nvjpegImage_t
  std::array<unsigned char*, 4> channel{};
  std::array<std::size_t, 4> pitch{};  // bytes of a row
};

struct
    NvjpegAllocator {  // nvjpegDevAllocatorV2_t and nvjpegPinnedAllocatorV2_t; both functions return 0 if all went well
  int (*take)(void* context, void** memory, std::size_t bytes, cudaStream_t stream);
  int (*give_back)(void* context, void* memory, std::size_t bytes, cudaStream_t stream);
  void* context;
};

class NvjpegLibrary {
 public:
  // Loads it, once for the process. `file`: "" stands for the library of the toolkit's major version, where the loader finds libraries.
  // Throws Error(config) that says what is missing.
  static const NvjpegLibrary& load(const std::string& file);

  std::string version() const;  // "13.0.1"

  // Needs both allocators, and keeps copies of them.
  NvjpegStatus (*create)(NvjpegBackend, NvjpegAllocator* device, NvjpegAllocator* pinned, unsigned flags,
                         NvjpegHandle**);
  NvjpegStatus (*destroy)(NvjpegHandle*);
  NvjpegStatus (*create_state)(NvjpegHandle*, NvjpegState**);
  NvjpegStatus (*destroy_state)(NvjpegState*);
  NvjpegStatus (*decode)(NvjpegHandle*, NvjpegState*, const unsigned char* bytes, std::size_t count,
                         NvjpegOutput, NvjpegImage*, cudaStream_t);

 private:
  explicit NvjpegLibrary(const std::string& file);

  NvjpegStatus (*property_)(int which, int* value);
};

}  // namespace fleetrun::cuda
