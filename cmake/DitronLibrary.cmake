# ditron_add_library(NAME
#   SOURCES a.cpp b.cpp          sources of the room, relative to its folder
#   DEPS ditron-support ...      rooms it may use: its only link and include paths (the layer rule, STYLE.md section 2)
#   LIBS fmt::fmt ...            outside libraries
#   PCH core|lowering|none       precompiled header tier; core and lowering imply MLIR (default none)
#   PCH_HEADER Precompiled.h     a precompiled header of its own for the room's sources, not its tests: this file after the tier's
#   OPTIMIZE                     build with -O3 in every configuration (simulator arithmetic)
#   TESTS test/a_test.cpp ...    GoogleTest sources: one program NAME-tests, registered with CTest
#   TESTS_COMPUTE                its tests are optimised as the room is, and share no precompiled header
#   TEST_DEPS ...                further libraries for the test program
# )
#
# The rooms are static archives; only the tools link the shared libMLIR and libLLVM, so each room's archive stays free of
# the two and a program that needs no compiler links none of them.

set(DITRON_MLIR_LIBS MLIR LLVM)

function(ditron_use_pch target tier)
  if(NOT DITRON_USE_PCH OR tier STREQUAL "none")
    return()
  endif()
  target_precompile_headers(${target} REUSE_FROM ditron-pch-${tier})
endfunction()

function(ditron_mlir_settings target)
  target_include_directories(${target} SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_compile_options(${target} PRIVATE -fpch-instantiate-templates "SHELL:-Xclang -fno-pch-timestamp")
endfunction()

# ditron_precompile(TARGET HEADER...): a precompiled header of the target's own, for programs of many files that all include the same
# few headers. Every source still includes what it uses.
function(ditron_precompile target)
  if(DITRON_USE_PCH)
    target_compile_options(${target} PRIVATE -fpch-instantiate-templates "SHELL:-Xclang -fno-pch-timestamp")
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

# ditron_unoptimised(TARGET): not optimised in the Dev configuration: programs whose own code reads options, prints and asserts, while
# what computes is in the rooms. Optimising all that CLI11, nlohmann json and GoogleTest put into every object is two thirds of their
# compilation.
function(ditron_unoptimised target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Dev>:-O0>)
endfunction()

# ditron_optimised_sources(SOURCE...): of such a target those that do compute, under which a precompiled header made for the rest cannot be used.
function(ditron_optimised_sources)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Dev>:-O1> SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# ditron_add_precompiled(NAME HEADER [INLINES] DEPS ...): a precompiled header for unoptimised targets, which ask for it with
# ditron_reuse_precompiled. INLINES: its inline functions, and the templates that it instantiates, are compiled once for all objects, into
# the library NAME-inlines. Nearly all of an object that adds options with CLI11 is code of CLI11, and half of its compilation. (Optimised
# objects would gain little: they compile inline functions again, to inline them.)
function(ditron_add_precompiled name header)
  if(NOT DITRON_USE_PCH)
    return()
  endif()
  cmake_parse_arguments(ARG "INLINES" "" "DEPS" ${ARGN})
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp CONTENT "// An object library needs a source.\n")
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  ditron_unoptimised(${name})
  ditron_precompile(${name} ${header})
  if(NOT ARG_INLINES)
    return()
  endif()
  target_compile_options(${name} PRIVATE -fpch-codegen)
  set(precompiled ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${name}.dir/cmake_pch.hxx.pch)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}-inlines${CMAKE_CXX_OUTPUT_EXTENSION})
  string(TOUPPER ${CMAKE_BUILD_TYPE} type)
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}")
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${CMAKE_CXX_COMPILER} ${flags} -fPIC "$<FILTER:$<TARGET_PROPERTY:${name},COMPILE_OPTIONS>,EXCLUDE,^SHELL:>"
            -c ${precompiled} -o ${object}
    DEPENDS ${precompiled}
    COMMAND_EXPAND_LISTS VERBATIM
    COMMENT "Compiling the inline functions of ${name}")
  # A target of its own: all objects of a target wait for what its custom commands make.
  add_library(${name}-inlines STATIC ${object})
  set_target_properties(${name}-inlines PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${name}-inlines PUBLIC ${ARG_DEPS})
  # Inline functions that nobody calls may call what is nowhere, like some of the standard library.
  target_link_options(${name}-inlines INTERFACE -Wl,--gc-sections)
endfunction()

# ditron_reuse_precompiled(TARGET NAME)
function(ditron_reuse_precompiled target name)
  ditron_unoptimised(${target})
  if(DITRON_USE_PCH)
    target_compile_options(${target} PRIVATE -fPIC -fpch-instantiate-templates "SHELL:-Xclang -fno-pch-timestamp") # as the header was made
    target_precompile_headers(${target} REUSE_FROM ${name})
    if(TARGET ${name}-inlines)
      target_link_libraries(${target} PUBLIC ${name}-inlines)
    endif()
  endif()
endfunction()

# ditron_test_program(TARGET): a test program without MLIR; all of them share one precompiled header, cmake/pch/test.h.
function(ditron_test_program target)
  ditron_reuse_precompiled(${target} ditron-pch-test)
endfunction()

function(ditron_add_library name)
  cmake_parse_arguments(ARG "OPTIMIZE;TESTS_COMPUTE" "PCH;PCH_HEADER" "SOURCES;DEPS;LIBS;TESTS;TEST_DEPS" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "ditron_add_library(${name}): unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT ARG_PCH)
    set(ARG_PCH none)
  endif()
  add_library(${name} STATIC ${ARG_SOURCES})
  set_property(GLOBAL APPEND PROPERTY DITRON_ROOMS ${name})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} ${ARG_LIBS})
  if(ARG_OPTIMIZE)
    target_compile_options(${name} PRIVATE -O3)
  endif()
  if(NOT ARG_PCH STREQUAL "none")
    ditron_mlir_settings(${name})
    target_link_libraries(${name} PUBLIC ${DITRON_MLIR_LIBS})
    if(TARGET ditron-tablegen)
      add_dependencies(${name} ditron-tablegen)
    endif()
    if(ARG_PCH_HEADER)
      ditron_precompile(${name} ${PROJECT_SOURCE_DIR}/ditron/dialect/pch/${ARG_PCH}.h ${ARG_PCH_HEADER})
    else()
      ditron_use_pch(${name} ${ARG_PCH})
    endif()
  endif()
  if(DITRON_BUILD_TESTS AND ARG_TESTS)
    add_executable(${name}-tests ${ARG_TESTS})
    target_link_libraries(${name}-tests PRIVATE ${name} ${ARG_TEST_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
    if(NOT ARG_PCH STREQUAL "none")
      ditron_mlir_settings(${name}-tests)
      target_compile_options(${name}-tests PRIVATE -fPIC) # as the precompiled header was made, not -fPIE
      ditron_use_pch(${name}-tests ${ARG_PCH})
    elseif(NOT ARG_TESTS_COMPUTE)
      ditron_test_program(${name}-tests)
    endif()
    add_test(NAME ${name} COMMAND ${name}-tests)
    set_property(GLOBAL APPEND PROPERTY DITRON_TEST_PROGRAMS ${name}-tests)
  endif()
endfunction()

# ditron_add_tool(NAME SOURCES ... DEPS ... LIBS ... PCH tier): an executable in build/bin.
function(ditron_add_tool name)
  cmake_parse_arguments(ARG "" "PCH" "SOURCES;DEPS;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} ${ARG_LIBS})
  if(ARG_PCH AND NOT ARG_PCH STREQUAL "none")
    ditron_mlir_settings(${name})
    ditron_use_pch(${name} ${ARG_PCH})
  endif()
  set_target_properties(${name} PROPERTIES BUILD_RPATH ${LLVM_LIBRARY_DIR})
endfunction()

# ditron_tablegen(FILE.td OUT.inc ARGS...): one mlir-tblgen call on a .td of the current folder; every output belongs to
# the target ditron-tablegen, on which all MLIR rooms depend. The names OUT.inc are unique in the project.
function(ditron_tablegen td out)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${out})
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${MLIR_TABLEGEN_EXE} ${ARGN} -I${CMAKE_SOURCE_DIR} -I${MLIR_INCLUDE_DIRS} ${CMAKE_CURRENT_SOURCE_DIR}/${td}
            --write-if-changed -o ${output} -d ${output}.d
    DEPFILE ${output}.d
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${td}
    COMMENT "tblgen ${out}")
  # A target for each file: outputs of custom commands are known only in their own folder.
  set(target tblgen-${out})
  add_custom_target(${target} DEPENDS ${output})
  if(TARGET ditron-tablegen)
    add_dependencies(ditron-tablegen ${target})
  else()
    set_property(GLOBAL APPEND PROPERTY DITRON_TABLEGEN_TARGETS ${target})
  endif()
endfunction()
