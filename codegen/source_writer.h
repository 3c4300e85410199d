#pragma once
// Indented text for generated kernels.

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace fxfuser::codegen {

class SourceWriter {
 public:
  /// One line at the current depth.
  void line(std::string_view text);
  template <typename... Args>
  void linef(fmt::format_string<Args...> format, Args&&... args) {
    line(fmt::format(format, std::forward<Args>(args)...));
  }
  /// "text {" and one level deeper; close with end().
  void begin(std::string_view text);
  void end(std::string_view tail = "}");
  void blank() { text_ += '\n'; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int depth_ = 0;
};

}  // namespace fxfuser::codegen
