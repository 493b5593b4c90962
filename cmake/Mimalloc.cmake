# The allocator of the library's objects: mimalloc, compiled here from its source as one file, private to the library.
# It never replaces the host's malloc, reads no environment variable, prints nothing and collects nothing at exit.
# local-dynamic TLS lets the library be opened late without taking from the loader's small static TLS reserve.

set(INLAY_HAVE_MIMALLOC FALSE)
if(INLAY_MIMALLOC STREQUAL "OFF")
  message(STATUS "Inlay: objects are allocated with malloc (INLAY_MIMALLOC=OFF)")
  return()
endif()
if(NOT EXISTS "${INLAY_MIMALLOC_SOURCE}/src/static.c")
  if(INLAY_MIMALLOC STREQUAL "AUTO")
    message(STATUS "Inlay: objects are allocated with malloc; scripts/fetch-mimalloc brings the source of mimalloc")
    return()
  endif()
  message(FATAL_ERROR "INLAY_MIMALLOC=ON, but ${INLAY_MIMALLOC_SOURCE} has no src/static.c; run scripts/fetch-mimalloc")
endif()

message(STATUS "Inlay: objects are allocated with mimalloc from ${INLAY_MIMALLOC_SOURCE}")
set(INLAY_HAVE_MIMALLOC TRUE)
add_library(inlay_mimalloc OBJECT "${INLAY_MIMALLOC_SOURCE}/src/static.c")
target_include_directories(inlay_mimalloc SYSTEM PUBLIC "${INLAY_MIMALLOC_SOURCE}/include")
target_compile_definitions(inlay_mimalloc PRIVATE
  MI_STATIC_LIB MI_DEBUG=0 MI_SECURE=0 MI_STAT=0 MI_NO_GETENV MI_SKIP_COLLECT_ON_EXIT)
target_compile_options(inlay_mimalloc PRIVATE
  -w -O2 -fvisibility=hidden -ftls-model=local-dynamic -fno-builtin-malloc -ffunction-sections -fdata-sections)
