# Run by cpack between installing and packing: gives each package what Debian's policy asks of it.
# CPACK_TEMPORARY_DIRECTORY has a folder for each package, named like its component.
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)

# compress(FILE)  As policy 12.1 wants it; without name and time, the same every time.
function(compress file)
  execute_process(COMMAND gzip --best --no-name --force "${file}" COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# describe_package(ROOT NAME)
function(describe_package root name)
  set(folder "${root}/usr/share/doc/${name}")
  configure_file("${CMAKE_CURRENT_LIST_DIR}/copyright-${name}" "${folder}/copyright" COPYONLY)
  file(WRITE "${folder}/changelog"
    "${name} (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n"
    "  * The changes are in /usr/share/doc/fleetrun/CHANGELOG.md.\n\n"
    " -- ${CPACK_PACKAGE_CONTACT}  ${now}\n")
  compress("${folder}/changelog")
endfunction()

set(root "${CPACK_TEMPORARY_DIRECTORY}/fleetrun")
describe_package("${root}" fleetrun)
compress("${root}/usr/share/man/man1/fleetrun.1")
file(REMOVE "${root}/usr/share/doc/fleetrun/LICENSE")  # what copyright refers to
# Where Debian's zsh looks for completions of packages; site-functions is for /usr/local.
file(RENAME "${root}/usr/share/zsh/site-functions" "${root}/usr/share/zsh/vendor-completions")

if(EXISTS "${CPACK_TEMPORARY_DIRECTORY}/cuda")
  describe_package("${CPACK_TEMPORARY_DIRECTORY}/cuda" fleetrun-cuda)
  # Where NVIDIA's libraries were on the machine that built the plug-in says nothing of the machines that install it.
  file(GLOB_RECURSE plugin "${CPACK_TEMPORARY_DIRECTORY}/cuda/libfleetrun_cuda.so")
  file(RPATH_SET FILE "${plugin}" NEW_RPATH "$ORIGIN")
endif()
