#include "partitioner/ir/error.h"

namespace fxfuser {

void throw_error(ErrorKind kind, std::string message) { throw Error(kind, message); }

void throw_internal(const char* condition, std::string message, std::source_location where) {
  throw Error(ErrorKind::Internal, fmt::format("internal error, please report: {} ({} at {}:{})", message, condition,
                                               where.file_name(), where.line()));
}

}  // namespace fxfuser
