#include "partitioner/ir/text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_set>

#include "partitioner/ir/error.h"
#include "partitioner/ir/text_words.h"

namespace fxfuser::ir {
namespace {

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '\r': out += "\\r"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        else out += c;
    }
  }
  return out + '"';
}

/// Shortest text that reads back as the same double, never mistaken for an integer.
std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), number);
  std::string text(buffer, result.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

using NameOf = std::string (*)(ValueId, const void*);

struct AttrPrinter {
  NameOf name_of;
  const void* context;

  std::string operator()(std::monostate) const { return "None"; }
  std::string operator()(bool value) const { return value ? "True" : "False"; }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return number_text(value); }
  std::string operator()(const std::complex<double>& value) const {
    return fmt::format("complex({}, {})", number_text(value.real()), number_text(value.imag()));
  }
  std::string operator()(const std::string& value) const { return quoted(value); }
  std::string operator()(DType value) const { return std::string(name(value)); }
  std::string operator()(const Device& value) const { return "@" + to_string(value); }
  std::string operator()(Layout value) const { return std::string(kLayoutWords[static_cast<std::size_t>(value)]); }
  std::string operator()(MemoryFormat value) const {
    return std::string(kMemoryFormatWords[static_cast<std::size_t>(value)]);
  }
  std::string operator()(const ValueRef& value) const { return "%" + name_of(value.id, context); }
  std::string operator()(const Opaque& value) const { return fmt::format("opaque({})", quoted(value.text)); }
  std::string operator()(const AttrList& value) const { return "[" + join(value) + "]"; }

  std::string join(const std::vector<Attr>& attrs) const {
    std::string text;
    for (const Attr& attr : attrs) {
      if (!text.empty()) text += ", ";
      text += std::visit(*this, attr.v);
    }
    return text;
  }
};

/// One name a value: its own where it can be, made unique by a suffix where two values share one.
std::vector<std::string> unique_names(const Graph& graph) {
  std::vector<std::string> names(graph.values.size());
  std::unordered_set<std::string> taken;
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    std::string base = graph.values[id].name;
    for (char& c : base) {
      if (!is_name_char(c)) c = '_';
    }
    if (base.empty()) base = fmt::format("v{}", id);
    std::string chosen = base;
    for (int k = 1; !taken.insert(chosen).second; ++k) chosen = fmt::format("{}_{}", base, k);
    names[id] = std::move(chosen);
  }
  return names;
}

class GraphPrinter {
 public:
  explicit GraphPrinter(const Graph& graph) : graph_(graph), names_(unique_names(graph)) {}

  std::string run() {
    text_ = graph_.name.empty() ? "graph\n" : fmt::format("graph {}\n", one_line(graph_.name));
    for (const ValueId id : graph_.inputs) text_ += fmt::format("{} = input\n", typed(id));
    for (const Constant& constant : graph_.constants) {
      text_ += fmt::format("{} = constant {}\n", typed(constant.value), quoted(constant.path));
    }
    for (const Node& node : graph_.nodes) line(node);
    text_ += graph_.outputs.empty() ? "return\n" : fmt::format("return {}\n", attrs().join(graph_.outputs));
    for (const WriteBack& write : graph_.write_backs) {
      text_ += fmt::format("write %{} <- %{}\n", names_[write.target], names_[write.source]);
    }
    return std::move(text_);
  }

 private:
  AttrPrinter attrs() const {
    return {[](ValueId id, const void* names) { return (*static_cast<const std::vector<std::string>*>(names))[id]; }, &names_};
  }

  static std::string one_line(std::string text) {
    for (char& c : text) {
      if (c == '\n' || c == '\r') c = ' ';
    }
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin == std::string::npos) return "";
    return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
  }

  std::string typed(ValueId id) const {
    const Value& value = graph_.values[id];
    std::string type = "?";
    if (value.kind == ValueKind::Scalar) type = "scalar";
    else if (value.kind == ValueKind::Other) type = "other";
    else if (value.meta) type = to_string(*value.meta);
    return fmt::format("%{}: {}", names_[id], type);
  }

  void line(const Node& node) {
    for (std::size_t i = 0; i < node.outputs.size(); ++i) text_ += (i == 0 ? "" : ", ") + typed(node.outputs[i]);
    text_ += node.outputs.empty() ? "= " : " = ";
    if (node.kind == NodeKind::Scalar) text_ += "scalar ";
    if (node.kind == NodeKind::Callable) text_ += "callable ";
    const bool plain = std::all_of(node.target.begin(), node.target.end(), is_name_char) && !node.target.empty();
    text_ += fmt::format("{}({}){}", plain ? node.target : quoted(node.target), attrs().join(node.args), extras(node));
    if (const std::string where = one_line(node.where); !where.empty()) text_ += "  # " + where;
    text_ += '\n';
  }

  std::string extras(const Node& node) const {
    std::vector<std::string> outputs;
    for (const ValueId id : node.outputs) outputs.push_back(names_[id]);
    std::string text;
    if (node.name != implied_node_name(outputs)) {
      const bool plain = std::all_of(node.name.begin(), node.name.end(), is_name_char) && !node.name.empty();
      text = "name=" + (plain ? node.name : quoted(node.name));
    }
    if (!node.after.empty()) text += fmt::format("{}after=[{}]", text.empty() ? "" : ", ", fmt::join(node.after, ", "));
    return text.empty() ? text : " {" + text + "}";
  }

  const Graph& graph_;
  std::vector<std::string> names_;
  std::string text_;
};

}  // namespace

std::string implied_node_name(const std::vector<std::string>& outputs) {
  if (outputs.empty()) return "";
  if (outputs.size() == 1) return outputs.front();
  const std::string base = outputs.front().ends_with(".0") ? outputs.front().substr(0, outputs.front().size() - 2) : "";
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (base.empty() || outputs[i] != fmt::format("{}.{}", base, i)) return outputs.front();
  }
  return base;
}

std::string print(const Graph& graph) { return GraphPrinter(graph).run(); }

std::string print(const Attr& attr, const Graph* graph) {
  const NameOf name_of = [](ValueId id, const void* context) {
    const auto* owner = static_cast<const Graph*>(context);
    if (owner == nullptr || id >= owner->values.size() || owner->values[id].name.empty()) return fmt::format("{}", id);
    return owner->values[id].name;
  };
  return std::visit(AttrPrinter{name_of, graph}, attr.v);
}

}  // namespace fxfuser::ir
