# What cpack makes (scripts/package calls it): fleetrun_VERSION_ARCHITECTURE.deb, and fleetrun-cuda_VERSION_ARCHITECTURE.deb
# where the plug-in is built. cmake/package/ has what only the packages contain.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "fleetrun developers <developers@fleetrun.invalid>")  # who publishes packages gives their own
set(CPACK_PACKAGE_DIRECTORY "${CMAKE_BINARY_DIR}/packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_COMPONENTS_ALL fleetrun)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PROJECT_CONFIG_FILE "${CMAKE_CURRENT_LIST_DIR}/package/choose_packages.cmake")
set(CPACK_PRE_BUILD_SCRIPTS "${CMAKE_CURRENT_LIST_DIR}/package/arrange_for_debian.cmake")

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)

set(CPACK_DEBIAN_FLEETRUN_PACKAGE_NAME fleetrun)
set(CPACK_DEBIAN_FLEETRUN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${CMAKE_BINARY_DIR}/lib")  # ours, which are in no other package
set(CPACK_DEBIAN_FLEETRUN_PACKAGE_SUGGESTS "fleetrun-cuda, python3")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package begins with its own
set(CPACK_COMPONENT_FLEETRUN_DESCRIPTION "launcher, supervisor and runtime for distributed training
fleetrun starts a training script or program once per worker, under the
environment conventions of PaddlePaddle and PyTorch, and supervises the
workers: one log per rank, the first failure named, nothing left behind.
It also trains what a job file describes, without Python: on CPUs with
oneDNN, and with the package fleetrun-cuda on NVIDIA GPUs.")

# NVIDIA's libraries reach machines as packages and otherwise, so no dependency can name them. fleetrun of the same version,
# made by the same build, brings the versions of the others.
if(FLEETRUN_CUDA_FOUND)
  list(APPEND CPACK_COMPONENTS_ALL cuda)
  set(CPACK_FLEETRUN_PLUGIN "${CMAKE_BINARY_DIR}/lib/libfleetrun_cuda.so")
  string(REGEX MATCH "^[0-9]+" cuda_major "${CMAKE_CUDA_COMPILER_VERSION}")
  set(CPACK_DEBIAN_CUDA_PACKAGE_NAME fleetrun-cuda)
  set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "fleetrun (= ${PROJECT_VERSION}), libc6, libgcc-s1, libstdc++6")
  set(CPACK_DEBIAN_CUDA_PACKAGE_ENHANCES fleetrun)
  set(CPACK_COMPONENT_CUDA_DESCRIPTION "training on NVIDIA GPUs with fleetrun
This plug-in lets fleetrun train jobs on NVIDIA GPUs (--device=cuda).

It needs NVIDIA's driver and these libraries of NVIDIA, which are not part
of Debian and which this package does not depend on: cuBLASLt of CUDA ${cuda_major}
(libcublasLt.so.${cuda_major}), cuDNN 9 (libcudnn.so.9) and NCCL 2 (libnccl.so.2). The
dynamic linker has to find them: install them from NVIDIA's package
repository, or name their folders in LD_LIBRARY_PATH.")
endif()
include(CPack)

add_custom_target(packages COMMAND "${CMAKE_CPACK_COMMAND}" --config "${CMAKE_BINARY_DIR}/CPackConfig.cmake" USES_TERMINAL)
add_dependencies(packages installable)
if(TARGET fleetrun_cuda)
  add_dependencies(packages fleetrun_cuda)
endif()
