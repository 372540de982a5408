#include "runtime/observe/tensorboard_events.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <climits>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/file.h"

namespace fleetrun::runtime {
namespace {

constexpr int kMostNames = 100;  // that may be taken

// Numbers of the fields in tensorflow/core/util/event.proto and framework/summary.proto.
constexpr int kEventWallTime = 1, kEventStep = 2, kEventFileVersion = 3, kEventSummary = 5,
              kEventSessionLog = 7;
constexpr int kSummaryValue = 1, kValueTag = 1, kValueSimple = 2;
constexpr int kSessionStatus = 1, kSessionStart = 1;

enum class Wire { varint = 0, eight_bytes = 1, length = 2, four_bytes = 5 };

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  constexpr std::uint32_t kCastagnoli = 0x82f63b78;  // reflected
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    table[i] = i;
    for (int bit = 0; bit < 8; ++bit) table[i] = (table[i] >> 1U) ^ ((table[i] & 1U) != 0 ? kCastagnoli : 0U);
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kCrcTable = make_crc_table();

// So that the sum of data that holds sums stays a good one.
std::uint32_t masked(std::uint32_t crc) {
  constexpr std::uint32_t kMask = 0xa282ead8;
  return ((crc >> 15U) | (crc << 17U)) + kMask;
}

template <typename Number>
void put_little_endian(std::string& to, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i) to += static_cast<char>((number >> (8 * i)) & 0xffU);
}

void put_varint(std::string& to, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7U) to += static_cast<char>((number & 0x7fU) | 0x80U);
  to += static_cast<char>(number);
}

void put_key(std::string& to, int field, Wire wire) {
  put_varint(to, static_cast<std::uint64_t>(field) << 3U | static_cast<std::uint64_t>(wire));
}

void put_whole(std::string& to, int field, std::int64_t number) {
  put_key(to, field, Wire::varint);
  put_varint(to, static_cast<std::uint64_t>(number));
}

void put_double(std::string& to, int field, double number) {
  put_key(to, field, Wire::eight_bytes);
  put_little_endian(to, std::bit_cast<std::uint64_t>(number));
}

void put_float(std::string& to, int field, float number) {
  put_key(to, field, Wire::four_bytes);
  put_little_endian(to, std::bit_cast<std::uint32_t>(number));
}

void put_text(std::string& to, int field, std::string_view text) {
  put_key(to, field, Wire::length);
  put_varint(to, text.size());
  to += text;
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes)
    crc = (crc >> 8U) ^ kCrcTable[(crc ^ static_cast<unsigned char>(byte)) & 0xffU];
  return ~crc;
}

std::string tf_record(std::string_view data) {
  std::string record;
  put_little_endian(record, static_cast<std::uint64_t>(data.size()));
  put_little_endian(record, masked(crc32c(record)));
  record += data;
  put_little_endian(record, masked(crc32c(data)));
  return record;
}

std::string version_event(double wall_time) {
  std::string event;
  put_double(event, kEventWallTime, wall_time);
  put_text(event, kEventFileVersion, "brain.Event:2");
  return event;
}

std::string restart_event(std::int64_t step, double wall_time) {
  std::string session;
  put_whole(session, kSessionStatus, kSessionStart);
  std::string event;
  put_double(event, kEventWallTime, wall_time);
  put_whole(event, kEventStep, step);
  put_text(event, kEventSessionLog, session);
  return event;
}

std::string scalars_event(std::int64_t step, double wall_time, const std::vector<Scalar>& scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    std::string value;
    put_text(value, kValueTag, scalar.tag);
    put_float(value, kValueSimple, static_cast<float>(scalar.value));
    put_text(summary, kSummaryValue, value);
  }
  std::string event;
  put_double(event, kEventWallTime, wall_time);
  put_whole(event, kEventStep, step);
  put_text(event, kEventSummary, summary);
  return event;
}

EventFile::EventFile(const std::string& folder, double wall_time) {
  make_directories(folder);
  const std::string name = fmt::format("{}/events.out.tfevents.{:010}.{}.{}", folder,
                                       static_cast<std::int64_t>(wall_time), host_name(), ::getpid());
  for (int attempt = 0; !fd_ && attempt < kMostNames; ++attempt) {
    path_ = attempt == 0 ? name : fmt::format("{}.{}", name, attempt);
    fd_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640));
    if (!fd_ && errno != EEXIST) break;
  }
  if (!fd_) throw Error(ErrorKind::create, fmt::format("creating {}: {}", path_, describe_errno(errno)));
  append(version_event(wall_time));
}

void EventFile::start_again_at(std::int64_t step, double wall_time) {
  append(restart_event(step, wall_time));
}

void EventFile::add(std::int64_t step, double wall_time, const std::vector<Scalar>& scalars) {
  append(scalars_event(step, wall_time, scalars));
}

// By one write, so that a process that is killed leaves whole records.
void EventFile::append(const std::string& event) {
  const std::string record = tf_record(event);
  struct stat facts {};
  const bool known = ::fstat(fd_.get(), &facts) == 0;
  const ssize_t count = ::write(fd_.get(), record.data(), record.size());
  if (count == static_cast<ssize_t>(record.size())) return;
  const int problem = count < 0 ? errno : ENOSPC;
  if (count > 0 && known && ::ftruncate(fd_.get(), facts.st_size) != 0)
    throw Error(ErrorKind::io,
                fmt::format("taking back half a record of {}: {}", path_, describe_errno(errno)));
  throw Error(ErrorKind::io, fmt::format("writing {}: {}", path_, describe_errno(problem)));
}

}  // namespace fleetrun::runtime
