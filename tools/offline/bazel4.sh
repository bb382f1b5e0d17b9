#!/bin/sh
# Bazel 4.2.3 as Debian and Ubuntu package it (bazel-bootstrap), without any download.
#
#   tools/offline/bazel4.sh build //...
#   tools/offline/bazel4.sh test //...
#
# The three repositories that this Bazel would fetch are replaced by the folders beside this script.
# BAZEL names another launcher: BAZEL=bazelisk USE_BAZEL_VERSION=/usr/bin/bazel-4. (/usr/bin/bazel
# is a wrapper that refuses the .bazelversion of this tree; bazel-4 is the program itself.)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
command=$1
shift
case $command in build | test | run)
  set -- --nosandbox_debug "$@"
  for repository in rules_cc rules_java remote_coverage_tools; do
    set -- "--override_repository=$repository=$here/$repository" "$@"
  done
  ;;
esac
exec "${BAZEL:-/usr/bin/bazel-4}" "$command" "$@"
