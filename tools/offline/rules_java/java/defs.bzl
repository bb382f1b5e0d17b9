"""In place of @rules_java, which the registered Java toolchains of Bazel 4 load in any build."""

java_binary = native.java_binary
java_import = native.java_import
java_library = native.java_library
java_runtime = native.java_runtime
java_toolchain = native.java_toolchain
