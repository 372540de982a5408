#include "cuda/plugin/nvjpeg_library.h"

#include <dlfcn.h>
#include <library_types.h>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::cuda {
namespace {

constexpr int kCudaMajor = CUDART_VERSION / 1000;

std::string usual_file() { return fmt::format("libnvjpeg.so.{}", kCudaMajor); }

Error refuse(const std::string& why) {
  return Error(
      ErrorKind::config,
      fmt::format(
          "data.use_dali: found true, but nvJPEG, which decodes images on the GPU, cannot be used: {}", why),
      fmt::format("the CUDA toolkit and `pip install {1}` have {0}; FLEETRUN_NVJPEG=FOLDER/{0} names it; "
                  "data.use_dali=false decodes images on the CPU",
                  usual_file(), kCudaMajor < 13 ? "nvidia-nvjpeg-cu12" : "nvidia-nvjpeg"));
}

template <typename Function>
void find(void* library, const std::string& file, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) throw refuse(fmt::format("{} has no function {}", file, name));
}

}  // namespace

const NvjpegLibrary& NvjpegLibrary::load(const std::string& file) {
  static const NvjpegLibrary library(file.empty() ? usual_file() : file);
  return library;
}

NvjpegLibrary::NvjpegLibrary(const std::string& file) {
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  // NOLINTNEXTLINE(concurrency-mt-unsafe): each thread has its own message
  if (library == nullptr) throw refuse(::dlerror());
  find(library, file, "nvjpegCreateExV2", create);
  find(library, file, "nvjpegDestroy", destroy);
  find(library, file, "nvjpegJpegStateCreate", create_state);
  find(library, file, "nvjpegJpegStateDestroy", destroy_state);
  find(library, file, "nvjpegDecode", decode);
  find(library, file, "nvjpegGetProperty", property_);
}

std::string NvjpegLibrary::version() const {
  const auto part = [this](libraryPropertyType which) {
    int value = 0;
    property_(which, &value);
    return value;
  };
  return fmt::format("{}.{}.{}", part(MAJOR_VERSION), part(MINOR_VERSION), part(PATCH_LEVEL));
}

}  // namespace fleetrun::cuda
