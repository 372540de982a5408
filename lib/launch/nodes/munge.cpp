#include "launch/nodes/munge.h"

#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include <fmt/format.h>

namespace fleetrun::launch {
namespace {

// From munge.h of libmunge 0.5.15; the values are part of its binary interface.
using Context = void*;
constexpr int kSuccess = 0, kReplayed = 17;  // EMUNGE_SUCCESS, EMUNGE_CRED_REPLAYED
constexpr int kCipherType = 0, kUidRestriction = 9;
constexpr int kAes128 = 4;  // the daemon's own choice may be not to encrypt
constexpr const char* kLibrary = "libmunge.so.2";

class Library {
 public:
  Library() : handle_(::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) return;
    find("munge_ctx_create", create);
    find("munge_ctx_destroy", destroy);
    find("munge_ctx_set", set);
    find("munge_ctx_strerror", describe);
    find("munge_encode", encode);
    find("munge_decode", decode);
  }
  ~Library() {
    if (handle_ != nullptr) ::dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  bool is_complete() const {
    return create != nullptr && destroy != nullptr && set != nullptr && describe != nullptr &&
           encode != nullptr && decode != nullptr;
  }

  Context (*create)() = nullptr;
  void (*destroy)(Context) = nullptr;
  int (*set)(Context, int, ...) = nullptr;
  const char* (*describe)(Context) = nullptr;
  int (*encode)(char**, Context, const void*, int) = nullptr;
  int (*decode)(const char*, Context, void**, int*, uid_t*, gid_t*) = nullptr;

 private:
  template <typename Function>
  void find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(::dlsym(handle_, name));
  }

  void* handle_;
};

using Memory = std::unique_ptr<void, decltype(&std::free)>;

// What `work` returns, with the library and a context.
template <typename Work>
MungeAnswer with_library(const Work& work) {
  const Library library;
  if (!library.is_complete()) return {.text = {}, .problem = fmt::format("there is no {}", kLibrary)};
  const std::unique_ptr<void, void (*)(Context)> context(library.create(), library.destroy);
  if (!context) return {.text = {}, .problem = "munge_ctx_create returned nothing"};
  return work(library, context.get());
}

MungeAnswer problem_of(const Library& library, Context context, int code) {
  const char* const words = library.describe(context);
  return {.text = {},
          .problem = words != nullptr ? std::string(words) : fmt::format("error {} of libmunge", code)};
}

}  // namespace

MungeAnswer make_credential(const std::string& secret) {
  return with_library([&](const Library& library, Context context) {
    int code = library.set(context, kCipherType, kAes128);
    if (code == kSuccess) code = library.set(context, kUidRestriction, ::geteuid());
    char* bytes = nullptr;
    if (code == kSuccess)
      code = library.encode(&bytes, context, secret.data(), static_cast<int>(secret.size()));
    const Memory held(bytes, &std::free);
    return code == kSuccess ? MungeAnswer{.text = bytes, .problem = {}} : problem_of(library, context, code);
  });
}

// That a credential was used before on this host says nothing against it: who gave it has to prove that it knows the secret.
MungeAnswer open_credential(const std::string& credential) {
  return with_library([&](const Library& library, Context context) {
    void* bytes = nullptr;
    int size = 0;
    uid_t user = 0;
    gid_t group = 0;
    const int code = library.decode(credential.c_str(), context, &bytes, &size, &user, &group);
    const Memory held(bytes, &std::free);
    if (code != kSuccess && code != kReplayed) return problem_of(library, context, code);
    if (user != ::geteuid() || bytes == nullptr)
      return MungeAnswer{.text = {},
                         .problem = fmt::format("user {} made the credential, wanted {}", user, ::geteuid())};
    return MungeAnswer{.text = std::string(static_cast<const char*>(bytes), static_cast<std::size_t>(size)),
                       .problem = {}};
  });
}

}  // namespace fleetrun::launch
