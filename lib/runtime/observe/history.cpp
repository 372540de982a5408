#include "runtime/observe/history.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
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

constexpr int kScalars = 3;  // the columns before the first one of them

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

// Whether the row is of an evaluation: its first scalar, the loss of a batch, is empty.
bool is_test(std::string_view row) { return from_column(row, kScalars).starts_with(','); }

std::string_view last_row(std::string_view lines) {
  lines.remove_suffix(1);
  return lines.substr(lines.rfind('\n') + 1);
}

}  // namespace

TrainingHistory::TrainingHistory(const std::string& path, const SavedPoint& point, std::int64_t first_step,
                                 std::ostream& out)
    : path_(path), out_(out), file_(::open(path.c_str(), O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC)) {
  try {
    if (!file_) throw Error(ErrorKind::io, fmt::format("opening {}: {}", path, describe_errno(errno)));
    const std::string before = point.steps > 0 ? rows_of(point) : "";
    if (::ftruncate(file_.get(), 0) != 0)
      throw Error(ErrorKind::io, fmt::format("emptying {}: {}", path, describe_errno(errno)));
    write_all(file_.get(), before.empty() ? header() : before, path);
    if (before.empty() || !is_test(last_row(before)) || step_of(last_row(before)) != point.steps) return;
    tested_ = first_step;
    tested_scores_ = from_column(last_row(before), kScalars);
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
  const bool is_known = is_test(row) && tested_ == step && from_column(row, kScalars) == tested_scores_;
  tested_ = -1;
  if (is_known) return;
  write_row(row + "\n");
}

// Whole, or not at all.
void TrainingHistory::write_row(const std::string& row) {
  const off_t end = ::lseek(file_.get(), 0, SEEK_END);
  try {
    write_all(file_.get(), row, path_);
  } catch (const Error& error) {
    if (::ftruncate(file_.get(), end) != 0) return give_up(error.message());
    if (!std::exchange(warned_, true))
      out_ << "warning: rows are missing in history.csv: " << error.message() << std::endl;
  }
}

// An older fleetrun saved none, and neither did a training without a launcher.
std::string TrainingHistory::rows_of(const SavedPoint& point) const {
  std::string why = "the checkpoint has no rows";
  try {
    std::string text = read_file(point.history, kMostBytes);
    text.resize(text.rfind('\n') + 1);
    if (text.starts_with(header())) return text;
    if (!text.empty()) why = point.history + " is not a table of a training";
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::missing) why = error.message();
  }
  out_ << fmt::format("history.csv has no rows of the steps up to {}: {}", point.steps, why) << std::endl;
  return "";
}

void TrainingHistory::give_up(const std::string& why) {
  out_ << "warning: no more rows in history.csv: " << why << std::endl;
  file_.reset();
}

}  // namespace fleetrun::runtime
