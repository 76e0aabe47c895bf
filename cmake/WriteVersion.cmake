# cmake -DOUTPUT=Version.inc -DVERSION=0.1.0 -DSOURCE=FOLDER -P WriteVersion.cmake
# Writes the version and the commit of the sources as macros; the file is touched only when its text changes.
find_program(GIT git)
set(commit "unknown")
if(GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --short=12 HEAD
                  OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  execute_process(COMMAND ${GIT} -C ${SOURCE} status --porcelain --untracked-files=no
                  OUTPUT_VARIABLE changes ERROR_QUIET RESULT_VARIABLE noStatus)
  if(failed EQUAL 0)
    set(commit "${found}")
    if(NOT noStatus EQUAL 0 OR NOT changes STREQUAL "")
      string(APPEND commit ", modified")
    endif()
  endif()
endif()
set(text "#define DITRON_VERSION \"${VERSION}\"\n#define DITRON_COMMIT \"${commit}\"\n")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} present)
endif()
if(NOT "${present}" STREQUAL "${text}")
  file(WRITE ${OUTPUT} "${text}")
endif()
