"""A REP socket that sends back what it gets: the floor that any call over pyzmq stands on.

Its first line names the port; it ends with its standard input.
"""

import json
import sys
import threading

import zmq

POLL_MS = 200


def main() -> None:
    """Echo until the input ends."""
    with zmq.Context() as context, context.socket(zmq.REP) as echo:
        echo.linger = 0
        port = echo.bind_to_random_port("tcp://127.0.0.1")
        print(json.dumps({"peer": "pyzmq", "version": zmq.__version__, "port": port}), flush=True)
        ended = threading.Event()
        threading.Thread(
            target=lambda: (sys.stdin.read(), ended.set()), name="end-of-input", daemon=True
        ).start()
        while not ended.is_set():
            if echo.poll(POLL_MS):
                echo.send(echo.recv())


if __name__ == "__main__":
    main()
