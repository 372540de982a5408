#include "job/strategy_files/load_prototxt.h"

#include <dlfcn.h>

#include <filesystem>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::job {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "libfleetrun_prototxt.so";

Error refuse(const std::string& why) {
  return {ErrorKind::config, fmt::format("a strategy file needs {}: {}", kLibrary, why),
          "install fleetrun again; the library belongs to it"};
}

// From the folder of the program: a build tree, an installed fleetrun in bin, an installed worker in libexec/fleetrun.
std::string find_library() {
  std::error_code problem;
  const fs::path program = fs::read_symlink("/proc/self/exe", problem);
  if (problem) throw refuse(fmt::format("reading /proc/self/exe, to find it: {}", problem.message()));
  const fs::path installed = fs::path("..") / FLEETRUN_LIBRARY_FOLDER;
  for (const fs::path& folder : {fs::path("../lib"), installed, ".." / installed}) {
    const fs::path path = (program.parent_path() / folder / kLibrary).lexically_normal();
    if (fs::exists(path, problem)) return path.string();
  }
  throw refuse(fmt::format("there is none for {}", program.string()));
}

const PrototxtPlugin& load(const std::string& path) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw refuse(::dlerror());  // NOLINT(concurrency-mt-unsafe): glibc keeps it per thread
  const auto entry = reinterpret_cast<PrototxtEntry>(::dlsym(library, kPrototxtEntry));
  if (entry == nullptr) throw refuse(fmt::format("{} has no function {}", path, kPrototxtEntry));
  const PrototxtPlugin& plugin = *entry();
  if (plugin.abi != kPrototxtAbi)
    throw refuse(fmt::format("{} has ABI {}, this fleetrun wants {}", path, plugin.abi, kPrototxtAbi));
  return plugin;
}

}  // namespace

const PrototxtPlugin& prototxt_plugin() {
  static const PrototxtPlugin& plugin = load(find_library());
  return plugin;
}

}  // namespace fleetrun::job
