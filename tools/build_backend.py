"""The build backend: setuptools, plus the TensorFlow that an isolated build must compile against.

A TensorFlow in build-system.requires would be some TensorFlow, not the one that will load the
library. So the requirement is made here, when pip asks for it:

1. $TF_CUDNN_RNN_OPS_TENSORFLOW, a requirement such as "tensorflow-cpu==2.21.0";
2. else, an installed TensorFlow: the same version of tensorflow-cpu, whose headers are the same and
   whose download is the smallest, where there is such a wheel;
3. else, what the extra "cpu" asks for.

Nothing of this applies to --no-build-isolation, which builds against what is installed.
"""

import importlib.metadata
import os
import platform
import re
import sys
import sysconfig
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import (  # noqa: F401  the other hooks are setuptools' own
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

_DISTRIBUTIONS = ("tensorflow", "tensorflow-cpu", "tensorflow_cpu", "tensorflow-rocm")


def installed_tensorflow():
    """The version of the TensorFlow beside the Python that runs pip, or None.

    pip hides its site-packages from an isolated build, so they are looked through by path.
    """
    paths = [sysconfig.get_path("platlib"), sysconfig.get_path("purelib")]
    for distribution in importlib.metadata.distributions(path=paths):
        if distribution.metadata["Name"] in _DISTRIBUTIONS:
            return distribution.version
    return None


def default_requirement():
    """The extra "cpu" of pyproject.toml (read without tomllib, which Python 3.10 lacks)."""
    text = (Path(__file__).resolve().parent.parent / "pyproject.toml").read_text()
    return re.search(r'^cpu = \["(.+)"\]$', text, re.MULTILINE).group(1)


def tensorflow_requirement():
    """The requirement that an isolated build installs."""
    chosen = os.environ.get("TF_CUDNN_RNN_OPS_TENSORFLOW")
    if chosen:
        return chosen
    has_cpu_wheel = sys.platform == "linux" and platform.machine() == "x86_64"
    version = installed_tensorflow()
    requirement = f"tensorflow-cpu=={version}" if version else default_requirement()
    return requirement if has_cpu_wheel else requirement.replace("-cpu", "")


def get_requires_for_build_wheel(config_settings=None):
    return [*build_meta.get_requires_for_build_wheel(config_settings), tensorflow_requirement()]


def get_requires_for_build_editable(config_settings=None):
    return [*build_meta.get_requires_for_build_editable(config_settings), tensorflow_requirement()]
