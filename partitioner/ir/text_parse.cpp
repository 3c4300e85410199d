#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_map>

#include "partitioner/ir/error.h"
#include "partitioner/ir/op_table.h"
#include "partitioner/ir/text.h"
#include "partitioner/ir/text_line.h"
#include "partitioner/ir/text_words.h"

namespace fxfuser::ir {
namespace {

constexpr int kMaxDepth = 200;

struct Typed {
  std::string name;
  ValueKind kind = ValueKind::Tensor;
  std::optional<TensorMeta> meta;
};

class Parser {
 public:
  Parser(std::string_view text, const OpTable& table) : text_(text), table_(table) {}

  Graph run() {
    std::size_t number = 0;
    for (std::size_t at = 0; at < text_.size();) {
      const std::size_t end = std::min(text_.find('\n', at), text_.size());
      Line line(text_.substr(at, end - at), ++number);
      at = end + 1;
      if (!line.done() && !line.peek("#")) statement(line);
    }
    FXF_CHECK(returned_, Value, "line {}: the graph ends without 'return'", number);
    verify(graph_);
    return std::move(graph_);
  }

 private:
  void statement(Line& line) {
    if (!started_) {
      if (!line.accept_word("graph")) line.fail("expected 'graph'");
      graph_.name = line.rest();
      started_ = true;
    } else if (line.accept_word("return")) {
      if (returned_) line.fail("a second 'return'");
      returned_ = true;
      if (!line.done() && !line.peek("#")) graph_.outputs = arguments(line, "");
      if (!line.peek("#") && !line.done()) line.fail("unexpected text");
    } else if (line.accept_word("write")) {
      const ValueId target = value(line);
      line.expect("<-");
      graph_.write_backs.push_back({target, value(line)});
    } else {
      if (returned_) line.fail("a node after 'return'");
      definition(line);
    }
  }

  void definition(Line& line) {
    std::vector<Typed> outputs;
    while (line.peek("%")) {
      outputs.push_back(typed(line));
      if (!line.accept(",")) break;
    }
    line.expect("=");
    if (line.accept_word("input")) return source(line, outputs, [&](const Typed& t) { return graph_.add_input(t.name, t.meta, t.kind); });
    if (line.accept_word("constant")) {
      const std::string path = line.quoted();
      return source(line, outputs, [&](const Typed& t) {
        const ValueId id = graph_.add_constant(path, t.meta);
        graph_.values[id].name = t.name;
        graph_.values[id].kind = t.kind;
        return id;
      });
    }
    node(line, outputs);
  }

  template <typename Add>
  void source(Line& line, const std::vector<Typed>& outputs, Add&& add) {
    if (outputs.size() != 1) line.fail("an input or constant is one value");
    define(line, outputs[0].name, add(outputs[0]));
    if (!line.done() && !line.peek("#")) line.fail("unexpected text");
  }

  void define(Line& line, const std::string& name, ValueId id) {
    if (!ids_.emplace(name, id).second) line.fail(fmt::format("%{} is defined twice", name));
  }

  void node(Line& line, const std::vector<Typed>& outputs) {
    Node node;
    if (line.accept_word("scalar")) node.kind = NodeKind::Scalar;
    else if (line.accept_word("callable")) node.kind = NodeKind::Callable;
    node.target = line.peek("\"") ? line.quoted() : line.name();
    line.expect("(");
    node.args = arguments(line, ")");
    std::vector<std::string> names;
    for (const Typed& output : outputs) names.push_back(output.name);
    node.name = implied_node_name(names);
    extras(line, node);
    if (line.accept("#")) node.where = line.rest();
    if (!line.done()) line.fail("unexpected text");
    node.origin = static_cast<std::uint32_t>(graph_.nodes.size());
    bind(line, node);
    const NodeId id = graph_.add_node(std::move(node), outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const ValueId out = graph_.nodes[id].outputs[i];
      graph_.values[out].name = outputs[i].name;
      graph_.values[out].kind = outputs[i].kind;
      graph_.values[out].meta = outputs[i].meta;
      define(line, outputs[i].name, out);
    }
  }

  void bind(Line& line, Node& node) const {
    if (node.kind != NodeKind::Op) return;
    if (!node.target.starts_with("fxf.")) {
      std::tie(node.row, node.form) = table_.find_target(node.target);
      return;
    }
    node.row = table_.find(std::string_view(node.target).substr(4));
    if (node.row == nullptr) line.fail(fmt::format("{} is canonical, but no row has that name", node.target));
  }

  static void extras(Line& line, Node& node) {
    if (!line.accept("{")) return;
    do {
      if (line.accept("name=")) {
        node.name = line.peek("\"") ? line.quoted() : line.name();
      } else if (line.accept("after=")) {
        for (const std::int64_t id : line.sizes()) {
          if (id < 0 || id >= static_cast<std::int64_t>(kNoNode)) line.fail("not a node number");
          node.after.push_back(static_cast<NodeId>(id));
        }
      } else {
        line.fail("expected name= or after=");
      }
    } while (line.accept(","));
    line.expect("}");
  }

  static Typed typed(Line& line) {
    Typed typed;
    line.expect("%");
    typed.name = line.name();
    line.expect(":");
    if (line.accept("?")) return typed;
    if (line.accept_word("scalar")) {
      typed.kind = ValueKind::Scalar;
    } else if (line.accept_word("other") && !line.peek("[")) {
      typed.kind = ValueKind::Other;
    } else {
      typed.meta = meta(line);
    }
    return typed;
  }

  static TensorMeta meta(Line& line) {
    DType dtype = DType::Other;
    if (!line.peek("[")) {  // `other[...]`: the word was read already
      const auto parsed = parse_dtype(line.name());
      if (!parsed) line.fail("unknown dtype");
      dtype = *parsed;
    }
    const Sizes sizes = line.sizes();
    line.expect("@");
    TensorMeta meta = contiguous(dtype, device(line), sizes);
    if (line.accept("strides=")) meta.strides = line.sizes();
    if (meta.strides.size() != sizes.size()) line.fail("strides and sizes differ in number");
    return meta;
  }

  static Device device(Line& line) {
    Device device;
    const std::string kind = line.name();
    if (kind == "cpu") device.kind = DeviceKind::Cpu;
    else if (kind == "cuda") device.kind = DeviceKind::Cuda;
    else if (kind == "meta") device.kind = DeviceKind::Meta;
    else if (kind == "other") device.kind = DeviceKind::Other;
    else line.fail("unknown device");
    if (line.accept(":")) {
      const std::int64_t index = line.integer();
      if (index < 0 || index > 127) line.fail("bad device index");
      device.index = static_cast<std::int16_t>(index);
    }
    return device;
  }

  ValueId value(Line& line) {
    line.expect("%");
    const std::string name = line.name();
    const auto it = ids_.find(name);
    if (it == ids_.end()) line.fail(fmt::format("%{} is not defined", name));
    return it->second;
  }

  /// Arguments up to `close` (which is consumed; empty: to the end of the line).
  std::vector<Attr> arguments(Line& line, std::string_view close, int depth = 0) {
    std::vector<Attr> args;
    if (!close.empty() && line.accept(close)) return args;
    do {
      args.push_back(argument(line, depth));
    } while (line.accept(","));
    if (!close.empty()) line.expect(close);
    return args;
  }

  Attr argument(Line& line, int depth) {
    if (depth > kMaxDepth) line.fail("too deep nesting");
    if (line.peek("%")) return ValueRef{value(line)};
    if (line.peek("\"")) return line.quoted();
    if (line.accept("@")) return device(line);
    if (line.accept("[")) return AttrList(arguments(line, "]", depth + 1));
    for (const char* c = "-0123456789"; *c != '\0'; ++c) {
      if (line.peek(std::string_view(c, 1))) return line.number();
    }
    return word(line);
  }

  Attr word(Line& line) {
    if (line.accept_word("inf")) return std::numeric_limits<double>::infinity();
    if (line.accept_word("nan")) return std::numeric_limits<double>::quiet_NaN();
    const std::string name = line.name();
    if (name == "None") return {};
    if (name == "True") return true;
    if (name == "False") return false;
    if (name == "complex") {
      line.expect("(");
      const double re = line.real();
      line.expect(",");
      const double im = line.real();
      line.expect(")");
      return std::complex<double>(re, im);
    }
    if (name == "opaque") {
      line.expect("(");
      Opaque opaque{nullptr, line.quoted()};
      line.expect(")");
      return opaque;
    }
    if (const auto it = std::find(kLayoutWords.begin(), kLayoutWords.end(), name); it != kLayoutWords.end()) {
      return static_cast<Layout>(it - kLayoutWords.begin());
    }
    if (const auto it = std::find(kMemoryFormatWords.begin(), kMemoryFormatWords.end(), name); it != kMemoryFormatWords.end()) {
      return static_cast<MemoryFormat>(it - kMemoryFormatWords.begin());
    }
    if (const auto dtype = parse_dtype(name)) return *dtype;
    line.fail(fmt::format("unknown word '{}'", name));
  }

  std::string_view text_;
  const OpTable& table_;
  Graph graph_;
  std::unordered_map<std::string, ValueId> ids_;
  bool started_ = false;
  bool returned_ = false;
};

}  // namespace

Graph parse_graph(std::string_view text, const OpTable& table) { return Parser(text, table).run(); }

}  // namespace fxfuser::ir
