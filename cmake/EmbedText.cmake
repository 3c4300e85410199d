# fxf_embed(<target> <function> <file>...): adds a source to <target> that defines
#   namespace fxfuser::embedded { std::string_view <function>(); }
# returning the texts of the files, one after the other.
function(fxf_embed target function)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/ REGEX "^[^/]")
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded_${function}.cpp)
  string(JOIN "|" inputs ${ARGN})
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DFUNCTION=${function} "-DINPUTS=${inputs}" -DOUTPUT=${output}
            -P ${PROJECT_SOURCE_DIR}/cmake/EmbedTextRun.cmake
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/EmbedTextRun.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
