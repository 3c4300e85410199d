#pragma once
// Errors that cross the border of the library. FXF_CHECK blames the caller (a bad graph, row, option), FXF_ASSERT blames
// us. "Not supported" is never an error inside: it is a partitioner::Reason. Bindings turn Error::kind into the Python type.

#include <fmt/format.h>

#include <source_location>
#include <stdexcept>
#include <string>
#include <utility>

#ifndef FXFUSER_API
#define FXFUSER_API __attribute__((visibility("default")))
#endif

namespace fxfuser {

enum class ErrorKind { Runtime, Value, Type, NotImplemented, Internal };

/// What the library throws. `kind` chooses the Python exception (RuntimeError, ValueError, TypeError, NotImplementedError).
class FXFUSER_API Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

[[noreturn]] void throw_error(ErrorKind kind, std::string message);
[[noreturn]] void throw_internal(const char* condition, std::string message, std::source_location where);

}  // namespace fxfuser

/// The caller's fault: throws fxfuser::Error of the given kind with a formatted message.
#define FXF_CHECK(condition, kind, ...)                                            \
  do {                                                                             \
    if (!(condition)) [[unlikely]]                                                 \
      ::fxfuser::throw_error(::fxfuser::ErrorKind::kind, fmt::format(__VA_ARGS__)); \
  } while (false)

/// Our own fault: "internal, please report", with the place.
#define FXF_ASSERT(condition, ...)                                                             \
  do {                                                                                         \
    if (!(condition)) [[unlikely]]                                                             \
      ::fxfuser::throw_internal(#condition, fmt::format(__VA_ARGS__), std::source_location::current()); \
  } while (false)
