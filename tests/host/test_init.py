"""`import farbench` with what a board has, and the one sentence for what is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

import farbench as fb

# Refuses the packages of the host extra, as where they are not installed.
WITHOUT = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"numpy", "llvmlite", "click", "rich", "platformdirs"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name.partition(".")[0])

sys.meta_path.insert(0, Refuse())
"""


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT + code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_c2_the_package_imports_with_what_a_board_has() -> None:
    done = python("import farbench, farbench.errors; print(farbench.__version__)")
    assert (done.returncode, done.stdout.strip()) == (0, fb.__version__)


@pytest.mark.parametrize("name", ["nd", "load_module", "connect_tracker", "stats"])
def test_c2_what_is_missing_is_named_with_its_extra(name: str) -> None:
    call = "()" if name == "connect_tracker" else ""
    done = python(f"import farbench\nfarbench.{name}{call}")
    assert done.returncode == 1
    assert "pip install 'farbench[host]'" in done.stderr.splitlines()[-1]


def test_c2_the_command_line_says_so_in_one_line() -> None:
    done = python("from farbench.cli.main import main\nsys.exit(main(['devices']))")
    assert done.returncode == 1
    assert (
        done.stderr == "farbench: click is not installed here; try: pip install 'farbench[host]'\n"
    )


def test_every_public_name_is_there() -> None:
    for name in fb.__all__:
        assert getattr(fb, name) is not None
    assert set(fb.__all__) <= set(dir(fb))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        fb.nothing  # noqa: B018


def test_c2_a_board_may_type_farbench_device() -> None:
    done = python("from farbench.cli.main import main\nsys.exit(main(['device', '--version']))")
    assert (done.returncode, done.stdout) == (0, f"farbench-device {fb.__version__}\n")


def test_python_m_farbench_is_the_command() -> None:
    command = [sys.executable, "-m", "farbench", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, f"farbench, version {fb.__version__}\n")
