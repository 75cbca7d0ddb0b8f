# Writes OUTPUT, a C++ source that defines NAME, a std::string_view in stepcast::client that HEADER declares, with the text of INPUT.
# Run at build time: cmake -D OUTPUT=... -D INPUT=... -D NAME=... -D HEADER=... -P embed_text.cmake
file(READ ${INPUT} text)
file(WRITE ${OUTPUT}.new "// Made by client/cmake/embed_text.cmake.\n#include \"${HEADER}\"\n\nnamespace stepcast::client {\n\nconst std::string_view ${NAME} = R\"stepcast(${text})stepcast\";\n\n}  // namespace stepcast::client\n")
file(RENAME ${OUTPUT}.new ${OUTPUT})
