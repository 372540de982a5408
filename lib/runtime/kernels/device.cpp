#include "runtime/kernels/device.h"

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::runtime {

std::unique_ptr<DeviceJpegDecoder> Device::make_jpeg_decoder() {
  throw Error(
      ErrorKind::config,
      fmt::format("data.use_dali: found true, but the device is {}, and only a GPU decodes images", name()),
      "data.use_dali=false decodes them with data.loader_threads threads of each rank");
}

}  // namespace fleetrun::runtime
