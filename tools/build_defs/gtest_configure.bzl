"""gtest_configure: says whether the system has GoogleTest. Nothing is downloaded.

defs.bzl of the repository defines HAVE_GTEST; without it the C++ tests are left out (libgtest-dev
installs it on Debian and Ubuntu).
"""

_HEADERS = ["/usr/include/gtest/gtest.h", "/usr/local/include/gtest/gtest.h"]

def _gtest_configure_impl(ctx):
    found = [header for header in _HEADERS if ctx.path(header).exists]
    ctx.file("BUILD.bazel", "")
    ctx.file("defs.bzl", "HAVE_GTEST = {}\n".format(bool(found)))

gtest_configure = repository_rule(
    doc = "Makes a repository that tells whether gtest/gtest.h is installed.",
    implementation = _gtest_configure_impl,
    local = True,
)
