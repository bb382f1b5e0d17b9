"""Builds the op library; what else there is to say about the package stands in pyproject.toml."""

import shutil
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).resolve().parent / "tools"))
import build_cc  # noqa: E402


class BuildOps(build_ext):
    """Leaves the compilation to tools/build_cc.py: _ops.so is no Python module."""

    def get_ext_filename(self, fullname):
        return fullname.replace(".", "/") + ".so"

    def build_extension(self, ext):
        try:
            build_cc.build_ops(self.get_ext_fullpath(ext.name))
        except build_cc.BuildError as error:
            raise SystemExit(f"error: {error}") from None

    def get_outputs(self):
        libraries = super().get_outputs()
        return libraries + [str(Path(each).parent / "build_info.json") for each in libraries]

    def copy_extensions_to_source(self):
        super().copy_extensions_to_source()
        build_py = self.get_finalized_command("build_py")
        for ext in self.extensions:
            built = Path(self.build_lib) / self.get_ext_filename(ext.name)
            package = Path(build_py.get_package_dir(ext.name.rpartition(".")[0]))
            shutil.copyfile(built.parent / "build_info.json", package / "build_info.json")


class BuildPackage(build_py):
    """Keeps modules that have left the tree out of a wheel made in a used build folder."""

    def run(self):
        shutil.rmtree(Path(self.build_lib) / build_cc.PACKAGE, ignore_errors=True)
        super().run()


class PlatformWheel(bdist_wheel):
    """The library depends on the machine and on TensorFlow, not on Python's version."""

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


setup(
    ext_modules=[Extension(f"{build_cc.PACKAGE}._ops", sources=[])],
    cmdclass={"build_ext": BuildOps, "build_py": BuildPackage, "bdist_wheel": PlatformWheel},
)
