# weft_embed(OUTPUT symbol=file...): a C source that defines `const char symbol[]` (zero-terminated) and
# `const size_t symbol_size` for each file. Run as a script it writes that source.
if(CMAKE_SCRIPT_MODE_FILE)
  set(text "#include <stddef.h>\n")
  foreach(pair ${PAIRS})
    string(REGEX MATCH "^([^=]+)=(.*)$" ignored "${pair}")
    file(READ "${CMAKE_MATCH_2}" bytes HEX)
    set(symbol "${CMAKE_MATCH_1}")
    string(LENGTH "${bytes}" size)
    math(EXPR size "${size} / 2")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes
                         "${bytes}")
    string(APPEND text "extern const char ${symbol}[];\nextern const size_t ${symbol}_size;\n"
                       "const char ${symbol}[] = {\n${bytes}0};\nconst size_t ${symbol}_size = ${size};\n")
  endforeach()
  file(WRITE "${OUTPUT}" "${text}")
  return()
endif()

set(weft_embed_script ${CMAKE_CURRENT_LIST_FILE})
function(weft_embed output)
  set(files)
  foreach(pair ${ARGN})
    string(REGEX REPLACE "^[^=]+=" "" file "${pair}")
    list(APPEND files ${file})
  endforeach()
  add_custom_command(OUTPUT ${output} DEPENDS ${files} ${weft_embed_script} VERBATIM
    COMMAND ${CMAKE_COMMAND} "-DOUTPUT=${output}" "-DPAIRS=${ARGN}" -P ${weft_embed_script})
endfunction()
