#include "partitioner/ir/op_table.h"

#include <fmt/ranges.h>

#include "partitioner/ir/error.h"
#include "tests/cpp/catch.h"

using namespace fxfuser;
using namespace fxfuser::ir;

namespace {

const char* const kRows = R"({"rows": [
{"op":"add","targets":{"aten.add.Tensor":"self other alpha","aten.add.Scalar":"self other alpha","prims.add.default":"self other alpha=1"},"args":{"alpha":1},"numbers":"alpha","kind":"pointwise","dtypes":"any","expr":"{self}+{alpha}*{other}"},
{"op":"cast","targets":{"aten._to_copy.default":"self dtype !layout !device ! _ !memory_format"},"kind":"cast","check":"cast_pair same_device"},
{"op":"softmax","targets":{"aten._softmax.default":"self dim half_to_float"},"kind":"composite","via":"softmax","dtypes":"float","strides":"like_self"},
{"op":"sum","targets":{"aten.sum.default":"self dtype dims=null keepdim=false","aten.sum.dim_IntList":"self dims keepdim dtype"},"params":"self dims keepdim dtype","args":{"keepdim":false},"kind":"reduction","dtypes":"any","result":"bool_to_long","fold":"{a}+{b}","init":"0"}
]})";

OpTable load(const std::string& row) { return OpTable::from_json(R"({"rows":[)" + row + "]}", "test.json"); }

std::string message_of(const std::string& row) {
  try {
    load(row);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::Value);
    return error.what();
  }
  return "accepted";
}

std::string pointwise(const std::string& more) {
  return R"({"op":"f","targets":{"t.f":"self"},"kind":"pointwise",)" + more + "}";
}

std::string spell(const Expr& expr) {
  std::string text;
  for (const ExprPiece& piece : expr) {
    if (!text.empty()) text += ' ';
    text += piece.kind == ExprPiece::Kind::Hole ? "{" + piece.text + "}" : piece.text;
  }
  return text;
}

}  // namespace

TEST_CASE("rows load with their targets, params and defaults", "[op_table]") {
  const OpTable table = OpTable::from_json(kRows, "test.json");
  REQUIRE(table.rows().size() == 4);
  const OpRow& add = *table.find("add");
  CHECK(add.params == std::vector<std::string>{"self", "other", "alpha"});
  CHECK(add.tensor_params == std::vector<std::string>{"self", "other"});
  CHECK(add.strides == "iterator");
  CHECK(add.outputs == std::vector<std::string>{"out"});
  CHECK(spell(add.expr_cuda) == "{self} + {alpha} * {other}");
  const auto [row, form] = table.find_target("prims.add.default");
  REQUIRE(row == &add);
  CHECK(form->fixed.at("alpha") == Attr(1));
  CHECK(table.find_target("aten.add").first == nullptr);
  CHECK(table.find("nope") == nullptr);
}

TEST_CASE("explicit params keep their order and reductions get pre and post", "[op_table]") {
  const OpTable table = OpTable::from_json(kRows, "test.json");
  const OpRow& sum = *table.find("sum");
  CHECK(sum.params == std::vector<std::string>{"self", "dims", "keepdim", "dtype"});
  CHECK(spell(sum.pre) == "{self}");
  CHECK(spell(sum.post) == "{acc}");
  CHECK(sum.strides == "contiguous");
  CHECK(table.find_target("aten.sum.default").second->fixed.at("dims").is_none());
  CHECK(table.find_target("aten.sum.default").second->fixed.at("keepdim") == Attr(false));
}

TEST_CASE("ignored arguments that must be default are known by name and place", "[op_table]") {
  const OpTable table = OpTable::from_json(kRows, "test.json");
  const OpTarget& form = *table.find_target("aten._to_copy.default").second;
  CHECK(form.names == std::vector<std::string>{"self", "dtype", "", "", "", "", ""});
  CHECK(form.must_default == std::vector<std::string>{"layout", "device", "argument 4", "memory_format"});
  CHECK(form.must_default_at == std::vector<std::size_t>{2, 3, 4, 6});
  CHECK(table.find("cast")->checks == std::vector<std::string>{"cast_pair", "same_device"});
  CHECK(table.find("cast")->result == ResultRule::AttrDType);
}

TEST_CASE("bind sets row and form, and only the row of canonical targets", "[op_table]") {
  const OpTable table = OpTable::from_json(kRows, "test.json");
  Graph graph;
  for (const char* target : {"aten.sum.default", "fxf.add", "aten.mm.default"}) {
    Node node;
    node.target = target;
    graph.add_node(node, 1);
  }
  table.bind(graph);
  CHECK(graph.nodes[0].row == table.find("sum"));
  CHECK(graph.nodes[0].form == &table.find("sum")->targets[0]);
  CHECK(graph.nodes[1].row == table.find("add"));
  CHECK(graph.nodes[1].form == nullptr);
  CHECK(graph.nodes[2].row == nullptr);
}

TEST_CASE("arg finds a parameter through the form, what it fixes, and the row's default", "[op_table]") {
  const OpTable table = OpTable::from_json(kRows, "test.json");
  Graph graph;
  const ValueId x = graph.add_input("x", std::nullopt);
  Node node;
  node.target = "aten.sum.default";
  node.args = {ValueRef{x}, DType::Float64};
  graph.add_node(node, 1);
  node.target = "fxf.add";
  node.args = {ValueRef{x}, 2.5};
  graph.add_node(node, 1);
  table.bind(graph);
  CHECK(arg(graph.nodes[0], "self") == Attr(ValueRef{x}));
  CHECK(arg(graph.nodes[0], "dtype") == Attr(DType::Float64));
  CHECK(arg(graph.nodes[0], "keepdim") == Attr(false));
  CHECK(arg(graph.nodes[0], "dims").is_none());
  CHECK(arg(graph.nodes[1], "other") == Attr(2.5));
  CHECK(arg(graph.nodes[1], "alpha") == Attr(1));
  CHECK(arg(graph.nodes[1], "nothing").is_none());
}

TEST_CASE("a bad row says which row and key", "[op_table]") {
  const std::vector<std::pair<std::string, std::string>> cases{
      {pointwise(R"("exprs":"{self}")"), "test.json: row 'f', key 'exprs': unknown key"},
      {pointwise(R"("expr":"{x}")"), "row 'f.expr': unknown hole {x} in '{x}'; known: self"},
      {pointwise(R"j("expr":"system({self})")j"), "'system' is not in the vocabulary"},
      {pointwise(R"("expr":"{self}; {self}")"), "unexpected ';'"},
      {pointwise(R"j("expr":"exp({self},{self})")j"), "exp takes 1 argument, not 2"},
      {pointwise(R"j("expr":"pow({self})")j"), "pow takes 2 arguments, not 1"},
      {pointwise(R"("expr":"({self}")"), "expected ')'"},
      {pointwise(R"("expr":"{self} {self}")"), "unexpected 'self'"},
      {pointwise(R"("expr":"{self}+")"), "ends too soon"},
      {pointwise(R"("expr":"--{self}")"), "two signs in a row"},
      {pointwise(R"j("expr":"{self}?T(1)")j"), "expected ':'"},
      {pointwise(R"("expr":"{self}*1f")"), "bad number"},
      {pointwise(R"("expr":"")"), "empty expression"},
      {pointwise(R"j("expr":"T(1)")j"), "reads no tensor parameter"},
      {pointwise(R"("dtypes":"any")"), "key 'expr': is missing"},
      {pointwise(R"("expr":"{self}","dtypes":"reals")"), "key 'dtypes': unknown word 'reals'; known: float"},
      {pointwise(R"("expr":"{self}","result":"wide")"), "key 'result': unknown word 'wide'"},
      {pointwise(R"("expr":"{self}","strides":"odd")"), "key 'strides': unknown word 'odd'"},
      {pointwise(R"("expr":"{self}","cuda":"{self}")"), "key 'cuda': contradicts expr"},
      {pointwise(R"("expr":"{self}","via":"f")"), "key 'via': contradicts a kind other than composite"},
      {pointwise(R"("expr":"{self}","fold":"{a}")"), "key 'fold': contradicts"},
      {pointwise(R"("expr":"{self}","numbers":"eps")"), "key 'numbers': 'eps' is not a parameter"},
      {pointwise(R"("expr":"{self}","args":{"eps":1})"), "key 'args': 'eps' is not a parameter"},
      {pointwise(R"("expr":"{self}","writes":"mean")"), "key 'writes': 'mean' is not a parameter"},
      {pointwise(R"("expr":"{self}","cost":[1])"), "key 'cost': must be [slots, special]"},
      {pointwise(R"("expr":"{self}","params":"other")"), "key 'params': lacks 'self'"},
      {pointwise(R"("expr":"{self}","expr":"{self}")"), "key 'expr' is given twice in one object"},
      {pointwise(R"("expr":"{self}","metadata_only":1)"), "key 'metadata_only': must be true or false"},
      {pointwise(R"("expr":"{self}","result":"attr:dtype")"), "key 'result': attr:dtype without"},
      {R"({"op":"f","targets":{"t.f":"self self"},"kind":"pointwise","expr":"{self}"})", "'self' is given twice"},
      {R"({"op":"f","targets":{"t.f":"a=1 self"},"kind":"pointwise","expr":"{self}"})", "'self' after a fixed value"},
      {R"({"op":"f","targets":{"t.f":"self","t.g":"other"},"kind":"pointwise","expr":"{self}+{other}"})", "gives no value for 'other'"},
      {R"({"op":"f","targets":{"t.f":"self"},"kind":"magic"})", "key 'kind': unknown word 'magic'; known: pointwise"},
      {R"({"op":"f","targets":{"t.f":"self"}})", "key 'kind': is missing"},
      {R"({"op":"f","targets":{"t.f":"self"},"kind":"composite"})", "key 'via': is missing"},
      {R"({"op":"f","targets":{"t.f":"self"},"kind":"reduction","init":"0"})", "key 'fold': is missing"},
      {R"({"op":"f","targets":{"t.f":"self"},"kind":"reduction","fold":"{a}+{bi}","init":"0"})", "unknown hole {bi}"},
      {R"({"op":"f g","targets":{},"kind":"view"})", "key 'op': 'f g' is not a name"},
      {R"({"targets":{}})", "a row without 'op'"},
      {R"(7)", "a row must be an object"},
      {pointwise(R"("expr":"{self}")") + "," + pointwise(R"("expr":"{self}")"), "row 'f', key 'op': there is such a row already"},
      {pointwise(R"("expr":"{self}")") + R"(,{"op":"g","targets":{"t.f":"self"},"kind":"view"})", "'t.f' belongs to"},
      {pointwise(R"("expr":"{self}")") + ",", "test.json: not JSON"},
  };
  for (const auto& [row, part] : cases) {
    INFO(row);
    CHECK_THAT(message_of(row), ContainsSubstring(part));
  }
}

TEST_CASE("deep nesting is refused, not a crash", "[op_table]") {
  const std::string deep(100000, '(');
  CHECK_THAT(message_of(pointwise(R"("expr":")" + deep + R"({self}")")), ContainsSubstring("too deep nesting"));
}

TEST_CASE("rows added at run time append, and a bad text changes nothing", "[op_table]") {
  OpTable table = OpTable::from_json(kRows, "test.json");
  table.add_json(R"j({"op":"softsign","targets":{"mylib.softsign.default":"self"},"kind":"pointwise","dtypes":"float","expr":"{self}/(1+abs({self}))"})j", "user");
  CHECK(table.find("softsign") != nullptr);
  const std::string two = "[" + pointwise(R"("expr":"{self}")") + R"(,{"op":"add","targets":{},"kind":"view"}])";
  CHECK_THROWS_AS(table.add_json(two, "user"), Error);
  CHECK(table.find("f") == nullptr);
  CHECK(table.find_target("t.f").first == nullptr);
  CHECK(table.rows().size() == 5);
  table.add_json("[" + pointwise(R"("expr":"{self}")") + "]", "user");
  CHECK(table.find_target("t.f").first == table.find("f"));
}

TEST_CASE("values of defaults: numbers, lists, dtypes, infinities", "[op_table]") {
  const OpTable table = load(
      R"({"op":"f","targets":{"t.f":"self low=-inf dims=[0,1] mode=sum eps=1e-05"},"args":{"low":0,"self":"torch.int8"},"kind":"view"})");
  const auto& fixed = table.rows()[0]->targets[0].fixed;
  CHECK(fixed.at("low") == Attr(-std::numeric_limits<double>::infinity()));
  CHECK(fixed.at("dims") == Attr(AttrList{0, 1}));
  CHECK(fixed.at("mode") == Attr("sum"));
  CHECK(fixed.at("eps") == Attr(1e-5));
  CHECK(table.rows()[0]->defaults.at("self") == Attr(DType::Int8));
}

TEST_CASE("the embedded table loads", "[op_table]") {
  const OpTable table = OpTable::from_json(embedded_ops_json(), "configs/ops.json");
  for (const auto& row : table.rows()) CHECK(table.find(row->op) == row.get());
}

TEST_CASE("the vocabulary is sorted, so that lists of it can be compared", "[op_table]") {
  const auto& names = prelude_functions();
  CHECK(std::is_sorted(names.begin(), names.end()));
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
  CHECK(names.size() == 61);
}
