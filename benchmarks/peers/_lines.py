"""How a peer talks: a line of facts, then one line of JSON for each line of JSON that it reads."""

import json
import sys
import time
from collections.abc import Callable, Mapping

Handler = Callable[[dict], Mapping[str, object]]


def serve(facts: Mapping[str, object], handlers: Mapping[str, Handler]) -> None:
    """Answer requests {"measure": name, ...} until the input ends; a failure is an answer too."""
    print(json.dumps(facts), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = handlers[request.pop("measure")](request)
        except Exception as error:  # the asker decides what a rival's failure means
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


def timed(function: Callable[[], object], count: int, calls: int = 1) -> dict[str, object]:
    """Take `count` samples of `calls` calls each; the answer holds the seconds of one call."""
    samples = []
    for _ in range(count):
        began = time.perf_counter()
        for _ in range(calls):
            function()
        samples.append((time.perf_counter() - began) / calls)
    return {"seconds": samples}
