# ditron_add_kernels(TARGET
#   FILE.py:KERNEL "signature" ...   kernels, each with what it is compiled for; files relative to the current folder
#   TARGETS cuda:sm_90a sim ...      what to compile for (default sim:sm_80)
#   OPERATORS "ag_gemm m=64 n=64 k=64 ranks=2" ...   operators of the library with shapes
#   NUM_WARPS n NUM_STAGES n         of all kernels
#   NAMESPACE name                   of the header (default TARGET)
# )
#
# Compiles the kernels ahead of time into TARGET.ditron in the build folder, when they or what they import change (imports are
# watched from CMake 3.20 on), and writes TARGET_kernels.hpp, with a
# typed call for each kernel; TARGET finds it in its include path. Link TARGET with Ditron::runtime or Ditron::ditron. The program
# that compiles is `ditron`: DITRON_EXECUTABLE, else what find_program finds.

if(POLICY CMP0116) # paths in depfiles
  cmake_policy(SET CMP0116 NEW)
endif()

function(ditron_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "NUM_WARPS;NUM_STAGES;NAMESPACE" "TARGETS;OPERATORS")
  find_program(DITRON_EXECUTABLE ditron HINTS "${DITRON_TOOLS_DIR}" REQUIRED)
  if(NOT ARG_TARGETS)
    set(ARG_TARGETS sim:sm_80)
  endif()
  if(NOT ARG_NAMESPACE)
    string(MAKE_C_IDENTIFIER "${target}" ARG_NAMESPACE)
  endif()
  set(package ${CMAKE_CURRENT_BINARY_DIR}/${target}.ditron)
  set(header ${CMAKE_CURRENT_BINARY_DIR}/${target}-kernels/${target}_kernels.hpp)
  set(words)
  set(files)
  set(kernels ${ARG_UNPARSED_ARGUMENTS})
  while(kernels)
    list(POP_FRONT kernels kernel)
    list(POP_FRONT kernels signature)
    if(NOT kernel MATCHES "^(.+):([A-Za-z_0-9.]+)$" OR NOT signature)
      message(FATAL_ERROR "ditron_add_kernels(${target}): expected FILE.py:KERNEL and a signature, found '${kernel}' '${signature}'")
    endif()
    get_filename_component(file ${CMAKE_MATCH_1} ABSOLUTE)
    list(APPEND files ${file})
    list(APPEND words ${file}:${CMAKE_MATCH_2} --signature ${signature})
  endwhile()
  foreach(name ${ARG_TARGETS})
    list(APPEND words --target ${name})
  endforeach()
  foreach(operator ${ARG_OPERATORS})
    list(APPEND words --shape ${operator})
  endforeach()
  foreach(option NUM_WARPS NUM_STAGES)
    if(DEFINED ARG_${option})
      string(TOLOWER --${option} word)
      string(REPLACE _ - word ${word})
      list(APPEND words ${word} ${ARG_${option}})
    endif()
  endforeach()
  get_filename_component(folder ${header} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  set(depfile)
  if(CMAKE_GENERATOR MATCHES "Ninja" OR NOT CMAKE_VERSION VERSION_LESS 3.20)
    set(depfile DEPFILE ${package}.d)
    list(APPEND words --depfile ${package}.d)
  endif()
  add_custom_command(
    OUTPUT ${package} ${header}
    COMMAND ${DITRON_EXECUTABLE} build ${words} --output ${package} --header ${header} --namespace ${ARG_NAMESPACE} --quiet
    DEPENDS ${files} ${DITRON_EXECUTABLE}
    ${depfile}
    VERBATIM
    COMMENT "Compiling the kernels of ${target}")
  target_sources(${target} PRIVATE ${header})
  target_include_directories(${target} PRIVATE ${folder})
endfunction()
