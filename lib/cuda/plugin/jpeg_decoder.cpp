#include "cuda/plugin/jpeg_decoder.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::cuda {
namespace {

constexpr std::int64_t kMostPixels = std::int64_t{1} << 22U;  // of a picture
constexpr std::size_t kMostChannels = 3;
constexpr std::size_t kPictureBytes = kMostChannels * kMostPixels;
// For nvJPEG's own buffers: coefficients of 2 bytes and a byte before the colours are converted, of three channels, the file, and as much again
// for Huffman codes.
constexpr std::size_t kBytesPerPixel = 16;
constexpr std::size_t kOwnBytes = kBytesPerPixel * kMostPixels;
constexpr std::size_t kAllBytes = 2 * kPictureBytes + kOwnBytes;

using cuda::check;
void check(NvjpegStatus status, std::string_view doing) {
  if (status == NvjpegStatus::allocator_failure)
    throw Error(ErrorKind::os, fmt::format("{}: nvJPEG has no memory", doing));
  if (status != NvjpegStatus::success)
    throw Error(ErrorKind::internal, fmt::format("{}: nvJPEG says {}", doing, static_cast<int>(status)));
}

// Whether the file, or what nvJPEG can decode, may be the reason.
bool may_be_about_file(NvjpegStatus status) {
  return status == NvjpegStatus::bad_jpeg || status == NvjpegStatus::jpeg_not_supported ||
         status == NvjpegStatus::implementation_not_supported ||
         status == NvjpegStatus::incomplete_bitstream || status == NvjpegStatus::execution_failed ||
         status == NvjpegStatus::internal_error;
}

using Stream = std::unique_ptr<CUstream_st, Destroy<cudaStreamDestroy>>;
using Event = std::unique_ptr<CUevent_st, Destroy<cudaEventDestroy>>;

// The step that the GPU computes goes first.
Stream make_low_stream() {
  int lowest = 0, highest = 0;
  check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "asking for the priorities of streams");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, lowest), "making a stream");
  return Stream(stream);
}

// A thread that waits for it leaves its core to others.
Event make_patient_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync), "making an event");
  return Event(event);
}

// Pieces of one block of device memory, which nvJPEG asks for.
class Arena {
 public:
  Arena(std::byte* memory, std::size_t bytes) : memory_(memory), pool_(bytes) {}

  NvjpegAllocator allocator() { return {.take = take, .give_back = give_back, .context = this}; }

 private:
  static int take(void* context, void** memory, std::size_t bytes, cudaStream_t) {
    Arena& arena = *static_cast<Arena*>(context);
    const auto offset = arena.pool_.take(std::max<std::size_t>(bytes, 1));
    if (!offset) return 1;
    *memory = arena.memory_ + *offset;
    return 0;
  }
  // All work with this memory is in one stream, so what takes the piece next comes after what it was used for.
  static int give_back(void* context, void* memory, std::size_t, cudaStream_t) {
    Arena& arena = *static_cast<Arena*>(context);
    if (memory != nullptr)
      arena.pool_.give_back(static_cast<std::size_t>(static_cast<std::byte*>(memory) - arena.memory_));
    return 0;
  }

  std::byte* memory_;
  MemoryPool pool_;
};

// Pinned memory of the host, which nvJPEG keeps from file to file.
class PinnedMemoryOfHost {
 public:
  NvjpegAllocator allocator() { return {.take = take, .give_back = give_back, .context = this}; }
  bool ran_out() const { return ran_out_; }
  void forget() { ran_out_ = false; }

 private:
  static int take(void* context, void** memory, std::size_t bytes, cudaStream_t) {
    if (cudaHostAlloc(memory, std::max<std::size_t>(bytes, 1), cudaHostAllocDefault) == cudaSuccess) return 0;
    cudaGetLastError();
    static_cast<PinnedMemoryOfHost*>(context)->ran_out_ = true;
    return 1;
  }
  static int give_back(void*, void* memory, std::size_t, cudaStream_t) {
    return memory == nullptr || cudaFreeHost(memory) == cudaSuccess ? 0 : 1;
  }

  bool ran_out_ = false;
};

class NvjpegDecoder : public runtime::DeviceJpegDecoder {
 public:
  NvjpegDecoder(CudaDevice& device, const NvjpegLibrary& library)
      : device_(device),
        library_(library),
        memory_(device.allocate(kAllBytes)),
        arena_(picture() + 2 * kPictureBytes, kOwnBytes),
        stream_(make_low_stream()),
        done_(make_patient_event()),
        handle_(nullptr, library.destroy),
        state_(nullptr, library.destroy_state) {
    NvjpegAllocator of_device = arena_.allocator(), pinned = pinned_.allocator();
    NvjpegHandle* handle = nullptr;
    check(library.create(NvjpegBackend::automatic, &of_device, &pinned, kNvjpegSmoothColours, &handle),
          "starting nvJPEG");
    handle_.reset(handle);
    begin_state();
  }
  ~NvjpegDecoder() override {
    cudaSetDevice(device_.options().index);  // a thread that never decoded would use the first device
    cudaStreamSynchronize(stream_.get());
  }
  NvjpegDecoder(const NvjpegDecoder&) = delete;
  NvjpegDecoder& operator=(const NvjpegDecoder&) = delete;

  bool decode(std::span<const std::uint8_t> bytes, const runtime::JpegPart& part,
              std::uint8_t* pixels) override {
    if (std::int64_t{part.picture.width} * part.picture.height > kMostPixels) return false;
    device_.enter_thread(1);
    pinned_.forget();
    NvjpegStatus status = decode_picture(bytes, part.picture);
    if (status == NvjpegStatus::allocator_failure) {  // its buffers of earlier pictures may be in the way
      begin_state();
      status = decode_picture(bytes, part.picture);
    }
    if (status == NvjpegStatus::allocator_failure && pinned_.ran_out())
      throw Error(ErrorKind::os, "no pinned memory of the host to decode an image on the GPU");
    // With fresh buffers, the size of the picture alone decides whether the arena is large enough.
    if (may_be_about_file(status) || status == NvjpegStatus::allocator_failure) {
      cudaGetLastError();
      begin_state();  // throws if the reason is the GPU, and not the file
      return false;
    }
    check(status, "decoding an image on the GPU");
    take_part(picture(), picture() + kPictureBytes, part);
    download(picture() + kPictureBytes, part.bytes(), pixels);
    return true;
  }

 private:
  std::byte* picture() { return static_cast<std::byte*>(memory_->data()); }

  void begin_state() {
    check(cudaStreamSynchronize(stream_.get()), "waiting for a stream");
    state_.reset();
    NvjpegState* state = nullptr;
    check(library_.create_state(handle_.get(), &state), "starting nvJPEG's decoder");
    state_.reset(state);
  }

  NvjpegStatus decode_picture(std::span<const std::uint8_t> bytes, const runtime::ImageShape& shape) {
    NvjpegImage image;
    image.channel[0] = reinterpret_cast<unsigned char*>(picture());
    image.pitch[0] = static_cast<std::size_t>(shape.width) * static_cast<std::size_t>(shape.channels);
    return library_.decode(handle_.get(), state_.get(), bytes.data(), bytes.size(),
                           shape.channels == 1 ? NvjpegOutput::y : NvjpegOutput::rgb_interleaved, &image,
                           stream_.get());
  }

  void take_part(const std::byte* from, std::byte* to, const runtime::JpegPart& part) {
    average_squares(reinterpret_cast<const std::uint8_t*>(from), reinterpret_cast<std::uint8_t*>(to),
                    {.channels = part.picture.channels,
                     .rows = part.picture.height,
                     .columns = part.picture.width,
                     .side = part.reduction,
                     .top = part.top,
                     .left = part.left,
                     .rows_out = part.rows,
                     .columns_out = part.columns},
                    stream_.get());
    check(cudaGetLastError(), "taking a part of an image");
  }

  void download(const std::byte* from, std::size_t bytes, std::uint8_t* to) {
    if (bytes > staging_bytes_) {
      const std::size_t more = bytes + bytes / 2;
      staging_ = device_.streams()->allocate_staging(more);
      staging_bytes_ = more;
    }
    check(cudaMemcpyAsync(staging_->data(), from, bytes, cudaMemcpyDeviceToHost, stream_.get()),
          "copying an image from the device");
    check(cudaEventRecord(done_.get(), stream_.get()), "recording an event");
    check(cudaEventSynchronize(done_.get()), "decoding an image on the device");
    std::memcpy(to, staging_->data(), bytes);
  }

  CudaDevice& device_;
  const NvjpegLibrary& library_;
  std::unique_ptr<comm::Memory> memory_;  // the picture, the part that is wanted, and the arena
  Arena arena_;
  PinnedMemoryOfHost pinned_;
  Stream stream_;
  Event done_;
  std::unique_ptr<NvjpegHandle, NvjpegStatus (*)(NvjpegHandle*)> handle_;
  std::unique_ptr<NvjpegState, NvjpegStatus (*)(NvjpegState*)> state_;
  std::unique_ptr<comm::Memory> staging_;  // pinned memory of the host for the part; grows
  std::size_t staging_bytes_ = 0;
};

}  // namespace

std::unique_ptr<runtime::DeviceJpegDecoder> make_nvjpeg_decoder(CudaDevice& device,
                                                                const NvjpegLibrary& library) {
  try {
    return std::make_unique<NvjpegDecoder>(device, library);
  } catch (const Error& problem) {
    if (problem.kind() != ErrorKind::os) throw;
    throw Error(
        ErrorKind::os,
        fmt::format("data.use_dali: each of the data.loader_threads needs {} MB of the GPU's memory: {}",
                    kAllBytes / 1'000'000, problem.message()),
        "data.use_dali=false decodes images on the CPU");
  }
}

}  // namespace fleetrun::cuda
