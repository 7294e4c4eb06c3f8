"""`python -m farbench_device_runtime` is `farbench-device`."""

import sys

from farbench_device_runtime.cli import main

if __name__ == "__main__":
    sys.exit(main())
