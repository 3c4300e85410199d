# nlohmann_json: an installed package, else the header wheel `nlohmann-json` of the interpreter.
add_library(fxf_json INTERFACE)
find_package(nlohmann_json 3.11 QUIET)
if(nlohmann_json_FOUND)
  target_link_libraries(fxf_json INTERFACE nlohmann_json::nlohmann_json)
else()
  execute_process(COMMAND ${FXF_PYTHON} -c "import sysconfig; print(sysconfig.get_paths()['purelib'])"
                  OUTPUT_VARIABLE FXF_PURELIB OUTPUT_STRIP_TRAILING_WHITESPACE)
  find_path(FXF_JSON_INCLUDE nlohmann/json.hpp PATHS ${FXF_PURELIB}/nlohmann_json/include)
  if(NOT FXF_JSON_INCLUDE)
    message(FATAL_ERROR "nlohmann/json.hpp was not found: pip install nlohmann-json, or apt-get install nlohmann-json3-dev")
  endif()
  target_include_directories(fxf_json SYSTEM INTERFACE ${FXF_JSON_INCLUDE})
endif()
