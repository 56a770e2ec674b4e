# weft_mlir: MLIR's C API. The C API archives go over the one shared library, so that a program stays small and starts
# fast; the package's version file refuses `find_package(MLIR 22)`, so the version is compared here.
find_package(MLIR REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "Weft needs LLVM/MLIR 22, found ${LLVM_PACKAGE_VERSION} in ${LLVM_DIR}")
endif()
file(GLOB weft_mlir_archives ${LLVM_LIBRARY_DIR}/libMLIRCAPI*.a)
add_library(weft_mlir INTERFACE)
target_include_directories(weft_mlir SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_link_directories(weft_mlir INTERFACE ${LLVM_LIBRARY_DIR})
target_link_libraries(weft_mlir INTERFACE -Wl,--start-group ${weft_mlir_archives} -Wl,--end-group
  MLIR MLIRExecutionEngineShared LLVM stdc++)
set_property(TARGET weft_mlir PROPERTY INTERFACE_LINK_OPTIONS -Wl,-rpath,${LLVM_LIBRARY_DIR})
