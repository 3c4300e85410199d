#include "codegen/expr_writer.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "partitioner/ir/error.h"

namespace fxfuser::codegen {
namespace {

bool is_float_register(DType dtype) { return ir::is_floating(dtype); }

std::string shortest(double value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value);
  std::string text(buffer, end.ptr);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string shortest(float value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value);
  std::string text(buffer, end.ptr);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string float_literal(double value, DType dtype) {
  const bool wide = dtype == DType::Float64;
  const std::string suffix = wide ? "_D" : "_F";
  if (std::isnan(value)) return "FXF_NAN" + suffix;
  // A number beyond float's range is that type's infinity, as a conversion would make it.
  if (std::isinf(value) || (!wide && std::isinf(static_cast<float>(value)))) return (std::signbit(value) ? "(-FXF_INF" : "(FXF_INF") + suffix + ")";
  const std::string text = wide ? shortest(value) : shortest(static_cast<float>(value)) + "f";
  return std::signbit(value) ? "(" + text + ")" : text;
}

std::string int_literal(std::int64_t value, DType dtype) {
  if (dtype == DType::Int64) {
    if (value == INT64_MIN) return "(-9223372036854775807LL - 1)";
    return value < 0 ? fmt::format("({}LL)", value) : fmt::format("{}LL", value);
  }
  return fmt::format("({}){}", register_type(dtype), value < 0 ? fmt::format("({})", value) : fmt::to_string(value));
}

std::string converted(const std::string& text, DType from, DType to) {
  const std::string type = register_type(to);
  if (register_type(from) == type) return text;
  if (to == DType::Bool) return "(" + text + " != 0)";
  // A conversion of a bool keeps g++ 12 from making vectors; a choice does not.
  if (from == DType::Bool && ir::is_floating(to)) return fmt::format("({} ? {} : {})", text, float_literal(1, to), float_literal(0, to));
  // A float that does not fit a small integer wraps, as in eager; straight conversion would be undefined.
  if (ir::is_floating(from) && to == DType::UInt8) return "(" + type + ")(long long)" + text;
  if (ir::is_floating(from) && (to == DType::Int8 || to == DType::Int16)) return "(" + type + ")(int)" + text;
  return "(" + type + ")" + text;
}

bool is_simple(const std::string& text) {
  return text.find_first_of(" +*/%<>=!&|^?:,") == std::string::npos && !text.empty() && text[0] != '-' && text[0] != '~';
}

std::string parenthesised(const std::string& text) { return is_simple(text) || (text.front() == '(' && text.back() == ')' && text.find(')') == text.size() - 1) ? text : "(" + text + ")"; }

const ir::Attr* attr_of(const Expr& expr, std::string_view name) {
  for (const auto& [key, value] : expr.attrs) {
    if (key == name) return &value;
  }
  return nullptr;
}

using Hole = std::function<std::string(const std::string&)>;

/// An operator, T, inf, nan, or a prelude function's bare name.
std::string token_text(const std::string& token, DType compute) {
  if (token == "T") return "(" + register_type(compute) + ")";
  if (token == "inf") return float_literal(INFINITY, compute);
  if (token == "nan") return float_literal(NAN, compute);
  if (std::isalpha(static_cast<unsigned char>(token[0])) != 0) return "fxf_" + token;
  if (token == ",") return ", ";
  if (token == "?" || token == ":" || token == "+" || token == "*" || token == "/" || token == "<" || token == ">" || token.size() == 2) return " " + token + " ";
  return token;
}

constexpr std::string_view kRandomBits = "random_bits";

/// The compiled row expression with its holes filled, numbers printed in the compute type. `kept_words` is what random_bits gets
/// before its own arguments.
std::string fill(const ir::Expr& pieces, DType compute, const Hole& hole, const std::string& kept_words = "") {
  std::string text;
  bool opens = false;  // the parenthesis of random_bits is next
  for (const ir::ExprPiece& piece : pieces) {
    if (opens) {
      text += "(" + kept_words + ", ";
      opens = false;
      continue;
    }
    opens = piece.kind == ir::ExprPiece::Kind::Text && piece.text == kRandomBits && !kept_words.empty();
    switch (piece.kind) {
      case ir::ExprPiece::Kind::Hole: text += hole(piece.text); break;
      case ir::ExprPiece::Kind::Text: text += token_text(piece.text, compute); break;
      case ir::ExprPiece::Kind::Function: text += piece.text; break;
      case ir::ExprPiece::Kind::Number:
        if (is_float_register(compute)) {
          text += float_literal(std::stod(piece.text), compute);
        } else if (compute == DType::Bool) {
          text += piece.text == "0" ? "false" : "true";
        } else {
          text += int_literal(std::stoll(piece.text), compute);
        }
        break;
    }
  }
  return text;
}

std::string rounded(const std::string& text, DType dtype) {
  switch (dtype) {
    case DType::Float16: return "fxf_round_half(" + text + ")";
    case DType::BFloat16: return "fxf_round_bfloat16(" + text + ")";
    case DType::Float8E4M3: return "fxf_round_float8_e4m3(" + text + ")";
    case DType::Float8E5M2: return "fxf_round_float8_e5m2(" + text + ")";
    default: return text;
  }
}

ir::Attr rounded_as(const ir::Attr& number, DType dtype) {
  return ir::is_reduced_float(dtype) ? ir::Attr(ir::rounded_number(number.as_double(), dtype)) : number;
}

std::string compute_text(const Fusion& fusion, const Expr& expr, Target target, const ExprNames& names) {
  const bool narrow = names.narrow && !expr.row->expr_narrow.empty() && register_type(expr.compute) == "float";
  const ir::Expr& pieces = target == Target::Host ? expr.row->expr_host : narrow ? expr.row->expr_narrow : expr.row->expr_cuda;
  FXF_ASSERT(!pieces.empty(), "{} has no expression for this target", expr.row->op);
  const std::string text = fill(pieces, expr.compute, [&](const std::string& param) {
    for (std::size_t i = 0; i < expr.row->tensor_params.size(); ++i) {
      if (expr.row->tensor_params[i] != param) continue;
      const std::uint32_t operand = expr.operands.at(i);
      return parenthesised(converted(names.value(operand), fusion.body[operand].dtype, expr.compute));
    }
    const ir::Attr* number = attr_of(expr, param);
    FXF_ASSERT(number != nullptr, "{} has no number for {}", expr.row->op, param);
    const auto& rounded = target == Target::Host ? expr.row->rounded.host : expr.row->rounded.cuda;
    if (std::find(rounded.begin(), rounded.end(), param) == rounded.end()) return literal(*number, expr.compute);
    return literal(rounded_as(*number, expr.compute), expr.compute);
  }, names.kept_words);
  // The C type of an integer expression is at least int: the register type wraps it.
  const std::string type = register_type(expr.dtype);
  if (expr.dtype == DType::Bool) return text;
  if (!is_float_register(expr.dtype) || register_type(expr.compute) != type) return "(" + type + ")(" + text + ")";
  return text;
}

}  // namespace

std::string register_type(DType dtype) {
  switch (dtype) {
    case DType::Bool: return "bool";
    case DType::UInt8: return "unsigned char";
    case DType::Int8: return "signed char";
    case DType::Int16: return "short";
    case DType::Int32: return "int";
    case DType::Int64: return "long long";
    case DType::Float64: return "double";
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float8E4M3:
    case DType::Float8E5M2:
    case DType::Float32: return "float";
    default: break;
  }
  throw_error(ErrorKind::Internal, fmt::format("{} has no register type", ir::name(dtype)));
}

std::string storage_type(DType dtype) {
  switch (dtype) {
    case DType::Float16: return "fxf_half";
    case DType::BFloat16: return "fxf_bfloat16";
    case DType::Float8E4M3: return "fxf_float8_e4m3";
    case DType::Float8E5M2: return "fxf_float8_e5m2";
    default: return register_type(dtype);
  }
}

std::string literal(const ir::Attr& number, DType dtype) {
  if (is_float_register(dtype)) return float_literal(number.as_double(), dtype);
  if (dtype == DType::Bool) return number.as_double() != 0 ? "true" : "false";
  if (const auto* real = std::get_if<double>(&number.v)) return int_literal(static_cast<std::int64_t>(*real), dtype);
  return int_literal(number.as_int(), dtype);
}

bool is_random(const Expr& expr) {
  if (expr.kind != ExprKind::Compute) return false;
  const auto draws = [](const ir::ExprPiece& piece) { return piece.kind == ir::ExprPiece::Kind::Text && piece.text == kRandomBits; };
  return std::any_of(expr.row->expr_cuda.begin(), expr.row->expr_cuda.end(), draws);
}

std::string comment_of(const Expr& expr) { return expr.row == nullptr ? "" : "  // " + expr.row->op; }

std::string expression_text(const Fusion& fusion, std::uint32_t id, Target target, const ExprNames& names) {
  const Expr& expr = fusion.body[id];
  switch (expr.kind) {
    case ExprKind::Number: {
      const std::string text = literal(rounded_as(expr.number, expr.dtype), expr.dtype);
      return ir::itemsize(expr.dtype) == 1 ? rounded(text, expr.dtype) : text;
    }
    case ExprKind::Index: return converted("(long long)(" + names.affine(expr.form) + ")", DType::Int64, expr.dtype);
    case ExprKind::Cast: {
      const std::string text = converted(parenthesised(names.value(expr.operands[0])), fusion.body[expr.operands[0]].dtype, expr.dtype);
      return expr.rounds || fusion.eager_rounding ? rounded(text, expr.dtype) : text;
    }
    case ExprKind::Select: {
      std::string condition;
      for (const Bound& bound : expr.bounds) condition += (condition.empty() ? "" : " && ") + names.bound(bound);
      const auto operand = [&](std::size_t i) { return converted(parenthesised(names.value(expr.operands[i])), fusion.body[expr.operands[i]].dtype, expr.dtype); };
      return condition + " ? " + operand(0) + " : " + operand(1);
    }
    case ExprKind::Compute: {
      const std::string text = compute_text(fusion, expr, target, names);
      return fusion.eager_rounding && ir::is_reduced_float(expr.dtype) ? rounded(text, expr.dtype) : text;
    }
    case ExprKind::Load:
    case ExprKind::Scalar:
    case ExprKind::Reduce: break;
  }
  throw_error(ErrorKind::Internal, "loads, scalars and reductions are the emitter's");
}

DType accumulator_dtype(const Expr& reduce) {
  return ir::compute_dtype(reduce.compute);
}

bool is_float_sum(const Expr& reduce) {
  const ir::Expr& fold = reduce.row->fold;
  return ir::is_floating(accumulator_dtype(reduce)) && fold.size() == 3 && fold[0].kind == ir::ExprPiece::Kind::Hole && fold[1].text == "+" && fold[2].kind == ir::ExprPiece::Kind::Hole;
}

int chain_bytes(const Expr& reduce, bool compensated) {
  if (reduce.row->arg_state) return 16;
  const int bytes = static_cast<int>(ir::itemsize(accumulator_dtype(reduce)));
  return compensated && is_float_sum(reduce) ? 2 * bytes : std::max(bytes, 8);
}

std::string fold_text(const Expr& reduce, Target, const std::string& a, const std::string& b) {
  return fill(reduce.row->fold, accumulator_dtype(reduce), [&](const std::string& name) { return name == "a" ? a : b; });
}

std::string arg_fold_text(const Expr& reduce, const std::string& a, const std::string& b, const std::string& ai, const std::string& bi) {
  return fill(reduce.row->fold, accumulator_dtype(reduce), [&](const std::string& name) { return name == "a" ? a : name == "b" ? b : name == "ai" ? ai : bi; });
}

std::string init_text(const Expr& reduce) {
  const DType dtype = accumulator_dtype(reduce);
  const std::string text = fill(reduce.row->init, dtype, [](const std::string& name) -> std::string { throw_error(ErrorKind::Internal, "init has a hole " + name); });
  // The infinities of a boolean are its two values.
  if (dtype == DType::Bool && text.find("INF") != std::string::npos) return text.find('-') == std::string::npos ? "true" : "false";
  return text;
}

std::string pre_text(const Expr& reduce, Target, const std::string& self) {
  if (reduce.row->pre.empty()) return self;
  return fill(reduce.row->pre, accumulator_dtype(reduce), [&](const std::string& name) {
    if (name == "self") return parenthesised(self);
    const ir::Attr* number = attr_of(reduce, name);
    FXF_ASSERT(number != nullptr, "{} has no number for {}", reduce.row->op, name);
    return literal(*number, accumulator_dtype(reduce));
  });
}

std::string post_text(const Expr& reduce, Target, const std::string& acc, const std::string& count) {
  if (reduce.row->post.empty()) return acc;
  const DType dtype = accumulator_dtype(reduce);
  return fill(reduce.row->post, dtype, [&](const std::string& name) {
    if (name == "acc") return parenthesised(acc);
    if (name == "n") return "(" + register_type(dtype) + ")" + parenthesised(count);
    const ir::Attr* number = attr_of(reduce, name);
    FXF_ASSERT(number != nullptr, "{} has no number for {}", reduce.row->op, name);
    return literal(*number, dtype);
  });
}

}  // namespace fxfuser::codegen
