// What the plug-in uses of NCCL, between processes of one machine: ranks meet in a file of shared memory that the id
// names, each with a place for what it brings. Nothing waits: a collective goes on whenever its stream does. A rank whose
// process has ended is found by its lock on the file.
#include <fcntl.h>
#include <nccl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "comm/collective/reduce.h"
#include "cuda/on_host/stream.h"

namespace on_host = fleetrun::cuda::on_host;

namespace {

using fleetrun::DType;
using fleetrun::comm::ReduceOp;

constexpr std::size_t kMostBytes = std::size_t{64} << 20U;  // that a rank brings to a collective
constexpr std::size_t kHead = 4096;                         // bytes in front of the ranks' places
constexpr std::size_t kMostRanks = 64;

// Arrivals of all ranks, counted from the beginning: one to join, then two in each collective; and those to leave.
using Count = std::atomic<std::uint64_t>;
struct Head {
  Count arrivals, leaving;
  std::array<Count, kMostRanks> doing;  // by rank: bytes of its collective, and whether it is recorded
};
static_assert(sizeof(Head) <= kHead);

struct Brought {
  const void* from = nullptr;
  std::size_t bytes = 0;
};

}  // namespace

struct ncclComm {
  int rank = 0, size = 0;
  int file = -1;
  std::byte* shared = nullptr;
  std::string name;
  std::uint64_t collectives = 0;
  std::atomic<bool> given_up = false;
  bool broken = false, leaves = false;
  const std::shared_ptr<int> recordings = std::make_shared<int>();  // kept by those that have its collectives
  std::map<const std::byte*, std::size_t> registered;               // memory -> bytes
  std::size_t under_way = 0;                                        // collectives that are not done

  ~ncclComm() {
    ::munmap(shared, bytes());
    ::close(file);
    if (rank == 0) ::shm_unlink(name.c_str());
  }
  std::size_t bytes() const { return kHead + static_cast<std::size_t>(size) * kMostBytes; }
  Head& head() const { return *reinterpret_cast<Head*>(shared); }
  bool have_arrived(std::uint64_t times) const {
    return head().arrivals >= times * static_cast<std::uint64_t>(size);
  }
  bool has_registered(const Brought& brought) const {
    const auto* const from = static_cast<const std::byte*>(brought.from);
    auto next = registered.upper_bound(from);
    return next != registered.begin() &&
           from + brought.bytes <= std::prev(next)->first + std::prev(next)->second;
  }
  bool all_leave() const { return head().leaving == static_cast<std::uint64_t>(size); }
  std::byte* place_of(int whose) const {
    return shared + kHead + static_cast<std::size_t>(whose) * kMostBytes;
  }

  void lock() const {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1, .l_pid = 0};
    if (::fcntl(file, F_SETLK, &lock) != 0) on_host::refuse("two ranks of the same number");
  }
  bool somebody_is_gone() const {
    for (int other = 0; other < size; ++other) {
      struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = other, .l_len = 1, .l_pid = 0};
      if (other != rank && ::fcntl(file, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK) return true;
    }
    return false;
  }
};

namespace {

// How many communicators have registered a piece of memory of ncclMemAlloc.
std::map<const void*, int>& pieces_of_nccl() {
  static std::map<const void*, int> pieces;
  return pieces;
}

std::shared_ptr<ncclComm>* handle_of(ncclComm_t comm) {
  return reinterpret_cast<std::shared_ptr<ncclComm>*>(comm);
}

DType dtype_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat32:
      return DType::f32;
    case ncclFloat16:
      return DType::f16;
    case ncclBfloat16:
      return DType::bf16;
    case ncclInt32:
      return DType::i32;
    case ncclInt64:
      return DType::i64;
    default:
      return DType::u8;
  }
}

ReduceOp op_of(ncclRedOp_t op) {
  return op == ncclSum ? ReduceOp::sum : op == ncclMax ? ReduceOp::max : ReduceOp::min;
}

// Each rank leaves what it brings; when all have, `take(comm)` reads the places; when all have read, they are free.
template <typename Take>
ncclResult_t collective(ncclComm_t given, const Brought& brought, cudaStream_t stream, const Take& take) {
  const std::lock_guard lock(on_host::machine());
  const std::shared_ptr<ncclComm> comm = *handle_of(given);
  if (comm->broken) return ncclRemoteError;
  if (brought.bytes > kMostBytes) on_host::refuse("a collective of so many bytes");
  on_host::expect_reachable(brought.from, brought.bytes, "a collective");
  const bool recorded = on_host::keep_in_recording(stream, comm->recordings);
  const bool registered = comm->has_registered(brought);
  if (registered && !recorded) ++on_host::counts().registered;
  // A recorded collective gets its number each time it is done. All ranks have recorded it, or none has.
  const std::uint64_t doing = brought.bytes << 2U | (registered ? 2U : 0U) | (recorded ? 1U : 0U);
  const auto work = [comm, brought, take, doing, recorded, number = std::optional<std::uint64_t>(),
                     arrived = false, looks = 0]() mutable {
    if (comm->given_up) {
      if (!recorded) --comm->under_way;
      return true;
    }
    if (!number) number = comm->collectives++;
    const std::uint64_t before = 1 + 2 * *number;  // arrivals of each rank
    if (!arrived) {
      if (!comm->have_arrived(before)) return on_host::wait_for_other_process(looks);
      std::memcpy(comm->place_of(comm->rank), brought.from, brought.bytes);
      comm->head().doing[static_cast<std::size_t>(comm->rank)] = doing;
      ++comm->head().arrivals;
      arrived = true;
    }
    if (!comm->have_arrived(before + 1)) return on_host::wait_for_other_process(looks);
    for (int other = 0; other < comm->size; ++other)
      if (comm->head().doing[static_cast<std::size_t>(other)] != doing)
        on_host::refuse(
            "ranks do different collectives, or one of them has recorded it, or registered its memory, and "
            "another has not");
    take(*comm);
    ++comm->head().arrivals;
    if (!recorded) --comm->under_way;
    return true;
  };
  if (!recorded) ++comm->under_way;
  on_host::give_until_done(stream, &on_host::Counts::nccl, work);
  return ncclSuccess;
}

// made = op over what all ranks have brought from `offset` on, the same on each: in the order of the ranks.
void sum_up(const ncclComm& comm, std::size_t offset, void* made, std::size_t count, DType dtype,
            ReduceOp op) {
  std::memcpy(made, comm.place_of(0) + offset, count * size_of(dtype));
  for (int other = 1; other < comm.size; ++other)
    fleetrun::comm::reduce_function(dtype, op)(made, made, comm.place_of(other) + offset, count);
}

void give_back_registered(ncclComm& comm) {
  const std::lock_guard lock(on_host::machine());
  for (const auto& [data, bytes] : comm.registered)
    if (const auto found = pieces_of_nccl().find(data); found != pieces_of_nccl().end()) --found->second;
  comm.registered.clear();
}

// As NCCL does, which would wait for ever.
void wait_for_recordings(const ncclComm& comm) {
  constexpr auto kDeadline = std::chrono::seconds(10);
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (comm.recordings.use_count() > 1) {
    if (std::chrono::steady_clock::now() > deadline)
      on_host::refuse("a communicator ends, and a recording with its collectives is not destroyed");
    ::sched_yield();
  }
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): NCCL's names
extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) { return "remote process exited or there was a network error"; }
const char* ncclGetLastError(ncclComm_t) { return "a rank is gone"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int made = 0;
  *id = {};
  const std::string name = fmt::format("/fleetrun-test-{}-{}", ::getpid(), made++);
  std::memcpy(id->internal, name.data(), name.size());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  const ncclConfig_t usual = NCCL_CONFIG_INITIALIZER;
  if (config->magic != usual.magic || config->size != usual.size || config->blocking != 0)
    on_host::refuse("a communicator that would block");
  auto comm = std::make_shared<ncclComm>();
  comm->rank = rank, comm->size = size, comm->name = id.internal;
  comm->file = ::shm_open(id.internal, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (::ftruncate(comm->file, static_cast<off_t>(comm->bytes())) != 0) return ncclSystemError;
  void* const shared = ::mmap(nullptr, comm->bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, comm->file, 0);
  if (shared == MAP_FAILED) return ncclSystemError;
  comm->shared = static_cast<std::byte*>(shared);
  comm->lock();
  // Nobody needs the name any more, and a rank that is killed could not remove it.
  if (++comm->head().arrivals == static_cast<std::uint64_t>(size)) ::shm_unlink(id.internal);
  *made = reinterpret_cast<ncclComm_t>(new std::shared_ptr<ncclComm>(comm));
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t given, ncclResult_t* error) {
  ncclComm& comm = **handle_of(given);
  const bool there = comm.have_arrived(1), busy = !there || (comm.leaves && !comm.all_leave());
  if (there && !comm.broken && !comm.all_leave()) comm.broken = comm.somebody_is_gone();
  *error = comm.broken ? ncclRemoteError : busy ? ncclInProgress : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void** data, std::size_t bytes) {
  const std::lock_guard lock(on_host::machine());
  if (cudaMalloc(data, bytes) != cudaSuccess) return ncclUnhandledCudaError;
  pieces_of_nccl()[*data] = 0;
  return ncclSuccess;
}
ncclResult_t ncclMemFree(void* data) {
  const std::lock_guard lock(on_host::machine());
  const auto found = pieces_of_nccl().find(data);
  if (found == pieces_of_nccl().end()) on_host::refuse("ncclMemFree is given memory that NCCL did not take");
  if (found->second != 0) on_host::refuse("memory is freed while a communicator has it registered");
  pieces_of_nccl().erase(found);
  return cudaFree(data) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclCommRegister(ncclComm_t given, void* data, std::size_t bytes, void** handle) {
  const std::lock_guard lock(on_host::machine());
  ncclComm& comm = **handle_of(given);
  if (!comm.have_arrived(1)) on_host::refuse("memory is registered before all ranks have joined");
  on_host::expect_reachable(data, bytes, "ncclCommRegister");
  if (!comm.registered.emplace(static_cast<std::byte*>(data), bytes).second)
    on_host::refuse("memory is registered twice with a communicator");
  if (const auto found = pieces_of_nccl().find(data); found != pieces_of_nccl().end()) ++found->second;
  *handle = data;
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(ncclComm_t given, void* handle) {
  const std::lock_guard lock(on_host::machine());
  if ((*handle_of(given))->under_way > 0)
    on_host::refuse("memory is deregistered while collectives are under way");
  if ((*handle_of(given))->registered.erase(static_cast<std::byte*>(handle)) != 1)
    on_host::refuse("memory is deregistered that was not registered");
  if (const auto found = pieces_of_nccl().find(handle); found != pieces_of_nccl().end()) --found->second;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t given) {
  ncclComm& comm = **handle_of(given);
  if (!comm.registered.empty()) on_host::refuse("a communicator ends, and memory is registered with it");
  comm.leaves = true;
  ++comm.head().leaving;
  return ncclInProgress;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  (*handle_of(comm))->given_up = true;
  give_back_registered(**handle_of(comm));
  wait_for_recordings(**handle_of(comm));
  delete handle_of(comm);
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  wait_for_recordings(**handle_of(comm));
  delete handle_of(comm);
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  const DType dtype = dtype_of(type);
  return collective(comm, {from, count * size_of(dtype)}, stream,
                    [=](const ncclComm& all) { sum_up(all, 0, to, count, dtype, op_of(op)); });
}
ncclResult_t ncclReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  const DType dtype = dtype_of(type);
  return collective(comm, {from, count * size_of(dtype)}, stream, [=](const ncclComm& all) {
    if (all.rank == root) sum_up(all, 0, to, count, dtype, op_of(op));
  });
}
ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  const std::size_t bytes = count * size_of(dtype_of(type));
  return collective(comm, {from, bytes}, stream,
                    [=](const ncclComm& all) { std::memcpy(to, all.place_of(root), bytes); });
}
ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  const DType dtype = dtype_of(type);
  const std::size_t bytes = count * size_of(dtype);
  const auto size = static_cast<std::size_t>((*handle_of(comm))->size);
  return collective(comm, {from, bytes * size}, stream, [=](const ncclComm& all) {
    sum_up(all, bytes * static_cast<std::size_t>(all.rank), to, count, dtype, op_of(op));
  });
}
ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  const std::size_t bytes = count * size_of(dtype_of(type));
  return collective(comm, {from, bytes}, stream, [=](const ncclComm& all) {
    for (int rank = 0; rank < all.size; ++rank)
      std::memcpy(static_cast<std::byte*>(to) + static_cast<std::size_t>(rank) * bytes, all.place_of(rank),
                  bytes);
  });
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
