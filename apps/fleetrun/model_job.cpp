#include "model_job.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "base/system/unique_fd.h"

namespace fleetrun {
namespace {

namespace fs = std::filesystem;
using Kind = JsonValue::Kind;

constexpr std::uint64_t kMostHeaderBytes = 100 << 20;

// The header of a safetensors file (lib/runtime/checkpoint/safetensors.h); null for any other file.
JsonValue read_header(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd)
    throw Error(errno == ENOENT ? ErrorKind::missing : ErrorKind::permission,
                fmt::format("reading the model {}: {}", path, describe_errno(errno)));
  std::array<unsigned char, 8> bytes{};
  if (::pread(fd.get(), bytes.data(), bytes.size(), 0) != std::ssize(bytes)) return {};
  std::uint64_t length = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) length = length << 8U | bytes[i];
  if (length > kMostHeaderBytes) return {};
  std::string header(length, '\0');
  if (::pread(fd.get(), header.data(), header.size(), std::ssize(bytes)) != std::ssize(header)) return {};
  return read_json(header).root;
}

// The values under the keys of a job. Rank 0 reads all of the metadata, and checks it.
class CardOfModel {
 public:
  explicit CardOfModel(const std::string& path) : path_(path), header_(read_header(path)) {
    if (!header_.is(Kind::object))
      throw Error(
          ErrorKind::data,
          fmt::format("{}: found no header of a safetensors file, wanted a model file of fleetrun", path));
  }

  JsonValue value(const std::string& key) const {
    JsonValue found = optional(key);
    if (found.is(Kind::null))
      throw Error(
          ErrorKind::data,
          fmt::format("{}: found no metadata {}, wanted a model file of fleetrun", path_, key),
          fmt::format("fleetrun eval JOB.json model.pretrained={} takes the model from a job", path_));
    return found;
  }

  JsonValue optional(const std::string& key) const {
    const JsonValue* const metadata = header_.find("__metadata__", Kind::object);
    const JsonValue* const text = metadata == nullptr ? nullptr : metadata->find(key, Kind::text);
    if (text == nullptr) return {};
    const JsonDocument document = read_json(text->text);  // a word such as resnet18 is not JSON but text
    return document.problems.empty() && document.complete ? document.root : JsonValue(text->text);
  }

 private:
  std::string path_;
  JsonValue header_;
};

// A folder of CIFAR has batch files, and no folder of a class. Hidden folders, and the one that macOS adds to archives, do not count.
bool has_only_batch_files(const fs::path& folder) {
  std::error_code problem;
  bool any = false;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    const std::string name = entry->path().filename().string();
    if (entry->is_directory(problem) && !name.starts_with('.') && name != "__MACOSX") return false;
    any = any || entry->path().extension() == ".bin";
  }
  return any;
}

JsonValue data_set_at(const fs::path& path) {
  std::error_code problem;
  const bool is_there = fs::exists(path, problem);
  if (problem) throw file_error(problem.value(), "opening", path);
  if (!is_there)
    throw Error(ErrorKind::missing, fmt::format("the data set {} does not exist", path.string()));
  const bool is_folder = fs::is_directory(path, problem);
  if (path.extension() == ".bin" || (is_folder && has_only_batch_files(path)))
    return JsonValue::object({{"format", "cifar_bin"}, {"path", path.string()}});
  if (is_folder) return JsonValue::object({{"format", "image_folder"}, {"path", path.string()}});
  return JsonValue::object(
      {{"format", "image_list"}, {"list", path.string()}, {"root", path.parent_path().string()}});
}

}  // namespace

JsonValue job_of_model(const std::string& model, const std::string& data) {
  const CardOfModel card(model);
  const JsonValue shape = card.value("model.input_shape");
  JsonValue of_model = JsonValue::object({{"name", card.value("model.name")},
                                          {"class_dim", card.value("model.class_dim")},
                                          {"input_shape", shape},
                                          {"pretrained", fs::absolute(model).string()}});
  if (const JsonValue hidden = card.optional("model.hidden"); !hidden.is(Kind::null))
    of_model.add("hidden", hidden);
  JsonValue set = data_set_at(fs::absolute(data));
  if (shape.items.size() == 3) {
    set.add("channels", shape.items[0]);
    const bool is_square = to_json(shape.items[1]) == to_json(shape.items[2]);
    if (is_square)
      set.add("image_size", shape.items[1]);  // else its images have that size without it, or do not fit
  }
  set.add("mean", card.value("data.mean"));
  set.add("std", card.value("data.std"));
  set.add("augment", card.value("data.augment"));
  return JsonValue::object(
      {{"model", of_model}, {"data", JsonValue::object({{"train", set}, {"test", set}})}});
}

}  // namespace fleetrun
