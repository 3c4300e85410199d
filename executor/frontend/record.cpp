#include "executor/frontend/record.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "executor/frontend/replay.h"
#include "partitioner/ir/error.h"

namespace fxfuser::frontend {
namespace {

/// Appends values so that different lists never give the same bytes: every list and text carries its length.
class Encoder {
 public:
  explicit Encoder(std::string& out) : out_(out) {}

  void word(std::uint64_t value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out_.append(bytes, sizeof value);
  }
  void text(const std::string& value) {
    word(value.size());
    out_ += value;
  }
  void number(double value) { word(std::bit_cast<std::uint64_t>(std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value)); }
  void sizes(const ir::Sizes& list) {
    word(list.size());
    for (std::int64_t size : list) word(static_cast<std::uint64_t>(size));
  }
  void dtype(const std::optional<ir::DType>& value) { out_ += static_cast<char>(value ? static_cast<int>(*value) : -1); }

  void attr(const ir::Attr& value) {
    out_ += static_cast<char>(value.v.index());
    std::visit(*this, value.v);
  }
  void operator()(std::monostate) const {}
  void operator()(bool value) { out_ += value ? '1' : '0'; }
  void operator()(std::int64_t value) { word(static_cast<std::uint64_t>(value)); }
  void operator()(double value) { number(value); }
  void operator()(const std::complex<double>& value) { number(value.real()), number(value.imag()); }
  void operator()(const std::string& value) { text(value); }
  void operator()(ir::DType value) { dtype(value); }
  void operator()(const ir::Device& value) { word(static_cast<std::uint64_t>(value.kind) << 32 | static_cast<std::uint16_t>(value.index)); }
  void operator()(ir::Layout value) { word(static_cast<std::uint64_t>(value)); }
  void operator()(ir::MemoryFormat value) { word(static_cast<std::uint64_t>(value)); }
  void operator()(ir::ValueRef value) { word(value.id); }
  void operator()(const ir::Opaque& value) { throw_error(ErrorKind::Type, fmt::format("a definition can't hold a {}", value.text)); }
  void operator()(const ir::AttrList& list) {
    word(list.size());
    for (const ir::Attr& item : list) attr(item);
  }

  void operator()(const TensorRecord& record) {
    sizes(record.sizes);
    out_.append(reinterpret_cast<const char*>(record.contiguity.data()), record.contiguity.size());
    dtype(record.dtype);
    out_ += static_cast<char>((record.is_cpu ? 1 : 0) | (record.static_sizes ? 2 : 0));
    sizes(record.stride_order);
  }
  void operator()(const ScalarRecord& record) { dtype(record.dtype); }
  void operator()(const ConstantRecord& record) {
    attr(record.value);
    dtype(record.dtype);
  }
  void operator()(const OpRecord& record) {
    text(record.op);
    attr(record.args);
  }
  void operator()(const OutputRecord& record) {
    word(record.value);
    word(record.alias);
    sizes(record.stride_order);
  }

 private:
  std::string& out_;
};

}  // namespace

std::vector<Facts> facts_of(const Record& record) {
  if (const auto* tensor = std::get_if<TensorRecord>(&record)) return {{ir::ValueKind::Tensor, static_cast<std::int64_t>(tensor->sizes.size()), tensor->dtype}};
  if (const auto* scalar = std::get_if<ScalarRecord>(&record)) return {{ir::ValueKind::Scalar, 0, scalar->dtype}};
  if (const auto* constant = std::get_if<ConstantRecord>(&record)) return {{constant->value.is_none() ? ir::ValueKind::Other : ir::ValueKind::Scalar, 0, constant->dtype}};
  if (const auto* op = std::get_if<OpRecord>(&record)) return op->outputs;
  return {};
}

std::string key_of(const std::vector<Record>& records) {
  std::string out;
  Encoder encoder(out);
  for (const Record& record : records) {
    out += static_cast<char>(record.index());
    std::visit(encoder, record);
  }
  return out;
}

bool is_same(const ir::Attr& a, const ir::Attr& b) {
  std::string left, right;
  Encoder(left).attr(a);
  Encoder(right).attr(b);
  return left == right;
}

void TensorRecord::operator()(Replayer& replayer) const { replayer.tensor(*this); }
void ScalarRecord::operator()(Replayer& replayer) const { replayer.scalar(); }
void ConstantRecord::operator()(Replayer& replayer) const { replayer.constant(value); }
void OpRecord::operator()(Replayer& replayer) const { replayer.op(*this); }
void OutputRecord::operator()(Replayer& replayer) const { replayer.output(*this); }

}  // namespace fxfuser::frontend
