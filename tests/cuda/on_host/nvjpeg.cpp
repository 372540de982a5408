// What the plug-in uses of nvJPEG: libjpeg-turbo decodes the file, and the stream writes the pixels to the device. The plug-in looks these
// functions up by their names, in the file that FLEETRUN_NVJPEG names: its own.
#include <turbojpeg.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "cuda/on_host/stream.h"
#include "cuda/plugin/nvjpeg_library.h"

namespace on_host = fleetrun::cuda::on_host;
using fleetrun::cuda::NvjpegAllocator, fleetrun::cuda::NvjpegBackend, fleetrun::cuda::NvjpegHandle,
    fleetrun::cuda::NvjpegImage, fleetrun::cuda::NvjpegOutput, fleetrun::cuda::NvjpegState,
    fleetrun::cuda::NvjpegStatus;

#define ON_HOST_EXPORT extern "C" __attribute__((visibility("default")))

namespace fleetrun::cuda {

struct NvjpegHandle {
  NvjpegAllocator device, pinned;
};

// It has as much memory of the device as the largest picture so far needs for its coefficients, and some of the host.
struct NvjpegState {
  static constexpr std::size_t kPinned = 4096;

  NvjpegAllocator allocator, of_host;
  void *memory = nullptr, *pinned = nullptr;
  std::size_t bytes = 0;

  explicit NvjpegState(const NvjpegHandle& handle) : allocator(handle.device), of_host(handle.pinned) {
    of_host.take(of_host.context, &pinned, kPinned, nullptr);
  }
  NvjpegState(const NvjpegState&) = delete;
  NvjpegState& operator=(const NvjpegState&) = delete;
  ~NvjpegState() {
    drop();
    of_host.give_back(of_host.context, pinned, kPinned, nullptr);
  }

  void drop() {
    if (memory != nullptr) allocator.give_back(allocator.context, memory, bytes, nullptr);
    memory = nullptr;
  }
  bool grow(std::size_t wanted, cudaStream_t stream) {
    if (wanted <= bytes) return true;
    drop();
    bytes = 0;
    if (allocator.take(allocator.context, &memory, wanted, stream) != 0) return false;
    bytes = wanted;
    return true;
  }
};

}  // namespace fleetrun::cuda

namespace {

// Of a pixel: coefficients of three channels, or as the environment says.
std::size_t bytes_of_pixel() {
  const char* const text = std::getenv("FLEETRUN_ON_HOST_NVJPEG_BYTES");
  return text == nullptr ? 6 : std::strtoul(text, nullptr, 10);
}

struct Turbo {
  tjhandle handle = tjInitDecompress();
  Turbo() = default;
  Turbo(const Turbo&) = delete;
  Turbo& operator=(const Turbo&) = delete;
  ~Turbo() { tjDestroy(handle); }
};

struct Picture {
  int width = 0, height = 0, colours = 0;
  std::size_t channels = 0;
  std::shared_ptr<std::vector<unsigned char>> pixels = std::make_shared<std::vector<unsigned char>>();

  std::size_t row() const { return static_cast<std::size_t>(width) * channels; }
};

NvjpegStatus read_picture(const unsigned char* bytes, std::size_t count, NvjpegOutput output,
                          Picture& picture) {
  const Turbo turbo;
  int subsampling = 0;
  if (tjDecompressHeader3(turbo.handle, bytes, count, &picture.width, &picture.height, &subsampling,
                          &picture.colours) != 0)
    return NvjpegStatus::bad_jpeg;
  if (picture.colours != TJCS_YCbCr && picture.colours != TJCS_GRAY) return NvjpegStatus::jpeg_not_supported;
  const bool grey = output == NvjpegOutput::y;
  picture.channels = grey ? 1 : 3;
  picture.pixels->resize(picture.row() * static_cast<std::size_t>(picture.height));
  const int status = tjDecompress2(turbo.handle, bytes, count, picture.pixels->data(), picture.width, 0,
                                   picture.height, grey ? TJPF_GRAY : TJPF_RGB, TJFLAG_ACCURATEDCT);
  // A damaged file is only a warning: the library makes up what is missing, without a word.
  return status == 0 || tjGetErrorCode(turbo.handle) == TJERR_WARNING ? NvjpegStatus::success
                                                                      : NvjpegStatus::bad_jpeg;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the library's names
ON_HOST_EXPORT NvjpegStatus nvjpegGetProperty(int which, int* value) {
  *value = which == 0 ? CUDART_VERSION / 1000 : 0;
  return NvjpegStatus::success;
}
ON_HOST_EXPORT NvjpegStatus nvjpegCreateExV2(NvjpegBackend, NvjpegAllocator* device, NvjpegAllocator* pinned,
                                             unsigned, NvjpegHandle** handle) {
  if (device == nullptr || pinned == nullptr) on_host::refuse("nvJPEG is started without an allocator");
  *handle = new NvjpegHandle{*device, *pinned};
  return NvjpegStatus::success;
}
ON_HOST_EXPORT NvjpegStatus nvjpegDestroy(NvjpegHandle* handle) {
  delete handle;
  return NvjpegStatus::success;
}
ON_HOST_EXPORT NvjpegStatus nvjpegJpegStateCreate(NvjpegHandle* handle, NvjpegState** state) {
  *state = new NvjpegState(*handle);
  return NvjpegStatus::success;
}
ON_HOST_EXPORT NvjpegStatus nvjpegJpegStateDestroy(NvjpegState* state) {
  delete state;
  return NvjpegStatus::success;
}
ON_HOST_EXPORT NvjpegStatus nvjpegDecode(NvjpegHandle*, NvjpegState* state, const unsigned char* bytes,
                                         std::size_t count, NvjpegOutput output, NvjpegImage* image,
                                         cudaStream_t stream) {
  Picture picture;
  const NvjpegStatus status = read_picture(bytes, count, output, picture);
  if (status != NvjpegStatus::success) return status;
  const std::lock_guard lock(on_host::machine());
  const auto rows = static_cast<std::size_t>(picture.height);
  const std::size_t scratch = rows * static_cast<std::size_t>(picture.width) * bytes_of_pixel();
  if (!state->grow(scratch, stream)) return NvjpegStatus::allocator_failure;
  void* const memory = state->memory;
  unsigned char* const to = image->channel[0];
  const std::size_t pitch = image->pitch[0];
  on_host::expect_reachable(memory, scratch, "nvJPEG");
  on_host::expect_reachable(to, pitch * rows, "nvJPEG");
  on_host::give_kernel(stream, &on_host::Counts::nvjpeg, [=] {
    std::memset(memory, 0, scratch);
    for (std::size_t y = 0; y < rows; ++y)
      std::memcpy(to + y * pitch, picture.pixels->data() + y * picture.row(), picture.row());
  });
  return NvjpegStatus::success;
}
// NOLINTEND(readability-identifier-naming)
