# lit + FileCheck over tensor IR. WEFT_BIN_DIR says where `weft` was built.
import os

import lit.formats

config.name = "weft"
config.test_format = lit.formats.ShTest(execute_external=True)
config.suffixes = [".mlir"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(os.environ.get("WEFT_BIN_DIR", "."), "lit")
path = [os.environ.get("WEFT_BIN_DIR", ""), "/usr/lib/llvm-22/bin", config.environment.get("PATH", "")]
config.environment["PATH"] = os.pathsep.join(p for p in path if p)
for name in ("ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
