# fxfuser::interface, the same for a project that finds the installed package and for one that adds this folder.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(fxf_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fxfuser)

# The program's run path names the folder of libfxfuser_codegen.so, where the interface looks for it; nothing links the library.
add_library(fxfuser_host INTERFACE)
add_library(fxfuser::interface ALIAS fxfuser_host)
set_target_properties(fxfuser_host PROPERTIES EXPORT_NAME interface)
set_target_properties(fxfuser_interface PROPERTIES EXPORT_NAME interface_static OUTPUT_NAME fxfuser_interface)
target_link_libraries(fxfuser_host INTERFACE fxfuser_interface)
target_link_options(fxfuser_host INTERFACE $<BUILD_INTERFACE:LINKER:-rpath,$<TARGET_FILE_DIR:fxfuser_codegen>>)
add_dependencies(fxfuser_host fxfuser_codegen)

install(TARGETS fxfuser_host fxfuser_interface EXPORT fxfuser_targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cpp
        FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fxfuser COMPONENT cpp)
install(TARGETS fxfuser_codegen LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cpp)
install(EXPORT fxfuser_targets NAMESPACE fxfuser:: DESTINATION ${fxf_package_dir} COMPONENT cpp)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/fxfuserConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/fxfuserConfig.cmake
                              INSTALL_DESTINATION ${fxf_package_dir} PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/fxfuserConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fxfuserConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/fxfuserConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/TorchFromPython.cmake
        DESTINATION ${fxf_package_dir} COMPONENT cpp)
