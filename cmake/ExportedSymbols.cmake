# cmake -DHEADER=ditron.h -DOUTPUT=exports.map -P ExportedSymbols.cmake
# Writes a version script that exports what the header declares with DITRON_API and hides all else, so that another LLVM, fmt or
# Ditron in the same process never meets ours.
file(STRINGS ${HEADER} lines REGEX "^DITRON_API ")
set(body "{\n  global:\n")
foreach(line ${lines})
  string(REGEX REPLACE "^DITRON_API .*[ *](ditron_[a-z_]+)\\(.*" "\\1" name "${line}")
  string(APPEND body "    ${name};\n")
endforeach()
string(APPEND body "  local:\n    *;\n};\n")
file(WRITE ${OUTPUT} "${body}")
