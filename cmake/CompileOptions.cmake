# How every object of the library is compiled and linked, in two interface targets and one function.
#
# The arithmetic is defined operation by operation, so the compiler may not fuse a multiply and an add on its own
# (-ffp-contract=off), and nothing here asks for fast-math. The baseline is x86-64-v2, on ARM the
# compiler's, ARMv8-A; kernels for more are chosen at run time and get their own flags in kernels/.

add_library(inlay_compile_options INTERFACE)
target_compile_options(inlay_compile_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  $<$<BOOL:${INLAY_WERROR}>:-Werror>
  -ffp-contract=off
  -fno-omit-frame-pointer -ffunction-sections -fdata-sections
  $<$<CONFIG:Debug>:-Og>
  $<$<CONFIG:Release>:-O2$<SEMICOLON>-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>
  # -Wrestrict of GCC 12 sees overlaps in std::string's own concatenation that cannot happen (GCC bug 105329).
  $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique$<SEMICOLON>-Wno-restrict>)

set(INLAY_X86_64 FALSE)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(INLAY_X86_64 TRUE)
  target_compile_options(inlay_compile_options INTERFACE -march=x86-64-v2)
endif()
set(INLAY_AARCH64 FALSE)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
  set(INLAY_AARCH64 TRUE)
endif()

if(INLAY_SANITIZE)
  add_compile_options(-fsanitize=${INLAY_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${INLAY_SANITIZE})
endif()

# A shared library that shows only what its version script names and brings its own C++ runtime, hidden.
# -z nodelete: a host thread that called in may outlive dlclose, and its exit then runs code of the library.
function(inlay_link_privately target version_script)
  target_link_options(${target} PRIVATE
    "LINKER:--version-script=${version_script}" LINKER:-z,nodelete LINKER:-z,now LINKER:-z,relro LINKER:-z,noexecstack
    LINKER:--as-needed LINKER:--exclude-libs,ALL LINKER:--gc-sections)
  if(NOT INLAY_SANITIZE)
    target_link_options(${target} PRIVATE LINKER:-z,defs -static-libstdc++ -static-libgcc)
  endif()
endfunction()
