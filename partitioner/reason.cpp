#include "partitioner/reason.h"

namespace fxfuser::partitioner {

std::string_view name(ReasonCode code) {
  switch (code) {
    case ReasonCode::NoRow: return "no row";
    case ReasonCode::DType: return "dtype";
    case ReasonCode::Device: return "device";
    case ReasonCode::Layout: return "layout";
    case ReasonCode::Argument: return "argument";
    case ReasonCode::Denied: return "denied";
    case ReasonCode::MetadataOnly: return "metadata only";
    case ReasonCode::SingleOp: return "single op";
    case ReasonCode::NotProvablySafe: return "not provably safe";
    case ReasonCode::Shape: return "shape";
    case ReasonCode::NoSchedule: return "no schedule";
    case ReasonCode::CompileFailed: return "compile failed";
    case ReasonCode::NoCompiler: return "no compiler";
    case ReasonCode::Empty: return "empty";
    case ReasonCode::Other: return "other";
  }
  return "other";
}

std::string to_string(const Reason& reason) {
  std::string text(name(reason.code));
  if (!reason.detail.empty()) text += ": " + reason.detail;
  return text;
}

}  // namespace fxfuser::partitioner
