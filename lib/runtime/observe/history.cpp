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

// From the start of that column.
std::string_view from_column(std::string_view row, int column) {
  for (; column > 0; --column) row.remove_prefix(std::min(row.find(','), row.size() - 1) + 1);
  return row;
}

int epoch_of(std::string_view row) {
  return static_cast<int>(std::strtol(std::string(from_column(row, 1)).c_str(), nullptr, 10));
}

// Whether the row is of an evaluation: its first scalar, the loss of a batch, is empty.
bool is_test(std::string_view row) { return from_column(row, 3).starts_with(','); }

std::string_view last_row(std::string_view lines) {
  lines.remove_suffix(1);
  return lines.substr(lines.rfind('\n') + 1);
}

// The row follows the checkpoint in the training.
bool is_repeated(std::string_view row, const SavedPoint& point) {
  if (is_test(row) && step_of(row) == point.steps) return false;
  if (epoch_of(row) != point.epoch) return epoch_of(row) > point.epoch;
  return step_of(row) > point.steps;
}

// Older checkpoints have none, and so does that of a training without a launcher.
std::string read_rows(const SavedPoint& point) {
  if (point.history.empty() || ::access(point.history.c_str(), F_OK) != 0) return "";
  return history_until(read_file(point.history, kMostBytes), point);
}

}  // namespace

std::string history_until(const std::string& text, const SavedPoint& point) {
  const std::string start = header();
  if (!text.starts_with(start)) return "";
  std::string_view lines = std::string_view(text).substr(0, text.rfind('\n') + 1);
  while (lines.size() > start.size() && is_repeated(last_row(lines), point))
    lines.remove_suffix(last_row(lines).size() + 1);
  return std::string(lines);
}

TrainingHistory::TrainingHistory(const std::string& path, const SavedPoint& point, std::int64_t first_step,
                                 std::ostream& out)
    : path_(path), out_(out), file_(::open(path.c_str(), O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC)) {
  try {
    if (!file_) throw Error(ErrorKind::io, fmt::format("opening {}: {}", path, describe_errno(errno)));
    const std::string before = read_rows(point);
    if (::ftruncate(file_.get(), 0) != 0)
      throw Error(ErrorKind::io, fmt::format("emptying {}: {}", path, describe_errno(errno)));
    write_all(file_.get(), before.empty() ? header() : before, path);
    if (!before.empty() && is_test(last_row(before)) && step_of(last_row(before)) == point.steps)
      tested_ = first_step;
  } catch (const Error& error) {
    give_up(error.message());
  }
}

void TrainingHistory::add(std::int64_t step, int epoch, const std::vector<Scalar>& scalars) {
  if (!file_) return;
  std::string row = fmt::format("{},{},{:.3f}", step, epoch, seconds_since_1970());
  for (const auto& [name, column] : kHistoryScalars) {
    const auto found = std::ranges::find(scalars, name, &Scalar::tag);
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
