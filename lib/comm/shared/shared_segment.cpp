#include "comm/shared/shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <limits>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::comm {
namespace {

constexpr std::size_t kPage = 4096;

std::size_t whole_pages(std::size_t bytes) {
  return std::max<std::size_t>((bytes + kPage - 1) / kPage, 1) * kPage;
}

[[noreturn]] void throw_os(const std::string& doing) {
  throw Error(ErrorKind::os, fmt::format("{}: {}", doing, describe_errno(errno)));
}

// Room for `bytes` more, found now and not by a SIGBUS later. The limit of file sizes holds here too, and its
// signal ends a process.
void extend(int fd, std::uint64_t start, std::size_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && start + bytes > limit.rlim_cur)
    throw Error(ErrorKind::os,
                fmt::format("finding {} bytes of shared memory: files may have {} bytes (ulimit -f)", bytes,
                            limit.rlim_cur));
  int done = 0;
  do done = ::fallocate(fd, 0, static_cast<off_t>(start), static_cast<off_t>(bytes));
  while (done != 0 && errno == EINTR);
  if (done != 0) throw_os(fmt::format("finding {} bytes of shared memory", bytes));
}

// What the /proc that is mounted here calls the process of a pidfd; 0 or less: it does not show it. That /proc may belong to
// another process namespace (unshare --pid without --mount-proc), in which our numbers are those of strangers.
int number_in_proc(int pidfd) {
  std::ifstream facts(fmt::format("/proc/self/fdinfo/{}", pidfd));
  for (std::string word; facts >> word;)
    if (int number = 0; word == "Pid:" && facts >> number) return number;
  return 0;
}

}  // namespace

Mapping::Mapping(int fd, std::uint64_t start, std::size_t bytes) : bytes_(bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
                        static_cast<off_t>(start));
  if (memory == MAP_FAILED) throw_os(fmt::format("mapping {} bytes of shared memory", bytes));
  data_ = static_cast<std::byte*>(memory);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

// What lives as long as the segment or any memory of it.
struct OwnSegment::File {
  UniqueFd fd;
  Mapping front;
  std::mutex mutex;  // memory may be given back by another thread
  std::vector<Mapping> more_fronts;
  std::uint64_t end = 0;
  std::vector<const Piece*> pieces;
};

class OwnSegment::Piece : public Memory {
 public:
  Piece(std::shared_ptr<File> file, std::size_t bytes) : file_(std::move(file)), start_(file_->end) {
    extend(file_->fd.get(), start_, bytes);
    mapping_ = Mapping(file_->fd.get(), start_, bytes);
    file_->end += bytes;
    file_->pieces.push_back(this);
  }
  ~Piece() override {
    const std::lock_guard lock(file_->mutex);
    std::erase(file_->pieces, this);
    // The others keep their mapping of it, which is empty from now on and takes no memory.
    ::fallocate(file_->fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(start_),
                static_cast<off_t>(mapping_.bytes()));
  }
  void* data() override { return mapping_.data(); }

  SharedPlace place_of(const void* data, std::size_t bytes) const {
    const auto* first = static_cast<const std::byte*>(data);
    const auto offset = static_cast<std::uint64_t>(first - mapping_.data());
    if (first < mapping_.data() || offset + bytes > mapping_.bytes()) return {};
    return {start_, mapping_.bytes(), offset};
  }

 private:
  std::shared_ptr<File> file_;
  std::uint64_t start_;
  Mapping mapping_;
};

OwnSegment::OwnSegment(std::size_t front_bytes) : file_(std::make_shared<File>()) {
  file_->fd = UniqueFd(::memfd_create("fleetrun-collectives", MFD_CLOEXEC));
  if (!file_->fd) throw_os("creating shared memory");
  const std::size_t bytes = whole_pages(front_bytes);
  extend(file_->fd.get(), 0, bytes);
  file_->front = Mapping(file_->fd.get(), 0, bytes);
  file_->end = bytes;
}

OwnSegment::~OwnSegment() = default;

std::byte* OwnSegment::front() const { return file_->front.data(); }

OwnSegment::Front OwnSegment::add_front(std::size_t bytes) {
  const std::lock_guard lock(file_->mutex);
  const std::uint64_t start = file_->end;
  const std::size_t whole = whole_pages(bytes);
  extend(file_->fd.get(), start, whole);
  file_->more_fronts.emplace_back(file_->fd.get(), start, whole);
  file_->end += whole;
  return {file_->more_fronts.back().data(), {start, whole, 0}};
}

std::string OwnSegment::address() const { return fmt::format("{} {}", ::getpid(), file_->fd.get()); }

std::unique_ptr<Memory> OwnSegment::allocate(std::size_t bytes) {
  const std::lock_guard lock(file_->mutex);
  return std::make_unique<Piece>(file_, whole_pages(bytes));
}

SharedPlace OwnSegment::place_of(const void* data, std::size_t bytes) const {
  const std::lock_guard lock(file_->mutex);
  for (const Piece* piece : file_->pieces)
    if (const SharedPlace place = piece->place_of(data, bytes); place.shared()) return place;
  return {};
}

PeerSegment::PeerSegment(const std::string& address, std::size_t front_bytes) {
  const std::size_t space = address.find(' ');
  int pid = 0;
  std::from_chars(address.data(), address.data() + std::min(space, address.size()), pid);
  if (pid <= 0 || space == std::string::npos)
    throw Error(ErrorKind::os, fmt::format("\"{}\" is not a process and descriptor", address));
  process_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process_) throw_os(fmt::format("watching process {}", pid));
  const int number = number_in_proc(process_.get());
  if (number <= 0) throw Error(ErrorKind::os, fmt::format("/proc does not show process {}", pid));
  const std::string path = fmt::format("/proc/{}/fd/{}", number, address.substr(space + 1));
  fd_ = UniqueFd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd_) throw_os(fmt::format("opening {}", path));
  struct stat facts {};
  const std::size_t bytes = whole_pages(front_bytes);
  if (::fstat(fd_.get(), &facts) != 0) throw_os(fmt::format("looking at {}", path));
  if (!S_ISREG(facts.st_mode) || static_cast<std::size_t>(facts.st_size) < bytes)
    throw Error(ErrorKind::os, fmt::format("{} is not shared memory of ours", path));
  front_ = Mapping(fd_.get(), 0, bytes);
}

std::byte* PeerSegment::at(const SharedPlace& place) {
  const auto known = std::find_if(pieces_.begin(), pieces_.end(),
                                  [&](const Piece& piece) { return piece.start == place.piece; });
  if (known != pieces_.end()) return known->mapping.data() + place.offset;
  pieces_.push_back({place.piece, Mapping(fd_.get(), place.piece, place.bytes)});
  return pieces_.back().mapping.data() + place.offset;
}

}  // namespace fleetrun::comm
