// Memory that the ranks of one host share: each rank owns one segment, a memfd without a name in any file
// system, and maps those of the others. A segment begins with a page of control words and room for staged
// data; memory that is allocated later is appended, and mapped by the others when they first meet it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/system/unique_fd.h"
#include "comm/collective/communicator.h"

namespace fleetrun::comm {

// A piece of a segment: what one rank tells another about where its data lies.
struct SharedPlace {
  std::uint64_t piece = 0;   // where the piece begins in the segment; a multiple of a page
  std::uint64_t bytes = 0;   // of the piece; 0: not in the segment
  std::uint64_t offset = 0;  // of the data in the piece
  bool shared() const { return bytes != 0; }
};

// One mapped range, unmapped with its owner.
class Mapping {
 public:
  Mapping() = default;
  // Throws Error(os).
  Mapping(int fd, std::uint64_t start, std::size_t bytes);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Our own.
class OwnSegment {
 public:
  // With a front of that size, zeroed. Throws Error(os).
  explicit OwnSegment(std::size_t front_bytes);
  ~OwnSegment();

  std::byte* front() const;
  // More of it, zeroed, that is not given back before every process is done with the segment. Throws Error(os).
  struct Front {
    std::byte* data = nullptr;
    SharedPlace place;
  };
  Front add_front(std::size_t bytes);
  // "PID FD": what another process of this user needs to open it.
  std::string address() const;
  // Zeroed and page-aligned; given back to the system with its owner, which may outlive the segment.
  std::unique_ptr<Memory> allocate(std::size_t bytes);
  // Where `data` lies, when all `bytes` of it are in memory that was allocated here and still lives.
  SharedPlace place_of(const void* data, std::size_t bytes) const;

 private:
  struct File;
  class Piece;
  std::shared_ptr<File> file_;  // shared with allocated memory, whichever goes last
};

// That of another rank.
class PeerSegment {
 public:
  // Throws Error(os) when there is no such segment with a front of that size, or it may not be opened.
  PeerSegment(const std::string& address, std::size_t front_bytes);

  std::byte* front() const { return front_.data(); }
  // Maps the piece when it is met for the first time. Throws Error(os).
  std::byte* at(const SharedPlace& place);
  // A pidfd of its owner: readable when that process has ended.
  int process() const { return process_.get(); }

 private:
  struct Piece {
    std::uint64_t start = 0;
    Mapping mapping;
  };
  UniqueFd process_;  // unlike a pid, it never refers to another process later
  UniqueFd fd_;
  Mapping front_;
  std::vector<Piece> pieces_;
};

}  // namespace fleetrun::comm
