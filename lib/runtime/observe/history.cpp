#include "runtime/observe/history.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ostream>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/file.h"

namespace fleetrun::runtime {
namespace {

constexpr double kClockSkew = 1;                          // seconds between this host and a file server
constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // a row has about 100

// A scalar, and its column.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kHistoryScalars = {
    {{"train/loss", "loss"},
     {"train/acc1", "acc1"},
     {"train/acc5", "acc5"},
     {"train/learning_rate", "learning_rate"},
     {"train/images_per_second", "images_per_second"},
     {"train/communication_share", "communication_share"},
     {"test/loss", "test_loss"},
     {"test/acc1", "test_acc1"},
     {"test/acc5", "test_acc5"}}};

std::string header() {
  std::string line = "step,epoch,time";
  for (const auto& [scalar, column] : kHistoryScalars) line += fmt::format(",{}", column);
  return line + "\n";
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::int64_t step_of(std::string_view row) { return std::strtoll(std::string(row).c_str(), nullptr, 10); }

double time_of(const std::string& row) {
  std::size_t comma = row.find(',');
  if (comma != std::string::npos) comma = row.find(',', comma + 1);
  return comma == std::string::npos ? 0 : std::strtod(row.c_str() + comma + 1, nullptr);
}

// Whether the row is of an evaluation: its first scalar, the loss of a batch, is empty.
bool is_test(std::string_view row) {
  std::size_t comma = row.find(',');
  for (int i = 0; i < 2 && comma != std::string_view::npos; ++i) comma = row.find(',', comma + 1);
  return comma != std::string_view::npos && row.substr(comma + 1).starts_with(',');
}

// The step of the evaluation in the last row; -1: the last row is another one.
std::int64_t last_test(std::string_view text) {
  if (text.empty()) return -1;
  const std::size_t before = text.rfind('\n', text.size() - 2);
  const std::string_view row = text.substr(before == std::string_view::npos ? 0 : before + 1);
  return is_test(row) ? step_of(row) : -1;
}

}  // namespace

std::string history_until(const std::string& text, std::int64_t last) {
  const std::string start = header();
  if (!text.starts_with(start)) return "";
  std::size_t kept = start.size();
  for (std::size_t end = 0; (end = text.find('\n', kept)) != std::string::npos; kept = end + 1)
    if (step_of(std::string_view(text).substr(kept, end - kept)) > last) break;
  return text.substr(0, kept);
}

bool ends_by(const std::string& history, std::int64_t last, double saved_at) {
  std::size_t start = 0;
  for (std::size_t end = 0; (end = history.find('\n', start)) != std::string::npos; start = end + 1) {
    const std::string row = history.substr(start, end - start);
    if (step_of(row) > 0 && step_of(row) < last && time_of(row) > saved_at + kClockSkew) return false;
  }
  return true;
}

TrainingHistory::TrainingHistory(const std::string& path, const Start& start, std::ostream& out)
    : path_(path), out_(out), file_(::open(path.c_str(), O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC)) {
  try {
    if (!file_) throw Error(ErrorKind::io, fmt::format("opening {}: {}", path, describe_errno(errno)));
    std::string before;
    if (start.steps > 0) before = history_until(read_file(file_.get(), path, kMostBytes), start.steps);
    if (!ends_by(before, start.steps, start.saved_at)) before.clear();
    if (::ftruncate(file_.get(), static_cast<off_t>(before.size())) != 0)
      throw Error(ErrorKind::io, fmt::format("shortening {}: {}", path, describe_errno(errno)));
    if (before.empty()) write_all(file_.get(), header(), path);
    tested_ = last_test(before);
  } catch (const Error& error) {
    give_up(error.message());
  }
}

void TrainingHistory::add(std::int64_t step, int epoch, const std::vector<Scalar>& scalars) {
  if (!file_) return;
  std::string row = fmt::format("{},{},{:.3f}", step, epoch, seconds_since_1970());
  for (const auto& [name, column] : kHistoryScalars) {
    const auto found =
        std::find_if(scalars.begin(), scalars.end(), [&](const Scalar& one) { return one.tag == name; });
    row += found == scalars.end() ? "," : fmt::format(",{:.7g}", found->value);
  }
  if (is_test(row) && tested_ == step) return;
  tested_ = -1;
  try {
    write_all(file_.get(), row + "\n", path_);
  } catch (const Error& error) {
    give_up(error.message());
  }
}

void TrainingHistory::give_up(const std::string& why) {
  out_ << "warning: no more rows in history.csv: " << why << std::endl;
  file_.reset();
}

}  // namespace fleetrun::runtime
