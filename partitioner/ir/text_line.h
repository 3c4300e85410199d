#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "partitioner/ir/graph.h"

namespace fxfuser::ir {

/// A cursor over one line, with the line's number for errors. What does not fit throws a Value error that shows the place.
class Line {
 public:
  Line(std::string_view text, std::size_t number) : text_(text), number_(number) {}

  [[noreturn]] void fail(const std::string& what) const;

  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool done() {
    skip();
    return at_ == text_.size();
  }
  bool peek(std::string_view token) {
    skip();
    return text_.substr(at_).starts_with(token);
  }
  bool accept(std::string_view token);
  void expect(std::string_view token);
  /// A whole word, so that `scalars.f` is not taken for `scalar`.
  bool accept_word(std::string_view token);
  std::string name();
  std::string rest();

  /// An integer, or a double where it has a point, an exponent, or is inf or nan.
  Attr number();
  std::int64_t integer();
  double real() { return number().as_double(); }
  std::string quoted();
  Sizes sizes();

 private:
  template <typename T>
  T convert(std::string_view token) const;

  std::string_view text_;
  std::size_t number_;
  std::size_t at_ = 0;
};

}  // namespace fxfuser::ir
