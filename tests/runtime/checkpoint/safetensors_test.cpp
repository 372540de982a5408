#include "runtime/checkpoint/safetensors.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "base/number/half.h"
#include "runtime/data/expect_error.h"
#include "support/temporary_folder.h"

namespace fleetrun::runtime::safetensors_test {
namespace {

// A file with this header and so many bytes of data.
std::string file_of(const std::string& header, std::size_t data_bytes) {
  std::string content;
  for (std::size_t i = 0; i < 8; ++i) content.push_back(static_cast<char>(header.size() >> 8 * i & 0xff));
  return content + header + std::string(data_bytes, 'x');
}

std::string tensor(const std::string& name, const std::string& shape, const std::string& offsets,
                   const std::string& dtype = "F32") {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape, offsets);
}

void check_refused(const std::string& content, const std::string& words) {
  check_error(ErrorKind::data, "model.safetensors is not a good safetensors file: ", [&] {
    parse_safetensors(content, "model.safetensors");
  });
  check_error(ErrorKind::data, words, [&] { parse_safetensors(content, "model.safetensors"); });
}

template <typename T, std::size_t Count>
std::string_view bytes_of(const std::array<T, Count>& values) {
  return {reinterpret_cast<const char*>(values.data()), sizeof values};
}

TEST_CASE("what is written is read again, with metadata, empty tensors and scalars") {
  const std::array<float, 6> floats = {1, -2, 3.5F, 0, 1e30F, -1e-30F};
  const std::array<std::int64_t, 1> step = {std::int64_t{1} << 40};
  const std::array<std::uint16_t, 2> halves = {0x3c00, 0xc000};
  const std::array<std::uint8_t, 3> bytes = {1, 2, 255};
  Safetensors file;
  file.metadata = {{"format", "pt"}, {"über \"x\"", "line\nline"}};
  file.tensors["a.bytes"] = {DType::u8, {3}, bytes_of(bytes)};
  file.tensors["c1.weight"] = {DType::f32, {2, 3}, bytes_of(floats)};
  file.tensors["empty"] = {DType::f32, {0, 5}, {}};
  file.tensors["half"] = {DType::f16, {2}, bytes_of(halves)};
  file.tensors["step"] = {DType::i64, {}, bytes_of(step)};

  const TemporaryFolder folder;
  const std::string path = folder / "model.safetensors";
  write_safetensors(path, file);
  const Safetensors read = read_safetensors(path);
  CHECK(read.metadata == file.metadata);
  REQUIRE(read.tensors.size() == file.tensors.size());
  for (const auto& [name, wanted] : file.tensors) {
    CAPTURE(name);
    const StoredTensor& got = read.tensors.at(name);
    CHECK(got.dtype == wanted.dtype);
    CHECK(got.shape == wanted.shape);
    CHECK(got.bytes == wanted.bytes);
    CHECK((got.bytes.data() - read.content->data()) % static_cast<std::ptrdiff_t>(size_of(got.dtype)) == 0);
  }
  CHECK(read.tensors.at("step").as<std::int64_t>() == std::vector<std::int64_t>{std::int64_t{1} << 40});
}

TEST_CASE("the bytes of a file are those of the format's description") {
  const std::array<float, 1> one = {1};
  Safetensors file;
  file.tensors["w"] = {DType::f32, {1}, bytes_of(one)};
  const std::string content = format_safetensors(file);
  const std::string header = content.substr(8, content.size() - 12);
  CHECK(header.starts_with(R"({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})"));
  CHECK(header.size() % 8 == 0);
  CHECK(static_cast<unsigned char>(content[0]) == header.size());
  CHECK(content.substr(1, 7) == std::string(7, '\0'));
  CHECK(content.substr(content.size() - 4) == std::string("\0\0\x80\x3f", 4));
}

TEST_CASE("tensors may stand in any order, and the header be padded with spaces") {
  const std::string header = "{" + tensor("b", "[1]", "[8,12]") + "," + tensor("a", "[2]", "[0,8]") + "}   ";
  const Safetensors file = parse_safetensors(file_of(header, 12), "model.safetensors");
  CHECK(file.tensors.at("a").bytes.size() == 8);
  CHECK(file.tensors.at("b").bytes.data() == file.tensors.at("a").bytes.data() + 8);
  CHECK(parse_safetensors(file_of("{}", 0), "model.safetensors").tensors.empty());
}

TEST_CASE("16-bit floats become f32, whole numbers do not") {
  const std::array<std::uint16_t, 2> f16 = {f32_to_f16(1.5F), f32_to_f16(-0.25F)};
  const std::array<std::uint16_t, 2> bf16 = {f32_to_bf16(1.5F), f32_to_bf16(-0.25F)};
  const std::vector<float> wanted = {1.5F, -0.25F};
  CHECK(to_floats({DType::f16, {2}, bytes_of(f16)}) == wanted);
  CHECK(to_floats({DType::bf16, {2}, bytes_of(bf16)}) == wanted);
  check_error(ErrorKind::data, "found U8, wanted F32, F16 or BF16", [] { to_floats({DType::u8, {1}, "x"}); });
}

TEST_CASE("a file that PyTorch or PaddlePaddle wrote gets the command that converts it") {
  for (const std::string start : {"PK\x03\x04zip file", "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20"}) {
    const Error error = error_of([&] { parse_safetensors(start, "net.pth"); });
    CHECK(error.message() == "net.pth is a file of PyTorch's torch.save, wanted a safetensors file");
    CHECK(error.hint().find("torch.load('net.pth'") != std::string::npos);
  }
  const Error error =
      error_of([] { parse_safetensors("\x80\x04\x95\x93\x98" + std::string(8, '\0'), "net.pdparams"); });
  CHECK(error.message() ==
        "net.pdparams is a pickle file, as PaddlePaddle's paddle.save writes, wanted a safetensors file");
  CHECK(error.hint().find("paddle.load('net.pdparams')") != std::string::npos);
}

TEST_CASE("a header of 640 bytes does not look like a pickle") {
  std::string header = "{" + tensor("a", "[2]", "[0,8]") + "}";
  header.resize(0x280, ' ');
  CHECK(parse_safetensors(std::string("\x80\x02\0\0\0\0\0\0", 8) + header + std::string(8, '\0'), "m")
            .tensors.size() == 1);
}

TEST_CASE("a truncated file is refused wherever it ends") {
  const std::string whole = file_of("{" + tensor("a", "[2]", "[0,8]") + "}", 8);
  REQUIRE_NOTHROW(parse_safetensors(whole, "model.safetensors"));
  for (std::size_t size = 0; size < whole.size(); ++size)
    check_error(ErrorKind::data, "model.safetensors",
                [&] { parse_safetensors(whole.substr(0, size), "model.safetensors"); });
  check_refused(whole.substr(0, 7), "it has 7 bytes, wanted at least 8");
  check_refused(whole.substr(0, 20), "but only 12 follow");
  check_refused(
      whole.substr(0, whole.size() - 1),
      "tensor \"a\": data_offsets: found [0,8], wanted begin <= end within the file's 7 bytes of data");
}

TEST_CASE("a header that claims too much is refused before it is read") {
  std::string content(16, ' ');
  content.replace(0, 8, std::string(8, '\xff'));
  check_refused(content, "its header has 18446744073709551615 bytes, wanted at most 16777216");
  check_refused(std::string("\x01\x00\x00\x01\x00\x00\x00\x00", 8), "its header has 16777217 bytes");
}

TEST_CASE("tensors that overlap, leave a gap or do not reach the end are refused") {
  const auto two = [](const std::string& first, const std::string& second) {
    return "{" + tensor("a", "[2]", first) + "," + tensor("b", "[2]", second) + "}";
  };
  REQUIRE_NOTHROW(parse_safetensors(file_of(two("[0,8]", "[8,16]"), 16), "model.safetensors"));
  check_refused(file_of(two("[0,8]", "[4,12]"), 12),
                "tensor \"b\": it begins at byte 4 of the data, but the one before it ends at 8");
  check_refused(file_of(two("[0,8]", "[0,8]"), 8), "it begins at byte 0 of the data");
  check_refused(file_of(two("[0,8]", "[12,20]"), 20), "it begins at byte 12 of the data");
  check_refused(file_of(two("[4,12]", "[12,20]"), 20),
                "tensor \"a\": it begins at byte 4 of the data, but the one before it ends at 0");
  check_refused(file_of(two("[0,8]", "[8,16]"), 17), "its tensors end at byte 16 of the data, which has 17");
  check_refused(file_of("{}", 1), "its tensors end at byte 0 of the data, which has 1");
}

TEST_CASE("a tensor whose size is not what its shape says is refused") {
  check_refused(file_of("{" + tensor("a", "[3]", "[0,8]") + "}", 8),
                "tensor \"a\": F32 [3] has 12 bytes, but data_offsets [0,8] give it 8");
  check_refused(file_of("{" + tensor("a", "[1]", "[8,4]") + "}", 8), "data_offsets: found [8,4]");
  check_refused(file_of("{" + tensor("a", "[4294967296,4294967296]", "[0,0]") + "}", 0),
                "tensor \"a\": shape [4294967296,4294967296] does not fit into 64 bits");
  check_refused(file_of("{" + tensor("a", "[9223372036854775807]", "[0,4]") + "}", 4),
                "does not fit into 64 bits");
}

TEST_CASE("entries of another form are refused") {
  const auto refused = [](const std::string& entry, const std::string& words) {
    check_refused(file_of("{" + entry + "}", 4), words);
  };
  refused(tensor("a", "[1]", "[0,4]", "F64"),
          "tensor \"a\": dtype: found \"F64\", wanted one of F32, F16, BF16, I64, I32, U8");
  refused(tensor("a", "[-1]", "[0,4]"), "shape: wanted whole numbers of at least 0");
  refused(tensor("a", "[1.0]", "[0,4]"), "shape: wanted whole numbers of at least 0");
  refused(tensor("a", "1", "[0,4]"), "shape: found another kind, wanted a list");
  refused(tensor("a", "[1]", "[0]"), "data_offsets: found 1 numbers, wanted [begin, end]");
  refused(tensor("a", "[1]", "[0,-4]"), "data_offsets: wanted whole numbers of at least 0");
  refused(tensor("a", "[1]", "[0,99999999999999999999]"), "data_offsets: wanted whole numbers");
  refused(R"("a": 3)", "tensor \"a\": wanted an object with dtype, shape and data_offsets");
  refused(R"("a": {"shape": [1], "data_offsets": [0, 4]})", "dtype: found nothing, wanted a text");
  refused(R"("a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], "code": 1})",
          "found the unknown key \"code\"");
  refused(R"("__metadata__": {"a": 1})", "__metadata__, key \"a\": wanted a text");
  refused(R"("__metadata__": [])", "__metadata__ is not an object");
}

TEST_CASE("a header that is not a JSON object in UTF-8 with each name once is refused") {
  check_refused(file_of("", 0), "header");
  check_refused(file_of("[]", 0), "its header is not a JSON object from its first byte on");
  check_refused(file_of(" {}", 0), "its header is not a JSON object from its first byte on");
  check_refused(file_of("{\"a", 0), "header, line 1");
  check_refused(file_of("{\"\xff\": 1}", 0), "UTF-8");
  check_refused(file_of("{" + tensor("a", "[1]", "[0,4]") + "," + tensor("a", "[1]", "[4,8]") + "}", 8),
                "a: found the key again, wanted it once");
  check_refused(file_of(std::string(100, '['), 0), "levels of nesting");
}

TEST_CASE("a file that is not there is missing, not bad") {
  check_error(ErrorKind::missing, "/no/model.safetensors", [] { read_safetensors("/no/model.safetensors"); });
}

}  // namespace
}  // namespace fleetrun::runtime::safetensors_test
