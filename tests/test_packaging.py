"""The package as it is built and installed: one source list, the library, the wheel, the sdist."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import tensorflow as tf

import tf_cudnn_rnn_ops
from tf_cudnn_rnn_ops import __main__ as report
from tf_cudnn_rnn_ops import reference

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import build_backend  # noqa: E402
import build_cc  # noqa: E402
import check_wheel  # noqa: E402

IN_GIT = (ROOT / ".git").exists() and shutil.which("git")


def run(*command, **options):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, **options)


class TestSources:
    def test_bazel_takes_every_list_from_the_same_file(self):
        lists = {name for name in build_cc.load_sources() if name.isupper()}
        build = (ROOT / "BUILD").read_text()
        loaded = re.search(r'load\(\s*"//:cc/sources.bzl",(.*?)\)', build, re.DOTALL).group(1)
        assert set(re.findall(r'"(\w+)"', loaded)) == lists

    @pytest.mark.parametrize("name", ["BUILD", "setup.py", "tools/build_cc.py", "Makefile"])
    def test_no_build_names_a_source_itself(self, name):
        assert not re.findall(r"[\w/]+/\w+\.cc\b", (ROOT / name).read_text())

    @pytest.mark.skipif(not IN_GIT, reason="needs the git checkout")
    def test_house_rules(self):
        result = run(sys.executable, "tools/check_house.py")
        assert result.returncode == 0, result.stdout

    def test_instruction_sets_share_no_inline_function(self):
        # The linker keeps one copy of an inline function that several files define, perhaps the
        # one with instructions that the machine lacks.
        builder = build_cc.Builder()
        for source in builder.cpu_kernels:
            symbols = subprocess.run(
                ["nm", "-C", builder.object_path(source)], capture_output=True, text=True
            )
            if symbols.returncode != 0:
                pytest.skip(f"{source} was compiled elsewhere")
            assert not re.findall(r"^[0-9a-f]* [WVu] .*$", symbols.stdout, re.MULTILINE), source

    def test_stale_objects_are_the_changed_ones(self, tmp_path, monkeypatch):
        monkeypatch.setattr(build_cc, "ROOT", tmp_path)
        monkeypatch.setattr(build_cc, "BUILD_DIR", tmp_path / "build")
        (tmp_path / "cc").mkdir()
        shutil.copy(ROOT / "cc" / "sources.bzl", tmp_path / "cc")
        (tmp_path / "a.h").write_text("inline int a() { return 1; }\n")
        (tmp_path / "a.cc").write_text('#include "a.h"\nint b() { return a(); }\n')
        (tmp_path / "c.cc").write_text("int c() { return 2; }\n")
        units = [("a.cc", []), ("c.cc", [])]
        compiled = []
        real_compile = build_cc.Builder._compile

        def record(builder, source, flags):
            compiled.append(source)
            return real_compile(builder, source, flags)

        monkeypatch.setattr(build_cc.Builder, "_compile", record)

        def build(units):
            compiled.clear()
            build_cc.Builder().compile(units)
            return sorted(compiled)

        assert build(units) == ["a.cc", "c.cc"]
        assert build(units) == []
        (tmp_path / "a.h").write_text("inline int a() { return 3; }\n")
        assert build(units) == ["a.cc"]
        assert build([("a.cc", []), ("c.cc", ["-DX"])]) == ["c.cc"]
        (tmp_path / "c.cc").write_text("int c() { return }\n")
        with pytest.raises(build_cc.BuildError, match=r"compilation failed: c\.cc"):
            build(units)


class TestLibrary:
    def test_needs_and_exports(self):
        assert list(check_wheel.check_library(tf_cudnn_rnn_ops.library_path())) == []

    def test_size(self):
        assert Path(tf_cudnn_rnn_ops.library_path()).stat().st_size < 3_000_000

    def test_build_info(self):
        path = Path(tf_cudnn_rnn_ops.library_path()).parent / "build_info.json"
        info = json.loads(path.read_text())
        assert info["version"] == tf_cudnn_rnn_ops.__version__
        assert info["tensorflow_version"] == tf.__version__
        flags = tf.sysconfig.get_compile_flags()
        assert f"-D_GLIBCXX_USE_CXX11_ABI={info['cxx11_abi']}" in flags

    def test_alone_is_enough(self):
        code = (
            "import sys, tensorflow as tf\n"
            "tf.load_op_library(sys.argv[1])\n"
            "size = tf.raw_ops.CudnnRNNParamsSize(num_layers=3, num_units=143, input_size=143,\n"
            "    T=tf.float32, S=tf.int32, direction='bidirectional')\n"
            "assert 'tf_cudnn_rnn_ops' not in sys.modules\n"
            "print(size.numpy())\n"
        )
        result = run(sys.executable, "-c", code, tf_cudnn_rnn_ops.library_path())
        assert result.stdout.strip() == "[1315600]", result.stderr

    def test_layers_are_known_to_keras(self):
        code = (
            "import tf_cudnn_rnn_ops, keras\n"
            "name = 'tf_cudnn_rnn_ops>CudnnLSTM'\n"
            "assert keras.saving.get_registered_object(name) is tf_cudnn_rnn_ops.CudnnLSTM\n"
            "assert 'CudnnLSTM' in dir(tf_cudnn_rnn_ops)\n"
        )
        result = run(sys.executable, "-c", code)
        assert result.returncode == 0, result.stderr

    def test_ops_do_without_keras_on_tensorflow(self):
        code = (
            "import sys, keras\n"
            "keras.backend.backend = keras.config.backend = lambda: 'jax'\n"
            "import tf_cudnn_rnn_ops\n"
            "assert 'tf_cudnn_rnn_ops.layers' not in sys.modules\n"
            "try:\n"
            "    tf_cudnn_rnn_ops.CudnnLSTM\n"
            "except ImportError as error:\n"
            "    print(error)\n"
        )
        result = run(sys.executable, "-c", code)
        assert "set KERAS_BACKEND=tensorflow before" in result.stdout, result.stderr


class TestReport:
    def test_python_m(self):
        result = run(sys.executable, "-m", "tf_cudnn_rnn_ops")
        assert result.returncode == 0, result.stdout + result.stderr
        for text in (
            f"TensorFlow {tf.__version__}",
            "instruction set",
            "cuDNN",
            "all comparisons passed",
        ):
            assert text in result.stdout
        for op in report.OPS:
            line = re.search(rf"^  {op} .*$", result.stdout, re.MULTILINE).group()
            assert "CPU: bfloat16 float16 float32 float64" in line

    def test_cudnn_is_looked_for_beside_tensorflow(self):
        text = report.library_text("tf_cudnn_rnn_ops_cudnn")
        folder = Path(tf.sysconfig.get_lib()).resolve().parent / "nvidia" / "cudnn" / "lib"
        assert re.match(r"\d+\.\d+\.\d+, ", text) or str(folder) in text

    def test_wrong_results_fail(self, monkeypatch, capsys):
        right = reference.forward

        def wrong(**arguments):
            output, output_h, output_c = right(**arguments)
            return output + 1e-4, output_h, output_c

        monkeypatch.setattr(reference, "forward", wrong)
        assert report.main() == 1
        assert "comparisons failed" in capsys.readouterr().out


class TestBackend:
    def test_the_environment_variable_wins(self, monkeypatch):
        monkeypatch.setenv("TF_CUDNN_RNN_OPS_TENSORFLOW", "tensorflow==2.20.0")
        assert "tensorflow==2.20.0" in build_backend.get_requires_for_build_wheel()

    def test_an_installed_tensorflow_decides(self, monkeypatch):
        monkeypatch.delenv("TF_CUDNN_RNN_OPS_TENSORFLOW", raising=False)
        monkeypatch.setattr(build_backend, "installed_tensorflow", lambda: "2.20.1")
        assert re.fullmatch(
            r"tensorflow(-cpu)?==2\.20\.1", build_backend.get_requires_for_build_editable()[-1]
        )

    def test_without_tensorflow_the_extra_decides(self, monkeypatch):
        monkeypatch.delenv("TF_CUDNN_RNN_OPS_TENSORFLOW", raising=False)
        monkeypatch.setattr(build_backend, "installed_tensorflow", lambda: None)
        extra = build_backend.default_requirement()
        assert build_backend.tensorflow_requirement() in (extra, extra.replace("-cpu", ""))

    def test_the_installed_one_is_found(self):
        assert build_backend.installed_tensorflow() == tf.__version__

    def test_no_build_isolation_without_tensorflow(self):
        code = (
            "import sys; sys.modules['tensorflow'] = None; sys.path.insert(0, 'tools')\n"
            "import build_cc; sys.argv = ['build_cc', 'ops']; build_cc.main()\n"
        )
        result = run(sys.executable, "-c", code)
        assert result.returncode == 1
        assert "needs an installed TensorFlow" in result.stderr
        assert "pip install --no-build-isolation ." in result.stderr
        assert "Traceback" not in result.stderr


@pytest.mark.slow
class TestDistributions:
    @staticmethod
    def build(hook, folder):
        code = f"import build_backend, sys; print(build_backend.{hook}(sys.argv[1]))"
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools")}
        result = run(sys.executable, "-c", code, str(folder), env=environment)
        assert result.returncode == 0, result.stdout + result.stderr
        return folder / result.stdout.split()[-1]

    def test_wheel(self, tmp_path):
        wheel = self.build("build_wheel", tmp_path)
        assert list(check_wheel.check_wheel(wheel)) == []

    @pytest.mark.skipif(not IN_GIT, reason="needs the git checkout")
    def test_sdist_is_complete(self, tmp_path):
        with tarfile.open(self.build("build_sdist", tmp_path)) as archive:
            names = {member.name.partition("/")[2] for member in archive if member.isfile()}
        listing = run("git", "ls-files", "--cached", "--others", "--exclude-standard", check=True)
        tree = {name for name in listing.stdout.splitlines() if (ROOT / name).exists()}
        needless = {name for name in tree if name.startswith((".git", ".ci/"))}
        assert tree - needless - names == set()
        own = {name for name in names - tree if ".egg-info/" not in name}
        assert own <= {"PKG-INFO", "setup.cfg"}
