# How every target of the project is made: one function per kind, so that flags exist once.

option(FLEETRUN_TESTS "Build the tests" ON)
option(FLEETRUN_BENCH "Build the programs of bench/" OFF)
option(FLEETRUN_WERROR "Treat warnings as errors" ON)
set(FLEETRUN_SANITIZE "" CACHE STRING "Sanitizers of the whole build: empty, address,undefined or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_UNITY_BUILD_MODE GROUP)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
# Below the prefix. Our libraries have no stable interface, so they stay out of the linker's folders; programs and
# libraries find each other by relative paths, wherever the prefix is moved to. With Debian's folder for one architecture
# the packages are laid out as any other prefix.
if(CMAKE_LIBRARY_ARCHITECTURE)
  set(FLEETRUN_LIBRARY_FOLDER "lib/${CMAKE_LIBRARY_ARCHITECTURE}/fleetrun")
else()
  set(FLEETRUN_LIBRARY_FOLDER "${CMAKE_INSTALL_LIBDIR}/fleetrun")
endif()
set(FLEETRUN_WORKER_FOLDER "${CMAKE_INSTALL_LIBEXECDIR}/fleetrun")
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME fleetrun)

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(CCACHE_PROGRAM ccache)
  if(CCACHE_PROGRAM)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
  endif()
endif()

add_library(fleetrun_flags INTERFACE)
target_compile_options(fleetrun_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-unknown-pragmas
  -Wno-missing-field-initializers)  # designated initialisers leave members at their defaults
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(fleetrun_flags INTERFACE -Wno-restrict -Wno-maybe-uninitialized)  # false alarms on std::string (GCC bugs 105651, 105562)
endif()
if(FLEETRUN_WERROR)
  target_compile_options(fleetrun_flags INTERFACE -Werror)
endif()
if(FLEETRUN_SANITIZE)
  # g++ gives false warnings of uninitialised values in code that it has instrumented.
  target_compile_options(fleetrun_flags INTERFACE
    -fsanitize=${FLEETRUN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -Wno-maybe-uninitialized)
  target_link_options(fleetrun_flags INTERFACE -fsanitize=${FLEETRUN_SANITIZE})
  if(FLEETRUN_SANITIZE MATCHES "undefined")
    # Undefined behaviour ends with SIGILL where it happens. Words instead would double the time to compile; a
    # debugger shows the line.
    target_compile_options(fleetrun_flags INTERFACE -fsanitize-undefined-trap-on-error)
  endif()
  if(FLEETRUN_SANITIZE STREQUAL "thread")
    # The thread sanitizer does not understand stand-alone fences; Asio's are not needed beside its mutexes.
    target_compile_definitions(fleetrun_flags INTERFACE BOOST_ASIO_DISABLE_FENCED_BLOCK)
  endif()
endif()

# To be linked after fleetrun_flags, whose options they take back for the code of a test: those of the undefined-behaviour sanitizer, or of all.
add_library(fleetrun_defined INTERFACE)
add_library(fleetrun_unsanitized INTERFACE)
if(FLEETRUN_SANITIZE)
  target_compile_options(fleetrun_defined INTERFACE -fno-sanitize=undefined)
  target_compile_options(fleetrun_unsanitized INTERFACE -fno-sanitize=all)
  target_compile_definitions(fleetrun_unsanitized INTERFACE FLEETRUN_PROGRAMS_ARE_SANITIZED)  # tests/support/slowdown.h
endif()

# fleetrun_compile_together(SOURCES...)  In a unity build (CMAKE_UNITY_BUILD) the files of a folder are one translation unit, since most of
# the time to compile a file goes into the headers that its neighbours include too. A large folder has one for each range of first
# letters, so that no unit takes long, and a new file seldom moves others to another unit. A folder of fewer than 5 files joins the folder
# above it if that has more. Names in anonymous namespaces have to differ inside a unit; a file that cannot live with its neighbours sets
# SKIP_UNITY_BUILD_INCLUSION.
function(fleetrun_compile_together)
  foreach(source IN LISTS ARGN)
    cmake_path(GET source PARENT_PATH folder)
    list(APPEND "files of ${folder}" "${source}")
    list(APPEND folders "${folder}")
  endforeach()
  list(REMOVE_DUPLICATES folders)
  list(SORT folders ORDER DESCENDING)  # a folder comes before the one above it
  foreach(folder IN LISTS folders)
    cmake_path(GET folder PARENT_PATH above)
    list(LENGTH "files of ${folder}" count)
    list(LENGTH "files of ${above}" count_above)
    if(count LESS 5 AND count_above GREATER count)
      foreach(source IN LISTS "files of ${folder}")
        list(APPEND "files of ${above}" "${source}")
      endforeach()
      list(REMOVE_ITEM folders "${folder}")
    endif()
  endforeach()
  foreach(folder IN LISTS folders)
    list(LENGTH "files of ${folder}" count)
    cmake_path(RELATIVE_PATH folder OUTPUT_VARIABLE name_of_folder)
    string(REPLACE "/" "_" name_of_folder "${name_of_folder}")
    foreach(source IN LISTS "files of ${folder}")
      set(unit "${name_of_folder}")
      if(count GREATER 24)
        cmake_path(GET source FILENAME name)
        foreach(letters a-d e-l m-r s-z)
          if(name MATCHES "^[${letters}]")
            string(APPEND unit "_${letters}")
          endif()
        endforeach()
      endif()
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${unit}")
    endforeach()
  endforeach()
endfunction()

# fleetrun_library(NAME SHARED|STATIC|BOTH PUBLIC targets... PRIVATE targets...)
# All .cpp files under the current folder. Third-party targets go under PRIVATE. BOTH makes NAME, shared, and NAME_static
# of the same objects, for a program that is to start without loading it.
function(fleetrun_library name kind)
  cmake_parse_arguments(ARG "" "" "PUBLIC;PRIVATE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  fleetrun_compile_together(${sources})
  set(needs PRIVATE fleetrun_flags ${ARG_PRIVATE})
  if(kind STREQUAL "BOTH")
    add_library(${name}_objects OBJECT ${sources})
    target_include_directories(${name}_objects PRIVATE "${CMAKE_SOURCE_DIR}/lib")
    target_link_libraries(${name}_objects PUBLIC ${ARG_PUBLIC} ${needs})
    set(sources $<TARGET_OBJECTS:${name}_objects>)
    list(TRANSFORM ARG_PUBLIC REPLACE "^fleetrun_.*" "\\0_static" OUTPUT_VARIABLE static_public)
    add_library(${name}_static STATIC ${sources})
    target_include_directories(${name}_static PUBLIC "${CMAKE_SOURCE_DIR}/lib")
    target_link_libraries(${name}_static PUBLIC ${static_public} ${needs})
    set(kind SHARED)
  endif()
  add_library(${name} ${kind} ${sources})
  target_include_directories(${name} PUBLIC "${CMAKE_SOURCE_DIR}/lib")
  target_link_libraries(${name} PUBLIC ${ARG_PUBLIC} ${needs})
  if(kind STREQUAL "SHARED")
    # The same in the build folder: CMake would end another path there with an empty entry, which means the current folder.
    set_target_properties(${name} PROPERTIES INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON)
    install(TARGETS ${name} LIBRARY DESTINATION ${FLEETRUN_LIBRARY_FOLDER})
  endif()
endfunction()

# fleetrun_test(NAME targets...)  All *_test.cpp files under the current folder, with doctest's main.
# A subfolder with a CMakeLists.txt of its own makes its own test. The cases of the files after SECOND_RUN run in a second process, beside
# those of the others, those of the files after THIRD_RUN in a third one, and so on. The files after NOT_SANITIZED are left out of a build with
# sanitizers: they start the same programs as others do and look at numbers, places or networks, not at other code. A test that STARTS_PROGRAMS
# calls hardly any code of ours: only the programs are sanitized, which halves the time to compile it.
function(fleetrun_test name)
  cmake_parse_arguments(ARG "STARTS_PROGRAMS" "" "SECOND_RUN;THIRD_RUN;FOURTH_RUN;NOT_SANITIZED" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*_test.cpp")
  file(GLOB own_tests CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt")
  foreach(own_test IN LISTS own_tests)
    cmake_path(GET own_test PARENT_PATH folder)
    list(FILTER sources EXCLUDE REGEX "^${folder}/")
  endforeach()
  if(FLEETRUN_SANITIZE)
    foreach(file IN LISTS ARG_NOT_SANITIZED)
      list(REMOVE_ITEM sources "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
    endforeach()
  endif()
  fleetrun_compile_together(${sources})
  add_executable(${name} ${sources})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}/tests")
  target_compile_definitions(${name} PRIVATE FLEETRUN_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
    DOCTEST_CONFIG_SUPER_FAST_ASSERTS)
  set(less_sanitized fleetrun_defined)
  if(ARG_STARTS_PROGRAMS)
    set(less_sanitized fleetrun_unsanitized)
  endif()
  target_link_libraries(${name} PRIVATE fleetrun_flags ${ARG_UNPARSED_ARGUMENTS} fleetrun_test_worlds fleetrun_test_main doctest::doctest
    ${less_sanitized})
  # Halves the time to compile: the tests check the libraries, which stay optimised and sanitized.
  target_compile_options(${name} PRIVATE -O0)
  set(runs ${name})
  foreach(run SECOND THIRD FOURTH)
    if(ARG_${run}_RUN)
      list(TRANSFORM ARG_${run}_RUN PREPEND "*/")
      list(APPEND elsewhere ${ARG_${run}_RUN})
      list(JOIN ARG_${run}_RUN "," patterns)
      string(TOLOWER "${name}_${run}_run" test)
      add_test(NAME ${test} COMMAND ${name} "--source-file=${patterns}")
      list(APPEND runs ${test})
    endif()
  endforeach()
  list(JOIN elsewhere "," patterns)
  add_test(NAME ${name} COMMAND ${name} "--source-file-exclude=${patterns}")
  set_tests_properties(${runs} PROPERTIES TIMEOUT 1500)
  if(ARG_SECOND_RUN)
    # They take minutes, most of which they wait, for networks that fall silent and the like: they start first.
    set_tests_properties(${runs} PROPERTIES COST 200)
  endif()
endfunction()
