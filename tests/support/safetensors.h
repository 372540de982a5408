// Reads a safetensors file as scripts/make_torch_vectors.py writes it. For files of ours: little is checked.
#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json_reader.h"

namespace fleetrun::test {

struct StoredTensor {
  bool whole = false;  // i32, else f32
  std::vector<std::int64_t> shape;
  std::string bytes;

  template <typename T>
  std::vector<T> as() const {
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
  }
};

struct Safetensors {
  std::map<std::string, std::string> metadata;
  std::map<std::string, StoredTensor> tensors;
};

inline Safetensors read_safetensors(const std::string& path) {
  constexpr std::size_t kLimit = std::size_t{1} << 20;  // bytes; ours have at most 70 thousand
  const std::string content = read_file(path, kLimit);
  std::uint64_t header_bytes = 0;
  if (content.size() < sizeof header_bytes) throw std::runtime_error(path + " is too short");
  std::memcpy(&header_bytes, content.data(), sizeof header_bytes);
  const std::size_t data = sizeof header_bytes + header_bytes;
  const JsonDocument header = read_json(content.substr(sizeof header_bytes, header_bytes));
  if (!header.complete) throw std::runtime_error(path + " has no JSON header");
  Safetensors file;
  for (const JsonMember& member : header.root.members) {
    if (member.key == "__metadata__") {
      for (const JsonMember& entry : member.value.members) file.metadata[entry.key] = entry.value.text;
      continue;
    }
    StoredTensor& tensor = file.tensors[member.key];
    tensor.whole = member.value.find("dtype")->value.text == "I32";
    for (const JsonValue& size : member.value.find("shape")->value.items)
      tensor.shape.push_back(size.integer);
    const std::vector<JsonValue>& offsets = member.value.find("data_offsets")->value.items;
    const auto begin = static_cast<std::size_t>(offsets.at(0).integer);
    const auto end = static_cast<std::size_t>(offsets.at(1).integer);
    tensor.bytes = content.substr(data + begin, end - begin);
  }
  return file;
}

}  // namespace fleetrun::test
