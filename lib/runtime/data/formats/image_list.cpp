#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/plural.h"
#include "job/keys/key.h"
#include "runtime/data/formats/formats.h"
#include "runtime/data/formats/image_file_set.h"
#include "runtime/data/formats/read_bytes.h"

namespace fleetrun::runtime {
namespace {

constexpr std::size_t kMaxListBytes = std::size_t{1} << 30;  // 1 GiB: some ten million lines
constexpr std::size_t kToldProblems = 20;                    // the rest are counted
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::array<std::string_view, 2> kMarksOfUtf16 = {"\xff\xfe", "\xfe\xff"};
constexpr std::string_view kBlank = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// Reads the lines, and tells all that is wrong with them at once.
class ListReader {
 public:
  ListReader(std::string list, std::string root) : list_(std::move(list)), root_(std::move(root)) {}

  void read_line(std::string_view text) {
    ++line_;
    text = trimmed(text);
    const std::size_t blank = text.find_last_of(kBlank);  // paths may have blanks, labels do not
    if (text.empty() || is_comment(text, blank)) return;
    if (blank == std::string_view::npos) return complain("no label; wanted `path label`");
    const std::string_view number = text.substr(blank + 1);
    int label = 0;
    const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), label);
    if (problem != std::errc() || end != number.data() + number.size() || label < 0 ||
        label >= job::kMostClasses)
      return complain(
          fmt::format("the label is {}, wanted a whole number from 0 to {}", number, job::kMostClasses - 1));
    add(std::string(trimmed(text.substr(0, blank))), label);
  }

  std::unique_ptr<DataSet> finish(const job::DataSetSpec& spec) {
    if (labels_.empty() && problems_ == 0)
      throw Error(ErrorKind::data, fmt::format("{} has no lines `path label`", list_));
    if (problems_ > kToldProblems) words_ += fmt::format("\n  and {} more", problems_ - kToldProblems);
    if (problems_ > 0)
      throw Error(ErrorKind::data,
                  fmt::format("{} of {} cannot be used:{}", plural(problems_, "line"), list_, words_));
    DataSetFacts facts;
    facts.classes = 1 + *std::max_element(labels_.begin(), labels_.end());
    facts.labels = std::move(labels_);
    find_shape(paths_, spec, facts);
    return make_image_file_set(std::move(facts), std::move(paths_), std::move(names_));
  }

 private:
  // The name of a file may also begin with #.
  bool is_comment(std::string_view line, std::size_t blank) const {
    if (line.front() != '#') return false;
    return blank == std::string_view::npos ||
           ::access(file_of(std::string(trimmed(line.substr(0, blank)))).c_str(), F_OK) != 0;
  }

  std::string file_of(const std::string& path) const {
    return path.front() == '/' ? path : root_ + "/" + path;
  }

  void add(const std::string& path, int label) {
    std::string file = file_of(path);
    if (::access(file.c_str(), R_OK) != 0)
      return complain(fmt::format("{}: {}", file, describe_errno(errno)));
    labels_.push_back(label);
    names_.push_back(fmt::format("{}:{}: {}", list_, line_, file));
    paths_.push_back(std::move(file));
  }

  void complain(const std::string& problem) {
    if (++problems_ <= kToldProblems) words_ += fmt::format("\n  {}:{}: {}", list_, line_, problem);
  }

  const std::string list_, root_;
  int line_ = 0;
  std::size_t problems_ = 0;
  std::string words_;
  std::vector<std::string> paths_, names_;
  std::vector<std::int32_t> labels_;
};

}  // namespace

std::unique_ptr<DataSet> open_image_list(const job::DataSetSpec& spec) {
  std::vector<std::uint8_t> bytes;
  read_whole(spec.list, kMaxListBytes, bytes);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const std::string_view mark : kMarksOfUtf16)
    if (text.starts_with(mark))
      throw Error(ErrorKind::data, fmt::format("{} is UTF-16 text, wanted UTF-8", spec.list));
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  ListReader reader(spec.list, spec.root);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    reader.read_line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.finish(spec);
}

}  // namespace fleetrun::runtime
