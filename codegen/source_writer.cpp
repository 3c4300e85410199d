#include "codegen/source_writer.h"

namespace fxfuser::codegen {

void SourceWriter::line(std::string_view text) {
  text_.append(static_cast<std::size_t>(depth_) * 2, ' ');
  text_ += text;
  text_ += '\n';
}

void SourceWriter::begin(std::string_view text) {
  line(text.empty() ? "{" : std::string(text) + " {");
  ++depth_;
}

void SourceWriter::end(std::string_view tail) {
  --depth_;
  line(tail);
}

}  // namespace fxfuser::codegen
