# Read by cpack before it packs. Who has not built the CUDA plug-in gets no package of it, instead of an empty one.
if(NOT EXISTS "${CPACK_FLEETRUN_PLUGIN}")
  list(REMOVE_ITEM CPACK_COMPONENTS_ALL cuda)
endif()

# cpack would go on without them, and leave the dependencies out.
foreach(tool IN ITEMS dpkg-shlibdeps file)
  find_program(found_${tool} ${tool})
  if(NOT found_${tool})
    message(FATAL_ERROR "there is no ${tool}, which a Debian package is made with; scripts/setup --package installs it")
  endif()
endforeach()
