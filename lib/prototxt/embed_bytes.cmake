# cmake -DBYTES=FILE -DNAME=NAME -DSOURCE=FILE.cpp -P embed_bytes.cmake   Writes a source file that defines the content of a file.
file(READ "${BYTES}" bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
file(WRITE "${SOURCE}" "#include \"prototxt/schema.h\"

namespace fleetrun::prototxt {
namespace {
const unsigned char kBytes[] = {${bytes}};
}  // namespace

std::string_view ${NAME}() { return {reinterpret_cast<const char*>(kBytes), sizeof(kBytes)}; }

}  // namespace fleetrun::prototxt
")
