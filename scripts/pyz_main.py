"""The entry of farbench-device.pyz; whatever the board lacks ends as one line."""

import sys


def main() -> int:
    """Run the device server; 2 where this Python is too old for it."""
    version = sys.version_info[:2]
    if version < (3, 10):  # noqa: UP036 - a board may well be older than what we support
        found = f"{version[0]}.{version[1]}"
        print(f"farbench-device: needs Python 3.10 or newer, this is {found}", file=sys.stderr)
        return 2
    from farbench_device_runtime.cli import main as serve

    return serve()


if __name__ == "__main__":
    sys.exit(main())
