#include "runtime/kernels/cpu/loops/instruction_set.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include <fmt/format.h>
#include <xxhash.h>
#include <dnnl.hpp>

#include "base/error/error.h"
#include "base/system/environment.h"
#include "base/system/file.h"
#include "base/system/unique_fd.h"

namespace fleetrun::runtime {
namespace {

struct Set {
  dnnl_cpu_isa_t bits;
  const char* name;  // as in ONEDNN_MAX_CPU_ISA
};

// From best to least, without those of processors that are no longer made (Xeon Phi).
constexpr std::array kSets = {Set{dnnl_cpu_isa_avx512_core_amx, "AVX512_CORE_AMX"},
                              Set{dnnl_cpu_isa_avx512_core_bf16, "AVX512_CORE_BF16"},
                              Set{dnnl_cpu_isa_avx512_core_vnni, "AVX512_CORE_VNNI"},
                              Set{dnnl_cpu_isa_avx512_core, "AVX512_CORE"},
                              Set{dnnl_cpu_isa_avx2_vnni, "AVX2_VNNI"},
                              Set{dnnl_cpu_isa_avx2, "AVX2"},
                              Set{dnnl_cpu_isa_avx, "AVX"},
                              Set{dnnl_cpu_isa_sse41, "SSE41"}};

constexpr std::size_t kMostOfCpuInfo = 64 << 10;  // the first processor is in it

// "fpu vme de ..."; "" where /proc has none.
std::string flags_of_processor() {
  std::string text;
  try {
    text = read_file("/proc/cpuinfo", kMostOfCpuInfo);
  } catch (const Error&) {  // a /proc of processes only, as systemd's ProcSubset=pid makes it
    return "";
  }
  const std::size_t begin = text.find("flags");
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace

unsigned instruction_sets() { return static_cast<unsigned>(dnnl_get_effective_cpu_isa()); }

unsigned instruction_sets_of_child() {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) throw Error(ErrorKind::os, "a pipe: " + describe_errno(errno));
  const UniqueFd answer(pipe[0]), question(pipe[1]);
  const pid_t child = ::fork();
  if (child < 0) throw Error(ErrorKind::os, "a process that asks oneDNN: " + describe_errno(errno));
  unsigned sets = 0;
  if (child == 0) {
    sets = instruction_sets();
    ::_exit(::write(question.get(), &sets, sizeof sets) == sizeof sets ? 0 : 1);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0 || ::read(answer.get(), &sets, sizeof sets) != sizeof sets)
    throw Error(ErrorKind::os, fmt::format("a process that asks oneDNN ended with status {:#x}", status));
  return sets;
}

std::string processor_features() {
  const Environment environment = Environment::of_this_process();
  std::string features = flags_of_processor();
  for (const char* variable : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"})
    features += "\n" + environment.get_or(variable, "");
  return fmt::format("{:016x}", XXH3_64bits(features.data(), features.size()));
}

VectorLevel vector_level_of(unsigned sets) {
  const auto has = [&](dnnl_cpu_isa_t set) {
    return (sets & static_cast<unsigned>(set)) == static_cast<unsigned>(set);
  };
  if (has(dnnl_cpu_isa_avx512_core_bf16)) return VectorLevel::avx512_bf16;
  if (has(dnnl_cpu_isa_avx512_core)) return VectorLevel::avx512;
  return has(dnnl_cpu_isa_avx2) ? VectorLevel::avx2 : VectorLevel::baseline;
}

std::string limit_instruction_sets(unsigned common) {
  for (const auto& [bits, name] : kSets) {
    if ((common & static_cast<unsigned>(bits)) != static_cast<unsigned>(bits)) continue;
    if (dnnl_set_max_cpu_isa(bits) != dnnl_success)
      throw Error(ErrorKind::internal,
                  "oneDNN refused to be held to the common instruction set of all ranks");
    limit_vector_level(vector_level_of(static_cast<unsigned>(bits)));
    return name;
  }
  throw Error(ErrorKind::config,
              "the processors of the ranks have no vector instructions in common that oneDNN can use");
}

}  // namespace fleetrun::runtime
