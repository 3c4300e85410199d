#include "partitioner/ir/text_line.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "partitioner/ir/error.h"

namespace fxfuser::ir {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '.';
}

}  // namespace

void Line::fail(const std::string& what) const {
  throw_error(ErrorKind::Value, fmt::format("line {}: {} at '{}'", number_, what, text_.substr(at_, 40)));
}

bool Line::accept(std::string_view token) {
  if (!peek(token)) return false;
  at_ += token.size();
  return true;
}

void Line::expect(std::string_view token) {
  if (!accept(token)) fail(fmt::format("expected '{}'", token));
}

bool Line::accept_word(std::string_view token) {
  if (!peek(token)) return false;
  const std::size_t end = at_ + token.size();
  if (end < text_.size() && is_name_char(text_[end])) return false;
  at_ = end;
  return true;
}

std::string Line::name() {
  skip();
  const std::size_t begin = at_;
  while (at_ < text_.size() && is_name_char(text_[at_])) ++at_;
  if (begin == at_) fail("expected a name");
  return std::string(text_.substr(begin, at_ - begin));
}

std::string Line::rest() {
  skip();
  std::string_view tail = text_.substr(at_);
  at_ = text_.size();
  while (!tail.empty() && tail.back() == ' ') tail.remove_suffix(1);
  return std::string(tail);
}

template <typename T>
T Line::convert(std::string_view token) const {
  T value{};
  const auto result = std::from_chars(token.data(), token.data() + token.size(), value);
  if (result.ec != std::errc() || result.ptr != token.data() + token.size()) fail(fmt::format("bad number '{}'", token));
  return value;
}

Attr Line::number() {
  skip();
  const std::size_t begin = at_;
  if (at_ < text_.size() && text_[at_] == '-') ++at_;
  if (accept_word("inf")) return text_[begin] == '-' ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  if (accept_word("nan")) return std::numeric_limits<double>::quiet_NaN();
  while (at_ < text_.size()) {
    const char c = text_[at_];
    const bool sign = (c == '+' || c == '-') && at_ > begin && text_[at_ - 1] == 'e';
    if (!is_digit(c) && c != '.' && c != 'e' && !sign) break;
    ++at_;
  }
  const std::string_view token = text_.substr(begin, at_ - begin);
  if (token.find_first_of(".e") != std::string_view::npos) return convert<double>(token);
  return convert<std::int64_t>(token);
}

std::string Line::quoted() {
  expect("\"");
  std::string out;
  while (true) {
    if (at_ == text_.size()) fail("a string is not closed");
    char c = text_[at_++];
    if (c == '"') return out;
    if (c != '\\') {
      out += c;
      continue;
    }
    if (at_ == text_.size()) fail("a string is not closed");
    c = text_[at_++];
    if (c == 'n') out += '\n';
    else if (c == 't') out += '\t';
    else if (c == 'r') out += '\r';
    else if (c == '"' || c == '\\') out += c;
    else if (c == 'x' && at_ + 2 <= text_.size()) {
      unsigned value = 0;
      const auto result = std::from_chars(text_.data() + at_, text_.data() + at_ + 2, value, 16);
      if (result.ec != std::errc() || result.ptr != text_.data() + at_ + 2) fail("bad escape");
      out += static_cast<char>(value);
      at_ += 2;
    } else fail("bad escape");
  }
}

Sizes Line::sizes() {
  Sizes sizes;
  expect("[");
  if (accept("]")) return sizes;
  do {
    sizes.push_back(integer());
  } while (accept(","));
  expect("]");
  return sizes;
}

std::int64_t Line::integer() {
  const Attr value = number();
  if (!std::holds_alternative<std::int64_t>(value.v)) fail("expected an integer");
  return std::get<std::int64_t>(value.v);
}

}  // namespace fxfuser::ir
