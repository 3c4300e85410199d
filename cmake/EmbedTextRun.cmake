# The script behind fxf_embed(): files -> one C++ source with raw string pieces (a piece stays under 16 KB).
string(REPLACE "|" ";" files "${INPUTS}")
set(pieces "")
foreach(file IN LISTS files)
  file(READ ${file} text)
  string(LENGTH "${text}" length)
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${text}" ${at} 8000 piece)
    string(APPEND pieces "R\"fxf_text(${piece})fxf_text\"\n")
    math(EXPR at "${at} + 8000")
  endwhile()
endforeach()
file(WRITE ${OUTPUT} "#include <string_view>
namespace fxfuser::embedded {
extern std::string_view ${FUNCTION}();
std::string_view ${FUNCTION}() {
  static constexpr char text[] =
${pieces};
  return {text, sizeof(text) - 1};
}
}  // namespace fxfuser::embedded
")
