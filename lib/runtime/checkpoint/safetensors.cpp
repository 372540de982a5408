#include "runtime/checkpoint/safetensors.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "base/number/half.h"
#include "base/system/file.h"

namespace fleetrun::runtime {
namespace {

using Kind = JsonValue::Kind;

constexpr std::size_t kLengthBytes = 8;                          // of the header's length at the start
constexpr std::size_t kMostHeaderBytes = std::size_t{16} << 20;  // bytes; 100,000 tensors take about 10 MB
constexpr std::size_t kMostFileBytes = std::size_t{64} << 30;    // bytes; far above any model of ours
constexpr const char* kMetadata = "__metadata__";

struct StoredType {
  std::string_view name;  // in the file
  DType dtype;
};
constexpr std::array kTypes = {StoredType{"F32", DType::f32},   StoredType{"F16", DType::f16},
                               StoredType{"BF16", DType::bf16}, StoredType{"I64", DType::i64},
                               StoredType{"I32", DType::i32},   StoredType{"U8", DType::u8}};

std::string_view stored_name(DType dtype) {
  return std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& type) { return type.dtype == dtype; })
      ->name;
}

// Of the header, by the first bytes of a file.
std::uint64_t length_in(std::string_view content) {
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) length = length << 8U | static_cast<unsigned char>(content[i]);
  return length;
}

// Fills `bytes` from the place in the file; false if it has fewer.
bool read_at(int fd, std::size_t place, std::string& bytes) {
  return ::pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(place)) == std::ssize(bytes);
}

struct Extent {  // of a tensor in the data
  std::size_t begin = 0, end = 0;
};

// A file being taken apart.
class Parser {
 public:
  Parser(std::string content, const std::string& path)
      : path_(path), content_(std::make_unique<const std::string>(std::move(content))) {}

  Safetensors parse() {
    const std::string_view header = find_header();
    data_ = std::string_view(*content_).substr(kLengthBytes + header.size());
    const JsonDocument document = read_header(header);
    for (const JsonMember& member : document.root.members) {
      if (member.key == kMetadata)
        read_metadata(member.value);
      else
        read_tensor(member.key, member.value);
    }
    check_extents();
    file_.content = std::move(content_);
    return std::move(file_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw Error(ErrorKind::data, fmt::format("{} is not a good safetensors file: {}", path_, message));
  }
  [[noreturn]] void fail_at(std::string_view tensor, const std::string& message) const {
    fail(fmt::format("tensor {}: {}", quoted_name(tensor), message));
  }

  // What frameworks save without safetensors: code for Python, which fleetrun does not run.
  void refuse_python_files(std::string_view content) const {
    const bool is_zip = content.starts_with("PK\x03\x04");                      // torch.save
    const bool is_old_torch = content.starts_with("\x80\x02\x8a\x0a\x6c\xfc");  // torch.save before 1.6
    // Pickles of protocol 2 to 5, of which 4 begins with a frame: paddle.save. In a safetensors file, byte 8 is a brace.
    const bool is_pickle = content.size() > kLengthBytes && content[kLengthBytes] != '{' &&
                           content[0] == '\x80' && content[1] >= 2 && content[1] <= 5;
    if (is_zip || is_old_torch)
      throw Error(
          ErrorKind::data,
          fmt::format("{} is a file of PyTorch's torch.save, wanted a safetensors file", path_),
          fmt::format("python3 -c \"import torch, safetensors.torch as s; s.save_file(torch.load('{}', "
                      "map_location='cpu', weights_only=True), 'model.safetensors')\" converts it",
                      path_));
    if (is_pickle)
      throw Error(
          ErrorKind::data,
          fmt::format("{} is a pickle file, as PaddlePaddle's paddle.save writes, wanted a safetensors file",
                      path_),
          fmt::format("python3 -c \"import paddle, safetensors.paddle as s; s.save_file(paddle.load('{}'), "
                      "'model.safetensors')\" converts it",
                      path_));
  }

  std::string_view find_header() const {
    const std::string_view content = *content_;
    refuse_python_files(content);
    if (content.size() < kLengthBytes)
      fail(fmt::format("it has {} bytes, wanted at least {}", content.size(), kLengthBytes));
    const std::uint64_t length = length_in(content);
    if (length > kMostHeaderBytes)
      fail(fmt::format("its header has {} bytes, wanted at most {}", length, kMostHeaderBytes));
    if (length > content.size() - kLengthBytes)
      fail(fmt::format("its header has {} bytes, but only {} follow", length, content.size() - kLengthBytes));
    return content.substr(kLengthBytes, length);
  }

  JsonDocument read_header(std::string_view text) const {
    JsonDocument document = read_json(text);
    if (!document.problems.empty()) {
      const JsonProblem& problem = document.problems.front();
      fail(fmt::format("header, line {} column {}: {}{}{}", problem.position.line, problem.position.column,
                       problem.path, problem.path.empty() ? "" : ": ", problem.message));
    }
    if (!document.root.is(Kind::object) || text.front() != '{')
      fail("its header is not a JSON object from its first byte on");
    return document;
  }

  void read_metadata(const JsonValue& value) {
    if (!value.is(Kind::object)) fail(fmt::format("{} is not an object", kMetadata));
    for (const JsonMember& entry : value.members) {
      if (!entry.value.is(Kind::text))
        fail(fmt::format("{}, key {}: wanted a text", kMetadata, quoted_name(entry.key)));
      file_.metadata[entry.key] = entry.value.text;
    }
  }

  void read_tensor(const std::string& name, const JsonValue& value) {
    if (!value.is(Kind::object)) fail_at(name, "wanted an object with dtype, shape and data_offsets");
    for (const JsonMember& member : value.members)
      if (member.key != "dtype" && member.key != "shape" && member.key != "data_offsets")
        fail_at(name, fmt::format("found the unknown key {}", quoted_name(member.key)));
    StoredTensor tensor = {.dtype = read_dtype(name, value), .shape = read_shape(name, value), .bytes = {}};
    const Extent extent = read_extent(name, value);
    const std::size_t wanted = bytes_of(name, tensor);
    if (extent.end - extent.begin != wanted)
      fail_at(name, fmt::format("{} {} has {} bytes, but data_offsets [{},{}] give it {}",
                                stored_name(tensor.dtype), describe(tensor.shape), wanted, extent.begin,
                                extent.end, extent.end - extent.begin));
    tensor.bytes = data_.substr(extent.begin, wanted);
    extents_.emplace_back(extent, name);
    file_.tensors[name] = std::move(tensor);
  }

  const JsonValue& member(const std::string& name, const JsonValue& value, const char* key, Kind kind,
                          const char* wanted) const {
    const JsonMember* found = value.find(key);
    if (found == nullptr || !found->value.is(kind))
      fail_at(name, fmt::format("{}: found {}, wanted {}", key, found == nullptr ? "nothing" : "another kind",
                                wanted));
    return found->value;
  }

  DType read_dtype(const std::string& name, const JsonValue& value) const {
    const std::string& text = member(name, value, "dtype", Kind::text, "a text").text;
    std::string known;
    for (const StoredType& type : kTypes) {
      if (type.name == text) return type.dtype;
      known += fmt::format("{}{}", known.empty() ? "" : ", ", type.name);
    }
    fail_at(name, fmt::format("dtype: found {}, wanted one of {}", quoted_name(text), known));
  }

  // Whole numbers that are not negative.
  std::vector<std::int64_t> read_sizes(const std::string& name, const JsonValue& value,
                                       const char* key) const {
    std::vector<std::int64_t> sizes;
    for (const JsonValue& item : member(name, value, key, Kind::list, "a list").items) {
      if (!item.is(Kind::integer) || item.integer < 0)
        fail_at(name, fmt::format("{}: wanted whole numbers of at least 0", key));
      sizes.push_back(item.integer);
    }
    return sizes;
  }

  Shape read_shape(const std::string& name, const JsonValue& value) const {
    constexpr std::size_t kMostDimensions = 64;  // as PyTorch
    Shape shape = read_sizes(name, value, "shape");
    if (shape.size() > kMostDimensions)
      fail_at(name, fmt::format("shape: found {} sizes, wanted at most {}", shape.size(), kMostDimensions));
    return shape;
  }

  Extent read_extent(const std::string& name, const JsonValue& value) const {
    const std::vector<std::int64_t> offsets = read_sizes(name, value, "data_offsets");
    if (offsets.size() != 2)
      fail_at(name, fmt::format("data_offsets: found {} numbers, wanted [begin, end]", offsets.size()));
    const Extent extent = {static_cast<std::size_t>(offsets[0]), static_cast<std::size_t>(offsets[1])};
    if (extent.begin > extent.end || extent.end > data_.size())
      fail_at(name, fmt::format(
                        "data_offsets: found [{},{}], wanted begin <= end within the file's {} bytes of data",
                        extent.begin, extent.end, data_.size()));
    return extent;
  }

  std::size_t bytes_of(const std::string& name, const StoredTensor& tensor) const {
    std::size_t bytes = size_of(tensor.dtype);
    for (const std::int64_t size : tensor.shape)
      if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(size), &bytes))
        fail_at(name, fmt::format("shape {} does not fit into 64 bits", describe(tensor.shape)));
    return bytes;
  }

  void check_extents() {
    std::sort(extents_.begin(), extents_.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first.begin, a.first.end) < std::pair(b.first.begin, b.first.end);
    });
    std::size_t covered = 0;
    for (const auto& [extent, name] : extents_) {
      if (extent.begin != covered)
        fail_at(name, fmt::format("it begins at byte {} of the data, but the one before it ends at {}",
                                  extent.begin, covered));
      covered = extent.end;
    }
    if (covered != data_.size())
      fail(fmt::format("its tensors end at byte {} of the data, which has {}", covered, data_.size()));
  }

  const std::string& path_;
  std::unique_ptr<const std::string> content_;
  std::string_view data_;
  Safetensors file_;
  std::vector<std::pair<Extent, std::string>> extents_;  // with the tensor's name
};

JsonValue describe_tensor(const StoredTensor& tensor, std::size_t begin) {
  std::vector<JsonValue> shape;
  for (const std::int64_t size : tensor.shape) shape.push_back(JsonValue(size));
  JsonValue value = JsonValue::object();
  value.add("dtype", std::string(stored_name(tensor.dtype)));
  value.add("shape", JsonValue::list(std::move(shape)));
  value.add("data_offsets",
            JsonValue::list({JsonValue(static_cast<std::int64_t>(begin)),
                             JsonValue(static_cast<std::int64_t>(begin + tensor.bytes.size()))}));
  return value;
}

template <typename Convert>
std::vector<float> widened(const StoredTensor& tensor, Convert convert) {
  const auto narrow = tensor.as<std::uint16_t>();
  std::vector<float> wide(narrow.size());
  std::transform(narrow.begin(), narrow.end(), wide.begin(), convert);
  return wide;
}

}  // namespace

Safetensors parse_safetensors(std::string content, const std::string& path) {
  return Parser(std::move(content), path).parse();
}

Metadata read_metadata(int fd) {
  std::string length(kLengthBytes, '\0');
  if (!read_at(fd, 0, length) || length_in(length) > kMostHeaderBytes) return {};
  std::string header(length_in(length), '\0');
  if (!read_at(fd, kLengthBytes, header)) return {};
  Metadata metadata;
  const JsonDocument document = read_json(header);
  if (const JsonValue* found = document.root.find(kMetadata, Kind::object); found != nullptr)
    for (const JsonMember& entry : found->members) metadata[entry.key] = entry.value.text;
  return metadata;
}

Safetensors read_safetensors(const std::string& path) {
  return parse_safetensors(read_file(path, kMostFileBytes), path);
}

std::string format_safetensors(const Safetensors& file) {
  std::vector<const std::pair<const std::string, StoredTensor>*> order;
  for (const auto& entry : file.tensors) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return size_of(a->second.dtype) > size_of(b->second.dtype);
  });
  JsonValue header = JsonValue::object();
  if (!file.metadata.empty()) {
    JsonValue metadata = JsonValue::object();
    for (const auto& [key, text] : file.metadata) metadata.add(key, text);
    header.add(kMetadata, std::move(metadata));
  }
  std::size_t data_bytes = 0;
  for (const auto* entry : order) {
    header.add(entry->first, describe_tensor(entry->second, data_bytes));
    data_bytes += entry->second.bytes.size();
  }
  std::string text = to_json(header);
  text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');
  std::string content;
  content.reserve(kLengthBytes + text.size() + data_bytes);
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    content.push_back(static_cast<char>(std::uint64_t{text.size()} >> 8 * i & 0xffU));
  content += text;
  for (const auto* entry : order) content += entry->second.bytes;
  return content;
}

void write_safetensors(const std::string& path, const Safetensors& file) {
  write_file_atomically(path, format_safetensors(file));
}

std::string quoted_name(std::string_view name) {
  constexpr std::size_t kLongestName = 100;  // bytes
  return shortened_quote(name, kLongestName);
}

bool is_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

std::vector<float> to_floats(const StoredTensor& tensor) {
  if (tensor.dtype == DType::f32) return tensor.as<float>();
  if (tensor.dtype == DType::f16) return widened(tensor, f16_to_f32);
  if (tensor.dtype == DType::bf16) return widened(tensor, bf16_to_f32);
  throw Error(ErrorKind::data, fmt::format("found {}, wanted F32, F16 or BF16", stored_name(tensor.dtype)));
}

}  // namespace fleetrun::runtime
