#!/bin/sh
exec python3 -m farbench.cli.main "$@"
