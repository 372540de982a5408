// The safetensors format (github.com/huggingface/safetensors): named tensors in one file that holds no code.
//
//   u64 little-endian: bytes of the header | header, a JSON object, padded with spaces | data
//   {"__metadata__": {"key": "text"}, "c1.weight": {"dtype": "F32", "shape": [2,3], "data_offsets": [0,24]}}
//
// Offsets count from the start of the data, which the tensors cover without gap or overlap; tensors are plain
// row-major. Files come from strangers: everything is checked before it is used.
#pragma once
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/number/dtype.h"
#include "runtime/tensor/shape.h"

namespace fleetrun::runtime {

struct StoredTensor {
  DType dtype = DType::f32;
  Shape shape;
  std::string_view bytes;  // in memory of somebody else, perhaps at an odd address

  template <typename T>
  std::vector<T> as() const {  // T is what dtype says
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
  }
};

using Metadata = std::map<std::string, std::string>;  // what the file says about itself

struct Safetensors {
  Metadata metadata;
  std::map<std::string, StoredTensor> tensors;
  std::unique_ptr<const std::string> content;  // the whole file, into which `bytes` point; null when written
  std::deque<std::string> changed;             // the bytes of tensors that were changed after reading
};

// Throws Error(data) that names the file, and the tensor where there is one.
Safetensors parse_safetensors(std::string content, const std::string& path);

// What the header of a file says that may be anything: nothing if it is not a safetensors file. `fd` is open for reading.
Metadata read_metadata(int fd);

// Throws as parse_safetensors, and Error(missing|permission|io|config) when the file cannot be read.
Safetensors read_safetensors(const std::string& path);

// Tensors with large elements come first, so that each begins at a multiple of its element's size.
std::string format_safetensors(const Safetensors& file);

// Throws Error(create|io).
void write_safetensors(const std::string& path, const Safetensors& file);

// For messages. The name comes from a file: quoted, cut, nothing in it that a terminal could take for a command.
std::string quoted_name(std::string_view name);

bool is_float(DType dtype);  // f32, f16 or bf16

// An f32, f16 or bf16 tensor as f32. Throws Error(data) for any other.
std::vector<float> to_floats(const StoredTensor& tensor);

}  // namespace fleetrun::runtime
