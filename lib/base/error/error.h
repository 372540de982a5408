// The one exception of the project, and the exit code that each kind of it leads to.
#pragma once
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace fleetrun {

// The values are the exit codes of fleetrun and its workers.
enum class ErrorKind : int {
#define EXIT_CODE(kind, code, restart, meaning, again) kind = (code),
#include "base/error/exit_codes.def"
#undef EXIT_CODE
};

// What went wrong, what was being done (innermost first), and what the user can do about it.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string message, std::string hint = "");

  ErrorKind kind() const { return kind_; }
  int exit_code() const { return static_cast<int>(kind_); }
  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }

  // The same error with one more "while ..." line.
  Error with(const std::string& activity) const;

  // "fleetrun: error: <message>\n  while <activity>\n  hint: <hint>\n", as main prints it.
  std::string describe(const std::string& program) const;

 private:
  ErrorKind kind_;
  std::string message_;
  std::string hint_;
  std::vector<std::string> activities_;
};

// Runs `work`; an Error that leaves it carries "while <activity>".
template <typename Work>
std::invoke_result_t<Work> with_context(const std::string& activity, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const Error& error) {
    throw error.with(activity);
  }
}

// "No such file or directory (errno 2)", without the shared buffer of strerror.
std::string describe_errno(int code);

// The Error for a failed system call on a file: missing, permission, create or io by errno.
Error file_error(int code, const std::string& doing, const std::string& path);

}  // namespace fleetrun
