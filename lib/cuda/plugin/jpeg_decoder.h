// Decodes JPEG files with nvJPEG.
#pragma once
#include <memory>

#include "cuda/plugin/cuda_device.h"
#include "cuda/plugin/nvjpeg_library.h"
#include "runtime/data/decode/device_jpeg.h"

namespace fleetrun::cuda {

// For one thread: it has a stream and memory of its own, of the device's share. It leaves pictures of more than 4 million pixels to the CPU, which
// makes such pictures smaller while it decodes them. The device must outlive it. Throws Error(os) without memory, Error(internal) if nvJPEG
// does not start.
std::unique_ptr<runtime::DeviceJpegDecoder> make_nvjpeg_decoder(CudaDevice& device,
                                                                const NvjpegLibrary& library);

}  // namespace fleetrun::cuda
