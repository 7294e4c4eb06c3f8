"""The entry of farbench-device.pyz: says what the board lacks, else starts the device server."""

import importlib.util
import sys

# Module -> Debian's package, pip's package.
NEEDED = {"zmq": ("python3-zmq", "pyzmq"), "msgpack": ("python3-msgpack", "msgpack")}


def main() -> int:
    """Run the device server; 1 and one line on standard error where the board lacks something."""
    version = sys.version_info[:2]
    if version < (3, 10):  # noqa: UP036 - a board may well be older than what we support
        print(
            f"farbench-device: needs Python 3.10, this is {version[0]}.{version[1]}",
            file=sys.stderr,
        )
        return 1
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        debian = " ".join(NEEDED[name][0] for name in missing)
        pip = " ".join(NEEDED[name][1] for name in missing)
        print(
            f"farbench-device: {' and '.join(missing)} not installed here; "
            f"try: apt-get install {debian} (or: pip install {pip})",
            file=sys.stderr,
        )
        return 1
    from farbench_device_runtime.cli import main as serve

    return serve() or 0


if __name__ == "__main__":
    sys.exit(main())
